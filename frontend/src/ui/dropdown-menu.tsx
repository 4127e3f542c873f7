import { DropdownMenu as Radix } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "./cn";

export const DropdownMenu = Radix.Root;
export const DropdownMenuTrigger = Radix.Trigger;

export function DropdownMenuContent({
  className,
  sideOffset = 4,
  ...props
}: ComponentProps<typeof Radix.Content>) {
  return (
    <Radix.Portal>
      <Radix.Content
        sideOffset={sideOffset}
        collisionPadding={8}
        className={cn(
          "fade-in-0 zoom-in-95 z-50 min-w-44 animate-in rounded-lg border bg-popover p-1 text-popover-foreground shadow-float outline-none",
          className,
        )}
        {...props}
      />
    </Radix.Portal>
  );
}

type ItemProps = ComponentProps<typeof Radix.Item> & { tone?: "neutral" | "bad" };

export function DropdownMenuItem({ className, tone = "neutral", ...props }: ItemProps) {
  return (
    <Radix.Item
      className={cn(
        "flex min-h-9 cursor-default select-none items-center gap-2.5 rounded-md px-2.5 text-sm outline-none data-[disabled]:opacity-50 data-[highlighted]:bg-accent data-[highlighted]:text-accent-foreground max-md:min-h-11 [&_svg]:size-4 [&_svg]:shrink-0",
        tone === "bad" && "text-bad data-[highlighted]:bg-bad-soft data-[highlighted]:text-bad",
        className,
      )}
      {...props}
    />
  );
}

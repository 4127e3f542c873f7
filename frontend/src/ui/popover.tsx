import { Popover as Radix } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "./cn";

export const Popover = Radix.Root;
export const PopoverTrigger = Radix.Trigger;

export function PopoverContent({
  className,
  sideOffset = 6,
  collisionPadding = 8,
  ...props
}: ComponentProps<typeof Radix.Content>) {
  return (
    <Radix.Portal>
      <Radix.Content
        sideOffset={sideOffset}
        collisionPadding={collisionPadding}
        className={cn(
          "fade-in-0 zoom-in-95 z-50 animate-in rounded-xl border bg-popover text-popover-foreground shadow-float outline-none",
          className,
        )}
        {...props}
      />
    </Radix.Portal>
  );
}

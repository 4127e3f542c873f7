import { Tooltip as Radix } from "radix-ui";
import type { ReactElement, ReactNode } from "react";

export const TooltipProvider = Radix.Provider;

type Props = {
  /** Said on hover and focus; never the only name of the thing. */
  text: ReactNode;
  side?: "top" | "right" | "bottom" | "left";
  children: ReactElement;
};

export function Tooltip({ text, side = "bottom", children }: Props) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          side={side}
          sideOffset={6}
          collisionPadding={8}
          className="fade-in-0 zoom-in-95 z-50 max-w-72 animate-in rounded-md bg-foreground px-2.5 py-1.5 text-background text-xs leading-snug shadow-float"
        >
          {text}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

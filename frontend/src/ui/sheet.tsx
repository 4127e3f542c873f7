import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { Button } from "./button";
import { cn } from "./cn";
import { overlayClasses } from "./dialog";

export const Sheet = Radix.Root;
export const SheetTrigger = Radix.Trigger;

type Props = {
  title: string;
  side: "left" | "right";
  /** Seen in the title's place; the title is then for screen readers alone. */
  heading?: ReactNode;
  className?: string;
  children: ReactNode;
};

/** A panel over the page's left or right edge; modal, closed by Escape. */
export function SheetContent({ title, side, heading, className, children }: Props) {
  return (
    <Radix.Portal>
      <Radix.Overlay className={overlayClasses} />
      <Radix.Content
        aria-describedby={undefined}
        // The panel itself, not its Close button: a focused button would show its tooltip, which
        // then takes the first Escape.
        onOpenAutoFocus={(event) => {
          event.preventDefault();
          if (event.currentTarget instanceof HTMLElement) event.currentTarget.focus();
        }}
        className={cn(
          "fixed inset-y-0 z-50 flex w-88 max-w-[88vw] flex-col bg-popover text-popover-foreground shadow-float data-[state=closed]:animate-out data-[state=open]:animate-in",
          side === "left"
            ? "data-[state=open]:slide-in-from-left data-[state=closed]:slide-out-to-left left-0 border-r"
            : "data-[state=open]:slide-in-from-right data-[state=closed]:slide-out-to-right right-0 border-l",
          className,
        )}
      >
        <header className="flex items-center gap-2 px-5 py-3">
          <Radix.Title className={heading ? "sr-only" : "flex-1 font-semibold"}>
            {title}
          </Radix.Title>
          {heading}
          <Radix.Close asChild>
            <Button aria-label="Close" intent="ghost" size="icon" className="-mr-2 ml-auto">
              <X aria-hidden />
            </Button>
          </Radix.Close>
        </header>
        <div className="min-h-0 flex-1 overflow-y-auto px-5 pb-5">{children}</div>
      </Radix.Content>
    </Radix.Portal>
  );
}

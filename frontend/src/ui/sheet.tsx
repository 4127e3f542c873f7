import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { cn } from "./cn";
import { overlayClasses } from "./dialog";
import { IconButton } from "./icon-button";

export const Sheet = Radix.Root;
export const SheetTrigger = Radix.Trigger;
export const SheetClose = Radix.Close;

type Props = {
  title: string;
  side: "left" | "right";
  /** Keeps the title for screen readers only, where the content has its own head. */
  isTitleHidden?: boolean;
  className?: string;
  children: ReactNode;
};

/** A panel over the page's left or right edge; modal, closed by Escape. */
export function SheetContent({ title, side, isTitleHidden = false, className, children }: Props) {
  return (
    <Radix.Portal>
      <Radix.Overlay className={overlayClasses} />
      <Radix.Content
        aria-describedby={undefined}
        className={cn(
          "fixed inset-y-0 z-50 flex w-88 max-w-[88vw] flex-col bg-popover text-popover-foreground shadow-float data-[state=closed]:animate-out data-[state=open]:animate-in",
          side === "left"
            ? "data-[state=open]:slide-in-from-left data-[state=closed]:slide-out-to-left left-0 border-r"
            : "data-[state=open]:slide-in-from-right data-[state=closed]:slide-out-to-right right-0 border-l",
          className,
        )}
      >
        <header className="flex items-center gap-2 px-5 py-3">
          <Radix.Title className={isTitleHidden ? "sr-only" : "flex-1 font-semibold"}>
            {title}
          </Radix.Title>
          <Radix.Close asChild>
            <IconButton label="Close" className="-mr-2 ml-auto">
              <X aria-hidden />
            </IconButton>
          </Radix.Close>
        </header>
        <div className="min-h-0 flex-1 overflow-y-auto px-5 pb-5">{children}</div>
      </Radix.Content>
    </Radix.Portal>
  );
}

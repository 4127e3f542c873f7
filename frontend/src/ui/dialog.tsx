import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode, RefObject } from "react";
import { Button } from "./button";
import { cn } from "./cn";

export const Dialog = Radix.Root;

export const overlayClasses =
  "fixed inset-0 z-40 bg-shade data-[state=closed]:animate-out data-[state=open]:animate-in data-[state=closed]:fade-out-0 data-[state=open]:fade-in-0";

type Props = {
  title: string;
  /** One sentence under the title; screen readers read it on opening. */
  description?: ReactNode;
  /** Buttons at the foot, which stay in sight while the content scrolls. */
  footer?: ReactNode;
  /** Where the focus goes on closing, when what opened the dialog is gone by then. */
  returnFocus?: RefObject<HTMLElement | null> | undefined;
  className?: string;
  children?: ReactNode;
};

/** Centred on a desktop, from the lower edge on a phone. */
export function DialogContent({
  title,
  description,
  footer,
  returnFocus,
  className,
  children,
}: Props) {
  return (
    <Radix.Portal>
      <Radix.Overlay className={overlayClasses} />
      <Radix.Content
        {...(description === undefined ? { "aria-describedby": undefined } : {})}
        onCloseAutoFocus={(event) => {
          if (!returnFocus?.current) return;
          event.preventDefault();
          returnFocus.current.focus();
        }}
        className={cn(
          "data-[state=open]:fade-in-0 data-[state=closed]:fade-out-0 fixed z-50 flex max-h-[92dvh] flex-col border bg-popover text-popover-foreground shadow-float data-[state=closed]:animate-out data-[state=open]:animate-in",
          "max-md:data-[state=open]:slide-in-from-bottom-8 max-md:inset-x-0 max-md:bottom-0 max-md:rounded-t-xl",
          "md:-translate-x-1/2 md:-translate-y-1/2 md:data-[state=open]:zoom-in-95 md:top-1/2 md:left-1/2 md:w-full md:max-w-lg md:rounded-xl",
          className,
        )}
      >
        <header className="space-y-1 pt-6 pr-14 pb-3 pl-6">
          <Radix.Title className="font-semibold text-lg leading-tight [overflow-wrap:anywhere]">
            {title}
          </Radix.Title>
          {description !== undefined && (
            <Radix.Description className="text-muted-foreground text-sm">
              {description}
            </Radix.Description>
          )}
        </header>
        <div className="min-h-0 flex-1 overflow-y-auto px-6 pt-1 pb-5">{children}</div>
        {footer && (
          <footer className="flex flex-wrap justify-end gap-2 border-t px-6 py-4">{footer}</footer>
        )}
        {/* Last, so that opening puts the focus on the first control and not on leaving. */}
        <Radix.Close asChild>
          <Button
            aria-label="Close"
            intent="ghost"
            size="icon-sm"
            className="absolute top-4 right-4"
          >
            <X aria-hidden />
          </Button>
        </Radix.Close>
      </Radix.Content>
    </Radix.Portal>
  );
}

import { type ReactNode, useId } from "react";

type Control = { id: string; "aria-describedby": string | undefined };

type Props = {
  label: string;
  /** One sentence under the control. */
  hint?: ReactNode;
  error?: string | undefined;
  /** Stands at the right of the label: a value, a reset button. */
  aside?: ReactNode;
  children: (control: Control) => ReactNode;
};

/** A control with its label, hint and error, tied together for screen readers. */
export function Field({ label, hint, error, aside, children }: Props) {
  const id = useId();
  const describes = hint || error ? `${id}-about` : undefined;
  return (
    <div className="space-y-1.5">
      <div className="flex min-h-5 items-center justify-between gap-2">
        <label htmlFor={id} className="font-medium text-sm">
          {label}
        </label>
        {aside}
      </div>
      {children({ id, "aria-describedby": describes })}
      {describes && (
        <div
          id={describes}
          className={error ? "text-bad text-xs" : "text-muted-foreground text-xs leading-relaxed"}
        >
          {error ?? hint}
        </div>
      )}
    </div>
  );
}

import { TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import type { ApiError } from "@/api/errors";

type Props = {
  error: ApiError;
  /** What was tried: "SmolLM2 could not be loaded". */
  title?: string;
  /** Buttons: try again, dismiss. */
  actions?: ReactNode;
};

/** A failure with the engine's own last words and what to do about it. */
export function ErrorNote({ error, title, actions }: Props) {
  return (
    <div role="alert" className="rounded-lg border border-bad/35 bg-bad-soft p-4 text-sm">
      <div className="flex gap-3">
        <TriangleAlert className="mt-0.5 size-4 shrink-0 text-bad" aria-hidden />
        <div className="min-w-0 flex-1 space-y-2">
          {title && <p className="font-semibold [overflow-wrap:anywhere]">{title}</p>}
          <p className="[overflow-wrap:anywhere]">{error.message}</p>
          {error.evidence && (
            <pre
              // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard.
              tabIndex={0}
              className="max-h-40 overflow-auto whitespace-pre-wrap rounded-md border bg-background p-3 font-mono text-xs leading-relaxed [overflow-wrap:anywhere]"
            >
              {error.evidence}
            </pre>
          )}
          {error.nextStep && <p className="text-muted-foreground">{error.nextStep}</p>}
          {actions && <div className="flex flex-wrap gap-2 pt-1">{actions}</div>}
        </div>
      </div>
    </div>
  );
}

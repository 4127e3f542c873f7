import { type ReactNode, useId } from "react";

type Props = { id?: string; title: string; description?: ReactNode; children: ReactNode };

export function Section({ id, title, description, children }: Props) {
  const heading = useId();
  return (
    <section
      id={id}
      aria-labelledby={heading}
      className="scroll-mt-6 space-y-4 rounded-xl border bg-card p-5 shadow-low md:p-6"
    >
      <div className="space-y-1">
        <h2 id={heading} className="font-semibold">
          {title}
        </h2>
        {description && (
          <p className="text-muted-foreground text-sm leading-relaxed">{description}</p>
        )}
      </div>
      {children}
    </section>
  );
}

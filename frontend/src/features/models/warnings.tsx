import { TriangleAlert } from "lucide-react";

/** What isn't as it was asked for; always in sight. */
export function Warnings({ warnings }: { warnings: readonly string[] }) {
  if (warnings.length === 0) return null;
  return (
    <ul aria-label="Warnings" className="space-y-1.5">
      {warnings.map((warning) => (
        <li
          key={warning}
          className="flex gap-2 rounded-md bg-busy-soft px-3 py-2 text-busy text-sm [overflow-wrap:anywhere]"
        >
          <TriangleAlert className="mt-0.5 size-4 shrink-0" aria-hidden />
          {warning}
        </li>
      ))}
    </ul>
  );
}

import type { Schemas } from "@/api/client";
import { formatMilliseconds } from "@/lib/format";
import { phasesOf } from "./phases";

/** Where a request's time went: a bar, and the same in words. */
export function TimelineBar({ request }: { request: Schemas["RequestCard"] }) {
  const phases = phasesOf(request);
  if (phases.length === 0) return null;
  const told = phases.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
  // What was cut off belongs to no phase, and stays empty.
  const total = Math.max(told, request.timeline.total_ms ?? 0);
  return (
    <div className="space-y-1">
      <div className="flex h-1.5 gap-px overflow-hidden rounded-full bg-input/30" aria-hidden>
        {phases.map(({ label, milliseconds, color }) => (
          <span
            key={label}
            className="h-full min-w-0.5"
            style={{ background: color, width: `${(milliseconds / total) * 100}%` }}
          />
        ))}
      </div>
      <dl className="flex flex-wrap gap-x-3 text-muted-foreground text-xs tabular-nums">
        {phases.map(({ label, milliseconds, color }) => (
          <div key={label} className="flex items-center gap-1.5">
            <span className="size-2 rounded-full" style={{ background: color }} aria-hidden />
            <dt>{label}</dt>
            <dd className="text-foreground">{formatMilliseconds(milliseconds)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

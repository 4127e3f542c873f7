import type { Schemas } from "@/api/client";
import { formatBytes } from "@/lib/format";

const parts = [
  { key: "weights", label: "Weights", color: "var(--memory-weights)" },
  { key: "kv", label: "Context (KV)", color: "var(--memory-kv)" },
  { key: "projector", label: "Projector", color: "var(--memory-projector)" },
  { key: "compute", label: "Compute", color: "var(--memory-compute)" },
] as const;

type Props = {
  memory: Schemas["Memory"];
  /** What the model would find; null when it isn't known. */
  roomBytes: number | null;
};

/** The estimate split into what takes it, drawn against what is free. */
export function MemoryBar({ memory, roomBytes }: Props) {
  const full = Math.max(memory.total, roomBytes ?? 0, 1);
  const present = parts.filter(({ key }) => memory[key] > 0);
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1 text-sm">
        <span>
          <span className="font-semibold tabular-nums">{formatBytes(memory.total)}</span>
          <span className="text-muted-foreground"> estimated</span>
        </span>
        {roomBytes !== null && (
          <span className="text-muted-foreground tabular-nums">{formatBytes(roomBytes)} free</span>
        )}
      </div>
      <div className="flex h-2.5 gap-px overflow-hidden rounded-full bg-input/30" aria-hidden>
        {present.map(({ key, color }) => (
          <span
            key={key}
            className="h-full min-w-0.5 transition-[width] duration-200"
            style={{ background: color, width: `${(memory[key] / full) * 100}%` }}
          />
        ))}
      </div>
      <dl className="flex flex-wrap gap-x-4 gap-y-1 text-muted-foreground text-xs">
        {present.map(({ key, label, color }) => (
          <div key={key} className="flex items-center gap-1.5">
            <span className="size-2 rounded-full" style={{ background: color }} aria-hidden />
            <dt>{label}</dt>
            <dd className="text-foreground tabular-nums">{formatBytes(memory[key])}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

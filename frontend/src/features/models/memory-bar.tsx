import type { Schemas } from "@/api/client";
import { formatBytes } from "@/lib/format";
import { SplitBar } from "./split-bar";

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
  /** "estimated" before a load, "planned" after it. */
  word?: string;
};

/** What a model takes, split into what takes it, drawn against what is free. */
export function MemoryBar({ memory, roomBytes, word = "estimated" }: Props) {
  return (
    <SplitBar
      parts={parts.map(({ key, label, color }) => ({ label, color, bytes: memory[key] }))}
      fullBytes={Math.max(memory.total, roomBytes ?? 0)}
    >
      <span>
        <span className="font-semibold tabular-nums">{formatBytes(memory.total)}</span>
        <span className="text-muted-foreground"> {word}</span>
      </span>
      {roomBytes !== null && (
        <span className="text-muted-foreground tabular-nums">{formatBytes(roomBytes)} free</span>
      )}
    </SplitBar>
  );
}

import type { Schemas } from "@/api/client";

/** Whether a model would find room: `unknown` where nothing can be said of it. */
export type Fit = "fits" | "tight" | "too_large" | "unknown";

type Engine = Schemas["EngineStatus"];
type Status = Pick<Schemas["StatusReply"], "ledger" | "engines">;

// Above this share of what is free, the rest of the machine gets slow before the model fails.
const TIGHT_SHARE = 0.9;

/** What an engine's end gives back: what it holds, and what it was promised and hasn't touched. */
export function heldBytes({ status, memory, resident_bytes }: Engine): number {
  const isThere = status.state !== "failed" && status.state !== "stopped";
  return isThere ? Math.max(resident_bytes ?? 0, memory.total) : 0;
}

/** What is free once the models named in `leaving` are gone. */
export function freeWithout(leaving: readonly string[], { ledger, engines }: Status): number {
  return engines
    .filter(({ model }) => leaving.includes(model))
    .reduce((sum, engine) => sum + heldBytes(engine), ledger.free);
}

/** The most that a load of `model` could find: all but the pinned make room for it. */
export function mostFor(model: string, status: Status): number {
  const leaving = status.engines.filter((engine) => engine.model === model || !engine.pinned);
  return freeWithout(
    leaving.map((engine) => engine.model),
    status,
  );
}

export function fitOf(memory: Schemas["Memory"] | null, roomBytes: number | null): Fit {
  if (memory === null || roomBytes === null) return "unknown";
  if (memory.total > roomBytes) return "too_large";
  return memory.total > roomBytes * TIGHT_SHARE ? "tight" : "fits";
}

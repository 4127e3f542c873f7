import type { Schemas } from "@/api/client";

/** Whether a model would find room: `unknown` where nothing can be said of it. */
export type Fit = "fits" | "tight" | "too_large" | "unknown";

// Above this share of what is free, the rest of the machine gets slow before the model fails.
const TIGHT_SHARE = 0.9;

/** Bytes free on the device that would hold the model; null when the device is not known. */
export function freeBytes(device: string, system: Schemas["SystemReply"]): number | null {
  if (device === "cpu") return system.memory.available_bytes;
  const match = system.devices.find(({ id, name }) => id === device || name === device);
  return match?.free_bytes ?? null;
}

/** Bytes that the engines hold now, which a load that keeps no others gives back first. */
export function heldBytes(engines: readonly Schemas["EngineStatus"][]): number {
  return engines
    .filter(({ pinned }) => !pinned)
    .reduce((sum, engine) => sum + (engine.resident_bytes ?? engine.memory.total), 0);
}

export function fitOf(memory: Schemas["Memory"] | null, roomBytes: number | null): Fit {
  if (memory === null || roomBytes === null) return "unknown";
  if (memory.total > roomBytes) return "too_large";
  return memory.total > roomBytes * TIGHT_SHARE ? "tight" : "fits";
}

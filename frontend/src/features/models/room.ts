import type { Schemas } from "@/api/client";
import { useStatus, useSystem } from "@/api/models";
import { freeBytes, heldBytes } from "./fit";

/** Tells how many bytes a model would find: what is free, and what would be unloaded for it. */
export function useRoom(): (memory: Schemas["Memory"], keepOthers?: boolean) => number | null {
  const { data: system } = useSystem();
  const { data: status } = useStatus();
  return (memory, keepOthers = false) => {
    if (!system) return null;
    const free = freeBytes(memory.device, system);
    if (free === null) return null;
    return free + (keepOthers ? 0 : heldBytes(status?.engines ?? []));
  };
}

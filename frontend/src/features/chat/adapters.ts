import type { Schemas } from "@/api/client";
import type { Adapter } from "./sampling";

type WithAdapters = Pick<Schemas["LoadedModel"], "adapters" | "default_adapter">;

/** Who answers: what was chosen if it is there, otherwise what the model was loaded for. */
export function adapterIn(
  chosen: Adapter | undefined,
  { adapters, default_adapter }: WithAdapters,
) {
  if (chosen === false) return false;
  if (chosen !== undefined && adapters.includes(chosen)) return chosen;
  return default_adapter ?? false;
}

export const nameOfAdapter = (adapter: Adapter) => (adapter === false ? "Base model" : adapter);

/** All who could have answered instead. */
export function others(adapter: Adapter, { adapters }: WithAdapters): Adapter[] {
  return [false, ...adapters].filter((each) => each !== adapter) as Adapter[];
}

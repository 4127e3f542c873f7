import type { Schemas } from "@/api/client";

type Model = Schemas["ModelCard"];

const titles: Record<Model["source"], string> = {
  builtin: "Built in",
  folder: "Your folders",
  hub_cache: "Hugging Face cache",
};

/** True when every word stands somewhere in what the model is called. */
export function matches(model: Model, query: string): boolean {
  const text = `${model.id} ${model.display_name} ${model.quant ?? ""}`.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

export type ModelGroup = { title: string; models: Model[] };

/** By where they lie, in the order a person looks; places with nothing are left out. */
export function bySource(models: readonly Model[]): ModelGroup[] {
  return (["builtin", "folder", "hub_cache"] as const)
    .map((source) => ({
      title: titles[source],
      models: models.filter((model) => model.source === source),
    }))
    .filter(({ models }) => models.length > 0);
}

import { useMemo } from "react";
import { useModels, useReachableModel } from "@/api/models";
import type { Asked } from "./asking";
import { untouched, useSettings } from "./sampling";

/**
 * The model that a message would reach, with what the person set for it; null while nothing can be
 * asked. One that is asleep can be: the message wakes it.
 */
export function useAsked(): Asked | null {
  const reachable = useReachableModel();
  const model = reachable?.task === "chat" ? reachable.model : null;
  const settings = useSettings(({ byModel }) => (model ? byModel[model] : undefined)) ?? untouched;
  // Where it isn't known it is taken for granted: others don't mind being told not to think.
  const supportsReasoning = reachable?.loaded?.supports_reasoning ?? true;
  const card = useModels().data?.data.find(({ id }) => id === model);
  const seesPictures = reachable?.loaded?.is_vision ?? card?.modalities.includes("image") ?? false;
  return useMemo(
    () => (model ? { model, settings, supportsReasoning, seesPictures } : null),
    [model, settings, supportsReasoning, seesPictures],
  );
}

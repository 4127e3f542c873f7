import { useMemo } from "react";
import { useModels, useReachableModel } from "@/api/models";
import type { Reachable } from "@/api/reachable";
import { adapterIn } from "./adapters";
import type { Asked } from "./asking";
import { type ModelSettings, untouched, useSettings } from "./sampling";

/**
 * The model that a message would reach, with what the person set for it; null while nothing can be
 * asked. One that is asleep can be: the message wakes it.
 */
export function useAsked(): Asked | null {
  const reachable = useReachableModel();
  const model = reachable?.task === "chat" ? reachable.model : null;
  const kept = useSettings(({ byModel }) => (model ? byModel[model] : undefined)) ?? untouched;
  const loaded = reachable?.loaded;
  const settings = useMemo(() => withAdapter(kept, loaded), [kept, loaded]);
  // Where it isn't known it is taken for granted: others don't mind being told not to think.
  const supportsReasoning = loaded?.supports_reasoning ?? true;
  const card = useModels().data?.data.find(({ id }) => id === model);
  const seesPictures = loaded?.is_vision ?? card?.modalities.includes("image") ?? false;
  const hearsSounds = loaded?.has_audio_input ?? card?.modalities.includes("audio") ?? false;
  return useMemo(
    () => (model ? { model, settings, supportsReasoning, seesPictures, hearsSounds } : null),
    [model, settings, supportsReasoning, seesPictures, hearsSounds],
  );
}

/** With the adapter that really answers, said plainly; one that isn't there any more is forgotten. */
function withAdapter(
  { adapter, ...settings }: ModelSettings,
  loaded: Reachable["loaded"] | undefined,
): ModelSettings {
  if (!loaded) return adapter === undefined ? settings : { ...settings, adapter };
  return loaded.adapters.length ? { ...settings, adapter: adapterIn(adapter, loaded) } : settings;
}

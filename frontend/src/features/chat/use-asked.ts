import { useMemo } from "react";
import { useActiveModel } from "@/api/models";
import type { Asked } from "./chat-store";
import { untouched, useSettings } from "./sampling";

/** The loaded model with what the person set for it; null while nothing can be asked. */
export function useAsked(): Asked | null {
  const active = useActiveModel();
  const model = active?.task === "chat" ? active.model : null;
  const settings = useSettings(({ byModel }) => (model ? byModel[model] : undefined)) ?? untouched;
  const supportsReasoning = active?.supports_reasoning ?? false;
  return useMemo(
    () => (model ? { model, settings, supportsReasoning } : null),
    [model, settings, supportsReasoning],
  );
}

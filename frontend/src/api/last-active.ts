import { create } from "zustand";
import { createJSONStorage, persist } from "zustand/middleware";
import { tabStorage } from "@/lib/tab-storage";
import type { Schemas } from "./client";

type LastActive = { loaded: Schemas["LoadedModel"] | null };

/**
 * The model that answered last, kept while it sleeps or is started again after a crash. For the
 * tab's whole session: a browser may drop the page itself while nobody uses it.
 */
export const useLastActive = create<LastActive>()(
  persist((): LastActive => ({ loaded: null }), {
    name: "eloquio.last-active",
    storage: createJSONStorage(() => tabStorage),
  }),
);

export function activeIn(status: Schemas["StatusReply"]): Schemas["LoadedModel"] | null {
  if (!status.active_model) return null;
  return status.engines.find(({ model }) => model === status.active_model)?.loaded ?? null;
}

/** To be called with each report of the server. */
export function noteActive(status: Schemas["StatusReply"]): void {
  const loaded = activeIn(status);
  if (!loaded) return;
  // Templates can be long, and nobody needs one of a model that sleeps.
  const noted = { ...loaded, chat_template: null };
  if (JSON.stringify(noted) !== JSON.stringify(useLastActive.getState().loaded))
    useLastActive.setState({ loaded: noted });
}

/** After the person has unloaded it: then nothing is said to be asleep. */
export function forgetLastActive(model: string): void {
  useLastActive.setState((last) => (last.loaded?.model === model ? { loaded: null } : last));
}

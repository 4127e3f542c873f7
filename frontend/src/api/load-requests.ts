import { create } from "zustand";
import type { Schemas } from "./client";

export type LoadRequest = Schemas["LoadRequest"];
export type LoadOptions = Omit<Partial<LoadRequest>, "model_path">;
/** How long a model stays; what is left out stays as it is. */
export type Keeping = { pin: boolean } | { ttl_s: number };
export type CacheType = NonNullable<LoadOptions["cache_type_kv"]>;

export const cacheTypes: readonly CacheType[] = [
  "f32",
  "f16",
  "bf16",
  "q8_0",
  "q5_1",
  "q5_0",
  "q4_1",
  "q4_0",
  "iq4_nl",
];

const DEFAULTS = {
  trust_remote_code: false,
  allow_pickle: false,
  max_seq_length: 0,
  engine: "auto",
  keep_others: false,
  force: false,
  is_lora: false,
  pin: false,
} as const satisfies LoadOptions;

/**
 * A load request as the API wants it: the model, and every option at its default. But for
 * `load_in_4bit`: sent, it is a wish, and left out it is decided by the model and the machine.
 */
export function loadRequest(model: string, options: LoadOptions = {}): LoadRequest {
  return { ...DEFAULTS, ...options, model_path: model } as LoadRequest;
}

/** What each model was loaded with last, and how it is kept, as far as this page asked for it. */
export const useRequests = create<Record<string, LoadOptions>>(() => ({}));

/** Keeps what a model was loaded with from this page, for the loads of it that come after. */
export function noteRequest(model: string, request: LoadRequest): void {
  const { model_path: _, ...options } = request;
  useRequests.setState({ [model]: options });
}

/** Keeps how long it stays since a person changed that, for the loads of it that come after. */
export function noteKeeping(model: string, keeping: Keeping): void {
  useRequests.setState((before) => ({ [model]: { ...before[model], ...keeping } }));
}

/** What this page asked for when the model was loaded last; otherwise what shows of that. */
export function optionsOfLoad(model: string, loaded?: Schemas["LoadedModel"] | null): LoadOptions {
  const { force: _, hf_token: __, ...asked } = useRequests.getState()[model] ?? {};
  return loaded ? { ...shownOptions(loaded), ...asked } : asked;
}

function shownOptions(loaded: Schemas["LoadedModel"]): LoadOptions {
  const { context_length: context, native_context_length: native, cache_type_kv } = loaded;
  const cacheType = cacheTypes.find((type) => type === cache_type_kv && type !== "f16");
  return {
    max_seq_length: context === native ? 0 : context,
    ...(cacheType ? { cache_type_kv: cacheType } : {}),
  };
}

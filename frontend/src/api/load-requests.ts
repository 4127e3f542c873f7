import { create } from "zustand";
import type { Schemas } from "./client";

export type LoadRequest = Schemas["LoadRequest"];
export type LoadOptions = Omit<Partial<LoadRequest>, "model_path">;
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
  max_seq_length: 0,
  engine: "auto",
  keep_others: false,
  force: false,
  load_in_4bit: true,
  is_lora: false,
  pin: false,
} as const satisfies LoadOptions;

/** A load request as the API wants it: the model, and every option at its default. */
export function loadRequest(model: string, options: LoadOptions = {}): LoadRequest {
  return { ...DEFAULTS, ...options, model_path: model };
}

/** What each model was loaded with last, from this page. */
export const useRequests = create<Record<string, LoadRequest>>(() => ({}));

/** Keeps what a model was loaded with from this page, for the loads of it that come after. */
export function noteRequest(model: string, request: LoadRequest): void {
  useRequests.setState({ [model]: request });
}

/** The options that a model was loaded with last from this page; otherwise what shows of them. */
export function optionsOfLoad(model: string, loaded?: Schemas["LoadedModel"] | null): LoadOptions {
  const request = useRequests.getState()[model];
  if (!request) return loaded ? shownOptions(loaded) : {};
  const { model_path: _, force: __, hf_token: ___, ...options } = request;
  return options;
}

function shownOptions(loaded: Schemas["LoadedModel"]): LoadOptions {
  const { context_length: context, native_context_length: native, cache_type_kv } = loaded;
  const cacheType = cacheTypes.find((type) => type === cache_type_kv && type !== "f16");
  return {
    max_seq_length: context === native ? 0 : context,
    ...(cacheType ? { cache_type_kv: cacheType } : {}),
  };
}

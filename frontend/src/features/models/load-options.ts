import type { LoadOptions } from "@/api/models";

/** The load dialog's fields as the person left them; empty text leaves the choice to the engine. */
export type LoadForm = {
  contextLength: string;
  cacheType: CacheType | "default";
  gpuLayers: string;
  parallelSlots: string;
  chatTemplate: string;
  keepOthers: boolean;
};

export type CacheType = NonNullable<LoadOptions["cache_type_kv"]>;

export const cacheTypes: readonly { value: CacheType | "default"; label: string; hint?: string }[] =
  [
    { value: "default", label: "Engine's own", hint: "usually f16" },
    { value: "f32", label: "f32", hint: "exact, twice f16" },
    { value: "f16", label: "f16" },
    { value: "bf16", label: "bf16" },
    { value: "q8_0", label: "q8_0", hint: "half of f16" },
    { value: "q5_1", label: "q5_1" },
    { value: "q5_0", label: "q5_0" },
    { value: "q4_1", label: "q4_1" },
    { value: "q4_0", label: "q4_0", hint: "a quarter of f16" },
    { value: "iq4_nl", label: "iq4_nl" },
  ];

export function emptyForm(): LoadForm {
  return {
    contextLength: "",
    cacheType: "default",
    gpuLayers: "",
    parallelSlots: "",
    chatTemplate: "",
    keepOthers: false,
  };
}

const shown = (value: number | null | undefined) => (value ? String(value) : "");

/** The form as an earlier request left it, so that a failed load can be changed and tried again. */
export function formOf(options: LoadOptions): LoadForm {
  return {
    contextLength: shown(options.max_seq_length),
    cacheType: options.cache_type_kv ?? "default",
    // 0 layers is a choice of its own: everything on the processor.
    gpuLayers: options.gpu_layers == null ? "" : String(options.gpu_layers),
    parallelSlots: shown(options.n_parallel),
    chatTemplate: options.chat_template_override ?? "",
    keepOthers: options.keep_others ?? false,
  };
}

/** The field's whole number; undefined when it is empty, NaN when it isn't one. */
function whole(text: string): number | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  return /^\d+$/.test(trimmed) ? Number(trimmed) : Number.NaN;
}

export type LoadFormErrors = Partial<Record<keyof LoadForm, string>>;

const ranges = {
  contextLength: { min: 1, max: 1_048_576, unit: "tokens" },
  gpuLayers: { min: 0, max: 10_000, unit: "layers" },
  parallelSlots: { min: 1, max: 256, unit: "slots" },
} as const;

export function errorsOf(form: LoadForm): LoadFormErrors {
  const errors: LoadFormErrors = {};
  for (const field of ["contextLength", "gpuLayers", "parallelSlots"] as const) {
    const value = whole(form[field]);
    const { min, max, unit } = ranges[field];
    if (value === undefined || (value >= min && value <= max)) continue;
    errors[field] = `A whole number from ${min} to ${max} ${unit}, or nothing.`;
  }
  return errors;
}

/** Only what the person chose; the rest is left to the engine. The form must be without errors. */
export function optionsOf(form: LoadForm): LoadOptions {
  const gpuLayers = whole(form.gpuLayers);
  const parallelSlots = whole(form.parallelSlots);
  return {
    max_seq_length: whole(form.contextLength) ?? 0,
    ...(form.cacheType === "default" ? {} : { cache_type_kv: form.cacheType }),
    ...(gpuLayers === undefined ? {} : { gpu_layers: gpuLayers }),
    ...(parallelSlots === undefined ? {} : { n_parallel: parallelSlots }),
    ...(form.chatTemplate.trim() === "" ? {} : { chat_template_override: form.chatTemplate }),
    ...(form.keepOthers ? { keep_others: true } : {}),
  };
}

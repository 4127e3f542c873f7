import { type CacheType, cacheTypes, type LoadOptions } from "@/api/load-requests";

/** The load dialog's fields as the person left them; empty text leaves the choice to the engine. */
export type LoadForm = {
  contextLength: string;
  cacheType: CacheType | "default";
  gpuLayers: string;
  parallelSlots: string;
  chatTemplate: string;
  unloadAfter: UnloadTime;
  /** Only where `unloadAfter` is the person's own. */
  idleMinutes: string;
  isPinned: boolean;
  keepOthers: boolean;
};

/** Seconds without a request; or the settings' choice, or minutes of one's own. */
export type UnloadTime = "default" | "0" | "300" | "1800" | "7200" | "own";

export const unloadTimes: readonly { value: UnloadTime; label: string }[] = [
  { value: "default", label: "As Eloquio is set up" },
  { value: "0", label: "Never" },
  { value: "300", label: "5 minutes" },
  { value: "1800", label: "30 minutes" },
  { value: "7200", label: "2 hours" },
  { value: "own", label: "Other…" },
];

/** Those of them that can be asked of a loaded model by one click. */
export const idleTimes = unloadTimes
  .filter(({ value }) => value !== "default" && value !== "own")
  .map(({ value, label }) => ({ seconds: Number(value), label }));

const cacheHints: Partial<Record<CacheType, string>> = {
  f32: "exact, twice f16",
  q8_0: "half of f16",
  q4_0: "a quarter of f16",
};

export const cacheOptions: readonly {
  value: CacheType | "default";
  label: string;
  hint?: string | undefined;
}[] = [
  { value: "default", label: "Engine's own", hint: "usually f16" },
  ...cacheTypes.map((type) => ({ value: type, label: type, hint: cacheHints[type] })),
];

export function emptyForm(): LoadForm {
  return {
    contextLength: "",
    cacheType: "default",
    gpuLayers: "",
    parallelSlots: "",
    chatTemplate: "",
    unloadAfter: "default",
    idleMinutes: "",
    isPinned: false,
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
    ...unloadTimeOf(options.ttl_s ?? null),
    isPinned: options.pin ?? false,
    keepOthers: options.keep_others ?? false,
  };
}

function unloadTimeOf(seconds: number | null): Pick<LoadForm, "unloadAfter" | "idleMinutes"> {
  const offered = unloadTimes.find(({ value }) => value === (seconds?.toString() ?? "default"));
  if (offered) return { unloadAfter: offered.value, idleMinutes: "" };
  return { unloadAfter: "own", idleMinutes: String((seconds ?? 0) / 60) };
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

const MOST_IDLE_MINUTES = 100_000;

function isIdleTime(minutes: string): boolean {
  const number = Number(minutes);
  return minutes.trim() !== "" && number > 0 && number <= MOST_IDLE_MINUTES;
}

function idleSeconds({ unloadAfter, idleMinutes, isPinned }: LoadForm): number | null {
  if (isPinned) return null;
  switch (unloadAfter) {
    case "default":
      return null;
    case "own":
      return Math.max(1, Math.round(Number(idleMinutes) * 60));
    default:
      return Number(unloadAfter);
  }
}

export function errorsOf(form: LoadForm): LoadFormErrors {
  const errors: LoadFormErrors = {};
  for (const field of ["contextLength", "gpuLayers", "parallelSlots"] as const) {
    const value = whole(form[field]);
    const { min, max, unit } = ranges[field];
    if (value === undefined || (value >= min && value <= max)) continue;
    errors[field] = `A whole number from ${min} to ${max} ${unit}, or nothing.`;
  }
  if (form.unloadAfter === "own" && !form.isPinned && !isIdleTime(form.idleMinutes))
    errors.idleMinutes = `A number above 0, and at most ${MOST_IDLE_MINUTES}.`;
  return errors;
}

/** Only what the person chose; the rest is left to the engine. The form must be without errors. */
export function optionsOf(form: LoadForm): LoadOptions {
  const gpuLayers = whole(form.gpuLayers);
  const parallelSlots = whole(form.parallelSlots);
  const ttl = idleSeconds(form);
  return {
    max_seq_length: whole(form.contextLength) ?? 0,
    ...(form.cacheType === "default" ? {} : { cache_type_kv: form.cacheType }),
    ...(gpuLayers === undefined ? {} : { gpu_layers: gpuLayers }),
    ...(parallelSlots === undefined ? {} : { n_parallel: parallelSlots }),
    ...(form.chatTemplate.trim() === "" ? {} : { chat_template_override: form.chatTemplate }),
    ...(ttl === null ? {} : { ttl_s: ttl }),
    ...(form.isPinned ? { pin: true } : {}),
    ...(form.keepOthers ? { keep_others: true } : {}),
  };
}

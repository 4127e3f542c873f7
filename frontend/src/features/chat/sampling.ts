import { create } from "zustand";
import { createJSONStorage, persist } from "zustand/middleware";
import type { Schemas } from "@/api/client";
import { browserStorage } from "./persistence";

export type Sampling = {
  temperature: number;
  top_p: number;
  top_k: number;
  min_p: number;
  repetition_penalty: number;
  presence_penalty: number;
  frequency_penalty: number;
  max_tokens: number;
  seed: number;
  stop: string[];
};

/** An adapter's name, or false for the base without any. */
export type Adapter = string | false;

/** `sampling` holds only what the person changed: the rest is left to the model and the engine. */
export type ModelSettings = {
  systemPrompt: string;
  sampling: Partial<Sampling>;
  /** Missing: whatever the model was loaded to answer with. */
  adapter?: Adapter;
};

export type NumberField = Exclude<keyof Sampling, "stop">;

export type FieldDescription = {
  name: NumberField;
  label: string;
  hint: string;
  min: number;
  max: number;
  step: number;
  /** Where a slider starts that nobody has moved, when the model recommends nothing. */
  neutral: number | null;
};

export const samplingFields: readonly FieldDescription[] = [
  {
    name: "temperature",
    label: "Temperature",
    hint: "Higher is more varied, 0 always takes the likeliest token.",
    min: 0,
    max: 2,
    step: 0.05,
    neutral: 0.8,
  },
  {
    name: "top_p",
    label: "Top P",
    hint: "Keeps the likeliest tokens that together reach this probability.",
    min: 0,
    max: 1,
    step: 0.01,
    neutral: 0.95,
  },
  {
    name: "top_k",
    label: "Top K",
    hint: "Keeps this many of the likeliest tokens; 0 keeps all.",
    min: 0,
    max: 200,
    step: 1,
    neutral: 40,
  },
  {
    name: "min_p",
    label: "Min P",
    hint: "Drops tokens less likely than this share of the likeliest.",
    min: 0,
    max: 1,
    step: 0.01,
    neutral: 0.05,
  },
  {
    name: "repetition_penalty",
    label: "Repetition penalty",
    hint: "Above 1 makes tokens that already stand there less likely.",
    min: 0.5,
    max: 2,
    step: 0.01,
    neutral: 1,
  },
  {
    name: "presence_penalty",
    label: "Presence penalty",
    hint: "Above 0 favours words that haven't been used yet.",
    min: -2,
    max: 2,
    step: 0.05,
    neutral: 0,
  },
  {
    name: "frequency_penalty",
    label: "Frequency penalty",
    hint: "Above 0 disfavours words the more often they were used.",
    min: -2,
    max: 2,
    step: 0.05,
    neutral: 0,
  },
  {
    name: "max_tokens",
    label: "Max tokens",
    hint: "Ends a reply after this many tokens; empty sets no limit.",
    min: 1,
    max: 1_048_576,
    step: 1,
    neutral: null,
  },
  {
    name: "seed",
    label: "Seed",
    hint: "The same seed gives the same dice; empty rolls anew each time.",
    min: 0,
    max: 4_294_967_295,
    step: 1,
    neutral: null,
  },
];

/** The model's own recommendation for a field, or null when it has none. */
export function recommended(
  inference: Schemas["Inference"] | null | undefined,
  name: NumberField,
): number | null {
  switch (name) {
    case "frequency_penalty":
    case "max_tokens":
    case "seed":
      return null;
    default:
      return inference?.[name] ?? null;
  }
}

/** The request's fields: only what was changed, and stop strings only where there are any. */
export function samplingRequest(settings: ModelSettings): Partial<Sampling> {
  const { stop, ...numbers } = settings.sampling;
  const stops = stop?.filter(Boolean) ?? [];
  return stops.length ? { ...numbers, stop: stops } : numbers;
}

export function changedCount(settings: ModelSettings): number {
  return Object.keys(settings.sampling).length + (settings.systemPrompt.trim() ? 1 : 0);
}

export const untouched: ModelSettings = { systemPrompt: "", sampling: {} };

type SettingsState = {
  byModel: Record<string, ModelSettings>;
  setSystemPrompt: (model: string, systemPrompt: string) => void;
  setAdapter: (model: string, adapter: Adapter) => void;
  setField: <Name extends keyof Sampling>(model: string, name: Name, value: Sampling[Name]) => void;
  resetField: (model: string, name: keyof Sampling) => void;
  resetAll: (model: string) => void;
};

/** What a person set for each model, kept in this browser. */
export const useSettings = create<SettingsState>()(
  persist(
    (set) => {
      const change = (model: string, how: (settings: ModelSettings) => ModelSettings) =>
        set(({ byModel }) => ({
          byModel: { ...byModel, [model]: how(byModel[model] ?? untouched) },
        }));
      return {
        byModel: {},
        setSystemPrompt: (model, systemPrompt) =>
          change(model, (settings) => ({ ...settings, systemPrompt })),
        setAdapter: (model, adapter) => change(model, (settings) => ({ ...settings, adapter })),
        setField: (model, name, value) =>
          change(model, (settings) => ({
            ...settings,
            sampling: { ...settings.sampling, [name]: value },
          })),
        resetField: (model, name) =>
          change(model, (settings) => {
            const { [name]: _, ...sampling } = settings.sampling;
            return { ...settings, sampling };
          }),
        resetAll: (model) =>
          change(model, ({ adapter }) => ({
            ...untouched,
            ...(adapter === undefined ? {} : { adapter }),
          })),
      };
    },
    {
      name: "eloquio.chat.settings",
      storage: createJSONStorage(() => browserStorage),
      partialize: ({ byModel }) => ({ byModel }),
    },
  ),
);

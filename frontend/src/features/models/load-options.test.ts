import { expect, test } from "vitest";
import { emptyForm, errorsOf, formOf, optionsOf, type UnloadTime } from "./load-options";

test("what the person left alone is left to the engine", () => {
  expect(optionsOf(emptyForm())).toEqual({ max_seq_length: 0 });
});

test("what the person chose is asked for", () => {
  expect(
    optionsOf({
      contextLength: " 4096 ",
      cacheType: "q8_0",
      gpuLayers: "0",
      parallelSlots: "4",
      chatTemplate: "{{ messages }}",
      unloadAfter: "own",
      idleMinutes: "1.5",
      isPinned: false,
      keepOthers: true,
    }),
  ).toEqual({
    max_seq_length: 4096,
    cache_type_kv: "q8_0",
    gpu_layers: 0,
    n_parallel: 4,
    chat_template_override: "{{ messages }}",
    ttl_s: 90,
    keep_others: true,
  });
});

test.each(["1.5", "-1", "many", "1048577"])("a context of %s is refused", (contextLength) => {
  expect(errorsOf({ ...emptyForm(), contextLength }).contextLength).toMatch(/whole number/);
});

test("0 GPU layers is a choice, 0 slots is not", () => {
  const errors = errorsOf({ ...emptyForm(), gpuLayers: "0", parallelSlots: "0" });
  expect(errors.gpuLayers).toBeUndefined();
  expect(errors.parallelSlots).toMatch(/from 1 to 256/);
});

test("a failed request comes back into the form as it was", () => {
  const options = { max_seq_length: 2048, gpu_layers: 0, cache_type_kv: "q4_0" } as const;
  expect(optionsOf(formOf(options))).toEqual(options);
});

test.each([
  ["default", undefined],
  ["0", 0],
  ["1800", 1800],
] as const)("unloading after %s asks for %s seconds", (unloadAfter, seconds) => {
  expect(optionsOf({ ...emptyForm(), unloadAfter }).ttl_s).toBe(seconds);
});

test.each(["", "0", "-5", "soon", "100001"])("%s idle minutes are refused", (idleMinutes) => {
  const form = { ...emptyForm(), unloadAfter: "own" as UnloadTime, idleMinutes };
  expect(errorsOf(form).idleMinutes).toMatch(/above 0/);
});

test("a pinned model is asked to stay, whatever idle time stands in the form", () => {
  const form = { ...emptyForm(), unloadAfter: "own" as const, idleMinutes: "soon", isPinned: true };
  expect(errorsOf(form)).toEqual({});
  expect(optionsOf(form)).toEqual({ max_seq_length: 0, pin: true });
});

test.each([90, 1800, 0])("an idle time of %s s comes back into the form as it was", (ttl_s) => {
  const options = { max_seq_length: 0, ttl_s };
  expect(optionsOf(formOf(options))).toEqual(options);
});

import { beforeEach, expect, test } from "vitest";
import { aLoadedModel } from "@/test/fixtures";
import { recommended, samplingRequest, untouched, useSettings } from "./sampling";

const MODEL = "a/model";
const settingsOf = (model: string) => useSettings.getState().byModel[model] ?? untouched;

beforeEach(() => useSettings.setState(useSettings.getInitialState(), true));

test("nothing is sent of what nobody changed", () => {
  expect(samplingRequest(untouched)).toEqual({});
});

test("only the changed fields are sent, zero among them", () => {
  useSettings.getState().setField(MODEL, "temperature", 0);
  useSettings.getState().setField(MODEL, "seed", 7);
  expect(samplingRequest(settingsOf(MODEL))).toEqual({ temperature: 0, seed: 7 });
});

test("a field that was reset is no longer sent", () => {
  useSettings.getState().setField(MODEL, "top_k", 5);
  useSettings.getState().resetField(MODEL, "top_k");
  expect(samplingRequest(settingsOf(MODEL))).toEqual({});
});

test("empty stop strings aren't sent", () => {
  useSettings.getState().setField(MODEL, "stop", ["", "END", ""]);
  expect(samplingRequest(settingsOf(MODEL))).toEqual({ stop: ["END"] });
  useSettings.getState().setField(MODEL, "stop", [""]);
  expect(samplingRequest(settingsOf(MODEL))).toEqual({});
});

test("each model keeps its own settings", () => {
  useSettings.getState().setField(MODEL, "temperature", 1.5);
  expect(samplingRequest(settingsOf("another/model"))).toEqual({});
});

test("the settings are kept in the browser", async () => {
  useSettings.getState().setSystemPrompt(MODEL, "Be brief.");
  useSettings.setState(useSettings.getInitialState(), true);
  localStorage.setItem(
    "eloquio.chat.settings",
    JSON.stringify({
      state: { byModel: { [MODEL]: { systemPrompt: "Be brief.", sampling: {} } } },
      version: 0,
    }),
  );
  await useSettings.persist.rehydrate();
  expect(settingsOf(MODEL).systemPrompt).toBe("Be brief.");
});

test("what a model recommends is known for its fields, and nothing for the others", () => {
  const { inference } = aLoadedModel();
  expect(recommended(inference, "temperature")).toBe(0.2);
  expect(recommended(inference, "top_k")).toBeNull();
  expect(recommended(inference, "seed")).toBeNull();
});

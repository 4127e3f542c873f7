import { expect, test } from "vitest";
import { chunksOf } from "./chunks";

const delta = (fields: object) => ({ choices: [{ delta: fields }] });

test("thinking, text, the reason of the end and the engine's measures are told apart", () => {
  expect(chunksOf(delta({ role: "assistant", content: null }))).toEqual([]);
  expect(chunksOf(delta({ reasoning_content: "Hm." }))).toEqual([
    { type: "reasoning", text: "Hm." },
  ]);
  expect(chunksOf(delta({ content: "Paris" }))).toEqual([{ type: "content", text: "Paris" }]);
  expect(chunksOf({ choices: [{ delta: {}, finish_reason: "stop" }] })).toEqual([
    { type: "finish", reason: "stop" },
  ]);
  const usage = { prompt_tokens: 12, completion_tokens: 3 };
  const timings = { prompt_ms: 40, predicted_per_second: 85.5 };
  expect(chunksOf({ model: "a/model", choices: [], usage, timings })).toEqual([
    {
      type: "usage",
      model: "a/model",
      usage: { promptTokens: 12, completionTokens: 3 },
      timings: { promptMilliseconds: 40, tokensPerSecond: 85.5 },
    },
  ]);
});

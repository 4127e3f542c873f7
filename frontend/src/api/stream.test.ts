import { http } from "msw";
import { expect, test } from "vitest";
import { eventStream, failure, server, streamOf } from "@/test/server";
import { type StreamChunk, streamCompletion } from "./stream";

const request = { model: "a/model", messages: [{ role: "user" as const, content: "hi" }] };
const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const delta = (fields: object) => event({ choices: [{ index: 0, delta: fields }] });

function answer(...parts: string[]) {
  server.use(http.post("*/v1/chat/completions", () => eventStream(streamOf(parts))));
}

async function collect(signal = new AbortController().signal): Promise<StreamChunk[]> {
  const chunks: StreamChunk[] = [];
  for await (const chunk of streamCompletion(request, signal)) chunks.push(chunk);
  return chunks;
}

test("thinking, text, the reason of the end and the engine's measures come as typed chunks", async () => {
  answer(
    delta({ role: "assistant", content: null }),
    delta({ reasoning_content: "Hm." }),
    delta({ content: "Paris" }),
    event({ choices: [{ delta: {}, finish_reason: "stop" }] }),
    event({
      model: "a/model",
      choices: [],
      usage: { prompt_tokens: 12, completion_tokens: 3 },
      timings: { prompt_ms: 40, predicted_per_second: 85.5 },
    }),
    "data: [DONE]\n\n",
  );
  expect(await collect()).toEqual([
    { type: "reasoning", text: "Hm." },
    { type: "content", text: "Paris" },
    { type: "finish", reason: "stop" },
    {
      type: "usage",
      model: "a/model",
      usage: { promptTokens: 12, completionTokens: 3 },
      timings: { promptMilliseconds: 40, tokensPerSecond: 85.5 },
    },
  ]);
});

test("events may be cut anywhere, also within a character", async () => {
  const bytes = new TextEncoder().encode(`${delta({ content: "Köln 🌉" })}data: [DONE]\n\n`);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  server.use(http.post("*/v1/chat/completions", () => eventStream(body)));
  expect(await collect()).toEqual([{ type: "content", text: "Köln 🌉" }]);
});

test("an error inside the stream is thrown with its evidence, after the text before it", async () => {
  answer(
    delta({ content: "Par" }),
    event({ error: { message: "The engine ended.", code: "engine_crashed", evidence: "SIGKILL" } }),
  );
  const chunks: StreamChunk[] = [];
  const reading = (async () => {
    for await (const chunk of streamCompletion(request, new AbortController().signal))
      chunks.push(chunk);
  })();
  await expect(reading).rejects.toMatchObject({ code: "engine_crashed", evidence: "SIGKILL" });
  expect(chunks).toEqual([{ type: "content", text: "Par" }]);
});

test("a refusal is thrown as the error that it names", async () => {
  server.use(
    http.post("*/v1/chat/completions", () =>
      failure(409, { message: "No model is loaded.", code: "no_model_loaded" }),
    ),
  );
  await expect(collect()).rejects.toMatchObject({ code: "no_model_loaded", status: 409 });
});

test("a stream that ends without [DONE] is not taken for a finished reply", async () => {
  answer(delta({ content: "Par" }));
  await expect(collect()).rejects.toMatchObject({ code: "stream_cut" });
});

test("aborting ends a stream that waits for its next word, with an AbortError", async () => {
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode(delta({ content: "One" }))),
  });
  server.use(http.post("*/v1/chat/completions", () => eventStream(body)));
  const controller = new AbortController();
  const reading = (async () => {
    for await (const _chunk of streamCompletion(request, controller.signal)) controller.abort();
  })();
  await expect(reading).rejects.toMatchObject({ name: "AbortError" });
});

import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { eventStream, failure, server } from "@/test/server";
import { streamReply } from "./reply";
import { answering, delta, done, finish, openReply, usage } from "./testing";
import { emptyReply } from "./tree";

const request = { model: "a/model", messages: [{ role: "user" as const, content: "hi" }] };
const empty = emptyReply("r", "p", "a/model", 0);
const ask = (signal = new AbortController().signal, before = empty) =>
  streamReply(before, request, signal, () => {});

test("a stream cut at every byte gives the same text", async () => {
  const text = "Ça va 你好 🌍👨‍👩‍👧 **fett**";
  const bytes = new TextEncoder().encode(delta(text) + finish() + done);
  server.use(
    http.post("*/v1/chat/completions", () =>
      eventStream(
        new ReadableStream({
          start(controller) {
            for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
            controller.close();
          },
        }),
      ),
    ),
  );
  const ended = await ask();
  expect(ended.content).toBe(text);
  expect(ended.outcome).toEqual({ state: "finished", reason: "stop" });
});

test("the engine's figures and the model that answered are taken from the stream", async () => {
  answering([delta("Paris"), delta("."), finish("length"), usage(42, 85), done]);
  const ended = await ask();
  expect(ended.model).toBe("the/one-that-answered");
  expect(ended.outcome).toEqual({ state: "finished", reason: "length" });
  expect(ended.stats).toMatchObject({ tokens: 42, isCounted: true, tokensPerSecond: 85 });
  expect(ended.stats?.firstTokenSeconds).toBeGreaterThan(0);
});

test("without the engine's figures the page counts for itself and says so", async () => {
  answering([delta("a"), delta("b"), delta("c"), finish(), done]);
  const ended = await ask();
  expect(ended.stats).toMatchObject({ tokens: 3, isCounted: false });
});

test("an error within the stream is an outcome beside the text, never text", async () => {
  const error = { message: "The engine ended.", code: "engine_crashed", evidence: "SIGSEGV" };
  answering([delta("Half"), `data: ${JSON.stringify({ error })}\n\n`]);
  const ended = await ask();
  expect(ended.content).toBe("Half");
  expect(ended.outcome).toEqual({
    state: "failed",
    fault: { ...error, nextStep: null },
  });
});

test("a stream that ends without being done has failed", async () => {
  answering([delta("Half")]);
  expect((await ask()).outcome).toMatchObject({ state: "failed", fault: { code: "stream_cut" } });
});

test("a refusal keeps the server's words", async () => {
  server.use(
    http.post("*/v1/chat/completions", () =>
      failure(400, {
        message: "Too long.",
        code: "context_length_exceeded",
        next_step: "Shorten it.",
      }),
    ),
  );
  expect((await ask()).outcome).toEqual({
    state: "failed",
    fault: {
      message: "Too long.",
      code: "context_length_exceeded",
      evidence: null,
      nextStep: "Shorten it.",
    },
  });
});

test("a server that can't be reached is said as such", async () => {
  server.use(http.post("*/v1/chat/completions", () => HttpResponse.error()));
  expect((await ask()).outcome).toMatchObject({
    state: "failed",
    fault: { code: "server_unreachable" },
  });
});

test("stopping in the middle keeps what had come", async () => {
  const stream = openReply();
  const controller = new AbortController();
  const shown: string[] = [];
  const ending = streamReply(empty, request, controller.signal, ({ content }) => {
    shown.push(content);
    controller.abort();
  });
  await stream.begun;
  stream.say(delta("Once upon"));
  const ended = await ending;
  expect(shown).toEqual(["Once upon"]);
  expect(ended.content).toBe("Once upon");
  expect(ended.outcome).toEqual({ state: "stopped" });
});

test("a reply that goes on keeps its text and adds up its tokens", async () => {
  answering([delta(" more"), finish(), usage(5), done]);
  const before = {
    ...empty,
    content: "Some",
    stats: { tokens: 7, isCounted: true, tokensPerSecond: 9, firstTokenSeconds: 0.25 },
  };
  const ended = await ask(undefined, before);
  expect(ended.content).toBe("Some more");
  expect(ended.stats).toMatchObject({ tokens: 12, firstTokenSeconds: 0.25 });
});

test("the time of thinking ends with the first word of the answer", async () => {
  answering([delta("Hm.", "reasoning_content"), delta("Yes."), finish(), done]);
  const ended = await ask();
  expect(ended.reasoning).toBe("Hm.");
  expect(ended.content).toBe("Yes.");
  expect(ended.reasoningSeconds).toBeGreaterThanOrEqual(0);
});

test("many tokens in one frame are shown once", async () => {
  let times = 0;
  answering([...Array.from({ length: 200 }, () => delta("x")), finish(), done]);
  const ended = await streamReply(empty, request, new AbortController().signal, () => {
    times += 1;
  });
  expect(ended.content).toHaveLength(200);
  expect(times).toBeLessThan(20);
});

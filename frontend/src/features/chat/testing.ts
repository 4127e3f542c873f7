import { http } from "msw";
import { eventStream, server, streamOf } from "@/test/server";

type Body = { messages: { role: string; content: string }[]; [field: string]: unknown };

const encoder = new TextEncoder();

export const delta = (content: string, kind: "content" | "reasoning_content" = "content") =>
  `data: ${JSON.stringify({ choices: [{ delta: { [kind]: content } }] })}\n\n`;
export const finish = (reason = "stop") =>
  `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: reason }] })}\n\n`;
export const usage = (completion: number, perSecond?: number) =>
  `data: ${JSON.stringify({
    model: "the/one-that-answered",
    choices: [],
    usage: { prompt_tokens: 9, completion_tokens: completion },
    ...(perSecond ? { timings: { predicted_per_second: perSecond } } : {}),
  })}\n\n`;
export const done = "data: [DONE]\n\n";

/** Answers each chat request with the next of `replies` (each a list of parts); notes the bodies. */
export function answering(...replies: string[][]): Body[] {
  const asked: Body[] = [];
  server.use(
    http.post("*/v1/chat/completions", async ({ request }) => {
      asked.push((await request.json()) as Body);
      const parts = replies[Math.min(asked.length, replies.length) - 1] ?? [];
      return eventStream(streamOf(parts));
    }),
  );
  return asked;
}

function aPromise() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** A reply that the test feeds by hand and that goes on until the test ends it or the page leaves. */
export function openReply() {
  let feed: ReadableStreamDefaultController<Uint8Array> | undefined;
  const begun = aPromise();
  server.use(
    http.post("*/v1/chat/completions", () => {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          feed = controller;
          begun.resolve();
        },
      });
      return eventStream(body);
    }),
  );
  return {
    begun: begun.promise,
    say: (...parts: string[]) => {
      for (const part of parts) feed?.enqueue(encoder.encode(part));
    },
    end: () => feed?.close(),
  };
}

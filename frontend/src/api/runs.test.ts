import { http } from "msw";
import { expect, test, vi } from "vitest";
import { eventStream, failure, server, streamOf } from "@/test/server";
import { cancelRun, followRun, type RunStep } from "./runs";

const said = (number: number, content: string) =>
  `id: ${number}\ndata: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
const event = (number: number, text: string) => ({
  type: "event",
  number,
  chunks: [{ type: "content", text }],
});
const done = "data: [DONE]\n\n";
const ended = { type: "end", error: null };

/** Answers each reader with the next of `answers`; notes from where each of them reads. */
function serving(...answers: (() => Response)[]): (string | null)[] {
  const asked: (string | null)[] = [];
  server.use(
    http.get("*/v1/runs/a-run/events", ({ request }) => {
      asked.push(request.headers.get("last-event-id"));
      const answer = answers.shift();
      if (!answer) throw new Error("nobody should have asked again");
      return answer();
    }),
  );
  return asked;
}

const stream =
  (...parts: string[]) =>
  () =>
    eventStream(streamOf(parts));

async function collect(after = 0, signal = new AbortController().signal): Promise<RunStep[]> {
  const steps: RunStep[] = [];
  for await (const step of followRun("a-run", after, signal)) steps.push(step);
  return steps;
}

test("a run is told event by event until it is done", async () => {
  const asked = serving(stream(said(1, "Hel"), said(2, "lo"), done));
  expect(await collect()).toEqual([event(1, "Hel"), event(2, "lo"), ended]);
  expect(asked).toEqual([null]);
});

test("events may be cut anywhere, also within a character", async () => {
  const bytes = new TextEncoder().encode(said(1, "Köln 🌉") + done);
  serving(() =>
    eventStream(
      new ReadableStream({
        start(controller) {
          for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
          controller.close();
        },
      }),
    ),
  );
  expect(await collect()).toEqual([event(1, "Köln 🌉"), ended]);
});

test("a connection that breaks goes on from the last event, and nothing is told twice", async () => {
  let breakOff = () => {};
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(said(5, "Hel")));
      breakOff = () => controller.error(new TypeError("network error"));
    },
  });
  const asked = serving(() => eventStream(body), stream(said(6, "lo"), done));
  const steps: RunStep[] = [];
  for await (const step of followRun("a-run", 4, new AbortController().signal)) {
    steps.push(step);
    if (steps.length === 1) breakOff();
  }
  expect(steps).toEqual([event(5, "Hel"), { type: "gap" }, event(6, "lo"), ended]);
  expect(asked).toEqual(["4", "5"]);
});

test("a server that is being restarted is waited for", async () => {
  const away = () => failure(503, { message: "Shutting down.", code: "shutting_down" });
  serving(stream(said(1, "Hel")), away, stream(said(2, "lo"), done));
  const gap = { type: "gap" };
  expect(await collect()).toEqual([event(1, "Hel"), gap, gap, event(2, "lo"), ended]);
});

test("the network's return ends the pause before the next attempt", async () => {
  const away = () => failure(503, { message: "Away.", code: "shutting_down" });
  const asked = serving(away, away, away, away, away, away, stream(done));
  const collecting = collect();
  const back = setInterval(() => dispatchEvent(new Event("online")), 20);
  expect((await collecting).at(-1)).toEqual(ended);
  clearInterval(back);
  expect(asked).toHaveLength(7);
});

test("where events were lost with the server, the run is told from its start", async () => {
  const lost = () => failure(409, { message: "No such event.", code: "run_events_lost" });
  const asked = serving(lost, stream(said(1, "Hel"), done));
  expect(await collect(9)).toEqual([{ type: "anew" }, event(1, "Hel"), ended]);
  expect(asked).toEqual(["9", null]);
});

test("an error without a number is the run's end, with its evidence", async () => {
  const error = { message: "The engine ended.", code: "engine_crashed", evidence: "SIGKILL" };
  serving(stream(said(1, "Hel"), `data: ${JSON.stringify({ error })}\n\n`));
  expect(await collect()).toMatchObject([
    event(1, "Hel"),
    { type: "end", error: { code: "engine_crashed", evidence: "SIGKILL" } },
  ]);
});

test("a run that the server doesn't know is at its end", async () => {
  serving(() => failure(404, { message: "No such run.", code: "run_not_found" }));
  expect(await collect(3)).toMatchObject([{ type: "end", error: { code: "run_not_found" } }]);
});

test("aborting ends a run that waits for its next word, without another step", async () => {
  const open = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode(said(1, "One"))),
  });
  serving(() => eventStream(open));
  const controller = new AbortController();
  const steps: RunStep[] = [];
  for await (const step of followRun("a-run", 0, controller.signal)) {
    steps.push(step);
    controller.abort();
  }
  expect(steps).toEqual([event(1, "One")]);
});

test("a connection that has fallen silent is given up and opened again", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const silent = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode(said(1, "One"))),
  });
  const asked = serving(() => eventStream(silent), stream(done));
  try {
    const steps = followRun("a-run", 0, new AbortController().signal);
    expect((await steps.next()).value).toEqual(event(1, "One"));
    const next = steps.next();
    await vi.advanceTimersByTimeAsync(30_000);
    expect((await next).value).toEqual({ type: "gap" });
    const after = steps.next();
    await vi.advanceTimersByTimeAsync(500);
    expect((await after).value).toEqual(ended);
  } finally {
    vi.useRealTimers();
  }
  expect(asked).toEqual([null, "1"]);
});

test("a cancel is repeated until the server has heard it", async () => {
  const answers = [503, 404];
  let times = 0;
  server.use(
    http.post("*/v1/runs/a-run/cancel", () => {
      times += 1;
      return failure(answers.shift() ?? 500, { message: "No.", code: "whatever" });
    }),
  );
  await cancelRun("a-run");
  expect(times).toBe(2);
});

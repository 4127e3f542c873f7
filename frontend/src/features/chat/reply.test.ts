import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { failure, server } from "@/test/server";
import { asNewRun, newPlace } from "./asking";
import { followReply, writeReply } from "./reply";
import { untouched } from "./sampling";
import { answering, broken, delta, done, finish, openReply, serveRuns, usage } from "./testing";
import { emptyReply, type Reply, type RunningReply } from "./tree";

const asked = {
  model: "a/model",
  settings: untouched,
  supportsReasoning: false,
  seesPictures: false,
};
const empty = emptyReply("r", "p", "a/model", 0);
const nothing = () => {};

function ask(
  signal = new AbortController().signal,
  before: Reply = empty,
  show: (reply: Reply) => void = nothing,
  keep: (reply: RunningReply) => Promise<void> = async () => {},
) {
  const reply = { ...before, run: { ...newPlace(before, asked), id: "run-1" } };
  return writeReply(reply, { ...asNewRun(reply, [], asked), keep }, { signal, show });
}

/** A reply that another visit of the page had asked for, as far as it was kept. */
const kept = (changes: Partial<RunningReply> = {}): RunningReply => ({
  ...empty,
  ...changes,
  run: {
    id: "run-1",
    asked: { model: "a/model", settings: untouched },
    lastEvent: 0,
    start: { content: 0, reasoning: 0, stats: null },
    before: null,
    ...changes.run,
  },
});

const follow = (reply: RunningReply) =>
  followReply(reply, { signal: new AbortController().signal, show: nothing });

/** Starts a run that says `parts`, without anybody who reads it. */
async function aRun(...parts: string[]) {
  const served = serveRuns((run) => run.say(...parts));
  await fetch("/v1/runs", { method: "POST", body: "{}" });
  return served;
}

test("that the server has the run is kept before anything of it is shown", async () => {
  answering([delta("Paris"), finish(), done]);
  const order: string[] = [];
  const ended = await ask(
    undefined,
    undefined,
    ({ content, run }) => void order.push(`shown ${content} ${run?.id}`),
    async ({ run }) => void order.push(`kept ${run.id} ${run.isPending}`),
  );
  expect(order.slice(0, 2)).toEqual(["shown  run-1", "kept run-1 undefined"]);
  expect(ended.run).toMatchObject({ id: "run-1", lastEvent: 2 });
  expect(ended.run).not.toHaveProperty("isPending");
});

test("a run that went on while nobody looked is shown whole", async () => {
  await aRun(delta("One"), delta(" two"), delta(" three"), finish(), usage(3, 85), done);
  const reply = kept({ content: "One", run: { ...kept().run, lastEvent: 1 } });
  const ended = await follow(reply);
  expect(ended.content).toBe("One two three");
  expect(ended.outcome).toEqual({ state: "finished", reason: "stop" });
  // It came at once, long after it was made: only the engine knows how fast that was.
  expect(ended.stats).toMatchObject({ tokens: 3, isCounted: true, tokensPerSecond: 85 });
  expect(ended.stats?.firstTokenSeconds).toBeNull();
});

test("a broken connection neither doubles nor loses a word", async () => {
  const stream = openReply();
  const ending = ask();
  await stream.begun;
  await vi.waitFor(() => expect(stream.run()?.asked).toHaveLength(1));
  stream.say(delta("One"), delta(" two"));
  stream.cut();
  stream.say(delta(" three"), finish(), done);
  const ended = await ending;
  expect(ended.content).toBe("One two three");
  expect(stream.run()?.asked.length).toBeGreaterThan(1);
});

test("a run whose last words were lost with the server is read again from its start", async () => {
  const served = await aRun(delta("!"), broken({ message: "Killed.", code: "run_interrupted" }));
  let refusals = 0;
  server.use(
    http.get("*/v1/runs/run-1/events", ({ request }) => {
      if (request.headers.get("last-event-id") === null) return;
      refusals += 1;
      return failure(409, { message: "No such event.", code: "run_events_lost" });
    }),
  );
  const run = { ...kept().run, lastEvent: 7, start: { content: 6, reasoning: 0, stats: null } };
  const ended = await follow(kept({ content: "Before and lost", run }));
  expect(ended.content).toBe("Before!");
  expect(ended.outcome).toEqual({ state: "interrupted" });
  expect(ended.run).toMatchObject({ id: "run-1", lastEvent: 1 });
  expect(refusals).toBe(1);
  expect(served.runs.size).toBe(1);
});

test("a run that the server has forgotten leaves its text, interrupted", async () => {
  serveRuns();
  const ended = await follow(kept({ content: "Half a" }));
  expect(ended).toMatchObject({ content: "Half a", outcome: { state: "interrupted" } });
  expect(ended.run).toBeUndefined();
});

test("a run that somebody else cancelled is stopped", async () => {
  const { runs } = await aRun(delta("Half"));
  runs.get("run-1")?.cancel();
  const ended = await follow(kept());
  expect(ended).toMatchObject({ content: "Half", outcome: { state: "stopped" } });
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
  answering([delta("Half"), broken(error)]);
  const ended = await ask();
  expect(ended.content).toBe("Half");
  expect(ended.outcome).toEqual({
    state: "failed",
    fault: { ...error, nextStep: null },
  });
});

test("a refusal keeps the server's words", async () => {
  server.use(
    http.post("*/v1/runs", () =>
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

test("a server that can't be reached is said as such, and has no run of the reply", async () => {
  server.use(http.post("*/v1/runs", () => HttpResponse.error()));
  const ended = await ask();
  expect(ended.run).toBeUndefined();
  expect(ended.outcome).toMatchObject({
    state: "failed",
    fault: { code: "server_unreachable" },
  });
});

test("stopping in the middle keeps what had come", async () => {
  const stream = openReply();
  const controller = new AbortController();
  const shown: string[] = [];
  const ending = ask(controller.signal, empty, ({ content }) => {
    shown.push(content);
    if (content) controller.abort();
  });
  await stream.begun;
  stream.say(delta("Once upon"));
  const ended = await ending;
  expect(shown).toEqual(["", "Once upon"]);
  await vi.waitFor(() => expect(stream.run()?.isCancelled).toBe(true));
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
  const ended = await ask(undefined, empty, () => {
    times += 1;
  });
  expect(ended.content).toHaveLength(200);
  expect(times).toBeLessThan(20);
});

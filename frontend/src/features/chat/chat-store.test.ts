import { http } from "msw";
import { beforeEach, expect, test, vi } from "vitest";
import { server } from "@/test/server";
import type { Asked } from "./asking";
import { useChatStore } from "./chat-store";
import { samplingRequest, untouched } from "./sampling";
import { answering, broken, delta, done, finish, openReply, serveRuns, usage } from "./testing";
import { activeBranch, type Message } from "./tree";

const asked: Asked = {
  model: "a/model",
  settings: untouched,
  supportsReasoning: false,
  seesPictures: false,
};
const words = (text: string) => ({ text, images: [] });
const store = () => useChatStore.getState();

const branch = (): Message[] => {
  const conversation = store().conversations[store().currentId ?? ""];
  return conversation ? activeBranch(conversation) : [];
};
const texts = () => branch().map(({ content }) => content);
const runIds = () =>
  branch().flatMap((message) => ("run" in message && message.run ? [message.run.id] : []));
const last = () => branch().at(-1) as Message;
const ended = () => vi.waitFor(() => expect(store().running).toEqual({}));

beforeEach(() =>
  useChatStore.setState({ conversations: {}, currentId: null, running: {}, announcement: "" }),
);

test("a prompt is answered by the model that was asked", async () => {
  const bodies = answering([delta("Paris."), finish(), done]);
  await store().send(words("The capital of France?"), asked);
  await ended();
  expect(texts()).toEqual(["The capital of France?", "Paris."]);
  expect(bodies[0]).toMatchObject({
    model: "a/model",
    messages: [{ role: "user", content: "The capital of France?" }],
  });
});

test("only what the person changed of the sampling is sent", async () => {
  const bodies = answering([delta("ok"), finish(), done]);
  const settings = { systemPrompt: "Be brief.", sampling: { temperature: 0, stop: ["END"] } };
  await store().send(words("hi"), { ...asked, settings });
  await ended();
  expect(bodies[0]).toEqual({
    model: "a/model",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "hi" },
    ],
    ...samplingRequest(settings),
    stream: true,
  });
});

test("a reply stopped before its first token is followed by a new message", async () => {
  const stream = openReply();
  await store().send(words("first"), asked);
  await stream.begun;
  store().stop(store().currentId ?? "");
  await ended();
  expect(last()).toMatchObject({ content: "", outcome: { state: "stopped" } });

  const bodies = answering([delta("both"), finish(), done]);
  await store().send(words("second"), asked);
  await ended();
  expect(bodies[0]?.messages).toEqual([{ role: "user", content: "first\n\nsecond" }]);
  expect(texts()).toEqual(["first", "", "second", "both"]);
});

test("regenerating keeps the first reply beside the new one", async () => {
  answering([delta("one"), finish(), done], [delta("two"), finish(), done]);
  await store().send(words("a number"), asked);
  await ended();
  const first = last().id;
  await store().regenerate(first, asked);
  await ended();
  expect(texts()).toEqual(["a number", "two"]);
  store().switchTo(first);
  expect(texts()).toEqual(["a number", "one"]);
});

test("a reply that failed without a word is asked for again in its own place", async () => {
  answering([broken({ message: "No.", code: "engine_crashed" })], [delta("yes"), finish(), done]);
  await store().send(words("hi"), asked);
  await ended();
  expect(last()).toMatchObject({ content: "", outcome: { state: "failed" } });
  await store().regenerate(last().id, asked);
  await ended();
  expect(texts()).toEqual(["hi", "yes"]);
  expect(Object.keys(store().conversations[store().currentId ?? ""]?.messages ?? {})).toHaveLength(
    2,
  );
});

test("an edited prompt is answered in its own branch", async () => {
  const bodies = answering([delta("one"), finish(), done], [delta("two"), finish(), done]);
  await store().send(words("first wording"), asked);
  await ended();
  const first = branch()[0]?.id ?? "";
  await store().editAndResend(first, words("second wording"), asked);
  await ended();
  expect(texts()).toEqual(["second wording", "two"]);
  expect(bodies[1]?.messages).toEqual([{ role: "user", content: "second wording" }]);
  store().switchTo(first);
  expect(texts()).toEqual(["first wording", "one"]);
});

test("a reply that was cut goes on in its own run, and its figures add up", async () => {
  const replies = [
    [delta("Once"), finish("length"), usage(1), done],
    [delta(" upon"), finish(), usage(1), done],
  ];
  const { bodies, continued } = serveRuns((run) => run.say(...(replies.shift() ?? [])));
  await store().send(words("a story"), asked);
  await ended();
  await store().continueReply(last().id, asked);
  await ended();
  expect(continued).toEqual(runIds());
  expect(bodies).toHaveLength(1);
  expect(texts()).toEqual(["a story", "Once upon"]);
  expect(last()).toMatchObject({
    outcome: { state: "finished", reason: "stop" },
    stats: { tokens: 2, isCounted: true },
  });
});

test("a reply that is continued with other settings is put back into a new run", async () => {
  const replies = [
    [delta("Once"), finish("length"), done],
    [delta(" upon"), finish(), done],
  ];
  const { bodies, continued, runs } = serveRuns((run) => run.say(...(replies.shift() ?? [])));
  await store().send(words("a story"), asked);
  await ended();
  const settings = { ...untouched, sampling: { max_tokens: 500 } };
  await store().continueReply(last().id, { ...asked, settings });
  await ended();
  expect(continued).toEqual([]);
  expect(bodies[1]).toMatchObject({
    max_tokens: 500,
    continue_final_message: true,
    add_generation_prompt: false,
    messages: [
      { role: "user", content: "a story" },
      { role: "assistant", content: "Once" },
    ],
  });
  expect(texts()).toEqual(["a story", "Once upon"]);
  await vi.waitFor(() => expect([...runs.keys()]).toEqual(runIds()));
});

test("a stopped reply goes on where the server stopped, with what the page hadn't seen", async () => {
  const stream = openReply();
  await store().send(words("a story"), asked);
  await stream.begun;
  stream.say(delta("Once"));
  await vi.waitFor(() => expect(store().running[store().currentId ?? ""]?.content).toBe("Once"));
  store().stop(store().currentId ?? "");
  stream.say(delta(" upon"));
  await ended();
  expect(texts()).toEqual(["a story", "Once"]);
  await store().continueReply(last().id, asked);
  await vi.waitFor(() => expect(stream.continued).toEqual(runIds()));
  stream.say(delta(" a time"), finish(), done);
  await vi.waitFor(() => expect(last()).toMatchObject({ outcome: { state: "finished" } }));
  expect(texts()).toEqual(["a story", "Once upon a time"]);
});

test("a model that thinks goes on with its answer instead of thinking anew", async () => {
  const bodies = answering([delta("Once"), finish("length"), done], [delta("."), finish(), done]);
  const thinker = { ...asked, supportsReasoning: true };
  await store().send(words("a story"), thinker);
  await ended();
  await store().continueReply(last().id, { ...thinker, model: "another/model" });
  await ended();
  expect(bodies[0]).not.toHaveProperty("enable_thinking");
  expect(bodies[1]).toMatchObject({
    model: "another/model",
    enable_thinking: false,
    continue_final_message: true,
    add_generation_prompt: false,
  });
});

test("a stop before the server has told the run's id ends the run, too", async () => {
  const stream = openReply();
  await store().send(words("first"), asked);
  store().stop(store().currentId ?? "");
  await ended();
  await stream.begun;
  await vi.waitFor(() => expect([...stream.runs.keys()]).toEqual([]));
  expect(stream.run()?.isCancelled).toBe(true);
});

test("a stop ends the run, which stays to be continued", async () => {
  const stream = openReply();
  await store().send(words("first"), asked);
  await vi.waitFor(() => expect(stream.run()?.asked).toEqual([null]));
  store().stop(store().currentId ?? "");
  await vi.waitFor(() => expect(stream.run()?.isCancelled).toBe(true));
  await ended();
  expect([...stream.runs.keys()]).toEqual(runIds());
});

/** The conversation as it is kept before the server has answered, and what it had asked for then. */
async function closedWhileAsking(has: "begun" | "not begun") {
  const stream = openReply();
  const reached = vi.fn();
  server.use(
    http.post("*/v1/runs", ({ request }) => {
      reached(request.headers.get("idempotency-key"));
      return has === "begun" ? undefined : new Promise<never>(() => {});
    }),
  );
  await store().send(words("first"), asked);
  const kept = structuredClone(store().conversations[store().currentId ?? ""]);
  if (!kept) throw new Error("the conversation is missing");
  await vi.waitFor(() => expect(reached).toHaveBeenCalledOnce());
  if (has === "begun") await stream.begun;
  server.resetHandlers();
  useChatStore.setState({ conversations: {}, currentId: null, running: {} });
  // What was under way in the page that was closed has ended with it.
  return { kept: { ...kept, id: "opened again" }, key: reached.mock.calls[0]?.[0] as string };
}

test.each(["begun", "not begun"] as const)(
  "a reply whose asking was cut off by a reload is asked for once: %s",
  async (has) => {
    const { kept, key } = await closedWhileAsking(has);
    const served = serveRuns((run) => run.say(delta("here"), finish(), done));
    if (has === "begun")
      await fetch("/v1/runs", { method: "POST", body: "{}", headers: { "idempotency-key": key } });
    store().restore(kept);
    await vi.waitFor(() => expect(texts()).toEqual(["first", "here"]));
    await vi.waitFor(() => expect(last()).toMatchObject({ outcome: { state: "finished" } }));
    expect([...served.runs.keys()]).toEqual([key]);
    expect(runIds()).toEqual([key]);
    expect(served.bodies).toHaveLength(1);
    if (has === "not begun")
      expect(served.bodies[0]).toMatchObject({
        model: "a/model",
        messages: [{ role: "user", content: "first" }],
      });
  },
);

test("pictures are sent before the words, and stay in the conversation", async () => {
  const bodies = answering([delta("A cat."), finish(), done]);
  const images = ["data:image/png;base64,AAAA", "data:image/png;base64,BBBB"];
  await store().send({ text: "What is this?", images }, { ...asked, seesPictures: true });
  await ended();
  expect(bodies[0]?.messages).toEqual([
    {
      role: "user",
      content: [
        { type: "image_url", image_url: { url: images[0] } },
        { type: "image_url", image_url: { url: images[1] } },
        { type: "text", text: "What is this?" },
      ],
    },
  ]);
  expect(branch()[0]).toMatchObject({ images });
});

test("a second message isn't sent while a reply is streaming in the conversation", async () => {
  const stream = openReply();
  await store().send(words("first"), asked);
  await stream.begun;
  await store().send(words("second"), asked);
  expect(branch()).toHaveLength(2);
  stream.say(delta("done"), finish(), done);
  await ended();
});

test("a reply streams on while another conversation is shown", async () => {
  const stream = openReply();
  await store().send(words("first"), asked);
  const first = store().currentId ?? "";
  await stream.begun;
  store().newConversation();
  expect(branch()).toEqual([]);
  stream.say(delta("in the background"), finish(), done);
  await ended();
  store().show(first);
  expect(texts()).toEqual(["first", "in the background"]);
});

test("deleting a conversation ends its reply, and the server forgets the run", async () => {
  const stream = openReply();
  await store().send(words("first"), asked);
  await vi.waitFor(() => expect(stream.run()?.asked).toEqual([null]));
  store().deleteConversation(store().currentId ?? "");
  await ended();
  expect(store().conversations).toEqual({});
  await vi.waitFor(() => expect([...stream.runs.keys()]).toEqual([]));
  expect(stream.run()?.isCancelled).toBe(true);
});

test("deleting a message deletes the runs of all that followed it", async () => {
  const { runs } = serveRuns((run) => run.say(delta("one"), finish(), done));
  await store().send(words("hi"), asked);
  await ended();
  await store().send(words("and?"), asked);
  await ended();
  store().deleteMessage(branch()[2]?.id ?? "");
  await vi.waitFor(() => expect([...runs.keys()]).toEqual(runIds()));
  expect(runs.size).toBe(1);
});

test("a browser without storage is said, and the chat goes on", async () => {
  answering([delta("still here"), finish(), done]);
  await store().send(words("hi"), asked);
  await ended();
  expect(store().storage).toEqual({
    state: "unkept",
    reason: "the browser's storage isn't available",
  });
  expect(texts()).toEqual(["hi", "still here"]);
});

test("a deleted message comes back as it was", async () => {
  answering([delta("one"), finish(), done]);
  await store().send(words("hi"), asked);
  await ended();
  const before = store().conversations[store().currentId ?? ""];
  store().deleteMessage(branch()[0]?.id ?? "");
  expect(branch()).toEqual([]);
  if (!before) throw new Error("the conversation is missing");
  store().restore(before);
  expect(texts()).toEqual(["hi", "one"]);
});

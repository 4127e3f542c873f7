import { beforeEach, expect, test, vi } from "vitest";
import { type Asked, useChatStore } from "./chat-store";
import { samplingRequest, untouched } from "./sampling";
import { answering, delta, done, finish, openReply } from "./testing";
import { activeBranch, type Message } from "./tree";

const asked: Asked = { model: "a/model", settings: untouched, supportsReasoning: false };
const store = () => useChatStore.getState();

const branch = (): Message[] => {
  const conversation = store().conversations[store().currentId ?? ""];
  return conversation ? activeBranch(conversation) : [];
};
const texts = () => branch().map(({ content }) => content);
const last = () => branch().at(-1) as Message;
const ended = () => vi.waitFor(() => expect(store().running).toEqual({}));

beforeEach(() =>
  useChatStore.setState({ conversations: {}, currentId: null, running: {}, announcement: "" }),
);

test("a prompt is answered by the model that was asked", async () => {
  const bodies = answering([delta("Paris."), finish(), done]);
  await store().send("The capital of France?", asked);
  await ended();
  expect(texts()).toEqual(["The capital of France?", "Paris."]);
  expect(bodies[0]).toMatchObject({
    model: "a/model",
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: "user", content: "The capital of France?" }],
  });
});

test("only what the person changed of the sampling is sent", async () => {
  const bodies = answering([delta("ok"), finish(), done]);
  const settings = { systemPrompt: "Be brief.", sampling: { temperature: 0, stop: ["END"] } };
  await store().send("hi", { ...asked, settings });
  await ended();
  expect(bodies[0]).toEqual({
    model: "a/model",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "hi" },
    ],
    ...samplingRequest(settings),
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("a reply stopped before its first token is followed by a new message", async () => {
  const stream = openReply();
  await store().send("first", asked);
  await stream.begun;
  store().stop(store().currentId ?? "");
  await ended();
  expect(last()).toMatchObject({ content: "", outcome: { state: "stopped" } });

  const bodies = answering([delta("both"), finish(), done]);
  await store().send("second", asked);
  await ended();
  expect(bodies[0]?.messages).toEqual([{ role: "user", content: "first\n\nsecond" }]);
  expect(texts()).toEqual(["first", "", "second", "both"]);
});

test("regenerating keeps the first reply beside the new one", async () => {
  answering([delta("one"), finish(), done], [delta("two"), finish(), done]);
  await store().send("a number", asked);
  await ended();
  const first = last().id;
  await store().regenerate(first, asked);
  await ended();
  expect(texts()).toEqual(["a number", "two"]);
  store().switchTo(first);
  expect(texts()).toEqual(["a number", "one"]);
});

test("a reply that failed without a word is asked for again in its own place", async () => {
  answering(
    [`data: ${JSON.stringify({ error: { message: "No.", code: "engine_crashed" } })}\n\n`],
    [delta("yes"), finish(), done],
  );
  await store().send("hi", asked);
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
  await store().send("first wording", asked);
  await ended();
  const first = branch()[0]?.id ?? "";
  await store().editAndResend(first, "second wording", asked);
  await ended();
  expect(texts()).toEqual(["second wording", "two"]);
  expect(bodies[1]?.messages).toEqual([{ role: "user", content: "second wording" }]);
  store().switchTo(first);
  expect(texts()).toEqual(["first wording", "one"]);
});

test("a reply that was cut goes on where it ended", async () => {
  const bodies = answering(
    [delta("Once"), finish("length"), done],
    [delta(" upon"), finish(), done],
  );
  await store().send("a story", asked);
  await ended();
  await store().continueReply(last().id, asked);
  await ended();
  expect(bodies[1]?.messages).toEqual([
    { role: "user", content: "a story" },
    { role: "assistant", content: "Once" },
  ]);
  expect(texts()).toEqual(["a story", "Once upon"]);
});

test("a model that thinks goes on with its answer instead of thinking anew", async () => {
  const bodies = answering([delta("Once"), finish("length"), done], [delta("."), finish(), done]);
  const thinker = { ...asked, supportsReasoning: true };
  await store().send("a story", thinker);
  await ended();
  await store().continueReply(last().id, thinker);
  await ended();
  expect(bodies[0]).not.toHaveProperty("enable_thinking");
  expect(bodies[1]).toMatchObject({
    enable_thinking: false,
    continue_final_message: true,
    add_generation_prompt: false,
  });
});

test("a second message isn't sent while a reply is streaming in the conversation", async () => {
  const stream = openReply();
  await store().send("first", asked);
  await stream.begun;
  await store().send("second", asked);
  expect(branch()).toHaveLength(2);
  stream.say(delta("done"), finish(), done);
  stream.end();
  await ended();
});

test("a reply streams on while another conversation is shown", async () => {
  const stream = openReply();
  await store().send("first", asked);
  const first = store().currentId ?? "";
  await stream.begun;
  store().newConversation();
  expect(branch()).toEqual([]);
  stream.say(delta("in the background"), finish(), done);
  stream.end();
  await ended();
  store().show(first);
  expect(texts()).toEqual(["first", "in the background"]);
});

test("deleting a conversation ends its reply", async () => {
  const stream = openReply();
  await store().send("first", asked);
  await stream.begun;
  store().deleteConversation(store().currentId ?? "");
  await ended();
  expect(store().conversations).toEqual({});
});

test("a browser without storage is said, and the chat goes on", async () => {
  answering([delta("still here"), finish(), done]);
  await store().send("hi", asked);
  await ended();
  expect(store().storage).toEqual({
    state: "unkept",
    reason: "the browser's storage isn't available",
  });
  expect(texts()).toEqual(["hi", "still here"]);
});

test("a deleted message comes back as it was", async () => {
  answering([delta("one"), finish(), done]);
  await store().send("hi", asked);
  await ended();
  const before = store().conversations[store().currentId ?? ""];
  store().deleteMessage(branch()[0]?.id ?? "");
  expect(branch()).toEqual([]);
  if (!before) throw new Error("the conversation is missing");
  store().restore(before);
  expect(texts()).toEqual(["hi", "one"]);
});

import { expect, test } from "vitest";
import {
  activeBranch,
  type Conversation,
  emptyConversation,
  emptyReply,
  type Message,
  matches,
  recovered,
  requestMessages,
  siblingIds,
  switchedTo,
  titleFrom,
  withMessage,
  withoutMessage,
} from "./tree";

const prompt = (id: string, parentId: string | null, content = id): Message => ({
  id,
  parentId,
  role: "user",
  content,
  createdAt: 1,
});

const reply = (id: string, parentId: string, content = id): Message => ({
  ...emptyReply(id, parentId, "a/model", 1),
  content,
  outcome: { state: "finished", reason: "stop" },
});

function conversationOf(...messages: Message[]): Conversation {
  return messages.reduce(withMessage, emptyConversation("c", 0));
}

const shown = (conversation: Conversation) => activeBranch(conversation).map(({ id }) => id);

const twoTurns = conversationOf(
  prompt("p1", null),
  reply("r1", "p1"),
  prompt("p2", "r1"),
  reply("r2", "p2"),
);

test("the branch shown runs from the first message to the newest", () => {
  expect(shown(twoTurns)).toEqual(["p1", "r1", "p2", "r2"]);
});

test("another reply to the same prompt is shown in the place of the first, which is kept", () => {
  const regenerated = withMessage(twoTurns, reply("r2b", "p2"));
  expect(shown(regenerated)).toEqual(["p1", "r1", "p2", "r2b"]);
  expect(siblingIds(regenerated).get("p2")).toEqual(["r2", "r2b"]);
});

test("an edited first prompt starts a branch beside all that followed the old one", () => {
  const edited = withMessage(twoTurns, prompt("p1b", null));
  expect(shown(edited)).toEqual(["p1b"]);
  expect(siblingIds(edited).get(null)).toEqual(["p1", "p1b"]);
});

test("switching back shows the old branch down to its newest end", () => {
  const edited = withMessage(twoTurns, prompt("p1b", null));
  expect(shown(switchedTo(edited, "p1"))).toEqual(["p1", "r1", "p2", "r2"]);
});

test("replacing a message leaves the branch that is shown", () => {
  const edited = withMessage(twoTurns, prompt("p1b", null));
  expect(shown(withMessage(edited, reply("r2", "p2", "more")))).toEqual(["p1b"]);
});

test("deleting a message deletes what follows it and shows what stands before", () => {
  const rest = withoutMessage(twoTurns, "p2");
  expect(shown(rest)).toEqual(["p1", "r1"]);
  expect(Object.keys(rest.messages)).toEqual(["p1", "r1"]);
});

test("deleting one of two replies shows the other", () => {
  const regenerated = withMessage(twoTurns, reply("r2b", "p2"));
  expect(shown(withoutMessage(regenerated, "r2b"))).toEqual(["p1", "r1", "p2", "r2"]);
});

test("deleting in a branch that isn't shown leaves the shown one", () => {
  const edited = withMessage(twoTurns, prompt("p1b", null));
  expect(shown(withoutMessage(edited, "p2"))).toEqual(["p1b"]);
});

test("deleting the only prompt empties the conversation", () => {
  expect(shown(withoutMessage(twoTurns, "p1"))).toEqual([]);
});

test("the engine is sent the system prompt first, then the branch", () => {
  expect(requestMessages(activeBranch(twoTurns), "Be brief.")).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "p1" },
    { role: "assistant", content: "r1" },
    { role: "user", content: "p2" },
    { role: "assistant", content: "r2" },
  ]);
});

test("a blank system prompt isn't sent", () => {
  expect(requestMessages(activeBranch(twoTurns), "  \n")[0]?.role).toBe("user");
});

test("a reply without text isn't sent, and the prompts around it become one turn", () => {
  const stopped = conversationOf(prompt("p1", null), reply("r1", "p1", ""), prompt("p2", "r1"));
  expect(requestMessages(activeBranch(stopped), "")).toEqual([
    { role: "user", content: "p1\n\np2" },
  ]);
});

test.each([
  ["# Rainbows\nWhy?", "Rainbows"],
  ["\n\n  - first point", "first point"],
  ["```python\nprint(1)", "python"],
  ["word ".repeat(30), `${"word ".repeat(11)}word…`],
  ["🌈".repeat(70), `${"🌈".repeat(60)}…`],
  ["###", "###"],
])("the title of %j is %j", (text, title) => {
  expect(titleFrom(text)).toBe(title);
});

test("the title comes from the first prompt and isn't changed by the next", () => {
  expect(twoTurns.title).toBe("p1");
});

test("a reply that was streaming when the page closed is interrupted, with its text", () => {
  const streaming = withMessage(conversationOf(prompt("p1", null)), {
    ...emptyReply("r1", "p1", "a/model", 1),
    content: "half",
  });
  expect(recovered(streaming).messages.r1).toMatchObject({
    content: "half",
    outcome: { state: "interrupted" },
  });
});

test("a search looks into titles and all branches, whatever the case", () => {
  expect(matches(twoTurns, "R2")).toBe(true);
  expect(matches({ ...twoTurns, title: "Über Bären" }, "bären")).toBe(true);
  expect(matches(twoTurns, "zebra")).toBe(false);
});

test("sounds go after the pictures and before the words, by the names that formats have", () => {
  const asked: Message = {
    id: "p",
    parentId: null,
    role: "user",
    content: "What is it?",
    images: ["data:image/png;base64,AA=="],
    sounds: ["data:audio/mpeg;base64,AB==", "data:audio/x-wav;base64,AC=="],
    createdAt: 0,
  };
  expect(requestMessages([asked], "")).toEqual([
    {
      role: "user",
      content: [
        { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
        { type: "input_audio", input_audio: { data: "AB==", format: "mp3" } },
        { type: "input_audio", input_audio: { data: "AC==", format: "wav" } },
        { type: "text", text: "What is it?" },
      ],
    },
  ]);
});

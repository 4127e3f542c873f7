import { screen, within } from "@testing-library/react";
import { beforeEach, expect, test } from "vitest";
import { renderInApp } from "@/test/render";
import { useChatStore } from "./chat-store";
import { ConversationList } from "./conversation-list";
import { fileName, toJson, toMarkdown } from "./export";
import { type Conversation, emptyConversation, emptyReply, withMessage } from "./tree";

function aConversation(id: string, question: string, answer: string): Conversation {
  const prompt = {
    id: `${id}-p`,
    parentId: null,
    role: "user" as const,
    content: question,
    createdAt: 1,
  };
  const reply = { ...emptyReply(`${id}-r`, prompt.id, "a/model", 2), content: answer };
  return withMessage(withMessage(emptyConversation(id, 0), prompt), reply);
}

const bread = aConversation("a", "How is bread baked?", "With flour and patience.");
const stars = aConversation("b", "Why do stars twinkle?", "The air moves.");

beforeEach(() =>
  useChatStore.setState(
    { ...useChatStore.getInitialState(), conversations: { a: bread, b: stars }, currentId: "a" },
    true,
  ),
);

const rows = () =>
  within(screen.getByRole("navigation", { name: "Conversations" }))
    .getAllByRole("button")
    .map((button) => button.textContent)
    .filter(Boolean);

test("a search finds conversations by what was said in them", async () => {
  const { user } = renderInApp(<ConversationList />);
  await user.type(
    await screen.findByRole("searchbox", { name: "Search conversations" }),
    "patience",
  );
  expect(rows()).toEqual(["How is bread baked?"]);
});

test("a conversation is renamed", async () => {
  const { user } = renderInApp(<ConversationList />);
  await user.click(await screen.findByRole("button", { name: "Options of Why do stars twinkle?" }));
  await user.click(await screen.findByRole("menuitem", { name: "Rename" }));
  expect(await screen.findByRole("textbox", { name: "Title" })).toHaveFocus();
  await user.keyboard("Stars{Enter}");
  expect(rows()).toContain("Stars");
});

test("a conversation is deleted", async () => {
  const { user } = renderInApp(<ConversationList />);
  await user.click(await screen.findByRole("button", { name: "Options of How is bread baked?" }));
  await user.click(await screen.findByRole("menuitem", { name: "Delete" }));
  expect(rows()).toEqual(["Why do stars twinkle?"]);
  expect(useChatStore.getState().currentId).toBeNull();
});

test("choosing one shows it, and New chat leaves it", async () => {
  const { user } = renderInApp(<ConversationList />);
  await user.click(await screen.findByRole("button", { name: "Why do stars twinkle?" }));
  expect(useChatStore.getState().currentId).toBe("b");
  await user.click(screen.getByRole("button", { name: "New chat" }));
  expect(useChatStore.getState().currentId).toBeNull();
});

test("an export reads as a document, or holds the whole tree", () => {
  expect(toMarkdown(bread)).toBe(
    "# How is bread baked?\n\n## You\n\nHow is bread baked?\n\n## a/model\n\nWith flour and patience.\n",
  );
  expect(JSON.parse(toJson(bread)).messages).toHaveLength(2);
  expect(fileName(bread, "md")).toBe("how-is-bread-baked.md");
});

/**
 * A conversation is a tree: each message names its parent, and `leafId` ends the branch that is
 * shown. Editing a prompt or asking for another answer adds a sibling and loses nothing.
 */

export type Fault = {
  message: string;
  code: string;
  evidence: string | null;
  nextStep: string | null;
};

/** How a reply ended, or that it hasn't. */
export type Outcome =
  | { state: "streaming" }
  | { state: "finished"; reason: string }
  | { state: "stopped" }
  | { state: "interrupted" }
  | { state: "failed"; fault: Fault };

export type ReplyStats = {
  tokens: number;
  /** False where the engine gave no count and each delta was taken for one token. */
  isCounted: boolean;
  tokensPerSecond: number | null;
  firstTokenSeconds: number | null;
};

export type Prompt = {
  id: string;
  parentId: string | null;
  role: "user";
  content: string;
  createdAt: number;
};

export type Reply = {
  id: string;
  parentId: string | null;
  role: "assistant";
  content: string;
  reasoning: string;
  reasoningSeconds: number | null;
  model: string;
  outcome: Outcome;
  stats: ReplyStats | null;
  createdAt: number;
};

export type Message = Prompt | Reply;

export type Conversation = {
  id: string;
  title: string;
  messages: Record<string, Message>;
  leafId: string | null;
  createdAt: number;
  updatedAt: number;
};

export function emptyConversation(id: string, now: number): Conversation {
  return { id, title: "", messages: {}, leafId: null, createdAt: now, updatedAt: now };
}

export function emptyReply(id: string, promptId: string | null, model: string, now: number): Reply {
  return {
    id,
    parentId: promptId,
    role: "assistant",
    content: "",
    reasoning: "",
    reasoningSeconds: null,
    model,
    outcome: { state: "streaming" },
    stats: null,
    createdAt: now,
  };
}

/** The messages from the first one down to `leafId`. */
export function branchTo(conversation: Conversation, leafId: string | null): Message[] {
  const branch: Message[] = [];
  let message = leafId === null ? undefined : conversation.messages[leafId];
  while (message) {
    branch.push(message);
    message = message.parentId === null ? undefined : conversation.messages[message.parentId];
  }
  return branch.reverse();
}

export function activeBranch(conversation: Conversation): Message[] {
  return branchTo(conversation, conversation.leafId);
}

/** For each message the ids of its siblings, itself among them, oldest first. */
export function siblingIds(conversation: Conversation): Map<string | null, string[]> {
  const byParent = new Map<string | null, string[]>();
  for (const message of Object.values(conversation.messages)) {
    const siblings = byParent.get(message.parentId);
    if (siblings) siblings.push(message.id);
    else byParent.set(message.parentId, [message.id]);
  }
  return byParent;
}

/** Adds a message or replaces the one of the same id; a new one becomes the branch's end. */
export function withMessage(conversation: Conversation, message: Message): Conversation {
  const isNew = !(message.id in conversation.messages);
  return {
    ...conversation,
    title: conversation.title || (message.role === "user" ? titleFrom(message.content) : ""),
    messages: { ...conversation.messages, [message.id]: message },
    leafId: isNew ? message.id : conversation.leafId,
    updatedAt: Math.max(conversation.updatedAt, message.createdAt),
  };
}

/** Shows the branch through `id`, down to its newest end. */
export function switchedTo(conversation: Conversation, id: string): Conversation {
  const children = siblingIds(conversation);
  let leafId = id;
  for (let next = children.get(id); next; next = children.get(leafId)) {
    leafId = next[next.length - 1] ?? leafId;
  }
  return { ...conversation, leafId };
}

/** Without the message and all that follows it; a sibling's branch is shown then, or its parent. */
export function withoutMessage(conversation: Conversation, id: string): Conversation {
  const target = conversation.messages[id];
  if (!target) return conversation;
  const children = siblingIds(conversation);
  const doomed = new Set([id]);
  for (const each of doomed) for (const child of children.get(each) ?? []) doomed.add(child);
  const kept = Object.entries(conversation.messages).filter(([key]) => !doomed.has(key));
  const remaining = { ...conversation, messages: Object.fromEntries(kept) };
  if (conversation.leafId !== null && !doomed.has(conversation.leafId)) return remaining;
  const sibling = (children.get(target.parentId) ?? []).filter((each) => each !== id).at(-1);
  return sibling ? switchedTo(remaining, sibling) : { ...remaining, leafId: target.parentId };
}

export type RequestMessage = { role: "system" | "user" | "assistant"; content: string };

/**
 * What the engine is sent of a branch. A reply without text is left out, and prompts that then
 * stand in a row become one: many chat templates refuse two turns of the same role.
 */
export function requestMessages(branch: Message[], systemPrompt: string): RequestMessage[] {
  const messages: RequestMessage[] = [];
  if (systemPrompt.trim()) messages.push({ role: "system", content: systemPrompt });
  for (const { role, content } of branch) {
    if (role === "assistant" && !content) continue;
    const last = messages.at(-1);
    if (last?.role === role) last.content += `\n\n${content}`;
    else messages.push({ role, content });
  }
  return messages;
}

const TITLE_LENGTH = 60;

/** The first line with words in it, cut at a word's end. */
export function titleFrom(text: string): string {
  const lines = text.split("\n").map((line) => line.replace(/^[\s#>*`-]+/, "").trim());
  const line = lines.find(Boolean) ?? text.trim();
  const characters = Array.from(line);
  if (characters.length <= TITLE_LENGTH) return line;
  const cut = characters.slice(0, TITLE_LENGTH).join("");
  const space = cut.lastIndexOf(" ");
  return `${space > TITLE_LENGTH / 2 ? cut.slice(0, space) : cut}…`;
}

/** Replies that were streaming when the page was closed: what had arrived is kept. */
export function recovered(conversation: Conversation): Conversation {
  const messages = Object.fromEntries(
    Object.entries(conversation.messages).map(([id, message]) => [
      id,
      message.role === "assistant" && message.outcome.state === "streaming"
        ? { ...message, outcome: { state: "interrupted" as const } }
        : message,
    ]),
  );
  return { ...conversation, messages };
}

export function matches(conversation: Conversation, query: string): boolean {
  const needle = query.trim().toLocaleLowerCase();
  if (!needle || conversation.title.toLocaleLowerCase().includes(needle)) return true;
  return Object.values(conversation.messages).some((message) =>
    message.content.toLocaleLowerCase().includes(needle),
  );
}

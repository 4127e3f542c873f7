import type { ChatMessage, ContentPart } from "@/api/runs";
import type { ModelSettings } from "./sampling";

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
  /** Data URLs, in the order in which the model sees them. */
  images?: string[];
  /** Data URLs, too: what the model hears after what it sees. */
  sounds?: string[];
  createdAt: number;
};

/** The server's run that writes a reply, and how much of it is in the reply. */
export type RunPlace = {
  id: string;
  /** The server hasn't said yet that it has it: after a reload it is asked for once more. */
  isPending?: true;
  /** Of whom and how it was asked. */
  asked: { model: string; settings: ModelSettings };
  /** The number of the last event whose words are in the reply; 0 before the first. */
  lastEvent: number;
  /** What the reply held before the run's first event: from there it can be read again. */
  start: { content: number; reasoning: number; stats: ReplyStats | null };
  /** The figures of all that was asked for before what is under way. */
  before: ReplyStats | null;
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
  /** Missing where there never was one, and once the server has forgotten it. */
  run?: RunPlace;
  /** The other reply to the same prompt, beside which this one is shown. */
  besideId?: string;
  createdAt: number;
};

/** A reply that a run writes. */
export type RunningReply = Reply & { run: RunPlace };

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
    title: conversation.title || (message.role === "user" ? titleOf(message) : ""),
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

/**
 * What the engine is sent of a branch. A reply without text is left out, and prompts that then
 * stand in a row become one: many chat templates refuse two turns of the same role.
 */
export function requestMessages(branch: Message[], systemPrompt: string): ChatMessage[] {
  const messages: ChatMessage[] = [];
  if (systemPrompt.trim()) messages.push({ role: "system", content: systemPrompt });
  for (const message of branch) {
    if (message.role === "assistant" && !message.content) continue;
    const content = contentOf(message);
    const last = messages.at(-1);
    if (last?.role === message.role) last.content = joined(last.content, content);
    else messages.push({ role: message.role, content });
  }
  return messages;
}

type Content = ChatMessage["content"];

/** A prompt's pictures and sounds stand before what is asked about them. */
function contentOf(message: Message): Content {
  const { images = [], sounds = [] } = message.role === "user" ? message : {};
  if (images.length === 0 && sounds.length === 0) return message.content;
  return [
    ...images.map((url): ContentPart => ({ type: "image_url", image_url: { url } })),
    ...sounds.map((url): ContentPart => ({ type: "input_audio", input_audio: soundIn(url) })),
    ...partsOf(message.content),
  ];
}

/** A data URL's base64, and the sound's format by the name that OpenAI has for it. */
function soundIn(url: string): { data: string; format: string } {
  const [head = "", data = ""] = url.split(",", 2);
  const type = /^data:\w+\/(?:x-)?([\w.+-]+)/.exec(head)?.[1] ?? "wav";
  return { data, format: type === "mpeg" ? "mp3" : type };
}

function joined(one: Content, other: Content): Content {
  if (typeof one === "string" && typeof other === "string") return `${one}\n\n${other}`;
  return [...partsOf(one), ...partsOf(other)];
}

function partsOf(content: Content): ContentPart[] {
  if (typeof content !== "string") return content;
  return content ? [{ type: "text", text: content }] : [];
}

/** Whether a prompt of the branch has some. */
export function has(what: "images" | "sounds", branch: Message[]): boolean {
  return branch.some((message) => message.role === "user" && Boolean(message[what]?.length));
}

/** The reply beside which this one is shown; undefined where it is shown alone. */
export function besides(conversation: Conversation, message: Message): Reply | undefined {
  if (message.role !== "assistant" || message.besideId === undefined) return undefined;
  const other = conversation.messages[message.besideId];
  return other?.role === "assistant" ? other : undefined;
}

/** Shows a reply alone again, and goes on with it. */
export function withChosen(conversation: Conversation, replyId: string): Conversation {
  const messages = Object.fromEntries(
    Object.entries(conversation.messages).map(([id, message]) => {
      if (message.role !== "assistant") return [id, message];
      const { besideId, ...alone } = message;
      return [id, id === replyId || besideId === replyId ? alone : message];
    }),
  );
  return switchedTo({ ...conversation, messages }, replyId);
}

const TITLE_LENGTH = 60;

function titleOf({ content, images, sounds }: Prompt): string {
  if (images?.length) return titleFrom(content) || "About a picture";
  return titleFrom(content) || (sounds?.length ? "About a sound" : "");
}

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

/** Replies that were asked for when the page was closed and that no run writes. */
export function recovered(conversation: Conversation): Conversation {
  const messages = Object.fromEntries(
    Object.entries(conversation.messages).map(([id, message]) => [
      id,
      message.role === "assistant" && message.outcome.state === "streaming" && !message.run
        ? { ...message, outcome: { state: "interrupted" as const } }
        : message,
    ]),
  );
  return { ...conversation, messages };
}

/** `reply` without a run that the server never said it has. */
export function withoutPending({ run, ...reply }: Reply): Reply {
  return run && !run.isPending ? { ...reply, run } : reply;
}

/** The reply that a run was writing when it was last looked at. */
export function unfinishedReply(conversation: Conversation): RunningReply | undefined {
  return Object.values(conversation.messages).find(
    (message): message is RunningReply =>
      message.role === "assistant" &&
      message.outcome.state === "streaming" &&
      message.run !== undefined,
  );
}

/** The runs of which `after` has nothing any more. */
export function runsLeftOut(before: Conversation, after: Conversation | null): string[] {
  const kept = new Set(runIds(after));
  return runIds(before).filter((id) => !kept.has(id));
}

function runIds(conversation: Conversation | null): string[] {
  return Object.values(conversation?.messages ?? {}).flatMap((message) =>
    message.role === "assistant" && message.run ? [message.run.id] : [],
  );
}

export function matches(conversation: Conversation, query: string): boolean {
  const needle = query.trim().toLocaleLowerCase();
  if (!needle || conversation.title.toLocaleLowerCase().includes(needle)) return true;
  return Object.values(conversation.messages).some((message) =>
    message.content.toLocaleLowerCase().includes(needle),
  );
}

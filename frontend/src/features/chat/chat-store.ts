import { create } from "zustand";
import { newId } from "./new-id";
import { browserStorage, openShelf, type Shelf, storageFault } from "./persistence";
import {
  type Arrived,
  announcementOf,
  type Progress,
  type ReplyRequest,
  streamReply,
} from "./reply";
import { type ModelSettings, samplingRequest } from "./sampling";
import type { Conversation, Reply } from "./tree";
import * as tree from "./tree";

/** Whom a reply is asked of, and how. */
export type Asked = { model: string; settings: ModelSettings; supportsReasoning: boolean };

export type Storage =
  | { state: "opening" }
  | { state: "kept" }
  | { state: "unkept"; reason: string };

type ChatState = {
  conversations: Record<string, Conversation>;
  /** The conversation shown; null is a new one that has no message yet. */
  currentId: string | null;
  /** The reply that is streaming in each conversation; it goes on when the page shows another. */
  running: Record<string, Progress>;
  storage: Storage;
  /** The last reply that ended, for those who listen to the page. */
  announcement: string;

  open: () => Promise<void>;
  newConversation: () => void;
  show: (id: string) => void;
  rename: (id: string, title: string) => void;
  deleteConversation: (id: string) => void;
  restore: (conversation: Conversation) => void;

  /** Resolves once the prompt is kept; the reply streams on by itself. */
  send: (text: string, asked: Asked) => Promise<void>;
  editAndResend: (promptId: string, text: string, asked: Asked) => Promise<void>;
  /** Another reply to the same prompt: of a reply its alternative, of a prompt its answer. */
  regenerate: (messageId: string, asked: Asked) => Promise<void>;
  continueReply: (replyId: string, asked: Asked) => Promise<void>;
  stop: (conversationId: string) => void;
  switchTo: (messageId: string) => void;
  deleteMessage: (messageId: string) => void;
};

const CURRENT = "eloquio.chat.current";
const CHECKPOINT_MILLISECONDS = 2000;

export const useChatStore = create<ChatState>((set, get) => {
  let opened: Promise<void> | null = null;
  let shelf: Shelf | null = null;
  const controllers = new Map<string, AbortController>();

  const place = (conversation: Conversation) =>
    set(({ conversations }) => ({
      conversations: { ...conversations, [conversation.id]: conversation },
    }));

  const current = (): Conversation | undefined => get().conversations[get().currentId ?? ""];

  const select = (id: string | null) => {
    set({ currentId: id });
    if (id) browserStorage.setItem(CURRENT, id);
    else browserStorage.removeItem(CURRENT);
  };

  const keepWith = async (act: (shelf: Shelf) => Promise<void>) => {
    await get().open();
    if (!shelf) return;
    try {
      await act(shelf);
      if (get().storage.state !== "kept") set({ storage: { state: "kept" } });
    } catch (thrown) {
      set({ storage: { state: "unkept", reason: storageFault(thrown) } });
    }
  };

  const keep = (conversation: Conversation) => {
    place(conversation);
    return keepWith((shelf) => shelf.put(conversation));
  };

  /** The conversation with what its running reply has brought until now. */
  const withProgress = (conversationId: string): Conversation | null => {
    const conversation = get().conversations[conversationId];
    const progress = get().running[conversationId];
    const reply = conversation?.messages[progress?.replyId ?? ""];
    if (!conversation || !progress || reply?.role !== "assistant") return null;
    const { content, reasoning, reasoningSeconds } = progress;
    return tree.withMessage(conversation, { ...reply, content, reasoning, reasoningSeconds });
  };

  const checkpoint = (conversationId: string) => {
    const conversation = withProgress(conversationId);
    if (conversation) void keep(conversation);
  };

  const reload = async (id: string) => {
    const conversation = await shelf?.get(id);
    if (get().running[id]) return;
    if (conversation) place(conversation);
    else forget(id);
  };

  const forget = (id: string) => {
    set(({ conversations: { [id]: _, ...conversations } }) => ({ conversations }));
    if (get().currentId === id) select(null);
  };

  /** Fills a reply that stands in the tree; what asks for it is kept before it is sent. */
  const run = (conversation: Conversation, reply: Reply, request: ReplyRequest) => {
    const { id } = conversation;
    const controller = new AbortController();
    controllers.set(id, controller);
    const show = ({ content, reasoning, reasoningSeconds }: Arrived) =>
      set(({ running }) => ({
        running: { ...running, [id]: { replyId: reply.id, content, reasoning, reasoningSeconds } },
      }));
    show(reply);
    const kept = keep(conversation);
    void kept
      .then(() => streamWithCheckpoints(id, reply, request, controller.signal, show))
      .then((ended) => finish(id, ended));
    return kept;
  };

  const streamWithCheckpoints = async (id: string, ...ask: Parameters<typeof streamReply>) => {
    const checkpoints = setInterval(() => checkpoint(id), CHECKPOINT_MILLISECONDS);
    const ended = await streamReply(...ask);
    clearInterval(checkpoints);
    return ended;
  };

  const finish = async (id: string, ended: Reply) => {
    controllers.delete(id);
    const conversation = get().conversations[id];
    set(({ running: { [id]: _, ...running } }) => ({ running }));
    if (!conversation) return;
    set({ announcement: announcementOf(ended) });
    await keep(tree.withMessage(conversation, ended));
  };

  /** Puts an empty reply under a prompt (or empties `again`) and lets the model fill it. */
  const answer = (
    conversation: Conversation,
    promptId: string | null,
    asked: Asked,
    again?: Reply,
  ) => {
    const reply = tree.emptyReply(again?.id ?? newId(), promptId, asked.model, Date.now());
    const branch = tree.branchTo(conversation, promptId);
    return run(tree.withMessage(conversation, reply), reply, requestFor(branch, asked));
  };

  const ask = (
    conversation: Conversation,
    content: string,
    parentId: string | null,
    asked: Asked,
  ) => {
    const prompt = { id: newId(), parentId, role: "user" as const, content, createdAt: Date.now() };
    select(conversation.id);
    return answer(tree.withMessage(conversation, prompt), prompt.id, asked);
  };

  const isIdle = (conversation: Conversation | undefined): conversation is Conversation =>
    conversation !== undefined && !controllers.has(conversation.id);

  return {
    conversations: {},
    currentId: null,
    running: {},
    storage: { state: "opening" },
    announcement: "",

    open() {
      opened ??= openShelf()
        .then(async (opening) => {
          shelf = opening;
          const kept = (await opening.all()).map(tree.recovered);
          const conversations = Object.fromEntries(kept.map((each) => [each.id, each]));
          set((state) => ({
            conversations: { ...conversations, ...state.conversations },
            storage: { state: "kept" },
          }));
          const last = String(browserStorage.getItem(CURRENT) ?? "");
          if (get().currentId === null && last in conversations) set({ currentId: last });
          opening.onChange((id) => void reload(id));
          addEventListener("pagehide", () => Object.keys(get().running).forEach(checkpoint));
        })
        .catch((thrown: unknown) => {
          shelf = null;
          set({ storage: { state: "unkept", reason: storageFault(thrown) } });
        });
      return opened;
    },

    newConversation: () => select(null),
    show: select,
    rename(id, title) {
      const conversation = get().conversations[id];
      if (conversation && title.trim()) void keep({ ...conversation, title: title.trim() });
    },
    deleteConversation(id) {
      controllers.get(id)?.abort();
      forget(id);
      void keepWith((shelf) => shelf.remove(id));
    },
    restore(conversation) {
      select(conversation.id);
      void keep(tree.recovered(conversation));
    },

    async send(text, asked) {
      const conversation = current() ?? tree.emptyConversation(newId(), Date.now());
      if (isIdle(conversation)) await ask(conversation, text, conversation.leafId, asked);
    },
    async editAndResend(promptId, text, asked) {
      const conversation = current();
      const prompt = conversation?.messages[promptId];
      if (prompt && isIdle(conversation)) await ask(conversation, text, prompt.parentId, asked);
    },
    async regenerate(messageId, asked) {
      const conversation = current();
      const message = conversation?.messages[messageId];
      if (!message || !isIdle(conversation)) return;
      if (message.role === "user") return answer(conversation, message.id, asked);
      // A reply without a word isn't worth an alternative of its own.
      const again = message.content || message.reasoning ? undefined : message;
      await answer(conversation, message.parentId, asked, again);
    },
    async continueReply(replyId, asked) {
      const conversation = current();
      const reply = conversation?.messages[replyId];
      if (reply?.role !== "assistant" || !isIdle(conversation)) return;
      const continued: Reply = { ...reply, outcome: { state: "streaming" } };
      const request = requestFor(tree.branchTo(conversation, replyId), asked);
      // The model is put back into the middle of its answer: there is no room to think first.
      if (asked.supportsReasoning) request.enable_thinking = false;
      // Without these the engine begins by repeating all that stands there already.
      request.continue_final_message = true;
      request.add_generation_prompt = false;
      await run(tree.withMessage(conversation, continued), continued, request);
    },
    stop: (conversationId) => controllers.get(conversationId)?.abort(),
    switchTo(messageId) {
      const conversation = current();
      if (isIdle(conversation)) void keep(tree.switchedTo(conversation, messageId));
    },
    deleteMessage(messageId) {
      const conversation = current();
      if (isIdle(conversation)) void keep(tree.withoutMessage(conversation, messageId));
    },
  };
});

function requestFor(branch: tree.Message[], { model, settings }: Asked): ReplyRequest {
  return {
    model,
    messages: tree.requestMessages(branch, settings.systemPrompt),
    ...samplingRequest(settings),
  };
}

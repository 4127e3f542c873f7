import { create } from "zustand";
import { deleteRun } from "@/api/runs";
import { type Asked, asBefore, asContinuation, asNewRun, newPlace, type Ways } from "./asking";
import { newId } from "./new-id";
import { attachedDrafts, browserStorage, openShelf, type Shelf, storageFault } from "./persistence";
import { announcementOf, type Following, followReply, writeReply } from "./reply";
import type { Conversation, Reply, RunningReply } from "./tree";
import * as tree from "./tree";

/** What a person writes: words, and pictures and sounds as data URLs. */
export type Written = { text: string; images: string[]; sounds?: string[] };

export type Storage =
  | { state: "opening" }
  | { state: "kept" }
  | { state: "unkept"; reason: string };

type ChatState = {
  conversations: Record<string, Conversation>;
  /** The conversation shown; null is a new one that has no message yet. */
  currentId: string | null;
  /**
   * The reply that is being written in each conversation, as far as it has come; shown instead of what
   * the tree holds of it. It goes on when the page shows another conversation, or is closed.
   */
  running: Record<string, Reply>;
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
  send: (message: Written, asked: Asked) => Promise<void>;
  editAndResend: (promptId: string, message: Written, asked: Asked) => Promise<void>;
  /** Another reply to the same prompt: of a reply its alternative, of a prompt its answer. */
  regenerate: (messageId: string, asked: Asked) => Promise<void>;
  /** Asks the same again in another way, and shows both replies beside each other. */
  compare: (replyId: string, asked: Asked) => Promise<void>;
  /** Of two that are shown beside each other, the one to go on with; the other is kept. */
  choose: (replyId: string) => void;
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

  /** Keeps what the running reply of a conversation has brought until now. */
  const checkpoint = (conversationId: string) => {
    const conversation = get().conversations[conversationId];
    const reply = get().running[conversationId];
    if (conversation && reply && reply.id in conversation.messages)
      void keep(tree.withMessage(conversation, reply));
  };

  /** Takes over what another tab has kept. */
  const reload = async (id: string) => {
    const before = get().conversations[id];
    const conversation = await shelf?.get(id);
    // What was changed here meanwhile is kept next, and stands.
    if (get().conversations[id] !== before) return;
    if (conversation) place(conversation);
    else forget(id);
    const reply = get().running[id];
    if (reply && !(reply.id in (conversation?.messages ?? {}))) controllers.get(id)?.abort();
    if (get().currentId === id) attach(id, true);
  };

  const forget = (id: string) => {
    set(({ conversations: { [id]: _, ...conversations } }) => ({ conversations }));
    if (get().currentId === id) select(null);
  };

  const following = (id: string): Following => {
    const controller = new AbortController();
    controllers.set(id, controller);
    const show = (reply: Reply) => set(({ running }) => ({ running: { ...running, [id]: reply } }));
    return { signal: controller.signal, show };
  };

  /** Fills a reply that stands in the tree; what asks for it is kept before it is sent. */
  const run = (conversation: Conversation, reply: Reply, ways: Ways) => {
    const kept = keep(conversation);
    void write(conversation.id, reply, ways, kept);
    return kept;
  };

  const write = async (id: string, reply: Reply, ways: Ways, kept?: Promise<void>) => {
    const follow = following(id);
    follow.show(reply);
    await kept;
    let checkpoints: ReturnType<typeof setInterval> | undefined;
    const keepBegun = async (begun: RunningReply) => {
      const conversation = get().conversations[id];
      if (conversation) await keep(tree.withMessage(conversation, begun));
      // Only where it was asked for: two tabs that keep it would overwrite each other's.
      checkpoints = setInterval(() => checkpoint(id), CHECKPOINT_MILLISECONDS);
    };
    const ended = await writeReply(reply, { ...ways, keep: keepBegun }, follow);
    clearInterval(checkpoints);
    await finish(id, ended);
  };

  /**
   * Follows the reply that a run of this conversation may be writing, or has written meanwhile. One
   * that was still being asked for is asked for again, unless another tab is about it.
   */
  const attach = (id: string, isKeptByAnotherTab = false) => {
    const conversation = get().conversations[id];
    const reply = conversation && !controllers.has(id) && tree.unfinishedReply(conversation);
    if (!reply) return;
    if (reply.run.isPending) {
      if (!isKeptByAnotherTab) void write(id, reply, asBefore(reply, conversation));
      return;
    }
    const follow = following(id);
    follow.show(reply);
    void followReply(reply, follow).then((ended) => finish(id, ended));
  };

  const finish = async (id: string, ended: Reply) => {
    controllers.delete(id);
    const conversation = get().conversations[id];
    set(({ running: { [id]: _, ...running } }) => ({ running }));
    if (!conversation || !(ended.id in conversation.messages)) return;
    set({ announcement: announcementOf(ended) });
    await keep(tree.withMessage(conversation, ended));
  };

  const deleteRuns = (before: Conversation, after: Conversation | null) => {
    for (const id of tree.runsLeftOut(before, after)) void deleteRun(id);
  };

  /** Puts an empty reply under a prompt (or empties `again`) and lets the model fill it. */
  const answer = (
    conversation: Conversation,
    promptId: string | null,
    asked: Asked,
    { again, besideId }: { again?: Reply; besideId?: string } = {},
  ) => {
    const empty = tree.emptyReply(again?.id ?? newId(), promptId, asked.model, Date.now());
    const beside = besideId === undefined ? {} : { besideId };
    const reply = { ...empty, ...beside, run: newPlace(empty, asked) };
    const branch = tree.branchTo(conversation, promptId);
    const answered = tree.withMessage(conversation, reply);
    deleteRuns(conversation, answered);
    return run(answered, reply, asNewRun(reply, branch, asked));
  };

  const ask = (
    conversation: Conversation,
    { text, images, sounds = [] }: Written,
    parentId: string | null,
    asked: Asked,
  ) => {
    const prompt: tree.Prompt = {
      id: newId(),
      parentId,
      role: "user",
      content: text,
      ...(images.length ? { images } : {}),
      ...(sounds.length ? { sounds } : {}),
      createdAt: Date.now(),
    };
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
          attach(get().currentId ?? "");
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
    show(id) {
      select(id);
      attach(id);
    },
    rename(id, title) {
      const conversation = get().conversations[id];
      if (conversation && title.trim()) void keep({ ...conversation, title: title.trim() });
    },
    deleteConversation(id) {
      const conversation = get().conversations[id];
      const reply = get().running[id];
      controllers.get(id)?.abort();
      forget(id);
      void keepWith((shelf) => shelf.remove(id));
      attachedDrafts.write(id, []);
      // The run of a reply that was just asked for stands nowhere else.
      if (reply?.run) void deleteRun(reply.run.id);
      if (conversation) deleteRuns(conversation, null);
    },
    restore(conversation) {
      select(conversation.id);
      void keep(tree.recovered(conversation));
      attach(conversation.id);
    },

    async send(message, asked) {
      const conversation = current() ?? tree.emptyConversation(newId(), Date.now());
      if (isIdle(conversation)) await ask(conversation, message, conversation.leafId, asked);
    },
    async editAndResend(promptId, message, asked) {
      const conversation = current();
      const prompt = conversation?.messages[promptId];
      if (prompt && isIdle(conversation)) await ask(conversation, message, prompt.parentId, asked);
    },
    async regenerate(messageId, asked) {
      const conversation = current();
      const message = conversation?.messages[messageId];
      if (!message || !isIdle(conversation)) return;
      if (message.role === "user") return answer(conversation, message.id, asked);
      // A reply without a word isn't worth an alternative of its own.
      const isEmpty = !message.content && !message.reasoning;
      await answer(conversation, message.parentId, asked, isEmpty ? { again: message } : {});
    },
    async compare(replyId, asked) {
      const conversation = current();
      const reply = conversation?.messages[replyId];
      if (reply?.role !== "assistant" || !isIdle(conversation)) return;
      await answer(conversation, reply.parentId, asked, { besideId: replyId });
    },
    choose(replyId) {
      const conversation = current();
      if (isIdle(conversation)) void keep(tree.withChosen(conversation, replyId));
    },
    async continueReply(replyId, asked) {
      const conversation = current();
      const reply = conversation?.messages[replyId];
      if (reply?.role !== "assistant" || !isIdle(conversation)) return;
      const again: Reply = { ...reply, outcome: { state: "streaming" } };
      const branch = tree.branchTo(conversation, replyId);
      const ways = asContinuation(reply, branch, asked, (run) =>
        keep(tree.withMessage(conversation, { ...again, run })),
      );
      // In the tree it stays as it ended until its run goes on: another tab would follow it too soon.
      void write(conversation.id, again, ways);
    },
    stop: (conversationId) => controllers.get(conversationId)?.abort(),
    switchTo(messageId) {
      const conversation = current();
      if (isIdle(conversation)) void keep(tree.switchedTo(conversation, messageId));
    },
    deleteMessage(messageId) {
      const conversation = current();
      if (!isIdle(conversation)) return;
      const remaining = tree.withoutMessage(conversation, messageId);
      deleteRuns(conversation, remaining);
      void keep(remaining);
    },
  };
});

import { createStore, del, get, set } from "idb-keyval";
import type { StateStorage } from "zustand/middleware";
import type { Conversation } from "./tree";

/** Where conversations are kept; each call rejects with words for the person. */
export type Shelf = {
  all: () => Promise<Conversation[]>;
  put: (conversation: Conversation) => Promise<void>;
  remove: (id: string) => Promise<void>;
  get: (id: string) => Promise<Conversation | undefined>;
  /** Another tab put or removed this conversation. */
  onChange: (listener: (id: string) => void) => void;
};

const DATABASE = "eloquio";
const CONVERSATIONS = "conversations";
const OPEN_TIMEOUT_MILLISECONDS = 4000;

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function committed(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
    transaction.onerror = () => reject(transaction.error);
  });
}

function openDatabase(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    // A profile in a bad state answers neither way.
    const timer = setTimeout(
      () => reject(new Error("the browser's storage doesn't answer")),
      OPEN_TIMEOUT_MILLISECONDS,
    );
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () =>
      request.result.createObjectStore(CONVERSATIONS, { keyPath: "id" });
    request.onsuccess = () => {
      clearTimeout(timer);
      resolve(request.result);
    };
    request.onerror = () => {
      clearTimeout(timer);
      reject(request.error);
    };
  });
}

/** This browser's IndexedDB; rejects where it is missing, forbidden or broken. */
export async function openShelf(): Promise<Shelf> {
  const database = await openDatabase();
  const tabs = new BroadcastChannel("eloquio.chat");
  const reading = () => database.transaction(CONVERSATIONS).objectStore(CONVERSATIONS);
  const write = async (id: string, change: (store: IDBObjectStore) => void) => {
    const transaction = database.transaction(CONVERSATIONS, "readwrite");
    change(transaction.objectStore(CONVERSATIONS));
    await committed(transaction);
    tabs.postMessage(id);
  };
  return {
    all: () => settled<Conversation[]>(reading().getAll()),
    get: (id) => settled<Conversation | undefined>(reading().get(id)),
    put: (conversation) => write(conversation.id, (store) => store.put(conversation)),
    remove: (id) => write(id, (store) => store.delete(id)),
    onChange(listener) {
      tabs.onmessage = ({ data }: MessageEvent<string>) => listener(data);
    },
  };
}

/** What a failure to keep something means, for the note above the composer. */
export function storageFault(thrown: unknown): string {
  const name = thrown instanceof DOMException ? thrown.name : "";
  if (name === "QuotaExceededError") return "the browser's storage is full";
  if (name === "SecurityError") return "the browser blocks storage for this page";
  return "the browser's storage isn't available";
}

const inMemory = new Map<string, string>();

/** localStorage for small things; what it refuses is remembered until the page is closed. */
export const browserStorage: StateStorage = {
  getItem(key) {
    try {
      return inMemory.get(key) ?? localStorage.getItem(key);
    } catch {
      return inMemory.get(key) ?? null;
    }
  },
  setItem(key, value) {
    try {
      localStorage.setItem(key, value);
      inMemory.delete(key);
    } catch {
      inMemory.set(key, value);
    }
  },
  removeItem(key) {
    inMemory.delete(key);
    try {
      localStorage.removeItem(key);
    } catch {
      // Nothing was kept there.
    }
  },
};

const draftKey = (conversationId: string | null) => `eloquio.chat.draft.${conversationId ?? "new"}`;

/** The text in the composer that hasn't been sent, kept for each conversation. */
export const drafts = {
  read: (conversationId: string | null) =>
    String(browserStorage.getItem(draftKey(conversationId)) ?? ""),
  write(conversationId: string | null, text: string) {
    if (text) browserStorage.setItem(draftKey(conversationId), text);
    else browserStorage.removeItem(draftKey(conversationId));
  },
};

const attachedStore = createStore("eloquio-drafts", "pictures");
const attachedKey = (conversationId: string | null) => conversationId ?? "new";
// A browser that keeps nothing has said so where conversations are kept.
const unkept = () => undefined;

/** What is attached in the composer and hasn't been sent, as data URLs, kept like its text. */
export const attachedDrafts = {
  async read(conversationId: string | null): Promise<string[]> {
    try {
      return (await get<string[]>(attachedKey(conversationId), attachedStore)) ?? [];
    } catch {
      return [];
    }
  },
  write(conversationId: string | null, urls: string[]): void {
    const key = attachedKey(conversationId);
    try {
      void (urls.length ? set(key, urls, attachedStore) : del(key, attachedStore)).catch(unkept);
    } catch {
      // There is no storage at all.
    }
  },
};

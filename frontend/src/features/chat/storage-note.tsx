import { useChatStore } from "./chat-store";

/** Says so when the browser doesn't keep conversations: they live until the page is closed. */
export function StorageNote() {
  const storage = useChatStore((state) => state.storage);
  if (storage.state !== "unkept") return null;
  return (
    <p role="status" className="mb-2 rounded-md bg-busy-soft px-3 py-2 text-busy text-sm">
      Conversations aren't being kept: {storage.reason}. They last until this page is closed; export
      what you want to keep.
    </p>
  );
}

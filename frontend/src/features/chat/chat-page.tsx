import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { refreshStatus } from "@/api/models";
import { Sheet, SheetContent } from "@/ui/sheet";
import { ChatHeader } from "./chat-header";
import { useChatStore } from "./chat-store";
import { Composer } from "./composer";
import { ConversationList } from "./conversation-list";
import { prefetchMarkdown } from "./lazy-markdown";
import { MessageList } from "./message-list";
import { browserStorage } from "./persistence";
import { StorageNote } from "./storage-note";
import { useAsked } from "./use-asked";
import { useIsWide } from "./use-is-wide";
import { Welcome } from "./welcome";

const LIST_HIDDEN = "eloquio.chat.list-hidden";

export function ChatPage() {
  const currentId = useChatStore((state) => state.currentId);
  const conversation = useChatStore((state) => state.conversations[state.currentId ?? ""]);
  const isRunning = useChatStore((state) => (state.currentId ?? "") in state.running);
  const asked = useAsked();
  useEffect(() => {
    void useChatStore.getState().open();
    prefetchMarkdown();
  }, []);
  useStopOnEscape(isRunning ? currentId : null);
  useStatusAtEnd(isRunning);
  const isWide = useIsWide();
  const [isHidden, setHidden] = useState(() => browserStorage.getItem(LIST_HIDDEN) === "yes");
  const [isSheetOpen, setSheetOpen] = useState(false);
  const toggleList = () => {
    if (!isWide) return setSheetOpen(true);
    browserStorage.setItem(LIST_HIDDEN, isHidden ? "no" : "yes");
    setHidden(!isHidden);
  };
  return (
    <div className="flex h-full min-h-0">
      {isWide && !isHidden && (
        <aside aria-label="Your conversations" className="w-64 shrink-0 border-r p-3">
          <ConversationList />
        </aside>
      )}
      {!isWide && (
        <Sheet open={isSheetOpen} onOpenChange={setSheetOpen}>
          <SheetContent side="left" title="Conversations">
            <ConversationList onChosen={() => setSheetOpen(false)} />
          </SheetContent>
        </Sheet>
      )}
      <section aria-label="Chat" className="flex min-w-0 flex-1 flex-col">
        <ChatHeader
          conversation={conversation}
          isListOpen={isWide ? !isHidden : isSheetOpen}
          onToggleList={toggleList}
        />
        {conversation?.leafId ? (
          <MessageList
            key={conversation.id}
            conversation={conversation}
            asked={asked}
            isRunning={isRunning}
          />
        ) : (
          <Welcome asked={asked} />
        )}
        <div className="mx-auto w-full max-w-3xl px-4 pb-4 max-md:px-2 max-md:pb-2">
          <StorageNote />
          <Composer conversationId={currentId} asked={asked} isRunning={isRunning} />
        </div>
      </section>
      <Announcer />
    </div>
  );
}

function useStopOnEscape(conversationId: string | null) {
  useEffect(() => {
    if (conversationId === null) return;
    const onKeyDown = (event: KeyboardEvent) => {
      // An open menu or dialog takes Escape for itself.
      if (event.key === "Escape" && !event.defaultPrevented)
        useChatStore.getState().stop(conversationId);
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [conversationId]);
}

/** A reply's end may be an engine's: the page learns at once what became of it. */
function useStatusAtEnd(isRunning: boolean) {
  const client = useQueryClient();
  useEffect(() => {
    if (isRunning) return () => void refreshStatus(client);
  }, [isRunning, client]);
}

function Announcer() {
  const announcement = useChatStore((state) => state.announcement);
  return (
    <p role="status" aria-live="polite" className="sr-only">
      {announcement}
    </p>
  );
}

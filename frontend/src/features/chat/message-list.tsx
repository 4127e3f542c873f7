import { ArrowDown } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Virtualizer } from "virtua";
import { Button } from "@/ui/button";
import { cn } from "@/ui/cn";
import type { Asked } from "./asking";
import type { Place } from "./branch-switch";
import { useChatStore } from "./chat-store";
import { Comparison } from "./comparison";
import { PromptView } from "./prompt-view";
import { ReplyView } from "./reply-view";
import {
  activeBranch,
  besides,
  type Conversation,
  type Message,
  type Reply,
  siblingIds,
} from "./tree";
import { type Attached, useWhyNotAsked } from "./use-senses";
import { useStickToEnd } from "./use-stick-to-end";

/** From here on only what is near the window is mounted; below it the browser's search finds all. */
const VIRTUAL_FROM = 60;

type Props = { conversation: Conversation; asked: Asked | null; isRunning: boolean };

/** `held`: what the branch has been given, from its start to this message. */
type Row = { message: Message; place: Place; held: Attached; beside: Reply | undefined };

function rowsOf(conversation: Conversation): Row[] {
  const siblings = siblingIds(conversation);
  let held: Attached = { images: false, sounds: false };
  return activeBranch(conversation).map((message) => {
    const ids = siblings.get(message.parentId) ?? [message.id];
    const index = ids.indexOf(message.id);
    const place = {
      position: index + 1,
      count: ids.length,
      previousId: ids[index - 1] ?? null,
      nextId: ids[index + 1] ?? null,
    };
    if (message.role === "user")
      held = {
        images: held.images || Boolean(message.images?.length),
        sounds: held.sounds || Boolean(message.sounds?.length),
      };
    return { message, place, held, beside: besides(conversation, message) };
  });
}

export function MessageList({ conversation, asked, isRunning }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { isAtEnd, toEnd } = useStickToEnd(scroller, content);
  const [editingId, setEditingId] = useState<string | null>(null);
  const rows = useMemo(() => rowsOf(conversation), [conversation]);
  const whyNotAsked = useWhyNotAsked(asked);
  const runningId = useChatStore((state) => state.running[conversation.id]?.id);

  // What was just asked for is what one wants to see.
  useEffect(() => {
    if (runningId) toEnd();
  }, [runningId, toEnd]);

  const row = useCallback(
    ({ message, place, held, beside }: Row, index: number) => {
      const shared = {
        ...place,
        conversationId: conversation.id,
        asked,
        whyNotAsked: whyNotAsked(held),
        isBusy: isRunning,
        isLast: index === rows.length - 1,
      };
      return (
        <div
          key={message.id}
          className={cn("mx-auto px-4 pt-6 last:pb-4", beside ? "max-w-6xl" : "max-w-3xl")}
        >
          {message.role === "user" ? (
            <PromptView
              {...shared}
              prompt={message}
              isEditing={editingId === message.id}
              onEdit={setEditingId}
            />
          ) : beside ? (
            <Comparison {...shared} reply={message} beside={beside} />
          ) : (
            <ReplyView {...shared} reply={message} />
          )}
        </div>
      );
    },
    [asked, whyNotAsked, isRunning, editingId, conversation.id, rows.length],
  );
  const edited = rows.findIndex(({ message }) => message.id === editingId);

  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={scroller}
        // Replies are announced once, when they have ended; tokens would be read one by one.
        role="log"
        aria-live="off"
        aria-label="Conversation"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: to be scrolled with the keyboard
        tabIndex={0}
        className="h-full overflow-y-auto overscroll-contain outline-offset-[-2px] [overflow-anchor:none]"
      >
        <div ref={content}>
          {rows.length < VIRTUAL_FROM ? (
            rows.map(row)
          ) : (
            <Virtualizer
              data={rows}
              scrollRef={scroller}
              bufferSize={800}
              {...(edited < 0 ? {} : { keepMounted: [edited] })}
            >
              {row}
            </Virtualizer>
          )}
        </div>
      </div>
      {!isAtEnd && (
        <Button
          intent="secondary"
          size="sm"
          onClick={toEnd}
          className="-translate-x-1/2 absolute bottom-3 left-1/2 rounded-full shadow-float"
        >
          <ArrowDown aria-hidden /> Jump to latest
        </Button>
      )}
    </div>
  );
}

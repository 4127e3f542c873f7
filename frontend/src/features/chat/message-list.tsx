import { ArrowDown } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Virtualizer } from "virtua";
import { Button } from "@/ui/button";
import type { Asked } from "./asking";
import type { Place } from "./branch-switch";
import { useChatStore } from "./chat-store";
import { PromptView } from "./prompt-view";
import { ReplyView } from "./reply-view";
import { activeBranch, type Conversation, type Message, siblingIds } from "./tree";
import { useBlindToBranch } from "./use-blindness";
import { useStickToEnd } from "./use-stick-to-end";

/** From here on only what is near the window is mounted; below it the browser's search finds all. */
const VIRTUAL_FROM = 60;

type Props = { conversation: Conversation; asked: Asked | null; isRunning: boolean };

/** `hasPictures`: whether the branch does, from its start to this message. */
type Row = { message: Message; place: Place; hasPictures: boolean };

function rowsOf(conversation: Conversation): Row[] {
  const siblings = siblingIds(conversation);
  let hasPictures = false;
  return activeBranch(conversation).map((message) => {
    const ids = siblings.get(message.parentId) ?? [message.id];
    const index = ids.indexOf(message.id);
    const place = {
      position: index + 1,
      count: ids.length,
      previousId: ids[index - 1] ?? null,
      nextId: ids[index + 1] ?? null,
    };
    hasPictures ||= message.role === "user" && Boolean(message.images?.length);
    return { message, place, hasPictures };
  });
}

export function MessageList({ conversation, asked, isRunning }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { isAtEnd, toEnd } = useStickToEnd(scroller, content);
  const [editingId, setEditingId] = useState<string | null>(null);
  const rows = useMemo(() => rowsOf(conversation), [conversation]);
  const blindness = useBlindToBranch(asked);
  const runningId = useChatStore((state) => state.running[conversation.id]?.id);

  // What was just asked for is what one wants to see.
  useEffect(() => {
    if (runningId) toEnd();
  }, [runningId, toEnd]);

  const row = useCallback(
    ({ message, place, hasPictures }: Row, index: number) => (
      <div key={message.id} className="mx-auto max-w-3xl px-4 pt-6 last:pb-4">
        {message.role === "user" ? (
          <PromptView
            prompt={message}
            {...place}
            conversationId={conversation.id}
            asked={asked}
            whyNotAsked={hasPictures ? blindness : null}
            isBusy={isRunning}
            isLast={index === rows.length - 1}
            isEditing={editingId === message.id}
            onEdit={setEditingId}
          />
        ) : (
          <ReplyView
            reply={message}
            {...place}
            conversationId={conversation.id}
            asked={asked}
            whyNotAsked={hasPictures ? blindness : null}
            isBusy={isRunning}
            isLast={index === rows.length - 1}
          />
        )}
      </div>
    ),
    [asked, blindness, isRunning, editingId, conversation.id, rows.length],
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

import { ArrowUp, Square } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { IconButton } from "@/ui/icon-button";
import { type Asked, useChatStore } from "./chat-store";
import { isSendKey } from "./keys";
import { ModelGate } from "./model-gate";
import { drafts } from "./persistence";

const COMPOSER_ID = "composer";

export function focusComposer(): void {
  document.getElementById(COMPOSER_ID)?.focus();
}

type Props = {
  conversationId: string | null;
  asked: Asked | null;
  isRunning: boolean;
};

export function Composer({ conversationId, asked, isRunning }: Props) {
  const { send, stop } = useChatStore.getState();
  const [shownId, setShownId] = useState(conversationId);
  const [text, setText] = useState(() => drafts.read(conversationId));
  const textNow = useRef(text);
  textNow.current = text;
  if (shownId !== conversationId) {
    setShownId(conversationId);
    setText(drafts.read(conversationId));
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: anew for each conversation shown
  useEffect(focusOnWideScreens, [conversationId]);

  const write = (written: string) => {
    setText(written);
    drafts.write(conversationId, written);
  };
  const canSend = asked !== null && text.trim() !== "";
  const submit = async () => {
    if (!canSend || isRunning) return;
    setText("");
    await send(text, asked);
    // Until the prompt is kept the draft still holds it; words written since then stay.
    if (conversationId === null || textNow.current === "") drafts.write(conversationId, "");
  };

  return (
    <form
      aria-label="Write a message"
      className="rounded-xl border bg-card p-2 shadow-low focus-within:border-ring"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <ModelGate />
      <div className="flex items-end gap-2">
        <textarea
          id={COMPOSER_ID}
          aria-label="Message"
          rows={1}
          enterKeyHint="send"
          placeholder="Ask anything"
          value={text}
          onChange={(event) => write(event.target.value)}
          onKeyDown={(event) => {
            if (!isSendKey(event)) return;
            event.preventDefault();
            void submit();
          }}
          className="field-sizing-content max-h-[40dvh] min-h-10 flex-1 resize-none bg-transparent px-2 py-2 leading-6 outline-none placeholder:text-muted-foreground"
        />
        {isRunning && conversationId ? (
          <IconButton
            label="Stop"
            hint="Stop (Esc)"
            side="top"
            intent="primary"
            onClick={() => {
              stop(conversationId);
              focusComposer();
            }}
          >
            <Square fill="currentColor" aria-hidden />
          </IconButton>
        ) : (
          <IconButton
            label="Send"
            hint="Send (Enter)"
            side="top"
            intent="primary"
            type="submit"
            disabled={!canSend}
            aria-describedby={asked === null ? "why-not-send" : undefined}
          >
            <ArrowUp aria-hidden />
          </IconButton>
        )}
      </div>
    </form>
  );
}

/** On a phone the keyboard would cover half of what one came to read. */
function focusOnWideScreens(): void {
  if (window.matchMedia("(min-width: 48rem)").matches) focusComposer();
}

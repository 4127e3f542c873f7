import { ArrowUp, Square } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { IconButton } from "@/ui/icon-button";
import type { Asked } from "./asking";
import { AttachButton } from "./attach-button";
import { useChatStore } from "./chat-store";
import { isSendKey } from "./keys";
import { ModelGate } from "./model-gate";
import { drafts } from "./persistence";
import { attach, forgetTaken, setPictures, takePictures, usePictures } from "./pictures";
import { Thumbnails } from "./thumbnails";
import { useBlindness } from "./use-blindness";
import { useDroppedFiles } from "./use-dropped-files";

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
  const images = usePictures(conversationId);
  const attachFiles = (files: File[]) => {
    void attach(conversationId, files);
    focusComposer();
  };
  useDroppedFiles(attachFiles);
  const blindness = useBlindness(conversationId, asked, images.length > 0);
  const hasWords = text.trim() !== "" || images.length > 0;
  const canSend = asked !== null && hasWords && blindness.reason === null;
  const submit = async () => {
    if (!canSend || isRunning) return;
    setText("");
    takePictures(conversationId);
    await send({ text, images }, asked);
    // Until the prompt is kept the draft still holds it; words written since then stay.
    if (conversationId === null || textNow.current === "") drafts.write(conversationId, "");
    forgetTaken(conversationId);
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
      {blindness.reason !== null && (
        <p id="why-not-send" role="status" className="px-2 pb-2 text-busy text-sm">
          {blindness.reason}
        </p>
      )}
      <Thumbnails
        images={images}
        onRemove={(index) => setPictures(conversationId, images.toSpliced(index, 1))}
      />
      <div className="flex items-end gap-2">
        <AttachButton reason={blindness.whyNoPictures} onFiles={attachFiles} />
        <textarea
          id={COMPOSER_ID}
          aria-label="Message"
          rows={1}
          enterKeyHint="send"
          placeholder="Ask anything"
          value={text}
          onChange={(event) => write(event.target.value)}
          onPaste={(event) => {
            const { files, types } = event.clipboardData;
            // A table that is copied comes as a picture of it, too: the words are meant.
            if (files.length === 0 || types.includes("text/plain")) return;
            event.preventDefault();
            attachFiles([...files]);
          }}
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
            aria-describedby={
              asked === null || blindness.reason !== null ? "why-not-send" : undefined
            }
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

import { ArrowUp, Square } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { IconButton } from "@/ui/icon-button";
import type { Asked } from "./asking";
import { AttachButton, AttachSoundButton } from "./attach-button";
import { attach, forgetTaken, setAttached, takeAttached, useAttached } from "./attached";
import { useChatStore } from "./chat-store";
import { isSendKey } from "./keys";
import { ModelGate } from "./model-gate";
import { drafts } from "./persistence";
import { RecordButton } from "./record-button";
import { apart } from "./sounds";
import { Sounds } from "./sounds-view";
import { Thumbnails } from "./thumbnails";
import { useDictation } from "./use-dictation";
import { useDroppedFiles } from "./use-dropped-files";
import { useSenses } from "./use-senses";

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
  const { images, sounds } = apart(useAttached(conversationId));
  const shownNow = useRef(conversationId);
  shownNow.current = conversationId;
  const dictation = useDictation((said) => {
    const after = (before: string) => [before.trimEnd(), said].filter(Boolean).join(" ");
    // Another conversation may be shown by now: what was said belongs to the one it was said for.
    if (shownNow.current === conversationId) write(after(textNow.current));
    else drafts.write(conversationId, after(drafts.read(conversationId)));
  });
  const attachFiles = (files: File[]) => {
    void attach(conversationId, files);
    focusComposer();
  };
  useDroppedFiles(attachFiles);
  const attached = { images: images.length > 0, sounds: sounds.length > 0 };
  const senses = useSenses(conversationId, asked, attached);
  const hasWords = text.trim() !== "" || attached.images || attached.sounds;
  const canSend = asked !== null && hasWords && senses.reason === null;
  const submit = async () => {
    if (!canSend || isRunning) return;
    setText("");
    takeAttached(conversationId);
    await send({ text, images, sounds }, asked);
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
      {senses.reason !== null && (
        <p id="why-not-send" role="status" className="px-2 pb-2 text-busy text-sm">
          {senses.reason}
        </p>
      )}
      <Thumbnails
        images={images}
        onRemove={(index) =>
          setAttached(conversationId, [...images.toSpliced(index, 1), ...sounds])
        }
      />
      <Sounds
        sounds={sounds}
        onRemove={(index) =>
          setAttached(conversationId, [...images, ...sounds.toSpliced(index, 1)])
        }
      />
      <div className="flex items-end gap-2">
        <AttachButton reason={senses.whyNoPictures} onFiles={attachFiles} />
        {senses.whyNoSounds === null && <AttachSoundButton onFiles={attachFiles} />}
        {(senses.whyNoSounds === null || dictation.name !== null) && (
          <RecordButton
            isBusy={dictation.isWriting}
            hint={
              senses.whyNoSounds === null
                ? "Record; the model hears it"
                : `Dictate; ${dictation.name} writes it down`
            }
            onRecorded={(sound) =>
              senses.whyNoSounds === null ? attachFiles([sound]) : void dictation.write(sound)
            }
          />
        )}
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
            aria-describedby={asked === null || senses.reason !== null ? "why-not-send" : undefined}
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

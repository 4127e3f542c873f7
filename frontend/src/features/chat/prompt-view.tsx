import { Pencil, RefreshCw } from "lucide-react";
import { memo, useState } from "react";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy-button";
import { IconButton } from "@/ui/icon-button";
import { Textarea } from "@/ui/input";
import type { Asked } from "./asking";
import { BranchSwitch, type Place, placeOf } from "./branch-switch";
import { useChatStore } from "./chat-store";
import { focusComposer } from "./composer";
import { DeleteButton } from "./delete-button";
import { isSendKey } from "./keys";
import { Sounds } from "./sounds-view";
import { Thumbnails } from "./thumbnails";
import type { Prompt } from "./tree";
import { useSenses } from "./use-senses";

type Props = Place & {
  prompt: Prompt;
  conversationId: string;
  asked: Asked | null;
  /** Why the model can't be asked about this conversation; null if it can. */
  whyNotAsked: string | null;
  isBusy: boolean;
  isLast: boolean;
  isEditing: boolean;
  onEdit: (promptId: string | null) => void;
};

export const PromptView = memo(function PromptView(props: Props) {
  const { prompt, asked, whyNotAsked, isBusy, isLast, isEditing, onEdit } = props;
  const { regenerate } = useChatStore.getState();
  if (isEditing) return <PromptEditor {...props} />;
  return (
    <article aria-label="Prompt" data-role="user" className="flex flex-col items-end gap-1">
      <Pictures images={prompt.images ?? []} />
      <Sounds sounds={prompt.sounds ?? []} />
      {prompt.content && (
        <p className="max-w-[85%] whitespace-pre-wrap rounded-xl rounded-br-sm bg-accent px-4 py-2.5 text-accent-foreground leading-relaxed [overflow-wrap:anywhere]">
          {prompt.content}
        </p>
      )}
      <div className="flex items-center gap-1">
        {isLast && !isBusy && (
          <Button
            size="sm"
            intent="secondary"
            disabled={asked === null || whyNotAsked !== null}
            aria-describedby={whyNotAsked === null ? undefined : "why-not-send"}
            onClick={() => asked && void regenerate(prompt.id, asked)}
          >
            <RefreshCw aria-hidden /> Get a reply
          </Button>
        )}
        <BranchSwitch {...placeOf(props)} noun="prompt" isDisabled={isBusy} />
        <CopyButton text={prompt.content} label="Copy prompt" />
        <IconButton
          size="icon-sm"
          label="Edit prompt"
          hint="Edit and send again; this version is kept"
          disabled={isBusy}
          onClick={() => onEdit(prompt.id)}
        >
          <Pencil aria-hidden />
        </IconButton>
        <DeleteButton messageId={prompt.id} noun="prompt" isDisabled={isBusy} />
      </div>
    </article>
  );
});

function Pictures({ images }: { images: string[] }) {
  if (images.length === 0) return null;
  return (
    <ul aria-label="Pictures" className="flex max-w-[85%] flex-wrap justify-end gap-2">
      {images.map((image, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same picture may stand there twice
        <li key={index}>
          <img
            src={image}
            alt={`Sent with the prompt, number ${index + 1}`}
            className="max-h-64 min-h-16 min-w-16 max-w-full rounded-xl border bg-muted object-contain"
          />
        </li>
      ))}
    </ul>
  );
}

function PromptEditor({ prompt, conversationId, asked, isBusy, onEdit }: Props) {
  const [text, setText] = useState(prompt.content);
  const [images, setImages] = useState(prompt.images ?? []);
  const [sounds, setSounds] = useState(prompt.sounds ?? []);
  const attached = { images: images.length > 0, sounds: sounds.length > 0 };
  const { reason } = useSenses(conversationId, asked, attached, prompt.parentId);
  const hasWords = text.trim() !== "" || attached.images || attached.sounds;
  const canSend = hasWords && asked !== null && reason === null && !isBusy;
  const close = () => {
    onEdit(null);
    focusComposer();
  };
  const send = () => {
    if (!canSend) return;
    void useChatStore.getState().editAndResend(prompt.id, { text, images, sounds }, asked);
    close();
  };
  return (
    <form
      data-role="user"
      className="space-y-2 rounded-xl border bg-card p-3"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <Thumbnails images={images} onRemove={(index) => setImages(images.toSpliced(index, 1))} />
      <Sounds sounds={sounds} onRemove={(index) => setSounds(sounds.toSpliced(index, 1))} />
      <Textarea
        autoFocus
        aria-label="Edited prompt"
        className="field-sizing-content max-h-80"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.preventDefault();
            close();
          } else if (isSendKey(event)) {
            event.preventDefault();
            send();
          }
        }}
      />
      {reason !== null && (
        <p id="why-not-send-again" role="status" className="text-busy text-sm">
          {reason}
        </p>
      )}
      <div className="flex justify-end gap-2">
        <Button size="sm" intent="ghost" onClick={close}>
          Cancel
        </Button>
        <Button
          size="sm"
          type="submit"
          disabled={!canSend}
          aria-describedby={reason === null ? undefined : "why-not-send-again"}
        >
          Send again
        </Button>
      </div>
    </form>
  );
}

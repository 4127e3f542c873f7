import { ImagePlus } from "lucide-react";
import { useRef } from "react";
import { IconButton } from "@/ui/icon-button";

type Props = {
  /** Why no picture can be attached now; null if one can. */
  reason: string | null;
  onFiles: (files: File[]) => void;
};

/** Chooses pictures from the disk. While it can't be used it says why, also to the keyboard. */
export function AttachButton({ reason, onFiles }: Props) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton
        label="Attach pictures"
        hint={reason ?? "Attach pictures; they can be pasted and dropped, too"}
        side="top"
        aria-disabled={reason !== null}
        aria-describedby={reason === null ? undefined : "why-no-pictures"}
        className="aria-disabled:opacity-50"
        onClick={() => reason === null && input.current?.click()}
      >
        <ImagePlus aria-hidden />
      </IconButton>
      {reason !== null && (
        <span id="why-no-pictures" className="sr-only">
          {reason}
        </span>
      )}
      <input
        ref={input}
        type="file"
        accept="image/*,.heic,.heif,.avif"
        multiple
        hidden
        aria-label="Pictures"
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          // So that the same file can be chosen again after it was removed.
          event.target.value = "";
        }}
      />
    </>
  );
}

import { AudioLines, ImagePlus } from "lucide-react";
import { type RefObject, useRef } from "react";
import { IconButton } from "@/ui/icon-button";
import { soundFiles } from "./sounds";

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
      <FileInput
        input={input}
        label="Pictures"
        accept="image/*,.heic,.heif,.avif"
        onFiles={onFiles}
      />
    </>
  );
}

/** Chooses sounds from the disk; there only where the model hears. */
export function AttachSoundButton({ onFiles }: Pick<Props, "onFiles">) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton
        label="Attach sounds"
        hint="Attach sounds; they can be dropped, too"
        side="top"
        onClick={() => input.current?.click()}
      >
        <AudioLines aria-hidden />
      </IconButton>
      <FileInput input={input} label="Sounds" accept={soundFiles} onFiles={onFiles} />
    </>
  );
}

type FileInputProps = Pick<Props, "onFiles"> & {
  input: RefObject<HTMLInputElement | null>;
  label: string;
  accept: string;
};

function FileInput({ input, label, accept, onFiles }: FileInputProps) {
  return (
    <input
      ref={input}
      type="file"
      accept={accept}
      multiple
      hidden
      aria-label={label}
      onChange={(event) => {
        onFiles([...(event.target.files ?? [])]);
        // So that the same file can be chosen again after it was removed.
        event.target.value = "";
      }}
    />
  );
}

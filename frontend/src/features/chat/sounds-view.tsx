import { X } from "lucide-react";
import { IconButton } from "@/ui/icon-button";

type Props = {
  sounds: readonly string[];
  /** Missing where they have been sent. */
  onRemove?: (index: number) => void;
};

/** Sounds to be heard again, each of which can be taken back until it is sent. */
export function Sounds({ sounds, onRemove }: Props) {
  if (sounds.length === 0) return null;
  return (
    <ul
      aria-label={onRemove ? "Attached sounds" : "Sounds"}
      className="flex max-w-full flex-wrap gap-2 px-2 pb-2"
    >
      {sounds.map((sound, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same sound may be attached twice
        <li key={index} className="flex min-w-0 items-center gap-1">
          {/* biome-ignore lint/a11y/useMediaCaption: what a person attached has no captions */}
          <audio
            controls
            src={sound}
            aria-label={`Sound ${index + 1}`}
            className="h-10 w-72 max-w-full"
          />
          {onRemove && (
            <IconButton
              size="icon-sm"
              label={`Remove sound ${index + 1}`}
              onClick={() => onRemove(index)}
            >
              <X aria-hidden />
            </IconButton>
          )}
        </li>
      ))}
    </ul>
  );
}

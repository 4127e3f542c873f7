import { X } from "lucide-react";
import { IconButton } from "@/ui/icon-button";

type Props = { images: readonly string[]; onRemove: (index: number) => void };

/** Pictures that are about to be sent, each of which can be taken back. */
export function Thumbnails({ images, onRemove }: Props) {
  if (images.length === 0) return null;
  return (
    <ul aria-label="Attached pictures" className="flex flex-wrap gap-2 px-2 pb-2">
      {images.map((image, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same picture may be attached twice
        <li key={index} className="relative">
          <img
            src={image}
            alt={`Attached, number ${index + 1}`}
            className="size-16 rounded-lg border bg-muted object-cover max-md:size-24"
          />
          <IconButton
            size="icon-sm"
            intent="secondary"
            label={`Remove picture ${index + 1}`}
            className="-top-2 -right-2 absolute size-6 rounded-full max-md:size-10 [&_svg]:size-3.5"
            onClick={() => onRemove(index)}
          >
            <X aria-hidden />
          </IconButton>
        </li>
      ))}
    </ul>
  );
}

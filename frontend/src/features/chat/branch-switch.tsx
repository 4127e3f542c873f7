import { ChevronLeft, ChevronRight } from "lucide-react";
import { IconButton } from "@/ui/icon-button";
import { useChatStore } from "./chat-store";

export type Place = {
  /** From 1, among the messages that stand at the same point of the conversation. */
  position: number;
  count: number;
  previousId: string | null;
  nextId: string | null;
};

export const placeOf = ({ position, count, previousId, nextId }: Place): Place => ({
  position,
  count,
  previousId,
  nextId,
});

type Props = Place & { noun: "reply" | "prompt"; isDisabled: boolean };

/** ‹ 2/3 › leads to the alternatives of a message, with all that follows each of them. */
export function BranchSwitch({ position, count, previousId, nextId, noun, isDisabled }: Props) {
  const switchTo = useChatStore((state) => state.switchTo);
  if (count < 2) return null;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for form fields
    <div role="group" aria-label={`Versions of this ${noun}`} className="flex items-center">
      <IconButton
        size="icon-sm"
        label={`Previous ${noun}`}
        disabled={isDisabled || previousId === null}
        onClick={() => previousId && switchTo(previousId)}
      >
        <ChevronLeft aria-hidden />
      </IconButton>
      <span className="min-w-8 text-center text-muted-foreground text-xs tabular-nums">
        {position}/{count}
      </span>
      <IconButton
        size="icon-sm"
        label={`Next ${noun}`}
        disabled={isDisabled || nextId === null}
        onClick={() => nextId && switchTo(nextId)}
      >
        <ChevronRight aria-hidden />
      </IconButton>
    </div>
  );
}

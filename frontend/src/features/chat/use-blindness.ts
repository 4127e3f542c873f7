import { useReachableModel } from "@/api/models";
import type { Asked } from "./asking";
import { useChatStore } from "./chat-store";
import { activeBranch, hasPictures } from "./tree";

type Blindness = {
  /** Why no picture can be attached; null if one can. */
  whyNoPictures: string | null;
  /** Why what is written can't be sent to this model; null if it can. */
  reason: string | null;
};

/** What a model that sees no pictures means for the message being written, in words. */
export function useBlindness(
  conversationId: string | null,
  asked: Asked | null,
  isAttached: boolean,
): Blindness {
  const name = useReachableModel()?.name ?? "The model";
  const isInBranch = useChatStore(({ conversations }) => {
    const conversation = conversations[conversationId ?? ""];
    return conversation !== undefined && hasPictures(activeBranch(conversation));
  });
  if (asked === null)
    return { whyNoPictures: "Load a vision model to send pictures.", reason: null };
  if (asked.seesPictures) return { whyNoPictures: null, reason: null };
  const whyNoPictures = `${name} can't see pictures: choose a vision model to send some.`;
  const where = isAttached ? "pictures" : "the pictures in this conversation";
  return {
    whyNoPictures,
    reason:
      isAttached || isInBranch
        ? `${name} can't see ${where}: choose a vision model or remove them.`
        : null,
  };
}

import { useReachableModel } from "@/api/models";
import type { Asked } from "./asking";
import { useChatStore } from "./chat-store";
import { branchTo, hasPictures } from "./tree";

type Blindness = {
  /** Why no picture can be attached; null if one can. */
  whyNoPictures: string | null;
  /** Why what is written can't be sent to this model; null if it can. */
  reason: string | null;
};

/**
 * What a model that sees no pictures means for the message being written, in words. `parentId` is the
 * message that it follows; by default the last one shown.
 */
export function useBlindness(
  conversationId: string | null,
  asked: Asked | null,
  isAttached: boolean,
  parentId?: string | null,
): Blindness {
  const name = useReachableModel()?.name ?? "The model";
  const isInBranch = useChatStore(({ conversations }) => {
    const conversation = conversations[conversationId ?? ""];
    if (!conversation) return false;
    const leafId = parentId === undefined ? conversation.leafId : parentId;
    return hasPictures(branchTo(conversation, leafId));
  });
  if (asked === null)
    return { whyNoPictures: "Load a vision model to send pictures.", reason: null };
  if (asked.seesPictures) return { whyNoPictures: null, reason: null };
  const whyNoPictures = `${name} can't see pictures: choose a vision model to send some.`;
  return { whyNoPictures, reason: isAttached || isInBranch ? reasonFor(name, isAttached) : null };
}

/** Why nothing can be asked of the model about a branch that holds pictures; null if it can. */
export function useBlindToBranch(asked: Asked | null): string | null {
  const name = useReachableModel()?.name ?? "The model";
  return asked === null || asked.seesPictures ? null : reasonFor(name, false);
}

function reasonFor(name: string, isAttached: boolean): string {
  const what = isAttached ? "pictures" : "the pictures in this conversation";
  return `${name} can't see ${what}: choose a vision model or remove them.`;
}

import { useCallback } from "react";
import { useReachableModel } from "@/api/models";
import type { Asked } from "./asking";
import { useChatStore } from "./chat-store";
import { branchTo, has } from "./tree";

export type Attached = { images: boolean; sounds: boolean };

type Senses = {
  /** Why no picture, or no sound, can be attached; null if one can. */
  whyNoPictures: string | null;
  whyNoSounds: string | null;
  /** Why what is written can't be sent to this model; null if it can. */
  reason: string | null;
};

/**
 * What a model that sees no pictures or hears no sounds means for the message being written, in words.
 * `parentId` is the message that it follows; by default the last one shown.
 */
export function useSenses(
  conversationId: string | null,
  asked: Asked | null,
  attached: Attached,
  parentId?: string | null,
): Senses {
  const name = useReachableModel()?.name ?? "The model";
  const isIn = (what: keyof Attached) => (state: ReturnType<typeof useChatStore.getState>) => {
    const conversation = state.conversations[conversationId ?? ""];
    if (!conversation) return false;
    const leafId = parentId === undefined ? conversation.leafId : parentId;
    return has(what, branchTo(conversation, leafId));
  };
  const inBranch = {
    images: useChatStore(isIn("images")),
    sounds: useChatStore(isIn("sounds")),
  };
  if (asked === null)
    return {
      whyNoPictures: "Load a vision model to send pictures.",
      whyNoSounds: "Load a model that hears to send sounds.",
      reason: null,
    };
  return {
    whyNoPictures: asked.seesPictures
      ? null
      : `${name} can't see pictures: choose a vision model to send some.`,
    whyNoSounds: asked.hearsSounds
      ? null
      : `${name} can't hear sounds: choose a model that hears to send some.`,
    reason:
      blindTo(asked, name, attached.images, inBranch.images) ??
      deafTo(asked, name, attached.sounds, inBranch.sounds),
  };
}

/** Why nothing can be asked of the model about a branch that holds such; null if it can. */
export function useWhyNotAsked(asked: Asked | null): (held: Attached) => string | null {
  const name = useReachableModel()?.name ?? "The model";
  return useCallback(
    ({ images, sounds }) =>
      asked && (blindTo(asked, name, false, images) ?? deafTo(asked, name, false, sounds)),
    [asked, name],
  );
}

function blindTo({ seesPictures }: Asked, name: string, isAttached: boolean, isThere: boolean) {
  if (seesPictures || !(isAttached || isThere)) return null;
  const what = isAttached ? "pictures" : "the pictures in this conversation";
  return `${name} can't see ${what}: choose a vision model or remove them.`;
}

function deafTo({ hearsSounds }: Asked, name: string, isAttached: boolean, isThere: boolean) {
  if (hearsSounds || !(isAttached || isThere)) return null;
  const what = isAttached ? "sounds" : "the sounds in this conversation";
  return `${name} can't hear ${what}: choose a model that hears or remove them.`;
}

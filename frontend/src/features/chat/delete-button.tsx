import { Trash2 } from "lucide-react";
import { toast } from "sonner";
import { IconButton } from "@/ui/icon-button";
import { useChatStore } from "./chat-store";

type Props = { messageId: string; noun: "reply" | "prompt"; isDisabled: boolean };

/** Deletes a message with all that follows it; a toast brings it back. */
export function DeleteButton({ messageId, noun, isDisabled }: Props) {
  const remove = () => {
    const { conversations, currentId, deleteMessage, restore } = useChatStore.getState();
    const before = conversations[currentId ?? ""];
    deleteMessage(messageId);
    if (!before) return;
    toast(noun === "prompt" ? "Prompt and replies deleted" : "Reply deleted", {
      action: { label: "Undo", onClick: () => restore(before) },
    });
  };
  return (
    <IconButton size="icon-sm" label={`Delete ${noun}`} disabled={isDisabled} onClick={remove}>
      <Trash2 aria-hidden />
    </IconButton>
  );
}

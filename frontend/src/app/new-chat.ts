import { useNavigate } from "@tanstack/react-router";

/** Opens an empty conversation, from anywhere. The chat's code is fetched only when it is needed. */
export function useNewChat(): () => Promise<void> {
  const navigate = useNavigate();
  return async () => {
    const { useChatStore } = await import("@/features/chat/chat-store");
    useChatStore.getState().newConversation();
    await navigate({ to: "/" });
  };
}

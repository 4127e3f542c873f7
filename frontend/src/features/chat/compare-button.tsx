import { Columns2 } from "lucide-react";
import { useReachableModel } from "@/api/models";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { IconButton } from "@/ui/icon-button";
import { adapterIn, nameOfAdapter, others } from "./adapters";
import type { Asked } from "./asking";
import { useChatStore } from "./chat-store";
import type { Adapter } from "./sampling";
import type { Reply } from "./tree";

type Props = { reply: Reply; asked: Asked | null; isDisabled: boolean };

/** Asks the base or another adapter the same, and shows both replies beside each other. */
export function CompareButton({ reply, asked, isDisabled }: Props) {
  const loaded = useReachableModel()?.loaded;
  if (!asked || !loaded || loaded.adapters.length === 0 || loaded.model !== asked.model)
    return null;
  const answered = adapterIn(reply.run?.asked.settings.adapter, loaded);
  const compare = (adapter: Adapter) => {
    const settings = { ...asked.settings, adapter };
    void useChatStore.getState().compare(reply.id, { ...asked, settings });
  };
  return (
    <DropdownMenu>
      <DropdownMenuTrigger asChild>
        <IconButton
          size="icon-sm"
          label="Compare"
          hint="Ask the base or another adapter the same"
          disabled={isDisabled}
        >
          <Columns2 aria-hidden />
        </IconButton>
      </DropdownMenuTrigger>
      <DropdownMenuContent align="start">
        {others(answered, loaded).map((adapter) => (
          <DropdownMenuItem key={String(adapter)} onSelect={() => compare(adapter)}>
            with {nameOfAdapter(adapter)}
          </DropdownMenuItem>
        ))}
      </DropdownMenuContent>
    </DropdownMenu>
  );
}

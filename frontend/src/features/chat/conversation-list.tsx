import { Ellipsis, MessageSquare, Pencil, Search, SquarePen, Trash2 } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { toast } from "sonner";
import { Virtualizer } from "virtua";
import { Button } from "@/ui/button";
import { cn } from "@/ui/cn";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { IconButton } from "@/ui/icon-button";
import { Input } from "@/ui/input";
import { useChatStore } from "./chat-store";
import { type Conversation, matches } from "./tree";

/** A shorter list is mounted whole, and found by the browser's own search. */
const VIRTUAL_FROM = 100;

type Props = {
  /** After one was chosen: closes the sheet that this list lies in on a phone. */
  onChosen?: () => void;
};

export function ConversationList({ onChosen }: Props) {
  const conversations = useChatStore((state) => state.conversations);
  const currentId = useChatStore((state) => state.currentId);
  const { newConversation, show } = useChatStore.getState();
  const [query, setQuery] = useState("");
  const [renamingId, setRenamingId] = useState<string | null>(null);
  const found = useMemo(
    () =>
      Object.values(conversations)
        .filter((conversation) => matches(conversation, query))
        .sort((one, other) => other.updatedAt - one.updatedAt),
    [conversations, query],
  );
  const rows = found.map((conversation) =>
    renamingId === conversation.id ? (
      <RenameRow
        key={conversation.id}
        conversation={conversation}
        onDone={() => setRenamingId(null)}
      />
    ) : (
      <Row
        key={conversation.id}
        conversation={conversation}
        isCurrent={conversation.id === currentId}
        onChoose={() => {
          show(conversation.id);
          onChosen?.();
        }}
        onRename={() => setRenamingId(conversation.id)}
      />
    ),
  );
  return (
    <div className="flex h-full min-h-0 flex-col gap-2">
      <Button
        intent="secondary"
        onClick={() => {
          newConversation();
          onChosen?.();
        }}
      >
        <SquarePen aria-hidden /> New chat
      </Button>
      <div className="relative">
        <Search
          className="-translate-y-1/2 absolute top-1/2 left-3 size-4 text-muted-foreground"
          aria-hidden
        />
        <Input
          type="search"
          aria-label="Search conversations"
          placeholder="Search"
          className="pl-9"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
      </div>
      <nav aria-label="Conversations" className="-mx-1 min-h-0 flex-1 overflow-y-auto px-1">
        {found.length === 0 && (
          <p className="px-2 py-4 text-muted-foreground text-sm">
            {query ? "Nothing found." : "Your conversations will be listed here."}
          </p>
        )}
        {rows.length < VIRTUAL_FROM ? rows : <Virtualizer>{rows}</Virtualizer>}
      </nav>
    </div>
  );
}

type RowProps = {
  conversation: Conversation;
  isCurrent: boolean;
  onChoose: () => void;
  onRename: () => void;
};

function Row({ conversation, isCurrent, onChoose, onRename }: RowProps) {
  const isRunning = useChatStore((state) => conversation.id in state.running);
  const wantsRename = useRef(false);
  const { deleteConversation, restore } = useChatStore.getState();
  const remove = () => {
    deleteConversation(conversation.id);
    toast("Conversation deleted", {
      action: { label: "Undo", onClick: () => restore(conversation) },
    });
  };
  return (
    <div
      className={cn(
        "group my-0.5 flex items-center rounded-md text-sm hover:bg-secondary",
        isCurrent && "bg-accent text-accent-foreground hover:bg-accent",
      )}
    >
      <button
        type="button"
        aria-current={isCurrent ? "true" : undefined}
        onClick={onChoose}
        className="flex min-h-9 min-w-0 flex-1 items-center gap-2 rounded-md px-2 text-left max-md:min-h-11"
      >
        <MessageSquare
          className={cn("size-4 shrink-0 text-muted-foreground", isRunning && "animate-pulse")}
          aria-hidden
        />
        <span className="truncate">{conversation.title || "Untitled"}</span>
        {isRunning && <span className="sr-only">(a reply is being written)</span>}
      </button>
      <DropdownMenu>
        <DropdownMenuTrigger asChild>
          <IconButton
            size="icon-sm"
            label={`Options of ${conversation.title || "Untitled"}`}
            hint="Options"
            className="opacity-0 focus-visible:opacity-100 group-focus-within:opacity-100 group-hover:opacity-100 data-[state=open]:opacity-100 max-md:opacity-100"
          >
            <Ellipsis aria-hidden />
          </IconButton>
        </DropdownMenuTrigger>
        <DropdownMenuContent
          align="end"
          onCloseAutoFocus={(event) => {
            if (!wantsRename.current) return;
            // The row becomes a text box now, which takes the focus instead of the menu's button.
            event.preventDefault();
            wantsRename.current = false;
            onRename();
          }}
        >
          <DropdownMenuItem
            onSelect={() => {
              wantsRename.current = true;
            }}
          >
            <Pencil aria-hidden /> Rename
          </DropdownMenuItem>
          <DropdownMenuItem tone="bad" onSelect={remove}>
            <Trash2 aria-hidden /> Delete
          </DropdownMenuItem>
        </DropdownMenuContent>
      </DropdownMenu>
    </div>
  );
}

function RenameRow({ conversation, onDone }: { conversation: Conversation; onDone: () => void }) {
  const [title, setTitle] = useState(conversation.title);
  const accept = () => {
    useChatStore.getState().rename(conversation.id, title);
    onDone();
  };
  return (
    <form
      className="my-0.5"
      onSubmit={(event) => {
        event.preventDefault();
        accept();
      }}
    >
      <Input
        autoFocus
        aria-label="Title"
        value={title}
        maxLength={200}
        onChange={(event) => setTitle(event.target.value)}
        onFocus={(event) => event.target.select()}
        onBlur={accept}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.preventDefault();
          event.stopPropagation();
          onDone();
        }}
      />
    </form>
  );
}

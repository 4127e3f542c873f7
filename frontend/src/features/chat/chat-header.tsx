import { Download, FileJson, FileText, PanelLeft, Settings2 } from "lucide-react";
import { useActiveModel, useReachableModel } from "@/api/models";
import { Button } from "@/ui/button";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { IconButton } from "@/ui/icon-button";
import { Sheet, SheetContent, SheetTrigger } from "@/ui/sheet";
import { AdapterSwitch } from "./adapter-switch";
import { download, fileName, toJson, toMarkdown } from "./export";
import { changedCount, untouched, useSettings } from "./sampling";
import { SettingsPanel } from "./settings-panel";
import type { Conversation } from "./tree";
import { WarningsButton } from "./warnings-button";

type Props = {
  conversation: Conversation | undefined;
  isListOpen: boolean;
  onToggleList: () => void;
};

export function ChatHeader({ conversation, isListOpen, onToggleList }: Props) {
  const active = useActiveModel();
  return (
    <header className="flex h-12 shrink-0 items-center gap-1 px-3">
      <IconButton
        label={isListOpen ? "Hide conversations" : "Show conversations"}
        aria-expanded={isListOpen}
        onClick={onToggleList}
      >
        <PanelLeft aria-hidden />
      </IconButton>
      <h1 className="min-w-0 flex-1 truncate px-1 font-medium text-sm">
        {conversation?.title || "New chat"}
      </h1>
      <AdapterSwitch />
      {active && <WarningsButton model={active} />}
      {conversation && <ExportMenu conversation={conversation} />}
      <SettingsButton />
    </header>
  );
}

function ExportMenu({ conversation }: { conversation: Conversation }) {
  return (
    <DropdownMenu>
      <DropdownMenuTrigger asChild>
        <IconButton label="Export conversation">
          <Download aria-hidden />
        </IconButton>
      </DropdownMenuTrigger>
      <DropdownMenuContent align="end">
        <DropdownMenuItem
          onSelect={() =>
            download(fileName(conversation, "md"), "text/markdown", toMarkdown(conversation))
          }
        >
          <FileText aria-hidden /> As Markdown
        </DropdownMenuItem>
        <DropdownMenuItem
          onSelect={() =>
            download(fileName(conversation, "json"), "application/json", toJson(conversation))
          }
        >
          <FileJson aria-hidden /> As JSON, with all branches
        </DropdownMenuItem>
      </DropdownMenuContent>
    </DropdownMenu>
  );
}

function SettingsButton() {
  const model = useReachableModel();
  const settings = useSettings(({ byModel }) => (model ? byModel[model.model] : undefined));
  const changed = changedCount(settings ?? untouched);
  return (
    <Sheet>
      <SheetTrigger asChild>
        <Button intent="ghost" size="sm" className="relative max-md:w-10">
          <Settings2 aria-hidden />
          <span className="max-md:sr-only">Chat settings</span>
          {changed > 0 && (
            <span className="rounded-full bg-accent px-1.5 text-accent-foreground text-xs tabular-nums max-md:absolute max-md:top-0 max-md:right-0">
              <span className="sr-only">, </span>
              {changed}
              <span className="sr-only"> changed</span>
            </span>
          )}
        </Button>
      </SheetTrigger>
      <SheetContent side="right" title="Chat settings">
        <SettingsPanel model={model} />
      </SheetContent>
    </Sheet>
  );
}

import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { type LucideIcon, Moon, Play, Power, SquarePen, Sun } from "lucide-react";
import { toast } from "sonner";
import type { ApiError } from "@/api/errors";
import { useLoadModel, useModels, useStatus, useUnloadModel } from "@/api/models";
import { useTheme } from "@/lib/theme";
import { overlayClasses } from "@/ui/dialog";
import { useNewChat } from "./new-chat";
import { places } from "./places";

type Action = { id: string; label: string; detail?: string; icon: LucideIcon; run: () => void };

function useGoActions(): Action[] {
  const navigate = useNavigate();
  const startNewChat = useNewChat();
  return [
    { id: "new-chat", label: "New chat", icon: SquarePen, run: () => void startNewChat() },
    ...places.map(({ to, label, icon }) => ({
      id: `go ${to}`,
      label: `Go to ${label}`,
      icon,
      run: () => void navigate({ to }),
    })),
  ];
}

function useModelActions(): Action[] {
  const models = useModels().data?.data ?? [];
  const engines = useStatus().data?.engines ?? [];
  const load = useLoadModel();
  const unload = useUnloadModel();
  // A promise, because the palette is gone when it fails; that answers are under way is asked about.
  const tell = (error: ApiError) => error.code === "engine_busy" || toast.error(error.message);
  return [
    ...engines
      .filter(({ status: { state } }) => state === "ready")
      .map(({ model, display_name }) => ({
        id: `unload ${model}`,
        label: `Unload ${display_name}`,
        icon: Power,
        run: () => void unload.mutateAsync({ model }).catch(tell),
      })),
    ...models
      .filter(({ status }) => status === "on_disk")
      .map(({ id, display_name, quant }) => ({
        id: `load ${id}`,
        label: `Load ${display_name}`,
        ...(quant === null ? {} : { detail: quant }),
        icon: Play,
        run: () => load(id),
      })),
  ];
}

function useThemeAction(): Action {
  const { theme, choose } = useTheme();
  return theme === "dark"
    ? { id: "theme", label: "Use the light theme", icon: Sun, run: () => choose("light") }
    : { id: "theme", label: "Use the dark theme", icon: Moon, run: () => choose("dark") };
}

export function CommandPalette({ onClose }: { onClose: () => void }) {
  const groups = [
    { title: "Go", actions: useGoActions() },
    { title: "Models", actions: useModelActions() },
    { title: "Appearance", actions: [useThemeAction()] },
  ];
  return (
    <Command.Dialog
      open
      onOpenChange={(open) => open || onClose()}
      label="Commands"
      loop
      overlayClassName={overlayClasses}
      contentClassName="-translate-x-1/2 fixed top-[12vh] left-1/2 z-50 w-[min(36rem,calc(100vw-1.5rem))] overflow-hidden rounded-xl border bg-popover text-popover-foreground shadow-float"
    >
      <Command.Input
        placeholder="What do you want to do?"
        className="h-13 w-full border-b bg-transparent px-4 outline-none placeholder:text-muted-foreground"
      />
      <Command.List className="max-h-[min(26rem,60dvh)] overflow-y-auto p-2">
        <Command.Empty className="py-8 text-center text-muted-foreground text-sm">
          Nothing is called so.
        </Command.Empty>
        {groups.map(
          ({ title, actions }) =>
            actions.length > 0 && (
              <Command.Group
                key={title}
                heading={title}
                className="[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:py-2 [&_[cmdk-group-heading]]:text-muted-foreground [&_[cmdk-group-heading]]:text-xs"
              >
                {actions.map(({ id, label, detail, icon: Icon, run }) => (
                  <Command.Item
                    key={id}
                    value={`${label} ${id}`}
                    onSelect={() => {
                      onClose();
                      run();
                    }}
                    className="flex min-h-11 cursor-default select-none items-center gap-3 rounded-lg px-2.5 text-sm data-[selected=true]:bg-accent data-[selected=true]:text-accent-foreground"
                  >
                    <Icon className="size-4 shrink-0 text-muted-foreground" aria-hidden />
                    <span className="truncate">{label}</span>
                    {detail && <span className="text-muted-foreground text-xs">{detail}</span>}
                  </Command.Item>
                ))}
              </Command.Group>
            ),
        )}
      </Command.List>
    </Command.Dialog>
  );
}

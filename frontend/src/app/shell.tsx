import { Outlet } from "@tanstack/react-router";
import { Search } from "lucide-react";
import { lazy, Suspense } from "react";
import { useFollowLoads } from "@/api/models";
import { ModelPicker } from "@/features/models/model-picker";
import { IconButton } from "@/ui/icon-button";
import { ConnectionNote } from "./connection-note";
import { usePaletteShortcut } from "./palette-shortcut";
import { PhoneMenu } from "./phone-menu";
import { Rail } from "./rail";

const CommandPalette = lazy(() =>
  import("./command-palette").then((module) => ({ default: module.CommandPalette })),
);

export function Shell() {
  useFollowLoads();
  const palette = usePaletteShortcut();
  return (
    <div className="flex h-dvh">
      <a
        href="#content"
        className="-translate-y-20 fixed top-3 left-3 z-50 rounded-md bg-primary px-4 py-2 font-medium text-primary-foreground text-sm focus:translate-y-0"
      >
        Skip to the content
      </a>
      <Rail />
      <div className="flex min-w-0 flex-1 flex-col">
        <header className="flex h-14 shrink-0 items-center gap-1 border-b px-2 md:px-3">
          <PhoneMenu />
          <div className="flex min-w-0 flex-1">
            <ModelPicker />
          </div>
          <IconButton
            label="Search and commands"
            hint="Search and commands (Ctrl K)"
            onClick={palette.open}
          >
            <Search aria-hidden />
          </IconButton>
        </header>
        <ConnectionNote />
        <main id="content" tabIndex={-1} className="min-h-0 flex-1">
          <Outlet />
        </main>
      </div>
      {palette.isOpen && (
        <Suspense>
          <CommandPalette onClose={palette.close} />
        </Suspense>
      )}
    </div>
  );
}

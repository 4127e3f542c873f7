import { Link } from "@tanstack/react-router";
import { SquarePen } from "lucide-react";
import { IconButton } from "@/ui/icon-button";
import { Mark } from "./brand";
import { useNewChat } from "./new-chat";
import { places } from "./places";
import { ThemeToggle } from "./theme-toggle";

/** The way around on a desktop; a phone has it in a sheet. */
export function Rail() {
  const startNewChat = useNewChat();
  return (
    <nav
      aria-label="Main"
      className="flex w-20 shrink-0 flex-col items-center gap-3 border-r bg-sidebar py-3 text-sidebar-foreground max-md:hidden"
    >
      <Link to="/" className="flex flex-col items-center gap-1 rounded-lg px-1 py-1">
        <Mark className="size-8" />
        <span className="font-semibold text-xs tracking-tight">Eloquio</span>
      </Link>
      <IconButton
        label="New chat"
        side="right"
        intent="secondary"
        onClick={() => void startNewChat()}
      >
        <SquarePen aria-hidden />
      </IconButton>
      <div className="flex flex-1 flex-col gap-1">
        {places.map(({ to, label, icon: Icon }) => (
          <Link
            key={to}
            to={to}
            activeOptions={{ exact: to === "/" }}
            className="flex w-16 flex-col items-center gap-1 rounded-lg py-2 text-muted-foreground text-xs transition-colors hover:bg-secondary hover:text-foreground data-[status=active]:bg-accent data-[status=active]:font-medium data-[status=active]:text-accent-foreground"
          >
            <Icon className="size-5" aria-hidden />
            {label}
          </Link>
        ))}
      </div>
      <ThemeToggle side="right" />
    </nav>
  );
}

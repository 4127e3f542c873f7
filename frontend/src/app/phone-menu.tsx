import { Link } from "@tanstack/react-router";
import { Menu, SquarePen } from "lucide-react";
import { useState } from "react";
import { Button } from "@/ui/button";
import { IconButton } from "@/ui/icon-button";
import { Sheet, SheetContent, SheetTrigger } from "@/ui/sheet";
import { Mark } from "./brand";
import { useNewChat } from "./new-chat";
import { places } from "./places";
import { ThemeToggle } from "./theme-toggle";

export function PhoneMenu() {
  const startNewChat = useNewChat();
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <Sheet open={isOpen} onOpenChange={setOpen}>
      <SheetTrigger asChild>
        <IconButton label="Menu" className="md:hidden">
          <Menu aria-hidden />
        </IconButton>
      </SheetTrigger>
      <SheetContent side="left" title="Menu" heading={<Brand />} className="w-72">
        <div className="flex h-full flex-col gap-4">
          <Button
            intent="secondary"
            className="h-11"
            onClick={() => {
              close();
              void startNewChat();
            }}
          >
            <SquarePen aria-hidden /> New chat
          </Button>
          <nav aria-label="Main" className="flex flex-1 flex-col gap-1">
            {places.map(({ to, label, icon: Icon }) => (
              <Link
                key={to}
                to={to}
                activeOptions={{ exact: to === "/" }}
                onClick={close}
                className="flex min-h-12 items-center gap-3 rounded-lg px-3 text-muted-foreground data-[status=active]:bg-accent data-[status=active]:font-medium data-[status=active]:text-accent-foreground"
              >
                <Icon className="size-5" aria-hidden />
                {label}
              </Link>
            ))}
          </nav>
          <ThemeToggle />
        </div>
      </SheetContent>
    </Sheet>
  );
}

function Brand() {
  return (
    <span className="flex items-center gap-2.5 font-semibold">
      <Mark className="size-8" /> Eloquio
    </span>
  );
}

import { TriangleAlert } from "lucide-react";
import type { Schemas } from "@/api/client";
import { Button } from "@/ui/button";
import { Popover, PopoverContent, PopoverTrigger } from "@/ui/popover";

/** What of the model that answers isn't as it was asked for; nothing where all is. */
export function WarningsButton({ model }: { model: Schemas["LoadedModel"] }) {
  const { warnings, display_name: name } = model;
  if (warnings.length === 0) return null;
  const noun = warnings.length === 1 ? "warning" : "warnings";
  return (
    <Popover>
      <PopoverTrigger asChild>
        <Button
          intent="ghost"
          size="sm"
          className="gap-1.5 text-busy"
          aria-label={`${warnings.length} ${noun} about ${name}`}
        >
          <TriangleAlert aria-hidden />
          <span className="tabular-nums">{warnings.length}</span>
          <span className="max-md:hidden">{noun}</span>
        </Button>
      </PopoverTrigger>
      <PopoverContent
        align="end"
        aria-label={`Warnings about ${name}`}
        className="w-[min(24rem,calc(100vw-1rem))] p-4"
      >
        <p className="pb-2 font-medium text-sm">How {name} was loaded</p>
        <ul className="space-y-2 text-sm [overflow-wrap:anywhere]">
          {warnings.map((warning) => (
            <li key={warning} className="border-l-2 border-busy pl-3">
              {warning}
            </li>
          ))}
        </ul>
      </PopoverContent>
    </Popover>
  );
}

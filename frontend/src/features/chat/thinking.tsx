import { Brain, ChevronDown } from "lucide-react";
import { useState } from "react";
import { formatSeconds } from "@/lib/format";
import { cn } from "@/ui/cn";
import { LazyMarkdown } from "./lazy-markdown";

type Props = { text: string; seconds: number | null; isThinking: boolean };

/** The model's reasoning: open while it thinks, closed when the answer begins, unless told. */
export function Thinking({ text, seconds, isThinking }: Props) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const isOpen = chosen ?? isThinking;
  return (
    <section className="rounded-lg border bg-muted/50 text-sm">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setChosen(!isOpen)}
        className="flex min-h-9 w-full items-center gap-2 rounded-lg px-3 text-left text-muted-foreground hover:text-foreground max-md:min-h-11"
      >
        <Brain className={cn("size-4", isThinking && "animate-pulse")} aria-hidden />
        <span>
          {isThinking
            ? "Thinking…"
            : seconds === null
              ? "Thinking"
              : `Thought for ${formatSeconds(seconds)}`}
        </span>
        <ChevronDown
          className={cn("ml-auto size-4 transition-transform", isOpen && "rotate-180")}
          aria-hidden
        />
      </button>
      {isOpen && (
        <div className="border-t px-3 py-2.5 text-muted-foreground">
          <LazyMarkdown text={text} isStreaming={isThinking} />
        </div>
      )}
    </section>
  );
}

import { assertNever } from "@/lib/assert-never";
import { formatCount, formatMilliseconds, formatTokensPerSecond } from "@/lib/format";
import { nameOfAdapter } from "./adapters";
import type { Outcome, Reply } from "./tree";

/** What ended a reply, where it wasn't the model itself. */
function endOf(outcome: Outcome): string | null {
  switch (outcome.state) {
    case "finished":
      return reasonInWords(outcome.reason);
    case "stopped":
      return "stopped";
    case "interrupted":
      return "interrupted";
    case "streaming":
    case "failed":
      return null;
    default:
      return assertNever(outcome);
  }
}

function reasonInWords(reason: string): string | null {
  switch (reason) {
    case "stop":
      return null;
    case "length":
      return "reached the token limit";
    case "content_filter":
      return "ended by a content filter";
    case "tool_calls":
      return "ended to call a tool";
    default:
      return `ended: ${reason}`;
  }
}

/** Speed, time to the first token, length, the model that answered, and why it ended. */
export function ReplyFacts({ reply: { outcome, stats, model, run } }: { reply: Reply }) {
  const end = endOf(outcome);
  const adapter = run?.asked.settings.adapter;
  const facts: string[] = [];
  if (stats) {
    if (stats.tokensPerSecond !== null) facts.push(formatTokensPerSecond(stats.tokensPerSecond));
    if (stats.firstTokenSeconds !== null)
      facts.push(`first token after ${formatMilliseconds(stats.firstTokenSeconds * 1000)}`);
    const counted = `${formatCount(stats.tokens)} ${stats.tokens === 1 ? "token" : "tokens"}`;
    facts.push(stats.isCounted ? counted : `about ${counted}`);
  }
  return (
    <p className="flex min-w-0 flex-wrap items-center gap-x-2 text-muted-foreground text-xs tabular-nums">
      {end && <span className="font-medium text-busy">{end}</span>}
      {facts.map((fact) => (
        <span key={fact} className="whitespace-nowrap">
          {fact}
        </span>
      ))}
      <span className="[overflow-wrap:anywhere]">{model}</span>
      {adapter !== undefined && (
        <span className="[overflow-wrap:anywhere]">{nameOfAdapter(adapter)}</span>
      )}
    </p>
  );
}

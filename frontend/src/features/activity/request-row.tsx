import type { Schemas } from "@/api/client";
import { formatCount, formatMilliseconds, formatTokensPerSecond } from "@/lib/format";
import { formatStart, tokensPerSecond } from "./phases";
import { RequestBadge } from "./request-badge";
import { TimelineBar } from "./timeline-bar";

export function RequestRow({ request }: { request: Schemas["RequestCard"] }) {
  const { model, route, timeline } = request;
  return (
    <li className="space-y-2 px-4 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <RequestBadge request={request} />
        <span className="min-w-0 font-medium [overflow-wrap:anywhere]">{model ?? "No model"}</span>
        <code className="text-muted-foreground text-xs">{route}</code>
        <time
          dateTime={new Date(request.started * 1000).toISOString()}
          className="ml-auto text-muted-foreground text-xs tabular-nums"
        >
          {formatStart(request.started, new Date())}
        </time>
      </div>
      <p className="flex flex-wrap gap-x-3 text-muted-foreground text-xs tabular-nums empty:hidden">
        {factsOf(request).map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
        {timeline.total_ms !== null && <span>{formatMilliseconds(timeline.total_ms)} in all</span>}
      </p>
      <TimelineBar request={request} />
    </li>
  );
}

function factsOf(request: Schemas["RequestCard"]): string[] {
  const { usage } = request;
  if (usage === null) return [];
  const cached = usage.cached_tokens > 0 ? ` (${formatCount(usage.cached_tokens)} cached)` : "";
  const speed = tokensPerSecond(request);
  return [
    `${formatCount(usage.prompt_tokens)} tokens in${cached}`,
    `${formatCount(usage.completion_tokens)} out`,
    ...(speed === null ? [] : [formatTokensPerSecond(speed)]),
  ];
}

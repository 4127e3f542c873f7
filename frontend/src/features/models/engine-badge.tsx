import type { Schemas } from "@/api/client";
import { assertNever } from "@/lib/assert-never";
import { formatSeconds } from "@/lib/format";
import { Badge } from "@/ui/badge";

export function EngineBadge({ status }: { status: Schemas["EngineStatus"]["status"] }) {
  switch (status.state) {
    case "ready":
      return <Badge tone="good">Ready</Badge>;
    case "starting":
      return <Badge tone="busy">Loading {formatSeconds(status.elapsed_seconds)}</Badge>;
    case "failed":
      return <Badge tone="bad">Failed</Badge>;
    case "stopping":
      return <Badge tone="busy">Stopping</Badge>;
    case "stopped":
      return <Badge>Stopped</Badge>;
    default:
      return assertNever(status);
  }
}

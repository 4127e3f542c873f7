import type { Schemas } from "@/api/client";
import { assertNever } from "@/lib/assert-never";
import { Badge } from "@/ui/badge";

/** How a request ended, or that it hasn't. */
export function RequestBadge({ request }: { request: Schemas["RequestCard"] }) {
  const { status, finish_reason, error_code, http_status } = request;
  switch (status) {
    case "running":
      return <Badge tone="busy">Running</Badge>;
    case "completed":
      return <Badge tone="good">{finish_reason === "length" ? "At its limit" : "Done"}</Badge>;
    case "cancelled":
      return <Badge>Cancelled</Badge>;
    case "client_left":
      return <Badge>Client left</Badge>;
    case "failed":
      return (
        <Badge tone="bad" className="min-w-0 shrink whitespace-normal [overflow-wrap:anywhere]">
          {[http_status, error_code ?? "failed"].filter(Boolean).join(" ")}
        </Badge>
      );
    default:
      return assertNever(status);
  }
}

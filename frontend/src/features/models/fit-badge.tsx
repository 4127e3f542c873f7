import { assertNever } from "@/lib/assert-never";
import { Badge } from "@/ui/badge";
import type { Fit } from "./fit";

export function FitBadge({ fit }: { fit: Fit }) {
  switch (fit) {
    case "fits":
      return <Badge tone="good">Fits</Badge>;
    case "tight":
      return <Badge tone="busy">Tight</Badge>;
    case "too_large":
      return <Badge tone="bad">Too large</Badge>;
    case "unknown":
      return null;
    default:
      return assertNever(fit);
  }
}

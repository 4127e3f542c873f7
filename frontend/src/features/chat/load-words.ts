import type { LoadState } from "@/api/models";
import { formatBytes } from "@/lib/format";

/** How far a load is, in brackets; nothing while nothing is known. */
export function amountOf({ progress }: Extract<LoadState, { state: "loading" }>): string {
  if (!progress?.total_bytes) return "";
  return `(${formatBytes(progress.bytes)} of ${formatBytes(progress.total_bytes)})`;
}

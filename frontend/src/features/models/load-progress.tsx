import type { Schemas } from "@/api/client";
import { useUnloadModel } from "@/api/models";
import { assertNever } from "@/lib/assert-never";
import { formatBytes, formatSeconds } from "@/lib/format";
import { Button } from "@/ui/button";
import { Progress } from "@/ui/progress";

type Step = Schemas["LoadProgress"];

function phaseInWords(phase: Step["phase"]): string {
  switch (phase) {
    case "idle":
    case "resolving":
      return "Looking for the model";
    case "downloading":
      return "Downloading";
    case "starting":
      return "Reading the weights";
    case "warming":
      return "Warming up";
    case "ready":
      return "Ready";
    case "failed":
      return "Failed";
    default:
      return assertNever(phase);
  }
}

function amount({ bytes, total_bytes: total }: Step): string | null {
  if (total > 0) return `${formatBytes(bytes)} of ${formatBytes(total)}`;
  return bytes > 0 ? formatBytes(bytes) : null;
}

function details(step: Step): string {
  const rate = step.rate_bytes_per_s ? `${formatBytes(step.rate_bytes_per_s)}/s` : null;
  const left = step.eta_s ? `about ${formatSeconds(step.eta_s)} left` : null;
  return [amount(step), rate, formatSeconds(step.elapsed_s), left].filter(Boolean).join(" · ");
}

type Props = { model: string; progress: Step | null };

/** A load under way, with a way out of it. */
export function LoadProgress({ model, progress }: Props) {
  const unload = useUnloadModel();
  const phase = phaseInWords(progress?.phase ?? "resolving");
  const share = progress?.total_bytes ? progress.bytes / progress.total_bytes : null;
  return (
    <section aria-label="Loading" className="space-y-3 rounded-xl border bg-card p-5 shadow-low">
      <div className="flex items-start justify-between gap-4">
        <div className="min-w-0">
          <p className="font-medium text-sm [overflow-wrap:anywhere]">{model}</p>
          <p className="text-muted-foreground text-sm" role="status">
            {unload.isPending ? "Cancelling" : progress?.message || phase}
          </p>
        </div>
        <Button
          intent="secondary"
          size="sm"
          disabled={unload.isPending}
          onClick={() => unload.mutate({ model, force: true })}
        >
          Cancel
        </Button>
      </div>
      <Progress aria-label={`Loading ${model}`} value={share} />
      {progress && (
        <p className="text-muted-foreground text-xs tabular-nums">{details(progress)}</p>
      )}
      {unload.error && <p className="text-bad text-sm">{unload.error.message}</p>}
    </section>
  );
}

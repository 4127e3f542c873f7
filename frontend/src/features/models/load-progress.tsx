import { Check } from "lucide-react";
import type { Schemas } from "@/api/client";
import { useUnloadModel } from "@/api/models";
import { assertNever } from "@/lib/assert-never";
import { formatBytes, formatSeconds } from "@/lib/format";
import { Button } from "@/ui/button";
import { Progress } from "@/ui/progress";
import { Spinner } from "@/ui/spinner";

type Step = Schemas["LoadProgress"];
type Phase = Step["phase"];

function phaseInWords(phase: Phase): string {
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

/** A load under way, with a way out of it at any point. */
export function LoadProgress({ model, progress }: Props) {
  const unload = useUnloadModel();
  const phase = progress?.phase ?? "resolving";
  const share = progress?.total_bytes ? progress.bytes / progress.total_bytes : null;
  return (
    <section aria-label="Loading" className="space-y-3 rounded-xl border bg-card p-5 shadow-low">
      <div className="flex items-start justify-between gap-4">
        <div className="min-w-0">
          <p className="font-medium text-sm [overflow-wrap:anywhere]">{model}</p>
          <p className="text-muted-foreground text-sm" role="status">
            {unload.isPending ? "Cancelling" : progress?.message || phaseInWords(phase)}
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
      <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2">
        <Phases current={phase} />
        {progress && (
          <p className="text-muted-foreground text-xs tabular-nums">{details(progress)}</p>
        )}
      </div>
      {unload.error && <p className="text-bad text-sm">{unload.error.message}</p>}
    </section>
  );
}

const steps: readonly { phase: Phase; name: string }[] = [
  { phase: "resolving", name: "Find" },
  { phase: "downloading", name: "Download" },
  { phase: "starting", name: "Read" },
  { phase: "warming", name: "Warm up" },
];

/** Where on its way the load is; most are of models that need no download. */
function Phases({ current }: { current: Phase }) {
  const way = steps.filter(({ phase }) => phase !== "downloading" || current === phase);
  const at = current === "idle" ? 0 : way.findIndex(({ phase }) => phase === current);
  // Ready and failed lie beyond the way, and are only there for a moment.
  if (at < 0) return <span />;
  return (
    <ol aria-label="Phases" className="flex flex-wrap gap-x-4 gap-y-1 text-xs">
      {way.map(({ phase, name }, index) => (
        <li
          key={phase}
          aria-current={index === at ? "step" : undefined}
          className={`flex items-center gap-1.5 ${index === at ? "font-medium" : "text-muted-foreground"}`}
        >
          {index === at && <Spinner className="size-3" />}
          {index < at && <Check className="size-3" aria-hidden />}
          {name}
          {index < at && <span className="sr-only"> done</span>}
        </li>
      ))}
    </ol>
  );
}

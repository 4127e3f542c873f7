import { Hourglass } from "lucide-react";
import type { Schemas } from "@/api/client";
import { type LoadState, useLoadState, useStatus, useUnloadModel } from "@/api/models";
import { Button } from "@/ui/button";
import { ErrorNote } from "@/ui/error-note";
import { EngineCard } from "./engine-card";
import { LedgerBar } from "./ledger-bar";

type Props = { onOptions: (engine: Schemas["EngineStatus"]) => void };

/** Every engine there is, and the memory that they share. */
export function Running({ onOptions }: Props) {
  const { data: status, error, dataUpdatedAt } = useStatus();
  const loading = useLoadState();
  if (error && !status) return <ErrorNote error={error} />;
  if (!status) return null;
  const shown = status.engines.filter((engine) => !isShownAbove(engine, loading));
  const waiting = status.loading.filter(
    (model) =>
      !status.engines.some((engine) => engine.model === model) &&
      !(loading.state === "loading" && loading.model === model),
  );
  return (
    <section aria-labelledby="running" className="space-y-3">
      <h2 id="running" className="font-semibold text-base">
        Running
      </h2>
      <LedgerBar status={status} />
      {shown.map((engine) => (
        <EngineCard
          key={engine.model}
          engine={engine}
          toldAt={dataUpdatedAt}
          onOptions={() => onOptions(engine)}
        />
      ))}
      {waiting.map((model) => (
        <WaitingLoad key={model} model={model} />
      ))}
      {status.engines.length === 0 && loading.state !== "loading" && (
        <p className="rounded-xl border border-dashed px-5 py-6 text-muted-foreground text-sm">
          No model is loaded. Load one below to chat with it.
        </p>
      )}
    </section>
  );
}

/** What is loading, and what has just failed to load, stand above with more to say. */
function isShownAbove({ model, status }: Schemas["EngineStatus"], loading: LoadState): boolean {
  if (loading.state === "idle" || loading.model !== model) return status.state === "stopped";
  return loading.state === "loading" ? status.state === "starting" : status.state === "failed";
}

function WaitingLoad({ model }: { model: string }) {
  const unload = useUnloadModel();
  return (
    <div className="flex flex-wrap items-center gap-3 rounded-xl border bg-card px-5 py-4 shadow-low">
      <Hourglass className="size-4 text-muted-foreground" aria-hidden />
      <p className="min-w-0 flex-1 text-sm [overflow-wrap:anywhere]">
        {model} <span className="text-muted-foreground">waits for its turn to be loaded.</span>
      </p>
      <Button
        intent="secondary"
        size="sm"
        aria-label={`Cancel the load of ${model}`}
        disabled={unload.isPending}
        onClick={() => unload.mutate({ model, force: true })}
      >
        Cancel
      </Button>
    </div>
  );
}

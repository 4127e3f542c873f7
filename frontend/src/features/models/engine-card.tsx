import { toast } from "sonner";
import type { Schemas } from "@/api/client";
import { parseError } from "@/api/errors";
import { useLoadModel, useUnloadModel } from "@/api/models";
import { formatBytes, formatCount, formatSeconds } from "@/lib/format";
import { Button } from "@/ui/button";
import { ErrorNote } from "@/ui/error-note";
import { EngineBadge } from "./engine-badge";
import { MemoryBar } from "./memory-bar";
import { Warnings } from "./memory-estimate";

type Props = {
  engine: Schemas["EngineStatus"];
  onReload: () => void;
};

/** One engine: what it runs, what it costs, and how to end it. */
export function EngineCard({ engine, onReload }: Props) {
  return (
    <article
      aria-label={engine.display_name}
      className="space-y-4 rounded-xl border bg-card p-5 shadow-low"
    >
      <header className="flex flex-wrap items-start justify-between gap-3">
        <div className="min-w-0 space-y-0.5">
          <div className="flex flex-wrap items-center gap-2">
            <h3 className="font-semibold [overflow-wrap:anywhere]">{engine.display_name}</h3>
            <EngineBadge status={engine.status} />
          </div>
          <p className="text-muted-foreground text-sm [overflow-wrap:anywhere]">{engine.model}</p>
        </div>
        <EngineActions engine={engine} onReload={onReload} />
      </header>
      <Warnings warnings={engine.loaded?.warnings ?? []} />
      <EngineFailure engine={engine} />
      <MemoryBar memory={engine.memory} roomBytes={null} />
      <Facts engine={engine} />
    </article>
  );
}

function EngineActions({ engine, onReload }: Props) {
  const unload = useUnloadModel();
  const end = (force: boolean) =>
    unload.mutate(
      { model: engine.model, force },
      {
        onError: (error) =>
          error.code === "engine_busy"
            ? toast.error(error.message, {
                action: { label: "End the answers and unload", onClick: () => end(true) },
              })
            : toast.error(error.message, { description: error.nextStep }),
      },
    );
  return (
    <div className="flex flex-wrap gap-2">
      <Button intent="secondary" size="sm" onClick={onReload}>
        Load options
      </Button>
      <Button intent="secondary" size="sm" disabled={unload.isPending} onClick={() => end(false)}>
        {unload.isPending ? "Unloading" : "Unload"}
      </Button>
    </div>
  );
}

function EngineFailure({ engine }: { engine: Schemas["EngineStatus"] }) {
  const load = useLoadModel();
  const error =
    engine.status.state === "failed"
      ? parseError(engine.status.error)
      : engine.restarts > 0
        ? parseError(engine.last_error)
        : null;
  if (!error) return null;
  const isDown = engine.status.state === "failed";
  return (
    <ErrorNote
      title={isDown ? "The engine has stopped" : "The engine had to be started again"}
      error={error}
      actions={
        isDown && (
          <Button size="sm" onClick={() => load(engine.model)}>
            Try again
          </Button>
        )
      }
    />
  );
}

function contextInWords({
  context_length: context,
  native_context_length: native,
}: Schemas["LoadedModel"]) {
  if (native > 0 && native !== context)
    return `${formatCount(context)} of ${formatCount(native)} tokens`;
  return `${formatCount(context)} tokens`;
}

function Facts({ engine }: { engine: Schemas["EngineStatus"] }) {
  const { loaded } = engine;
  const facts: [string, string | null][] = [
    ["Context", loaded && contextInWords(loaded)],
    ["Quant", loaded?.gguf_variant ?? null],
    ["KV cache", loaded?.cache_type_kv ?? null],
    ["In memory now", engine.resident_bytes === null ? null : formatBytes(engine.resident_bytes)],
    ["Answering", answering(engine)],
    ["Running for", engine.uptime_s === null ? null : formatSeconds(engine.uptime_s)],
    ["Loaded in", loaded && formatSeconds(loaded.load_seconds)],
    ["Device", engine.memory.device],
  ];
  return (
    <dl className="grid grid-cols-2 gap-x-6 gap-y-3 text-sm sm:grid-cols-4">
      {facts.map(
        ([name, value]) =>
          value !== null && (
            <div key={name}>
              <dt className="text-muted-foreground text-xs">{name}</dt>
              <dd className="tabular-nums [overflow-wrap:anywhere]">{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

function answering({ busy, queued }: Schemas["EngineStatus"]): string {
  const now = busy === 0 ? "nothing" : busy === 1 ? "1 request" : `${busy} requests`;
  return queued > 0 ? `${now}, ${queued} waiting` : now;
}

import { Pin, RotateCcw } from "lucide-react";
import type { Schemas } from "@/api/client";
import { parseError } from "@/api/errors";
import { optionsOfLoad } from "@/api/load-requests";
import { useLoadModel } from "@/api/models";
import { formatBytes, formatSeconds } from "@/lib/format";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { ErrorNote } from "@/ui/error-note";
import { Progress } from "@/ui/progress";
import { EngineActions } from "./engine-actions";
import { EngineBadge } from "./engine-badge";
import { EngineFacts } from "./engine-facts";
import { MemoryBar } from "./memory-bar";
import { Warnings } from "./warnings";

type Engine = Schemas["EngineStatus"];

type Props = {
  engine: Engine;
  /** When the server said so, in milliseconds. */
  toldAt: number;
  onOptions: () => void;
};

/** One engine: what it runs, how it is, what it costs, and how to end it. */
export function EngineCard({ engine, toldAt, onOptions }: Props) {
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
            {engine.pinned && (
              <Badge>
                <Pin className="size-3" fill="currentColor" aria-hidden /> Pinned
              </Badge>
            )}
          </div>
          <p className="text-muted-foreground text-sm [overflow-wrap:anywhere]">{engine.model}</p>
        </div>
        <EngineActions engine={engine} onOptions={onOptions} />
      </header>
      <Start engine={engine} />
      <Warnings warnings={engine.loaded?.warnings ?? []} />
      <Failure engine={engine} />
      <Restarts engine={engine} />
      <MemoryBar memory={engine.memory} roomBytes={null} word="planned" />
      <EngineFacts engine={engine} toldAt={toldAt} />
    </article>
  );
}

function Start({ engine: { status, display_name: name } }: { engine: Engine }) {
  if (status.state !== "starting") return null;
  const { loaded_bytes: bytes, total_bytes: total, elapsed_seconds: elapsed } = status;
  const amount = total > 0 ? `${formatBytes(bytes)} of ${formatBytes(total)}` : null;
  const phase = status.phase === "warming" ? "Warming up" : "Reading the weights";
  return (
    <div className="space-y-2">
      <Progress aria-label={`Loading ${name}`} value={total > 0 ? bytes / total : null} />
      <p className="text-muted-foreground text-xs tabular-nums">
        {[phase, amount, formatSeconds(elapsed)].filter(Boolean).join(" · ")}
      </p>
    </div>
  );
}

function Failure({ engine }: { engine: Engine }) {
  const load = useLoadModel();
  const error = engine.status.state === "failed" ? parseError(engine.status.error) : null;
  if (!error) return null;
  return (
    <ErrorNote
      title="The engine has stopped"
      error={error}
      actions={
        <Button size="sm" onClick={() => load(engine.model, optionsOfLoad(engine.model))}>
          Load again
        </Button>
      }
    />
  );
}

/** A crash that was mended by itself: worth knowing of, not worth an alarm. */
function Restarts({ engine }: { engine: Engine }) {
  if (engine.restarts === 0 || engine.status.state === "failed") return null;
  const error = parseError(engine.last_error);
  const times = engine.restarts === 1 ? "" : ` ${engine.restarts} times, last`;
  const verb = engine.status.state === "starting" ? "Being started again" : "Started again";
  return (
    <div className="flex gap-2 rounded-md bg-secondary px-3 py-2 text-sm">
      <RotateCcw className="mt-0.5 size-4 shrink-0 text-muted-foreground" aria-hidden />
      <div className="min-w-0 space-y-1 [overflow-wrap:anywhere]">
        <p>
          {verb}
          {times} after a crash{error ? `: ${error.message}` : "."}
        </p>
        {error?.evidence && (
          <details>
            <summary className="text-muted-foreground">The engine's last words</summary>
            <pre className="mt-1 max-h-40 overflow-auto whitespace-pre-wrap font-mono text-xs">
              {error.evidence}
            </pre>
          </details>
        )}
      </div>
    </div>
  );
}

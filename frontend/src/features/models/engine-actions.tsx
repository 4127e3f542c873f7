import { Pin, Timer } from "lucide-react";
import type { Schemas } from "@/api/client";
import type { ApiError } from "@/api/errors";
import { useKeepModel, useUnloadModel } from "@/api/models";
import { Button } from "@/ui/button";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { idleTimes } from "./load-options";

type Engine = Schemas["EngineStatus"];

/** What an unload means to the person, by what the engine is at. */
const endings = {
  starting: "Cancel",
  ready: "Unload",
  failed: "Dismiss",
  stopped: "Dismiss",
} as const;

type Props = {
  engine: Engine;
  onOptions: () => void;
};

export function EngineActions({ engine, onOptions }: Props) {
  const { state } = engine.status;
  return (
    <div className="flex flex-wrap gap-2">
      {engine.loaded && <KeepingButtons engine={engine} />}
      <Button intent="secondary" size="sm" onClick={onOptions}>
        Load options
      </Button>
      {state !== "stopping" && <UnloadButton engine={engine} label={endings[state]} />}
    </div>
  );
}

/** How long it stays: until somebody unloads it, or until nobody has asked it for so long. */
function KeepingButtons({ engine: { model, pinned: isPinned } }: { engine: Engine }) {
  const keep = useKeepModel();
  return (
    <>
      <Button
        intent="secondary"
        size="sm"
        aria-pressed={isPinned}
        title="A pinned model stays until you unload it"
        disabled={keep.isPending}
        className="aria-pressed:border-ring aria-pressed:bg-accent aria-pressed:text-accent-foreground"
        onClick={() => keep.mutate({ model, keeping: { pin: !isPinned } })}
      >
        <Pin fill={isPinned ? "currentColor" : "none"} aria-hidden /> Pin
      </Button>
      {!isPinned && (
        <DropdownMenu>
          <DropdownMenuTrigger asChild>
            <Button intent="secondary" size="sm">
              <Timer aria-hidden /> Unload after…
            </Button>
          </DropdownMenuTrigger>
          <DropdownMenuContent align="start">
            {idleTimes.map(({ seconds, label }) => (
              <DropdownMenuItem
                key={seconds}
                onSelect={() => keep.mutate({ model, keeping: { ttl_s: seconds } })}
              >
                {label}
              </DropdownMenuItem>
            ))}
          </DropdownMenuContent>
        </DropdownMenu>
      )}
      {keep.error && <Refusal error={keep.error} />}
    </>
  );
}

/** Unloads what nobody waits for; a refusal because of answers under way becomes a question. */
function UnloadButton({ engine, label }: { engine: Engine; label: string }) {
  const unload = useUnloadModel();
  // A start that is cancelled ends no answer that anybody reads.
  const force = engine.status.state === "starting";
  return (
    <>
      <Button
        intent="secondary"
        size="sm"
        disabled={unload.isPending}
        onClick={() => unload.mutate({ model: engine.model, force })}
      >
        {unload.isPending ? "Unloading" : label}
      </Button>
      {unload.error && unload.error.code !== "engine_busy" && <Refusal error={unload.error} />}
    </>
  );
}

function Refusal({ error }: { error: ApiError }) {
  return (
    <p role="alert" className="basis-full text-bad text-sm">
      {error.message} {error.nextStep}
    </p>
  );
}

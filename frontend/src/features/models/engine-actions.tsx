import { Pin } from "lucide-react";
import type { Schemas } from "@/api/client";
import type { ApiError } from "@/api/errors";
import { usePinModel, useUnloadModel } from "@/api/models";
import { Button } from "@/ui/button";

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
      {engine.loaded && <PinButton loaded={engine.loaded} isPinned={engine.pinned} />}
      <Button intent="secondary" size="sm" onClick={onOptions}>
        Load options
      </Button>
      {state !== "stopping" && <UnloadButton engine={engine} label={endings[state]} />}
    </div>
  );
}

type PinProps = { loaded: Schemas["LoadedModel"]; isPinned: boolean };

function PinButton({ loaded, isPinned }: PinProps) {
  const pin = usePinModel();
  return (
    <>
      <Button
        intent="secondary"
        size="sm"
        aria-pressed={isPinned}
        title="A pinned model stays until you unload it"
        disabled={pin.isPending}
        className="aria-pressed:border-ring aria-pressed:bg-accent aria-pressed:text-accent-foreground"
        onClick={() => pin.mutate({ loaded, pin: !isPinned })}
      >
        <Pin fill={isPinned ? "currentColor" : "none"} aria-hidden /> Pin
      </Button>
      {pin.error && <Refusal error={pin.error} />}
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

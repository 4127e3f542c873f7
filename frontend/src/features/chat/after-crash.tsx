import type { Schemas } from "@/api/client";
import { useStatus } from "@/api/models";
import type { Fault } from "./tree";

/** What became of the engine whose crash ended a reply; nothing where that isn't known any more. */
export function AfterCrash({ model, fault }: { model: string; fault: Fault }) {
  const { data: status } = useStatus();
  const engine = status?.engines.find((candidate) => candidate.model === model);
  const isItsCrash = engine !== undefined && engine.last_error?.code === fault.code;
  const words = isItsCrash ? wordsFor(engine) : null;
  return (
    words && (
      <p role="status" className="self-center">
        {words}
      </p>
    )
  );
}

function wordsFor({ status: { state }, restarts }: Schemas["EngineStatus"]): string | null {
  switch (state) {
    case "starting":
      return "The engine is being started again.";
    case "ready":
      return restarts > 0 ? "The engine was started again; it answers." : null;
    default:
      return null;
  }
}

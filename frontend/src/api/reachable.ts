import type { Schemas } from "./client";

type StatusReply = Schemas["StatusReply"];
type LoadedModel = Schemas["LoadedModel"];

/** The model that a message would reach: it is loaded, or the message has it loaded again. */
export type Reachable = {
  model: string;
  name: string;
  task: LoadedModel["task"];
  /** What its engine told of it; null if this page hasn't seen it loaded. */
  loaded: LoadedModel | null;
};

/** The models that served and weren't unloaded since, with what this page saw of each. */
export type Served = Record<string, LoadedModel | null>;

export type Status = StatusReply & { served: Served };

/** The server's report, with what is kept of the one before. */
export function withServed(status: StatusReply, before: Served): Status {
  const { engines, asleep, loading } = status;
  const served = new Set([
    ...asleep,
    ...engines.filter((engine) => hasServed(engine, before)).map(({ model }) => model),
    // One that is woken is listed as loading only.
    ...loading.filter((model) => model in before),
  ]);
  const seen = (model: string) => loadedIn(status, model) ?? before[model] ?? null;
  return {
    ...status,
    served: Object.fromEntries([...served].map((model) => [model, seen(model)])),
  };
}

function hasServed(engine: Schemas["EngineStatus"], before: Served): boolean {
  if (engine.loaded !== null || engine.restarts > 0) return true;
  return engine.status.state !== "stopping" && engine.model in before;
}

function loadedIn({ engines }: StatusReply, model: string): LoadedModel | null {
  return engines.find((engine) => engine.model === model)?.loaded ?? null;
}

export function activeIn(status: StatusReply): LoadedModel | null {
  return status.active_model === null ? null : loadedIn(status, status.active_model);
}

/** What a message would reach while `loading` is on its way; null if nothing, or only once it is there. */
export function reachableIn(
  status: Status,
  loading: string | null,
  cards: readonly Schemas["ModelCard"][],
): Reachable | null {
  const model = idOfReachable(status, loading);
  if (model === null) return null;
  const loaded = status.served[model] ?? null;
  const described =
    loaded ??
    status.engines.find((engine) => engine.model === model) ??
    cards.find(({ id }) => id === model);
  return described ? { model, name: described.display_name, task: described.task, loaded } : null;
}

function idOfReachable(status: Status, loading: string | null): string | null {
  const active = activeIn(status);
  if (active) return active.model;
  if (loading !== null) return loading in status.served ? loading : null;
  const crashed = status.engines.findLast(({ model }) => model in status.served);
  return crashed?.model ?? status.asleep.at(-1) ?? null;
}

import type { Schemas } from "@/api/client";
import {
  useActiveModel,
  useLoadModel,
  useLoadState,
  useModels,
  useReachableModel,
  useStatus,
} from "@/api/models";
import type { Reachable } from "@/api/reachable";
import { Button } from "@/ui/button";
import { Spinner } from "@/ui/spinner";
import { useChatStore } from "./chat-store";
import { amountOf } from "./load-words";

/** The model to offer when none is loaded: the one that answered last, the built-in, or any. */
export function modelToOffer(
  models: Schemas["ModelCard"][],
  lastUsed: string | undefined,
): Schemas["ModelCard"] | undefined {
  const loadable = models.filter(({ status, task }) => status === "on_disk" && task === "chat");
  return (
    loadable.find(({ id }) => id === lastUsed) ??
    loadable.find(({ source }) => source === "builtin") ??
    loadable[0]
  );
}

function useLastModelUsed(): string | undefined {
  return useChatStore(({ conversations }) => {
    let last: { model: string; createdAt: number } | undefined;
    for (const { messages } of Object.values(conversations))
      for (const message of Object.values(messages))
        if (message.role === "assistant" && message.createdAt > (last?.createdAt ?? 0))
          last = message;
    return last?.model;
  });
}

/** Why nothing can be sent now, and the way out; or that sending wakes the model first. */
export function ModelGate() {
  const status = useStatus();
  const models = useModels();
  const active = useActiveModel();
  const reachable = useReachableModel();
  const load = useLoadState();
  if (active?.task === "chat") return null;
  if (status.isPending) return <Note>Asking what is loaded…</Note>;
  if (load.state === "loading")
    return (
      <Note>
        <Spinner />
        {load.model === reachable?.model
          ? `${reachable.name} is being loaded again`
          : `Loading ${load.model}`}{" "}
        {amountOf(load) || "…"}
      </Note>
    );
  if (status.isError) return <Note>Eloquio can't be reached; what you write here is kept.</Note>;
  if (active === null && reachable?.task === "chat")
    return <Asleep model={reachable} engines={status.data.engines} />;
  // What sleeps has its name from there, and what could be offered, too.
  if (models.isPending) return <Note>Looking at what is here…</Note>;
  return <Offer isOther={active !== null} failed={load.state === "failed" ? load.model : null} />;
}

type AsleepProps = {
  model: Reachable;
  engines: readonly Schemas["EngineStatus"][];
};

function Asleep({ model: { model, name }, engines }: AsleepProps) {
  const engine = engines.find((candidate) => candidate.model === model);
  const hasFailed = engine?.status.state === "failed";
  return (
    <Note>
      {hasFailed
        ? `The engine of ${name} has stopped. Your next message starts it again.`
        : `${name} is asleep. Your next message loads it again.`}
    </Note>
  );
}

function Offer({ isOther, failed }: { isOther: boolean; failed: string | null }) {
  const models = useModels();
  const loadModel = useLoadModel();
  const offered = modelToOffer(models.data?.data ?? [], useLastModelUsed());
  const reason = failed
    ? `${failed} could not be loaded.`
    : isOther
      ? "The loaded model can't chat."
      : "No model is loaded.";
  return (
    <Note>
      <span>{reason}</span>
      {offered && (
        <Button size="sm" onClick={() => loadModel(offered.id)}>
          Load {offered.display_name}
        </Button>
      )}
    </Note>
  );
}

function Note({ children }: { children: React.ReactNode }) {
  return (
    <div
      id="why-not-send"
      className="flex min-h-10 flex-wrap items-center gap-x-3 gap-y-2 px-2 pb-2 text-muted-foreground text-sm"
    >
      {children}
    </div>
  );
}

import { useActiveModel, useLoadState, useModels, useStatus } from "@/api/models";
import { Spinner } from "@/ui/spinner";
import { amountOf } from "./load-words";

/** In a reply's place before its first word: what it waits for. */
export function Waiting({ model }: { model: string }) {
  const isAwake = useActiveModel()?.model === model;
  // A request wakes the model: that it is loading is known only once the server is asked.
  useStatus({ isClose: !isAwake });
  const loading = useLoadState();
  const name = useModels().data?.data.find(({ id }) => id === model)?.display_name ?? model;
  if (loading.state === "loading" && loading.model === model)
    return (
      <p
        role="status"
        className="flex items-center gap-2 py-1.5 text-muted-foreground text-sm tabular-nums"
      >
        <Spinner /> {name} is being loaded again {amountOf(loading)}
      </p>
    );
  return (
    <p className="flex items-center gap-1.5 py-2">
      <span className="sr-only">Waiting for the first token</span>
      {["0ms", "160ms", "320ms"].map((animationDelay) => (
        <span
          key={animationDelay}
          style={{ animationDelay }}
          className="size-2 animate-pulse rounded-full bg-muted-foreground"
        />
      ))}
    </p>
  );
}

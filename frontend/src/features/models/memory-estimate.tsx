import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { bodyOf, http } from "@/api/client";
import { type LoadOptions, loadRequest } from "@/api/load-requests";
import { useStatus } from "@/api/models";
import { ErrorNote } from "@/ui/error-note";
import { Spinner } from "@/ui/spinner";
import { fitOf, freeWithout } from "./fit";
import { FitBadge } from "./fit-badge";
import { MemoryBar } from "./memory-bar";
import { Warnings } from "./warnings";

const SETTLED_MILLISECONDS = 200;

/** The value once it has stopped changing, so that dragging a slider asks once. */
function useSettled<Value>(value: Value): Value {
  const [settled, setSettled] = useState(value);
  const key = JSON.stringify(value);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the value, which is a new object at each render.
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLED_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [key]);
  return settled;
}

type Props = {
  model: string;
  /** Null while the form can't be read. */
  options: LoadOptions | null;
};

/** What the chosen options would take, by the server's own reckoning. */
export function MemoryEstimate({ model, options }: Props) {
  const settled = useSettled(options);
  const body = loadRequest(model, settled ?? {});
  const estimate = useQuery({
    queryKey: ["validate", body],
    queryFn: ({ signal }) => bodyOf(http.POST("/v1/validate", { body, signal })),
    enabled: settled !== null,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    retry: false,
  });
  const { data: status } = useStatus();
  if (estimate.error) return <ErrorNote error={estimate.error} />;
  if (!estimate.data)
    return (
      <p className="flex items-center gap-2 text-muted-foreground text-sm">
        <Spinner /> Estimating the memory
      </p>
    );
  const { memory, valid, message, warnings, stops } = estimate.data;
  const roomBytes = status ? freeWithout([model, ...stops], status) : null;
  return (
    <section aria-label="Memory" className="space-y-3 rounded-lg border bg-muted/60 p-4">
      <div className="flex items-center justify-between">
        <h3 className="font-medium text-sm">Memory</h3>
        <FitBadge fit={fitOf(memory, roomBytes)} />
      </div>
      {memory ? (
        <MemoryBar memory={memory} roomBytes={roomBytes} />
      ) : (
        <p className="text-muted-foreground text-sm">
          It can't be told before the model is loaded.
        </p>
      )}
      <WhoHasToGo models={stops.filter((stopped) => stopped !== model)} />
      {!valid && <p className="text-bad text-sm">{message}</p>}
      <Warnings warnings={warnings} />
    </section>
  );
}

/** Which of the loaded models the load would cost. */
function WhoHasToGo({ models }: { models: readonly string[] }) {
  const { data: status } = useStatus();
  const leaving = (status?.engines ?? []).filter(({ model }) => models.includes(model));
  if (leaving.length === 0) return null;
  const names = leaving.map(({ display_name: name }) => name).join(", ");
  const isBusy = leaving.some(({ busy }) => busy > 0);
  return (
    <p className="text-sm">
      {names} will be unloaded for it
      {isBusy ? "; answers are under way there, so you will be asked first." : "."}
    </p>
  );
}

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { TriangleAlert } from "lucide-react";
import { useEffect, useState } from "react";
import { bodyOf, http } from "@/api/client";
import { type LoadOptions, loadRequest } from "@/api/models";
import { ErrorNote } from "@/ui/error-note";
import { Spinner } from "@/ui/spinner";
import { fitOf } from "./fit";
import { FitBadge } from "./fit-badge";
import { MemoryBar } from "./memory-bar";
import { useRoom } from "./room";

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
  keepOthers: boolean;
};

/** What the chosen options would take, by the server's own reckoning. */
export function MemoryEstimate({ model, options, keepOthers }: Props) {
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
  const room = useRoom();
  if (estimate.error) return <ErrorNote error={estimate.error} />;
  if (!estimate.data)
    return (
      <p className="flex items-center gap-2 text-muted-foreground text-sm">
        <Spinner /> Estimating the memory
      </p>
    );
  const { memory, valid, message, warnings } = estimate.data;
  const roomBytes = memory && room(memory, keepOthers);
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
      {!valid && <p className="text-bad text-sm">{message}</p>}
      <Warnings warnings={warnings} />
    </section>
  );
}

export function Warnings({ warnings }: { warnings: readonly string[] }) {
  if (warnings.length === 0) return null;
  return (
    <ul aria-label="Warnings" className="space-y-1.5">
      {warnings.map((warning) => (
        <li
          key={warning}
          className="flex gap-2 rounded-md bg-busy-soft px-3 py-2 text-busy text-sm [overflow-wrap:anywhere]"
        >
          <TriangleAlert className="mt-0.5 size-4 shrink-0" aria-hidden />
          {warning}
        </li>
      ))}
    </ul>
  );
}

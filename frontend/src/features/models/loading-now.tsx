import { useEffect, useRef } from "react";
import type { LoadOptions } from "@/api/load-requests";
import { useLoadState } from "@/api/models";
import { asksToEndAnswers } from "./asks-to-end-answers";
import { LoadFailure } from "./load-failure";
import { LoadProgress } from "./load-progress";

type Props = { onChangeOptions: (id: string, initial: LoadOptions) => void };

/** The load under way, or how the last one failed. */
export function LoadingNow({ onChangeOptions }: Props) {
  const loading = useLoadState();
  const { state } = loading;
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // The load may have been asked for far down in the list.
    if (state !== "idle") place.current?.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }, [state]);
  if (loading.state === "idle") return null;
  if (loading.state === "failed" && asksToEndAnswers(loading)) return null;
  return (
    <div ref={place} className="scroll-my-4">
      {loading.state === "loading" ? (
        <LoadProgress {...loading} />
      ) : (
        <LoadFailure
          {...loading}
          onChangeOptions={() => onChangeOptions(loading.model, loading.request)}
        />
      )}
    </div>
  );
}

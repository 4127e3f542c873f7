import { Unplug } from "lucide-react";
import { useStatus } from "@/api/models";
import { Button } from "@/ui/button";

/** Over every view while the server doesn't answer; goes by itself when it does again. */
export function ConnectionNote() {
  const { error, isFetching, refetch } = useStatus();
  if (!error) return null;
  const { message, nextStep } = error;
  return (
    <div
      role="alert"
      className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b bg-bad-soft px-4 py-2 text-sm"
    >
      <Unplug className="size-4 text-bad" aria-hidden />
      <p className="flex-1">
        <span className="font-medium">{message}</span> {nextStep}
      </p>
      <Button size="sm" intent="secondary" disabled={isFetching} onClick={() => void refetch()}>
        Try again
      </Button>
    </div>
  );
}

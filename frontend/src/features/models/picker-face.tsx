import type { Schemas } from "@/api/client";
import { useLoadState, useModels, useReachableModel, useStatus } from "@/api/models";
import { Badge } from "@/ui/badge";
import { Spinner } from "@/ui/spinner";
import { EngineBadge } from "./engine-badge";

/** The picker's own words: the model and its state, or what is going on instead. */
export function PickerFace() {
  const { data: status, isError } = useStatus();
  const reachable = useReachableModel();
  const loading = useLoadState();
  const engine = status?.engines.find(({ model }) => model === reachable?.model);
  if (loading.state === "loading") return <LoadingFace {...loading} />;
  if (engine)
    return (
      <Face name={engine.display_name}>
        <EngineBadge status={engine.status} />
      </Face>
    );
  if (loading.state === "failed")
    return (
      <Face name="Choose a model">
        <Badge tone="bad">Failed</Badge>
      </Face>
    );
  if (isError)
    return (
      <Face name="Not connected">
        <Badge tone="bad">Offline</Badge>
      </Face>
    );
  if (!status) return <span className="text-muted-foreground">Looking</span>;
  if (reachable)
    return (
      <Face name={reachable.name}>
        <Badge>Asleep</Badge>
      </Face>
    );
  return <Face name="Choose a model" />;
}

function Face({ name, children }: { name: string; children?: React.ReactNode }) {
  return (
    <>
      <span className="truncate">{name}</span>
      {children}
    </>
  );
}

type LoadingFaceProps = { model: string; progress: Schemas["LoadProgress"] | null };

function LoadingFace({ model, progress }: LoadingFaceProps) {
  const name = useModels().data?.data.find(({ id }) => id === model)?.display_name ?? model;
  const percent = progress?.total_bytes
    ? `${Math.min(Math.round((progress.bytes / progress.total_bytes) * 100), 100)} %`
    : null;
  return (
    <Face name={name}>
      <Badge tone="busy">
        <Spinner className="size-3" /> Loading {percent}
      </Badge>
    </Face>
  );
}

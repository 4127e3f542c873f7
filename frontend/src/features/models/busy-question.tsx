import { toast } from "sonner";
import {
  useBusyUnload,
  useDismissFailure,
  useLoadModel,
  useLoadState,
  useStatus,
  useUnloadModel,
} from "@/api/models";
import { asksToEndAnswers } from "./asks-to-end-answers";
import { EndAnswersDialog } from "./end-answers-dialog";

/** Asks what to do when a load or an unload would end answers; stands wherever one can begin. */
export function BusyQuestion() {
  return (
    <>
      <LoadQuestion />
      <UnloadQuestion />
    </>
  );
}

function LoadQuestion() {
  const loading = useLoadState();
  const { data: status } = useStatus();
  const load = useLoadModel();
  const dismiss = useDismissFailure();
  if (loading.state !== "failed" || !asksToEndAnswers(loading)) return null;
  const { model_path: model, ...options } = loading.request;
  const busy = (status?.engines ?? []).reduce((sum, engine) => sum + engine.busy, 0);
  return (
    <EndAnswersDialog
      count={busy}
      message={loading.error.message}
      action={busy === 1 ? "End it and load" : "End them and load"}
      onEnd={() => load(model, { ...options, force: true })}
      onKeep={dismiss}
    />
  );
}

function UnloadQuestion() {
  const refused = useBusyUnload();
  const { data: status } = useStatus();
  const unload = useUnloadModel();
  if (!refused) return null;
  const busy = status?.engines.find(({ model }) => model === refused.model)?.busy ?? 0;
  return (
    <EndAnswersDialog
      count={busy}
      message={refused.error.message}
      action={busy === 1 ? "End it and unload" : "End them and unload"}
      onEnd={() =>
        unload.mutate(
          { model: refused.model, force: true },
          { onError: ({ message, nextStep }) => toast.error(message, { description: nextStep }) },
        )
      }
      onKeep={refused.dismiss}
    />
  );
}

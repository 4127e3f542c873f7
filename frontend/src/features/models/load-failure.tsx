import type { ApiError } from "@/api/errors";
import type { LoadRequest } from "@/api/load-requests";
import { useDismissFailure, useLoadModel } from "@/api/models";
import { Button } from "@/ui/button";
import { ErrorNote } from "@/ui/error-note";

type Props = {
  request: LoadRequest;
  error: ApiError;
  /** Opens the load dialog as this request left it. */
  onChangeOptions?: (() => void) | undefined;
};

export function LoadFailure({ request, error, onChangeOptions }: Props) {
  const load = useLoadModel();
  const dismiss = useDismissFailure();
  const { model_path: model, ...options } = request;
  return (
    <ErrorNote
      title={`${model} could not be loaded`}
      error={error}
      actions={
        <>
          <Button size="sm" onClick={() => load(model, options)}>
            Try again
          </Button>
          {onChangeOptions && (
            <Button size="sm" intent="secondary" onClick={onChangeOptions}>
              Change options
            </Button>
          )}
          <Button size="sm" intent="ghost" onClick={dismiss}>
            Dismiss
          </Button>
        </>
      }
    />
  );
}

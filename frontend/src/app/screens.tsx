import { type ErrorComponentProps, Link, useRouter } from "@tanstack/react-router";
import { Compass } from "lucide-react";
import { toApiError } from "@/api/errors";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { ErrorNote } from "@/ui/error-note";
import { Spinner } from "@/ui/spinner";

/** In place of a view that broke: what happened, and a way on. Never a white page. */
export function ErrorScreen({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const retry = () => {
    reset();
    void router.invalidate();
  };
  return (
    <div className="mx-auto max-w-2xl px-4 py-16">
      <ErrorNote
        title="This page has failed"
        error={toApiError(error)}
        actions={
          <>
            <Button size="sm" onClick={retry}>
              Try again
            </Button>
            <Button size="sm" intent="secondary" onClick={() => window.location.reload()}>
              Reload the page
            </Button>
          </>
        }
      />
    </div>
  );
}

export function NotFound() {
  return (
    <>
      <h1 className="sr-only">Not found</h1>
      <EmptyState
        icon={Compass}
        title="There is nothing at this address"
        action={
          <Button asChild>
            <Link to="/">Go to the chat</Link>
          </Button>
        }
      />
    </>
  );
}

export function Waiting() {
  return (
    <div className="grid h-full place-items-center text-muted-foreground" role="status">
      <span className="flex items-center gap-2 text-sm">
        <Spinner /> Opening
      </span>
    </div>
  );
}

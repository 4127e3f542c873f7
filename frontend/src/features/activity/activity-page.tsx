import { Activity } from "lucide-react";
import { useRequests } from "@/api/requests";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { ErrorNote } from "@/ui/error-note";
import { PageHeader } from "@/ui/page-header";
import { Spinner } from "@/ui/spinner";
import { RequestRow } from "./request-row";

export function ActivityPage() {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: nothing in it takes the focus, and it scrolls
    <section aria-label="Activity" tabIndex={0} className="h-full overflow-y-auto">
      <div className="mx-auto max-w-4xl space-y-6 px-4 py-8 md:px-8">
        <PageHeader
          title="Activity"
          description="The last requests to your models, from this page and from elsewhere, and where their time went. Nothing of what was said is kept here."
        />
        <Requests />
      </div>
    </section>
  );
}

function Requests() {
  const { data, error, refetch } = useRequests();
  if (error)
    return (
      <ErrorNote
        title="The requests could not be listed"
        error={error}
        actions={
          <Button size="sm" onClick={() => void refetch()}>
            Try again
          </Button>
        }
      />
    );
  if (!data)
    return (
      <p className="flex items-center gap-2 py-6 text-muted-foreground text-sm">
        <Spinner /> Asking for the last requests
      </p>
    );
  if (data.data.length === 0)
    return (
      <EmptyState icon={Activity} title="No requests yet">
        What you or a program asks of a model is listed here, since Eloquio was started.
      </EmptyState>
    );
  return (
    <ul aria-label="Requests" className="divide-y rounded-xl border bg-card shadow-low">
      {data.data.map((request) => (
        // A client may send the same id twice.
        <RequestRow key={`${request.id} ${request.started}`} request={request} />
      ))}
    </ul>
  );
}

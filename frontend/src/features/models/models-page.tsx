import { Link } from "@tanstack/react-router";
import { Boxes, FolderOpen, RefreshCw, Search } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { type LoadOptions, optionsOfLoad } from "@/api/load-requests";
import { useLoadState, useModels } from "@/api/models";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { ErrorNote } from "@/ui/error-note";
import { IconButton } from "@/ui/icon-button";
import { Input } from "@/ui/input";
import { PageHeader } from "@/ui/page-header";
import { Spinner } from "@/ui/spinner";
import { LoadDialog } from "./load-dialog";
import { LoadingNow } from "./loading-now";
import { ModelRow } from "./model-row";
import { bySource, matches } from "./model-sources";
import { Running } from "./running";

type Choice = { model: Schemas["ModelCard"]; initial?: LoadOptions | undefined };

export function ModelsPage() {
  const [choice, setChoice] = useState<Choice | null>(null);
  const models = useModels();
  const choose = (id: string, initial?: LoadOptions) => {
    const model = models.data?.data.find((candidate) => candidate.id === id);
    if (model) setChoice({ model, initial });
  };
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto max-w-4xl space-y-8 px-4 py-8 md:px-8">
        <PageHeader title="Models" description="What runs now, and what is on this machine." />
        <LoadingNow onChangeOptions={choose} />
        <Running onOptions={({ model, loaded }) => choose(model, optionsOfLoad(model, loaded))} />
        <OnDisk models={models} onOptions={choose} />
      </div>
      {choice && <LoadDialog {...choice} onClose={() => setChoice(null)} />}
    </div>
  );
}

type OnDiskProps = {
  models: ReturnType<typeof useModels>;
  onOptions: (id: string) => void;
};

function OnDisk({ models, onOptions }: OnDiskProps) {
  const [query, setQuery] = useState("");
  return (
    <section aria-labelledby="on-disk" className="space-y-3">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <h2 id="on-disk" className="font-semibold text-base">
          On this machine
        </h2>
        <div className="flex items-center gap-2">
          <Button asChild intent="ghost" size="sm">
            <Link to="/settings" hash="folders">
              <FolderOpen aria-hidden /> Model folders
            </Link>
          </Button>
          <IconButton
            label="Look again"
            size="icon-sm"
            disabled={models.isFetching}
            onClick={() => void models.refetch()}
          >
            <RefreshCw className={models.isFetching ? "animate-spin" : ""} aria-hidden />
          </IconButton>
        </div>
      </div>
      <div className="relative">
        <Search
          className="-translate-y-1/2 pointer-events-none absolute top-1/2 left-3 size-4 text-muted-foreground"
          aria-hidden
        />
        <Input
          type="search"
          aria-label="Search models"
          placeholder="Search by name or quant"
          className="pl-9"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
      </div>
      <ModelList models={models} query={query} onOptions={onOptions} />
    </section>
  );
}

function ModelList({ models, query, onOptions }: OnDiskProps & { query: string }) {
  const isWaiting = useLoadState().state === "loading";
  if (models.error)
    return (
      <ErrorNote
        title="The models could not be listed"
        error={models.error}
        actions={
          <Button size="sm" onClick={() => void models.refetch()}>
            Try again
          </Button>
        }
      />
    );
  if (!models.data)
    return (
      <p className="flex items-center gap-2 py-6 text-muted-foreground text-sm">
        <Spinner /> Looking at what is here
      </p>
    );
  if (models.data.data.length === 0) return <NoModels />;
  const groups = bySource(models.data.data.filter((model) => matches(model, query)));
  if (groups.length === 0)
    return (
      <EmptyState icon={Search} title={`Nothing here is called “${query}”`}>
        Every word has to stand in the model's name, its id or its quant.
      </EmptyState>
    );
  return (
    <div className="space-y-6">
      {groups.map((group) => (
        <section key={group.title} aria-label={group.title} className="space-y-2">
          <p className="text-muted-foreground text-xs" aria-hidden>
            {group.title}
          </p>
          <ul className="divide-y rounded-xl border bg-card shadow-low">
            {group.models.map((model) => (
              <ModelRow
                key={model.id}
                model={model}
                isWaiting={isWaiting}
                onOptions={() => onOptions(model.id)}
              />
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function NoModels() {
  return (
    <EmptyState
      icon={Boxes}
      title="No models yet"
      action={
        <Button asChild>
          <Link to="/settings" hash="folders">
            Add a model folder
          </Link>
        </Button>
      }
    >
      Eloquio runs GGUF files. Name a folder that holds some, or put them into the Hugging Face
      cache, and they appear here.
    </EmptyState>
  );
}

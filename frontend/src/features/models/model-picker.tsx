import { Link, useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { ChevronsUpDown, SlidersHorizontal } from "lucide-react";
import { lazy, Suspense, useId, useRef, useState } from "react";
import type { Schemas } from "@/api/client";
import { optionsOfLoad } from "@/api/load-requests";
import { useLoadModel, useLoadState, useModels, useReachableModel, useStatus } from "@/api/models";
import { formatBytes } from "@/lib/format";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { IconButton } from "@/ui/icon-button";
import { Popover, PopoverContent, PopoverTrigger } from "@/ui/popover";
import { Switch } from "@/ui/switch";
import { BusyQuestion } from "./busy-question";
import { fitOf, mostFor } from "./fit";
import { FitBadge } from "./fit-badge";
import { bySource, matches } from "./model-sources";
import { PickerFace } from "./picker-face";
import { purposeOf } from "./purpose";

const LoadDialog = lazy(() =>
  import("./load-dialog").then((module) => ({ default: module.LoadDialog })),
);

/** Says what would answer, and chooses another; stands in the top bar of every page. */
export function ModelPicker() {
  const [isOpen, setOpen] = useState(false);
  const [withOptions, setWithOptions] = useState<Schemas["ModelCard"] | null>(null);
  const face = useRef<HTMLButtonElement>(null);
  const reachable = useReachableModel();
  const models = useModels();
  const current = models.data?.data.find(({ id }) => id === reachable?.model);
  return (
    <div className="flex min-w-0 items-center gap-1">
      <Popover open={isOpen} onOpenChange={setOpen}>
        <PopoverTrigger asChild>
          <Button
            ref={face}
            intent="ghost"
            className="min-w-0 shrink gap-2 px-3"
            aria-haspopup="dialog"
          >
            <PickerFace />
            <ChevronsUpDown className="text-muted-foreground" aria-hidden />
          </Button>
        </PopoverTrigger>
        <PopoverContent
          align="start"
          aria-label="Choose a model"
          className="w-[min(30rem,calc(100vw-1rem))] overflow-hidden"
        >
          <ModelChoice
            models={models.data?.data}
            onDone={() => setOpen(false)}
            onOptions={(model) => {
              setOpen(false);
              setWithOptions(model);
            }}
          />
        </PopoverContent>
      </Popover>
      {current && (
        <IconButton label="Load options" onClick={() => setWithOptions(current)}>
          <SlidersHorizontal aria-hidden />
        </IconButton>
      )}
      {withOptions && (
        <Suspense>
          <LoadDialog
            model={withOptions}
            initial={optionsOfLoad(
              withOptions.id,
              withOptions.id === reachable?.model ? reachable.loaded : null,
            )}
            returnFocus={face}
            onClose={() => setWithOptions(null)}
          />
        </Suspense>
      )}
      <BusyQuestion />
    </div>
  );
}

type ChoiceProps = {
  models: Schemas["ModelCard"][] | undefined;
  onDone: () => void;
  onOptions: (model: Schemas["ModelCard"]) => void;
};

function ModelChoice({ models, onDone, onOptions }: ChoiceProps) {
  const [query, setQuery] = useState("");
  const load = useLoadModel();
  const navigate = useNavigate();
  const loading = useLoadState();
  const shown = (models ?? []).filter((model) => matches(model, query));
  const [isOptionsFirst, setOptionsFirst] = useState(false);
  const optionsFirst = useId();
  const choose = (model: Schemas["ModelCard"]) => {
    onDone();
    if (isOptionsFirst) onOptions(model);
    else if (model.status === "on_disk") load(model.id);
  };
  return (
    // Only the list lies in Command: it takes every Enter within it for the chosen model.
    <>
      <Command label="Models" shouldFilter={false} loop>
        <Command.Input
          value={query}
          onValueChange={setQuery}
          placeholder="Search models"
          className="h-12 w-full border-b bg-transparent px-4 text-sm outline-none placeholder:text-muted-foreground max-md:text-base"
        />
        <Command.List className="max-h-[min(24rem,60dvh)] overflow-y-auto p-2">
          <Command.Empty className="px-3 py-8 text-center text-muted-foreground text-sm">
            {models ? "No model here is called so." : "Looking at what is here."}
          </Command.Empty>
          {bySource(shown).map((group) => (
            <Command.Group
              key={group.title}
              heading={group.title}
              className="[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:py-2 [&_[cmdk-group-heading]]:text-muted-foreground [&_[cmdk-group-heading]]:text-xs"
            >
              {group.models.map((model) => (
                <ModelItem
                  key={model.id}
                  model={model}
                  isWaiting={loading.state === "loading"}
                  onChoose={() => choose(model)}
                />
              ))}
            </Command.Group>
          ))}
        </Command.List>
      </Command>
      {loading.state === "failed" && (
        <button
          type="button"
          className="w-full border-t bg-bad-soft px-4 py-2.5 text-left text-bad text-sm hover:underline"
          onClick={() => {
            onDone();
            void navigate({ to: "/models" });
          }}
        >
          {loading.error.message} See what happened
        </button>
      )}
      <div className="flex items-center justify-between gap-3 border-t py-1.5 pr-2 pl-4">
        <div className="flex items-center gap-2.5">
          <Switch id={optionsFirst} checked={isOptionsFirst} onCheckedChange={setOptionsFirst} />
          <label htmlFor={optionsFirst} className="text-sm">
            Set options first
          </label>
        </div>
        <Button asChild intent="ghost" size="sm">
          <Link to="/models" onClick={onDone}>
            All models
          </Link>
        </Button>
      </div>
    </>
  );
}

type ItemProps = {
  model: Schemas["ModelCard"];
  isWaiting: boolean;
  onChoose: () => void;
};

function ModelItem({ model, isWaiting, onChoose }: ItemProps) {
  const { data: status } = useStatus();
  const fit = fitOf(model.memory, status ? mostFor(model.id, status) : null);
  const figures = [purposeOf(model.task), model.quant, formatBytes(model.size_bytes)];
  return (
    <Command.Item
      value={model.id}
      disabled={model.status === "unusable" || (isWaiting && model.status === "on_disk")}
      onSelect={onChoose}
      className="group flex min-h-13 cursor-default select-none items-center gap-3 rounded-lg px-2.5 py-2 data-[disabled=true]:text-muted-foreground data-[selected=true]:bg-accent"
    >
      <div className="min-w-0 flex-1">
        <p className="truncate text-sm">{model.display_name}</p>
        <p className="truncate text-muted-foreground text-xs tabular-nums">
          {model.problem ?? figures.filter(Boolean).join(" · ")}
        </p>
      </div>
      {model.status === "loaded" && <Badge tone="good">Loaded</Badge>}
      {model.status === "loading" && <Badge tone="busy">Loading</Badge>}
      {model.status === "on_disk" && <FitBadge fit={fit} />}
      {model.status === "unusable" && <Badge tone="bad">Can't be used</Badge>}
    </Command.Item>
  );
}

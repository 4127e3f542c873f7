import { ChevronDown, SlidersHorizontal } from "lucide-react";
import { useId, useState } from "react";
import type { Schemas } from "@/api/client";
import { useLoadModel, useStatus } from "@/api/models";
import { formatBytes, formatCount } from "@/lib/format";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { IconButton } from "@/ui/icon-button";
import { fitOf, mostFor } from "./fit";
import { FitBadge } from "./fit-badge";
import { MemoryBar } from "./memory-bar";
import { purposeOf } from "./purpose";

type Props = {
  model: Schemas["ModelCard"];
  /** Another load is under way. */
  isWaiting: boolean;
  onOptions: () => void;
};

export function ModelRow({ model, isWaiting, onOptions }: Props) {
  const [isOpen, setOpen] = useState(false);
  const details = useId();
  const { data: status } = useStatus();
  const roomBytes = status ? mostFor(model.id, status) : null;
  const isAsleep = status?.asleep.includes(model.id);
  return (
    <li className="px-5 py-4">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-3">
        <div className="min-w-0 flex-1 basis-64 space-y-1">
          <div className="flex flex-wrap items-center gap-2">
            <h3 className="font-medium text-sm [overflow-wrap:anywhere]">{model.display_name}</h3>
            <ModelStatus status={model.status} />
            {model.status === "on_disk" && isAsleep && <Badge>Asleep</Badge>}
            {model.status === "on_disk" && <FitBadge fit={fitOf(model.memory, roomBytes)} />}
          </div>
          <p className="text-muted-foreground text-xs [overflow-wrap:anywhere]">{model.id}</p>
          <ModelFigures model={model} />
        </div>
        {model.status !== "unusable" && (
          <div className="ml-auto flex items-center gap-1">
            {model.memory && (
              <IconButton
                label={`Memory of ${model.display_name}`}
                hint="Memory"
                size="icon-sm"
                aria-expanded={isOpen}
                aria-controls={details}
                onClick={() => setOpen(!isOpen)}
              >
                <ChevronDown className={isOpen ? "rotate-180" : ""} aria-hidden />
              </IconButton>
            )}
            <IconButton
              label={`Load options of ${model.display_name}`}
              hint="Load options"
              size="icon-sm"
              onClick={onOptions}
            >
              <SlidersHorizontal aria-hidden />
            </IconButton>
            {model.status === "on_disk" && <LoadButton model={model} isWaiting={isWaiting} />}
          </div>
        )}
      </div>
      {model.problem && (
        <p className="mt-2 text-bad text-sm [overflow-wrap:anywhere]">{model.problem}</p>
      )}
      {isOpen && model.memory && (
        <div id={details} className="mt-4">
          <MemoryBar memory={model.memory} roomBytes={roomBytes} />
        </div>
      )}
    </li>
  );
}

function LoadButton({ model, isWaiting }: { model: Schemas["ModelCard"]; isWaiting: boolean }) {
  const load = useLoadModel();
  return (
    <Button
      intent="secondary"
      size="sm"
      className="ml-1"
      aria-label={`Load ${model.display_name}`}
      disabled={isWaiting}
      onClick={() => load(model.id)}
    >
      Load
    </Button>
  );
}

function ModelStatus({ status }: { status: Schemas["ModelCard"]["status"] }) {
  if (status === "loaded") return <Badge tone="good">Loaded</Badge>;
  if (status === "loading") return <Badge tone="busy">Loading</Badge>;
  if (status === "unusable") return <Badge tone="bad">Can't be used</Badge>;
  return null;
}

function ModelFigures({ model }: { model: Schemas["ModelCard"] }) {
  const figures = [
    purposeOf(model.task),
    model.is_lora && model.base_model ? `adapter of ${model.base_model}` : null,
    model.is_gguf ? "GGUF" : "safetensors",
    model.quant,
    formatBytes(model.size_bytes),
    model.context_length === null ? null : `${formatCount(model.context_length)} tokens of context`,
    model.memory === null ? null : `${formatBytes(model.memory.total)} of memory`,
    model.modalities.includes("image") ? "sees pictures" : null,
    model.modalities.includes("audio") ? "hears sound" : null,
  ];
  return (
    <p className="text-muted-foreground text-xs tabular-nums">
      {figures.filter(Boolean).join(" · ")}
    </p>
  );
}

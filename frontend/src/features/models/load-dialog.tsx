import { type FormEvent, type RefObject, useState } from "react";
import type { Schemas } from "@/api/client";
import type { LoadOptions } from "@/api/load-requests";
import { useLoadModel } from "@/api/models";
import { formatCount } from "@/lib/format";
import { Button } from "@/ui/button";
import { Dialog, DialogContent } from "@/ui/dialog";
import { Field } from "@/ui/field";
import { Input } from "@/ui/input";
import { Select } from "@/ui/select";
import { Slider } from "@/ui/slider";
import { AdvancedOptions } from "./advanced-options";
import {
  cacheOptions,
  emptyForm,
  errorsOf,
  formOf,
  type LoadForm,
  optionsOf,
} from "./load-options";
import { MemoryEstimate } from "./memory-estimate";

type Props = {
  model: Schemas["ModelCard"];
  /** What the fields start with: an earlier request's options, or the engine's own. */
  initial?: LoadOptions | undefined;
  returnFocus?: RefObject<HTMLElement | null> | undefined;
  onClose: () => void;
};

const LEAST_CONTEXT = 512;

/** Chooses how a model is loaded, with what it would cost said at once. */
export function LoadDialog({ model, initial, returnFocus, onClose }: Props) {
  const [form, setForm] = useState<LoadForm>(() => (initial ? formOf(initial) : emptyForm()));
  const load = useLoadModel();
  const errors = errorsOf(form);
  const hasErrors = Object.keys(errors).length > 0;
  const change = (changes: Partial<LoadForm>) => setForm((current) => ({ ...current, ...changes }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (hasErrors) return;
    load(model.id, optionsOf(form));
    onClose();
  };
  return (
    <Dialog open onOpenChange={(open) => open || onClose()}>
      <DialogContent
        returnFocus={returnFocus}
        title={`Load ${model.display_name}`}
        description={[model.id, model.quant].filter(Boolean).join(" · ")}
        footer={
          <>
            <Button intent="secondary" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" form="load-options" disabled={hasErrors}>
              Load model
            </Button>
          </>
        }
      >
        <form id="load-options" className="space-y-5" onSubmit={submit} noValidate>
          <ContextField
            value={form.contextLength}
            native={model.context_length}
            error={errors.contextLength}
            onChange={(contextLength) => change({ contextLength })}
          />
          <Field
            label="KV cache type"
            hint="A smaller type holds more context in the same memory and costs some exactness."
          >
            {(control) => (
              <Select
                {...control}
                value={form.cacheType}
                options={cacheOptions}
                onChange={(cacheType) => change({ cacheType })}
              />
            )}
          </Field>
          <MemoryEstimate model={model.id} options={hasErrors ? null : optionsOf(form)} />
          <AdvancedOptions form={form} errors={errors} onChange={change} />
        </form>
      </DialogContent>
    </Dialog>
  );
}

type ContextFieldProps = {
  value: string;
  native: number | null;
  error: string | undefined;
  onChange: (value: string) => void;
};

function ContextField({ value, native, error, onChange }: ContextFieldProps) {
  const asNumber = Number(value);
  const shown = value === "" || Number.isNaN(asNumber) ? (native ?? LEAST_CONTEXT) : asNumber;
  return (
    <Field
      label="Context length"
      error={error}
      hint={
        native
          ? `In tokens. The model was made for ${formatCount(native)}; empty takes that.`
          : "In tokens. Empty takes the model's own."
      }
    >
      {(control) => (
        <div className="flex items-center gap-4">
          {native !== null && native > LEAST_CONTEXT && (
            <Slider
              aria-label="Context length, slider"
              value={Math.min(Math.max(shown, LEAST_CONTEXT), native)}
              min={LEAST_CONTEXT}
              max={native}
              step={256}
              onChange={(chosen) => onChange(String(chosen))}
            />
          )}
          <Input
            {...control}
            inputMode="numeric"
            autoComplete="off"
            className="w-32 shrink-0 tabular-nums"
            placeholder={native ? String(native) : "native"}
            value={value}
            aria-invalid={error !== undefined}
            onChange={(event) => onChange(event.target.value)}
          />
        </div>
      )}
    </Field>
  );
}

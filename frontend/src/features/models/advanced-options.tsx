import { ChevronRight } from "lucide-react";
import { Field } from "@/ui/field";
import { Input, Textarea } from "@/ui/input";
import { KeepingOptions } from "./keeping-options";
import type { LoadForm, LoadFormErrors } from "./load-options";

type Props = {
  form: LoadForm;
  errors: LoadFormErrors;
  onChange: (changes: Partial<LoadForm>) => void;
};

export function AdvancedOptions({ form, errors, onChange }: Props) {
  return (
    <details className="group rounded-lg border">
      <summary className="flex min-h-11 list-none items-center gap-2 rounded-lg px-4 font-medium text-sm">
        <ChevronRight
          className="size-4 text-muted-foreground transition-transform group-open:rotate-90"
          aria-hidden
        />
        Advanced
      </summary>
      <div className="space-y-5 border-t p-4">
        <div className="grid gap-5 sm:grid-cols-2">
          <Field
            label="GPU layers"
            error={errors.gpuLayers}
            hint="Empty: as many as fit. 0: none, all on the processor."
          >
            {(control) => (
              <Input
                {...control}
                inputMode="numeric"
                placeholder="as fits"
                value={form.gpuLayers}
                aria-invalid={errors.gpuLayers !== undefined}
                onChange={(event) => onChange({ gpuLayers: event.target.value })}
              />
            )}
          </Field>
          <Field
            label="Parallel slots"
            error={errors.parallelSlots}
            hint="Answers at the same time; they share the context."
          >
            {(control) => (
              <Input
                {...control}
                inputMode="numeric"
                placeholder="engine's own"
                value={form.parallelSlots}
                aria-invalid={errors.parallelSlots !== undefined}
                onChange={(event) => onChange({ parallelSlots: event.target.value })}
              />
            )}
          </Field>
        </div>
        <Field
          label="Chat template"
          hint="A Jinja template that takes the place of the model's own. Empty keeps the model's."
        >
          {(control) => (
            <Textarea
              {...control}
              rows={3}
              spellCheck={false}
              className="font-mono text-xs"
              placeholder="{% for message in messages %}…"
              value={form.chatTemplate}
              onChange={(event) => onChange({ chatTemplate: event.target.value })}
            />
          )}
        </Field>
        <KeepingOptions form={form} errors={errors} onChange={onChange} />
      </div>
    </details>
  );
}

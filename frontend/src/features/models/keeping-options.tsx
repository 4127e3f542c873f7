import { useId } from "react";
import { Field } from "@/ui/field";
import { Input } from "@/ui/input";
import { Select } from "@/ui/select";
import { Switch } from "@/ui/switch";
import { type LoadForm, type LoadFormErrors, unloadTimes } from "./load-options";

type Props = {
  form: LoadForm;
  errors: LoadFormErrors;
  onChange: (changes: Partial<LoadForm>) => void;
};

/** How long the model stays, and whether others may stay beside it. */
export function KeepingOptions({ form, errors, onChange }: Props) {
  return (
    <>
      <div className="grid items-start gap-5 sm:grid-cols-2">
        <Field
          label="Unload after"
          hint={
            form.isPinned
              ? "A pinned model is not unloaded by itself."
              : "Without a request for so long; the next one loads it again."
          }
        >
          {(control) => (
            <Select
              {...control}
              value={form.unloadAfter}
              options={unloadTimes}
              disabled={form.isPinned}
              onChange={(unloadAfter) => onChange({ unloadAfter })}
            />
          )}
        </Field>
        {form.unloadAfter === "own" && !form.isPinned && (
          <Field label="Idle minutes" error={errors.idleMinutes}>
            {(control) => (
              <Input
                {...control}
                inputMode="decimal"
                autoComplete="off"
                value={form.idleMinutes}
                aria-invalid={errors.idleMinutes !== undefined}
                onChange={(event) => onChange({ idleMinutes: event.target.value })}
              />
            )}
          </Field>
        )}
      </div>
      <SwitchRow
        label="Pin"
        hint="It stays until you unload it: no other load and no idle time ends it."
        isOn={form.isPinned}
        onChange={(isPinned) => onChange({ isPinned })}
      />
      <SwitchRow
        label="Keep other models loaded"
        hint="Otherwise those that do the same task are unloaded."
        isOn={form.keepOthers}
        onChange={(keepOthers) => onChange({ keepOthers })}
      />
    </>
  );
}

type SwitchRowProps = {
  label: string;
  hint: string;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
};

function SwitchRow({ label, hint, isOn, onChange }: SwitchRowProps) {
  const id = useId();
  return (
    <div className="flex items-center justify-between gap-4">
      <div>
        <label htmlFor={id} className="font-medium text-sm">
          {label}
        </label>
        <p id={`${id}-about`} className="text-muted-foreground text-xs">
          {hint}
        </p>
      </div>
      <Switch id={id} aria-describedby={`${id}-about`} checked={isOn} onCheckedChange={onChange} />
    </div>
  );
}

import type { Reachable } from "@/api/reachable";
import { Button } from "@/ui/button";
import { Field } from "@/ui/field";
import { Textarea } from "@/ui/input";
import {
  changedCount,
  type NumberField,
  recommended,
  samplingFields,
  untouched,
  useSettings,
} from "./sampling";
import { ResetButton, SamplingField } from "./sampling-field";

/** How the model is asked: its system prompt and sampling, kept for each model. */
export function SettingsPanel({ model }: { model: Reachable | null }) {
  const settings = useSettings(({ byModel }) => (model ? byModel[model.model] : undefined));
  if (!model)
    return (
      <p className="text-muted-foreground text-sm">
        These settings belong to a model. Load one to see what it recommends and to change it.
      </p>
    );
  return <ModelSettingsForm model={model} settings={settings ?? untouched} />;
}

type FormProps = { model: Reachable; settings: typeof untouched };

function ModelSettingsForm({ model: { model, name, loaded }, settings }: FormProps) {
  const { setSystemPrompt, setField, resetField, resetAll } = useSettings.getState();
  const { sampling, systemPrompt } = settings;
  return (
    <form className="space-y-6" onSubmit={(event) => event.preventDefault()}>
      <p className="text-muted-foreground text-sm [overflow-wrap:anywhere]">
        For {name}. Only what you change is sent; the rest is left to the model.
      </p>
      <Field
        label="System prompt"
        hint="Stands before every conversation with this model."
        aside={
          <ResetButton
            label="Reset system prompt"
            hint="none"
            isShown={systemPrompt !== ""}
            onClick={() => setSystemPrompt(model, "")}
          />
        }
      >
        {(control) => (
          <Textarea
            {...control}
            className="field-sizing-content max-h-60"
            placeholder="You answer briefly and in plain words."
            value={systemPrompt}
            onChange={(event) => setSystemPrompt(model, event.target.value)}
          />
        )}
      </Field>
      {samplingFields.map((field) => (
        <SamplingField
          key={field.name}
          field={field}
          value={sampling[field.name satisfies NumberField]}
          recommended={recommended(loaded?.inference, field.name)}
          onChange={(value) => setField(model, field.name, value)}
          onReset={() => resetField(model, field.name)}
        />
      ))}
      <Field
        label="Stop strings"
        hint="One a line. A reply ends before the first of them that comes up."
        aside={
          <ResetButton
            label="Reset stop strings"
            hint="none"
            isShown={sampling.stop !== undefined}
            onClick={() => resetField(model, "stop")}
          />
        }
      >
        {(control) => (
          <Textarea
            {...control}
            className="field-sizing-content max-h-40 min-h-10 font-mono"
            value={sampling.stop?.join("\n") ?? ""}
            onChange={({ target: { value } }) =>
              value ? setField(model, "stop", value.split("\n")) : resetField(model, "stop")
            }
          />
        )}
      </Field>
      <Button
        intent="secondary"
        disabled={changedCount(settings) === 0}
        onClick={() => resetAll(model)}
      >
        Reset everything
      </Button>
    </form>
  );
}

import { RotateCcw } from "lucide-react";
import { useState } from "react";
import { Field } from "@/ui/field";
import { IconButton } from "@/ui/icon-button";
import { Input } from "@/ui/input";
import { Slider } from "@/ui/slider";
import type { FieldDescription } from "./sampling";

type Props = {
  field: FieldDescription;
  /** What the person set; undefined leaves it to the model. */
  value: number | undefined;
  recommended: number | null;
  onChange: (value: number) => void;
  onReset: () => void;
};

/** One number: a slider and a box, the model's own value until it is touched, a way back to it. */
export function SamplingField({ field, value, recommended, onChange, onReset }: Props) {
  const { label, hint, min, max, step, neutral } = field;
  const isChanged = value !== undefined;
  const shown = value ?? recommended;
  const own = recommended === null ? "engine's choice" : `${recommended}`;
  return (
    <Field
      label={label}
      hint={`${hint} ${recommended === null ? "Left to the engine" : `The model recommends ${own}`}${isChanged ? " until you changed it." : "."}`}
      aside={
        <ResetButton label={`Reset ${label}`} isShown={isChanged} hint={own} onClick={onReset} />
      }
    >
      {(control) => (
        <div className="flex items-center gap-3">
          {neutral !== null && (
            <Slider
              aria-label={`${label} slider`}
              min={min}
              max={max}
              step={step}
              value={shown ?? neutral}
              onChange={onChange}
              className={isChanged ? "" : "opacity-60"}
            />
          )}
          <NumberBox
            {...control}
            value={value}
            placeholder={shown === null ? "auto" : `${shown}`}
            min={min}
            max={max}
            step={step}
            isNarrow={neutral !== null}
            onChange={onChange}
            onReset={onReset}
          />
        </div>
      )}
    </Field>
  );
}

type BoxProps = {
  id: string;
  "aria-describedby": string | undefined;
  value: number | undefined;
  placeholder: string;
  min: number;
  max: number;
  step: number;
  isNarrow: boolean;
  onChange: (value: number) => void;
  onReset: () => void;
};

function NumberBox({ value, min, max, step, isNarrow, onChange, onReset, ...box }: BoxProps) {
  // While it is typed in, the text may be no number yet: "-", "0.", or out of range.
  const [typed, setTyped] = useState<string | null>(null);
  const isWhole = Number.isInteger(step);
  const accept = (text: string) => {
    setTyped(text);
    const number = Number(text);
    if (text.trim() === "") onReset();
    else if (number >= min && number <= max && (!isWhole || Number.isInteger(number)))
      onChange(number);
  };
  const shown = typed ?? (value === undefined ? "" : `${value}`);
  const isInvalid = typed !== null && typed.trim() !== "" && Number(typed) !== value;
  return (
    <Input
      {...box}
      inputMode="decimal"
      autoComplete="off"
      aria-invalid={isInvalid || undefined}
      title={isInvalid ? `From ${min} to ${max}` : undefined}
      className={isNarrow ? "w-20 px-2 text-right tabular-nums" : "tabular-nums"}
      value={shown}
      onChange={(event) => accept(event.target.value)}
      onBlur={() => setTyped(null)}
    />
  );
}

type ResetProps = { label: string; hint: string; isShown: boolean; onClick: () => void };

export function ResetButton({ label, hint, isShown, onClick }: ResetProps) {
  return (
    <IconButton
      size="icon-sm"
      label={label}
      hint={`Back to ${hint}`}
      side="left"
      className={isShown ? "-my-1.5" : "-my-1.5 invisible"}
      onClick={onClick}
    >
      <RotateCcw aria-hidden />
    </IconButton>
  );
}

import { Slider as Radix } from "radix-ui";
import { cn } from "./cn";

type Props = {
  id?: string;
  /** The thumb's name: a label element can't name it. */
  "aria-label": string;
  "aria-describedby"?: string | undefined;
  value: number;
  min: number;
  max: number;
  step: number;
  onChange: (value: number) => void;
  disabled?: boolean;
  className?: string;
};

export function Slider({
  value,
  onChange,
  className,
  "aria-label": label,
  "aria-describedby": describedBy,
  ...range
}: Props) {
  return (
    <Radix.Root
      value={[value]}
      onValueChange={([chosen]) => {
        if (chosen !== undefined) onChange(chosen);
      }}
      className={cn(
        "relative flex h-6 w-full touch-none select-none items-center data-[disabled]:opacity-50 max-md:h-10",
        className,
      )}
      {...range}
    >
      <Radix.Track className="relative h-1.5 grow rounded-full bg-input/45">
        <Radix.Range className="absolute h-full rounded-full bg-primary" />
      </Radix.Track>
      <Radix.Thumb
        aria-label={label}
        aria-describedby={describedBy}
        className="block size-4.5 rounded-full border-2 border-primary bg-card shadow-low transition-transform hover:scale-110"
      />
    </Radix.Root>
  );
}

import { Progress as Radix } from "radix-ui";

type Props = {
  "aria-label": string;
  /** From 0 to 1; null while nothing is known of the end. */
  value: number | null;
};

export function Progress({ value, ...props }: Props) {
  const percent = value === null ? null : Math.round(Math.min(Math.max(value, 0), 1) * 100);
  return (
    <Radix.Root
      value={percent}
      className="relative h-2 w-full overflow-hidden rounded-full bg-input/30"
      {...props}
    >
      <Radix.Indicator
        className={
          percent === null
            ? "h-full w-1/3 animate-[indeterminate_1.4s_ease-in-out_infinite] rounded-full bg-primary"
            : "h-full rounded-full bg-primary transition-[width] duration-300"
        }
        style={percent === null ? undefined : { width: `${percent}%` }}
      />
    </Radix.Root>
  );
}

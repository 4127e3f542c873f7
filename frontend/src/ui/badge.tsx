import { cva, type VariantProps } from "class-variance-authority";
import type { ComponentProps } from "react";
import { cn } from "./cn";

const badge = cva(
  "inline-flex shrink-0 items-center gap-1.5 whitespace-nowrap rounded-full px-2 py-0.5 font-medium text-xs tabular-nums",
  {
    variants: {
      tone: {
        neutral: "bg-secondary text-muted-foreground",
        good: "bg-good-soft text-good",
        busy: "bg-busy-soft text-busy",
        bad: "bg-bad-soft text-bad",
      },
    },
    defaultVariants: { tone: "neutral" },
  },
);

type Props = ComponentProps<"span"> & VariantProps<typeof badge>;

export function Badge({ className, tone, ...props }: Props) {
  return <span className={cn(badge({ tone }), className)} {...props} />;
}

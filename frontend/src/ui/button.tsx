import { cva, type VariantProps } from "class-variance-authority";
import { Slot } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "./cn";

const button = cva(
  "inline-flex shrink-0 select-none items-center justify-center gap-2 whitespace-nowrap rounded-md font-medium text-sm transition-colors disabled:pointer-events-none disabled:opacity-50 [&_svg]:size-4 [&_svg]:shrink-0",
  {
    variants: {
      intent: {
        primary: "bg-primary text-primary-foreground shadow-low hover:bg-primary/88",
        secondary: "border bg-card text-foreground shadow-low hover:bg-secondary",
        ghost: "text-foreground hover:bg-secondary",
        danger: "bg-bad text-bad-foreground hover:bg-bad/88",
      },
      size: {
        sm: "h-8 px-3 max-md:h-10",
        md: "h-10 px-4",
        icon: "size-9 rounded-lg max-md:size-10",
        "icon-sm": "size-8 rounded-md max-md:size-10",
      },
    },
    defaultVariants: { intent: "primary", size: "md" },
  },
);

export type ButtonProps = ComponentProps<"button"> &
  VariantProps<typeof button> & {
    /** Lends the looks to the one child, for instance a link. */
    asChild?: boolean;
  };

export function Button({ className, intent, size, asChild = false, type, ...props }: ButtonProps) {
  const styled = cn(button({ intent, size }), className);
  if (asChild) return <Slot.Root className={styled} {...props} />;
  return <button type={type ?? "button"} className={styled} {...props} />;
}

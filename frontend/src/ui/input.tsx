import type { ComponentProps } from "react";
import { cn } from "./cn";

export const fieldClasses =
  "w-full rounded-md border border-input bg-background px-3 text-sm text-foreground transition-colors placeholder:text-muted-foreground hover:border-muted-foreground disabled:opacity-50 aria-invalid:border-bad max-md:text-base";

export function Input({ className, ...props }: ComponentProps<"input">) {
  return <input className={cn(fieldClasses, "h-10", className)} {...props} />;
}

export function Textarea({ className, ...props }: ComponentProps<"textarea">) {
  return <textarea className={cn(fieldClasses, "min-h-20 py-2", className)} {...props} />;
}

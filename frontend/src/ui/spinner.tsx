import { LoaderCircle } from "lucide-react";
import { cn } from "./cn";

/** Beside words that say what is waited for; a picture only, so hidden from screen readers. */
export function Spinner({ className }: { className?: string }) {
  return <LoaderCircle className={cn("size-4 animate-spin", className)} aria-hidden />;
}

import type { ReactNode } from "react";
import { formatBytes } from "@/lib/format";

export type Part = { label: string; bytes: number; color: string };

type Props = {
  parts: readonly Part[];
  /** What the whole bar stands for; it is never less than its parts. */
  fullBytes: number;
  /** Stands over the bar. */
  children?: ReactNode;
};

/** Bytes split into what takes them; the list under the bar says the same in words. */
export function SplitBar({ parts, fullBytes, children }: Props) {
  const present = parts.filter(({ bytes }) => bytes > 0);
  const full = Math.max(
    fullBytes,
    present.reduce((sum, { bytes }) => sum + bytes, 0),
    1,
  );
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1 text-sm">
        {children}
      </div>
      <div className="flex h-2.5 gap-px overflow-hidden rounded-full bg-input/30" aria-hidden>
        {present.map(({ label, bytes, color }) => (
          <span
            key={label}
            className="h-full min-w-0.5 transition-[width] duration-200"
            style={{ background: color, width: `${(bytes / full) * 100}%` }}
          />
        ))}
      </div>
      <dl className="flex flex-wrap gap-x-4 gap-y-1 text-muted-foreground text-xs">
        {present.map(({ label, bytes, color }) => (
          <div key={label} className="flex items-center gap-1.5">
            <span className="size-2 rounded-full" style={{ background: color }} aria-hidden />
            <dt>{label}</dt>
            <dd className="text-foreground tabular-nums">{formatBytes(bytes)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

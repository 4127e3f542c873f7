import type { Schemas } from "@/api/client";

export type Phase = { label: string; milliseconds: number; color: string };

/** What a request's time went into, in the order in which it did; only what took any. */
export function phasesOf({ timeline }: Schemas["RequestCard"]): Phase[] {
  const phases = [
    { label: "pictures", milliseconds: timeline.media_ms, color: "var(--phase-media)" },
    { label: "queue", milliseconds: timeline.queue_ms, color: "var(--phase-queue)" },
    { label: "prompt", milliseconds: timeline.prefill_ms, color: "var(--phase-prefill)" },
    { label: "answer", milliseconds: timeline.decode_ms, color: "var(--phase-decode)" },
  ];
  return phases.flatMap(({ milliseconds, ...phase }) =>
    milliseconds === null || milliseconds <= 0 ? [] : [{ ...phase, milliseconds }],
  );
}

/** The speed of the answer; null before its end, and where it is too short to be measured. */
export function tokensPerSecond({ usage, timeline }: Schemas["RequestCard"]): number | null {
  const tokens = usage?.completion_tokens ?? 0;
  if (tokens < 2 || !timeline.decode_ms) return null;
  // The first token's time belongs to the prompt.
  return ((tokens - 1) * 1000) / timeline.decode_ms;
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const clockWithDay = new Intl.DateTimeFormat(undefined, {
  dateStyle: "short",
  timeStyle: "medium",
});

/** The time of day, with the day where it wasn't today. */
export function formatStart(startedSeconds: number, now: Date): string {
  const started = new Date(startedSeconds * 1000);
  const isToday = started.toDateString() === now.toDateString();
  return (isToday ? clock : clockWithDay).format(started);
}

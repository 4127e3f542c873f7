import type { Schemas } from "@/api/client";
import { formatBytes, formatCount, formatSeconds } from "@/lib/format";
import { useNow } from "./use-now";

type Engine = Schemas["EngineStatus"];
type Props = { engine: Engine; toldAt: number };

export function EngineFacts({ engine, toldAt }: Props) {
  const { loaded } = engine;
  const facts: [string, string | null][] = [
    ["Engine", loaded && engineInWords(loaded.engine)],
    ["Precision", loaded?.dtype ?? null],
    ["Base", loaded?.is_lora ? (loaded.base_model ?? null) : null],
    ["Adapters", loaded?.adapters.join(", ") || null],
    ["Context", loaded && contextInWords(loaded)],
    ["Quant", loaded?.gguf_variant ?? null],
    ["KV cache", loaded?.cache_type_kv || null],
    ["In memory now", engine.resident_bytes === null ? null : formatBytes(engine.resident_bytes)],
    ["Answering", engine.status.state === "failed" ? null : answering(engine)],
    ["Unloads", useTimeLeft({ engine, toldAt })],
    ["Running for", engine.uptime_s === null ? null : formatSeconds(engine.uptime_s)],
    ["Loaded in", loaded && formatSeconds(loaded.load_seconds)],
    ["Device", engine.memory.device],
  ];
  return (
    <dl className="grid grid-cols-2 gap-x-6 gap-y-3 text-sm sm:grid-cols-4">
      {facts.map(
        ([name, value]) =>
          value !== null && (
            <div key={name}>
              <dt className="text-muted-foreground text-xs">{name}</dt>
              <dd className="tabular-nums [overflow-wrap:anywhere]">{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

function engineInWords(engine: string): string {
  switch (engine) {
    case "llama_server":
      return "llama.cpp";
    case "unsloth":
      return "transformers by unsloth";
    default:
      return engine;
  }
}

function contextInWords({
  context_length: context,
  native_context_length: native,
}: Schemas["LoadedModel"]) {
  if (native > 0 && native !== context)
    return `${formatCount(context)} of ${formatCount(native)} tokens`;
  return `${formatCount(context)} tokens`;
}

function answering({ busy, queued }: Engine): string {
  const now = busy === 0 ? "nothing" : busy === 1 ? "1 request" : `${busy} requests`;
  return queued > 0 ? `${now}, ${queued} waiting` : now;
}

/** When it is unloaded by itself; counted down here, from what the server said last. */
function useTimeLeft({ engine, toldAt }: Props): string | null {
  const { pinned, ttl_left_s: told, busy } = engine;
  // While it answers, the time begins anew.
  const isRunning = told !== null && !pinned && busy === 0;
  const now = useNow(isRunning);
  if (engine.status.state !== "ready") return null;
  if (pinned) return "only by you";
  if (told === null) return "not by itself";
  if (busy > 0) return `${formatWholeSeconds(told)} after the answer`;
  return `in ${formatWholeSeconds(told - (now - toldAt) / 1000)}`;
}

/** Without tenths, which would only jitter. */
function formatWholeSeconds(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  return whole < 10 ? `${whole} s` : formatSeconds(whole);
}

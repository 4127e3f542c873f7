export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter" | (string & {});

export type Usage = { promptTokens: number; completionTokens: number };

/** The engine's own measure of the reply, where it gives one. */
export type Timings = {
  promptMilliseconds: number | undefined;
  tokensPerSecond: number | undefined;
};

export type StreamChunk =
  | { type: "content"; text: string }
  | { type: "reasoning"; text: string }
  | { type: "finish"; reason: FinishReason }
  | { type: "usage"; model: string; usage: Usage | null; timings: Timings | null };

type Wire = {
  model?: unknown;
  choices?: {
    delta?: { content?: unknown; reasoning_content?: unknown };
    finish_reason?: unknown;
  }[];
  usage?: { prompt_tokens?: unknown; completion_tokens?: unknown } | null;
  timings?: { prompt_ms?: unknown; predicted_per_second?: unknown } | null;
};

const number = (value: unknown) => (typeof value === "number" ? value : undefined);

/** The meaning of one chunk of a chat completion. */
export function chunksOf(wire: Wire): StreamChunk[] {
  const chunks: StreamChunk[] = [];
  const choice = wire.choices?.[0];
  const { content, reasoning_content: reasoning } = choice?.delta ?? {};
  if (typeof reasoning === "string" && reasoning !== "")
    chunks.push({ type: "reasoning", text: reasoning });
  if (typeof content === "string" && content !== "")
    chunks.push({ type: "content", text: content });
  if (typeof choice?.finish_reason === "string")
    chunks.push({ type: "finish", reason: choice.finish_reason });
  if (wire.usage || wire.timings)
    chunks.push({
      type: "usage",
      model: typeof wire.model === "string" ? wire.model : "",
      usage: wire.usage
        ? {
            promptTokens: number(wire.usage.prompt_tokens) ?? 0,
            completionTokens: number(wire.usage.completion_tokens) ?? 0,
          }
        : null,
      timings: wire.timings
        ? {
            promptMilliseconds: number(wire.timings.prompt_ms),
            tokensPerSecond: number(wire.timings.predicted_per_second),
          }
        : null,
    });
  return chunks;
}

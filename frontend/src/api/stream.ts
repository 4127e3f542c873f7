import { ApiError, errorOfResponse, parseError, toApiError } from "./errors";
import { readEvents } from "./events";

export type ChatMessage = { role: "system" | "user" | "assistant"; content: string };

/** What the page asks of `/v1/chat/completions`; a field left out is left to the model. */
export type CompletionRequest = {
  model: string;
  messages: ChatMessage[];
  temperature?: number | undefined;
  top_p?: number | undefined;
  top_k?: number | undefined;
  min_p?: number | undefined;
  repetition_penalty?: number | undefined;
  presence_penalty?: number | undefined;
  frequency_penalty?: number | undefined;
  max_tokens?: number | undefined;
  seed?: number | undefined;
  stop?: string[] | undefined;
  /** With an assistant's message last: go on in it, and send only what is new. */
  continue_final_message?: boolean | undefined;
  add_generation_prompt?: boolean | undefined;
};

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
  error?: unknown;
};

const number = (value: unknown) => (typeof value === "number" ? value : undefined);

/** The meaning of one event's JSON; throws the ApiError that an error event carries. */
function chunksOf(data: string): StreamChunk[] {
  const wire = JSON.parse(data) as Wire;
  if (wire.error !== undefined)
    throw (
      parseError(wire) ?? new ApiError({ message: "The reply broke off.", code: "unknown_error" })
    );
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

/**
 * Streams one completion until `[DONE]`. Aborting `signal` closes the connection, which stops the
 * engine, and rejects with an AbortError. A refusal, an error inside the stream and a stream that
 * ends without `[DONE]` are all thrown as an ApiError: none of them is ever a finished reply.
 */
export async function* streamCompletion(
  request: CompletionRequest,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk> {
  const response = await fetch(new URL("/v1/chat/completions", window.location.origin), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
    signal,
  }).catch((thrown: unknown) => {
    throw signal.aborted ? thrown : toApiError(thrown);
  });
  if (!response.ok || !response.body) throw await errorOfResponse(response);
  try {
    for await (const event of readEvents(response.body, signal)) {
      if (event.data === "[DONE]") return;
      yield* chunksOf(event.data);
    }
  } catch (thrown) {
    if (!signal.aborted) throw toApiError(thrown);
  }
  if (signal.aborted) throw new DOMException("The reply was stopped.", "AbortError");
  throw new ApiError({
    message: "The reply broke off before it was finished.",
    code: "stream_cut",
    nextStep: "Send it again; if it stays so, load the model anew.",
  });
}

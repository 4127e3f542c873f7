import { chunksOf, type StreamChunk } from "./chunks";
import { http, type Schemas } from "./client";
import { ApiError, errorOfResponse, parseError, toApiError } from "./errors";
import { growingPause, readEvents, type ServerEvent } from "./events";

export type ContentPart =
  | { type: "text"; text: string }
  | { type: "image_url"; image_url: { url: string } }
  | { type: "input_audio"; input_audio: { data: string; format: string } };

export type ChatMessage = {
  role: "system" | "user" | "assistant";
  content: string | ContentPart[];
};

/** What the page asks of `/v1/runs`; a field left out is left to the model. */
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
  enable_thinking?: boolean | undefined;
  /** An adapter's name, or false for the base without any. */
  use_adapter?: string | false | undefined;
  /** With an assistant's message last: go on in it, and send only what is new. */
  continue_final_message?: boolean | undefined;
  add_generation_prompt?: boolean | undefined;
};

/**
 * Starts a reply that goes on when the page is closed, under an `id` that is ours to choose. It is
 * begun once, however often it is asked for.
 */
export async function startRun(id: string, request: CompletionRequest): Promise<void> {
  const body = { ...request, stream: true } as Schemas["ChatRequest"];
  await http.POST("/v1/runs", { body, params: { header: { "idempotency-key": id } } });
}

const inPath = (id: string) => ({ params: { path: { run_id: id } } });

/** Lets the model go on in a run that has ended; its events go on after the last one. */
export async function continueRun(id: string): Promise<void> {
  await http.POST("/v1/runs/{run_id}/continue", inPath(id));
}

/** Ends a run; resolves once it has ended, and goes on trying while the server can't be reached. */
export function cancelRun(id: string): Promise<void> {
  return untilHeard(() => http.POST("/v1/runs/{run_id}/cancel", inPath(id)));
}

/** Ends and forgets a run, as insistently. */
export function deleteRun(id: string): Promise<void> {
  return untilHeard(() => http.DELETE("/v1/runs/{run_id}", inPath(id)));
}

async function untilHeard(call: () => Promise<unknown>): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    try {
      await call();
      return;
    } catch (thrown) {
      const { status } = toApiError(thrown);
      // A refusal is an answer: the run isn't there any more.
      if (status !== 0 && status < 500) return;
    }
    await growingPause(failures);
  }
}

export type RunStep =
  /** One event; a reader who comes back names the number of the last one it has. */
  | { type: "event"; number: number; chunks: StreamChunk[] }
  /** The connection broke: what comes next may have happened a while ago. */
  | { type: "gap" }
  /** Events that were seen are lost with a server that was killed: all is told again. */
  | { type: "anew" }
  /** The last step. Without an error the model came to its end. */
  | { type: "end"; error: ApiError | null };

/** A living connection brings a heartbeat every ten seconds. */
const SILENCE_MILLISECONDS = 30_000;

/**
 * A run's events after the number `after`, until the run ends or `signal` aborts. A connection that
 * breaks, or a server that is away, is waited for; what was told already is not told again.
 */
export async function* followRun(
  id: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<RunStep> {
  let seen = after;
  let failures = 0;
  while (!signal.aborted) {
    try {
      for await (const event of readEvents(await openEvents(id, seen, signal), signal)) {
        const step = stepOf(event);
        failures = 0;
        if (step.type === "event") seen = step.number;
        yield step;
        if (step.type === "end") return;
      }
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error.code === "run_not_found") {
        yield { type: "end", error };
        return;
      }
      if (error.code === "run_events_lost") {
        seen = 0;
        yield { type: "anew" };
        continue;
      }
    }
    if (signal.aborted) return;
    yield { type: "gap" };
    failures += 1;
    await growingPause(failures, signal);
  }
}

async function openEvents(id: string, after: number, signal: AbortSignal) {
  const path = `/v1/runs/${encodeURIComponent(id)}/events`;
  const response = await fetch(new URL(path, window.location.origin), {
    headers: {
      accept: "text/event-stream",
      ...(after === 0 ? {} : { "last-event-id": String(after) }),
    },
    signal,
  });
  if (!response.ok || !response.body) throw await errorOfResponse(response);
  return unlessSilent(response.body);
}

/** `body`, failing once nothing came for so long that its other end must be gone. */
function unlessSilent(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const watch = (controller: TransformStreamDefaultController<Uint8Array>) => {
    clearTimeout(timer);
    timer = setTimeout(
      () => controller.error(new TypeError("the connection fell silent")),
      SILENCE_MILLISECONDS,
    );
  };
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      start: watch,
      transform(bytes, controller) {
        watch(controller);
        controller.enqueue(bytes);
      },
      flush: () => clearTimeout(timer),
    }),
  );
}

function stepOf({ data, id }: ServerEvent): RunStep {
  if (data === "[DONE]") return { type: "end", error: null };
  const told = JSON.parse(data) as Parameters<typeof chunksOf>[0] & { error?: unknown };
  if (told.error === undefined && id !== undefined)
    return { type: "event", number: Number(id), chunks: chunksOf(told) };
  const error =
    parseError(told) ?? new ApiError({ message: "The reply broke off.", code: "unknown_error" });
  return { type: "end", error };
}

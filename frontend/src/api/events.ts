import { EventSourceParserStream } from "eventsource-parser/stream";
import { errorOfResponse, isAbort, toApiError } from "./errors";

export type ServerEvent = { data: string; id?: string | undefined; event?: string | undefined };

/** The events of one open stream, until the server ends it or `signal` aborts. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const events = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(new EventSourceParserStream());
  const reader = events.getReader();
  // Ends a read that waits, also where the stream didn't come from the network.
  const stop = () => void reader.cancel().catch(() => undefined);
  signal.addEventListener("abort", stop);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    // Cancels upstream too: leaving the loop early must close the connection.
    await reader.cancel().catch(() => undefined);
  }
}

const FIRST_PAUSE_MILLISECONDS = 500;
const LONGEST_PAUSE_MILLISECONDS = 10_000;

/**
 * The time to wait after so many failures in a row; over at once when `signal` aborts, the network is
 * back, or the person looks at the page again.
 */
export function growingPause(failures: number, signal?: AbortSignal): Promise<void> {
  const milliseconds = FIRST_PAUSE_MILLISECONDS * 2 ** (failures - 1);
  return new Promise((resolve) => {
    const over = new AbortController();
    const end = () => {
      clearTimeout(timer);
      over.abort();
      resolve();
    };
    const timer = setTimeout(end, Math.min(milliseconds, LONGEST_PAUSE_MILLISECONDS));
    const listening = { signal: over.signal };
    signal?.addEventListener("abort", end, listening);
    addEventListener("online", end, listening);
    document.addEventListener("visibilitychange", () => document.hidden || end(), listening);
    if (signal?.aborted) end();
  });
}

export type FollowOptions = {
  signal: AbortSignal;
  onEvent: (event: ServerEvent) => void;
  /** Told after each lost connection; the follower goes on by itself. */
  onLost?: (error: Error) => void;
};

/**
 * Follows a stream of events until `signal` aborts: opens it anew, with a growing pause and the
 * last event's id, whenever the server ends it or the connection breaks.
 */
export async function followEvents(path: string, options: FollowOptions): Promise<void> {
  const { signal, onEvent, onLost } = options;
  let failures = 0;
  let lastId: string | undefined;
  while (!signal.aborted) {
    try {
      const response = await fetch(new URL(path, window.location.origin), {
        headers: {
          accept: "text/event-stream",
          ...(lastId === undefined ? {} : { "last-event-id": lastId }),
        },
        signal,
      });
      if (!response.ok || !response.body) throw await errorOfResponse(response);
      for await (const event of readEvents(response.body, signal)) {
        failures = 0;
        lastId = event.id ?? lastId;
        onEvent(event);
      }
    } catch (thrown) {
      if (signal.aborted || isAbort(thrown)) return;
      onLost?.(toApiError(thrown));
    }
    failures += 1;
    await growingPause(failures, signal);
  }
}

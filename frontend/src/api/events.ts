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

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
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
    await pause(Math.min(500 * 2 ** (failures - 1), 10_000), signal);
  }
}

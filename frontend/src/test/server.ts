import { HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import { aModel, aStatus, aSystem } from "./fixtures";

/** A body that sends the given parts one by one, as a server's stream arrives. */
export function streamOf(parts: string[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(encoder.encode(part));
      controller.close();
    },
  });
}

export const eventStream = (body: ReadableStream<Uint8Array>) =>
  new HttpResponse(body, { headers: { "content-type": "text/event-stream" } });

/** The OpenAI-shaped answer to a request that failed. */
export const failure = (
  status: number,
  error: { message: string; code: string; evidence?: string; next_step?: string },
) => HttpResponse.json({ error: { type: "server_error", param: null, ...error } }, { status });

/** A machine with one small model loaded; a test replaces the routes that it is about. */
export const server = setupServer(
  http.get("*/v1/status", () => HttpResponse.json(aStatus())),
  http.get("*/v1/models", () => HttpResponse.json({ object: "list", data: [aModel()] })),
  http.get("*/v1/system", () => HttpResponse.json(aSystem())),
  http.get("*/v1/settings", () => HttpResponse.json({ model_dirs: [], load_on_start: true })),
);

import { HttpResponse, http } from "msw";
import { eventStream, failure, server } from "@/test/server";

type Body = { messages: { role: string; content: unknown }[]; [field: string]: unknown };

const encoder = new TextEncoder();

export const delta = (content: string, kind: "content" | "reasoning_content" = "content") =>
  `data: ${JSON.stringify({ choices: [{ delta: { [kind]: content } }] })}\n\n`;
export const finish = (reason = "stop") =>
  `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: reason }] })}\n\n`;
export const usage = (completion: number, perSecond?: number) =>
  `data: ${JSON.stringify({
    model: "the/one-that-answered",
    choices: [],
    usage: { prompt_tokens: 9, completion_tokens: completion },
    ...(perSecond ? { timings: { predicted_per_second: perSecond } } : {}),
  })}\n\n`;
export const done = "data: [DONE]\n\n";
export const broken = (error: { message: string; code: string; evidence?: string }) =>
  `data: ${JSON.stringify({ error })}\n\n`;

/** A run as the server keeps it: numbered events, the one without a number that ends them, readers. */
class ServedRun {
  readonly asked: (string | null)[] = [];
  isCancelled = false;
  private readonly events: string[] = [];
  private end: string | null = null;
  private readonly readers = new Set<ReadableStreamDefaultController<Uint8Array>>();

  say(...parts: string[]): void {
    for (const part of parts) {
      if (part === done || part.startsWith('data: {"error"')) this.finish(part);
      else this.tell(part);
    }
  }

  cancel(): void {
    this.isCancelled = true;
    if (this.end === null) this.finish(broken({ message: "Cancelled.", code: "run_cancelled" }));
  }

  goOn(): void {
    this.end = null;
  }

  /** Breaks all connections, as a network that goes away does. */
  cut(): void {
    for (const reader of this.readers) reader.error(new TypeError("network error"));
    this.readers.clear();
  }

  read(after: string | null) {
    this.asked.push(after);
    const body = new ReadableStream<Uint8Array>({
      start: (reader) => {
        for (const event of this.events.slice(Number(after ?? 0)))
          reader.enqueue(encoder.encode(event));
        this.readers.add(reader);
        if (this.end !== null) this.close(reader, this.end);
      },
      cancel: () => this.readers.clear(),
    });
    return eventStream(body);
  }

  private tell(part: string): void {
    const event = `id: ${this.events.length + 1}\n${part}`;
    this.events.push(event);
    for (const reader of this.readers) reader.enqueue(encoder.encode(event));
  }

  private finish(end: string): void {
    this.end = end;
    for (const reader of [...this.readers]) this.close(reader, end);
  }

  private close(reader: ReadableStreamDefaultController<Uint8Array>, end: string): void {
    reader.enqueue(encoder.encode(end));
    reader.close();
    this.readers.delete(reader);
  }
}

const notFound = () => failure(404, { message: "No such run.", code: "run_not_found" });

/** Serves runs for the test at hand; what each of them says is the test's. */
export function serveRuns(onAsked: (run: ServedRun, body: Body) => void = () => {}) {
  const runs = new Map<string, ServedRun>();
  const bodies: Body[] = [];
  const continued: string[] = [];
  const found = (id: unknown, answer: (run: ServedRun, id: string) => Response) => {
    const run = runs.get(String(id));
    return run ? answer(run, String(id)) : notFound();
  };
  server.use(
    http.post("*/v1/runs", async ({ request }) => {
      const body = (await request.json()) as Body;
      const id = request.headers.get("idempotency-key") ?? `run-${runs.size + 1}`;
      if (runs.has(id)) return HttpResponse.json({ id, status: "running" });
      const run = new ServedRun();
      runs.set(id, run);
      bodies.push(body);
      onAsked(run, body);
      return HttpResponse.json({ id, status: "queued" }, { status: 201 });
    }),
    http.get("*/v1/runs/:id/events", ({ params, request }) =>
      found(params.id, (run) => run.read(request.headers.get("last-event-id"))),
    ),
    http.post("*/v1/runs/:id/cancel", ({ params }) =>
      found(params.id, (run, id) => {
        run.cancel();
        return HttpResponse.json({ id, status: "cancelled" });
      }),
    ),
    http.post("*/v1/runs/:id/continue", ({ params }) =>
      found(params.id, (run, id) => {
        run.goOn();
        continued.push(id);
        onAsked(run, bodies[0] as Body);
        return HttpResponse.json({ id, status: "queued" });
      }),
    ),
    http.delete("*/v1/runs/:id", ({ params }) =>
      found(params.id, (run, id) => {
        run.cancel();
        runs.delete(id);
        return new HttpResponse(null, { status: 204 });
      }),
    ),
  );
  return { runs, bodies, continued };
}

/** Each asking is answered with the next of `replies` (each a list of parts); notes the bodies. */
export function answering(...replies: string[][]) {
  let asked = 0;
  return serveRuns((run) => {
    asked += 1;
    run.say(...(replies[Math.min(asked, replies.length) - 1] ?? []));
  }).bodies;
}

/** A reply that the test feeds by hand. */
export function openReply(onAsked = () => {}) {
  let tellBegun = () => {};
  const begun = new Promise<void>((resolve) => {
    tellBegun = resolve;
  });
  let run: ServedRun | undefined;
  const served = serveRuns((started) => {
    run = started;
    onAsked();
    tellBegun();
  });
  return {
    ...served,
    begun,
    say: (...parts: string[]) => run?.say(...parts),
    cut: () => run?.cut(),
    run: () => run,
  };
}

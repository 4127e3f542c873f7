import { isAbort, toApiError } from "@/api/errors";
import {
  type CompletionRequest,
  type StreamChunk,
  streamCompletion,
  type Timings,
  type Usage,
} from "@/api/stream";
import type { Fault, Outcome, Reply, ReplyStats } from "./tree";

export type ReplyRequest = CompletionRequest & { enable_thinking?: boolean };

export type Arrived = Pick<Reply, "content" | "reasoning" | "reasoningSeconds">;

/** What a running reply has brought so far; shown instead of what the tree holds of it. */
export type Progress = Arrived & { replyId: string };

/**
 * Gathers the chunks of one reply. Tokens can outrun the screen, so `show` is called at most once
 * per animation frame, and once at the end.
 */
class Gathering {
  content: string;
  reasoning: string;
  reasoningSeconds: number | null;
  reason = "stop";
  model = "";
  private deltas = 0;
  private usage: Usage | null = null;
  private timings: Timings | null = null;
  private firstAt: number | null = null;
  private lastAt: number | null = null;
  private readonly startedAt = performance.now();
  private readonly before: Reply;

  constructor(before: Reply) {
    this.before = before;
    this.content = before.content;
    this.reasoning = before.reasoning;
    this.reasoningSeconds = before.reasoningSeconds;
  }

  take(chunk: StreamChunk) {
    switch (chunk.type) {
      case "content":
        this.arrived();
        if (this.reasoning && this.reasoningSeconds === null) this.endReasoning();
        this.content += chunk.text;
        break;
      case "reasoning":
        this.arrived();
        this.reasoning += chunk.text;
        break;
      case "finish":
        this.reason = chunk.reason;
        break;
      case "usage":
        this.model = chunk.model || this.model;
        this.usage = chunk.usage ?? this.usage;
        this.timings = chunk.timings ?? this.timings;
        break;
    }
  }

  endReasoning() {
    if (this.reasoning && this.reasoningSeconds === null && this.firstAt !== null)
      this.reasoningSeconds = (performance.now() - this.firstAt) / 1000;
  }

  private arrived() {
    this.lastAt = performance.now();
    this.firstAt ??= this.lastAt;
    this.deltas += 1;
  }

  /** The engine's figures where it sent them, else the page's own. */
  stats(): ReplyStats | null {
    if (this.firstAt === null || this.lastAt === null) return this.before.stats;
    const tokens = this.usage?.completionTokens ?? this.deltas;
    const seconds = (this.lastAt - this.firstAt) / 1000;
    // The first token's time belongs to the prompt, so one fewer was decoded in this span.
    const measured = seconds > 0 && tokens > 1 ? (tokens - 1) / seconds : null;
    const earlier = this.before.stats;
    return {
      tokens: tokens + (earlier?.tokens ?? 0),
      isCounted: this.usage !== null && (earlier?.isCounted ?? true),
      tokensPerSecond: this.timings?.tokensPerSecond ?? measured,
      firstTokenSeconds: earlier?.firstTokenSeconds ?? (this.firstAt - this.startedAt) / 1000,
    };
  }
}

/**
 * The chunks until `signal` aborts. A reply is stopped for the person at once, even while the
 * connection that is being closed still waits for its next byte.
 */
async function* untilAborted(chunks: AsyncGenerator<StreamChunk>, signal: AbortSignal) {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  // Nobody may be waiting for it when the stop comes.
  aborted.catch(() => {});
  for (;;) {
    const { done, value } = await Promise.race([chunks.next(), aborted]);
    if (done) return;
    yield value;
  }
}

function faultOf(thrown: unknown): Fault {
  const { message, code, evidence, nextStep } = toApiError(thrown);
  return { message, code, evidence: evidence ?? null, nextStep: nextStep ?? null };
}

/**
 * Streams `request` into `reply` and returns it as it ended. Never rejects: a failure is an outcome
 * of the reply, beside whatever text had come.
 */
export async function streamReply(
  reply: Reply,
  request: ReplyRequest,
  signal: AbortSignal,
  show: (arrived: Arrived) => void,
): Promise<Reply> {
  const gathering = new Gathering(reply);
  let frame = 0;
  const showNow = () => {
    frame = 0;
    const { content, reasoning, reasoningSeconds } = gathering;
    show({ content, reasoning, reasoningSeconds });
  };
  let outcome: Outcome;
  try {
    for await (const chunk of untilAborted(streamCompletion(request, signal), signal)) {
      gathering.take(chunk);
      frame ||= requestAnimationFrame(showNow);
    }
    outcome = { state: "finished", reason: gathering.reason };
  } catch (thrown) {
    outcome =
      signal.aborted || isAbort(thrown)
        ? { state: "stopped" }
        : { state: "failed", fault: faultOf(thrown) };
  }
  cancelAnimationFrame(frame);
  gathering.endReasoning();
  const { content, reasoning, reasoningSeconds } = gathering;
  return {
    ...reply,
    content,
    reasoning,
    reasoningSeconds,
    model: gathering.model || reply.model,
    outcome,
    stats: gathering.stats(),
  };
}

/** A reply's end in words, for those who listen to the page: said once, not token by token. */
export function announcementOf({ outcome, content }: Reply): string {
  switch (outcome.state) {
    case "failed":
      return `The reply failed: ${outcome.fault.message}`;
    case "stopped":
      return "The reply was stopped.";
    default:
      return `Reply: ${content}`;
  }
}

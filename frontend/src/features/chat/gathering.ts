import type { StreamChunk, Timings, Usage } from "@/api/chunks";
import type { RunningReply } from "./tree";

/**
 * Gathers what a run brings into its reply. All that has to be known to go on later, from the next
 * event, stands in the reply itself.
 */
export class Gathering {
  reason = "stop";
  private now: RunningReply;
  private firstAt: number | null = null;
  private lastAt: number | null = null;
  private askedAt: number | null;

  /** `askedAt` is when the page asked for what comes; null if it comes from earlier. */
  constructor(reply: RunningReply, askedAt: number | null) {
    this.now = reply;
    this.askedAt = askedAt;
  }

  /** The reply as far as it has come. */
  get reply(): RunningReply {
    return this.now;
  }

  take(number: number, chunks: readonly StreamChunk[]): void {
    for (const chunk of chunks) this.takeChunk(chunk);
    this.now = { ...this.now, run: { ...this.now.run, lastEvent: number } };
  }

  /** The events come again from the run's first one. */
  startAnew(): void {
    this.stopMeasuring();
    const { content, reasoning, reasoningSeconds, run } = this.now;
    this.now = {
      ...this.now,
      content: content.slice(0, run.start.content),
      reasoning: reasoning.slice(0, run.start.reasoning),
      reasoningSeconds: run.start.reasoning ? reasoningSeconds : null,
      stats: run.start.stats,
      run: { ...run, lastEvent: 0, before: run.start.stats },
    };
  }

  /** What comes from now on may have happened earlier: its times say nothing. */
  stopMeasuring(): void {
    this.askedAt = null;
    this.firstAt = null;
  }

  endReasoning(): void {
    const { reasoning, reasoningSeconds } = this.now;
    if (reasoning && reasoningSeconds === null && this.firstAt !== null)
      this.change({ reasoningSeconds: (performance.now() - this.firstAt) / 1000 });
  }

  private takeChunk(chunk: StreamChunk): void {
    switch (chunk.type) {
      case "content":
        if (this.now.content.length === this.now.run.start.content) this.endReasoning();
        this.change({ content: this.now.content + chunk.text });
        this.count();
        break;
      case "reasoning":
        this.change({ reasoning: this.now.reasoning + chunk.text });
        this.count();
        break;
      case "finish":
        this.reason = chunk.reason;
        break;
      case "usage":
        this.change({ model: chunk.model || this.now.model });
        this.takeFigures(chunk.usage, chunk.timings);
        break;
    }
  }

  private change(changes: Partial<RunningReply>): void {
    this.now = { ...this.now, ...changes };
  }

  /** One more delta, taken for a token until the engine says how many there were. */
  private count(): void {
    const { stats, run } = this.now;
    const arrivedAt = performance.now();
    if (this.askedAt !== null) {
      this.firstAt ??= arrivedAt;
      this.lastAt = arrivedAt;
    }
    const tokens = (stats?.tokens ?? 0) + 1;
    this.change({
      stats: {
        tokens,
        isCounted: false,
        tokensPerSecond: this.measured(tokens - (run.before?.tokens ?? 0)),
        firstTokenSeconds: stats?.firstTokenSeconds ?? this.firstTokenSeconds(),
      },
    });
  }

  private takeFigures(usage: Usage | null, timings: Timings | null): void {
    const { stats, run } = this.now;
    if (!stats) return;
    const earlier = run.before?.tokens ?? 0;
    const deltas = stats.tokens - earlier;
    // Fewer tokens than deltas: it speaks only of the last of several askings that came at once.
    const isOfAll = usage !== null && usage.completionTokens >= deltas;
    const tokens = isOfAll ? usage.completionTokens : deltas;
    const ended = {
      ...stats,
      tokens: earlier + tokens,
      isCounted: isOfAll && (run.before?.isCounted ?? true),
      tokensPerSecond: timings?.tokensPerSecond ?? this.measured(tokens),
    };
    this.change({ stats: ended, run: { ...run, before: ended } });
  }

  private firstTokenSeconds(): number | null {
    if (this.askedAt === null || this.firstAt === null) return null;
    return (this.firstAt - this.askedAt) / 1000;
  }

  private measured(tokens: number): number | null {
    if (this.firstAt === null || this.lastAt === null) return null;
    const seconds = (this.lastAt - this.firstAt) / 1000;
    // The first token's time belongs to the prompt, so one fewer was decoded in this span.
    return seconds > 0 && tokens > 1 ? (tokens - 1) / seconds : null;
  }
}

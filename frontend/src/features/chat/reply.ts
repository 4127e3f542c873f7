import { type ApiError, toApiError } from "@/api/errors";
import { cancelRun, followRun } from "@/api/runs";
import { assertNever } from "@/lib/assert-never";
import { Gathering } from "./gathering";
import {
  type Fault,
  type Outcome,
  type Reply,
  type RunningReply,
  type RunPlace,
  withoutPending,
} from "./tree";

export type Following = {
  /** Aborting it ends the run: the reply is stopped. */
  signal: AbortSignal;
  /** What has come so far; at most once per animation frame, as tokens can outrun the screen. */
  show: (reply: Reply) => void;
};

/** How a reply gets its run. */
export type Beginning = {
  begin: () => Promise<RunPlace>;
  /** Ends what was begun where the reply was stopped before the server had answered. */
  giveUp: (runId: string) => Promise<void>;
  /** Keeps the reply with its run, before anything of it is shown. */
  keep: (reply: RunningReply) => Promise<void>;
};

/** Asks for `reply` and returns it as it ended. Never rejects: a failure is an outcome of the reply. */
export async function writeReply(
  reply: Reply,
  { begin, giveUp, keep }: Beginning,
  following: Following,
): Promise<Reply> {
  const askedAt = performance.now();
  const beginning = begin();
  try {
    const run = await unlessAborted(beginning, following.signal);
    const begun = { ...reply, run };
    following.show(begun);
    await keep(begun);
    return await followReply(begun, following, askedAt);
  } catch (thrown) {
    if (!following.signal.aborted)
      return {
        ...withoutPending(reply),
        outcome: { state: "failed", fault: faultOf(toApiError(thrown)) },
      };
    // What was refused has nothing to be ended.
    void beginning.then(({ id }) => giveUp(id)).catch(() => undefined);
    return { ...withoutPending(reply), outcome: { state: "stopped" } };
  }
}

/**
 * Follows the run of `reply` to its end and returns the reply as it ended; never rejects. `askedAt`
 * is when this page asked for it, by `performance.now()`; null if it didn't.
 */
export async function followReply(
  reply: RunningReply,
  { signal, show }: Following,
  askedAt: number | null = null,
): Promise<Reply> {
  const gathering = new Gathering(reply, askedAt);
  let frame = 0;
  const showNow = () => {
    frame = 0;
    show(gathering.reply);
  };
  let outcome: Outcome = { state: "stopped" };
  let isForgotten = false;
  try {
    const steps = followRun(reply.run.id, reply.run.lastEvent, signal);
    for (;;) {
      const { done, value: step } = await unlessAborted(steps.next(), signal);
      if (done) break;
      switch (step.type) {
        case "event":
          gathering.take(step.number, step.chunks);
          frame ||= requestAnimationFrame(showNow);
          break;
        case "gap":
          gathering.stopMeasuring();
          break;
        case "anew":
          gathering.startAnew();
          break;
        case "end":
          outcome = outcomeOf(step.error, gathering.reason);
          isForgotten = step.error?.code === "run_not_found";
          break;
        default:
          assertNever(step);
      }
    }
  } catch {
    // It was stopped, which no step says.
  }
  cancelAnimationFrame(frame);
  if (signal.aborted) void cancelRun(reply.run.id);
  gathering.endReasoning();
  const { run, ...ended } = gathering.reply;
  return { ...ended, ...(isForgotten ? {} : { run }), outcome };
}

/**
 * What `promise` brings, or a rejection as soon as `signal` aborts. A reply is stopped for the person
 * at once, even while the connection that is being closed still waits for its next byte.
 */
function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
    void promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

function outcomeOf(error: ApiError | null, reason: string): Outcome {
  switch (error?.code) {
    case undefined:
      return { state: "finished", reason };
    case "run_cancelled":
      return { state: "stopped" };
    // The server was ended in the middle, or has forgotten the run since.
    case "run_interrupted":
    case "run_not_found":
      return { state: "interrupted" };
    default:
      return { state: "failed", fault: faultOf(error as ApiError) };
  }
}

function faultOf({ message, code, evidence, nextStep }: ApiError): Fault {
  return { message, code, evidence: evidence ?? null, nextStep: nextStep ?? null };
}

/** A reply's end in words, for those who listen to the page: said once, not token by token. */
export function announcementOf({ outcome, content }: Reply): string {
  switch (outcome.state) {
    case "failed":
      return `The reply failed: ${outcome.fault.message}`;
    case "stopped":
      return "The reply was stopped.";
    case "interrupted":
      return "The reply was interrupted.";
    default:
      return `Reply: ${content}`;
  }
}

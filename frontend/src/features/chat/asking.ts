import { toApiError } from "@/api/errors";
import { type CompletionRequest, cancelRun, continueRun, deleteRun, startRun } from "@/api/runs";
import type { Beginning } from "./reply";
import { type ModelSettings, samplingRequest } from "./sampling";
import type { Message, Reply, RunPlace } from "./tree";
import { requestMessages } from "./tree";

/** Whom a reply is asked of, and how. */
export type Asked = {
  model: string;
  settings: ModelSettings;
  supportsReasoning: boolean;
  seesPictures: boolean;
};

/** How a reply is asked for, and how that is taken back. */
export type Ways = Pick<Beginning, "begin" | "giveUp">;

/** A reply to the end of `branch`. */
export function asNewRun(reply: Reply, branch: Message[], asked: Asked): Ways {
  return {
    begin: () => newRun(reply, requestFor(branch, asked), asked),
    giveUp: deleteRun,
  };
}

/**
 * `reply` goes on where it ended: in its own run where that can be continued and is asked for as it
 * was, otherwise in a new one that is given the text so far, which ends `branch`.
 */
export function asContinuation(reply: Reply, branch: Message[], asked: Asked): Ways {
  const { run } = reply;
  const begin = async () => {
    if (run && isAskedAlike(run, asked) && (await hasGoneOn(run, reply)))
      return { ...run, before: reply.stats };
    const begun = await newRun(reply, continuationFor(branch, asked), asked);
    if (run) void deleteRun(run.id);
    return begun;
  };
  return { begin, giveUp: (id) => (id === run?.id ? cancelRun(id) : deleteRun(id)) };
}

async function hasGoneOn({ id }: RunPlace, { outcome }: Reply): Promise<boolean> {
  // The stop may be on its way still, and what is under way can't be continued.
  if (outcome.state === "stopped") await cancelRun(id);
  try {
    await continueRun(id);
    return true;
  } catch (thrown) {
    if (["run_cannot_continue", "run_not_found"].includes(toApiError(thrown).code)) return false;
    throw thrown;
  }
}

async function newRun(reply: Reply, request: CompletionRequest, asked: Asked): Promise<RunPlace> {
  const { content, reasoning, stats } = reply;
  return {
    id: await startRun(request),
    asked: { model: asked.model, settings: asked.settings },
    lastEvent: 0,
    start: { content: content.length, reasoning: reasoning.length, stats },
    before: stats,
  };
}

function isAskedAlike({ asked: before }: RunPlace, { model, settings }: Asked): boolean {
  return JSON.stringify(before) === JSON.stringify({ model, settings });
}

function requestFor(branch: Message[], { model, settings }: Asked): CompletionRequest {
  return {
    model,
    messages: requestMessages(branch, settings.systemPrompt),
    ...samplingRequest(settings),
  };
}

function continuationFor(branch: Message[], asked: Asked): CompletionRequest {
  return {
    ...requestFor(branch, asked),
    // The model is put back into the middle of its answer: there is no room to think first.
    ...(asked.supportsReasoning ? { enable_thinking: false } : {}),
    // Without these the engine begins by repeating all that stands there already.
    continue_final_message: true,
    add_generation_prompt: false,
  };
}

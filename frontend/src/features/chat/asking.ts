import { toApiError } from "@/api/errors";
import { type CompletionRequest, cancelRun, continueRun, deleteRun, startRun } from "@/api/runs";
import { newId } from "./new-id";
import type { Beginning } from "./reply";
import { type ModelSettings, samplingRequest } from "./sampling";
import type { Conversation, Message, Reply, RunningReply, RunPlace } from "./tree";
import { branchTo, requestMessages } from "./tree";

/** Whom a reply is asked of, and how. */
export type Asked = {
  model: string;
  settings: ModelSettings;
  supportsReasoning: boolean;
  seesPictures: boolean;
  hearsSounds?: boolean;
};

/** How a reply is asked for, and how that is taken back. */
export type Ways = Pick<Beginning, "begin" | "giveUp">;

/** The place of the run that will write `reply`: its id is known before the server is asked. */
export function newPlace({ content, reasoning, stats }: Reply, asked: Asked): RunPlace {
  return {
    id: newId(),
    isPending: true,
    asked: { model: asked.model, settings: asked.settings },
    lastEvent: 0,
    start: { content: content.length, reasoning: reasoning.length, stats },
    before: stats,
  };
}

/** A reply to the end of `branch`. */
export function asNewRun({ run }: RunningReply, branch: Message[], asked: Asked): Ways {
  return { begin: () => begun(run, requestFor(branch, asked)), giveUp: deleteRun };
}

/** A reply that was being asked for when the page was closed. */
export function asBefore(reply: RunningReply, conversation: Conversation): Ways {
  const { run } = reply;
  // What it needed to know of the model has been asked then.
  const asked = { ...run.asked, supportsReasoning: true, seesPictures: true, hearsSounds: true };
  const request = reply.content
    ? continuationFor(branchTo(conversation, reply.id), asked)
    : requestFor(branchTo(conversation, reply.parentId), asked);
  return { begin: () => begun(run, request), giveUp: deleteRun };
}

/**
 * `reply` goes on where it ended: in its own run where that can be continued and is asked for as it
 * was, otherwise in a new one that is given the text so far, which ends `branch`. `keepAsked` keeps
 * where that one is to be found, before it is asked for.
 */
export function asContinuation(
  reply: Reply,
  branch: Message[],
  asked: Asked,
  keepAsked: (place: RunPlace) => Promise<void>,
): Ways {
  const { run } = reply;
  const begin = async () => {
    if (run && isAskedAlike(run, asked) && (await hasGoneOn(run, reply)))
      return { ...run, before: reply.stats };
    const place = newPlace(reply, asked);
    await keepAsked(place);
    const other = await begun(place, continuationFor(branch, asked));
    if (run) void deleteRun(run.id);
    return other;
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

async function begun(
  { isPending: _, ...place }: RunPlace,
  request: CompletionRequest,
): Promise<RunPlace> {
  await startRun(place.id, request);
  return place;
}

function isAskedAlike({ asked: before }: RunPlace, { model, settings }: Asked): boolean {
  return JSON.stringify(before) === JSON.stringify({ model, settings });
}

function requestFor(branch: Message[], { model, settings }: Asked): CompletionRequest {
  return {
    model,
    messages: requestMessages(branch, settings.systemPrompt),
    ...samplingRequest(settings),
    ...(settings.adapter === undefined ? {} : { use_adapter: settings.adapter }),
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

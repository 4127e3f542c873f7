import type { LoadState } from "@/api/models";

type FailedLoad = Extract<LoadState, { state: "failed" }>;

/** Whether a load was refused only because answers are under way: then the person is asked. */
export function asksToEndAnswers({ error, request }: FailedLoad): boolean {
  return error.code === "engine_busy" && !request.force;
}

import { expect, test } from "vitest";
import { aLoadedModel, aModel, anEmptyStatus, anEngine, aStatus, SMOLLM } from "@/test/fixtures";
import { reachableIn, type Status, withServed } from "./reachable";

const cards = [aModel({ status: "on_disk" }), aModel({ id: "other", display_name: "Other" })];
const starting = {
  state: "starting",
  phase: "starting",
  loaded_bytes: 0,
  total_bytes: 0,
  elapsed_seconds: 0,
} as const;
const crash = { message: "It was killed.", code: "engine_killed" };
const down = (changes: Parameters<typeof anEngine>[0] = {}) =>
  anEmptyStatus({
    engines: [anEngine({ status: { state: "failed", error: crash }, loaded: null, ...changes })],
  });

/** What a message would reach after these reports, while nothing is loading. */
function reachedAfter(...reports: ReturnType<typeof aStatus>[]) {
  const last = reports.reduce<Status>(
    (before, next) => withServed(next, before.served),
    withServed(anEmptyStatus(), {}),
  );
  return reachableIn(last, last.loading[0] ?? null, cards);
}

test("with nothing loaded and nothing asleep, nothing", () => {
  expect(reachedAfter(anEmptyStatus())).toBeNull();
});

test("the active model, rather than one that sleeps", () => {
  expect(reachedAfter(aStatus({ asleep: ["other"] }))?.model).toBe(SMOLLM);
});

test("the one that fell asleep last, by the name it has on disk", () => {
  const asleep = anEmptyStatus({ asleep: [SMOLLM, "other"] });
  expect(reachedAfter(asleep)).toEqual({
    model: "other",
    name: "Other",
    task: "chat",
    loaded: null,
  });
});

test("what was seen of a model while it was loaded is kept while it sleeps", () => {
  const asleep = anEmptyStatus({ asleep: [SMOLLM] });
  expect(reachedAfter(aStatus(), asleep, asleep)?.loaded).toEqual(aLoadedModel());
});

test("a model that is woken, until it is ready; not one that is loaded for the first time", () => {
  const asleep = anEmptyStatus({ asleep: [SMOLLM] });
  const waking = anEmptyStatus({
    loading: [SMOLLM],
    engines: [anEngine({ status: starting, loaded: null })],
  });
  expect(reachedAfter(asleep, { ...asleep, loading: [SMOLLM] }, waking)?.model).toBe(SMOLLM);
  expect(reachedAfter(waking)).toBeNull();
});

test("nothing while another model is loading", () => {
  expect(reachedAfter(anEmptyStatus({ asleep: [SMOLLM], loading: ["other"] }))).toBeNull();
});

test("one that crashed, be it seen serving or told to have been started again before", () => {
  expect(reachedAfter(aStatus(), down())?.model).toBe(SMOLLM);
  expect(reachedAfter(down({ restarts: 1 }))?.model).toBe(SMOLLM);
});

test("not one whose first start failed: then what sleeps", () => {
  expect(reachedAfter(down())).toBeNull();
  expect(reachedAfter({ ...down(), asleep: ["other"] })?.model).toBe("other");
});

test("not one that a person unloads, from the moment that it stops", () => {
  const stopping = anEmptyStatus({
    engines: [anEngine({ status: { state: "stopping" }, loaded: null })],
  });
  expect(reachedAfter(aStatus(), stopping)).toBeNull();
  expect(reachedAfter(aStatus(), anEmptyStatus(), down())).toBeNull();
});

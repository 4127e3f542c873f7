import { act, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { afterEach, expect, test, vi } from "vitest";
import type { Schemas } from "@/api/client";
import { optionsOfLoad } from "@/api/load-requests";
import { aLedger, aLoadedModel, anEngine, aStatus, SMOLLM, someMemory } from "@/test/fixtures";
import { renderInApp } from "@/test/render";
import { failure, server } from "@/test/server";
import { BusyQuestion } from "./busy-question";
import { Running } from "./running";

const GIB = 1024 ** 3;
const crash = {
  message: "The engine was ended by SIGKILL.",
  code: "engine_killed",
  evidence: "slot 0: decoding",
  next_step: "Send the request again.",
};

afterEach(() => vi.useRealTimers());

/** A server that runs `engine`; the test may change it, and sees what is asked. */
function serverWith(
  engine: Schemas["EngineStatus"],
  changes: Partial<Schemas["StatusReply"]> = {},
) {
  const studio = {
    engine,
    loads: [] as Schemas["LoadRequest"][],
    unloads: [] as Schemas["UnloadRequest"][],
    keeps: [] as Schemas["KeepRequest"][],
    polls: 0,
  };
  server.use(
    http.get("*/v1/status", () => {
      studio.polls += 1;
      return HttpResponse.json(aStatus({ engines: [studio.engine], ...changes }));
    }),
    http.post<never, Schemas["LoadRequest"]>("*/v1/load", async ({ request }) => {
      studio.loads.push(await request.json());
      return HttpResponse.json({ status: "already_loaded", ...aLoadedModel() });
    }),
    http.post<never, Schemas["KeepRequest"]>("*/v1/keep", async ({ request }) => {
      const body = await request.json();
      studio.keeps.push(body);
      const { pinned, ttl_left_s } = studio.engine;
      studio.engine = {
        ...studio.engine,
        pinned: body.pin ?? pinned,
        ttl_left_s: body.ttl_s ?? ttl_left_s,
      };
      return HttpResponse.json({ model: SMOLLM, ttl_s: body.ttl_s ?? null, pinned });
    }),
    http.post<never, Schemas["UnloadRequest"]>("*/v1/unload", async ({ request }) => {
      const body = await request.json();
      studio.unloads.push(body);
      if (studio.engine.busy > 0 && !body.force)
        return failure(409, { message: "It answers requests.", code: "engine_busy" });
      return HttpResponse.json({ status: "unloaded", model: SMOLLM });
    }),
  );
  return studio;
}

function open(engine: Schemas["EngineStatus"], changes: Partial<Schemas["StatusReply"]> = {}) {
  const studio = serverWith(engine, changes);
  const onOptions = vi.fn();
  const app = renderInApp(
    <>
      <BusyQuestion />
      <Running onOptions={onOptions} />
    </>,
  );
  return { studio, onOptions, ...app };
}

const card = () => screen.findByRole("article", { name: "SmolLM2 135M Instruct" });

test("a ready engine says its context, warnings, memory and requests", async () => {
  open(
    anEngine({
      loaded: aLoadedModel({
        context_length: 4096,
        warnings: ["The context was cut to 4096 tokens to fit."],
      }),
      busy: 2,
      queued: 1,
    }),
  );
  const shown = within(await card());
  expect(shown.getByText("4 096 of 8 192 tokens")).toBeVisible();
  expect(
    within(shown.getByRole("list", { name: "Warnings" })).getByText(/was cut to 4096/),
  ).toBeVisible();
  expect(shown.getByText("2 requests, 1 waiting")).toBeVisible();
  expect(shown.getByText("300 MiB")).toBeVisible();
  expect(shown.getByText("338 MiB")).toBeVisible();
  expect(shown.getByText("not by itself")).toBeVisible();
});

test("what nobody waits for is unloaded without a question", async () => {
  const { user, studio } = open(anEngine());
  await user.click(within(await card()).getByRole("button", { name: "Unload" }));
  await waitFor(() => expect(studio.unloads).toEqual([{ model_path: SMOLLM, force: false }]));
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("before answers are ended it asks, and the safe choice has the focus", async () => {
  const { user, studio } = open(anEngine({ busy: 1 }));
  await user.click(within(await card()).getByRole("button", { name: "Unload" }));
  const question = await screen.findByRole("dialog", { name: "1 answer is under way; end it?" });
  expect(within(question).getByRole("button", { name: "Let it finish" })).toHaveFocus();
  await user.keyboard("{Enter}");
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(studio.unloads).toEqual([{ model_path: SMOLLM, force: false }]);

  await user.click(within(await card()).getByRole("button", { name: "Unload" }));
  await user.click(await screen.findByRole("button", { name: "End it and unload" }));
  await waitFor(() => expect(studio.unloads.at(-1)).toEqual({ model_path: SMOLLM, force: true }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
});

test("a pin is set and taken away, which starts nothing", async () => {
  const { user, studio } = open(anEngine());
  const pin = within(await card()).getByRole("button", { name: "Pin" });
  expect(pin).toHaveAttribute("aria-pressed", "false");
  await user.click(pin);
  await waitFor(() => expect(pin).toHaveAttribute("aria-pressed", "true"));
  expect(within(await card()).getByText("Pinned")).toBeVisible();
  expect(within(await card()).getByText("only by you")).toBeVisible();
  await user.click(pin);
  await waitFor(() => expect(pin).toHaveAttribute("aria-pressed", "false"));
  expect(studio.keeps).toEqual([
    { model_path: SMOLLM, pin: true },
    { model_path: SMOLLM, pin: false },
  ]);
  expect(studio.loads).toEqual([]);
});

test("the idle time is chosen on the card, and a load with options goes on from there", async () => {
  const { user, studio } = open(anEngine());
  await user.click(within(await card()).getByRole("button", { name: "Unload after…" }));
  await user.click(await screen.findByRole("menuitem", { name: "5 minutes" }));
  expect(await within(await card()).findByText(/^in (5 min 0 s|4 min \d+ s)$/)).toBeVisible();
  expect(studio.keeps).toEqual([{ model_path: SMOLLM, ttl_s: 300 }]);
  expect(optionsOfLoad(SMOLLM, aLoadedModel())).toEqual({ max_seq_length: 0, ttl_s: 300 });
});

test("a pinned model has no idle time to choose", async () => {
  open(anEngine({ pinned: true }));
  const shown = within(await card());
  expect(shown.getByRole("button", { name: "Pin" })).toBeVisible();
  expect(shown.queryByRole("button", { name: "Unload after…" })).toBeNull();
});

test("a model that left before it could be pinned is told of on its card", async () => {
  const { user } = open(anEngine());
  server.use(
    http.post("*/v1/keep", () =>
      failure(409, { message: "It isn't loaded.", code: "no_model_loaded" }),
    ),
  );
  await user.click(within(await card()).getByRole("button", { name: "Pin" }));
  expect(await within(await card()).findByRole("alert")).toHaveTextContent("It isn't loaded.");
});

test("the time to the idle unload runs down without asking the server", async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true, toFake: ["Date", "setInterval", "clearInterval"] });
  const { studio } = open(anEngine({ ttl_left_s: 200 }));
  const shown = within(await card());
  expect(await shown.findByText(/^in 3 min (20|19) s$/)).toBeVisible();
  const polls = studio.polls;
  act(() => void vi.advanceTimersByTime(4_000));
  expect(await shown.findByText(/^in 3 min 1[56] s$/)).toBeVisible();
  expect(studio.polls).toBe(polls);
});

test("while it answers, the idle time stands still", async () => {
  open(anEngine({ ttl_left_s: 300, busy: 1 }));
  expect(within(await card()).getByText("5 min 0 s after the answer")).toBeVisible();
});

test("a starting engine shows its phase, bytes and time, and can be cancelled", async () => {
  const status = {
    state: "starting",
    phase: "starting",
    loaded_bytes: GIB,
    total_bytes: 4 * GIB,
    elapsed_seconds: 12,
  } as const;
  const { user, studio } = open(anEngine({ status, loaded: null, restarts: 1, last_error: crash }));
  const shown = within(await card());
  expect(shown.getByText("Reading the weights · 1.0 GiB of 4.0 GiB · 12 s")).toBeVisible();
  expect(shown.getByRole("progressbar")).toHaveAttribute("aria-valuenow", "25");
  expect(shown.getByText(/Being started again after a crash/)).toBeVisible();
  expect(shown.queryByRole("button", { name: "Pin" })).toBeNull();
  await user.click(shown.getByRole("button", { name: "Cancel" }));
  await waitFor(() => expect(studio.unloads).toEqual([{ model_path: SMOLLM, force: true }]));
});

test("a failed engine says why in its own words and can be loaded again", async () => {
  const { user, studio } = open(
    anEngine({ status: { state: "failed", error: crash }, loaded: null, pid: null }),
  );
  const shown = within(await card());
  expect(shown.getByText(crash.message)).toBeVisible();
  expect(shown.getByText(crash.evidence).tagName).toBe("PRE");
  expect(shown.getByText(crash.next_step)).toBeVisible();
  expect(shown.getByRole("button", { name: "Dismiss" })).toBeVisible();
  await user.click(shown.getByRole("button", { name: "Load again" }));
  await waitFor(() => expect(studio.loads).toMatchObject([{ model_path: SMOLLM }]));
});

test("a crash that was mended by itself stays told, without an alarm", async () => {
  open(anEngine({ restarts: 2, last_error: crash }));
  const shown = within(await card());
  expect(
    shown.getByText(`Started again 2 times, last after a crash: ${crash.message}`),
  ).toBeVisible();
  expect(shown.queryByRole("alert")).toBeNull();
  expect(shown.getByText("Ready")).toBeVisible();
});

test("an unload that fails says so on the card", async () => {
  const { user } = open(anEngine());
  server.use(
    http.post("*/v1/unload", () =>
      failure(500, { message: "The process could not be ended.", code: "internal_error" }),
    ),
  );
  await user.click(within(await card()).getByRole("button", { name: "Unload" }));
  expect(await within(await card()).findByRole("alert")).toHaveTextContent(
    "The process could not be ended.",
  );
});

test("the machine's memory is split over models, promises, others and what is free", async () => {
  open(anEngine({ memory: someMemory({ total: 4 * GIB }), resident_bytes: GIB }), {
    ledger: aLedger({
      total: 40 * GIB,
      free: 20 * GIB,
      promised: 3 * GIB,
      devices: [{ id: "CUDA0", name: "A card", total: 24 * GIB, free: 18 * GIB }],
    }),
  });
  const memory = within(await screen.findByRole("region", { name: "Memory of this machine" }));
  const shareOf = (label: string) => memory.getByText(label).nextElementSibling;
  expect(memory.getByText("20 GiB")).toBeVisible();
  expect(memory.getByText("of 40 GiB, accelerators included")).toBeVisible();
  expect(shareOf("Models")).toHaveTextContent("1.0 GiB");
  expect(shareOf("Promised to models")).toHaveTextContent("3.0 GiB");
  expect(shareOf("System and other programs")).toHaveTextContent("16 GiB");
  expect(memory.getByText("A card")).toBeVisible();
  expect(memory.getByText("18 GiB free of 24 GiB")).toBeVisible();
});

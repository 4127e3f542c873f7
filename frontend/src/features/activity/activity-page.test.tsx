import { screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { Schemas } from "@/api/client";
import { renderInApp } from "@/test/render";
import { failure, server } from "@/test/server";
import { ActivityPage } from "./activity-page";
import { formatStart, phasesOf, tokensPerSecond } from "./phases";

const aRequest = (changes: Partial<Schemas["RequestCard"]> = {}): Schemas["RequestCard"] => ({
  id: "a-request",
  route: "/chat/completions",
  model: "a/model",
  started: Date.now() / 1000,
  is_stream: true,
  status: "completed",
  http_status: 200,
  error_code: null,
  finish_reason: "stop",
  usage: { prompt_tokens: 1200, completion_tokens: 101, cached_tokens: 1000 },
  timeline: {
    queue_ms: 20,
    media_ms: null,
    prefill_ms: 400,
    first_token_ms: 430,
    decode_ms: 2000,
    total_ms: 2440,
  },
  ...changes,
});

const nothingYet: Schemas["RequestCard"]["timeline"] = {
  queue_ms: null,
  media_ms: null,
  prefill_ms: null,
  first_token_ms: null,
  decode_ms: null,
  total_ms: null,
};

function listed(...requests: Schemas["RequestCard"][]) {
  server.use(
    http.get("*/v1/requests", () => HttpResponse.json({ object: "list", data: requests })),
  );
}

test("a request is listed with its tokens, its speed and where its time went", async () => {
  listed(aRequest());
  renderInApp(<ActivityPage />);
  const row = within(await screen.findByRole("listitem"));
  expect(row.getByText("Done")).toBeVisible();
  expect(row.getByText("a/model")).toBeVisible();
  expect(row.getByText("/chat/completions")).toBeVisible();
  expect(row.getByText(/^1.200 tokens in \(1.000 cached\)$/)).toBeVisible();
  expect(row.getByText("101 out")).toBeVisible();
  expect(row.getByText("50 tokens/s")).toBeVisible();
  expect(row.getByText("2.4 s in all")).toBeVisible();
  expect(row.getByText("prompt").parentElement).toHaveTextContent("prompt400 ms");
  expect(row.getByText("answer").parentElement).toHaveTextContent("answer2.0 s");
  expect(row.queryByText("pictures")).toBeNull();
});

test("each end has its words, and one under way has no figures yet", async () => {
  listed(
    aRequest({ id: "1", status: "running", usage: null, timeline: nothingYet, http_status: null }),
    aRequest({ id: "2", status: "cancelled" }),
    aRequest({ id: "3", status: "client_left" }),
    aRequest({ id: "4", status: "failed", http_status: 429, error_code: "queue_full" }),
    aRequest({ id: "5", finish_reason: "length" }),
  );
  renderInApp(<ActivityPage />);
  const rows = await screen.findAllByRole("listitem");
  const words = ["Running", "Cancelled", "Client left", "429 queue_full", "At its limit"];
  rows.forEach((row, index) => {
    expect(within(row).getByText(words[index] ?? "")).toBeVisible();
  });
  expect(within(rows[0] as HTMLElement).queryByText(/tokens/)).toBeNull();
});

test("an empty list says what will be there", async () => {
  listed();
  renderInApp(<ActivityPage />);
  expect(await screen.findByText("No requests yet")).toBeVisible();
});

test("a list that can't be had says why, and is asked for again", async () => {
  server.use(
    http.get("*/v1/requests", () => failure(503, { message: "Not now.", code: "shutting_down" })),
  );
  const { user } = renderInApp(<ActivityPage />);
  expect(await screen.findByRole("alert")).toHaveTextContent("Not now.");
  listed(aRequest());
  await user.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByText("a/model")).toBeVisible();
});

test("the list follows what happens", async () => {
  listed(aRequest({ status: "running" }));
  renderInApp(<ActivityPage />);
  expect(await screen.findByText("Running")).toBeVisible();
  listed(aRequest());
  expect(await screen.findByText("Done")).toBeVisible();
});

test("what took no time isn't a phase, and one token has no speed", () => {
  const timeline = { ...nothingYet, queue_ms: 0, decode_ms: 5 };
  expect(phasesOf(aRequest({ timeline })).map(({ label }) => label)).toEqual(["answer"]);
  const usage = { prompt_tokens: 1, completion_tokens: 1, cached_tokens: 0 };
  expect(tokensPerSecond(aRequest({ usage }))).toBeNull();
});

test("another day's request is told with its day", () => {
  const started = new Date(2026, 10, 29, 13, 5).getTime() / 1000;
  const sameDay = formatStart(started, new Date(2026, 10, 29, 20, 0));
  const nextDay = formatStart(started, new Date(2026, 10, 30, 0, 5));
  expect(nextDay.length).toBeGreaterThan(sameDay.length);
  expect(nextDay).toContain("29");
});

import { type APIRequestContext, expect, type Page } from "@playwright/test";
import {
  ask,
  busyEngines,
  loadBuiltIn,
  openChat,
  replies,
  sendButton,
  setSampling,
  stopButton,
  test,
  textOf,
} from "./studio";

const LONG = "Write a very long story about a lighthouse and its keeper.";

type Run = { id: string; status: string; message: { content: string } };

async function newestRun(request: APIRequestContext): Promise<Run> {
  const { data } = await (await request.get("/v1/runs?limit=1")).json();
  return (await request.get(`/v1/runs/${data[0].id}`)).json();
}

/** The texts of all replies that this browser keeps. */
function keptTexts(page: Page): Promise<string[]> {
  return page.evaluate(async () => {
    const opened = indexedDB.open("eloquio", 1);
    await new Promise((resolve) => {
      opened.onsuccess = resolve;
    });
    const reading = opened.result.transaction("conversations").objectStore("conversations");
    const all = reading.getAll();
    await new Promise((resolve) => {
      all.onsuccess = resolve;
    });
    opened.result.close();
    return all.result
      .flatMap(({ messages }) => Object.values<{ role: string; content: string }>(messages))
      .filter(({ role }) => role === "assistant")
      .map(({ content }) => content);
  });
}

const answer = (page: Page) => replies(page).last();

async function firstWords(page: Page): Promise<void> {
  await expect(replies(page).last()).toContainText(/\w+ \w+ \w+/);
  await expect(page.getByText("Waiting for the first token")).toBeHidden();
}

/** Waits until the reply has ended and is kept, and compares it with what the server has of it. */
async function expectTheServersText(page: Page, request: APIRequestContext): Promise<Run> {
  await expect(sendButton(page)).toBeVisible({ timeout: 120_000 });
  const run = await newestRun(request);
  expect(run.message.content.length).toBeGreaterThan(100);
  await expect.poll(() => keptTexts(page)).toEqual([run.message.content]);
  return run;
}

test.beforeEach(({ request }) => loadBuiltIn(request));

test("a reply goes on after a reload in its middle, and is whole in the end", async ({
  page,
  request,
}) => {
  await openChat(page);
  await setSampling(page, "Max tokens", "400");
  await ask(page, LONG);
  await firstWords(page);
  const early = await textOf(answer(page));
  await page.reload();
  await expect(stopButton(page)).toBeVisible();
  await expect.poll(async () => (await textOf(answer(page))).length).toBeGreaterThan(early.length);
  expect((await textOf(answer(page))).startsWith(early)).toBe(true);
  const run = await expectTheServersText(page, request);
  expect(run.status).toBe("completed");
  await expect(replies(page).last().getByText("400 tokens")).toBeVisible();
});

for (const reached of [true, false])
  test(`a reload before the server has answered loses no reply, and asks for it once: ${
    reached ? "it was heard" : "it was not heard"
  }`, async ({ page, request }) => {
    await openChat(page);
    await setSampling(page, "Max tokens", "60");
    const before = (await (await request.get("/v1/runs?limit=100")).json()).data.length;
    let isHeld = false;
    await page.route("**/v1/runs", async (route) => {
      if (reached) await route.fetch();
      isHeld = true;
    });
    await ask(page, LONG);
    await expect.poll(() => isHeld).toBe(true);
    await page.unroute("**/v1/runs");
    await page.reload();
    const figures = replies(page).last().getByText("60 tokens");
    await expect(figures).toBeVisible({ timeout: 120_000 });
    expect((await expectTheServersText(page, request)).status).toBe("completed");
    await expect(replies(page)).toHaveCount(1);
    const { data } = await (await request.get("/v1/runs?limit=100")).json();
    expect(data.length).toBe(before + 1);
  });

test("a reply that ended while the page was closed is there when it is opened", async ({
  page,
  context,
  request,
}) => {
  await openChat(page);
  await setSampling(page, "Max tokens", "200");
  await ask(page, LONG);
  await firstWords(page);
  await page.close();
  await expect.poll(() => busyEngines(request), { timeout: 60_000 }).toBe(0);
  const fresh = await context.newPage();
  await fresh.goto("/");
  expect((await expectTheServersText(fresh, request)).status).toBe("completed");
  await expect(replies(fresh).last().getByText("200 tokens")).toBeVisible();
});

test("a network that was away for a while costs no word", async ({ page, context, request }) => {
  await openChat(page);
  await setSampling(page, "Max tokens", "500");
  await ask(page, LONG);
  await firstWords(page);
  await context.setOffline(true);
  const run = await newestRun(request);
  await expect
    .poll(async () => (await newestRun(request)).message.content.length)
    .toBeGreaterThan(run.message.content.length + 200);
  const atPage = (await textOf(answer(page))).length;
  await context.setOffline(false);
  await expect.poll(async () => (await textOf(answer(page))).length).toBeGreaterThan(atPage);
  expect(await expectTheServersText(page, request)).toMatchObject({ status: "completed" });
});

test("connections that break again and again double nothing and lose nothing", async ({
  page,
  request,
}) => {
  let breaks = 0;
  // What the server sends within a moment, and then an end in the middle of it.
  await page.route("**/v1/runs/*/events", async (route) => {
    const response = await fetch(route.request().url(), {
      headers: { "last-event-id": route.request().headers()["last-event-id"] ?? "0" },
    });
    const reader = response.body?.getReader();
    const first = await reader?.read();
    await reader?.cancel();
    breaks += 1;
    const body = Buffer.from(first?.value ?? []);
    await route.fulfill({
      contentType: "text/event-stream",
      body: breaks < 4 ? body.subarray(0, Math.ceil(body.length * 0.8)) : body,
    });
  });
  await openChat(page);
  await setSampling(page, "Max tokens", "150");
  await ask(page, LONG);
  expect(await expectTheServersText(page, request)).toMatchObject({ status: "completed" });
  expect(breaks).toBeGreaterThan(3);
});

test("Stop ends the run at once, and Continue goes on in the same one", async ({
  page,
  request,
}) => {
  await openChat(page);
  await ask(page, LONG);
  await firstWords(page);
  await stopButton(page).click();
  await expect.poll(() => busyEngines(request), { timeout: 1_000, intervals: [50] }).toBe(0);
  const stopped = await newestRun(request);
  expect(stopped.status).toBe("cancelled");
  await page.getByRole("button", { name: "Continue" }).click();
  await expect(stopButton(page)).toBeVisible();
  await expect
    .poll(async () => (await newestRun(request)).message.content.length)
    .toBeGreaterThan(stopped.message.content.length + 40);
  const ended = await expectTheServersText(page, request);
  expect(ended.id).toBe(stopped.id);
  expect(ended.message.content.startsWith(stopped.message.content)).toBe(true);
});

test("two tabs show the same reply as it is written, and one of them stops it", async ({
  page,
  context,
  request,
}) => {
  await openChat(page);
  await ask(page, LONG);
  await firstWords(page);
  const other = await context.newPage();
  await other.goto("/");
  await firstWords(other);
  const early = (await textOf(answer(other))).length;
  await expect.poll(async () => (await textOf(answer(other))).length).toBeGreaterThan(early + 40);
  await stopButton(other).click();
  await expect(replies(other).last().getByText("stopped", { exact: true })).toBeVisible();
  await expect(replies(page).last().getByText("stopped", { exact: true })).toBeVisible();
  expect(await busyEngines(request)).toBe(0);
});

test("a deleted conversation leaves nothing of its replies on the server", async ({
  page,
  request,
}) => {
  await openChat(page);
  await ask(page, LONG);
  await firstWords(page);
  const { id } = await newestRun(request);
  await page.getByRole("button", { name: /^Options of Write a very long/ }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await expect.poll(async () => (await request.get(`/v1/runs/${id}`)).status()).toBe(404);
  await expect.poll(() => busyEngines(request)).toBe(0);
});

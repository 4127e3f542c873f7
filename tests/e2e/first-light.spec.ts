import { expect } from "@playwright/test";
import {
  ask,
  BUILT_IN,
  busyEngines,
  composer,
  loadBuiltIn,
  openChat,
  replies,
  replyEnded,
  sendButton,
  setSampling,
  statusOf,
  stopButton,
  TINY,
  test,
  textOf,
} from "./studio";

// The first test sees what a fresh home loads by itself.
test("a fresh home opens with the built-in model loaded and ready to chat", async ({
  page,
  request,
}) => {
  await page.goto("/");
  await expect(page.getByText(/answers from this machine/)).toBeVisible();
  await expect(page.getByText("Ready", { exact: true })).toBeVisible();
  await expect(composer(page)).toBeFocused();
  expect((await statusOf(request)).active_model).toBe(BUILT_IN);
});

test("an answer streams in, with its figures and the model's name under it", async ({ page }) => {
  await openChat(page);
  await ask(page, "What is the capital of France? Answer briefly.");
  await replyEnded(page);
  const reply = replies(page).last();
  await expect(reply).toContainText("Paris");
  await expect(reply.getByText(/^[\d.]+ tokens\/s$/)).toBeVisible();
  await expect(reply.getByText(/^\d+ tokens$/)).toBeVisible();
  await expect(reply.getByText(BUILT_IN)).toBeVisible();
  await expect(composer(page)).toBeFocused();
});

test("a long answer is shown while it is written, and grows", async ({ page }) => {
  await openChat(page);
  await ask(page, "Write a very long story about a lighthouse and its keeper.");
  const reply = replies(page).last();
  await expect(reply).toContainText(/\w+ \w+/);
  await expect(stopButton(page)).toBeVisible();
  const early = (await textOf(reply)).length;
  await expect.poll(async () => (await textOf(reply)).length).toBeGreaterThan(early + 20);
  await stopButton(page).click();
  await expect(sendButton(page)).toBeVisible();
});

test("stopping in the middle keeps the text and frees the engine within a second", async ({
  page,
  request,
}) => {
  await openChat(page);
  await ask(page, "Write a very long story about a dragon. Tell every detail.");
  await expect(replies(page).last()).toContainText(/\w+ \w+ \w+/);
  expect(await busyEngines(request)).toBe(1);
  await stopButton(page).click();
  await expect.poll(() => busyEngines(request), { timeout: 1_000, intervals: [50] }).toBe(0);
  const reply = replies(page).last();
  await expect(reply.getByText("stopped", { exact: true })).toBeVisible();
  await expect(reply).toContainText(/\w+ \w+ \w+/);
  await expect(composer(page)).toBeFocused();
});

test("a stopped answer goes on where it ended", async ({ page }) => {
  await openChat(page);
  await setSampling(page, "Max tokens", "12");
  await ask(page, "Tell a story about a small boat.");
  await replyEnded(page);
  const reply = replies(page).last();
  await expect(reply.getByText("reached the token limit")).toBeVisible();
  const first = await textOf(reply.locator("p").first());
  await page.getByRole("button", { name: "Continue" }).click();
  await expect(reply.getByText("24 tokens")).toBeVisible();
  const whole = await textOf(reply.locator("p").first());
  expect(whole.startsWith(first)).toBe(true);
  expect(whole.split(first.slice(0, 20))).toHaveLength(2);
});

test("another model on the disk is chosen, answers, and is left again", async ({
  page,
  request,
}) => {
  await openChat(page);
  await page
    .getByRole("button", { name: /choose a model|smollm2/i })
    .first()
    .click();
  await page.getByRole("option", { name: /tiny/i }).click();
  await expect
    .poll(async () => (await statusOf(request)).active_model, { timeout: 30_000 })
    .toBe(TINY);
  await setSampling(page, "Max tokens", "20");
  await ask(page, "Say something.");
  await replyEnded(page);
  const reply = replies(page).last();
  await expect(reply.getByText(TINY, { exact: true })).toBeVisible();
  await expect(reply.getByText("20 tokens")).toBeVisible();
  await loadBuiltIn(request);
  await expect(page.getByRole("button", { name: /smollm2/i }).first()).toBeVisible();
  await setSampling(page, "Max tokens", "20");
  await ask(page, "What is the capital of France? Answer briefly.");
  await replyEnded(page);
  await expect(replies(page).last().getByText(BUILT_IN)).toBeVisible();
});

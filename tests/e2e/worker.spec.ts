import { fileURLToPath } from "node:url";
import { AxeBuilder } from "@axe-core/playwright";
import { expect, type Page } from "@playwright/test";
import {
  ask,
  composer,
  loadBuiltIn,
  openChat,
  replies,
  replyEnded,
  setSampling,
  test,
} from "./studio";

const BANANA = "org/says_banana";
const SPOKEN = fileURLToPath(new URL("../fixtures/digits_whisper/spoken", import.meta.url));
const CAPITAL = "What is the capital of France?";
const PARIS = /The capital of France is Paris/;
const BANANAS = "Banana! Banana!";

const answeredBy = (page: Page) => page.getByRole("combobox", { name: "Answered by" });
const sounds = (page: Page) => page.getByRole("list", { name: "Attached sounds" });

async function choose(page: Page, who: string): Promise<void> {
  await answeredBy(page).click();
  await page.getByRole("option", { name: who }).click();
}

async function expectAccessible(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.filter(({ impact }) => impact === "serious" || impact === "critical")).toEqual(
    [],
  );
}

async function record(page: Page, atLeast: RegExp): Promise<void> {
  await page.getByRole("button", { name: "Record" }).click();
  await expect(page.getByRole("timer", { name: "Recorded" })).toHaveText(atLeast);
  await page.getByRole("button", { name: "Use the recording" }).click();
}

test("an adapter answers or its base, and both stand beside each other until one is chosen", async ({
  page,
  request,
}) => {
  const options = { model_path: BANANA, lora_adapters: ["org/says_ahoy"], max_seq_length: 512 };
  const loaded = await request.post("/v1/load", { data: options, timeout: 180_000 });
  expect(await loaded.json()).toMatchObject({ engine: "transformers", is_lora: true });
  await openChat(page);
  await setSampling(page, "Temperature", "0");
  await expect(answeredBy(page)).toHaveText("says_banana");
  await ask(page, CAPITAL);
  await replyEnded(page);
  await expect(replies(page).last()).toContainText(BANANAS);

  await page.getByRole("button", { name: "Compare" }).click();
  await page.screenshot({ path: "test-results/worker/compare-menu.png" });
  await page.getByRole("menuitem", { name: "with Base model" }).click();
  const comparison = page.getByRole("group", { name: "Comparison" });
  await expect(comparison.getByText(PARIS)).toBeVisible();
  await expect(comparison.getByText(BANANAS)).toBeVisible();
  await expect(comparison.getByRole("heading", { name: "Base model" })).toBeVisible();
  await page.screenshot({ path: "test-results/worker/comparison.png" });
  await expectAccessible(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.screenshot({ path: "test-results/worker/comparison-phone.png" });
  const overflow = () =>
    document.documentElement.scrollWidth > document.documentElement.clientWidth;
  expect(await page.evaluate(overflow)).toBe(false);
  await page.setViewportSize({ width: 1280, height: 800 });

  await page.reload();
  await expect(comparison.getByText(PARIS)).toBeVisible();
  await expect(comparison.getByText(BANANAS)).toBeVisible();
  const second = comparison.getByRole("region", { name: "Reply 2" });
  await second.getByRole("button", { name: "Go on with this" }).click();
  await expect(comparison).toBeHidden();
  await expect(replies(page)).toHaveCount(1);
  await expect(replies(page).getByText(PARIS)).toBeVisible();
  await expect(page.getByRole("group", { name: "Versions of this reply" })).toContainText("2/2");

  await choose(page, "says_ahoy");
  await ask(page, CAPITAL);
  await replyEnded(page);
  await expect(replies(page).last()).toContainText("Ahoy, matey!");
  await expect(replies(page).last().getByText("says_ahoy")).toBeVisible();
  await page.goto("/models");
  await expect(page.getByText("says_banana, says_ahoy")).toBeVisible();
  await page.screenshot({ path: "test-results/worker/card.png" });
});

test("a model that hears is sent a file and a recording, and both are there after a reload", async ({
  page,
  request,
}) => {
  const options = { model_path: "hearing/ears", max_seq_length: 1024 };
  const loaded = await request.post("/v1/load", { data: options, timeout: 180_000 });
  expect(await loaded.json()).toMatchObject({ has_audio_input: true });
  await openChat(page);
  await setSampling(page, "Max tokens", "5");
  await page.getByLabel("Sounds", { exact: true }).setInputFiles(`${SPOKEN}/007.flac`);
  await expect(sounds(page).getByRole("listitem")).toHaveCount(1);
  await record(page, /0:0[1-9]/);
  await expect(sounds(page).getByRole("listitem")).toHaveCount(2);
  await page.screenshot({ path: "test-results/worker/sounds.png" });
  await expectAccessible(page);
  await page.getByRole("button", { name: "Remove sound 1" }).click();
  await expect(sounds(page).getByRole("listitem")).toHaveCount(1);
  await page.reload();
  await expect(sounds(page).getByRole("listitem")).toHaveCount(1);
  await ask(page, "What was said?");
  await replyEnded(page);
  await expect(sounds(page)).toBeHidden();
  await page.reload();
  const sent = page.getByRole("article", { name: "Prompt" });
  await expect(sent.getByRole("list", { name: "Sounds" }).getByRole("listitem")).toHaveCount(1);
  await page.screenshot({ path: "test-results/worker/sound-sent.png" });

  await loadBuiltIn(request);
  await expect(
    page.getByText(/can't hear the sounds in this conversation: choose a model that hears/),
  ).toBeVisible();
});

test("a Whisper beside the model that answers writes down what is dictated", async ({
  page,
  request,
}) => {
  const whisper = await request.post("/v1/load", {
    data: { model_path: "hearing/digits" },
    timeout: 180_000,
  });
  expect(await whisper.json()).toMatchObject({ task: "transcription" });
  await loadBuiltIn(request);
  await openChat(page);
  await composer(page).fill("Add");
  await record(page, /0:0[2-9]/);
  await expect(composer(page)).toHaveValue(/^Add .*four two/);
  await page.screenshot({ path: "test-results/worker/dictated.png" });
  await request.post("/v1/unload", { data: { model_path: "hearing/digits" } });
});

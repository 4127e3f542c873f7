import { AxeBuilder } from "@axe-core/playwright";
import { type APIRequestContext, expect, type Page } from "@playwright/test";
import {
  ask,
  BUILT_IN,
  busyEngines,
  loadBuiltIn,
  openChat,
  replies,
  replyEnded,
  sendButton,
  stopButton,
  TINY,
  test,
} from "./studio";

const NAME = "SmolLM2 135M Instruct";
const LONG = "Write a very long story about a lighthouse and its keeper.";

type Engine = {
  model: string;
  pid: number | null;
  busy: number;
  pinned: boolean;
  restarts: number;
  status: { state: string };
};

async function engines(request: APIRequestContext): Promise<Engine[]> {
  const reply = await request.get("/v1/status");
  expect(reply.status()).toBe(200);
  return (await reply.json()).engines;
}

async function builtIn(request: APIRequestContext): Promise<Engine> {
  const engine = (await engines(request)).find(({ model }) => model === BUILT_IN);
  if (!engine) throw new Error("the built-in model isn't loaded");
  return engine;
}

async function load(request: APIRequestContext, options: object): Promise<void> {
  const data = { model_path: BUILT_IN, ...options };
  expect((await request.post("/v1/load", { data })).status()).toBe(200);
}

async function openModels(page: Page): Promise<void> {
  await page.getByRole("link", { name: "Models", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Models", level: 1 })).toBeVisible();
}

/** Waits until the reply under way has brought some words. */
async function firstWords(page: Page): Promise<void> {
  const reply = replies(page).last();
  await expect(reply).toContainText(/\w+ \w+/);
  await expect(reply.getByText("Waiting for the first token")).toBeHidden();
}

const warningsButton = (page: Page) =>
  page.getByRole("button", { name: new RegExp(`^\\d warnings? about ${NAME}`) });
const card = (page: Page) => page.getByRole("article", { name: NAME });
const unload = (page: Page) => card(page).getByRole("button", { name: "Unload", exact: true });

async function seriousFaults(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page })
    .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"])
    .analyze();
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`),
    );
}

test.beforeEach(async ({ request }) => {
  // Nothing of the test before: neither what it loaded nor how it asked that to be kept.
  for (const { model } of await engines(request))
    await request.post("/v1/unload", { data: { model_path: model } });
  await loadBuiltIn(request);
});

test("an unload asks before it ends an answer, and leaves it if told to", async ({
  page,
  request,
}) => {
  await openChat(page);
  await ask(page, LONG);
  await firstWords(page);
  await openModels(page);
  await unload(page).click();
  const question = page.getByRole("dialog", { name: "1 answer is under way; end it?" });
  await expect(question.getByRole("button", { name: "Let it finish" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(question).toBeHidden();
  expect(await busyEngines(request)).toBe(1);

  await unload(page).click();
  await question.getByRole("button", { name: "End it and unload" }).click();
  await expect(card(page)).toBeHidden();
  expect(await engines(request)).toEqual([]);
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await expect(page.getByRole("alert").getByText("The reply broke off")).toBeVisible();
  await expect(page.getByText("No model is loaded.")).toBeVisible();
});

test("a load asks before it ends an answer on the model that has to make room", async ({
  page,
  request,
}) => {
  await openChat(page);
  await ask(page, LONG);
  await firstWords(page);
  await page
    .getByRole("button", { name: /smollm2/i })
    .first()
    .click();
  await page.getByRole("option", { name: /tiny/i }).click();
  const question = page.getByRole("dialog", { name: "1 answer is under way; end it?" });
  await expect(question).toBeVisible();
  expect(await busyEngines(request)).toBe(1);
  await question.getByRole("button", { name: "End it and load" }).click();
  await expect
    .poll(async () => (await engines(request)).map(({ model }) => model), { timeout: 30_000 })
    .toEqual([TINY]);
});

test("a model that fell asleep is woken by the next message", async ({
  page,
  context,
  request,
}) => {
  await openChat(page);
  await load(request, { ttl_s: 3 });
  await expect(
    page.getByText(`${NAME} is asleep. Your next message loads it again.`),
  ).toBeVisible();
  expect(await engines(request)).toEqual([]);
  // A tab that never saw it loaded knows that it sleeps, too.
  await page.close();
  const fresh = await context.newPage();
  await fresh.goto("/models");
  await expect(fresh.getByRole("listitem").filter({ hasText: BUILT_IN })).toContainText("Asleep");
  await fresh.getByRole("link", { name: "Chat", exact: true }).click();
  await expect(fresh.getByText(/is asleep/)).toBeVisible();
  await ask(fresh, "What is the capital of France? Answer briefly.");
  await replyEnded(fresh);
  await expect(replies(fresh).last()).toContainText("Paris");
  await expect(fresh.getByText(/is asleep/)).toBeVisible();
});

test("the idle time-out runs down on the card, and watching the page doesn't stop it", async ({
  page,
  request,
}) => {
  await page.goto("/models");
  await expect(card(page).getByText("not by itself")).toBeVisible();
  await load(request, { ttl_s: 20 });
  const left = card(page).getByText(/^in \d+ s$/);
  const seconds = async () => Number((await left.textContent())?.match(/\d+/)?.[0]);
  const early = await seconds();
  await expect.poll(seconds).toBeLessThan(early - 1);
  await expect(card(page)).toBeHidden();
  expect(await engines(request)).toEqual([]);
});

test("the idle time is chosen on the card, and the engine runs on", async ({ page, request }) => {
  const { pid } = await builtIn(request);
  await page.goto("/models");
  await card(page).getByRole("button", { name: "Unload after…" }).click();
  await page.getByRole("menuitem", { name: "5 minutes" }).click();
  await expect(card(page).getByText(/^in (5 min 0 s|4 min \d+ s)$/)).toBeVisible();
  expect(await builtIn(request)).toMatchObject({ pid, status: { state: "ready" } });
});

test("a pinned model stays, in the same process, when another one is loaded", async ({
  page,
  request,
}) => {
  const { pid } = await builtIn(request);
  await page.goto("/models");
  const pin = card(page).getByRole("button", { name: "Pin" });
  await pin.click();
  await expect(pin).toHaveAttribute("aria-pressed", "true");
  await expect(card(page).getByText("Pinned", { exact: true })).toBeVisible();
  expect(await builtIn(request)).toMatchObject({ pid, pinned: true });
  await page.getByRole("button", { name: /^Load tiny/i }).click();
  await expect(page.getByRole("article", { name: /tiny/i })).toBeVisible({ timeout: 30_000 });
  expect(await builtIn(request)).toMatchObject({ pid, pinned: true });
  await pin.click();
  await expect(pin).toHaveAttribute("aria-pressed", "false");
  expect(await builtIn(request)).toMatchObject({ pid, pinned: false });
});

test("what isn't as it was asked for stays in sight, on the card and in the chat", async ({
  page,
  request,
}) => {
  await load(request, { max_seq_length: 8448 });
  await openChat(page);
  await warningsButton(page).click();
  await expect(page.getByRole("dialog", { name: `Warnings about ${NAME}` })).toContainText(
    /made for a context of 8192 tokens/,
  );
  await page.keyboard.press("Escape");
  await openModels(page);
  await expect(card(page).getByRole("list", { name: "Warnings" })).toContainText(/8192 tokens/);
});

test("an engine that is killed in an answer tells so, is back, and answers the next prompt", async ({
  page,
  request,
}) => {
  await openChat(page);
  await ask(page, LONG);
  await firstWords(page);
  const { pid } = await builtIn(request);
  process.kill(Number(pid), "SIGKILL");
  const alert = replies(page).last().getByRole("alert");
  await expect(alert).toContainText("The reply broke off");
  await expect(alert).toContainText(/SIGKILL|killed/i);
  await expect(alert.getByText("The engine was started again; it answers.")).toBeVisible();
  const restarted = await builtIn(request);
  expect(restarted).toMatchObject({ restarts: 1, status: { state: "ready" } });
  expect(restarted.pid).not.toBe(pid);
  await ask(page, "What is the capital of France? Answer briefly.");
  await replyEnded(page);
  await expect(replies(page).last()).toContainText(/\w+/);
  await openModels(page);
  await expect(card(page).getByText(/^Started again after a crash: /)).toBeVisible();
});

test("options, memory and keeping are set before the load and are true after it", async ({
  page,
  request,
}) => {
  await page.goto("/models");
  await page.getByRole("button", { name: /^Load options of tiny/i }).click();
  const dialog = page.getByRole("dialog", { name: /^Load tiny/i });
  const memory = dialog.getByRole("region", { name: "Memory" });
  await expect(memory.getByText(`${NAME} will be unloaded for it.`)).toBeVisible();
  await dialog.getByText("Advanced").click();
  await dialog.getByRole("combobox", { name: "Unload after" }).click();
  await page.getByRole("option", { name: "5 minutes" }).click();
  await dialog.getByRole("switch", { name: "Keep other models loaded" }).click();
  await expect(memory.getByText(/will be unloaded/)).toBeHidden();
  await dialog.getByRole("button", { name: "Load model" }).click();
  const tiny = page.getByRole("article", { name: /tiny/i });
  await expect(tiny.getByText(/^in (5 min 0 s|4 min \d+ s)$/)).toBeVisible({ timeout: 30_000 });
  expect((await engines(request)).map(({ model }) => model).toSorted()).toEqual([BUILT_IN, TINY]);
});

for (const [colorScheme, width] of [
  ["light", 1280],
  ["dark", 1280],
  ["light", 390],
  ["dark", 390],
] as const) {
  test(`the supervisor's views are sound in ${colorScheme}, ${width} wide`, async ({
    page,
    request,
  }) => {
    const picture = (name: string) =>
      page.screenshot({
        path: `test-results/pictures/supervision-${name}-${colorScheme}-${width}.png`,
      });
    const fitsTheWidth = async () =>
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await load(request, { max_seq_length: 8448, ttl_s: 600 });
    const { pid } = await builtIn(request);
    process.kill(Number(pid), "SIGKILL");
    await expect.poll(async () => (await builtIn(request)).restarts).toBe(1);
    await page.goto("/models");
    await expect(card(page).getByText(/^Started again after a crash/)).toBeVisible();
    await expect(card(page).getByText("Ready", { exact: true })).toBeVisible();
    await picture("models");
    await fitsTheWidth();
    expect(await seriousFaults(page)).toEqual([]);

    await card(page).getByRole("button", { name: "Load options" }).click();
    const dialog = page.getByRole("dialog", { name: `Load ${NAME}` });
    await dialog.getByText("Advanced").click();
    await dialog.getByRole("switch", { name: "Keep other models loaded" }).scrollIntoViewIfNeeded();
    await picture("options");
    await fitsTheWidth();
    expect(await seriousFaults(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Close" }).click();

    await page.goto("/");
    await expect(page.getByText(/answers from this machine/)).toBeVisible();
    await ask(page, LONG);
    await firstWords(page);
    await warningsButton(page).click();
    await expect(page.getByRole("dialog", { name: /^Warnings/ })).toBeVisible();
    await picture("chat");
    await page.keyboard.press("Escape");
    await page.goto("/models");
    const other = page.getByRole("button", { name: /^Load tiny/i });
    await page.evaluate(
      (model) =>
        void fetch("/v1/chat/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({
            model,
            max_tokens: 2000,
            messages: [{ role: "user", content: "Write a very long story." }],
          }),
        }),
      BUILT_IN,
    );
    await expect.poll(() => busyEngines(request)).toBeGreaterThan(0);
    await other.click();
    await expect(page.getByRole("dialog", { name: /under way/ })).toBeVisible();
    await picture("question");
    await fitsTheWidth();
    expect(await seriousFaults(page)).toEqual([]);
  });
}

test("the page's stop still ends what it asked of a woken model", async ({ page, request }) => {
  await openChat(page);
  await load(request, { ttl_s: 3 });
  await expect(page.getByText(/is asleep/)).toBeVisible();
  await ask(page, LONG);
  await firstWords(page);
  await stopButton(page).click();
  await expect(sendButton(page)).toBeVisible();
  await expect.poll(() => busyEngines(request), { timeout: 5_000 }).toBe(0);
});

import { AxeBuilder } from "@axe-core/playwright";
import { expect } from "@playwright/test";
import {
  ask,
  BUILT_IN,
  loadBuiltIn,
  openChat,
  replies,
  replyEnded,
  stopButton,
  test,
} from "./studio";

test.beforeEach(({ request }) => loadBuiltIn(request));

test("what was asked is listed, as it runs and when it has ended", async ({ page, request }) => {
  await request.post("/v1/chat/completions", {
    data: { model: "no/such-model", messages: [{ role: "user", content: "hi" }] },
  });
  await openChat(page);
  await ask(page, "What is the capital of France? Answer briefly.");
  await replyEnded(page);
  await ask(page, "Write a very long story about a lighthouse and its keeper.");
  await expect(replies(page).last()).toContainText(/\w+ \w+ \w+/);
  await page.getByRole("link", { name: "Activity" }).click();
  await expect(page.getByRole("heading", { name: "Activity", level: 1 })).toBeVisible();
  const newest = page.getByRole("listitem").first();
  const before = page.getByRole("listitem").nth(1);
  await expect(newest).toContainText("Running");
  await expect(before).toContainText("Done");
  await expect(before).toContainText(BUILT_IN);
  await expect(before).toContainText(/\d+ tokens in/);
  await expect(before).toContainText(/answer\d/);
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await stopButton(page).click();
  await page.getByRole("link", { name: "Activity" }).click();
  await expect(newest).toContainText("Cancelled");
});

for (const [colorScheme, width] of [
  ["light", 1280],
  ["dark", 1280],
  ["light", 390],
] as const) {
  test(`the list is sound in ${colorScheme}, ${width} wide`, async ({ page }) => {
    await page.setViewportSize({ width, height: 844 });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.goto("/activity");
    await expect(page.getByRole("listitem").first()).toBeVisible();
    await page.screenshot({ path: `test-results/pictures/activity-${colorScheme}-${width}.png` });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    const { violations } = await new AxeBuilder({ page })
      .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"])
      .analyze();
    expect(violations.map(({ id }) => id)).toEqual([]);
  });
}

import { expect } from "@playwright/test";
import { ask, loadBuiltIn, openChat, replies, replyEnded, test, withoutChance } from "./studio";

test.beforeEach(({ request }) => loadBuiltIn(request));

test("the page as a person meets it, for the README and to be looked at", async ({ page }) => {
  await openChat(page);
  await ask(page, "What is the capital of France? Answer briefly.");
  await replyEnded(page);
  await ask(page, "Write a Python function that reverses a string. Explain it briefly.");
  await replyEnded(page);
  await expect(page.locator("[data-streamdown=code-block]").first()).toBeVisible();
  await expect(replies(page)).toHaveCount(2);
  await page.evaluate(() => document.fonts.ready);
  await page.mouse.move(640, 120);
  const picture = await page.screenshot({ path: "docs/images/page.png" });
  expect(picture.readUInt32BE(16)).toBe(1280);
  expect(picture.readUInt32BE(20)).toBe(800);

  await page.emulateMedia({ colorScheme: "dark" });
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.screenshot({ path: "test-results/pictures/dark.png" });

  await page.setViewportSize({ width: 390, height: 844 });
  await expect(page.getByRole("textbox", { name: "Message" })).toBeInViewport();
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  expect(overflow).toBe(0);
  await page.screenshot({ path: "test-results/pictures/phone.png" });
});

test("on a phone every control of the chat is large enough for a finger", async ({ browser }) => {
  const context = await browser.newContext({
    viewport: { width: 390, height: 844 },
    isMobile: true,
    hasTouch: true,
  });
  await withoutChance(context);
  const page = await context.newPage();
  await page.goto("/");
  await expect(page.getByText(/answers from this machine/)).toBeVisible();
  await ask(page, "What is the capital of France? Answer briefly.");
  await replyEnded(page);
  const buttons = await page.getByRole("region", { name: "Chat" }).getByRole("button").all();
  expect(buttons.length).toBeGreaterThan(6);
  for (const button of buttons) {
    const box = await button.boundingBox();
    const name = await button.getAttribute("aria-label");
    expect(Math.min(box?.width ?? 0, box?.height ?? 0), String(name)).toBeGreaterThanOrEqual(40);
  }
  await context.close();
});

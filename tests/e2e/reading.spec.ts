import { AxeBuilder } from "@axe-core/playwright";
import { expect, type Page } from "@playwright/test";
import {
  ask,
  loadBuiltIn,
  openChat,
  openKept,
  replies,
  replyEnded,
  tabBackTo,
  test,
} from "./studio";

const reply = `## Rainbows

| Colour | Place |
|---|---|
| red | outside |
| violet | inside |

\`\`\`python
def angle() -> int:
    return 42
\`\`\`

The angle is \\(42^\\circ\\), and $5 stays a price.

![a rainbow](https://example.com/rainbow.png) [more](https://example.com/more)

<img src="https://example.com/tracker.png" onerror="window.wasHacked = true">
<script>window.wasHacked = true</script>
`;
const turns = [{ prompt: "Tell me about rainbows", reply }];

test.beforeEach(({ request }) => loadBuiltIn(request));

test("tables, code with colours and formulas are shown as such", async ({ page }) => {
  await openKept(page, "Rainbows", turns);
  await expect(page.getByRole("cell", { name: "violet" })).toBeVisible();
  await expect(page.locator(".katex").first()).toBeVisible();
  await expect(page.getByText("$5 stays a price")).toBeVisible();
  const word = page.locator("code span", { hasText: /^def$/ }).first();
  await expect
    .poll(() => word.evaluate((span) => getComputedStyle(span).color))
    .not.toBe(await page.locator("body").evaluate((body) => getComputedStyle(body).color));
});

test("code is copied as it stands", async ({ page }) => {
  await openKept(page, "Rainbows", turns);
  await page.locator("[data-streamdown=code-block]").getByRole("button", { name: /copy/i }).click();
  await expect
    .poll(() => page.evaluate(() => navigator.clipboard.readText()))
    .toContain("def angle() -> int:\n    return 42");
});

test("no request leaves the machine, whatever a reply contains", async ({ page, baseURL }) => {
  const elsewhere: string[] = [];
  const asked: string[] = [];
  page.on("request", (request) => {
    const url = request.url();
    asked.push(url);
    if (!url.startsWith(`${baseURL}/`) && !/^(data|blob):/.test(url)) elsewhere.push(url);
  });
  await openKept(page, "Rainbows", turns);
  await expect(page.getByRole("link", { name: /a rainbow/ })).toBeVisible();
  await expect(page.locator(".katex").first()).toBeVisible();
  await ask(page, "What is the capital of France? Answer briefly.");
  await replyEnded(page);
  await page.getByRole("link", { name: "Models" }).click();
  await expect(page.getByRole("heading", { name: "Models", level: 1 })).toBeVisible();
  await page.getByRole("link", { name: "Settings" }).click();
  await expect(page.getByRole("heading", { name: "Settings", level: 1 })).toBeVisible();
  expect(asked.length).toBeGreaterThan(10);
  expect(elsewhere).toEqual([]);
});

test("HTML in a reply is text, and links open elsewhere without a way back", async ({ page }) => {
  await openKept(page, "Rainbows", turns);
  await expect(page.getByText("<script>window.wasHacked = true</script>")).toBeVisible();
  await expect(page.locator("article img")).toHaveCount(0);
  expect(await page.evaluate(() => "wasHacked" in window)).toBe(false);
  const more = page.getByRole("link", { name: "more" });
  await expect(more).toHaveAttribute("target", "_blank");
  await expect(more).toHaveAttribute("rel", /noopener/);
});

test("nothing on the page is refused by its own security policy, and no script fails", async ({
  page,
}) => {
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  await openKept(page, "Rainbows", turns);
  await expect(page.locator(".katex").first()).toBeVisible();
  await page.getByRole("button", { name: /^Chat settings/ }).click();
  await expect(page.getByRole("dialog", { name: "Chat settings" })).toBeVisible();
  expect(faults).toEqual([]);
});

async function seriousFaults(page: Page): Promise<string[]> {
  const { violations, passes } = await new AxeBuilder({ page })
    .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"])
    .analyze();
  expect(passes.length).toBeGreaterThan(5);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`),
    );
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`axe finds nothing serious in ${colorScheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await openChat(page);
    await expect(page.locator("html")).toHaveAttribute("data-theme", colorScheme);
    expect(await seriousFaults(page)).toEqual([]);
    await openKept(page, "Rainbows", turns);
    await expect(page.getByRole("cell", { name: "violet" })).toBeVisible();
    expect(await seriousFaults(page)).toEqual([]);
    await page.getByRole("button", { name: /^Chat settings/ }).click();
    await expect(page.getByRole("dialog", { name: "Chat settings" })).toBeVisible();
    expect(await seriousFaults(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    for (const name of ["Models", "Activity", "Settings"]) {
      await page.getByRole("link", { name }).click();
      await expect(page.getByRole("heading", { name, level: 1 })).toBeVisible();
      expect(await seriousFaults(page)).toEqual([]);
    }
  });
}

test("everything is reached by the keyboard alone", async ({ page }) => {
  await openChat(page);
  await page.keyboard.type("What is the capital of France? Answer briefly.");
  await page.keyboard.press("Enter");
  await replyEnded(page);

  const regenerate = page.getByRole("button", { name: "Regenerate" });
  await tabBackTo(page, regenerate);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("textbox", { name: "Message" })).toBeFocused();
  await replyEnded(page);
  await expect(page.getByRole("group", { name: "Versions of this reply" })).toContainText("2/2");

  const previous = page.getByRole("button", { name: "Previous reply" });
  await tabBackTo(page, previous);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("group", { name: "Versions of this reply" })).toContainText("1/2");

  await page.getByRole("textbox", { name: "Message" }).focus();
  await page.keyboard.type("Write a very long story about a forest.");
  await page.keyboard.press("Enter");
  await expect(replies(page).last()).toContainText(/\w+ \w+/);
  await page.keyboard.press("Escape");
  await expect(replies(page).last().getByText("stopped", { exact: true })).toBeVisible();

  await page.keyboard.press("Control+k");
  await expect(page.getByRole("dialog")).toBeVisible();
  await page.keyboard.type("models");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "Models", level: 1 })).toBeVisible();
});

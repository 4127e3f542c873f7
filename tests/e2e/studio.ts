import {
  type APIRequestContext,
  type BrowserContext,
  expect,
  type Locator,
  type Page,
  test as plainTest,
} from "@playwright/test";

export const BUILT_IN = "builtin/smollm2-135m-instruct";
export const TINY = "tiny";
/** A tiny one that is shown pictures, and makes nothing of them. */
export const SEEING = "seeing/eyes";

/** Playwright's test, in a browser whose chats leave no word and no length to chance. */
export const test = plainTest.extend({
  context: async ({ context, request }, use) => {
    await withoutChance(context);
    await use(context);
    await endRuns(request);
  },
});

/** Sets in a browser that has no settings yet that the likeliest token is taken, and not for ever. */
export async function withoutChance(context: BrowserContext): Promise<void> {
  const settings = { systemPrompt: "", sampling: { temperature: 0, max_tokens: 1000 } };
  const kept = {
    state: { byModel: { [BUILT_IN]: settings, [TINY]: settings, [SEEING]: settings } },
    version: 0,
  };
  await context.addInitScript((value) => {
    localStorage["eloquio.chat.settings"] ??= value;
  }, JSON.stringify(kept));
}

/** Ends what the test left under way: a reply goes on when its page is closed. */
async function endRuns(request: APIRequestContext): Promise<void> {
  const { data } = (await (await request.get("/v1/runs")).json()) as {
    data: { id: string; status: string }[];
  };
  for (const { id, status } of data)
    if (status === "queued" || status === "running") await request.post(`/v1/runs/${id}/cancel`);
}

type Status = {
  active_model: string | null;
  engines: { model: string; busy: number }[];
};

export async function statusOf(request: APIRequestContext): Promise<Status> {
  const reply = await request.get("/v1/status");
  expect(reply.status()).toBe(200);
  return reply.json();
}

/** The number of replies under way, over all engines. */
export async function busyEngines(request: APIRequestContext): Promise<number> {
  const { engines } = await statusOf(request);
  return engines.reduce((sum, { busy }) => sum + busy, 0);
}

export async function loadBuiltIn(request: APIRequestContext): Promise<void> {
  const reply = await request.post("/v1/load", { data: { model_path: BUILT_IN } });
  expect(reply.status()).toBe(200);
}

export const composer = (page: Page) => page.getByRole("textbox", { name: "Message" });
export const replies = (page: Page) => page.getByRole("article", { name: "Reply" });
export const sendButton = (page: Page) => page.getByRole("button", { name: "Send" });
export const stopButton = (page: Page) => page.getByRole("button", { name: "Stop" });

export async function textOf(locator: Locator): Promise<string> {
  return (await locator.textContent()) ?? "";
}

/** Opens the chat and waits until it can be asked. */
export async function openChat(page: Page): Promise<void> {
  await page.goto("/");
  await expect(page.getByText(/answers from this machine/)).toBeVisible();
  await expect(composer(page)).toBeFocused();
}

/** Pastes a picture of one dot into the composer. */
export async function pastePicture(page: Page): Promise<void> {
  await composer(page).evaluate((target) => {
    const dot =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    const bytes = Uint8Array.from(atob(dot), (letter) => letter.charCodeAt(0));
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File([bytes], "dot.png", { type: "image/png" }));
    target.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
  });
  await expect(page.getByRole("img", { name: "Attached, number 1" })).toBeVisible();
}

export async function ask(page: Page, text: string): Promise<void> {
  await composer(page).fill(text);
  await composer(page).press("Enter");
}

/** Waits until the reply that is streaming has ended and its figures stand under it. */
export async function replyEnded(page: Page): Promise<void> {
  await expect(sendButton(page)).toBeVisible({ timeout: 120_000 });
  await expect(
    replies(page)
      .last()
      .getByText(/first token after/),
  ).toBeVisible();
}

/** Sets a number in the chat's settings, by its label, and closes them again. */
export async function setSampling(page: Page, field: string, value: string): Promise<void> {
  await page.getByRole("button", { name: /^Chat settings/ }).click();
  const settings = page.getByRole("dialog", { name: "Chat settings" });
  await settings.getByRole("textbox", { name: field, exact: true }).fill(value);
  await settings.getByRole("button", { name: "Close" }).click();
  await expect(settings).toBeHidden();
}

/** Moves the focus back from one control to the next until it is on the given one. */
export async function tabBackTo(page: Page, control: Locator): Promise<void> {
  await expect(async () => {
    await page.keyboard.press("Shift+Tab");
    await expect(control).toBeFocused({ timeout: 100 });
  }).toPass({ intervals: [0] });
}

type Turn = { prompt: string; reply: string };

/** Puts a conversation into the browser's storage, as if it had been held before, and opens it. */
export async function openKept(page: Page, title: string, turns: Turn[]): Promise<void> {
  await openChat(page);
  await page.evaluate(
    async ({ title, turns }) => {
      const messages: Record<string, unknown> = {};
      let parentId: string | null = null;
      turns.forEach(({ prompt, reply }, index) => {
        const promptId = `prompt-${index}`;
        const replyId = `reply-${index}`;
        messages[promptId] = {
          id: promptId,
          parentId,
          role: "user",
          content: prompt,
          createdAt: index,
        };
        messages[replyId] = {
          id: replyId,
          parentId: promptId,
          role: "assistant",
          content: reply,
          reasoning: "",
          reasoningSeconds: null,
          model: "a/model",
          outcome: { state: "finished", reason: "stop" },
          stats: null,
          createdAt: index,
        };
        parentId = replyId;
      });
      const conversation = {
        id: "kept",
        title,
        messages,
        leafId: parentId,
        createdAt: 0,
        updatedAt: Date.now(),
      };
      await new Promise<void>((resolve, reject) => {
        const opening = indexedDB.open("eloquio", 1);
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const writing = opening.result.transaction("conversations", "readwrite");
          writing.objectStore("conversations").put(conversation);
          writing.oncomplete = () => resolve();
          writing.onabort = () => reject(writing.error);
        };
      });
      localStorage.setItem("eloquio.chat.current", "kept");
    },
    { title, turns },
  );
  await page.reload();
  await expect(page.getByRole("heading", { name: title, level: 1 })).toBeVisible();
}

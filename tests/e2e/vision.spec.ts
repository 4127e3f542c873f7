import { expect } from "@playwright/test";
import {
  composer,
  loadBuiltIn,
  openChat,
  pastePicture,
  replies,
  replyEnded,
  SEEING,
  sendButton,
  setSampling,
  test,
} from "./studio";

test("a prompt with a picture isn't sent to a model that can't see, and nothing is lost", async ({
  page,
  request,
}) => {
  await loadBuiltIn(request);
  await openChat(page);
  await expect(page.getByRole("button", { name: "Attach pictures" })).toBeDisabled();
  await composer(page).fill("What is this?");
  await pastePicture(page);
  await expect(
    page.getByText(/can't see pictures: choose a vision model or remove them/),
  ).toBeVisible();
  await expect(sendButton(page)).toBeDisabled();
  await composer(page).press("Enter");
  await expect(composer(page)).toHaveValue("What is this?");
  await page.screenshot({ path: "test-results/pictures/blocked.png" });
  await page.getByRole("button", { name: "Remove picture 1" }).click();
  await expect(page.getByRole("img", { name: "Attached, number 1" })).toHaveCount(0);
  await expect(sendButton(page)).toBeEnabled();
});

test("a picture reaches a model that sees, and is there after a reload", async ({
  page,
  request,
}) => {
  const loaded = await request.post("/v1/load", { data: { model_path: SEEING } });
  expect(await loaded.json()).toMatchObject({ is_vision: true });
  await openChat(page);
  await setSampling(page, "Max tokens", "20");
  await composer(page).fill("What is this?");
  await pastePicture(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.screenshot({ path: "test-results/pictures/attached-phone.png" });
  await page.setViewportSize({ width: 1280, height: 800 });
  await composer(page).press("Enter");
  await replyEnded(page);
  await expect(replies(page).last().getByText("20 tokens")).toBeVisible();
  await page.reload();
  await expect(page.getByRole("img", { name: "Sent with the prompt, number 1" })).toBeVisible();
  await page.emulateMedia({ colorScheme: "dark" });
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.screenshot({ path: "test-results/pictures/sent-dark.png" });
  await loadBuiltIn(request);
});

test("words and pictures that weren't sent outlive the page, and what was sent doesn't come back", async ({
  page,
  request,
}) => {
  const loaded = await request.post("/v1/load", { data: { model_path: SEEING } });
  expect(loaded.status()).toBe(200);
  await openChat(page);
  await setSampling(page, "Max tokens", "5");
  await composer(page).fill("What is this?");
  await pastePicture(page);
  await page.reload();
  const picture = page.getByRole("img", { name: "Attached, number 1" });
  await expect(picture).toBeVisible();
  await expect(composer(page)).toHaveValue("What is this?");
  await expect(sendButton(page)).toBeEnabled();
  await sendButton(page).click();
  await replyEnded(page);
  await expect(page.getByRole("img", { name: /^Sent with the prompt/ })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("img", { name: /^Sent with the prompt/ })).toBeVisible();
  await expect(picture).toBeHidden();
  await page.getByRole("button", { name: "New chat" }).first().click();
  await expect(picture).toBeHidden();
  await expect(composer(page)).toHaveValue("");
  await loadBuiltIn(request);
});

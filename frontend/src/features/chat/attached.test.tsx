import { fireEvent, screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test, vi } from "vitest";
import { aLoadedModel, aModel, anEmptyStatus, anEngine, aStatus, SMOLLM } from "@/test/fixtures";
import { renderInApp } from "@/test/render";
import { server } from "@/test/server";
import { attach, setAttached } from "./attached";
import { ChatPage } from "./chat-page";
import { useChatStore } from "./chat-store";
import { toMarkdown } from "./export";
import { answering, delta, done, finish } from "./testing";

const DOT = "data:image/png;base64,ZG90";
const dot = () => new File(["dot"], "dot.png", { type: "image/png" });

beforeEach(() => {
  useChatStore.setState(useChatStore.getInitialState(), true);
  setAttached(null, []);
});

/** Opens the chat with a model that sees pictures, or one that doesn't. */
async function openChat({ isVision }: { isVision: boolean }) {
  const loaded = aLoadedModel({ is_vision: isVision });
  server.use(
    http.get("*/v1/status", () => HttpResponse.json(aStatus({ engines: [anEngine({ loaded })] }))),
  );
  const app = renderInApp(<ChatPage />);
  await screen.findByText(/answers from this machine/);
  return { ...app, message: screen.getByRole("textbox", { name: "Message" }) };
}

const attached = () => screen.findAllByRole("img", { name: /^Attached, number/ });
const sendButton = () => screen.getByRole("button", { name: "Send" });

test("pictures are chosen, one is taken back, and the rest goes with the prompt", async () => {
  const bodies = answering([delta("A dot."), finish(), done]);
  const { user, message } = await openChat({ isVision: true });
  const other = new File(["other"], "other.png", { type: "image/png" });
  await user.upload(screen.getByLabelText("Pictures"), [dot(), other]);
  await vi.waitFor(async () => expect(await attached()).toHaveLength(2));
  await user.click(screen.getByRole("button", { name: "Remove picture 2" }));
  await user.type(message, "What is this?{Enter}");
  expect(await screen.findByText("A dot.")).toBeVisible();
  expect(bodies[0]?.messages).toEqual([
    {
      role: "user",
      content: [
        { type: "image_url", image_url: { url: DOT } },
        { type: "text", text: "What is this?" },
      ],
    },
  ]);
  const prompt = screen.getByRole("article", { name: "Prompt" });
  expect(within(prompt).getByRole("img", { name: /^Sent with the prompt/ })).toHaveAttribute(
    "src",
    DOT,
  );
  expect(screen.queryByRole("img", { name: /^Attached/ })).toBeNull();
});

test("a picture alone can be sent, and the conversation has a title", async () => {
  const bodies = answering([delta("A dot."), finish(), done]);
  const { user } = await openChat({ isVision: true });
  await user.upload(screen.getByLabelText("Pictures"), dot());
  await attached();
  await user.click(sendButton());
  expect(await screen.findByText("A dot.")).toBeVisible();
  expect(bodies[0]?.messages[0]?.content).toEqual([{ type: "image_url", image_url: { url: DOT } }]);
  expect(screen.getByRole("heading", { name: "About a picture" })).toBeVisible();
});

test("a picture is pasted, and words that come with one are pasted as words", async () => {
  const { message } = await openChat({ isVision: true });
  fireEvent.paste(message, { clipboardData: { files: [dot()], types: ["Files"] } });
  expect(await attached()).toHaveLength(1);
  const isLeftAlone = fireEvent.paste(message, {
    clipboardData: { files: [dot()], types: ["text/plain", "Files"] },
  });
  expect(isLeftAlone).toBe(true);
  expect(await attached()).toHaveLength(1);
});

test("a picture is dropped anywhere on the page", async () => {
  await openChat({ isVision: true });
  const dataTransfer = { types: ["Files"], files: [dot()] };
  expect(fireEvent.dragOver(document.body, { dataTransfer })).toBe(false);
  expect(fireEvent.drop(document.body, { dataTransfer })).toBe(false);
  expect(await attached()).toHaveLength(1);
});

test("a model that sees nothing is the reason why none can be attached", async () => {
  const { user } = await openChat({ isVision: false });
  const button = screen.getByRole("button", { name: "Attach pictures" });
  expect(button).toHaveAttribute("aria-disabled", "true");
  expect(button).toHaveAccessibleDescription(/can't see pictures: choose a vision model/);
  const choosing = vi.spyOn(screen.getByLabelText<HTMLInputElement>("Pictures"), "click");
  await user.click(button);
  expect(choosing).not.toHaveBeenCalled();
});

test("a prompt with a picture isn't sent to a model that sees nothing, and isn't lost", async () => {
  const bodies = answering([delta("no"), finish(), done]);
  const { user, message } = await openChat({ isVision: false });
  await user.type(message, "What is this?");
  fireEvent.paste(message, { clipboardData: { files: [dot()], types: ["Files"] } });
  await attached();
  expect(sendButton()).toBeDisabled();
  expect(sendButton()).toHaveAccessibleDescription(
    "SmolLM2 135M Instruct can't see pictures: choose a vision model or remove them.",
  );
  await user.type(message, "{Enter}");
  expect(message).toHaveValue("What is this?");
  expect(await attached()).toHaveLength(1);
  expect(bodies).toEqual([]);
  await user.click(screen.getByRole("button", { name: "Remove picture 1" }));
  expect(sendButton()).toBeEnabled();
});

test("pictures further up are a reason too, until they are removed from the prompt", async () => {
  answering([delta("A dot."), finish(), done], [delta("Nothing."), finish(), done]);
  const { user, message, client } = await openChat({ isVision: true });
  await user.upload(screen.getByLabelText("Pictures"), dot());
  await attached();
  await user.type(message, "What is this?{Enter}");
  await screen.findByText("A dot.");
  server.use(http.get("*/v1/status", () => HttpResponse.json(aStatus())));
  await client.invalidateQueries();
  await user.type(message, "And now?");
  expect(await screen.findByText(/can't see the pictures in this conversation/)).toBeVisible();
  expect(sendButton()).toBeDisabled();
  await user.click(screen.getByRole("button", { name: "Edit prompt" }));
  await user.click(screen.getByRole("button", { name: "Remove picture 1" }));
  await user.click(screen.getByRole("button", { name: "Send again" }));
  expect(await screen.findByText("Nothing.")).toBeVisible();
  expect(sendButton()).toBeEnabled();
});

test("a model that sees nothing isn't asked again about pictures, by no button", async () => {
  const bodies = answering([delta("A dot."), finish("length"), done]);
  const { user, message, client } = await openChat({ isVision: true });
  await user.upload(screen.getByLabelText("Pictures"), dot());
  await attached();
  await user.type(message, "What is this?{Enter}");
  await screen.findByText("A dot.");
  server.use(http.get("*/v1/status", () => HttpResponse.json(aStatus())));
  await client.invalidateQueries();
  const words =
    "SmolLM2 135M Instruct can't see the pictures in this conversation: choose a vision model or remove them.";
  const regenerate = screen.getByRole("button", { name: "Regenerate" });
  await vi.waitFor(() => expect(regenerate).toHaveAttribute("aria-disabled", "true"));
  expect(regenerate).toHaveAccessibleDescription(words);
  const goOn = screen.getByRole("button", { name: "Continue" });
  expect(goOn).toBeDisabled();
  expect(goOn).toHaveAccessibleDescription(words);
  await user.click(regenerate);
  await user.click(screen.getByRole("button", { name: "Edit prompt" }));
  const again = screen.getByRole("button", { name: "Send again" });
  expect(again).toBeDisabled();
  expect(again).toHaveAccessibleDescription(
    "SmolLM2 135M Instruct can't see pictures: choose a vision model or remove them.",
  );
  await user.click(screen.getByRole("button", { name: "Cancel" }));
  await user.click(screen.getByRole("button", { name: "Delete reply" }));
  const reply = await screen.findByRole("button", { name: "Get a reply" });
  expect(reply).toBeDisabled();
  expect(reply).toHaveAccessibleDescription(words);
  expect(bodies).toHaveLength(1);
});

test("whether a model that is asleep sees pictures is known from its card", async () => {
  server.use(
    http.get("*/v1/status", () => HttpResponse.json(anEmptyStatus({ asleep: [SMOLLM] }))),
    http.get("*/v1/models", () =>
      HttpResponse.json({
        object: "list",
        data: [aModel({ status: "on_disk", modalities: ["text", "image"] })],
      }),
    ),
  );
  renderInApp(<ChatPage />);
  await screen.findByText(/is asleep/);
  expect(screen.getByRole("button", { name: "Attach pictures" })).toHaveAttribute(
    "aria-disabled",
    "false",
  );
});

test("a picture over 20 MB that the browser can't scale down is refused by its name", async () => {
  const huge = dot();
  Object.defineProperty(huge, "size", { value: 21 * 1024 ** 2 });
  vi.stubGlobal("createImageBitmap", () => Promise.reject(new Error("no picture")));
  const { toast } = await import("sonner");
  const told = vi.spyOn(toast, "error");
  await attach(null, [huge, dot()]);
  vi.unstubAllGlobals();
  expect(told).toHaveBeenCalledExactlyOnceWith("dot.png could not be read as a picture.");
  await openChat({ isVision: true });
  expect(await attached()).toHaveLength(1);
});

test("an export has the pictures before the words", async () => {
  answering([delta("A dot."), finish(), done]);
  const asked = {
    model: "a/model",
    settings: { systemPrompt: "", sampling: {} },
    supportsReasoning: false,
    seesPictures: true,
  };
  await useChatStore.getState().send({ text: "What is this?", images: [DOT] }, asked);
  const [conversation] = Object.values(useChatStore.getState().conversations);
  if (!conversation) throw new Error("the conversation is missing");
  expect(toMarkdown(conversation)).toContain(`## You\n\n![Picture 1](${DOT})\n\nWhat is this?`);
});

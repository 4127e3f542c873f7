import { act, screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test, vi } from "vitest";
import { aLoadedModel, aModel, anEmptyStatus, anEngine, aStatus, SMOLLM } from "@/test/fixtures";
import { renderInApp } from "@/test/render";
import { failure, server } from "@/test/server";
import { ChatPage } from "./chat-page";
import { useChatStore } from "./chat-store";
import { useSettings } from "./sampling";
import { answering, delta, done, finish, openReply, usage } from "./testing";

beforeEach(() => {
  useChatStore.setState(useChatStore.getInitialState(), true);
  useSettings.setState(useSettings.getInitialState(), true);
});

async function openChat() {
  const app = renderInApp(<ChatPage />);
  const message = await screen.findByRole("textbox", { name: "Message" });
  await screen.findByText(/answers from this machine/);
  return { ...app, message };
}

test("an answer streams in as Markdown, with its figures and the model under it", async () => {
  answering([delta("Hel"), delta("lo **wor"), delta("ld**"), finish(), usage(3, 85.4), done]);
  const { user, message } = await openChat();
  await user.type(message, "hi{Enter}");
  expect(await screen.findByText("world")).toHaveAttribute("data-streamdown", "strong");
  expect(await screen.findByText("85 tokens/s")).toBeVisible();
  expect(screen.getByText("3 tokens")).toBeVisible();
  expect(screen.getByText(/first token after/)).toBeVisible();
  expect(screen.getByText("the/one-that-answered")).toBeVisible();
  expect(message).toHaveValue("");
  expect(message).toHaveFocus();
});

test("Shift-Enter and the Enter that ends a composed character don't send", async () => {
  const { user, message } = await openChat();
  await user.type(message, "one{Shift>}{Enter}{/Shift}two");
  expect(message).toHaveValue("one\ntwo");
  const composing = new KeyboardEvent("keydown", {
    key: "Enter",
    isComposing: true,
    bubbles: true,
    cancelable: true,
  });
  act(() => void message.dispatchEvent(composing));
  expect(message).toHaveValue("one\ntwo");
  expect(screen.queryByRole("article", { name: "Prompt" })).toBeNull();
});

test("Escape stops the reply, which keeps its text and can go on", async () => {
  const stream = openReply();
  const { user, message } = await openChat();
  await user.type(message, "a long story{Enter}");
  await stream.begun;
  stream.say(delta("Once upon a time"));
  expect(await screen.findByText("Once upon a time")).toBeVisible();
  await user.keyboard("{Escape}");
  expect(await screen.findByText("stopped")).toBeVisible();
  const bodies = answering([delta(", far away"), finish(), done]);
  await user.click(screen.getByRole("button", { name: "Continue" }));
  expect(await screen.findByText("Once upon a time, far away")).toBeVisible();
  expect(bodies[0]?.messages.at(-1)).toEqual({ role: "assistant", content: "Once upon a time" });
});

test("the Stop button gives the focus back to the composer", async () => {
  const stream = openReply();
  const { user, message } = await openChat();
  await user.type(message, "a long story{Enter}");
  await stream.begun;
  await user.click(screen.getByRole("button", { name: "Stop" }));
  expect(await screen.findByRole("button", { name: "Send" })).toBeVisible();
  expect(message).toHaveFocus();
});

test("a failure stands in the conversation with its evidence and next step, and Retry asks again", async () => {
  server.use(
    http.post("*/v1/runs", () =>
      failure(502, {
        message: "The engine ended.",
        code: "engine_crashed",
        evidence: "signal SIGSEGV",
        next_step: "Send the request again.",
      }),
    ),
  );
  const { user, message } = await openChat();
  await user.type(message, "hi{Enter}");
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("The engine ended.");
  expect(alert).toHaveTextContent("signal SIGSEGV");
  expect(alert).toHaveTextContent("Send the request again.");
  answering([delta("Here I am"), finish(), done]);
  await user.click(within(alert).getByRole("button", { name: "Retry" }));
  expect(await screen.findByText("Here I am")).toBeVisible();
  expect(screen.queryByRole("alert")).toBeNull();
});

test("a reply that reached the token limit says so", async () => {
  answering([delta("Once"), finish("length"), done]);
  const { user, message } = await openChat();
  await user.type(message, "a story{Enter}");
  expect(await screen.findByText("reached the token limit")).toBeVisible();
  expect(screen.getByRole("button", { name: "Continue" })).toBeEnabled();
});

test("regenerated replies can be leafed through", async () => {
  answering([delta("first try"), finish(), done], [delta("second try"), finish(), done]);
  const { user, message } = await openChat();
  await user.type(message, "hi{Enter}");
  await screen.findByText("first try");
  await user.click(await screen.findByRole("button", { name: "Regenerate" }));
  expect(await screen.findByText("second try")).toBeVisible();
  const versions = await screen.findByRole("group", { name: "Versions of this reply" });
  expect(versions).toHaveTextContent("2/2");
  await user.click(within(versions).getByRole("button", { name: "Previous reply" }));
  expect(await screen.findByText("first try")).toBeVisible();
});

test("an edited prompt is sent again and the old one stays reachable", async () => {
  answering([delta("one"), finish(), done], [delta("two"), finish(), done]);
  const { user, message } = await openChat();
  await user.type(message, "old words{Enter}");
  await screen.findByText("one");
  await user.click(await screen.findByRole("button", { name: "Edit prompt" }));
  const editor = screen.getByRole("textbox", { name: "Edited prompt" });
  await user.clear(editor);
  await user.type(editor, "new words{Enter}");
  expect(await screen.findByText("two")).toBeVisible();
  await user.click(await screen.findByRole("button", { name: "Previous prompt" }));
  expect(await screen.findByText("one")).toBeVisible();
  expect(screen.getByText("old words", { selector: "article p" })).toBeVisible();
});

test("thinking is open while it lasts and folds away when the answer begins", async () => {
  const stream = openReply();
  const { user, message } = await openChat();
  await user.type(message, "hm{Enter}");
  await stream.begun;
  stream.say(delta("Let me see", "reasoning_content"));
  expect(await screen.findByText("Let me see")).toBeVisible();
  stream.say(delta("Yes"), finish(), done);
  expect(await screen.findByText("Yes")).toBeVisible();
  expect(screen.queryByText("Let me see")).toBeNull();
  await user.click(await screen.findByRole("button", { name: /Thought for/ }));
  expect(screen.getByText("Let me see")).toBeVisible();
});

test("a draft outlives the page", async () => {
  const { user, message } = await openChat();
  await user.type(message, "half a thou");
  expect(localStorage.getItem("eloquio.chat.draft.new")).toBe("half a thou");
});

test("without a model the composer says so, keeps the text, and offers to load one", async () => {
  const asked: unknown[] = [];
  server.use(
    http.get("*/v1/status", () => HttpResponse.json(anEmptyStatus())),
    http.get("*/v1/models", () =>
      HttpResponse.json({ object: "list", data: [aModel({ status: "on_disk" })] }),
    ),
    http.post("*/v1/load", async ({ request }) => {
      asked.push(await request.json());
      return HttpResponse.json({ status: "loaded", ...aLoadedModel() });
    }),
  );
  const { user } = renderInApp(<ChatPage />);
  const load = await screen.findByRole("button", { name: "Load SmolLM2 135M Instruct" });
  const message = screen.getByRole("textbox", { name: "Message" });
  await user.type(message, "hi{Enter}");
  expect(message).toHaveValue("hi");
  expect(screen.getByRole("button", { name: "Send" })).toBeDisabled();
  expect(screen.getByRole("button", { name: "Send" })).toHaveAccessibleDescription(
    /No model is loaded/,
  );
  await user.click(load);
  await vi.waitFor(() => expect(asked).toMatchObject([{ model_path: SMOLLM }]));
});

test("a model that can't chat is named as the reason", async () => {
  const loaded = aLoadedModel({ task: "embedding" });
  server.use(
    http.get("*/v1/status", () => HttpResponse.json(aStatus({ engines: [anEngine({ loaded })] }))),
  );
  renderInApp(<ChatPage />);
  expect(await screen.findByText("The loaded model can't chat.")).toBeVisible();
});

test("the settings show what the model recommends and send only what was changed", async () => {
  const bodies = answering([delta("ok"), finish(), done]);
  const { user, message } = await openChat();
  await user.click(screen.getByRole("button", { name: "Chat settings" }));
  const panel = await screen.findByRole("dialog", { name: "Chat settings" });
  const temperature = within(panel).getByRole("textbox", { name: "Temperature" });
  expect(temperature).toHaveAttribute("placeholder", "0.2");
  await user.type(temperature, "0");
  await user.type(within(panel).getByRole("textbox", { name: "Top K" }), "7");
  await user.click(within(panel).getByRole("button", { name: "Reset Top K" }));
  await user.type(within(panel).getByRole("textbox", { name: "System prompt" }), "Be brief.");
  await user.click(within(panel).getByRole("button", { name: "Close" }));
  await user.type(message, "hi{Enter}");
  await screen.findByText("ok");
  expect(bodies[0]).toEqual({
    model: SMOLLM,
    temperature: 0,
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "hi" },
    ],
    stream: true,
  });
});

test("a number out of range is refused and not sent", async () => {
  const { user } = await openChat();
  await user.click(screen.getByRole("button", { name: "Chat settings" }));
  const topP = await screen.findByRole("textbox", { name: "Top P" });
  await user.type(topP, "7");
  expect(topP).toBeInvalid();
  expect(useSettings.getState().byModel[SMOLLM]?.sampling.top_p).toBeUndefined();
});

test("HTML of a model is shown as text and a remote picture as a link", async () => {
  answering([
    delta("<b>bold</b> <script>window.hacked = 1</script>\n\n"),
    delta(
      "![a cat](https://example.com/cat.png) [bad](javascript:alert(1)) [good](https://example.com)",
    ),
    finish(),
    done,
  ]);
  const { user, message } = await openChat();
  await user.type(message, "hi{Enter}");
  expect(await screen.findByText(/<b>bold<\/b>/, { selector: "article p" })).toBeVisible();
  expect(document.querySelector("article img, article script, article b")).toBeNull();
  expect(screen.getByRole("link", { name: /a cat/ })).toHaveAttribute(
    "href",
    "https://example.com/cat.png",
  );
  expect(screen.queryByRole("link", { name: "bad" })).toBeNull();
  const good = screen.getByRole("link", { name: "good" });
  expect(good).toHaveAttribute("target", "_blank");
  expect(good.getAttribute("rel")).toContain("noopener");
});

test("a finished reply is announced once, whole", async () => {
  const stream = openReply();
  const { user, message } = await openChat();
  await user.type(message, "hi{Enter}");
  await stream.begun;
  stream.say(delta("All of "));
  await screen.findByText(/All of/);
  const announcer = document.querySelector("[aria-live=polite].sr-only");
  expect(announcer).toHaveTextContent("");
  stream.say(delta("it"), finish(), done);
  await vi.waitFor(() => expect(announcer).toHaveTextContent("Reply: All of it"));
});

import { act, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import type { Schemas } from "@/api/client";
import { refreshStatus, useFollowLoads } from "@/api/models";
import { aLoadedModel, anEmptyStatus, anEngine, aStatus, SMOLLM } from "@/test/fixtures";
import { renderInApp } from "@/test/render";
import { eventStream, failure, server, streamOf } from "@/test/server";
import { ChatPage } from "./chat-page";
import { useChatStore } from "./chat-store";
import { answering, broken, delta, done, finish, openReply, serveRuns } from "./testing";

const MIB = 1024 ** 2;
const asleep = anEmptyStatus({ asleep: ["another/model", SMOLLM] });
const crash = {
  message: "The engine was ended by SIGKILL.",
  code: "engine_killed",
  evidence: "slot 0: decoding",
  next_step: "Send the request again.",
};

beforeEach(() => {
  useChatStore.setState(useChatStore.getInitialState(), true);
  server.use(http.get("*/v1/load/progress", () => eventStream(streamOf([]))));
});

/** The chat with what the shell does for it. */
function Chat() {
  useFollowLoads();
  return <ChatPage />;
}

/** Opens the chat with a model that answers; `become` changes what the server says. */
async function openChat(status: Schemas["StatusReply"] = aStatus()) {
  let current = status;
  server.use(http.get("*/v1/status", () => HttpResponse.json(current)));
  const app = renderInApp(<Chat />);
  await screen.findByText(/answers from this machine/);
  return {
    ...app,
    message: screen.getByRole("textbox", { name: "Message" }),
    become: (next: Schemas["StatusReply"]) => {
      current = next;
    },
    notice: () => act(() => refreshStatus(app.client)),
  };
}

test("the warnings of the model that answers are counted in the header and open from there", async () => {
  const loaded = aLoadedModel({
    warnings: ["It is loaded without its projector.", "Tiny was unloaded to make room."],
  });
  const { user } = await openChat(aStatus({ engines: [anEngine({ loaded })] }));
  await user.click(screen.getByRole("button", { name: /^2 warnings about SmolLM2/ }));
  const warnings = await screen.findByRole("dialog", { name: /^Warnings about/ });
  expect(within(warnings).getByText("It is loaded without its projector.")).toBeVisible();
  await user.keyboard("{Escape}");
  await waitFor(() => expect(warnings).not.toBeInTheDocument());
});

test("a model without warnings has no badge", async () => {
  await openChat();
  expect(screen.queryByRole("button", { name: /warning/ })).toBeNull();
});

test("a model that fell asleep is woken by the next message", async () => {
  const chat = await openChat();
  chat.become(asleep);
  await chat.notice();
  expect(
    await screen.findByText("SmolLM2 135M Instruct is asleep. Your next message loads it again."),
  ).toBeVisible();
  const bodies = answering([delta("I am up"), finish(), done]);
  await chat.user.type(chat.message, "wake up{Enter}");
  expect(await screen.findByText("I am up")).toBeVisible();
  expect(bodies).toMatchObject([{ model: SMOLLM }]);
});

test("a page that is opened while the model sleeps knows it, and can wake it", async () => {
  const chat = await openChat(asleep);
  expect(
    await screen.findByText("SmolLM2 135M Instruct is asleep. Your next message loads it again."),
  ).toBeVisible();
  const bodies = answering([delta("I am up"), finish(), done]);
  await chat.user.type(chat.message, "wake up{Enter}");
  expect(await screen.findByText("I am up")).toBeVisible();
  expect(bodies).toMatchObject([{ model: SMOLLM }]);
});

test("a model that a person unloaded doesn't sleep, and nothing is sent to it", async () => {
  const chat = await openChat();
  chat.become(anEmptyStatus());
  await chat.notice();
  expect(await screen.findByText("No model is loaded.")).toBeVisible();
  await chat.user.type(chat.message, "hello");
  expect(screen.getByRole("button", { name: "Send" })).toBeDisabled();
});

test("while a model is woken the reply says so, with the bytes that are there", async () => {
  const chat = await openChat();
  chat.become(asleep);
  await chat.notice();
  const stream = openReply(() => chat.become({ ...anEmptyStatus(), loading: [SMOLLM] }));
  server.use(
    http.get("*/v1/load/progress", () => {
      const step = { phase: "starting", bytes: 49 * MIB, total_bytes: 98 * MIB, elapsed_s: 1 };
      return eventStream(streamOf([`data: ${JSON.stringify({ model: SMOLLM, ...step })}\n\n`]));
    }),
  );
  await chat.user.type(chat.message, "wake up{Enter}");
  const reply = await screen.findByRole("article", { name: "Reply" });
  expect(await within(reply).findByRole("status")).toHaveTextContent(
    "SmolLM2 135M Instruct is being loaded again (49 MiB of 98 MiB)",
  );
  chat.become(aStatus());
  stream.say(delta("Good morning"), finish(), done);
  expect(await within(reply).findByText("Good morning")).toBeVisible();
  await waitFor(() => expect(screen.queryByText(/being loaded again/)).toBeNull());
});

test("while another model is loading nothing is sent to the one before", async () => {
  const chat = await openChat();
  chat.become({ ...anEmptyStatus(), loading: ["another/model"] });
  await chat.notice();
  expect(await screen.findByText(/Loading another\/model/)).toBeVisible();
  await chat.user.type(chat.message, "hello");
  expect(screen.getByRole("button", { name: "Send" })).toBeDisabled();
});

test("after a crash the reply says the engine's last words, and that it was started again", async () => {
  const chat = await openChat();
  serveRuns((run) => {
    const status = { state: "starting", elapsed_seconds: 0.1 } as const;
    const restarting = anEngine({
      status: { phase: "starting", loaded_bytes: 0, total_bytes: 0, ...status },
      loaded: null,
      restarts: 1,
      last_error: crash,
    });
    chat.become({ ...anEmptyStatus(), engines: [restarting], loading: [SMOLLM] });
    run.say(delta("Once upon"), broken(crash));
  });
  await chat.user.type(chat.message, "a story{Enter}");
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent(crash.message);
  expect(alert).toHaveTextContent(crash.evidence);
  expect(await within(alert).findByText("The engine is being started again.")).toBeVisible();
  chat.become(aStatus({ engines: [anEngine({ restarts: 1, last_error: crash })] }));
  await chat.notice();
  expect(await within(alert).findByText("The engine was started again; it answers.")).toBeVisible();
  answering([delta("Here I am"), finish(), done]);
  await chat.user.type(chat.message, "still there?{Enter}");
  expect(await screen.findByText("Here I am")).toBeVisible();
});

test("an engine that stays down doesn't take the composer, and its refusal is said", async () => {
  const chat = await openChat();
  const failed = anEngine({ status: { state: "failed", error: crash }, loaded: null });
  chat.become({ ...anEmptyStatus(), engines: [failed] });
  await chat.notice();
  expect(await screen.findByText(/has stopped. Your next message starts it again/)).toBeVisible();
  server.use(
    http.post("*/v1/runs", () =>
      failure(503, {
        message: `The model failed before: ${crash.message}`,
        code: "engine_unavailable",
        next_step: "Try again in 5 s.",
      }),
    ),
  );
  await chat.user.type(chat.message, "hello{Enter}");
  expect(await screen.findByRole("alert")).toHaveTextContent("Try again in 5 s.");
});

import { screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import { aLoadedModel, anEngine, aStatus } from "@/test/fixtures";
import { renderInApp } from "@/test/render";
import { server } from "@/test/server";
import { ChatPage } from "./chat-page";
import { useChatStore } from "./chat-store";
import { useSettings } from "./sampling";
import { delta, done, finish, serveRuns } from "./testing";

beforeEach(() => {
  useChatStore.setState(useChatStore.getInitialState(), true);
  useSettings.setState({ byModel: {} });
});

/** A chat with a model that has two adapters, each of which says who it is. */
async function openChat(changes: Partial<ReturnType<typeof aLoadedModel>> = {}) {
  const loaded = aLoadedModel({
    adapters: ["pirate", "poet"],
    default_adapter: "pirate",
    ...changes,
  });
  server.use(
    http.get("*/v1/status", () => HttpResponse.json(aStatus({ engines: [anEngine({ loaded })] }))),
  );
  const { bodies } = serveRuns((run, { use_adapter: adapter }) =>
    run.say(delta(`I am ${adapter === false ? "nobody" : adapter}.`), finish(), done),
  );
  const app = renderInApp(<ChatPage />);
  await screen.findByText(/answers from this machine/);
  return { ...app, bodies, message: screen.getByRole("textbox", { name: "Message" }) };
}

test("the adapter that the model was loaded for answers, until another is chosen", async () => {
  const { user, bodies, message } = await openChat();
  await user.type(message, "Who are you?{Enter}");
  expect(await screen.findByText("I am pirate.")).toBeVisible();
  await user.click(screen.getByRole("combobox", { name: "Answered by" }));
  await user.click(screen.getByRole("option", { name: "Base model" }));
  await user.type(message, "And now?{Enter}");
  expect(await screen.findByText("I am nobody.")).toBeVisible();
  expect(bodies.map((body) => body.use_adapter)).toEqual(["pirate", false]);
});

test("a model without adapters has no switch, and an adapter that is gone isn't asked for", async () => {
  useSettings.getState().setAdapter(aLoadedModel().model, "gone");
  const { user, bodies, message } = await openChat({ adapters: [], default_adapter: null });
  expect(screen.queryByRole("combobox", { name: "Answered by" })).toBeNull();
  await user.type(message, "Who are you?{Enter}");
  expect(await screen.findByText("I am undefined.")).toBeVisible();
  expect(bodies[0]).not.toHaveProperty("use_adapter");
  expect(screen.queryByRole("button", { name: "Compare" })).toBeNull();
});

test("a reply is compared with the base's, and the one that is chosen goes on", async () => {
  const { user, bodies, message } = await openChat();
  await user.type(message, "Who are you?{Enter}");
  await screen.findByText("I am pirate.");
  await user.click(await screen.findByRole("button", { name: "Compare" }));
  expect(screen.getAllByRole("menuitem").map((item) => item.textContent)).toEqual([
    "with Base model",
    "with poet",
  ]);
  await user.click(screen.getByRole("menuitem", { name: "with Base model" }));
  const comparison = await screen.findByRole("group", { name: "Comparison" });
  expect(await within(comparison).findByText("I am nobody.")).toBeVisible();
  expect(within(comparison).getByText("I am pirate.")).toBeVisible();
  const first = within(comparison).getByRole("region", { name: "Reply 1" });
  await user.click(within(first).getByRole("button", { name: "Go on with this" }));
  expect(screen.queryByRole("group", { name: "Comparison" })).toBeNull();
  expect(screen.getByText("I am pirate.")).toBeVisible();
  expect(screen.queryByText("I am nobody.")).toBeNull();
  expect(screen.getByText("1/2")).toBeVisible();

  await user.type(message, "Go on.{Enter}");
  await screen.findAllByText("I am pirate.");
  expect(bodies.at(-1)?.messages.map(({ content }) => content)).toEqual([
    "Who are you?",
    "I am pirate.",
    "Go on.",
  ]);
});

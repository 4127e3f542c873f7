import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import type { Schemas } from "@/api/client";
import { renderInApp } from "@/test/render";
import { failure, server } from "@/test/server";
import { SettingsPage } from "./settings-page";

let kept: Schemas["PageSettings"];

beforeEach(() => {
  kept = { model_dirs: ["/data/models"], load_on_start: true };
  server.use(
    http.get("*/health", () => HttpResponse.json({ status: "ok" })),
    http.get("*/v1/settings", () => HttpResponse.json(kept)),
    http.put<never, Schemas["PageSettings"]>("*/v1/settings", async ({ request }) => {
      kept = await request.json();
      return HttpResponse.json(kept);
    }),
  );
});

test("a folder is added beside the others", async () => {
  const { user } = renderInApp(<SettingsPage />);
  const folders = await screen.findByRole("list", { name: "Model folders" });
  await user.type(screen.getByRole("textbox", { name: "Add a folder" }), "/more/models{Enter}");
  expect(await within(folders).findByText("/more/models")).toBeVisible();
  expect(kept).toEqual({ model_dirs: ["/data/models", "/more/models"], load_on_start: true });
  expect(screen.getByRole("textbox", { name: "Add a folder" })).toHaveValue("");
});

test("a folder is removed", async () => {
  const { user } = renderInApp(<SettingsPage />);
  await user.click(await screen.findByRole("button", { name: "Remove /data/models" }));
  expect(await screen.findByText("No folder is named yet.")).toBeVisible();
  expect(kept.model_dirs).toEqual([]);
});

test("a refused folder says why, and what was typed stays", async () => {
  server.use(
    http.put("*/v1/settings", () =>
      failure(400, { message: "There is no such folder.", code: "invalid_request" }),
    ),
  );
  const { user } = renderInApp(<SettingsPage />);
  await screen.findByRole("list", { name: "Model folders" });
  await user.type(screen.getByRole("textbox", { name: "Add a folder" }), "/nowhere{Enter}");
  expect(await screen.findByText("There is no such folder.")).toBeVisible();
  expect(screen.getByRole("textbox", { name: "Add a folder" })).toHaveValue("/nowhere");
});

test("loading on start is switched off", async () => {
  const { user } = renderInApp(<SettingsPage />);
  const start = await screen.findByRole("switch", { name: "Load a model on start" });
  await waitFor(() => expect(start).toBeChecked());
  await user.click(start);
  await waitFor(() => expect(kept.load_on_start).toBe(false));
  await waitFor(() => expect(start).not.toBeChecked());
});

test("the theme is chosen with the keyboard", async () => {
  const { user } = renderInApp(<SettingsPage />);
  const themes = await screen.findByRole("radiogroup", { name: "Theme" });
  await user.click(within(themes).getByRole("radio", { name: "Light" }));
  await user.keyboard("{ArrowRight>}");
  await waitFor(() => expect(within(themes).getByRole("radio", { name: "Dark" })).toBeChecked());
  await user.keyboard("{/ArrowRight}");
  expect(document.documentElement.dataset.theme).toBe("dark");
  await user.click(within(themes).getByRole("radio", { name: "System" }));
});

test("the examples name this address and the loaded model, and no key where none is asked", async () => {
  const { user } = renderInApp(<SettingsPage />);
  const curl = await screen.findByText(/^curl http/);
  expect(curl).toHaveTextContent(`${window.location.origin}/v1/chat/completions`);
  await waitFor(() => expect(curl).toHaveTextContent("builtin/smollm2-135m-instruct"));
  expect(curl).not.toHaveTextContent("Authorization");
  await user.click(screen.getByRole("tab", { name: "Python" }));
  expect(await screen.findByText(/from openai import OpenAI/)).toBeVisible();
});

test("where a key is asked, the examples send it and the page says where it is", async () => {
  server.use(http.get("*/health", () => failure(401, { message: "A key.", code: "key_required" })));
  renderInApp(<SettingsPage />);
  const curl = await screen.findByText(/^curl http/);
  await waitFor(() => expect(curl).toHaveTextContent("Authorization: Bearer"));
  expect(screen.getByText("eloquio key")).toBeVisible();
});

import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { aModel } from "@/test/fixtures";
import { renderInApp } from "@/test/render";
import { server } from "@/test/server";
import { CommandPalette } from "./command-palette";

test("goes to a view by typing a part of its name", async () => {
  const onClose = vi.fn();
  const { user, router } = renderInApp(<CommandPalette onClose={onClose} />);
  await user.type(await screen.findByRole("combobox"), "settin{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe("/settings"));
  expect(onClose).toHaveBeenCalled();
});

test("loads a model that is on disk", async () => {
  const asked: unknown[] = [];
  const other = aModel({ id: "other", display_name: "Other", status: "on_disk" });
  server.use(
    http.get("*/v1/models", () => HttpResponse.json({ object: "list", data: [other] })),
    http.post("*/v1/load", async ({ request }) => {
      asked.push(await request.json());
      return HttpResponse.json({});
    }),
  );
  const { user } = renderInApp(<CommandPalette onClose={() => {}} />);
  await user.click(await screen.findByRole("option", { name: /Load Other/ }));
  await waitFor(() => expect(asked).toMatchObject([{ model_path: "other" }]));
});

test("unloads the model that runs", async () => {
  const asked: unknown[] = [];
  server.use(
    http.post("*/v1/unload", async ({ request }) => {
      asked.push(await request.json());
      return HttpResponse.json({ status: "unloaded", model: aModel().id });
    }),
  );
  const { user } = renderInApp(<CommandPalette onClose={() => {}} />);
  await user.click(await screen.findByRole("option", { name: /Unload SmolLM2/ }));
  await waitFor(() => expect(asked).toMatchObject([{ model_path: aModel().id }]));
});

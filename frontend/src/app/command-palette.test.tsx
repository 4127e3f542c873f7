import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { useState } from "react";
import { Toaster, toast } from "sonner";
import { afterEach, expect, test, vi } from "vitest";
import { BusyQuestion } from "@/features/models/busy-question";
import { aModel } from "@/test/fixtures";
import { renderInApp } from "@/test/render";
import { failure, server } from "@/test/server";
import { CommandPalette } from "./command-palette";

afterEach(() => void toast.dismiss());

/** As in the shell: the palette is gone before what was chosen is done. */
function Page() {
  const [isOpen, setOpen] = useState(true);
  return (
    <>
      <Toaster />
      <BusyQuestion />
      {isOpen && <CommandPalette onClose={() => setOpen(false)} />}
    </>
  );
}

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

test("an unload that fails is told, though the palette is gone by then", async () => {
  server.use(
    http.post("*/v1/unload", () =>
      failure(500, { message: "The process could not be ended.", code: "internal_error" }),
    ),
  );
  const { user } = renderInApp(<Page />);
  await user.click(await screen.findByRole("option", { name: /Unload SmolLM2/ }));
  expect(await screen.findByText("The process could not be ended.")).toBeVisible();
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("an unload that would end an answer is asked about, and about that nothing else is said", async () => {
  server.use(
    http.post("*/v1/unload", () =>
      failure(409, { message: "It is answering.", code: "engine_busy" }),
    ),
  );
  const { user } = renderInApp(<Page />);
  await user.click(await screen.findByRole("option", { name: /Unload SmolLM2/ }));
  const question = await screen.findByRole("dialog", { name: /under way/ });
  expect(question).toHaveAccessibleDescription("It is answering.");
  expect(screen.getAllByText("It is answering.")).toHaveLength(1);
});

import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test, vi } from "vitest";
import type { Schemas } from "@/api/client";
import { aLoadedModel, aModel, anEngine, aStatus, someMemory } from "@/test/fixtures";
import { renderInApp } from "@/test/render";
import { server } from "@/test/server";
import { LoadDialog } from "./load-dialog";

const GIB = 1024 ** 3;

let loads: Schemas["LoadRequest"][];

beforeEach(() => {
  loads = [];
  server.use(
    // As a real estimate does, the KV cache grows with the context.
    http.post<never, Schemas["LoadRequest"]>("*/v1/validate", async ({ request }) => {
      const { max_seq_length, keep_others } = await request.json();
      const kv = (max_seq_length || 8192) * 1024 ** 2;
      return HttpResponse.json({
        valid: true,
        message: "",
        memory: someMemory({ kv, total: kv + 158 * 1024 ** 2 }),
        stops: keep_others ? [] : ["tiny"],
        warnings: max_seq_length > 8192 ? ["The model was made for 8192 tokens."] : [],
      });
    }),
    http.post<never, Schemas["LoadRequest"]>("*/v1/load", async ({ request }) => {
      loads.push(await request.json());
      return HttpResponse.json({ status: "loaded", ...aLoadedModel() });
    }),
  );
});

function open() {
  const onClose = vi.fn();
  const app = renderInApp(<LoadDialog model={aModel()} onClose={onClose} />);
  return { ...app, onClose };
}

test("the memory estimate follows the context length", async () => {
  const { user } = open();
  const memory = await screen.findByRole("region", { name: "Memory" });
  await within(memory).findByText("8.0 GiB");
  await user.type(screen.getByRole("textbox", { name: "Context length" }), "2048");
  expect(await within(memory).findByText("2.0 GiB")).toBeVisible();
});

test("what would not fit is said before it is tried", async () => {
  const { user } = open();
  const memory = await screen.findByRole("region", { name: "Memory" });
  await user.type(screen.getByRole("textbox", { name: "Context length" }), "900000");
  expect(await within(memory).findByText("Too large")).toBeVisible();
  expect(within(memory).getByText("The model was made for 8192 tokens.")).toBeVisible();
});

test("loads with what was chosen, and closes", async () => {
  const { user, onClose } = open();
  await user.type(await screen.findByRole("textbox", { name: "Context length" }), "4096");
  await user.click(screen.getByRole("combobox", { name: "KV cache type" }));
  await user.click(await screen.findByRole("option", { name: /q8_0/ }));
  await user.click(screen.getByText("Advanced"));
  await user.type(screen.getByRole("textbox", { name: "GPU layers" }), "12");
  await user.type(screen.getByRole("textbox", { name: "Parallel slots" }), "2");
  await user.click(screen.getByRole("switch", { name: "Keep other models loaded" }));
  await user.click(screen.getByRole("button", { name: "Load model" }));
  expect(onClose).toHaveBeenCalledOnce();
  await waitFor(() => expect(loads).toHaveLength(1));
  expect(loads[0]).toMatchObject({
    model_path: aModel().id,
    max_seq_length: 4096,
    cache_type_kv: "q8_0",
    gpu_layers: 12,
    n_parallel: 2,
    keep_others: true,
  });
  expect(loads[0]).not.toHaveProperty("chat_template_override");
});

test("a number that makes no sense is named, and nothing is loaded", async () => {
  const { user } = open();
  const context = await screen.findByRole("textbox", { name: "Context length" });
  await user.type(context, "lots");
  expect(context).toBeInvalid();
  expect(context).toHaveAccessibleDescription(/whole number from 1/);
  expect(screen.getByRole("button", { name: "Load model" })).toBeDisabled();
  await user.type(context, "{Enter}");
  expect(loads).toEqual([]);
});

test("the memory is drawn against what is free and what the loaded model gives back", async () => {
  open();
  // 8 GiB are free, and 338 MiB come back from the model that runs.
  const memory = await screen.findByRole("region", { name: "Memory" });
  expect(await within(memory).findByText(`${(8 + 338 / 1024).toFixed(1)} GiB free`)).toBeVisible();
});

const tiny = anEngine({
  model: "tiny",
  display_name: "Tiny",
  memory: someMemory({ total: 2 * GIB }),
});

const running = (engine: Schemas["EngineStatus"]) =>
  server.use(http.get("*/v1/status", () => HttpResponse.json(aStatus({ engines: [engine] }))));

test("says which models will be unloaded, and not once they are to be kept", async () => {
  running(tiny);
  const { user } = open();
  const memory = await screen.findByRole("region", { name: "Memory" });
  expect(await within(memory).findByText("Tiny will be unloaded for it.")).toBeVisible();
  expect(within(memory).getByText("10 GiB free")).toBeVisible();
  await user.click(screen.getByText("Advanced"));
  await user.click(screen.getByRole("switch", { name: "Keep other models loaded" }));
  await waitFor(() => expect(within(memory).queryByText(/will be unloaded/)).toBeNull());
  expect(within(memory).getByText("8.0 GiB free")).toBeVisible();
});

test("says beforehand when answers are under way on what would be unloaded", async () => {
  running({ ...tiny, busy: 1 });
  open();
  expect(await screen.findByText(/answers are under way there/)).toBeVisible();
});

test("a model to be pinned needs no idle time", async () => {
  const { user } = open();
  await user.click(await screen.findByText("Advanced"));
  await user.click(screen.getByRole("switch", { name: "Pin" }));
  expect(screen.getByRole("combobox", { name: "Unload after" })).toBeDisabled();
  await user.click(screen.getByRole("button", { name: "Load model" }));
  await waitFor(() => expect(loads).toMatchObject([{ pin: true }]));
});

test("an idle time of one's own is asked for in minutes", async () => {
  const { user } = open();
  await user.click(await screen.findByText("Advanced"));
  await user.click(screen.getByRole("combobox", { name: "Unload after" }));
  await user.click(await screen.findByRole("option", { name: "Other…" }));
  expect(screen.getByRole("button", { name: "Load model" })).toBeDisabled();
  await user.type(screen.getByRole("textbox", { name: "Idle minutes" }), "7");
  await user.click(screen.getByRole("button", { name: "Load model" }));
  await waitFor(() => expect(loads).toMatchObject([{ ttl_s: 420, pin: false }]));
});

import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { aModel, anEmptyStatus, aStatus, someMemory } from "@/test/fixtures";
import { renderInApp } from "@/test/render";
import { failure, server } from "@/test/server";
import { ModelPicker } from "./model-picker";

const GIB = 1024 ** 3;

const qwen = aModel({
  id: "Qwen/Qwen3-0.6B-GGUF:Q8_0",
  display_name: "Qwen3 0.6B",
  source: "hub_cache",
  status: "on_disk",
  quant: "Q8_0",
});
const giant = aModel({
  id: "giant",
  display_name: "Giant 400B",
  source: "folder",
  status: "on_disk",
  memory: someMemory({ total: 400 * GIB }),
});
const embedder = aModel({
  id: "nomic",
  display_name: "Nomic Embed",
  source: "folder",
  status: "on_disk",
  task: "embedding",
});
const broken = aModel({
  id: "broken",
  display_name: "Broken",
  source: "folder",
  status: "unusable",
  problem: "The file was cut.",
});

function onDisk(...data: (typeof qwen)[]) {
  server.use(http.get("*/v1/models", () => HttpResponse.json({ object: "list", data })));
}

function takeLoads() {
  const asked: unknown[] = [];
  server.use(
    http.post("*/v1/load", async ({ request }) => {
      asked.push(await request.json());
      return failure(502, { message: "It ended.", code: "engine_start_failed" });
    }),
  );
  return asked;
}

test("says what is loaded and how it is", async () => {
  renderInApp(<ModelPicker />);
  const picker = await screen.findByRole("button", { name: /SmolLM2 135M Instruct/ });
  expect(within(picker).getByText("Ready")).toBeVisible();
});

test("lists what is on disk by place, with whether it fits and why it can't be used", async () => {
  onDisk(aModel(), qwen, giant, embedder, broken);
  const { user } = renderInApp(<ModelPicker />);
  await user.click(await screen.findByRole("button", { name: /SmolLM2/ }));
  const option = (name: RegExp) => screen.findByRole("option", { name });
  expect(within(await option(/Qwen3/)).getByText("Fits")).toBeVisible();
  expect(within(await option(/Giant/)).getByText("Too large")).toBeVisible();
  expect(within(await option(/Nomic/)).getByText(/for embeddings/)).toBeVisible();
  expect(within(await option(/Broken/)).getByText("The file was cut.")).toBeVisible();
  expect(await option(/Broken/)).toHaveAttribute("aria-disabled", "true");
  expect(screen.getByText("Hugging Face cache")).toBeVisible();
});

test("typing narrows the list and Enter loads the chosen one with its defaults", async () => {
  onDisk(aModel(), qwen, giant);
  const asked = takeLoads();
  const { user } = renderInApp(<ModelPicker />);
  await user.click(await screen.findByRole("button", { name: /SmolLM2/ }));
  await user.type(screen.getByRole("combobox"), "qwen q8");
  await waitFor(() => expect(screen.getAllByRole("option")).toHaveLength(1));
  await user.keyboard("{Enter}");
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toMatchObject({ model_path: qwen.id, max_seq_length: 0, keep_others: false });
});

test("a failed load is said on the button, with a way to what happened", async () => {
  server.use(http.get("*/v1/status", () => HttpResponse.json(anEmptyStatus())));
  onDisk(qwen);
  takeLoads();
  const { user, router } = renderInApp(<ModelPicker />);
  await user.click(await screen.findByRole("button", { name: /Choose a model/ }));
  await user.click(await screen.findByRole("option", { name: /Qwen3/ }));
  await user.click(await screen.findByRole("button", { name: /Failed/ }));
  await user.click(screen.getByRole("button", { name: /It ended.*See what happened/ }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/models"));
});

test("a load that somebody else began is shown too", async () => {
  server.use(
    http.get("*/v1/status", () => HttpResponse.json({ ...anEmptyStatus(), loading: [qwen.id] })),
  );
  onDisk({ ...qwen, status: "loading" });
  renderInApp(<ModelPicker />);
  expect(await screen.findByRole("button", { name: /Qwen3 0.6B.*Loading/ })).toBeVisible();
});

test("with options first, choosing a model opens its load dialog", async () => {
  onDisk(aModel(), qwen);
  server.use(http.post("*/v1/validate", () => HttpResponse.json(validReply)));
  const { user } = renderInApp(<ModelPicker />);
  await user.click(await screen.findByRole("button", { name: /SmolLM2/ }));
  await user.click(await screen.findByRole("switch", { name: "Set options first" }));
  await user.click(await screen.findByRole("option", { name: /Qwen3/ }));
  expect(await screen.findByRole("dialog", { name: "Load Qwen3 0.6B" })).toBeVisible();
});

test("an unreachable server is said instead of an empty list", async () => {
  server.use(http.get("*/v1/status", () => HttpResponse.error()));
  renderInApp(<ModelPicker />);
  expect(await screen.findByRole("button", { name: /Not connected/ })).toBeVisible();
});

const validReply = {
  valid: true,
  message: "",
  identifier: qwen.id,
  display_name: qwen.display_name,
  is_gguf: true,
  is_lora: false,
  is_vision: false,
  audio_type: null,
  memory: someMemory(),
  native_context_length: 8192,
  warnings: [],
  stops: [],
};

test("the built-in model stands first", async () => {
  onDisk(qwen, aModel());
  server.use(http.get("*/v1/status", () => HttpResponse.json(aStatus())));
  const { user } = renderInApp(<ModelPicker />);
  await user.click(await screen.findByRole("button", { name: /SmolLM2/ }));
  const [first] = await screen.findAllByRole("option");
  expect(first).toHaveTextContent("SmolLM2");
});

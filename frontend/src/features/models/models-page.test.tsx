import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import type { Schemas } from "@/api/client";
import { useFollowLoads } from "@/api/models";
import { aLoadedModel, aModel, anEmptyStatus, anEngine, aStatus, SMOLLM } from "@/test/fixtures";
import { renderInApp } from "@/test/render";
import { eventStream, failure, server } from "@/test/server";
import { BusyQuestion } from "./busy-question";
import { ModelsPage } from "./models-page";

const MIB = 1024 ** 2;
const onDisk = aModel({ status: "on_disk" });

/** A server that takes loads and holds them until the test says how they end. */
function slowLoads() {
  const encoder = new TextEncoder();
  let answer: (response: Response) => void = () => {};
  let progress: ReadableStreamDefaultController<Uint8Array> | undefined;
  const asked: Schemas["LoadRequest"][] = [];
  const unloads: Schemas["UnloadRequest"][] = [];
  server.use(
    http.post<never, Schemas["LoadRequest"]>("*/v1/load", async ({ request }) => {
      asked.push(await request.json());
      return new Promise<Response>((resolve) => {
        answer = resolve;
      });
    }),
    http.get("*/v1/load/progress", () =>
      eventStream(
        new ReadableStream({
          start(controller) {
            progress = controller;
          },
        }),
      ),
    ),
    http.post<never, Schemas["UnloadRequest"]>("*/v1/unload", async ({ request }) => {
      unloads.push(await request.json());
      answer(failure(499, { message: "It was cancelled.", code: "load_cancelled" }));
      return HttpResponse.json({ status: "unloaded", model: SMOLLM });
    }),
  );
  return {
    asked,
    unloads,
    end: (response: Response) => answer(response),
    async tell(step: Partial<Schemas["LoadProgress"]>) {
      await waitFor(() => expect(progress).toBeDefined());
      const data = { model: SMOLLM, elapsed_s: 1, message: "", error: null, ...step };
      progress?.enqueue(encoder.encode(`data: ${JSON.stringify(data)}\n\n`));
    },
  };
}

/** The page with what the shell does for it. */
function Page() {
  useFollowLoads();
  return (
    <>
      <BusyQuestion />
      <ModelsPage />
    </>
  );
}

beforeEach(() => {
  server.use(
    http.get("*/v1/status", () => HttpResponse.json(anEmptyStatus())),
    http.get("*/v1/models", () => HttpResponse.json({ object: "list", data: [onDisk] })),
  );
});

const loadIt = async (user: ReturnType<typeof renderInApp>["user"]) =>
  user.click(await screen.findByRole("button", { name: `Load ${onDisk.display_name}` }));

test("a load shows its phase and bytes as they come, and goes when it is done", async () => {
  const loads = slowLoads();
  const { user } = renderInApp(<Page />);
  await loadIt(user);
  const loading = await screen.findByRole("region", { name: "Loading" });
  await loads.tell({ phase: "starting", bytes: 49 * MIB, total_bytes: 98 * MIB });
  expect(await within(loading).findByText("Reading the weights")).toBeVisible();
  expect(within(loading).getByText(/49 MiB of 98 MiB/)).toBeVisible();
  expect(within(loading).getByRole("progressbar")).toHaveAttribute("aria-valuenow", "50");
  const phases = within(loading).getByRole("list", { name: "Phases" });
  expect(within(phases).getByText("Read")).toHaveAttribute("aria-current", "step");
  expect(within(phases).getByText("Find")).toHaveTextContent("done");
  loads.end(HttpResponse.json({ status: "loaded", ...aLoadedModel() }));
  await waitFor(() => expect(loading).not.toBeInTheDocument());
});

test.each(["resolving", "starting", "warming"] as const)(
  "a load can be cancelled while it is %s",
  async (phase) => {
    const loads = slowLoads();
    const { user } = renderInApp(<Page />);
    await loadIt(user);
    const loading = await screen.findByRole("region", { name: "Loading" });
    await loads.tell({ phase, bytes: 0, total_bytes: 0, message: `It is ${phase}` });
    await within(loading).findByText(`It is ${phase}`);
    await user.click(within(loading).getByRole("button", { name: "Cancel" }));
    await waitFor(() => expect(loading).not.toBeInTheDocument());
    expect(loads.unloads).toEqual([{ model_path: SMOLLM, force: true }]);
  },
);

test("a load that waits for its turn is shown and can be cancelled", async () => {
  server.use(
    http.get("*/v1/status", () =>
      HttpResponse.json({ ...anEmptyStatus(), loading: ["the/first", "the/second"] }),
    ),
  );
  const loads = slowLoads();
  const { user } = renderInApp(<Page />);
  expect(await screen.findByText(/waits for its turn/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Cancel the load of the/second" }));
  await waitFor(() => expect(loads.unloads).toEqual([{ model_path: "the/second", force: true }]));
});

test("cancel unloads the model, and a cancelled load is not called a failure", async () => {
  const loads = slowLoads();
  const { user } = renderInApp(<Page />);
  await loadIt(user);
  const loading = await screen.findByRole("region", { name: "Loading" });
  await user.click(within(loading).getByRole("button", { name: "Cancel" }));
  await waitFor(() => expect(loading).not.toBeInTheDocument());
  expect(loads.unloads).toEqual([{ model_path: SMOLLM, force: true }]);
  expect(screen.queryByRole("alert")).not.toBeInTheDocument();
});

test("a failed load shows the message, the engine's last words and what to do", async () => {
  const loads = slowLoads();
  const { user } = renderInApp(<Page />);
  await loadIt(user);
  await waitFor(() => expect(loads.asked).toHaveLength(1));
  loads.end(
    failure(502, {
      message: "The engine ran out of memory.",
      code: "engine_out_of_memory",
      evidence: "ggml_aligned_malloc: insufficient memory",
      next_step: "Choose a smaller quant.",
    }),
  );
  const alert = await screen.findByRole("alert");
  expect(within(alert).getByText("The engine ran out of memory.")).toBeVisible();
  expect(within(alert).getByText("ggml_aligned_malloc: insufficient memory").tagName).toBe("PRE");
  expect(within(alert).getByText("Choose a smaller quant.")).toBeVisible();
  await user.click(within(alert).getByRole("button", { name: "Try again" }));
  await waitFor(() => expect(loads.asked).toHaveLength(2));
  expect(loads.asked[1]).toEqual(loads.asked[0]);
});

test("a load that would end answers asks first, and is forced only then", async () => {
  const answers = anEngine({ model: "another", busy: 2 });
  server.use(http.get("*/v1/status", () => HttpResponse.json(aStatus({ engines: [answers] }))));
  const loads = slowLoads();
  const { user } = renderInApp(<Page />);
  await loadIt(user);
  await waitFor(() => expect(loads.asked).toHaveLength(1));
  loads.end(failure(409, { message: "Answers are under way on another.", code: "engine_busy" }));
  const question = await screen.findByRole("dialog", {
    name: "2 answers are under way; end them?",
  });
  expect(question).toHaveAccessibleDescription("Answers are under way on another.");
  expect(within(question).getByRole("button", { name: "Let them finish" })).toHaveFocus();
  await user.click(within(question).getByRole("button", { name: "End them and load" }));
  await waitFor(() => expect(loads.asked).toHaveLength(2));
  expect(loads.asked[1]).toMatchObject({ model_path: SMOLLM, force: true });
  loads.end(HttpResponse.json({ status: "loaded", ...aLoadedModel() }));
  await waitFor(() => expect(screen.queryByRole("dialog")).not.toBeInTheDocument());
});

test("answers that are left to finish leave no failure behind", async () => {
  const loads = slowLoads();
  const { user } = renderInApp(<Page />);
  await loadIt(user);
  await waitFor(() => expect(loads.asked).toHaveLength(1));
  loads.end(failure(409, { message: "It is answering.", code: "engine_busy" }));
  await screen.findByRole("dialog");
  await user.keyboard("{Escape}");
  await waitFor(() => expect(screen.queryByRole("alert")).not.toBeInTheDocument());
  expect(screen.queryByRole("dialog")).not.toBeInTheDocument();
  expect(loads.asked).toHaveLength(1);
});

test("a dismissed failure goes", async () => {
  const loads = slowLoads();
  const { user } = renderInApp(<Page />);
  await loadIt(user);
  await waitFor(() => expect(loads.asked).toHaveLength(1));
  loads.end(failure(502, { message: "It ended.", code: "engine_start_failed" }));
  await user.click(await screen.findByRole("button", { name: "Dismiss" }));
  await waitFor(() => expect(screen.queryByRole("alert")).not.toBeInTheDocument());
});

test("a model that can't be used says why and offers nothing else", async () => {
  const broken = aModel({ status: "unusable", problem: "The file was cut at 12 MB." });
  server.use(http.get("*/v1/models", () => HttpResponse.json({ object: "list", data: [broken] })));
  renderInApp(<Page />);
  expect(await screen.findByText("The file was cut at 12 MB.")).toBeVisible();
  expect(screen.queryByRole("button", { name: /^Load/ })).not.toBeInTheDocument();
});

test("the search narrows the list, and says when nothing is left", async () => {
  const { user } = renderInApp(<Page />);
  const search = await screen.findByRole("searchbox", { name: "Search models" });
  await screen.findByText(SMOLLM);
  await user.type(search, "smollm q4");
  expect(screen.getByText(SMOLLM)).toBeVisible();
  await user.type(search, " nothing");
  expect(screen.getByText(/Nothing here is called/)).toBeVisible();
});

test("a machine without models says what to do", async () => {
  server.use(http.get("*/v1/models", () => HttpResponse.json({ object: "list", data: [] })));
  renderInApp(<Page />);
  expect(await screen.findByText("No models yet")).toBeVisible();
  expect(screen.getByRole("link", { name: "Add a model folder" })).toBeVisible();
});

test("what sleeps is said in the list", async () => {
  const other = aModel({ id: "other", display_name: "Other", status: "on_disk" });
  server.use(
    http.get("*/v1/status", () => HttpResponse.json(anEmptyStatus({ asleep: [SMOLLM] }))),
    http.get("*/v1/models", () => HttpResponse.json({ object: "list", data: [onDisk, other] })),
  );
  renderInApp(<Page />);
  const badge = await screen.findByText("Asleep");
  expect(within(badge.closest("li") as HTMLElement).getByText(SMOLLM)).toBeVisible();
});

import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { aLoadedModel, anEmptyStatus, aStatus, SMOLLM } from "@/test/fixtures";
import { renderInApp } from "@/test/render";
import { eventStream, server, streamOf } from "@/test/server";
import { useActiveModel, useFollowLoads, useLoadModel, useLoadState } from "./models";

function Loader() {
  useFollowLoads();
  const load = useLoadModel();
  const loading = useLoadState();
  const active = useActiveModel();
  return (
    <>
      <button type="button" onClick={() => load(SMOLLM)}>
        Load
      </button>
      <output>
        {loading.state}
        {loading.state === "loading" && loading.progress && `, ${loading.progress.phase}`}
        {active && `, ${active.model} answers`}
      </output>
    </>
  );
}

const progress = (step: object) =>
  eventStream(streamOf([`data: ${JSON.stringify({ bytes: 0, total_bytes: 0, ...step })}\n\n`]));

test("a load that fails at the server's start is told to the page that opens later", async () => {
  let isLoading = true;
  server.use(
    http.get("*/v1/status", () =>
      HttpResponse.json({ ...anEmptyStatus(), loading: isLoading ? [SMOLLM] : [] }),
    ),
    http.get("*/v1/load/progress", () => {
      isLoading = false;
      const error = { message: "It was killed.", code: "engine_killed" };
      return progress({ model: SMOLLM, phase: "failed", error });
    }),
  );
  renderInApp(<Loader />);
  await waitFor(() => expect(screen.getByRole("status")).toHaveTextContent("failed"));
});

test("the end of an earlier load is not taken for the one under way, nor shown after it", async () => {
  let finish = () => {};
  let isFollowed = false;
  let isLoaded = false;
  server.use(
    http.get("*/v1/status", () => HttpResponse.json(isLoaded ? aStatus() : anEmptyStatus())),
    http.get("*/v1/load/progress", () => {
      isFollowed = true;
      const error = { message: "It was killed.", code: "engine_killed" };
      return progress({ model: "an/earlier:one", phase: "failed", error });
    }),
    http.post(
      "*/v1/load",
      () =>
        new Promise<Response>((resolve) => {
          finish = () => {
            isLoaded = true;
            resolve(HttpResponse.json({ status: "loaded", ...aLoadedModel() }));
          };
        }),
    ),
  );
  const { user } = renderInApp(<Loader />);
  await user.click(await screen.findByRole("button", { name: "Load" }));
  await waitFor(() => expect(isFollowed).toBe(true));
  expect(screen.getByRole("status")).toHaveTextContent(/^loading$/);
  finish();
  await waitFor(() =>
    expect(screen.getByRole("status")).toHaveTextContent(`idle, ${SMOLLM} answers`),
  );
});

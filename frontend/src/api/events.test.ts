import { http } from "msw";
import { expect, test } from "vitest";
import { eventStream, failure, server, streamOf } from "@/test/server";
import { followEvents } from "./events";

test("a stream that ends is opened again, from the last event on", async () => {
  const asked: (string | null)[] = [];
  server.use(
    http.get("*/v1/load/progress", ({ request }) => {
      asked.push(request.headers.get("last-event-id"));
      return eventStream(streamOf([`id: ${asked.length}\ndata: part ${asked.length}\n\n`]));
    }),
  );
  const controller = new AbortController();
  const heard: string[] = [];
  await followEvents("/v1/load/progress", {
    signal: controller.signal,
    onEvent: ({ data }) => {
      heard.push(data);
      if (heard.length === 2) controller.abort();
    },
  });
  expect(heard).toEqual(["part 1", "part 2"]);
  expect(asked).toEqual([null, "1"]);
});

test("a refusal is told, and following goes on until it is ended", async () => {
  server.use(
    http.get("*/v1/load/progress", () =>
      failure(503, { message: "Shutting down.", code: "shutting_down" }),
    ),
  );
  const controller = new AbortController();
  const lost: string[] = [];
  await followEvents("/v1/load/progress", {
    signal: controller.signal,
    onEvent: () => expect.unreachable(),
    onLost: (error) => {
      lost.push(error.message);
      controller.abort();
    },
  });
  expect(lost).toEqual(["Shutting down."]);
});

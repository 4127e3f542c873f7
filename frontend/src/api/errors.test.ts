import { expect, test } from "vitest";
import { errorOfResponse, parseError, toApiError } from "./errors";

test("the OpenAI-shaped body keeps its message, code, evidence and next step", () => {
  const error = parseError({
    error: {
      message: "It ended.",
      code: "engine_crashed",
      evidence: "signal 9",
      next_step: "Retry.",
    },
  });
  expect(error).toMatchObject({
    message: "It ended.",
    code: "engine_crashed",
    evidence: "signal 9",
    nextStep: "Retry.",
  });
});

test("a body without a message is no error", () => {
  expect(parseError({ error: {} })).toBeNull();
  expect(parseError("text")).toBeNull();
});

test("a refusal that isn't JSON still says its status and what came", async () => {
  const error = await errorOfResponse(new Response("<h1>Bad gateway</h1>", { status: 502 }));
  expect(error).toMatchObject({ status: 502, code: "unreadable_reply" });
  expect(error.evidence).toContain("Bad gateway");
});

test("a failed fetch says that the server can't be reached", () => {
  expect(toApiError(new TypeError("Failed to fetch"))).toMatchObject({
    code: "server_unreachable",
    nextStep: "Check that it is still running, then try again.",
  });
});

test("a fault of the page's own is not taken for an unreachable server", () => {
  expect(toApiError(new RangeError("out of range")).code).toBe("unknown_error");
});

import { beforeEach, expect, test } from "vitest";
import { anEmptyStatus, aStatus, SMOLLM } from "@/test/fixtures";
import { forgetLastActive, noteActive, useLastActive } from "./last-active";

const last = () => useLastActive.getState().loaded?.model;

beforeEach(() => noteActive(aStatus()));

test("a model that is gone is remembered as the one that answered", () => {
  noteActive(anEmptyStatus());
  expect(last()).toBe(SMOLLM);
});

test("only the model that the person unloaded is forgotten", () => {
  forgetLastActive("another");
  expect(last()).toBe(SMOLLM);
  forgetLastActive(SMOLLM);
  expect(last()).toBeUndefined();
});

test("it is still known after the page was loaded anew", async () => {
  noteActive(anEmptyStatus());
  const kept = JSON.parse(sessionStorage.getItem("eloquio.last-active") ?? "null");
  expect(kept.state.loaded).toMatchObject({ model: SMOLLM, chat_template: null });
});

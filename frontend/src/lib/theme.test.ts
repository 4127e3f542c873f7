import { expect, test } from "vitest";
import { useTheme } from "./theme";

const shown = () => document.documentElement.dataset.theme;

test("a chosen theme is shown at once and kept for the next visit", () => {
  useTheme.getState().choose("dark");
  expect(shown()).toBe("dark");
  expect(localStorage.getItem("eloquio-theme")).toBe("dark");
});

test("following the system forgets the choice", () => {
  useTheme.getState().choose("dark");
  useTheme.getState().choose("system");
  expect(shown()).toBe("light");
  expect(localStorage.getItem("eloquio-theme")).toBeNull();
});

import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { useTheme } from "@/lib/theme";
import { renderInApp } from "@/test/render";
import { ThemeToggle } from "./theme-toggle";

test("toggles between light and dark, and names what it would do", async () => {
  useTheme.getState().choose("light");
  const { user } = renderInApp(<ThemeToggle />);
  await user.click(await screen.findByRole("button", { name: "Use the dark theme" }));
  expect(document.documentElement.dataset.theme).toBe("dark");
  await user.click(screen.getByRole("button", { name: "Use the light theme" }));
  expect(document.documentElement.dataset.theme).toBe("light");
});

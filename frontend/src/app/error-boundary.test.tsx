import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { ErrorBoundary } from "./error-boundary";

let isBroken = false;

function View() {
  if (isBroken) throw new Error("the table has no legs");
  return <p>All is well</p>;
}

test("a view that throws leaves a page that says what happened and can be tried again", async () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  isBroken = true;
  render(
    <ErrorBoundary>
      <View />
    </ErrorBoundary>,
  );
  expect(screen.getByRole("alert")).toHaveTextContent("the table has no legs");
  isBroken = false;
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(screen.getByText("All is well")).toBeVisible();
  vi.restoreAllMocks();
});

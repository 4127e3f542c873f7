import { QueryClientProvider } from "@tanstack/react-query";
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from "@tanstack/react-router";
import { render } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactNode } from "react";
import { createQueryClient } from "@/api/query-client";
import { TooltipProvider } from "@/ui/tooltip";

/** Renders with what the app puts around every view, and hands back the person who uses it. */
export function renderInApp(view: ReactNode) {
  const client = createQueryClient();
  client.setDefaultOptions({ queries: { retry: false } });
  const root = createRootRoute();
  const shown = createRoute({ getParentRoute: () => root, path: "/", component: () => view });
  const other = createRoute({ getParentRoute: () => root, path: "$", component: () => null });
  const router = createRouter({
    routeTree: root.addChildren([shown, other]),
    history: createMemoryHistory({ initialEntries: ["/"] }),
  });
  const user = userEvent.setup();
  render(
    <QueryClientProvider client={client}>
      <TooltipProvider>
        <RouterProvider router={router as never} />
      </TooltipProvider>
    </QueryClientProvider>,
  );
  return { user, client, router };
}

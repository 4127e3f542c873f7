import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from "@tanstack/react-router";
import { ErrorScreen, NotFound, Waiting } from "./screens";
import { Shell } from "./shell";

const root = createRootRoute({ component: Shell });

const routes = [
  createRoute({
    getParentRoute: () => root,
    path: "/",
    component: lazyRouteComponent(() => import("@/features/chat/chat-page"), "ChatPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/models",
    component: lazyRouteComponent(() => import("@/features/models/models-page"), "ModelsPage"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/activity",
    component: lazyRouteComponent(
      () => import("@/features/activity/activity-page"),
      "ActivityPage",
    ),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/settings",
    component: lazyRouteComponent(
      () => import("@/features/settings/settings-page"),
      "SettingsPage",
    ),
  }),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(routes),
  defaultPreload: "intent",
  defaultErrorComponent: ErrorScreen,
  defaultNotFoundComponent: NotFound,
  defaultPendingComponent: Waiting,
  defaultPendingMs: 300,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

import { QueryClient } from "@tanstack/react-query";
import type { ApiError } from "./errors";

declare module "@tanstack/react-query" {
  interface Register {
    // What client.ts makes of every failure.
    defaultError: ApiError;
  }
}

export const createQueryClient = () =>
  new QueryClient({
    defaultOptions: {
      // "always": the server is this machine, reachable also when the network is not.
      queries: { staleTime: 10_000, retry: 1, networkMode: "always" },
      mutations: { networkMode: "always" },
    },
  });

export const queryClient = createQueryClient();

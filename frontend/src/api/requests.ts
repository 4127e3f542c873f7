import { useQuery } from "@tanstack/react-query";
import { bodyOf, http } from "./client";

const POLL_MILLISECONDS = 2_000;

/** The last requests that engines answered, the newest first; asked again while it is looked at. */
export function useRequests() {
  return useQuery({
    queryKey: ["requests"],
    queryFn: ({ signal }) => bodyOf(http.GET("/v1/requests", { signal })),
    staleTime: 0,
    refetchInterval: POLL_MILLISECONDS,
    refetchOnWindowFocus: "always",
  });
}

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf, http, type Schemas } from "@/api/client";
import { refreshModels } from "@/api/models";

type Preferences = Schemas["PageSettings"];

const KEY = ["settings"];

export function usePreferences() {
  return useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => bodyOf(http.GET("/v1/settings", { signal })),
  });
}

/** Writes all the settings; other folders mean other models, so those are asked for anew. */
export function useSavePreferences() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Preferences) => bodyOf(http.PUT("/v1/settings", { body })),
    onSuccess: (saved) => client.setQueryData(KEY, saved),
    onSettled: () => refreshModels(client),
  });
}

import {
  type QueryClient,
  useMutation,
  useMutationState,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect } from "react";
import { create } from "zustand";
import { bodyOf, http, type Schemas } from "./client";
import { type ApiError, parseError, toApiError } from "./errors";
import { followEvents } from "./events";

export type LoadRequest = Schemas["LoadRequest"];
export type LoadOptions = Omit<Partial<LoadRequest>, "model_path">;

const LOAD = ["load"];
const keys = { status: ["status"], models: ["models"], system: ["system"] };
const BUSY_POLL_MILLISECONDS = 1_500;
const IDLE_POLL_MILLISECONDS = 5_000;

function isMoving(status: Schemas["StatusReply"]): boolean {
  return (
    status.loading.length > 0 ||
    status.engines.some(
      ({ busy, status: { state } }) => busy > 0 || state === "starting" || state === "stopping",
    )
  );
}

/** What runs now; asked often only while something moves, and not at all in a hidden tab. */
export function useStatus() {
  return useQuery({
    queryKey: keys.status,
    queryFn: ({ signal }) => bodyOf(http.GET("/v1/status", { signal })),
    staleTime: 1_000,
    refetchOnWindowFocus: "always",
    refetchInterval: ({ state: { data } }) =>
      data && isMoving(data) ? BUSY_POLL_MILLISECONDS : IDLE_POLL_MILLISECONDS,
  });
}

/** The loaded model that an answer would come from; null when none is, or none is known yet. */
export function useActiveModel(): Schemas["LoadedModel"] | null {
  const { data } = useStatus();
  if (!data?.active_model) return null;
  return data.engines.find(({ model }) => model === data.active_model)?.loaded ?? null;
}

/** What is on disk, with what is loaded first. */
export function useModels() {
  return useQuery({
    queryKey: keys.models,
    queryFn: ({ signal }) => bodyOf(http.GET("/v1/models", { signal })),
    refetchOnWindowFocus: "always",
  });
}

/** The machine: memory, devices, builds of the engine. */
export function useSystem() {
  return useQuery({
    queryKey: keys.system,
    queryFn: ({ signal }) => bodyOf(http.GET("/v1/system", { signal })),
    staleTime: 5_000,
  });
}

/** To be called after anything that changes what is loaded. */
export async function refreshModels(client: QueryClient): Promise<void> {
  await Promise.all(Object.values(keys).map((queryKey) => client.invalidateQueries({ queryKey })));
}

/** `load(model, options)` starts a load; how it goes is told by `useLoadState`. */
export function useLoadModel() {
  const client = useQueryClient();
  const { mutate } = useMutation({
    mutationKey: LOAD,
    mutationFn: (body: LoadRequest) => bodyOf(http.POST("/v1/load", { body })),
    gcTime: Number.POSITIVE_INFINITY,
    onMutate: () => {
      useProgress.setState({ progress: null });
      // The status names what is loading as soon as the server has taken the request.
      void refreshModels(client);
    },
    onSettled: () => {
      useProgress.setState({ progress: null });
      return refreshModels(client);
    },
  });
  return (model: string, options: LoadOptions = {}) => {
    forgetLoads(client);
    mutate(loadRequest(model, options));
  };
}

const DEFAULTS = {
  trust_remote_code: false,
  max_seq_length: 0,
  engine: "auto",
  keep_others: false,
  force: false,
  load_in_4bit: true,
  is_lora: false,
  pin: false,
} as const satisfies LoadOptions;

/** A load request as the API wants it: the model, and every option at its default. */
export function loadRequest(model: string, options: LoadOptions = {}): LoadRequest {
  return { ...DEFAULTS, ...options, model_path: model };
}

function forgetLoads(client: QueryClient): void {
  const cache = client.getMutationCache();
  for (const mutation of cache.findAll({ mutationKey: LOAD }))
    if (mutation.state.status !== "pending") cache.remove(mutation);
  useProgress.setState({ progress: null });
}

/** Unloads, or cancels the load of, one model; `force` ends the answers under way. */
export function useUnloadModel() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ model, force = false }: { model: string; force?: boolean }) =>
      bodyOf(http.POST("/v1/unload", { body: { model_path: model, force } })),
    onSettled: () => refreshModels(client),
  });
}

const useProgress = create<{ progress: Schemas["LoadProgress"] | null }>(() => ({
  progress: null,
}));

/** The latest step of the load under way, or of the last one; null before any. */
function useLoadProgress(): Schemas["LoadProgress"] | null {
  return useProgress(({ progress }) => progress);
}

export type LoadState =
  | { state: "idle" }
  | { state: "loading"; model: string; progress: Schemas["LoadProgress"] | null }
  | { state: "failed"; model: string; request: LoadRequest; error: ApiError };

/** How loading goes, whoever asked for it: this page, another one, a script, or the start-up. */
export function useLoadState(): LoadState {
  const { data: status } = useStatus();
  const progress = useLoadProgress();
  const last = useMutationState({
    filters: { mutationKey: LOAD },
    select: ({ state }) => ({
      status: state.status,
      request: state.variables as LoadRequest,
      error: state.error,
    }),
  }).at(-1);
  const own = last?.status === "pending" ? last.request.model_path : undefined;
  const model = own ?? status?.loading[0];
  if (model !== undefined) {
    // The server's first word may still be of the load before.
    const isOfThis = progress?.model === model && progress.phase !== "failed";
    return { state: "loading", model, progress: isOfThis ? progress : null };
  }
  if (last?.status === "error") {
    const error = toApiError(last.error);
    if (error.code === "load_cancelled") return { state: "idle" };
    return { state: "failed", model: last.request.model_path, request: last.request, error };
  }
  if (progress?.phase === "failed" && progress.model !== null) {
    const error = parseError(progress.error);
    if (error && error.code !== "load_cancelled")
      return {
        state: "failed",
        model: progress.model,
        request: loadRequest(progress.model),
        error,
      };
  }
  return { state: "idle" };
}

/** Takes the report of a failed load off the page. */
export function useDismissFailure() {
  const client = useQueryClient();
  return () => forgetLoads(client);
}

/**
 * Follows the server's report of a load, for as long as there is one. Called once, by the shell:
 * a browser opens only six connections to one server, so none is held while nothing loads.
 */
export function useFollowLoads(): void {
  const client = useQueryClient();
  const isLoading = useLoadState().state === "loading";
  useEffect(() => {
    if (!isLoading) return;
    const controller = new AbortController();
    void followEvents("/v1/load/progress", {
      signal: controller.signal,
      onEvent: ({ data }) => {
        const progress = JSON.parse(data) as Schemas["LoadProgress"];
        useProgress.setState({ progress });
        if (progress.phase === "ready" || progress.phase === "failed") void refreshModels(client);
      },
    });
    return () => controller.abort();
  }, [isLoading, client]);
}

import {
  type QueryClient,
  useMutation,
  useMutationState,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { create } from "zustand";
import { bodyOf, http, type Schemas } from "./client";
import { type ApiError, parseError, toApiError } from "./errors";
import { followEvents } from "./events";
import {
  type Keeping,
  type LoadOptions,
  type LoadRequest,
  loadRequest,
  noteKeeping,
  noteRequest,
} from "./load-requests";
import { activeIn, type Reachable, reachableIn, type Status, withServed } from "./reachable";

const LOAD = ["load"];
const UNLOAD = ["unload"];
const keys = { status: ["status"], models: ["models"], system: ["system"] };
const CLOSE_POLL_MILLISECONDS = 400;
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

type StatusOptions = {
  /** Asks several times a second: for as long as the person waits for a change. */
  isClose?: boolean;
};

/** What runs now; asked often only while something moves, and not at all in a hidden tab. */
export function useStatus({ isClose = false }: StatusOptions = {}) {
  return useQuery({
    queryKey: keys.status,
    queryFn: async ({ client, signal }) => {
      const status = await bodyOf(http.GET("/v1/status", { signal }));
      return withServed(status, client.getQueryData<Status>(keys.status)?.served ?? {});
    },
    staleTime: 1_000,
    refetchOnWindowFocus: "always",
    refetchInterval: ({ state: { data } }) => {
      if (isClose) return CLOSE_POLL_MILLISECONDS;
      return data && isMoving(data) ? BUSY_POLL_MILLISECONDS : IDLE_POLL_MILLISECONDS;
    },
  });
}

/** The loaded model that an answer would come from; null when none is, or none is known yet. */
export function useActiveModel(): Schemas["LoadedModel"] | null {
  const { data } = useStatus();
  return data ? activeIn(data) : null;
}

/**
 * The model that a message would reach: the active one, or the last one that fell asleep or crashed,
 * which a message by its name starts again. Null while another one is loading.
 */
export function useReachableModel(): Reachable | null {
  const { data: status } = useStatus();
  const { data: models } = useModels();
  const loading = useLoadState();
  if (!status) return null;
  const model = loading.state === "loading" ? loading.model : null;
  return reachableIn(status, model, models?.data ?? []);
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

/** To be called when something else than a load may have changed what runs. */
export function refreshStatus(client: QueryClient): Promise<void> {
  return client.invalidateQueries({ queryKey: keys.status });
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
    onSuccess: ({ model }, request) => noteRequest(model, request),
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

function forget(client: QueryClient, mutationKey: string[]): void {
  const cache = client.getMutationCache();
  for (const mutation of cache.findAll({ mutationKey }))
    if (mutation.state.status !== "pending") cache.remove(mutation);
}

function forgetLoads(client: QueryClient): void {
  forget(client, LOAD);
  useProgress.setState({ progress: null });
}

/** Changes how long a loaded model stays. */
export function useKeepModel() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ model, keeping }: { model: string; keeping: Keeping }) =>
      bodyOf(http.POST("/v1/keep", { body: { model_path: model, ...keeping } })),
    onSuccess: ({ model }, { keeping }) => noteKeeping(model, keeping),
    onSettled: () => refreshStatus(client),
  });
}

/** Unloads, or cancels the load of, one model; `force` ends the answers under way. */
export function useUnloadModel() {
  const client = useQueryClient();
  return useMutation({
    mutationKey: UNLOAD,
    mutationFn: ({ model, force = false }: { model: string; force?: boolean }) =>
      bodyOf(http.POST("/v1/unload", { body: { model_path: model, force } })),
    onSettled: () => refreshModels(client),
  });
}

/** The unload that was refused last because the model answers requests, until it is dismissed. */
export function useBusyUnload(): { model: string; error: ApiError; dismiss: () => void } | null {
  const client = useQueryClient();
  const last = useMutationState({
    filters: { mutationKey: UNLOAD },
    select: ({ state }) => ({
      model: (state.variables as { model: string }).model,
      error: state.error,
    }),
  }).at(-1);
  const error = last?.error && toApiError(last.error);
  if (!last || error?.code !== "engine_busy") return null;
  return { model: last.model, error, dismiss: () => forget(client, UNLOAD) };
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
  const { data: status } = useStatus();
  const loaded = status?.loaded.join("\n");
  const before = useRef(loaded);
  useEffect(() => {
    // Idle time-outs, crashes and other clients change what is loaded, too.
    if (before.current !== undefined && before.current !== loaded)
      void client.invalidateQueries({ queryKey: keys.models });
    before.current = loaded;
  }, [loaded, client]);
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

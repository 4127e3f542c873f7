import createFetchClient, { type Middleware } from "openapi-fetch";
import { ApiError, errorOfResponse, toApiError } from "./errors";
import type { components, paths } from "./schema.gen";

export type Schemas = components["schemas"];

// Every failure reaches the callers as an ApiError, so that none of them reads bodies.
const failuresAsErrors: Middleware = {
  async onResponse({ response }) {
    if (!response.ok) throw await errorOfResponse(response);
  },
  onError: ({ error }) => toApiError(error),
};

export const http = createFetchClient<paths>({
  baseUrl: window.location.origin,
  // Looked up at each call: tests replace the global one.
  fetch: (request) => globalThis.fetch(request),
});
http.use(failuresAsErrors);

/** The body of an answer; a failure was thrown as an ApiError before it came to here. */
export async function bodyOf<Body>(answer: Promise<{ data?: Body }>): Promise<Body> {
  const { data } = await answer;
  if (data === undefined)
    throw new ApiError({ message: "The server's answer was empty.", code: "empty_answer" });
  return data;
}

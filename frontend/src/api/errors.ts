/** The OpenAI-shaped body that every route answers a failure with. */
export type ErrorFields = {
  message: string;
  code: string;
  evidence?: string | undefined;
  nextStep?: string | undefined;
};

/** A failure in words for the person: what happened, the engine's last words, what to do. */
export class ApiError extends Error {
  readonly code: string;
  readonly evidence: string | undefined;
  readonly nextStep: string | undefined;
  /** The HTTP status; 0 when the server gave no answer or the failure came inside a stream. */
  readonly status: number;

  constructor(fields: ErrorFields, status = 0) {
    super(fields.message);
    this.name = "ApiError";
    this.code = fields.code;
    this.evidence = fields.evidence;
    this.nextStep = fields.nextStep;
    this.status = status;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Reads `{"error": {…}}`, or the inner object alone; null when it is neither. */
export function parseError(body: unknown, status = 0): ApiError | null {
  if (!isRecord(body)) return null;
  const error = isRecord(body.error) ? body.error : body;
  const message = text(error.message);
  if (message === undefined) return null;
  return new ApiError(
    {
      message,
      code: text(error.code) ?? "unknown_error",
      evidence: text(error.evidence),
      nextStep: text(error.next_step),
    },
    status,
  );
}

/** The error of a reply that wasn't OK, whatever its body turns out to be. */
export async function errorOfResponse(response: Response): Promise<ApiError> {
  const body = await response.text().catch(() => "");
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    parsed = null;
  }
  return (
    parseError(parsed, response.status) ??
    new ApiError(
      {
        message: `The server answered ${response.status} ${response.statusText}`.trim(),
        code: "unreadable_reply",
        evidence: body.slice(0, 500) || undefined,
        nextStep: "Try again; the server's log may say more.",
      },
      response.status,
    )
  );
}

/** Anything thrown, as an ApiError: a failed fetch means that the server can't be reached. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (thrown instanceof TypeError)
    return new ApiError({
      message: "Eloquio can't be reached.",
      code: "server_unreachable",
      evidence: thrown.message,
      nextStep: "Check that it is still running, then try again.",
    });
  return (
    parseError(thrown) ??
    new ApiError({ message: String(thrown), code: "unknown_error", nextStep: "Try again." })
  );
}

export function isAbort(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === "AbortError";
}

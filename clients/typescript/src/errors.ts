/** The stable name of what a server finds wrong. A server may have more than those that are listed here; an answer that is not one of this API, as that of a proxy, has an empty one. */
export type Code =
  | "body-invalid" // 400
  | "unauthenticated" // 401
  | "forbidden" // 403
  | "session-not-found" // 404
  | "tool-not-found" // 404
  | "not-found" // 404: the server has no such call, or is another program
  | "method-not-allowed" // 405
  | "session-conflict" // 409: the id is taken
  | "seq-conflict" // 409: the log is not as long as was expected
  | "fork-unavailable" // 409
  | "target-invalid" // 409: a backup cannot be written there
  | "too-large" // 413
  | "content-type" // 415
  | "event-invalid" // 422: index, reason and path say which and why
  | "id-invalid" // 422
  | "header-invalid" // 422
  | "preset-unknown" // 422
  | "idempotency-key-reused" // 422: another request had the key
  | "surface-range-invalid" // 422
  | "arguments-invalid" // 422: no log takes them; what a tool refuses is a result
  | "internal" // 500
  | "plugin-unavailable" // 503: the plugin of a tool does not answer
  | "store-readonly" // 503: until the server is started again
  | "overloaded" // 503: passes
  | "not-reached" // 504: the log has no such seq
  | "disk-full" // 507
  | ""
  | (string & {});

/** What a problem has beside its status. */
export interface ProblemFields {
  code: Code;
  /** Says to people what is wrong and what to do. */
  detail: string;
  /** The length of the log, for seq-conflict and not-reached. */
  seq?: number;
  /** Which event of the request, for event-invalid. */
  index?: number;
  /** Which of the rules of events, for event-invalid. */
  reason?: string;
  /** The place in the body of the request, or in the event where there is an index. */
  path?: string;
  /** In bytes, for too-large. */
  size?: number;
  limit?: number;
}

/** What a server answers instead of what was asked for. Nothing was changed by the request, unless code is overloaded, internal or empty: then it is not known. */
export class FoldhostError extends Error {
  override readonly name = "FoldhostError";
  /** The call, such as `append to session "s"`. */
  readonly doing: string;
  readonly status: number;
  readonly code: Code;
  readonly detail: string;
  readonly seq: number | undefined;
  readonly index: number | undefined;
  readonly reason: string | undefined;
  readonly path: string | undefined;
  readonly size: number | undefined;
  readonly limit: number | undefined;
  /** How long the server asks to wait, 0 for nothing. */
  readonly retryAfterMs: number;

  constructor(doing: string, status: number, problem: ProblemFields, retryAfterMs = 0) {
    const at = [problem.index === undefined ? "" : `event ${problem.index}`, problem.path ?? ""].filter((s) => s !== "");
    super(`${doing}: ${problem.detail}${at.length > 0 ? ` (${at.join(", ")})` : ""}`);
    this.doing = doing;
    this.status = status;
    this.code = problem.code;
    this.detail = problem.detail;
    this.seq = problem.seq;
    this.index = problem.index;
    this.reason = problem.reason;
    this.path = problem.path;
    this.size = problem.size;
    this.limit = problem.limit;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The answer did not come, or not to its end. Whether the request was done is not known, unless the call only reads. `cause` is what fetch said. */
export class NetworkError extends Error {
  override readonly name = "NetworkError";
  readonly doing: string;

  constructor(doing: string, what: string, cause?: unknown) {
    super(`${doing}: ${what}`, cause === undefined ? undefined : { cause });
    this.doing = doing;
  }
}

/** The answer makes no sense, so that it comes from another program or another version. */
export class AnswerError extends Error {
  override readonly name = "AnswerError";
  readonly doing: string;

  constructor(doing: string, cause: unknown) {
    super(`${doing}: the answer is not understood; is there a foldhost at the URL? ${textOf(cause)}`, { cause });
    this.doing = doing;
  }
}

/** What an error says. fetch hides the reason in the cause. */
export function textOf(err: unknown): string {
  if (!(err instanceof Error)) return String(err);
  return err.cause instanceof Error && err.cause.message !== "" ? `${err.message}: ${err.cause.message}` : err.message;
}

/** Reads the fields of a problem; undefined when it is none. */
export function problemOf(value: unknown): ProblemFields | undefined {
  if (!isObject(value) || typeof value["code"] !== "string") return undefined;
  const problem: ProblemFields = { code: value["code"], detail: typeof value["detail"] === "string" ? value["detail"] : "" };
  for (const name of ["seq", "index", "size", "limit"] as const) {
    if (typeof value[name] === "number") problem[name] = value[name];
  }
  for (const name of ["reason", "path"] as const) {
    if (typeof value[name] === "string") problem[name] = value[name];
  }
  return problem;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

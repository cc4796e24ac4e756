import { Bytes } from "./bytes.js";
import { AnswerError, FoldhostError, NetworkError, problemOf, textOf } from "./errors.js";
import { LineSplitter, TooLongError } from "./lines.js";
import { again, maxWait, passing, unsent } from "./retry.js";

/** Which server to talk to. */
export interface ClientOptions {
  /** Where the server is, such as http://127.0.0.1:7420. A path in it stands before that of every call. */
  url: string | URL;
  /** Goes with every request as a bearer token. */
  token?: string | undefined;
  /** Sends the requests; the fetch of the platform without. Give it no timeout, since streams last. */
  fetch?: typeof fetch | undefined;
  /** How often a request is sent at most when that is safe, the first time included: 6 without, which together last a few seconds; 1 never sends again. */
  tries?: number | undefined;
  /** Bounds what is held of a stream or of a log that is read line by line: one frame, or one event. 64 MiB without, sixteen of the largest events that servers take by themselves. */
  maxFrameBytes?: number | undefined;
  /** Bounds the answers that are read as a whole, which those of all other calls are: 256 MiB without. */
  maxAnswerBytes?: number | undefined;
}

/** One call of the API. */
export interface Request {
  /** What errors say. */
  doing: string;
  method: "GET" | "POST" | "DELETE";
  /** Below the base, its parts escaped. */
  path: string;
  query?: URLSearchParams;
  headers?: Record<string, string>;
  /** JSON. */
  json?: string;
  /** A body of another kind. One that is a stream can be sent only once. */
  body?: BodyInit;
  /** Sending it twice is as good as once. */
  safe: boolean;
  /** A code after which it is not sent again, although it is one of those that pass. */
  final?: string;
}

/** What is read of an answer that is no success: a problem has some hundred bytes. */
const maxProblem = 64 << 10;

/** Sends requests to one server, and again where that is safe. It holds nothing. */
export class Sender {
  readonly base: URL;
  readonly tries: number;
  readonly maxFrameBytes: number;
  readonly maxAnswerBytes: number;
  readonly #fetch: typeof fetch;
  readonly #token: string;

  constructor(options: ClientOptions) {
    const base = parseBase(options.url);
    base.pathname = base.pathname.replace(/\/+$/, "");
    this.base = base;
    this.tries = options.tries ?? 6;
    this.maxFrameBytes = options.maxFrameBytes ?? 64 << 20;
    this.maxAnswerBytes = options.maxAnswerBytes ?? 256 << 20;
    // Called as a method of anything else than the window, the fetch of browsers refuses.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#token = options.token ?? "";
    if (!/^[\x21-\x7e]*$/.test(this.#token)) throw new TypeError("a token has visible ASCII characters only; is there white space at its end?");
  }

  /** Sends a request once, whatever the answer. */
  async raw(r: Request, signal: AbortSignal | undefined): Promise<Response> {
    const at = new URL(this.base);
    at.pathname = (at.pathname === "/" ? "" : at.pathname) + r.path;
    at.search = r.query?.toString() ?? "";
    const headers: Record<string, string> = { ...r.headers };
    if (this.#token !== "") headers["Authorization"] = `Bearer ${this.#token}`;
    // A redirect makes a GET of a POST, whose answer looks like that of the POST; and others would send what is for the server to a stranger.
    const init: RequestInit & { duplex?: "half" } = { method: r.method, headers, cache: "no-store", redirect: "manual", signal: signal ?? null };
    if (r.json !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = r.json;
    } else if (r.body !== undefined) {
      init.body = r.body;
      if (r.body instanceof ReadableStream) init.duplex = "half";
    }
    try {
      return await this.#fetch(at, init);
    } catch (err) {
      throw failed(r.doing, err, signal, this.#foreign() ? `${textOf(err)}; pages are not told why: is the server there, and is ${location.origin} one of its allowedOrigins?` : textOf(err));
    }
  }

  /** Sends a request once. The answer is a success, and its body has to be read or cancelled. */
  async send(r: Request, signal: AbortSignal | undefined): Promise<Response> {
    const res = await this.raw(r, signal);
    if (!res.ok) throw await errorOf(r.doing, res, signal);
    // A page that says that all is well is not to be taken for a stream that has nothing to say, or a log without events.
    const want = r.headers?.["Accept"];
    const kind = res.headers.get("Content-Type") ?? "";
    if (want !== undefined && kind.split(";")[0]?.trim().toLowerCase() !== want) {
      res.body?.cancel().catch(() => undefined);
      throw new AnswerError(r.doing, `it is ${JSON.stringify(kind)} and not ${want}`);
    }
    return res;
  }

  /** send, again when that is safe. */
  open(r: Request, signal: AbortSignal | undefined): Promise<Response> {
    return again(this.#triesOf(r), (err) => mayPass(r, err), signal, () => this.send(r, signal));
  }

  /** Sends a request, again when that is safe, and gives the body of the answer and its status. An empty body is undefined. */
  async call(r: Request, signal: AbortSignal | undefined): Promise<{ status: number; value: unknown }> {
    const { status, text } = await again(this.#triesOf(r), (err) => mayPass(r, err), signal, async () => {
      const res = await this.send(r, signal);
      return { status: res.status, text: await this.text(r.doing, res, signal) };
    });
    if (text === "") return { status, value: undefined };
    try {
      return { status, value: JSON.parse(text) as unknown };
    } catch (err) {
      throw new AnswerError(r.doing, err);
    }
  }

  /** call, for an answer that is an object. It is believed to be of the type. */
  async json<T>(r: Request, signal: AbortSignal | undefined): Promise<T> {
    const { value } = await this.call(r, signal);
    if (typeof value !== "object" || value === null) throw new AnswerError(r.doing, "it is no object");
    return value as T;
  }

  /** The body of an answer as a whole. */
  async text(doing: string, res: Response, signal: AbortSignal | undefined): Promise<string> {
    const reader = readerOf(res);
    const body = new Bytes(this.maxAnswerBytes);
    try {
      for (;;) {
        const part = (await reader.read()).value;
        if (part === undefined) return new TextDecoder().decode(body.take());
        if (!body.add(part)) break;
      }
    } catch (err) {
      throw failed(doing, err, signal, `reading the answer: ${textOf(err)}`);
    } finally {
      reader.cancel().catch(() => undefined);
    }
    throw new AnswerError(doing, `it is longer than the ${this.maxAnswerBytes} bytes of maxAnswerBytes`);
  }

  /** The lines of a body, one after the other. A body that is cut off rejects with a NetworkError, and its last line comes to nobody. */
  async *lines(doing: string, res: Response, signal: AbortSignal | undefined): AsyncGenerator<string, void, undefined> {
    const lines = new LineSplitter(this.maxFrameBytes);
    const reader = readerOf(res);
    try {
      for (;;) {
        let part: Uint8Array | undefined;
        try {
          part = (await reader.read()).value;
        } catch (err) {
          throw failed(doing, err, signal, `reading the answer: ${textOf(err)}`);
        }
        if (part === undefined) break;
        yield* lines.push(part);
      }
      if (lines.open) throw new NetworkError(doing, "reading the answer: it ended within a line");
    } catch (err) {
      throw err instanceof TooLongError ? new AnswerError(doing, err) : err;
    } finally {
      reader.cancel().catch(() => undefined);
    }
  }

  /** The body of an answer, as it comes. Its errors are NetworkErrors, or the signal's reason. */
  stream(doing: string, res: Response, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
    const reader = readerOf(res);
    return new ReadableStream<Uint8Array>(
      {
        pull: async (c) => {
          try {
            const { value } = await reader.read();
            if (value === undefined) c.close();
            else c.enqueue(value);
          } catch (err) {
            c.error(failed(doing, err, signal, `reading the answer: ${textOf(err)}`));
          }
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
  }

  #triesOf(r: Request): number {
    return r.body instanceof ReadableStream ? 1 : this.tries;
  }

  /** Whether this runs in a page that is not the server's own. */
  #foreign(): boolean {
    return typeof location === "object" && typeof location.origin === "string" && location.origin !== this.base.origin;
  }
}

/** The error of a fetch, or of a body: the signal's reason if it was that. */
export function failed(doing: string, err: unknown, signal: AbortSignal | undefined, what: string): unknown {
  return signal?.aborted ? signal.reason : new NetworkError(doing, what, err);
}

/** The reader of a body; one that is missing is empty. */
export function readerOf(res: Response): ReadableStreamDefaultReader<Uint8Array> {
  return (res.body ?? new ReadableStream<Uint8Array>({ start: (c) => c.close() })).getReader();
}

function parseBase(url: string | URL): URL {
  let base: URL | undefined;
  try {
    base = new URL(url);
  } catch {
    // The same as one that is none of a server.
  }
  if (base === undefined || (base.protocol !== "http:" && base.protocol !== "https:") || base.search !== "" || base.hash !== "" || base.username !== "" || base.password !== "") {
    throw new TypeError(`${JSON.stringify(String(url))} is not the URL of a server: it is like http://127.0.0.1:7420`);
  }
  return base;
}

/** Reads an answer that is no success. */
export async function errorOf(doing: string, res: Response, signal: AbortSignal | undefined): Promise<unknown> {
  const seconds = Number(res.headers.get("Retry-After") ?? "");
  const after = seconds > 0 ? Math.min(maxWait, seconds * 1000) : 0;
  const text = await start(res);
  if (signal?.aborted) return signal.reason;
  if (/^application\/problem\+json\s*(;|$)/i.test(res.headers.get("Content-Type") ?? "")) {
    try {
      const problem = problemOf(JSON.parse(text));
      if (problem !== undefined) return new FoldhostError(doing, res.status, problem, after);
    } catch {
      // Not one of foldhost, as below.
    }
  }
  return new FoldhostError(doing, res.status, { code: "", detail: said(res) }, after);
}

/** What an answer is that is not one of foldhost. */
function said(res: Response): string {
  const status = `the answer is ${[res.status, res.statusText].join(" ").trim()}, and not one of foldhost`;
  const to = res.headers.get("Location");
  // Pages are not told more than that it is one.
  if (res.type === "opaqueredirect") return "the answer leads elsewhere, which is not followed: take the URL of the server itself";
  return res.status >= 300 && res.status < 400 && to !== null ? `${status}; it leads to ${JSON.stringify(to)}, which is not followed: take the URL of the server itself` : status;
}

/** The first part of a body; what comes in place of a break is empty. */
async function start(res: Response): Promise<string> {
  const reader = readerOf(res);
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (text.length < maxProblem) {
      const { value } = await reader.read();
      if (value === undefined) break;
      text += decoder.decode(value, { stream: true });
    }
  } catch {
    return "";
  } finally {
    reader.cancel().catch(() => undefined);
  }
  return text;
}

/** Whether a request may be sent again after an error. What is not safe may be where the server cannot have done it. */
function mayPass(r: Request, err: unknown): boolean {
  if (r.final !== undefined && err instanceof FoldhostError && err.code === r.final) return false;
  return passing(err) && (r.safe || unsent(err));
}

/** A GET, which is safe. */
export function get(doing: string, path: string): Request {
  return { doing, method: "GET", path, query: new URLSearchParams(), safe: true };
}

export function post(doing: string, path: string, body?: unknown): Request {
  const r: Request = { doing, method: "POST", path, query: new URLSearchParams(), safe: false };
  if (body !== undefined) r.json = JSON.stringify(body);
  return r;
}

/** Sets parameters of the address: those that are not undefined, lists with commas. */
export function ask(r: Request, parameters: Record<string, string | number | boolean | readonly string[] | undefined>): void {
  r.query ??= new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) r.query.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
}

/** Sends an idempotency key, unless none is wanted. */
export function once(r: Request, key: string | null | undefined): Request {
  if (key !== null) {
    r.headers = { ...r.headers, "Idempotency-Key": key ?? randomKey() };
    r.safe = true;
  }
  return r;
}

// 128 bits. crypto.randomUUID would be shorter here, and pages that come over plain HTTP do not have it.
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** The path of a session, and of what is below it. The id is checked here, since one such as ".." would lead elsewhere. */
export function sessionPath(doing: string, id: string, below: string): string {
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(id) || /^\.+$/.test(id)) {
    throw new TypeError(`${doing}: the id of a session is 1 to 128 characters out of [A-Za-z0-9._-], not only dots`);
  }
  return `/v1/sessions/${id}${below}`;
}

/** A name as a part of a path. */
export function segment(doing: string, name: string): string {
  if (/^\.*$/.test(name)) throw new TypeError(`${doing}: ${JSON.stringify(name)} is no name`);
  return encodeURIComponent(name);
}

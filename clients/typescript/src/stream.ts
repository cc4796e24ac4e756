import { AnswerError, FoldhostError, NetworkError, textOf } from "./errors.js";
import { deletedFrame, placed, readFrame, type Frame } from "./frames.js";
import { TooLongError } from "./lines.js";
import { ask, failed, get, post, readerOf, sessionPath, type Request, type Sender } from "./request.js";
import { passing, pause, waitAfter } from "./retry.js";
import { MessageParser } from "./sse.js";
import type { CallOptions } from "./types.js";

/** The position before the first event. */
export const fromStart = "-1";

/** What to follow, and from where. */
export interface StreamOptions extends CallOptions {
  /**
   * Where to begin: the position of a frame that is known already, fromStart, or a seq, which is behind that event of whichever life of the session there is. Without, it is what comes from now on.
   * Of several sessions it is where those begin that say nothing themselves.
   */
  after?: string | number | undefined;
  /** The types of events to give: all without, none for []. */
  events?: readonly string[] | undefined;
  /** The keys whose values to give: all without, none for []. */
  keys?: readonly string[] | undefined;
  /** Hears why a connection ended and how many milliseconds it is until the next try. */
  onBroken?: ((err: unknown, waitMs: number) => void) | undefined;
  /** How often in a row the connection may fail before the stream ends with the error. Without, as often as calls are tried until there was one, and no end after that. */
  tries?: number | undefined;
}

/** One session to follow with others. */
export interface Followed {
  id: string;
  /** Where to begin, as in StreamOptions; without, where those say. */
  after?: string | number | undefined;
}

/** How long a server may take until its first frame, in ms. It waits for nothing before it. */
const connectTime = 10_000;

/** The longest heartbeat that is believed, a day in ms: timers of more than 24 days go off at once. */
const maxHeartbeat = 86_400_000;

/** What is followed, and where it stands. */
export interface Course {
  readonly doing: string;
  /** How to go on from there. */
  request(): Request;
  /** Takes from a frame where the stream stands. pass is the frame to give; moved says that it came further, with an event or to a baseline, and over that nothing follows. */
  note(frame: Frame): { pass: Frame | undefined; moved: boolean; over: boolean };
  /** The frame that ends the stream in place of an error of the server, if there is one. */
  last(err: FoldhostError): Frame | undefined;
}

/** Where one session stands. */
class Standing {
  /** The position of what was given last. */
  after: string;
  /** The life that was met last. */
  incarnation = "";

  constructor(after: string | number | undefined) {
    this.after = after === undefined ? "" : String(after);
  }

  /** Takes from a frame of the session where it stands. Positions are those of the session, whichever stream it comes on. */
  note(frame: Frame): boolean {
    switch (frame.type) {
      case "session/subscribed":
        this.incarnation = frame.incarnation;
        if (this.after === "") {
          // "From now on" is from here on, also if this connection ends before it has said anything else.
          this.after = this.#position(frame.lastSeq);
        } else if (!this.after.includes(":")) {
          // A bare seq is of the life that there is now, and not of a later one.
          this.after = `${frame.incarnation}:${this.after}`;
        }
        return false;
      case "session/event":
        this.after = placed(frame, this.#position(frame.event.seq)).position;
        return true;
      case "session/baseline":
        this.after = placed(frame, this.#position(frame.asOfSeq)).position;
        return true;
      default:
        return false;
    }
  }

  #position(seq: number): string {
    return `${this.incarnation}:${seq}`;
  }
}

/** The course of one session. */
export class Single implements Course {
  readonly doing: string;
  readonly #id: string;
  readonly #options: StreamOptions;
  readonly #standing: Standing;

  constructor(id: string, options: StreamOptions) {
    this.doing = `follow session ${JSON.stringify(id)}`;
    this.#id = id;
    this.#options = options;
    this.#standing = new Standing(options.after);
  }

  request(): Request {
    const r = get(this.doing, sessionPath(this.doing, this.#id, "/stream"));
    const { events, keys } = this.#options;
    ask(r, { after: this.#standing.after || undefined, events: events?.length === 0 ? "none" : events, keys });
    return r;
  }

  note(frame: Frame): { pass: Frame | undefined; moved: boolean; over: boolean } {
    return { pass: frame, moved: this.#standing.note(frame), over: frame.type === "session/deleted" };
  }

  last(err: FoldhostError): Frame | undefined {
    return err.code === "session-not-found" && this.#standing.incarnation !== "" ? deletedFrame(this.#id) : undefined;
  }
}

/** The course of several sessions. */
export class Many implements Course {
  readonly doing: string;
  readonly #options: StreamOptions;
  /** Where those stand that are followed still. */
  readonly #standings = new Map<string, Standing>();
  readonly #given: readonly Followed[];

  constructor(sessions: readonly (string | Followed)[], options: StreamOptions) {
    this.doing = `follow ${sessions.length} sessions`;
    this.#options = options;
    this.#given = sessions.map((s) => (typeof s === "string" ? { id: s } : s));
    for (const s of this.#given) this.#standings.set(s.id, new Standing(s.after ?? options.after));
  }

  request(): Request {
    // As they were given, so that the server may say what is wrong with that.
    const sessions = [];
    for (const { id } of this.#given) {
      const standing = this.#standings.get(id);
      if (standing !== undefined) sessions.push(standing.after === "" ? { id } : { id, after: standing.after });
    }
    const { events, keys } = this.#options;
    return post(this.doing, "/v1/stream", { sessions, events, keys });
  }

  note(frame: Frame): { pass: Frame | undefined; moved: boolean; over: boolean } {
    const id = frame.sessionId;
    const standing = this.#standings.get(id);
    // Of one that is followed no more there is nothing to tell.
    if (standing === undefined) return { pass: undefined, moved: false, over: false };
    if (frame.type === "session/deleted" || frame.type === "session/unknown") {
      this.#standings.delete(id);
      const pass = frame.type === "session/unknown" && standing.incarnation !== "" ? deletedFrame(id) : frame;
      return { pass, moved: false, over: this.#standings.size === 0 };
    }
    return { pass: frame, moved: standing.note(frame), over: false };
  }

  last(): undefined {
    return undefined;
  }
}

/** Follows a course until there is nothing to follow any more: makes each connection that ends again, behind what was given last. */
export async function* follow(sender: Sender, course: Course, options: StreamOptions): AsyncGenerator<Frame, void, undefined> {
  const { signal } = options;
  // Whether there was a connection once.
  let met = false;
  for (let failures = 1; ; failures++) {
    let err: unknown;
    let moved = false;
    try {
      for await (const frame of connect(sender, course, signal)) {
        if (frame.type === "session/subscribed") met = true;
        const noted = course.note(frame);
        moved ||= noted.moved;
        if (noted.pass !== undefined) yield noted.pass;
        if (noted.over) return;
      }
      err = new NetworkError(course.doing, "the server ended the stream");
    } catch (e) {
      err = e;
    }
    if (signal?.aborted) throw signal.reason;
    if (moved) failures = 1;
    if (err instanceof FoldhostError) {
      const last = course.last(err);
      if (last !== undefined) {
        yield last;
        return;
      }
    }
    const tries = options.tries ?? (met ? Infinity : sender.tries);
    if (!passing(err) || failures >= tries) throw err;
    const wait = waitAfter(err, failures);
    options.onBroken?.(err, wait);
    await pause(wait, signal);
  }
}

/** The frames of one connection. It is left when the server ends it, and rejects in every other way. */
async function* connect(sender: Sender, course: Course, outer: AbortSignal | undefined): AsyncGenerator<Frame, void, undefined> {
  const r = course.request();
  r.headers = { ...r.headers, Accept: "text/event-stream" };
  const inner = new AbortController();
  const stop = (): void => inner.abort(outer?.reason);
  if (outer?.aborted) throw outer.reason;
  outer?.addEventListener("abort", stop, { once: true });
  const watch = new Watchdog(() => inner.abort(new NetworkError(r.doing, "nothing came any more, not even a heartbeat")));
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    watch.wake();
    reader = readerOf(await sender.send(r, inner.signal));
    const messages = new MessageParser(sender.maxFrameBytes);
    for (;;) {
      watch.wake();
      let part: Uint8Array | undefined;
      try {
        part = (await reader.read()).value;
      } catch (err) {
        throw failed(r.doing, err, inner.signal, textOf(err));
      }
      watch.rest();
      if (part === undefined) return;
      for (const message of messages.push(part)) {
        const frame = frameOf(r.doing, message);
        if (frame === undefined) continue;
        // A server that has said nothing for twice its heartbeat and five seconds is taken for gone.
        if (frame.type === "session/subscribed") watch.limit = 2 * Math.max(0, Math.min(frame.heartbeatMs, maxHeartbeat)) + 5000;
        yield frame;
      }
    }
  } catch (err) {
    throw err instanceof TooLongError ? new AnswerError(r.doing, err) : err;
  } finally {
    watch.rest();
    outer?.removeEventListener("abort", stop);
    reader?.cancel().catch(() => undefined);
    inner.abort();
  }
}

function frameOf(doing: string, message: Parameters<typeof readFrame>[0]): Frame | undefined {
  try {
    return readFrame(message);
  } catch (err) {
    throw new AnswerError(doing, `a frame ${message.kind}: ${textOf(err)}`);
  }
}

/**
 * Ends a connection on which nothing comes. It watches while something is waited for, and not while the reader is busy. It counts quarters of its limit rather than the time, so that a program
 * that is held up, or a machine that sleeps, has a chance to read what came meanwhile before it is judged.
 */
class Watchdog {
  limit = connectTime;
  readonly #bite: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(bite: () => void) {
    this.#bite = bite;
  }

  wake(): void {
    this.rest();
    let left = 4;
    const tick = (): void => {
      if (left-- === 0) this.#bite();
      else this.#timer = setTimeout(tick, this.limit / 4);
    };
    tick();
  }

  rest(): void {
    clearTimeout(this.#timer);
  }
}

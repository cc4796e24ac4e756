import type { Client } from "./client.js";
import { FoldhostError } from "./errors.js";
import type { Frame } from "./frames.js";
import { Store } from "./store.js";
import type { StreamOptions } from "./stream.js";

/** How to keep a store. Events are not asked for, unless events says which. Without tries it is never given up, also where there was no connection yet: a page may be there before its server. */
export interface TrackOptions extends StreamOptions {
  /** The store to keep; a new one without. */
  store?: Store | undefined;
  /** Hears each frame, once the store has taken it. */
  onFrame?: ((frame: Frame) => void) | undefined;
}

export type TrackAllOptions = Omit<TrackOptions, "store">;

/**
 * How it stands with what is tracked: `connecting` until the first values are there; `live`; `broken` while a connection is made again, or the server cannot read the session, with the values that there
 * were; and in the end `deleted`, `unknown` (there is no such session), `failed` (see error) or `closed`.
 */
export type TrackState = "connecting" | "live" | "broken" | "deleted" | "unknown" | "failed" | "closed";

/** A session whose store is kept. */
export interface Tracked {
  readonly id: string;
  readonly store: Store;
  readonly state: TrackState;
  /** Why it failed, or why there is no such session, or why the connection is broken. */
  readonly error: unknown;
  /** Resolves once the first values are there, and rejects if it is over before that. Nobody needs to look. */
  readonly ready: Promise<void>;
  /** Resolves once it is over, in whichever way. */
  readonly done: Promise<void>;
  /** Has f called when the state has changed, or the error of one that is still connecting. The function that it gives ends that. */
  onState(f: (state: TrackState) => void): () => void;
  /** Ends it. The store keeps what it has. Of several sessions on one connection it ends the one. */
  close(): void;
}

/** Sessions whose stores are kept. */
export interface TrackedSet {
  /** By id. */
  readonly sessions: ReadonlyMap<string, Tracked>;
  /** Resolves once all are over. */
  readonly done: Promise<void>;
  /** Ends all. */
  close(): void;
}

class Tracking implements Tracked {
  readonly id: string;
  readonly store: Store;
  readonly ready: Promise<void>;
  readonly done: Promise<void>;
  state: TrackState = "connecting";
  error: unknown;
  readonly #options: TrackOptions;
  readonly #stop: () => void;
  readonly #listeners = new Set<(state: TrackState) => void>();
  #settle!: { ready: () => void; fail: (err: unknown) => void; done: () => void };

  constructor(id: string, options: TrackOptions, stop: () => void) {
    this.id = id;
    this.store = options.store ?? new Store();
    this.#options = options;
    this.#stop = stop;
    let ready!: () => void;
    let fail!: (err: unknown) => void;
    let done!: () => void;
    this.ready = new Promise<void>((resolve, reject) => {
      ready = resolve;
      fail = reject;
    });
    this.ready.catch(() => undefined);
    this.done = new Promise<void>((resolve) => (done = resolve));
    this.#settle = { ready, fail, done };
  }

  get over(): boolean {
    return this.state === "deleted" || this.state === "unknown" || this.state === "failed" || this.state === "closed";
  }

  onState(f: (state: TrackState) => void): () => void {
    const listener = (state: TrackState): void => f(state);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    this.end("closed", new DOMException("it was closed", "AbortError"));
  }

  take(frame: Frame): void {
    if (this.over) return;
    this.store.take(frame, this.#options.keys !== undefined);
    if (frame.type === "session/baseline") {
      this.error = undefined;
      this.#become("live");
      this.#settle.ready();
    }
    if (frame.type === "session/reset" && frame.reason === "damaged") this.broken(new Error(`the server cannot read the log of session ${JSON.stringify(this.id)}, as its own log says`));
    this.#options.onFrame?.(frame);
    if (frame.type === "session/deleted") this.end("deleted", new Error(`session ${JSON.stringify(this.id)} was deleted`));
    if (frame.type === "session/unknown") this.end("unknown", new Error(`there is no session ${JSON.stringify(this.id)}`));
  }

  broken(err: unknown): void {
    if (this.over) return;
    this.error = err;
    if (this.state === "live") this.#become("broken");
    else this.#tell();
  }

  end(state: TrackState, err: unknown): void {
    if (this.over) return;
    this.error = state === "failed" || state === "unknown" ? err : undefined;
    this.#become(state);
    this.#settle.fail(err);
    this.#settle.done();
    this.#stop();
  }

  #become(state: TrackState): void {
    if (state === this.state) return;
    this.state = state;
    this.#tell();
  }

  #tell(): void {
    for (const f of [...this.#listeners]) f(this.state);
  }
}

/** See Client.track. */
export function track(client: Client, id: string, options: TrackOptions): Tracked {
  const aborter = new AbortController();
  const one = new Tracking(id, options, () => aborter.abort());
  void run([one], aborter, options, (o) => client.stream(id, o));
  return one;
}

/** See Client.trackAll. */
export function trackAll(client: Client, ids: readonly string[], options: TrackAllOptions): TrackedSet {
  const aborter = new AbortController();
  const all: Tracking[] = [];
  const stop = (): void => {
    if (all.every((one) => one.over)) aborter.abort();
  };
  for (const id of new Set(ids)) all.push(new Tracking(id, options, stop));
  const done = run(all, aborter, options, (o) => client.follow([...new Set(ids)], o));
  return {
    sessions: new Map(all.map((one) => [one.id, one])),
    done,
    close: () => all.forEach((one) => one.close()),
  };
}

/** Gives frames to whom they are for, until it is over for all. It never rejects. */
async function run(all: Tracking[], aborter: AbortController, options: TrackOptions, begin: (o: StreamOptions) => AsyncIterable<Frame>): Promise<void> {
  const outer = options.signal;
  const stop = (): void => all.forEach((one) => one.close());
  outer?.addEventListener("abort", stop, { once: true });
  try {
    if (outer?.aborted) stop();
    const byId = new Map(all.map((one) => [one.id, one]));
    const frames = begin({
      after: options.after,
      events: options.events ?? [],
      keys: options.keys,
      tries: options.tries ?? Infinity,
      signal: aborter.signal,
      onBroken: (err, wait) => {
        all.forEach((one) => one.broken(err));
        options.onBroken?.(err, wait);
      },
    });
    for await (const frame of frames) byId.get(frame.sessionId)?.take(frame);
  } catch (err) {
    const unknown = err instanceof FoldhostError && err.code === "session-not-found";
    all.forEach((one) => one.end(unknown ? "unknown" : "failed", err));
  } finally {
    outer?.removeEventListener("abort", stop);
  }
}

// What tests share: dice, servers that say what a test wants, and time that passes at once.
import { mock } from "node:test";

import { Client, type ClientOptions } from "../src/index.js";

/** Dice from 0 to 1 that fall the same way for the same seed. */
export function dice(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Runs a check with seeds of its own, and says which one it was that failed. */
export function random(rounds: number, check: (roll: () => number) => void): void {
  const first = Math.floor(Math.random() * 2 ** 31);
  for (let i = 0; i < rounds; i++) {
    try {
      check(dice(first + i));
    } catch (err) {
      throw new Error(`with the seed ${first + i}`, { cause: err });
    }
  }
}

export const encode = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

/** What a fetch of a test was asked. */
export interface Asked {
  url: URL;
  method: string;
  headers: Headers;
  body: string;
  signal: AbortSignal | undefined;
}

/** A client whose requests go to a function; those that it throws for break. */
export function faked(answer: (asked: Asked, n: number) => Response | Promise<Response>, options: Partial<ClientOptions> = {}): { client: Client; asked: Asked[] } {
  const asked: Asked[] = [];
  const fake = async (input: unknown, init: RequestInit = {}): Promise<Response> => {
    const one: Asked = {
      url: new URL(String(input)),
      method: init.method ?? "GET",
      headers: new Headers(init.headers),
      body: typeof init.body === "string" ? init.body : "",
      signal: init.signal ?? undefined,
    };
    init.signal?.throwIfAborted();
    asked.push(one);
    const res = await answer(one, asked.length - 1);
    // What a test says nothing of is what was asked for.
    const accept = one.headers.get("Accept");
    if (accept !== null && !res.headers.has("Content-Type")) res.headers.set("Content-Type", accept);
    return res;
  };
  return { client: new Client({ url: "http://x", ...options, fetch: fake as typeof fetch }), asked };
}

export function problem(status: number, fields: Record<string, unknown>, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify({ status, ...fields }), { status, headers: { "Content-Type": "application/problem+json", ...headers } });
}

export const json = (value: unknown, status = 200): Response => new Response(JSON.stringify(value), { status, headers: { "Content-Type": "application/json" } });

/** What fetch in Node rejects with when there is nobody. */
export function refused(): Error {
  return new TypeError("fetch failed", { cause: Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }) });
}

/** What fetch rejects with when a connection breaks, and with what a body does. */
export function broken(): Error {
  return new TypeError("terminated", { cause: new Error("other side closed") });
}

/** A body that says something and then ends, breaks, or is silent until its request ends. */
export function said(text: string, then: "ends" | "breaks" | "is silent", signal?: AbortSignal): Response {
  const body = new ReadableStream<Uint8Array>({
    start(c) {
      if (text !== "") c.enqueue(encode(text));
      if (then === "ends") c.close();
      if (then === "is silent") signal?.addEventListener("abort", () => c.error(signal.reason));
    },
    pull(c) {
      // Not in start, which would void what was said.
      if (then === "breaks") c.error(broken());
    },
  });
  return new Response(body);
}

/** A frame as servers write it. */
export function frame(kind: string, data: Record<string, unknown>, id?: string): string {
  return `event: ${kind}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify({ type: kind, sessionId: "s", ...data })}\n\n`;
}

export const subscribed = (data: Record<string, unknown> = {}): string =>
  frame("session/subscribed", { lastSeq: 4, incarnation: "I", epoch: "e.1", heartbeatMs: 1000, ...data });
export const event = (seq: number, data: Record<string, unknown> = {}): string =>
  frame("session/event", { event: { type: "x", seq, time: 0, data: null }, ...data }, `I:${seq}`);
export const baseline = (asOfSeq: number, values: Record<string, unknown> = {}, data: Record<string, unknown> = {}): string =>
  frame("session/baseline", { epoch: "e.1", gen: 1, asOfSeq, values, revs: Object.fromEntries(Object.keys(values).map((k) => [k, 1])), ...data }, `I:${asOfSeq}`);

/** Lets everything run that needs no time. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/** Runs something in a time that passes at once whenever everybody waits. It gives what came of it, and how many ms it took. */
export async function inNoTime<T>(run: (now: () => number) => Promise<T>): Promise<{ value?: T; error?: unknown; ms: number }> {
  let ms = 0;
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    let out: { value?: T; error?: unknown } | undefined;
    run(() => ms).then(
      (value) => (out = { value }),
      (error: unknown) => (out = { error }),
    );
    for (;;) {
      await settle();
      if (out !== undefined) return { ...out, ms };
      if (ms > 3_600_000) throw new Error("it waits for something that does not come with time");
      mock.timers.tick(10);
      ms += 10;
    }
  } finally {
    mock.timers.reset();
  }
}

/** All that comes, and how it ends. */
export async function all<T>(from: AsyncIterable<T>): Promise<{ list: T[]; error?: unknown }> {
  const list: T[] = [];
  try {
    for await (const one of from) list.push(one);
  } catch (error) {
    return { list, error };
  }
  return { list };
}

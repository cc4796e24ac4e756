import { FoldhostError, NetworkError } from "./errors.js";

// Between two tries, in ms: a start of a server takes a few hundred, and nobody wants to hear of its end later than some seconds after it. maxWait also bounds what a server may ask for.
const firstWait = 100;
export const maxWait = 5000;

/**
 * How long to wait after so many failures in a row, from 1 on: twice as long each time, and somewhere between half of that and all of it, so that many clients of one server do not come back
 * at once. dice is from 0 to 1.
 */
export function backoff(failures: number, dice: number): number {
  const wait = Math.min(maxWait, firstWait * 2 ** (failures - 1));
  return wait / 2 + (dice * wait) / 2;
}

/** Whether an error may be gone the next time, whatever is asked for. */
export function passing(err: unknown): boolean {
  if (err instanceof FoldhostError) {
    switch (err.status) {
      case 429:
      case 502:
        return true;
      case 503:
        return err.code !== "store-readonly";
      case 504:
        return err.code === "";
      default:
        return false;
    }
  }
  return err instanceof NetworkError;
}

// What Node says when there was no connection. Browsers do not tell.
const unsentCodes = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

/** Whether the server cannot have seen the request, since there was no connection. */
export function unsent(err: unknown): boolean {
  if (!(err instanceof NetworkError)) return false;
  let cause: unknown = err.cause;
  for (let depth = 0; depth < 4 && cause instanceof Error; depth++) {
    // A name with several addresses fails with the errors of all.
    const all: unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
    if (all.length > 0 && all.every((e) => e instanceof Error && unsentCodes.has(String((e as { code?: unknown }).code)))) return true;
    cause = cause.cause;
  }
  return false;
}

/** How long to wait after an error that passes. */
export function waitAfter(err: unknown, failures: number): number {
  return Math.max(backoff(failures, Math.random()), err instanceof FoldhostError ? err.retryAfterMs : 0);
}

/** Waits. It rejects with the reason of the signal. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Runs attempt until it succeeds, fails with what mayPass says is for good, or was run as often as is allowed. */
export async function again<T>(tries: number, mayPass: (err: unknown) => boolean, signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await attempt();
    } catch (err) {
      if (n >= tries || signal?.aborted || !mayPass(err)) throw err;
      await pause(waitAfter(err, n), signal);
    }
  }
}

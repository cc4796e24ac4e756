// Chromium without a window, driven over its pipe, for tests.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Readable, Writable } from "node:stream";

/** Where Chromium is; undefined where there is none. */
export function findChromium(): string | undefined {
  const dirs = (process.env["PATH"] ?? "").split(delimiter);
  for (const file of [process.env["CHROMIUM"], ...["chromium", "chromium-browser", "google-chrome"].flatMap((name) => dirs.map((dir) => join(dir, name)))]) {
    try {
      if (file) accessSync(file, constants.X_OK);
      if (file) return file;
    } catch {
      // Not there.
    }
  }
  return undefined;
}

interface Answer {
  id?: number;
  sessionId?: string;
  method?: string;
  params?: { exceptionDetails?: ExceptionDetails };
  result?: unknown;
  error?: { message: string };
}

interface ExceptionDetails {
  text: string;
  exception?: { description?: string; value?: unknown };
}

const textOf = (e: ExceptionDetails): string => e.exception?.description ?? String(e.exception?.value ?? e.text);

export class Chromium {
  readonly #process: ChildProcess;
  readonly #dir: string;
  readonly #waiting = new Map<number, { resolve: (result: unknown) => void; reject: (err: Error) => void }>();
  readonly #thrown = new Map<string, string[]>();
  #next = 1;

  private constructor(file: string, dir: string) {
    const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
      "--disable-sync", "--remote-debugging-pipe", `--user-data-dir=${dir}`, "about:blank"];
    this.#dir = dir;
    // A group of its own, so that all of its processes can be ended by its id.
    this.#process = spawn(file, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], detached: true });
    let rest = "";
    (this.#process.stdio[4] as Readable).setEncoding("utf8").on("data", (text: string) => {
      const messages = (rest + text).split("\0");
      rest = messages.pop() ?? "";
      for (const m of messages) this.#take(JSON.parse(m) as Answer);
    });
    (this.#process.stdio[3] as Writable).on("error", () => undefined);
    this.#process.on("exit", () => {
      for (const w of this.#waiting.values()) w.reject(new Error("Chromium ended"));
      this.#waiting.clear();
    });
  }

  static async start(file: string): Promise<Chromium> {
    return new Chromium(file, await mkdtemp(join(tmpdir(), "foldhost-chromium-")));
  }

  /** Opens a page of a URL and waits until it is loaded. */
  async open(url: string): Promise<Page> {
    const { targetId } = await this.send<{ targetId: string }>("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send<{ sessionId: string }>("Target.attachToTarget", { targetId, flatten: true });
    await this.send("Runtime.enable", {}, sessionId);
    const { errorText } = await this.send<{ errorText?: string }>("Page.navigate", { url }, sessionId);
    if (errorText !== undefined) throw new Error(`${url}: ${errorText}`);
    const page = new Page(this, targetId, sessionId);
    await page.run(async () => {
      if (document.readyState !== "complete") await new Promise((resolve) => addEventListener("load", resolve));
    });
    return page;
  }

  async close(): Promise<void> {
    const p = this.#process;
    if (p.exitCode === null && p.signalCode === null && p.pid !== undefined) {
      const ended = once(p, "exit");
      process.kill(-p.pid, "SIGKILL");
      await ended;
    }
    await rm(this.#dir, { recursive: true, force: true, maxRetries: 10 });
  }

  /** What was thrown in a page and caught by nobody. */
  thrown(sessionId: string): string[] {
    return this.#thrown.get(sessionId) ?? [];
  }

  send<T>(method: string, params: object, sessionId?: string): Promise<T> {
    const id = this.#next++;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (result: unknown) => void, reject });
      (this.#process.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  #take(a: Answer): void {
    if (a.id !== undefined) {
      const waiting = this.#waiting.get(a.id);
      this.#waiting.delete(a.id);
      if (a.error) waiting?.reject(new Error(a.error.message));
      else waiting?.resolve(a.result);
    } else if (a.method === "Runtime.exceptionThrown" && a.params?.exceptionDetails) {
      const list = this.#thrown.get(a.sessionId ?? "") ?? [];
      this.#thrown.set(a.sessionId ?? "", [...list, textOf(a.params.exceptionDetails)]);
    }
  }
}

export class Page {
  readonly #chromium: Chromium;
  readonly #target: string;
  readonly #session: string;

  constructor(chromium: Chromium, target: string, session: string) {
    this.#chromium = chromium;
    this.#target = target;
    this.#session = session;
  }

  /** Runs a function in the page and gives what it gives, as JSON. It sees its arguments, and nothing around it. */
  async run<A extends unknown[], T>(f: (...args: A) => T | Promise<T>, ...args: A): Promise<T> {
    const expression = `(${f.toString()})(...${JSON.stringify(args)})`;
    const { result, exceptionDetails } = await this.#chromium.send<{ result: { value: T }; exceptionDetails?: ExceptionDetails }>(
      "Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true }, this.#session);
    if (exceptionDetails) throw new Error(`in the page: ${textOf(exceptionDetails)}`);
    return result.value;
  }

  /** What was thrown in it and caught by nobody. */
  get thrown(): string[] {
    return this.#chromium.thrown(this.#session);
  }

  /** A picture, as PNG. */
  async picture(): Promise<Buffer> {
    const { data } = await this.#chromium.send<{ data: string }>("Page.captureScreenshot", { format: "png" }, this.#session);
    return Buffer.from(data, "base64");
  }

  async close(): Promise<void> {
    await this.#chromium.send("Target.closeTarget", { targetId: this.#target });
  }
}

// A real host in a process of its own, for tests.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";

import { Client } from "../src/index.js";

/** The root of the repository. */
export const root = fileURLToPath(new URL("../../../../", import.meta.url));

const binary = join(root, "bin", "foldhost");

/** A host with the plugins that ship. */
export class Host {
  url = "";
  readonly #args: string[];
  #process: ChildProcess | undefined;

  private constructor(args: string[]) {
    this.#args = args;
  }

  /** Starts a host in a data directory of its own, with the preset "titles"; both end with the test. With a token everybody needs it, and it may do everything. */
  static async start(t: TestContext, options: { allowedOrigins?: string[]; token?: string } = {}): Promise<Host> {
    const dir = await mkdtemp(join(tmpdir(), "foldhost-client-"));
    const config = join(dir, "foldhost.yaml");
    const plugins = { todo: { config: { allowParallelInProgress: true } }, imagelimits: {}, title: {}, tokenusage: {} };
    // JSON is YAML.
    await writeFile(config, JSON.stringify({ pluginDir: join(root, "bin", "plugins"), plugins, presets: { titles: { title: {} } }, allowedOrigins: options.allowedOrigins ?? [] }));
    const args = ["serve", "--config", config, "--data", join(dir, "data")];
    if (options.token !== undefined) {
      const file = join(dir, "tokens");
      await writeFile(file, `${options.token} read,append,admin\n`);
      await chmod(file, 0o600);
      args.push("--token-file", file);
    }
    const host = new Host(args);
    t.after(async () => {
      await host.kill();
      await rm(dir, { recursive: true, force: true });
    });
    await host.#run("127.0.0.1:0");
    await host.ready();
    return host;
  }

  /** Waits until every plugin has started. Until then tools and values may not be there. */
  async ready(): Promise<void> {
    const client = this.client();
    while (!(await client.ready()).ready) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  /** Starts it again where it was, once it was killed. */
  async again(): Promise<void> {
    await this.#run(new URL(this.url).host);
  }

  /** Ends it as nothing else does. */
  async kill(): Promise<void> {
    const p = this.#process;
    this.#process = undefined;
    if (p === undefined || p.exitCode !== null || p.signalCode !== null) return;
    const ended = once(p, "exit");
    p.kill("SIGKILL");
    await ended;
  }

  client(token?: string): Client {
    return new Client({ url: this.url, token });
  }

  async #run(listen: string): Promise<void> {
    const p = spawn(binary, [...this.#args, "--listen", listen], { stdio: ["ignore", "pipe", "pipe"] });
    this.#process = p;
    let said = "";
    p.stderr?.on("data", (text: Buffer) => (said += text.toString()));
    for await (const line of createInterface({ input: p.stdout as NodeJS.ReadableStream })) {
      const url = /^serving (\S+?),?(\s|$)/.exec(line)?.[1];
      if (url === undefined) break;
      this.url = url;
      p.stdout?.resume();
      return;
    }
    await this.kill();
    throw new Error(`the host does not serve: ${said}`);
  }
}

/** A network before a host, every connection of which ends once so many bytes of answers have passed, cut in the middle of whatever it is; bytes says how many. It ends with the test. */
export async function cutting(t: TestContext, target: string, bytes: () => number): Promise<{ url: string; cuts: () => number }> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let cuts = 0;
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    let left = bytes();
    const end = (): void => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on("error", end).on("close", () => (open.delete(socket), end()));
    }
    near.on("data", (part) => far.write(part));
    far.on("data", (part) => {
      if (left <= 0) return;
      const passed = part.subarray(0, left);
      left -= part.length;
      if (left > 0) {
        near.write(passed);
      } else {
        cuts++;
        near.end(passed, end);
      }
    });
    far.on("end", () => near.end());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(async () => {
    const closed = once(server, "close");
    server.close();
    for (const socket of open) socket.destroy();
    await closed;
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cuts: () => cuts };
}

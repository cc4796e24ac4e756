// The client in a real browser, against real hosts: pages of another origin than the host's, with a token.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createInterface } from "node:readline";

import type * as foldhost from "../src/index.js";
import type * as hooks from "../src/react.js";
import { Chromium, findChromium, type Page } from "./chromium.js";
import { Host, root } from "./host.js";
import { servePages } from "./pages.js";
import type { play, Vectors } from "./vectors.js";

const file = findChromium();
const needed = (process.env["FOLDHOST_NEED_BROWSER"] ?? "") !== "";
const skip = file === undefined && !needed ? "skipped: chromium is not here" : false;

const token = "sesame";
const title = (text: string): foldhost.Item => ({ type: "session/title", data: { title: text } });

/** What the functions that run in a page find there: no more than the platform has, and these. */
interface Window {
  seqs: number[];
  states: string[];
  tracked: foldhost.Tracked;
  ended: Promise<string>;
}

describe("in a browser", { skip }, () => {
  let chromium: Chromium;
  let pages: Awaited<ReturnType<typeof servePages>>;
  let origin: string;

  before(async () => {
    assert.ok(file !== undefined, "chromium is not here: install it, or say where it is in CHROMIUM");
    chromium = await Chromium.start(file);
    pages = await servePages();
    origin = `http://127.0.0.1:${pages.port}`;
  });
  after(async () => {
    await chromium?.close();
    pages?.close();
  });

  /** Leaves a page, in which nothing was thrown that nobody caught. */
  async function leave(page: Page): Promise<void> {
    assert.deepEqual(page.thrown, []);
    await page.close();
  }

  test("the store does what the vectors say", async () => {
    const page = await chromium.open(origin);
    const wrong = await page.run(async () => {
      const { Store } = (await import("@foldhost/client" as string)) as typeof foldhost;
      const run = (await import("/test/vectors.js" as string)) as { play: typeof play };
      const vectors = (await (await fetch("/testdata/store-vectors.json")).json()) as Vectors;
      const all: string[] = vectors.cases.length < 20 ? ["there are none"] : [];
      for (const one of vectors.cases) all.push(...(await run.play(new Store(), one)));
      return all;
    });
    assert.deepEqual(wrong, []);
    await leave(page);
  });

  test("given a page of an allowed origin with a token, a stream and a store outlive a host that is killed, and end with the session", async (t) => {
    const host = await Host.start(t, { allowedOrigins: [origin], token });
    const direct = host.client(token);
    const page = await chromium.open(origin);
    await page.run(async (url, token) => {
      const { Client, fromStart } = (await import("@foldhost/client" as string)) as typeof foldhost;
      const here = globalThis as unknown as Window;
      const client = new Client({ url, token });
      const made = await client.create({ id: "s" });
      if (!made.created || (await client.create({ id: "s" })).created) throw new Error("it is not made once");
      await client.append("s", { type: "session/title", data: { title: "é😀 by a page" } }, { expectedSeq: 0, idempotencyKey: "k" });
      here.seqs = [];
      here.ended = (async () => {
        let last = "";
        for await (const frame of client.stream("s", { after: fromStart })) {
          last = frame.type;
          if (frame.type === "session/event") here.seqs.push(frame.event.seq);
        }
        return last;
      })();
      here.tracked = client.track("s");
      here.states = [];
      here.tracked.onState((state) => here.states.push(state));
      await here.tracked.ready;
    }, host.url, token);
    await direct.append("s", title("before"));
    await until(page, (s) => s.seqs.length === 2 && s.title === "before");
    await host.kill();
    await until(page, (s) => s.states.at(-1) === "broken" && s.title === "before");
    await host.again();
    await direct.append("s", [title("meanwhile"), title("after é😀")]);
    await until(page, (s) => s.seqs.length === 4 && s.title === "after é😀" && s.states.at(-1) === "live");
    await direct.delete("s");
    assert.equal(await page.run(async () => (globalThis as unknown as Window).ended), "session/deleted");
    const end = await until(page, (s) => s.states.at(-1) === "deleted");
    assert.deepEqual(end, { seqs: [0, 1, 2, 3], states: ["live", "broken", "live", "deleted"], title: undefined });
    await leave(page);
  });

  /** Looks at what the page of the test above has, until it is as it should be. */
  async function until(page: Page, is: (state: { seqs: number[]; states: string[]; title?: string }) => boolean): Promise<unknown> {
    for (;;) {
      const state = await page.run(() => {
        const { seqs, states, tracked } = globalThis as unknown as Window;
        return { seqs, states, title: tracked.store.value("title") as string | undefined };
      });
      if (is({ ...state, title: state.title ?? "" })) return { ...state, title: state.title };
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  test("calls do in a page what they do elsewhere, and errors say what is wrong", async (t) => {
    const host = await Host.start(t, { allowedOrigins: [origin], token });
    const page = await chromium.open(origin);
    const got = await page.run(async (url, token) => {
      const { Client, FoldhostError, NetworkError } = (await import("@foldhost/client" as string)) as typeof foldhost;
      const client = new Client({ url, token });
      await client.create({ id: "a", events: [{ type: "session/title", data: { title: "a" } }] });
      await client.create({ id: "b" });
      const code = (err: unknown): string => (err instanceof FoldhostError ? err.code : String(err));
      const log = await new Response(await client.export("a")).text();
      const frames: string[] = [];
      for await (const f of client.follow(["a", "none", "b"])) {
        frames.push(`${f.sessionId} ${f.type}`);
        if (frames.length === 5) break;
      }
      const aborter = new AbortController();
      const waiting = client.projections("a", { minSeq: 50, waitMs: 60_000, signal: aborter.signal }).catch((err: Error) => err.name);
      aborter.abort();
      const set = client.trackAll(["a", "b"], { keys: ["title"] });
      await Promise.all([...set.sessions.values()].map((s) => s.ready));
      const titles = [...set.sessions.values()].map((s) => s.store.value("title"));
      set.close();
      await set.done;
      return {
        ready: (await client.ready()).ready,
        imported: (await client.import(log, { id: "c" })).seq,
        zipped: await client.import(new Uint8Array([1, 2, 3]), { id: "d", zstd: true }).catch(code),
        tool: (await client.callTool("a", "todo_write", { todos: [] })).isError,
        conflict: await client.append("a", { type: "x" }, { expectedSeq: 9 }).catch(code),
        unknown: await client.get("none").catch(code),
        anonymous: await new Client({ url }).get("a").catch(code),
        nobody: await new Client({ url: "http://127.0.0.1:9", tries: 2 }).get("a").catch((err: unknown) => err instanceof NetworkError),
        deleted: (await client.delete("b"), await client.get("b").catch(code)),
        sessions: (await client.list()).sessions.length,
        aborted: await waiting,
        frames,
        titles,
      };
    }, host.url, token);
    const { zipped, frames, ...rest } = got;
    assert.deepEqual(rest, {
      ready: true, imported: 2, tool: false, conflict: "seq-conflict", unknown: "session-not-found", anonymous: "unauthenticated", nobody: true, deleted: "session-not-found", sessions: 2,
      aborted: "AbortError", titles: ["a", null],
    });
    assert.match(zipped as string, /invalid/);
    assert.deepEqual(frames.sort(), ["a session/baseline", "a session/subscribed", "b session/baseline", "b session/subscribed", "none session/unknown"]);
    await leave(page);
  });

  test("given a page of an origin that is not allowed, it is told what to do", async (t) => {
    const host = await Host.start(t, { allowedOrigins: [origin] });
    const page = await chromium.open(`http://localhost:${pages.port}`);
    const said = await page.run(async (url) => {
      const { Client } = (await import("@foldhost/client" as string)) as typeof foldhost;
      return new Client({ url, tries: 1 }).get("s").catch((err: Error) => `${err.name}: ${err.message}`);
    }, host.url);
    assert.match(said as string, new RegExp(`NetworkError: .*http://localhost:${pages.port} one of its allowedOrigins`));
    await leave(page);
  });

  test("given a component with hooks, it is drawn when its value changes and not otherwise, and lets go of its stream", async (t) => {
    const host = await Host.start(t, { allowedOrigins: [origin] });
    const direct = host.client();
    for (const id of ["a", "b"]) await direct.create({ id, events: [title(`of ${id}`)] });
    const page = await chromium.open(origin);
    await page.run(async (url) => {
      const { Client } = (await import("@foldhost/client" as string)) as typeof foldhost;
      const { FoldhostProvider, useProjection, useSession } = (await import("@foldhost/client/react" as string)) as typeof hooks;
      const { createElement: h, StrictMode } = (await import("react" as string)) as typeof import("react");
      const { createRoot } = (await import("react-dom/client" as string)) as typeof import("react-dom/client");
      const client = new Client({ url });
      let drawn = 0;
      const Title = () => h("h1", null, `${useProjection<string>("title") ?? "none"} ${++drawn}`);
      const Todos = () => h("p", null, `${useProjection<unknown[] | null>("todos")?.length ?? "no"} todos`);
      const Session = ({ id }: { id: string }) => {
        const { store, state } = useSession(client, id);
        return h(FoldhostProvider, { store }, h("p", null, `${id} ${state}`), h(Title), h(Todos));
      };
      const app = createRoot(document.getElementById("root") as HTMLElement);
      Object.assign(globalThis, { show: (id?: string) => app.render(h(StrictMode, null, id && h(Session, { id }))) });
    }, host.url);
    const show = (id?: string): Promise<unknown> => page.run((id) => (globalThis as unknown as { show: (id?: string) => void }).show(id ?? undefined), id);
    const shows = async (want: RegExp): Promise<string> => {
      for (;;) {
        const text = await page.run(() => document.getElementById("root")?.innerText.replace(/\s+/g, " ") ?? "");
        if (want.test(text)) return text;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    await show("a");
    await shows(/^a live of a/);
    await direct.append("a", title("changed"));
    const before = /changed \d+/.exec(await shows(/changed/))?.[0];
    // Of this the title shows nothing: an equal one, and another key.
    await direct.append("a", [title("changed"), { type: "todo/write", data: { todos: [] } }]);
    assert.equal(/changed \d+/.exec(await shows(/0 todos/))?.[0], before);
    await show("b");
    await shows(/^b live of b \d+ no todos$/);
    await show();
    await shows(/^$/);
    await leave(page);
  });

  test("given the page of the examples, it shows a title and a todo that come while it is open, and what is entered there is appended", async (t) => {
    const server = spawn(process.execPath, [join(root, "examples", "page", "serve.mjs"), "0"], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(server, "exit");
    t.after(async () => {
      server.kill();
      await ended;
    });
    const [line] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
    const at = /http:\S+/.exec(line)?.[0] ?? "";
    for (const none of ["/", "nothing.js", "serve.mjs"]) assert.equal((await fetch(at + none)).status, 404);
    const host = await Host.start(t, { allowedOrigins: [new URL(at).origin], token });
    const direct = host.client(token);
    const page = await chromium.open(`${at}?server=${host.url}&session=first#token=${token}`);
    const shows = async (is: (shown: { state: string; title: string; todos: string[]; error: string }) => boolean): Promise<void> => {
      for (;;) {
        const shown = await page.run(() => ({
          state: document.getElementById("state")?.innerText ?? "",
          title: (document.getElementById("title") as HTMLInputElement).value,
          todos: [...document.querySelectorAll<HTMLElement>("#todos li")].map((li) => `${li.innerText} ${li.dataset["status"]}`),
          error: document.getElementById("error")?.innerText ?? "",
        }));
        if (is(shown)) return;
        assert.deepEqual(page.thrown, []);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    await shows((s) => s.state === "live" && s.todos.length === 0);
    await direct.append("first", [title("While it is open"), { type: "todo/write", data: { todos: [{ content: "appended", status: "pending" }] } }]);
    await shows((s) => s.title === "While it is open" && s.todos.join() === "appended pending");
    await page.run(() => {
      (document.getElementById("todo") as HTMLInputElement).value = "entered";
      (document.getElementById("add") as HTMLFormElement).requestSubmit();
    });
    await shows((s) => s.todos.join() === "appended pending,entered pending");
    await page.run(() => (document.querySelector("#todos input") as HTMLInputElement).click());
    await shows((s) => s.todos.join() === "appended completed,entered pending");
    await page.run(() => {
      (document.getElementById("title") as HTMLInputElement).value = "Entered too";
      (document.getElementById("rename") as HTMLFormElement).requestSubmit();
    });
    await shows((s) => s.title === "Entered too");
    // A list that the tool refuses, as one that says the same twice.
    await page.run(() => {
      (document.getElementById("todo") as HTMLInputElement).value = "entered";
      (document.getElementById("add") as HTMLFormElement).requestSubmit();
    });
    await shows((s) => s.error !== "" && s.todos.length === 2);
    const { values } = await direct.projections("first", { keys: ["title", "todos"] });
    assert.deepEqual(values, { title: "Entered too", todos: [{ content: "appended", status: "completed" }, { content: "entered", status: "pending" }] });
    await leave(page);
  });
});

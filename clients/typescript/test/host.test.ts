// The client against a real host, in Node.
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { AnswerError, Client, FoldhostError, fromStart, rawItem, Store, type Frame, type Item } from "../src/index.js";
import { cutting, Host } from "./host.js";
import { dice } from "./kit.js";

const title = (text: string): Item => ({ type: "session/title", data: { title: text } });
const todos = (...contents: string[]): Item => ({ type: "todo/write", data: { todos: contents.map((content) => ({ content, status: "pending" })) } });
const message = (id: string): Record<string, unknown> => ({ id, role: "user", source: { kind: "user" }, content: [] });

const isCode = (code: string) => (err: unknown): boolean => err instanceof FoldhostError && err.code === code;

test("each call does what docs/server.md says", async (t) => {
  const host = await Host.start(t);
  const asked = new Set<string>();
  const c = new Client({
    url: host.url,
    fetch: (at, init) => {
      asked.add(`${init?.method} ${new URL(String(at)).pathname}`);
      return fetch(at, init);
    },
  });
  await c.healthy();
  assert.deepEqual(await c.ready(), { ready: true, missing: [] });

  const made = await c.create({ id: "a", cwd: "/<home>", createdAt: 5, events: [title("from the seed")] });
  assert.deepEqual([made.created, made.header.cwd, made.header.createdAt, made.seq, made.firstLiveSeq], [true, "/<home>", 5, 2, 1]);
  assert.equal((await c.create({ id: "a", events: [title("from the seed")] })).created, false);
  await assert.rejects(c.create({ id: "a", cwd: "/other" }), isCode("session-conflict"));

  const appended = await c.append("a", [
    { type: "note", data: { "<&>": "\u2028 é😀" }, time: 7, ignorable: true },
    rawItem('{"type":"note","data":12345678901234567890.50,"ignorable":true}'),
    { type: "user/message", surfaceOp: "append", data: message("u") },
    title("of three"),
  ], { expectedSeq: 2, projections: true });
  assert.deepEqual([appended.seq, appended.events[0], appended.projections?.values["title"]], [6, { seq: 2, time: 7 }, "of three"]);
  assert.deepEqual((await c.append("a", todos("x"), { projections: [], idempotencyKey: null })).projections?.values, {});
  const once = await c.append("a", todos("y"), { idempotencyKey: "once" });
  assert.deepEqual(await c.append("a", todos("y"), { idempotencyKey: "once" }), once);
  await assert.rejects(c.append("a", todos("z"), { idempotencyKey: "once" }), isCode("idempotency-key-reused"));
  await assert.rejects(c.append("a", todos("z"), { expectedSeq: 3 }), (e) => e instanceof FoldhostError && e.code === "seq-conflict" && e.seq === 8);
  await assert.rejects(c.append("a", [title("fine"), { type: "user/message", surfaceOp: "append" }]), (e) => e instanceof FoldhostError && e.code === "event-invalid" && e.index === 1 && e.reason === "message-invalid");

  const page = await c.eventPage("a", { from: 2, limit: 1 });
  assert.deepEqual(page, { seq: 8, events: [{ type: "note", seq: 2, time: 7, data: { "<&>": "\u2028 é😀" }, ignorable: true }] });
  for (const [query, want] of [[{}, [0, 1, 2, 3, 4, 5, 6, 7]], [{ from: 6 }, [6, 7]], [{ types: ["note", "todo/write"], limit: 3 }, [2, 3, 6]], [{ from: 8 }, []]] as const) {
    const seqs: number[] = [];
    for await (const e of c.events("a", query)) seqs.push(e.seq);
    assert.deepEqual(seqs, want);
  }

  const last = await c.history("a", { maxMessages: 1, keys: ["title"] });
  assert.deepEqual([last.hasMore, last.events[0]?.seq, last.projections?.asOfSeq, last.projections?.values], [true, 4, 7, { title: "of three" }]);
  const before = await c.history("a", { beforeSeq: 4 });
  assert.deepEqual([before.hasMore, before.events.length, before.projections], [false, 4, undefined]);

  const then = await c.projections("a", { at: 0 });
  assert.deepEqual([then.asOfSeq, then.historical, then.values["title"]], [0, true, "from the seed"]);
  const now = await c.projections("a", { minSeq: 7, waitMs: 1000, keys: ["title", "todos"] });
  assert.deepEqual([now.historical, now.values], [undefined, { title: "of three", todos: [{ content: "y", status: "pending" }] }]);
  await assert.rejects(c.projections("a", { minSeq: 50, waitMs: 1 }), (e) => e instanceof FoldhostError && e.code === "not-reached" && e.seq === 8);

  assert.deepEqual((await c.surface("a")).nodes, [4]);
  assert.deepEqual(await c.messages("a"), { messages: [message("u")], asOfSeq: 7 });
  assert.equal((await c.compact("a", { start: 4, end: 4, message: message("c") })).seq, 9);
  await c.append("a", { type: "turn/start", data: { turn: 1 } });
  assert.equal((await c.recover("a")).events.length, 1);
  const child = await c.fork("a", { id: "b", atSeq: 7 });
  assert.deepEqual([child.header.id, child.header.parentSession], ["b", "a"]);
  assert.equal((await c.retry("a", { keys: ["title"] })).values["title"], "of three");
  const verified = await c.verify("a");
  assert.deepEqual([verified.ok, verified.seq, verified.differences], [true, 11, []]);

  const said = await c.callTool("a", "todo_write", { todos: [{ content: "by a tool", status: "in_progress" }] });
  assert.deepEqual([said.isError, said.content[0]?.type, said.events.length], [false, "text", 1]);
  assert.equal((await c.callTool("a", "todo_write", { todos: 5 })).isError, true);
  await assert.rejects(c.callTool("a", "none", {}), isCode("tool-not-found"));
  assert.deepEqual((await c.tools()).map((x) => x.name), ["todo_write"]);
  assert.deepEqual((await c.offers()).map((x) => x.key).sort(), ["imageLimits", "title", "todos", "tokenUsage"]);
  assert.equal((await c.plugins()).length, 4);
  const preset = "titles";
  assert.deepEqual([await c.tools({ preset }), (await c.offers({ preset })).map((x) => x.key), (await c.plugins({ preset })).map((x) => x.name)], [[], ["title"], ["title"]]);
  await assert.rejects(c.tools({ preset: "none" }), isCode("preset-unknown"));
  await assert.rejects(c.create({ preset: "none" }), isCode("preset-unknown"));
  assert.equal((await c.restartPlugin("title")).name, "title");
  await assert.rejects(c.restartPlugin("none"), isCode("not-found"));

  const log = await new Response(await c.export("a", { plain: true })).text();
  assert.equal(log.trim().split("\n").length, 13);
  for (let i = 0; i < 2; i++) {
    const took = await c.import(`${log}{"type":`, { id: "copy", idempotencyKey: "k" });
    assert.deepEqual([took.header.id, took.seq, took.warnings?.length], ["copy", 12, 1]);
  }
  assert.equal((await c.import(await c.export("a"), { id: "piped" })).seq, 12);
  await assert.rejects(c.import(`${log}{"type":\n`, { id: "strict", strict: true }), FoldhostError);
  await assert.rejects(c.import(log), isCode("session-conflict"));
  assert.equal((await c.detach("a")).live, false);

  const list = await c.list({ limit: 1, keys: ["title"] });
  assert.deepEqual([list.sessions.length, typeof list.cursor], [1, "string"]);
  const ids: string[] = [];
  for await (const s of c.sessions({ limit: 1 })) ids.push(s.header.id);
  assert.deepEqual(ids.sort(), ["a", "b", "copy", "piped"]);
  assert.equal((await c.get("a")).incarnation, made.incarnation);

  assert.equal((await c.storeStats()).logs, 4);
  const checked = await c.checkStore({ values: true });
  assert.deepEqual([checked.logs, checked.problems], [4, []]);
  const backup = await c.backupStore(join((await c.storeStats()).path, "..", "..", "backup.db"));
  assert.equal((await stat(backup.path)).size, backup.bytes);

  await c.delete("b");
  await assert.rejects(c.get("b"), isCode("session-not-found"));
  for await (const _ of c.stream("a")) break;
  for await (const _ of c.follow(["a"])) break;

  // All that there is was asked for, but for what another call does as well, and what is for other programs than this client.
  const others = ["get /v1/stream", "get /v1/openapi.json", "get /metrics", "get /debug/pprof", "get /debug/pprof/{profile}"];
  const { paths } = (await (await fetch(`${host.url}/v1/openapi.json`)).json()) as { paths: Record<string, Record<string, unknown>> };
  const missing: string[] = [];
  for (const [path, methods] of Object.entries(paths)) {
    const is = new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`);
    for (const method of ["get", "post", "put", "patch", "delete"]) {
      if (method in methods && ![...asked].some((a) => a.startsWith(`${method.toUpperCase()} `) && is.test(a.slice(method.length + 1)))) missing.push(`${method} ${path}`);
    }
  }
  const more = missing.filter((m) => !others.includes(m)).join(", ");
  assert.equal(more, "", `the description of the server has more: give the client calls for ${more}, and call them here`);
});

/** Reads a stream until a frame is as it should be. */
async function until(frames: AsyncGenerator<Frame, void>, is: (f: Frame) => boolean): Promise<Frame[]> {
  const seen: Frame[] = [];
  for (;;) {
    const { value, done } = await frames.next();
    if (done) throw new Error(`the stream ended after ${seen.map((f) => f.type).join(", ")}`);
    seen.push(value);
    if (is(value)) return seen;
  }
}

const types = (frames: Frame[]): string[] => frames.map((f) => f.type.slice("session/".length));

test("given a host that is killed and started again, streams go on behind the last event, stores have its values, and what is appended meanwhile is there once", async (t) => {
  const host = await Host.start(t);
  const c = host.client();
  for (const id of ["s", "gone"]) await c.create({ id, events: [title("first")] });
  const one = c.stream("s", { after: fromStart });
  const many = c.follow(["s", "gone"], { keys: ["title"] });
  assert.deepEqual(types(await until(one, (f) => f.type === "session/baseline")), ["subscribed", "event", "event", "baseline"]);
  await until(many, (f) => f.type === "session/baseline" && f.sessionId === "gone");
  const tracked = c.track("s");
  await tracked.ready;
  const states: string[] = [];
  tracked.onState((state) => states.push(state));
  const epoch = (await c.projections("s")).epoch;

  await host.kill();
  // Sent while there is nobody, and again until there is.
  const appending = new Client({ url: host.url, tries: 100 }).append("s", title("second"));
  await host.again();
  assert.equal((await appending).seq, 3);
  await c.delete("gone");

  const after = await until(one, (f) => f.type === "session/baseline");
  assert.deepEqual(types(after).filter((type) => type !== "event"), ["subscribed", "baseline"]);
  const [sub] = after;
  assert.ok(sub?.type === "session/subscribed" && sub.epoch !== epoch);
  const seqs = after.flatMap((f) => (f.type === "session/event" ? [f.event.seq] : []));
  if (seqs.length === 0) seqs.push(...(await until(one, (f) => f.type === "session/event")).flatMap((f) => (f.type === "session/event" ? [f.event.seq] : [])));
  assert.deepEqual(seqs, [2]);
  await until(many, (f) => f.type === "session/deleted" && f.sessionId === "gone");

  await new Promise<void>((resolve) => {
    const look = (): void => {
      const keys = ["imageLimits", "title", "todos", "tokenUsage"].filter((key) => tracked.store.get(key)?.stale === false);
      if (tracked.state === "live" && tracked.store.value("title") === "second" && keys.length === 4) resolve();
    };
    tracked.onState(look);
    tracked.store.onChange(look);
    look();
  });
  // It says so of each connection that there was not, and how many those are is for the machine to say.
  assert.deepEqual(states.filter((state, i) => state !== states[i - 1]), ["broken", "live"]);

  await c.delete("s");
  await until(one, (f) => f.type === "session/deleted");
  assert.equal((await one.next()).done, true);
  await until(many, (f) => f.type === "session/deleted" && f.sessionId === "s");
  assert.equal((await many.next()).done, true);
  await tracked.done;
  assert.deepEqual([tracked.state, { ...tracked.store.values() }], ["deleted", {}]);
});

test("given a session that is deleted and made again between two connections, a stream says so and goes on in the new life", async (t) => {
  const host = await Host.start(t);
  const c = host.client();
  await c.create({ id: "s" });
  await c.append("s", [title("of the first life"), todos("a")]);
  const position = (await until(c.stream("s", { after: fromStart }), (f) => f.type === "session/baseline")).at(-1);
  assert.ok(position?.type === "session/baseline");
  await c.delete("s");
  await c.create({ id: "s" });
  await c.append("s", title("of the second"));
  const frames = c.stream("s", { after: position.position });
  const seen = await until(frames, (f) => f.type === "session/baseline");
  assert.deepEqual(types(seen), ["subscribed", "reset", "baseline"]);
  const store = new Store();
  for (const f of seen) store.take(f);
  assert.deepEqual([store.value("title"), store.value("todos")], ["of the second", null]);
  await frames.return();
});

test("given a network that cuts every connection anywhere, readers of a stream, of a stream of many and of the log get every event once and in order, and the latest values", async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  t.diagnostic(`seed ${seed}`);
  const roll = dice(seed);
  const host = await Host.start(t);
  const direct = host.client();
  const total = 40;
  for (const id of ["a", "b"]) {
    await direct.create({ id });
    for (let i = 0; i < total / 2; i++) await direct.append(id, todos(`${i} é😀`));
  }
  const proxy = await cutting(t, host.url, () => 1200 + Math.floor(roll() * 4000));
  const c = new Client({ url: proxy.url });
  const appending = (async () => {
    for (let i = total / 2; i < total; i++) for (const id of ["a", "b"]) await c.append(id, todos(`${i} é😀`));
  })();
  const read = async (frames: AsyncIterable<Frame>, ids: string[]): Promise<void> => {
    const next = new Map(ids.map((id) => [id, 0]));
    const stores = new Map(ids.map((id) => [id, new Store()]));
    const want = JSON.stringify([{ content: `${total - 1} é😀`, status: "pending" }]);
    for await (const f of frames) {
      const id = f.sessionId;
      const store = stores.get(id);
      store?.take(f);
      if (f.type === "session/event") {
        assert.equal(f.event.seq, next.get(id), id);
        next.set(id, f.event.seq + 1);
      }
      if (f.type === "session/projection") assert.ok(f.seq < (next.get(id) ?? 0), "a value before its event");
      if (ids.every((one) => next.get(one) === total && JSON.stringify(stores.get(one)?.value("todos")) === want)) return;
    }
    throw new Error("the stream ended");
  };
  await Promise.all([
    appending,
    read(c.stream("a", { after: fromStart }), ["a"]),
    read(c.follow(["a", "b"], { after: fromStart }), ["a", "b"]),
  ]);
  const seqs: number[] = [];
  for await (const e of c.events("b")) seqs.push(e.seq);
  assert.deepEqual(seqs, Array.from({ length: total }, (_, i) => i));
  assert.ok(proxy.cuts() >= 10, `only ${proxy.cuts()} cuts`);
});

test("large events are no problem within the bound, and beyond it are refused without being held", async (t) => {
  const host = await Host.start(t);
  const c = host.client();
  await c.create({ id: "s" });
  const large = "é😀x".repeat(400_000);
  await c.append("s", { type: "large", data: large });
  for await (const f of c.stream("s", { after: fromStart })) {
    if (f.type !== "session/event") continue;
    assert.equal(f.event.data, large);
    break;
  }
  const small = new Client({ url: host.url, maxFrameBytes: 1 << 20 });
  await assert.rejects(small.events("s").next(), AnswerError);
  await assert.rejects(until(small.stream("s", { after: fromStart }), (f) => f.type === "session/event"), AnswerError);
});

test("given a host with tokens, a client without one, or with another, is told so at once", async (t) => {
  const host = await Host.start(t, { token: "sesame" });
  await host.client("sesame").create({ id: "s" });
  for (const token of [undefined, "other"]) {
    const c = host.client(token);
    await assert.rejects(c.get("s"), isCode("unauthenticated"));
    const tracked = c.track("s");
    await tracked.done;
    assert.ok(tracked.state === "failed" && isCode("unauthenticated")(tracked.error));
  }
});

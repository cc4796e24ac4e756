import assert from "node:assert/strict";
import { test } from "node:test";

import { AnswerError, Client, FoldhostError, NetworkError, rawItem, type Session } from "../src/index.js";
import { all, broken, faked, inNoTime, json, problem, refused, said, type Asked } from "./kit.js";

const session = { header: { version: 0, id: "s", createdAt: 1 }, seq: 0, firstLiveSeq: 0, incarnation: "I", live: true, updatedAt: 1 } satisfies Session;

/** What each call asks. */
const calls: Record<string, [call: (c: Client) => Promise<unknown>, method: string, target: string, body?: unknown]> = {
  create: [(c) => c.create(), "POST", "/v1/sessions", {}],
  "create with all": [
    (c) => c.create({ id: "a", cwd: "/w", preset: "p", createdAt: 5, events: [{ type: "t" }], idempotencyKey: "k" }),
    "POST", "/v1/sessions", { id: "a", cwd: "/w", preset: "p", createdAt: 5, events: [{ type: "t", data: null }] },
  ],
  get: [(c) => c.get("s"), "GET", "/v1/sessions/s"],
  list: [(c) => c.list(), "GET", "/v1/sessions"],
  "list with all": [(c) => c.list({ limit: 3, cursor: "c d", keys: ["a", "b"] }), "GET", "/v1/sessions?limit=3&cursor=c+d&keys=a%2Cb"],
  "list without values": [(c) => c.list({ keys: [] }), "GET", "/v1/sessions?keys="],
  delete: [(c) => c.delete("s"), "DELETE", "/v1/sessions/s"],
  detach: [(c) => c.detach("s"), "POST", "/v1/sessions/s/detach"],
  append: [(c) => c.append("s", { type: "t", data: { x: undefined, y: 1 } }), "POST", "/v1/sessions/s/events", { events: [{ type: "t", data: { y: 1 } }] }],
  "append with all": [
    (c) => c.append("s", [{ type: "t", data: 1, time: 2, surfaceOp: { op: "replace", start: 1, end: 2 }, sourceEventSeqs: [1], ignorable: true }, rawItem('{"type":"u","data":12345678901234567890}')],
      { expectedSeq: 0, projections: ["a", "b"], idempotencyKey: "k" }),
    "POST", "/v1/sessions/s/events?projections=a%2Cb",
    '{"expectedSeq":0,"events":[{"type":"t","data":1,"time":2,"surfaceOp":{"op":"replace","start":1,"end":2},"sourceEventSeqs":[1],"ignorable":true},{"type":"u","data":12345678901234567890}]}',
  ],
  "append and all values": [(c) => c.append("s", [], { projections: true }), "POST", "/v1/sessions/s/events?projections=*", { events: [] }],
  eventPage: [(c) => c.eventPage("s", { from: 2, limit: 3, types: ["a", "b"] }), "GET", "/v1/sessions/s/events?from=2&types=a%2Cb&limit=3"],
  history: [(c) => c.history("s", { beforeSeq: 0, maxMessages: 3, keys: ["a"] }), "GET", "/v1/sessions/s/history?beforeSeq=0&maxMessages=3&keys=a"],
  projections: [(c) => c.projections("s", { keys: ["a"], at: -1, minSeq: 0, waitMs: 1500 }), "GET", "/v1/sessions/s/projections?keys=a&at=-1&minSeq=0&wait=1500ms"],
  surface: [(c) => c.surface("s"), "GET", "/v1/sessions/s/surface"],
  messages: [(c) => c.messages("s"), "GET", "/v1/sessions/s/messages"],
  fork: [(c) => c.fork("s", { id: "t", atSeq: 0 }), "POST", "/v1/sessions/s/fork", { atSeq: 0, id: "t" }],
  "fork of all": [(c) => c.fork("s"), "POST", "/v1/sessions/s/fork", {}],
  compact: [(c) => c.compact("s", { start: 0, end: 2, message: { id: "m" } }), "POST", "/v1/sessions/s/compact", { start: 0, end: 2, message: { id: "m" } }],
  recover: [(c) => c.recover("s"), "POST", "/v1/sessions/s/recover"],
  retry: [(c) => c.retry("s"), "POST", "/v1/sessions/s/retry"],
  "retry of some": [(c) => c.retry("s", { keys: [] }), "POST", "/v1/sessions/s/retry", { keys: [] }],
  verify: [(c) => c.verify("s"), "POST", "/v1/sessions/s/verify"],
  callTool: [(c) => c.callTool("s", "a/b", { x: 1 }), "POST", "/v1/sessions/s/tools/a%2Fb", { arguments: { x: 1 } }],
  "callTool without arguments": [(c) => c.callTool("s", "t", undefined), "POST", "/v1/sessions/s/tools/t", {}],
  restartPlugin: [(c) => c.restartPlugin("p q"), "POST", "/v1/plugins/p%20q/restart"],
  "tools of a preset": [(c) => c.tools({ preset: "p q" }), "GET", "/v1/tools?preset=p+q"],
  storeStats: [(c) => c.storeStats(), "GET", "/v1/store"],
  "ready without a plugin": [(c) => c.ready(), "GET", "/readyz"],
  healthy: [(c) => c.healthy(), "GET", "/healthz"],
};

for (const [name, [call, method, target, body]] of Object.entries(calls)) {
  test(`what a call asks: ${name}`, async () => {
    const { client, asked } = faked(() => json({ ...session, ready: true, missing: [], tools: [] }), { url: "http://x:1/base/", token: "T" });
    await call(client);
    const [one] = asked;
    assert.ok(one);
    assert.equal(`${one.method} ${one.url.href}`, `${method} http://x:1/base${target}`);
    assert.equal(one.body, body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body));
    assert.equal(one.headers.get("Content-Type"), body === undefined ? null : "application/json");
    assert.equal(one.headers.get("Authorization"), "Bearer T");
  });
}

test("calls that write carry a key, of the caller's or one made up for each, and none for null", async () => {
  const { client, asked } = faked(() => json(session));
  await client.append("s", []);
  await client.append("s", []);
  await client.append("s", [], { idempotencyKey: "k" });
  await client.append("s", [], { idempotencyKey: null });
  const keys = asked.map((a) => a.headers.get("Idempotency-Key"));
  assert.match(keys[0] ?? "", /^[0-9a-f]{32}$/);
  assert.notEqual(keys[0], keys[1]);
  assert.deepEqual(keys.slice(2), ["k", null]);
});

test("created says whether it was, by the status", async () => {
  const { client } = faked((_, n) => json(session, n === 0 ? 201 : 200));
  assert.equal((await client.create()).created, true);
  assert.deepEqual(await client.create(), { ...session, created: false });
});

test("lists are unpacked, and pages follow each other", async () => {
  const { client } = faked(({ url }) => {
    if (url.pathname !== "/v1/sessions") return json({ tools: [1], projections: [2], plugins: [3] });
    return url.searchParams.get("cursor") === "2" ? json({ sessions: [{ ...session, seq: 3 }] }) : json({ sessions: [session, session], cursor: "2" });
  });
  assert.deepEqual([await client.tools(), await client.offers(), await client.plugins()], [[1], [2], [3]]);
  assert.deepEqual((await all(client.sessions())).list.map((s) => s.seq), [0, 0, 3]);
});

test("what is wrong with the options, and with ids and names, is said before anything is sent", async () => {
  for (const url of ["", "x", "ftp://x", "http://x?q", "http://x#h", "http://u:p@x", "/v1"]) assert.throws(() => new Client({ url }), TypeError, url);
  assert.throws(() => new Client({ url: "http://x", token: "a\n" }), TypeError);
  assert.equal(new Client({ url: "http://x:80/a/" }).url, "http://x/a");
  assert.equal(new Client({ url: new URL("https://x") }).url, "https://x");
  assert.throws(() => rawItem("{"), SyntaxError);
  const { client, asked } = faked(() => json({}));
  for (const id of ["", ".", "..", "a/b", "a?", "ä", "x".repeat(129)]) {
    await assert.rejects(client.get(id), TypeError, id);
    assert.ok((await all(client.stream(id))).error instanceof TypeError, id);
  }
  for (const name of ["", ".", ".."]) {
    await assert.rejects(client.restartPlugin(name), TypeError);
    await assert.rejects(client.callTool("s", name, {}), TypeError);
  }
  assert.equal(asked.length, 0);
});

test("errors say what the server says", async () => {
  const { client } = faked(() =>
    problem(422, { code: "event-invalid", detail: "it has no data", seq: 1, index: 2, reason: "data-missing", path: "$.data", size: 3, limit: 4 }, { "Content-Type": "application/problem+json; charset=utf-8" }),
  );
  await assert.rejects(client.append("s", []), (err) => {
    assert.ok(err instanceof FoldhostError && err instanceof Error);
    assert.equal(err.message, 'append to session "s": it has no data (event 2, $.data)');
    assert.equal(err.name, "FoldhostError");
    const { doing, status, code, detail, seq, index, reason, path, size, limit } = err;
    assert.deepEqual({ doing, status, code, detail, seq, index, reason, path, size, limit },
      { doing: 'append to session "s"', status: 422, code: "event-invalid", detail: "it has no data", seq: 1, index: 2, reason: "data-missing", path: "$.data", size: 3, limit: 4 });
    return true;
  });
});

test("an answer of something else has no code, and one that makes no sense says so", async () => {
  const html = (status: number): Response => new Response("<html>", { status, headers: { "Content-Type": "text/html" } });
  const cases: [Response, (err: unknown) => boolean][] = [
    [html(404), (e) => e instanceof FoldhostError && e.code === "" && e.status === 404 && e.detail.includes("404")],
    [new Response("x", { status: 404, headers: { "Content-Type": "application/problem+json" } }), (e) => e instanceof FoldhostError && e.code === ""],
    [html(200), (e) => e instanceof AnswerError && e.cause instanceof SyntaxError],
    [new Response(null), (e) => e instanceof AnswerError],
    [json(5), (e) => e instanceof AnswerError],
  ];
  for (const [res, is] of cases) await assert.rejects(faked(() => res.clone()).client.get("s"), is);
  await assert.rejects(faked(() => html(200)).client.ready(), AnswerError);
  await assert.rejects(faked(() => html(404)).client.ready(), FoldhostError);
  await assert.rejects(faked(() => json({})).client.tools(), AnswerError);
});

test("a server that is not ready is no error", async () => {
  const missing = [{ plugin: "p", state: "starting" }];
  assert.deepEqual(await faked(() => json({ ready: false, missing }, 503)).client.ready(), { ready: false, missing });
});

const keyed = new Set(["get", "append", "create", "fork", "recover", "detach", "verify", "callTool"]);
const sent: Record<string, (c: Client) => Promise<unknown>> = {
  get: (c) => c.get("s"),
  append: (c) => c.append("s", []),
  "append without a key": (c) => c.append("s", [], { idempotencyKey: null }),
  create: (c) => c.create(),
  fork: (c) => c.fork("s"),
  recover: (c) => c.recover("s"),
  detach: (c) => c.detach("s"),
  verify: (c) => c.verify("s"),
  delete: (c) => c.delete("s"),
  retry: (c) => c.retry("s"),
  callTool: (c) => c.callTool("s", "t", {}),
  restartPlugin: (c) => c.restartPlugin("p"),
  import: (c) => c.import("x"),
};
const proxy = (status: number): Response => new Response("<html>", { status });
const failures: Record<string, [answer: () => Response, again: boolean, unsafe?: true]> = {
  "a broken connection": [() => { throw broken(); }, true],
  "an answer that breaks off": [() => said('{"hea', "breaks"), true],
  "no connection": [() => { throw refused(); }, true, true],
  "an overloaded server": [() => problem(503, { code: "overloaded" }), true],
  "a proxy without server": [() => proxy(502), true],
  "a proxy that has enough": [() => proxy(429), true],
  "a proxy that waited": [() => proxy(504), true],
  "a read-only store": [() => problem(503, { code: "store-readonly" }), false],
  "a seq not reached": [() => problem(504, { code: "not-reached" }), false],
  "a full disk": [() => problem(507, { code: "disk-full" }), false],
  "a failure": [() => problem(500, { code: "internal" }), false],
  "a refusal": [() => problem(422, { code: "event-invalid" }), false],
  // A tool may have begun before its plugin ended.
  "a plugin that ended": [() => problem(503, { code: "plugin-unavailable" }), true],
  "nobody there": [() => problem(404, { code: "session-not-found" }), false],
};

for (const [name, [answer, again, unsafe = false]] of Object.entries(failures)) {
  test(`what is sent again: after ${name}`, async () => {
    for (const [call, send] of Object.entries(sent)) {
      const { client, asked } = faked(answer, { tries: 4 });
      const { error, ms } = await inNoTime(() => send(client));
      const want = again && (keyed.has(call) || unsafe) && !(call === "callTool" && name === "a plugin that ended") ? 4 : 1;
      assert.ok(error instanceof FoldhostError || error instanceof NetworkError, `${call}: ${String(error)}`);
      assert.equal(asked.length, want, call);
      assert.equal(new Set(asked.map((a) => `${a.headers.get("Idempotency-Key")} ${a.body}`)).size, 1, call);
      assert.ok(want === 1 ? ms === 0 : ms >= 350 && ms <= 740, `${call}: it waited ${ms} ms in all`);
    }
  });
}

test("a log that is a stream is sent once, since it can be read once", async () => {
  const { client, asked } = faked(() => { throw refused(); });
  const { error } = await inNoTime(() => client.import(new Blob(["x"]).stream()));
  assert.ok(error instanceof NetworkError);
  assert.equal(asked.length, 1);
});

test("an export that breaks off says so, and one that is not read to its end can be left", async () => {
  const reason = new Error("enough");
  const read = (stream: ReadableStream<Uint8Array>): Promise<string> => new Response(stream).text();
  assert.equal(await read(await faked(() => said("a log", "ends")).client.export("s")), "a log");
  const broke = await faked(() => said("a l", "breaks")).client.export("s");
  const reader = broke.getReader();
  assert.equal(new TextDecoder().decode((await reader.read()).value), "a l");
  await assert.rejects(reader.read(), NetworkError);
  const aborter = new AbortController();
  const aborted = (await faked(({ signal }) => said("", "is silent", signal)).client.export("s", { signal: aborter.signal })).getReader().read();
  aborter.abort(reason);
  await assert.rejects(aborted, reason);
  let cancelled: unknown;
  const left = await faked(() => new Response(new ReadableStream({ cancel: (why) => void (cancelled = why) }))).client.export("s");
  await left.cancel(reason);
  assert.equal(cancelled, reason);
});

test("what fails in passing succeeds", async () => {
  const { client } = faked((_, n) => {
    if (n < 5) throw broken();
    return json(session);
  });
  assert.deepEqual((await inNoTime(() => client.get("s"))).value, session);
});

test("what a server asks for is waited, within bounds", async () => {
  const busy = (seconds: string): Promise<{ ms: number }> =>
    inNoTime(() => faked(() => problem(503, { code: "overloaded", detail: "" }, { "Retry-After": seconds })).client.get("s"));
  assert.equal((await busy("2")).ms, 10_000);
  assert.equal((await busy("3600")).ms, 25_000);
  assert.ok((await busy("soon")).ms < 3_200);
});

test("a signal ends a call, the reading of its answer, and waiting", async () => {
  const reason = new Error("enough");
  const aborted = AbortSignal.abort(reason);
  const { client, asked } = faked(() => json(session));
  await assert.rejects(client.get("s", { signal: aborted }), reason);
  assert.equal(asked.length, 0);

  const cases: Record<string, (a: Asked) => Response | Promise<Response>> = {
    "no answer": (a) => new Promise((_, reject) => a.signal?.addEventListener("abort", () => reject(a.signal?.reason))),
    "half an answer": (a) => said('{"hea', "is silent", a.signal),
    "half a problem": (a) => {
      const res = said('{"cod', "is silent", a.signal);
      return new Response(res.body, { status: 422, headers: { "Content-Type": "application/problem+json" } });
    },
    waiting: () => { throw broken(); },
  };
  for (const [name, answer] of Object.entries(cases)) {
    const aborter = new AbortController();
    const { error, ms } = await inNoTime(() => {
      setTimeout(() => aborter.abort(reason), 120);
      return faked(answer).client.get("s", { signal: aborter.signal });
    });
    assert.equal(error, reason, name);
    assert.ok(ms <= 130, name);
  }
});

test("events come line by line, and a reading that breaks goes on behind the last one in the same life", async () => {
  const line = (seq: number): string => `${JSON.stringify({ type: "x", seq, time: 0, data: null })}\n`;
  const reads = ["", line(0), line(1) + line(2) + line(3).slice(0, 5), line(3)];
  let n = 0;
  let life = "I";
  const { client, asked } = faked(({ url, signal }) => {
    if (!url.pathname.endsWith("/events")) return json({ ...session, incarnation: life });
    const text = reads[n++];
    return said(text ?? "", n < reads.length ? "breaks" : "ends", signal);
  });
  const got = await inNoTime(() => all(client.events("s", { types: ["x"] })));
  assert.deepEqual(got.value?.list.map((e) => e.seq), [0, 1, 2, 3]);
  assert.equal(got.value?.error, undefined);
  const from = asked.filter((a) => a.url.pathname.endsWith("/events")).map((a) => `${a.url.search} ${a.headers.get("Accept")}`);
  assert.deepEqual(from, ["?from=0&types=x", "?from=0&types=x", "?from=1&types=x", "?from=3&types=x"].map((q) => `${q} application/x-ndjson`));

  n = 1;
  const changed = await inNoTime(async () => {
    const list: number[] = [];
    for await (const e of client.events("s")) {
      list.push(e.seq);
      life = "J";
    }
    return list;
  });
  assert.ok(changed.error instanceof NetworkError);
});

test("a signal ends the reading of events, between two of them and within one", async () => {
  const reason = new Error("enough");
  for (const text of ["", '{"type":"x","seq":0,"time":0,"data":null}\n{"type"']) {
    const aborter = new AbortController();
    const { client } = faked(({ url, signal }) => (url.pathname.endsWith("/events") ? said(text, "is silent", signal) : json(session)));
    const { value } = await inNoTime(() => {
      setTimeout(() => aborter.abort(reason), 20);
      return all(client.events("s", { signal: aborter.signal }));
    });
    assert.equal(value?.error, reason);
  }
});

test("as many events are given as were asked for", async () => {
  const lines = Array.from({ length: 5 }, (_, seq) => JSON.stringify({ type: "x", seq, time: 0, data: null })).join("\n") + "\n";
  const { client, asked } = faked(({ url }) => (url.pathname.endsWith("/events") ? said(lines, "ends") : json(session)));
  assert.equal((await all(client.events("s", { limit: 2 }))).list.length, 2);
  assert.equal(asked.at(-1)?.url.search, "?from=0&limit=2");
  assert.equal((await all(client.events("s", { limit: 2000 }))).list.length, 5);
  assert.equal(asked.at(-1)?.url.search, "?from=0");
  for (const limit of [-1, -0.5, 1.5, NaN]) {
    await all(client.events("s", { limit }));
    assert.equal(asked.at(-1)?.url.search, `?from=0&limit=${limit}`, "it is the server's to refuse");
  }
});

test("lines that make no sense, or have no end within the bound, end a reading", async () => {
  for (const text of ["5\n", "{\n", '{"type":"x"}\n', `{"${"x".repeat(200)}`]) {
    const { client } = faked(({ url }) => (url.pathname.endsWith("/events") ? said(text, "ends") : json(session)), { maxFrameBytes: 100 });
    assert.ok((await all(client.events("s"))).error instanceof AnswerError, text);
  }
});

test("what takes long says how far it is, and its last line is the answer", async () => {
  const report = { logs: 1, events: 2, rows: 3, problems: [], more: 0 };
  const steps: unknown[] = [];
  const check = (lines: unknown[]): Promise<unknown> => {
    const text = lines.map((l) => `${JSON.stringify(l)}\n`).join("");
    return faked(() => said(text, "ends")).client.checkStore({ onProgress: (done, total) => steps.push([done, total]) });
  };
  assert.deepEqual(await check([{ done: 1, total: 2 }, { report }]), report);
  assert.deepEqual(steps, [[1, 2]]);
  await assert.rejects(check([{ done: 1, total: 2 }]), AnswerError);
  await assert.rejects(check([{ problem: { status: 507, code: "disk-full", detail: "d" } }]), (e) => e instanceof FoldhostError && e.code === "disk-full" && e.status === 507);
  await assert.rejects(faked(() => said('{"backup":{}', "ends")).client.backupStore("/x"), NetworkError);
});

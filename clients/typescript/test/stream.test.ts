import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { mock, test, type TestContext } from "node:test";

import { AnswerError, Client, FoldhostError, fromStart, NetworkError, Store, type Frame, type StreamOptions } from "../src/index.js";
import { all, baseline, broken, dice, encode, event, faked, frame, inNoTime, json, problem, refused, said, settle, subscribed } from "./kit.js";

const brief = (f: Frame): string => `${f.sessionId} ${f.type.slice("session/".length)}${"position" in f ? ` ${f.position}` : ""}`;

test("frames come as they were sent, with what they say", async () => {
  const text =
    subscribed() +
    frame("session/reset", { reason: "unknown" }) +
    event(5) +
    ": a comment\n\n" +
    frame("session/new-in-another-version", { x: 1 }, "I:9") +
    baseline(5, { a: 1 }) +
    frame("session/projection", { key: "a", value: null, seq: 6, rev: 1 }) +
    frame("session/projection-unavailable", { key: "a", code: "faulted", seq: 6, message: "m", rev: 1 }) +
    frame("session/projection-removed", { key: "a", rev: 1 }) +
    frame("session/deleted", {});
  const { client, asked } = faked(() => said(text, "ends"), { token: "T" });
  const { list, error } = await all(client.stream("s", { after: 4, keys: ["a", "b"], events: [] }));
  assert.equal(error, undefined);
  assert.deepEqual(list, [
    { type: "session/subscribed", sessionId: "s", lastSeq: 4, incarnation: "I", epoch: "e.1", heartbeatMs: 1000 },
    { type: "session/reset", sessionId: "s", reason: "unknown" },
    { type: "session/event", sessionId: "s", event: { type: "x", seq: 5, time: 0, data: null }, position: "I:5" },
    { type: "session/baseline", sessionId: "s", epoch: "e.1", gen: 1, asOfSeq: 5, values: { a: 1 }, revs: { a: 1 }, position: "I:5" },
    { type: "session/projection", sessionId: "s", key: "a", value: null, seq: 6, rev: 1 },
    { type: "session/projection-unavailable", sessionId: "s", key: "a", code: "faulted", seq: 6, message: "m", rev: 1 },
    { type: "session/projection-removed", sessionId: "s", key: "a", rev: 1 },
    { type: "session/deleted", sessionId: "s" },
  ]);
  assert.equal(list[2]?.json, '{"type":"session/event","sessionId":"s","event":{"type":"x","seq":5,"time":0,"data":null}}');
  const [one] = asked;
  assert.equal(one?.url.href, "http://x/v1/sessions/s/stream?after=4&events=none&keys=a%2Cb");
  assert.equal(one?.headers.get("Accept"), "text/event-stream");
  assert.equal(one?.headers.get("Authorization"), "Bearer T");
});

const goesOn: Record<string, [after: string | number | undefined, said: string, on: string | null]> = {
  "nothing said, from now on": [undefined, "", null],
  "subscribed, from now on": [undefined, subscribed(), "I:4"],
  "subscribed, from the start": [fromStart, subscribed(), "I:-1"],
  "subscribed, from a seq": [2, subscribed(), "I:2"],
  "subscribed, from a place": ["J:2", subscribed(), "J:2"],
  "an event": ["-1", subscribed() + event(0), "I:0"],
  "an event that has no end": ["-1", subscribed() + event(0) + event(1).slice(0, -1), "I:0"],
  "a baseline": ["-1", subscribed() + event(0) + baseline(6), "I:6"],
  "a reset and a baseline": ["J:9", subscribed() + frame("session/reset", { reason: "incarnation" }) + baseline(4), "I:4"],
  "kinds and fields of another version": ["-1", subscribed() + event(0) + "event: session/new\nid: I:9\ndata: {}\n\nretry: 5\nodd\n\n: comment\n\n", "I:0"],
};

for (const [name, [after, text, on]] of Object.entries(goesOn)) {
  for (const way of ["ends", "breaks"] as const) {
    test(`where a stream goes on: ${name}, when the connection ${way}`, async () => {
      const { client, asked } = faked((_, n) => {
        if (n > 0) throw broken();
        return said(text, way);
      });
      const { value } = await inNoTime(() => all(client.stream("s", { after, tries: 2 })));
      assert.ok(value?.error instanceof NetworkError);
      assert.deepEqual(asked.slice(0, 2).map((a) => a.url.searchParams.get("after")), [after === undefined ? null : String(after), on]);
    });
  }
}

test("positions of many sessions are those of each, and only those go on that are followed still", async () => {
  const of = (sessionId: string): Record<string, unknown> => ({ sessionId });
  const texts = [
    subscribed(of("a")) + subscribed({ ...of("b"), incarnation: "B", lastSeq: 7 }) + subscribed(of("gone")) + frame("session/unknown", of("none")) +
      frame("session/event", { ...of("b"), event: { type: "x", seq: 8, time: 0, data: null } }, "store:99") + baseline(4, {}, of("a")) + frame("session/deleted", of("gone")) + event(9, of("stranger")),
    subscribed({ ...of("b"), incarnation: "B" }) + frame("session/unknown", of("a")) + baseline(8, {}, of("b")) + frame("session/deleted", of("b")),
  ];
  const { client, asked } = faked((_, n) => said(texts[n] ?? "", "ends"));
  const { value } = await inNoTime(() => all(client.follow(["a", { id: "b", after: "B:3" }, "gone", "none"], { after: fromStart, events: [], keys: ["k"] })));
  assert.equal(value?.error, undefined);
  assert.deepEqual(value?.list.map(brief), [
    "a subscribed", "b subscribed", "gone subscribed", "none unknown", "b event B:8", "a baseline I:4", "gone deleted",
    "b subscribed", "a deleted", "b baseline B:8", "b deleted",
  ]);
  assert.deepEqual(asked.map((a) => `${a.method} ${a.url.pathname} ${a.body}`), [
    'POST /v1/stream {"sessions":[{"id":"a","after":"-1"},{"id":"b","after":"B:3"},{"id":"gone","after":"-1"},{"id":"none","after":"-1"}],"events":[],"keys":["k"]}',
    'POST /v1/stream {"sessions":[{"id":"a","after":"I:4"},{"id":"b","after":"B:8"}],"events":[],"keys":["k"]}',
  ]);
});

const nonsense: Record<string, string> = {
  "no JSON": "event: session/event\ndata: {\n\n",
  "no object": "event: session/event\ndata: 5\n\n",
  "no event": frame("session/event", { event: 5 }),
  "an event without a seq": frame("session/event", { event: { type: "x" } }),
  "a subscription without an incarnation": frame("session/subscribed", { lastSeq: 1, incarnation: "", epoch: "", heartbeatMs: 1 }),
  "a baseline without values": frame("session/baseline", { epoch: "e.1", gen: 1, asOfSeq: 1 }),
  "an endless frame": `event: session/event\n${"data: xxxxxxxxx\n".repeat(100)}`,
  "an endless line": `data: ${"x".repeat(1000)}`,
};

for (const [name, text] of Object.entries(nonsense)) {
  test(`what makes no sense ends a stream, since it would come again: ${name}`, async () => {
    const { client, asked } = faked(() => said(subscribed() + text, "ends"), { maxFrameBytes: 500 });
    const { list, error } = await all(client.stream("s"));
    assert.ok(error instanceof AnswerError, String(error));
    assert.deepEqual([list.length, asked.length], [1, 1]);
  });
}

test("whatever comes as a stream, it gives frames that are whole, and ends with an error of this package", async () => {
  const pieces = [subscribed(), event(5), baseline(5, { a: 1 }), frame("session/projection", { key: "a", value: 1, seq: 5, rev: 1 }), frame("session/deleted", {}), "event: session/event\n", "data: {}\n\n", "\n", "{", "null", "\"seq\":", "é"];
  const seed = Math.floor(Math.random() * 2 ** 31);
  for (let i = 0; i < 300; i++) {
    const roll = dice(seed + i);
    let text = Array.from({ length: Math.floor(roll() * 8) }, () => pieces[Math.floor(roll() * pieces.length)]).join("");
    for (let n = Math.floor(roll() * 4); n > 0; n--) {
      // A part is taken out, or comes twice.
      const [from, to] = [Math.floor(roll() * text.length), Math.floor(roll() * text.length)];
      text = text.slice(0, from) + text.slice(to);
    }
    const { list, error } = await all(faked(() => said(text, "ends")).client.stream("s", { tries: 1 }));
    const end = list.at(-1)?.type === "session/deleted" ? error === undefined : error instanceof NetworkError || error instanceof AnswerError;
    assert.ok(end, `seed ${seed + i}: ${String(error)} of ${text}`);
    const store = new Store();
    for (const f of list) store.take(f);
  }
});

test("a stream is tried as often as a call until there was one, and then without end", async () => {
  const waits: number[] = [];
  const onBroken: StreamOptions["onBroken"] = (err, wait) => {
    assert.ok(err instanceof NetworkError);
    waits.push(wait);
  };
  const never = faked(() => { throw broken(); }, { tries: 4 });
  assert.ok((await inNoTime(() => all(never.client.stream("s", { onBroken })))).value?.error instanceof NetworkError);
  assert.deepEqual([never.asked.length, waits.length], [4, 3]);

  waits.length = 0;
  const once = faked((_, n) => {
    if (n === 0) return said(subscribed() + baseline(4), "breaks");
    if (n === 50) return problem(403, { code: "forbidden", detail: "d" });
    throw broken();
  }, { tries: 4 });
  const { value } = await inNoTime(() => all(once.client.stream("s", { onBroken })));
  assert.ok(value?.error instanceof FoldhostError);
  assert.equal(waits.length, 50);
  for (const [i, wait] of waits.entries()) {
    const most = Math.min(5000, 100 * 2 ** Math.min(i, 10));
    assert.ok(wait >= most / 2 && wait <= most, `wait ${i} is ${wait}`);
  }
});

test("a connection that came further begins the waits anew, one that only subscribed does not", async () => {
  const waits: number[] = [];
  const { client } = faked((_, n) => said(subscribed() + (n % 4 === 3 ? event(n) : ""), "ends"));
  await inNoTime(async () => {
    for await (const _ of client.stream("s", { tries: 5, onBroken: (_, wait) => void waits.push(wait) })) {
      if (waits.length === 12) break;
    }
  });
  assert.equal(waits.length, 12);
  for (const [i, wait] of waits.entries()) {
    const most = i < 3 ? 100 * 2 ** i : 100 * 2 ** ((i - 3) % 4);
    assert.ok(wait >= most / 2 && wait <= most, `wait ${i} is ${wait}`);
  }
});

test("an error that would come again ends a stream; a session that is gone since is a frame", async () => {
  const gone = (): Response => problem(404, { code: "session-not-found", detail: "d" });
  const first = await all(faked(gone).client.stream("s"));
  assert.ok(first.error instanceof FoldhostError && first.error.code === "session-not-found");
  const { value } = await inNoTime(() => all(faked((_, n) => (n === 0 ? said(subscribed(), "ends") : gone())).client.stream("s")));
  assert.deepEqual([value?.list.map(brief), value?.error], [["s subscribed", "s deleted"], undefined]);
  assert.equal(value?.list[1]?.json, '{"type":"session/deleted","sessionId":"s"}');
});

test("a connection on which not even heartbeats come is given up, and a reader that takes its time is no reason", async () => {
  const { client, asked } = faked(({ signal }) => said(subscribed() + baseline(4), "is silent", signal));
  const breaks: number[] = [];
  const { error, ms } = await inNoTime(async (now) => {
    let frames = 0;
    for await (const f of client.stream("s", { onBroken: (err) => { breaks.push(now()); assert.ok(err instanceof NetworkError); } })) {
      // It has all the time in the world.
      if (frames++ === 1) await new Promise((resolve) => setTimeout(resolve, 600_000));
      if (frames === 4) throw new Error(f.type);
    }
  });
  assert.equal((error as Error).message, "session/baseline");
  assert.equal(breaks.length, 1);
  // Twice the heartbeat and five seconds after it was read.
  assert.ok(breaks[0] !== undefined && breaks[0] >= 606_900 && breaks[0] <= 607_100, String(breaks));
  assert.ok(ms < 607_300);
  assert.equal(asked.length, 2);
});

test("heartbeats keep a connection, and a server that says nothing at first is given up too", async () => {
  let beats = 0;
  const beating = faked(({ signal }) => {
    const body = new ReadableStream<Uint8Array>({
      start: (c) => c.enqueue(encode(subscribed())),
      pull: (c) => new Promise<void>((resolve) => setTimeout(() => {
        if (beats++ < 20) c.enqueue(encode(": \n\n"));
        else c.error(broken());
        resolve();
      }, 6000)),
    }, { highWaterMark: 0 });
    signal?.addEventListener("abort", () => assert.ok(beats > 20, "it was given up"));
    return new Response(body);
  });
  await inNoTime(() => all(beating.client.stream("s", { tries: 1 })));
  assert.equal(beats, 21);

  const silent = await inNoTime(() => all(faked(({ signal }) => said("", "is silent", signal)).client.stream("s", { tries: 1 })));
  assert.ok(silent.value?.error instanceof NetworkError);
  assert.equal(silent.ms, 10_000);
});

test("a program that is held up for long reads what came meanwhile before it judges", async () => {
  let more: ReadableStreamDefaultController<Uint8Array> | undefined;
  const { client } = faked(({ signal }) => new Response(new ReadableStream({
    start: (c) => {
      (more = c).enqueue(encode(subscribed()));
      signal?.addEventListener("abort", () => c.error(signal.reason));
    },
  })));
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const frames = client.stream("s", { tries: 1 });
    await frames.next();
    const next = frames.next();
    await settle();
    mock.timers.tick(3_600_000); // All at once: timers that are due run before what came is seen.
    more?.enqueue(encode(event(5)));
    assert.equal((await next).value?.type, "session/event");
    const silent = frames.next();
    for (let i = 0; i < 4; i++) {
      await settle();
      mock.timers.tick(3_600_000);
    }
    await assert.rejects(silent, NetworkError);
  } finally {
    mock.timers.reset();
  }
});

test("a signal ends a stream at once, whatever it waits for, with its reason; leaving the loop ends the connection", async () => {
  const reason = new Error("enough");
  for (const [name, first] of Object.entries({ "an answer": "", "a frame": subscribed(), "another try": "break" })) {
    const aborter = new AbortController();
    const { client, asked } = faked(({ signal }) => {
      if (first === "break") throw broken();
      return said(first, "is silent", signal);
    });
    const { value, ms } = await inNoTime(() => {
      setTimeout(() => aborter.abort(reason), 20);
      return all(client.stream("s", { signal: aborter.signal }));
    });
    assert.equal(value?.error, reason, name);
    assert.equal(asked[0]?.signal?.aborted, true, name);
    assert.ok(ms <= 30, name);
  }
  const { client, asked } = faked(({ signal }) => said(subscribed() + event(5), "is silent", signal));
  for await (const f of client.stream("s")) {
    if (f.type === "session/event") break;
  }
  assert.equal(asked[0]?.signal?.aborted, true);
  assert.equal((await all(client.stream("s", { signal: AbortSignal.abort(reason) }))).error, reason);
});

test("a signal that lives long is let go of, by streams, what is tracked, and waiting", async () => {
  const { signal } = new AbortController();
  const { client } = faked((_, n) => said(subscribed() + baseline(4) + (n % 3 === 2 ? frame("session/deleted", {}) : ""), "ends"));
  await inNoTime(async () => {
    await all(client.stream("s", { signal }));
    await client.track("s", { signal }).done;
  });
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a frame is what its kind says, also where its data does not", async () => {
  const { list } = await all(faked(() => said('event: session/deleted\ndata: {"sessionId":"s"}\n\n', "ends")).client.stream("s"));
  assert.deepEqual(list, [{ type: "session/deleted", sessionId: "s" }]);
});

/** A server that keeps a log of events of one session and cuts every connection after some bytes. It remembers positions as a host does. */
async function cutting(t: TestContext, roll: () => number): Promise<{ url: string; append: () => void; cuts: () => number; values: () => Record<string, number> }> {
  const log: number[] = [];
  const listening = new Set<() => void>();
  let cuts = 0;
  const values = (seq: number): Record<string, number> => ({ count: seq + 1 });
  const server: Server = createServer((req, res: ServerResponse) => {
    const after = new URL(req.url ?? "", "http://x").searchParams.get("after");
    let at = after === null ? log.length : Number(after.split(":").at(-1)) + 1;
    let left = 150 + Math.floor(roll() * 2000);
    const send = (text: string): boolean => {
      const bytes = encode(text);
      res.write(bytes.subarray(0, left));
      left -= bytes.length;
      if (left > 0) return true;
      cuts++;
      listening.delete(wake);
      // Once it is written, so that what was acknowledged by TCP is cut anywhere, in the middle of characters too.
      res.write("", () => (res.socket as Socket).destroy());
      return false;
    };
    const wake = (): void => {
      for (; at < log.length; at++) {
        if (!send(event(at, { about: "é€😀".repeat(3) }))) return;
        if (!send(frame("session/projection", { key: "count", value: at + 1, seq: at, rev: 1 }))) return;
      }
    };
    res.writeHead(200, { "Content-Type": "text/event-stream" });
    if (!send(subscribed({ lastSeq: log.length - 1 }))) return;
    for (const end = log.length; at < end; at++) if (!send(event(at, { about: "é€😀" }))) return;
    if (!send(baseline(log.length - 1, values(log.length - 1)))) return;
    listening.add(wake);
    res.on("close", () => listening.delete(wake));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    append: () => { log.push(log.length); for (const wake of [...listening]) wake(); },
    cuts: () => cuts,
    values: () => values(log.length - 1),
  };
}

test("given a network that cuts every connection anywhere, every event comes once and in order, and the store ends with the latest", async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  t.diagnostic(`seed ${seed}`);
  const server = await cutting(t, dice(seed));
  const total = 60;
  for (let i = 0; i < total / 2; i++) server.append();
  const client = new Client({ url: server.url });
  const store = new Store();
  const seqs: number[] = [];
  let breaks = 0;
  for await (const f of client.stream("s", { after: fromStart, onBroken: () => void breaks++ })) {
    store.take(f);
    if (f.type === "session/projection") assert.ok(f.seq < seqs.length, "a value before its event");
    if (f.type === "session/event") {
      seqs.push(f.event.seq);
      if (seqs.length >= total / 2 && seqs.length < total) server.append();
    }
    if (seqs.length >= total && store.value("count") === total) break;
  }
  assert.deepEqual(seqs, Array.from({ length: total }, (_, i) => i));
  assert.deepEqual({ ...store.values() }, server.values());
  assert.ok(breaks >= 2 && server.cuts() >= breaks, `${breaks} breaks of ${server.cuts()}`);
});

test("what is tracked has its values, says how it stands, and ends", async () => {
  const texts = [subscribed() + baseline(4, { a: 1, b: 1 }), subscribed() + baseline(5, { a: 2, b: 1 }) + frame("session/deleted", {})];
  const { client, asked } = faked((_, n) => said(texts[n] ?? "", "ends"));
  const states: string[] = [];
  const { value: tracked } = await inNoTime(async () => {
    const one = client.track("s", { onFrame: (f) => states.push(`${f.type} ${JSON.stringify(one.store.values())}`) });
    one.onState((state) => states.push(state));
    assert.equal(one.state, "connecting");
    await one.ready;
    await one.done;
    return one;
  });
  assert.deepEqual(states, [
    "session/subscribed {}", "live", 'session/baseline {"a":1,"b":1}', "broken",
    'session/subscribed {"a":1,"b":1}', "live", 'session/baseline {"a":2,"b":1}', "session/deleted {}", "deleted",
  ]);
  assert.equal(tracked?.state, "deleted");
  assert.deepEqual(asked.map((a) => a.url.search), ["?events=none", "?after=I%3A4&events=none"]);
});

test("what is tracked can be closed, by itself or by a signal, and says why it fails", async () => {
  const silent = (): Client => faked(({ signal }) => said(subscribed() + baseline(4, { a: 1 }), "is silent", signal)).client;
  const aborter = new AbortController();
  for (const [options, end] of [[{}, "close"], [{ signal: aborter.signal }, "abort"], [{ signal: aborter.signal }, "aborted before"]] as const) {
    const one = silent().track("s", options);
    if (end !== "aborted before") {
      await one.ready;
      assert.equal(one.state, "live");
    } else {
      await assert.rejects(one.ready, { name: "AbortError" });
    }
    if (end === "close") one.close();
    else aborter.abort();
    await one.done;
    assert.deepEqual([one.state, one.error], ["closed", undefined]);
    assert.equal(one.store.value("a"), end === "aborted before" ? undefined : 1);
  }
  const failing = faked(() => problem(401, { code: "unauthenticated", detail: "d" })).client.track("s");
  await assert.rejects(failing.ready, FoldhostError);
  assert.ok(failing.state === "failed" && failing.error instanceof FoldhostError);
  const unknown = faked(() => problem(404, { code: "session-not-found", detail: "d" })).client.track("s");
  await unknown.done;
  assert.equal(unknown.state, "unknown");
});

test("what is tracked waits for a server that is not there yet, and says so, unless it is to give up", async () => {
  const heard: string[] = [];
  await inNoTime(async () => {
    const { client } = faked(({ signal }, n) => {
      if (n < 20) throw refused();
      return said(subscribed() + baseline(4, { a: 1 }), "is silent", signal);
    });
    const one = client.track("s");
    one.onState((state) => heard.push(`${state} ${one.error instanceof NetworkError}`));
    await one.ready;
    one.close();
    await one.done;
    const given = faked(() => { throw refused(); }).client.track("s", { tries: 3 });
    await assert.rejects(given.ready, NetworkError);
    assert.equal(given.state, "failed");
  });
  assert.deepEqual([heard.slice(0, -2).every((x) => x === "connecting true"), heard.length > 18, heard.slice(-2)], [true, true, ["live false", "closed false"]]);
});

test("the store of chosen keys takes only what it was sent for a part", async () => {
  const { client } = faked(({ signal }) => said(subscribed() + baseline(5, { a: 2 }), "is silent", signal));
  const store = new Store();
  store.seed({ epoch: "e.1", gen: 1, asOfSeq: 4, values: { a: 1, b: 1 }, revs: { a: 1, b: 1 } });
  const one = client.track("s", { keys: ["a"], store });
  await one.ready;
  assert.deepEqual({ ...store.values() }, { a: 2, b: 1 });
  one.close();
  await one.done;
});

test("many are tracked on one connection, and it ends with the last", async () => {
  const { client, asked } = faked(({ signal }) =>
    said(subscribed({ sessionId: "a" }) + subscribed({ sessionId: "b" }) + frame("session/unknown", { sessionId: "c" }) + baseline(4, { k: "a" }, { sessionId: "a" }) + baseline(4, { k: "b" }, { sessionId: "b" }), "is silent", signal));
  const set = client.trackAll(["a", "b", "c", "a"]);
  const [a, b, c] = ["a", "b", "c"].map((id) => set.sessions.get(id));
  assert.ok(a && b && c);
  await Promise.all([a.ready, b.ready, c.done]);
  assert.deepEqual([a.store.value("k"), b.store.value("k"), c.state], ["a", "b", "unknown"]);
  a.close();
  assert.deepEqual([a.state, b.state, asked[0]?.signal?.aborted], ["closed", "live", false]);
  b.close();
  await set.done;
  assert.equal(asked[0]?.signal?.aborted, true);
  assert.deepEqual(JSON.parse(asked[0]?.body ?? "").sessions.length, 3);
});

test("a session that the server cannot read keeps its values, is broken until it can, and the others go on", async () => {
  const of = (sessionId: string): Record<string, unknown> => ({ sessionId });
  const first = subscribed(of("a")) + subscribed(of("b")) + baseline(4, { k: 1 }, of("a")) + baseline(4, { k: 1 }, of("b"));
  const later = frame("session/projection", { ...of("a"), key: "k", value: 2, seq: 5, rev: 1 }) + frame("session/reset", { ...of("a"), reason: "damaged" }) +
    frame("session/projection", { ...of("b"), key: "k", value: 2, seq: 5, rev: 1 });
  const second = subscribed({ ...of("a"), lastSeq: 6 }) + baseline(6, { k: 3 }, of("a")) + frame("session/deleted", of("a")) + frame("session/deleted", of("b"));
  const { client } = faked((_, n) => said(n === 0 ? first + later : second, "ends"));
  const seen: string[] = [];
  const set = client.trackAll(["a", "b"], { onFrame: (f) => seen.push(`${brief(f)}: ${["a", "b"].map((id) => `${set.sessions.get(id)?.state} ${String(set.sessions.get(id)?.store.value("k"))}`).join(", ")}`) });
  await inNoTime(() => set.done);
  assert.deepEqual(seen.slice(3, 9), [
    "b baseline I:4: live 1, live 1", "a projection: live 2, live 1", "a reset: broken 2, live 1", "b projection: broken 2, live 2", "a subscribed: broken 2, broken 2", "a baseline I:6: live 3, broken 2",
  ]);
});

test("a page is told what pages are not told", async () => {
  const there = globalThis as { location?: { origin: string } };
  there.location = { origin: "http://page.example" };
  try {
    const { client } = faked(() => { throw new TypeError("Failed to fetch"); }, { tries: 1 });
    await assert.rejects(client.get("s"), /http:\/\/page\.example one of its allowedOrigins/);
  } finally {
    delete there.location;
  }
  await assert.rejects(faked(() => json(1)).client.get("s"), AnswerError);
});

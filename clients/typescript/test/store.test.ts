import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { Store, type Block, type Frame } from "../src/index.js";
import { random, settle } from "./kit.js";
import { play, type Vectors } from "./vectors.js";

// One file for the stores of all languages, which is that of the Go client.
const vectors = JSON.parse(await readFile(new URL("../../../../client/testdata/store-vectors.json", import.meta.url), "utf8")) as Vectors;

test("there are vectors", () => assert.ok(vectors.cases.length >= 20));

for (const one of vectors.cases) {
  test(`vectors: ${one.name}`, async () => assert.deepEqual(await play(new Store(), one), []));
}

test("whatever the order in which the same updates come, and however often, the store ends with the newest of each key", () => {
  random(300, (roll) => {
    const pick = <T>(...from: T[]): T => from[Math.floor(roll() * from.length)] as T;
    const updates = Array.from({ length: 1 + Math.floor(roll() * 12) }, () => {
      const u = { epoch: pick("s.1", "s.2", "s.10"), key: pick("a", "b"), rev: pick(1, 2), seq: pick(0, 1, 2, 3) };
      // The value is one of its rank, as it is of a host.
      return { ...u, value: `${u.epoch} ${u.rev} ${u.seq}` };
    });
    const after = (list: typeof updates): unknown => {
      const s = new Store();
      for (const u of list) s.apply(u.epoch, u.key, u.value, u.seq, u.rev);
      return { ...s.values() };
    };
    const shuffled = updates.map((u) => ({ u, at: roll() })).sort((a, b) => a.at - b.at).map(({ u }) => u);
    assert.deepEqual(after([...shuffled, ...updates]), after(updates));
  });
});

const block = (asOfSeq: number, values: Record<string, unknown>, more: Partial<Block> = {}): Block => ({
  epoch: "s.1",
  gen: 1,
  asOfSeq,
  values,
  revs: Object.fromEntries(Object.keys(values).map((key) => [key, 1])),
  ...more,
});

test("listeners are told once of everything that changed until then, those of a key of theirs, and nobody of what was dropped", async () => {
  const s = new Store();
  const told: unknown[] = [];
  s.onChange((keys) => told.push(keys));
  const stop = s.subscribe("a", () => told.push("a"));
  s.subscribe("c", () => told.push("c"));
  s.apply("s.1", "b", 1, 1, 1);
  s.apply("s.1", "a", 1, 1, 1);
  s.apply("s.1", "b", 2, 2, 1);
  assert.deepEqual(told, []);
  await settle();
  assert.deepEqual(told.splice(0), [["a", "b"], "a"]);
  s.apply("s.1", "b", 2, 2, 1);
  await settle();
  assert.deepEqual(told, []);
  stop();
  stop();
  s.apply("s.1", "a", 3, 3, 1);
  await settle();
  assert.deepEqual(told, [["a"]]);
});

test("a function that listens twice is called twice, and each end ends one", async () => {
  const s = new Store();
  let calls = 0;
  const f = (): void => void calls++;
  const stop = s.subscribe("a", f);
  s.subscribe("a", f);
  s.apply("s.1", "a", 1, 1, 1);
  await settle();
  stop();
  s.apply("s.1", "a", 2, 2, 1);
  await settle();
  assert.equal(calls, 3);
});

test("a listener that ends another, or adds one, does not disturb the telling", async () => {
  const s = new Store();
  const told: string[] = [];
  s.subscribe("a", () => {
    told.push("first");
    s.subscribe("a", () => told.push("late"));
    s.apply("s.1", "b", 1, 1, 1);
  });
  s.subscribe("b", () => told.push("b"));
  s.apply("s.1", "a", 1, 1, 1);
  await settle();
  assert.deepEqual(told, ["first", "b"]);
});

test("a face is the same each time, shows the latest at once, and needs no this", () => {
  const s = new Store();
  const { value, entry, subscribe } = s.face<number>("a");
  assert.equal(s.face("a").value, value);
  assert.equal(value(), undefined);
  assert.equal(entry(), undefined);
  subscribe(() => undefined)();
  s.apply("s.1", "a", 1, 7, 1);
  assert.equal(value(), 1);
  assert.equal(entry(), s.get("a"));
  assert.deepEqual(entry(), { value: 1, seq: 7, rev: 1, stale: false, why: undefined });
});

test("a value that is equal to the one before is the same object", () => {
  const s = new Store();
  s.seed(block(1, { a: { list: [1, { x: null }], n: 1 }, b: [1] }));
  const { a, b } = s.values();
  s.seed(block(2, { a: { n: 1, list: [1, { x: null }] }, b: [2] }));
  assert.equal(s.value("a"), a);
  assert.notEqual(s.value("b"), b);
  s.seed(block(2, { a: { n: 1, list: [1, { x: null }] }, b: [2] }, { epoch: "s.2" }));
  assert.equal(s.value("a"), a);
});

test("keys that JavaScript has names of are keys like others", () => {
  const s = new Store();
  assert.equal(s.values()["constructor"], undefined);
  s.seed(JSON.parse('{"epoch":"s.1","gen":1,"asOfSeq":1,"values":{"__proto__":{"x":1},"toString":2},"revs":{"__proto__":1,"toString":1}}') as Block);
  assert.deepEqual(Object.keys(s.values()), ["__proto__", "toString"]);
  for (const [seq, text] of ['{"__proto__":{}}', '{"x":{}}', '{"__proto__":{}}'].entries()) {
    s.apply("s.1", "a", JSON.parse(text), seq, 1);
    assert.equal(JSON.stringify(s.value("a")), text);
  }
  s.seed(block(3, {}));
  assert.deepEqual(Object.keys(s.values()), []);
});

test("a store takes what frames say", async () => {
  const s = new Store();
  const take = (type: string, fields: object): void => s.take({ type, sessionId: "s", json: "", ...fields } as Frame);
  take("session/subscribed", { lastSeq: 1, incarnation: "I", epoch: "s.1", heartbeatMs: 1 });
  take("session/baseline", { ...block(1, { a: 1, b: 1 }), position: "I:1" });
  take("session/event", { event: { type: "x", seq: 2, time: 0, data: null }, position: "I:2" });
  take("session/projection", { key: "a", value: 2, seq: 2, rev: 1 });
  take("session/projection-unavailable", { key: "b", code: "faulted", seq: 2, message: "m", rev: 1 });
  assert.deepEqual({ ...s.values() }, { a: 2, b: 1 });
  assert.deepEqual(s.get("b"), { value: 1, seq: 1, rev: 1, stale: true, why: { code: "faulted", seq: 2, message: "m" } });
  take("session/projection-removed", { key: "a", rev: 1 });
  assert.deepEqual({ ...s.values() }, { b: 1 });
  take("session/reset", { reason: "beyond-end" });
  assert.deepEqual({ ...s.values() }, { b: 1 });
  take("session/reset", { reason: "damaged" });
  assert.deepEqual({ ...s.values() }, { b: 1 });
  take("session/reset", { reason: "incarnation" });
  assert.deepEqual({ ...s.values() }, {});
  take("session/projection", { key: "a", value: 2, seq: 1, rev: 1 });
  assert.deepEqual({ ...s.values() }, { a: 2 });
  take("session/unknown", {});
  take("session/deleted", {});
  assert.deepEqual({ ...s.values() }, {});
  await settle();
});

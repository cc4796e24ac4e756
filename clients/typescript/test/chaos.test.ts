// The program that chaos tests run, in a little chaos.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { cutting, Host } from "./host.js";
import { dice } from "./kit.js";

interface Report {
  ok: boolean;
  sessions: Record<string, { complete: boolean; events: number; lastSeq: number; gaps: unknown[]; connections: number; values: Record<string, unknown>; end?: string }>;
}

/** Runs the program. end says what is to be waited for, and gives what it says and its exit code. */
async function run(args: string[]): Promise<{ ready: Promise<unknown>; end: (wanted: object) => Promise<[Report, number]> }> {
  const p = spawn(process.execPath, [fileURLToPath(new URL("../../test/chaos-client.mjs", import.meta.url)), ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(p, "exit") as Promise<[number]>;
  const lines = createInterface({ input: p.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<unknown> => JSON.parse((await lines.next()).value as string);
  const ready = next();
  return {
    ready,
    end: async (wanted) => {
      p.stdin.write(`end ${JSON.stringify(wanted)}\n`);
      await ready;
      return [(await next()) as Report, (await exited)[0]];
    },
  };
}

test("given hosts that are killed and networks that are cut, the chaos client has every event once, and the values", async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  t.diagnostic(`seed ${seed}`);
  const roll = dice(seed);
  const host = await Host.start(t);
  const c = host.client();
  const ids = ["a", "b", "c"];
  for (const id of ids) await c.create({ id });
  const proxies = [await cutting(t, host.url, () => 3000 + Math.floor(roll() * 3000)), await cutting(t, host.url, () => Infinity)];
  const programs = [await run([proxies.map((p) => p.url).join(","), ...ids]), await run(["--single", proxies[0]?.url ?? "", "a"])];
  await Promise.all(programs.map((p) => p.ready));
  const append = async (n: number): Promise<void> => {
    for (const id of ids) await c.append(id, [{ type: "session/title", data: { title: `${id} ${n}` } }, { type: "todo/write", data: { todos: [] } }]);
  };
  for (let n = 0; n < 10; n++) await append(n);
  await host.kill();
  await host.again();
  for (let n = 10; n < 20; n++) await append(n);
  await host.ready();
  const wanted: Record<string, object> = {};
  for (const id of ids) {
    const { values } = await c.projections(id, { minSeq: 39, waitMs: 10_000 });
    wanted[id] = { seq: 39, values };
  }
  const [[many, code], [single]] = await Promise.all([programs[0]?.end(wanted), programs[1]?.end({ a: wanted["a"] })]) as [[Report, number], [Report, number]];
  assert.deepEqual([many.ok, code, single.ok], [true, 0, true], JSON.stringify([many, single]));
  for (const id of ids) {
    const one = many.sessions[id];
    assert.deepEqual([one?.events, one?.lastSeq, one?.gaps, one?.values["title"]], [40, 39, [], `${id} 19`]);
    assert.ok((one?.connections ?? 0) >= 2);
  }
});

test("what the chaos client does not have in time, it says", async (t) => {
  const host = await Host.start(t);
  const c = host.client();
  await c.create({ id: "a", events: [{ type: "x" }] });
  const p = await run(["--wait", "1", host.url, "a", "none"]);
  await p.ready;
  const [report, code] = await p.end({ a: { seq: 5 } });
  const { a, none } = report.sessions;
  assert.deepEqual([report.ok, code, a?.complete, a?.lastSeq, none?.end], [false, 1, false, 1, "session/unknown"]);
});

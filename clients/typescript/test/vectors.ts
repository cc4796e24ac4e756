// Plays the vectors that the stores of all languages share, in Node and in a browser.
import type { Block, Store } from "../src/index.js";

interface Update {
  epoch: string;
  key: string;
  value?: unknown;
  code: string;
  message: string;
  seq: number;
  rev: number;
}

interface Step {
  connect?: { epoch: string; incarnation: string; lastSeq: number };
  apply?: Update;
  unavailable?: Update;
  remove?: Update;
  seed?: Block;
  partial?: Block;
  changed?: string[];
  want?: Record<string, { value?: unknown; seq: number; rev: number; stale?: boolean }>;
}

export interface Vectors {
  cases: { name: string; steps: Step[] }[];
}

/** Plays one case on a store that is empty. It gives what was not as it should be. */
export async function play(s: Store, one: Vectors["cases"][number]): Promise<string[]> {
  const wrong: string[] = [];
  let told: string[][] = [];
  s.onChange((keys) => told.push(keys));
  for (const [i, step] of one.steps.entries()) {
    const compare = (what: string, got: unknown, want: unknown): void => {
      const [g, w] = [canonical(got), canonical(want)];
      if (g !== w) wrong.push(`${one.name}, step ${i}: ${what} is ${g}, want ${w}`);
    };
    told = [];
    const before = s.values();
    const { connect: c, apply: a, unavailable: u, remove: r } = step;
    if (c) s.connect(c.epoch, c.incarnation, c.lastSeq);
    else if (a) s.apply(a.epoch, a.key, a.value, a.seq, a.rev);
    else if (u) s.unavailable(u.epoch, u.key, { code: u.code, seq: u.seq, message: u.message }, u.rev);
    else if (r) s.remove(r.epoch, r.key, r.rev);
    else if (step.seed) s.seed(step.seed);
    else if (step.partial) s.seedPartial(step.partial);
    else wrong.push(`${one.name}: step ${i} says nothing`);
    await Promise.resolve();
    compare("what listeners were told", told, step.changed === undefined ? [] : [step.changed]);
    compare("whether the values are the same object", s.values() === before, step.changed === undefined);
    if (step.want === undefined) continue;
    const values: Record<string, unknown> = {};
    for (const key of ["a", "b", "c", "d"]) {
      const want = step.want[key];
      const got = s.get(key);
      compare(key, got && { has: got.value !== undefined, value: got.value, seq: got.seq, rev: got.rev, stale: got.stale },
        want && { has: "value" in want, value: want.value, seq: want.seq, rev: want.rev, stale: want.stale ?? false });
      if (want !== undefined && "value" in want) values[key] = want.value;
    }
    compare("all values", s.values(), values);
  }
  return wrong;
}

/** A value as JSON with its fields in order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, v: unknown) =>
    typeof v === "object" && v !== null && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1))) : v,
  ) ?? "undefined";
}

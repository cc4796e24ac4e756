// Follows sessions with this client for as long as it takes, and says what came of it: for tests that kill hosts and cut networks while it runs, in whatever language.
// It needs the client that `npm run build` makes.
//
//   node chaos-client.mjs [--token TOKEN] [--single] [--wait MS] URL[,URL…] SESSION…
//
// The sessions are there already. The first is followed at the first URL, the second at the second, and so on in turn; those of one URL on connections of up to 20 sessions each, with --single each on
// one of its own. Everything is followed from the start of the log, with all events and all values, and never given up.
//
// On standard output it writes a line {"ready":true} once it has had a baseline of every session, or its end. On standard input it takes one line:
//
//   end {"SESSION": {"seq": N, "values": {KEY: VALUE…}}…}
//
// By that it waits until it has the event N of each of these sessions (seq is −1 for an empty log), and, where values are given, until it has exactly these values, none of them stale. It waits MS
// milliseconds, 30,000 without --wait, and then takes what it has. Then it writes a last line, and ends; with 0 if all sessions are complete and flawless, else with 1:
//
//   {"ok": BOOL, "sessions": {"SESSION": {
//     "complete": BOOL,           it has what was to be waited for
//     "events": N, "lastSeq": N,  how many events came, and the seq of the last one, −1 for none
//     "gaps": [{"want", "got"}…], places where another seq came than the next one: a gap, or an event that came twice
//     "early": [{"key","seq"}…],  values that came before the event of their seq
//     "resets": ["REASON"…],      resets, after which events are counted anew
//     "connections": N,           how often it was subscribed, and
//     "asOfSeq": N, "epoch": "…", what the last baseline was as of
//     "values": {KEY: VALUE…}, "stale": ["KEY"…],
//     "end": "…"                  only if its stream ended: "session/deleted", "session/unknown", or what the error says
//   }}}
//
// The end of standard input without a line ends it with 2, as wrong arguments do.
import { createInterface } from "node:readline";
import { isDeepStrictEqual, parseArgs } from "node:util";

import { Client, fromStart, Store } from "../dist/index.js";

const options = parseArgs({
  allowPositionals: true,
  options: { token: { type: "string" }, single: { type: "boolean", default: false }, wait: { type: "string", default: "30000" } },
});
const [urls, ...ids] = options.positionals;
if (urls === undefined || ids.length === 0) {
  console.error("usage: node chaos-client.mjs [--token TOKEN] [--single] [--wait MS] URL[,URL…] SESSION…");
  process.exit(2);
}

const sessions = new Map();
for (const id of ids) {
  const store = new Store();
  sessions.set(id, { store, next: 0, report: { complete: false, events: 0, lastSeq: -1, gaps: [], early: [], resets: [], connections: 0, asOfSeq: null, epoch: null } });
}

/** Has the waiting look again. */
let look = () => {};
let ready = false;

function changed() {
  if (!ready && [...sessions.values()].every(({ report }) => report.asOfSeq !== null || report.end !== undefined)) {
    ready = true;
    console.log(JSON.stringify({ ready }));
  }
  look();
}

function take(frame) {
  const session = sessions.get(frame.sessionId);
  const { store, report } = session;
  store.take(frame);
  switch (frame.type) {
    case "session/subscribed":
      report.connections++;
      report.epoch = frame.epoch;
      break;
    case "session/reset":
      report.resets.push(frame.reason);
      Object.assign(report, { events: 0, lastSeq: -1 });
      session.next = undefined; // Behind the baseline that follows.
      break;
    case "session/baseline":
      report.asOfSeq = frame.asOfSeq;
      session.next ??= frame.asOfSeq + 1;
      break;
    case "session/event": {
      const got = frame.event.seq;
      if (got !== session.next) report.gaps.push({ want: session.next, got });
      session.next = got + 1;
      report.events++;
      report.lastSeq = got;
      break;
    }
    case "session/projection":
      if (frame.seq >= (session.next ?? Infinity)) report.early.push({ key: frame.key, seq: frame.seq });
      break;
    case "session/deleted":
    case "session/unknown":
      report.end = frame.type;
      break;
    default:
  }
  changed();
}

/** Follows sessions of one client on one connection. */
async function follow(client, some) {
  const how = { after: fromStart, tries: Infinity };
  try {
    for await (const frame of some.length === 1 ? client.stream(some[0], how) : client.follow(some, how)) take(frame);
  } catch (err) {
    for (const id of some) sessions.get(id).report.end ??= String(err);
    changed();
  }
}

const all = urls.split(",");
for (const [i, url] of all.entries()) {
  const client = new Client({ url, token: options.values.token });
  const some = ids.filter((_, n) => n % all.length === i);
  const most = options.values.single ? 1 : 20;
  for (let at = 0; at < some.length; at += most) void follow(client, some.slice(at, at + most));
}

const line = await new Promise((resolve) => {
  const input = createInterface({ input: process.stdin });
  input.once("line", resolve);
  input.once("close", () => resolve(undefined));
});
if (!line?.startsWith("end ")) {
  console.error('a line `end {"SESSION": {"seq": N, "values": {…}}}` was to come on standard input');
  process.exit(2);
}
const wanted = Object.entries(JSON.parse(line.slice("end ".length)));

const stale = (store) => Object.keys(store.values()).filter((key) => store.get(key).stale);

function complete([id, { seq, values }]) {
  const { store, report } = sessions.get(id);
  if (report.asOfSeq === null || report.lastSeq < seq) return false;
  return values === undefined || (isDeepStrictEqual({ ...store.values() }, values) && stale(store).length === 0);
}

await new Promise((resolve) => {
  const timer = setTimeout(resolve, Number(options.values.wait));
  look = () => {
    if (!wanted.every(complete)) return;
    clearTimeout(timer);
    resolve();
  };
  look();
});

const report = {};
for (const one of wanted) sessions.get(one[0]).report.complete = complete(one);
for (const [id, { store, report: of }] of sessions) report[id] = { ...of, values: { ...store.values() }, stale: stale(store) };
const flawless = ([id]) => report[id].complete && report[id].gaps.length === 0 && report[id].early.length === 0 && report[id].resets.length === 0;
const ok = wanted.every(flawless);
process.stdout.write(`${JSON.stringify({ ok, sessions: report })}\n`, () => process.exit(ok ? 0 : 1));

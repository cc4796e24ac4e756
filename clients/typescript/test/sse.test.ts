import assert from "node:assert/strict";
import { test } from "node:test";

import { LineSplitter, TooLongError } from "../src/lines.js";
import { MessageParser, type Message } from "../src/sse.js";
import { encode, random } from "./kit.js";

/** What is read of parts, and whether a bound was broken after that. */
function parse(parts: Iterable<Uint8Array>, max = 100): { messages: Message[]; tooLong: boolean } {
  const parser = new MessageParser(max);
  const messages: Message[] = [];
  try {
    for (const part of parts) {
      for (const message of parser.push(part)) messages.push(message);
    }
  } catch (err) {
    assert.ok(err instanceof TooLongError, String(err));
    return { messages, tooLong: true };
  }
  return { messages, tooLong: false };
}

const m = (kind: string, data: string): Message => ({ kind, data });

const cases: Record<string, [text: string, want: Message[], tooLong?: true]> = {
  nothing: ["", []],
  one: ["event: k\nid: 1\ndata: d\n\n", [m("k", "d")]],
  CRLF: ["event: k\r\ndata: d\r\n\r\n", [m("k", "d")]],
  "no space": ["event:k\ndata:  d\n\n", [m("k", " d")]],
  "several lines of data": ["data: a\ndata\ndata: b\n\n", [m("", "a\n\nb")]],
  comments: [": c\n\n:\ndata: d\n: c\n\n", [m("", "d")]],
  "without data": ["event: k\nid: 5\n\ndata: d\n\n", [m("", "d")]],
  ids: ["id: 5\ndata: a\n\ndata: b\n\n", [m("", "a"), m("", "b")]],
  "an id with a zero": ["id: 5\0\ndata: a\n\n", [m("", "a")]],
  "fields of others": ["retry: 5\nodd\ndata: a\n\n", [m("", "a")]],
  "a byte order mark": ["\ufeffdata: d\n\n", [m("", "d")]],
  "a byte order mark that is none": ["data: a\n\ufeffdata: b\n\n", [m("", "a")]],
  "a rest": ["data: a\n\ndata: b\n", [m("", "a")]],
  "a rest of a line": ["data: a\n\ndata: b", [m("", "a")]],
  "a long line": [`data: a\n\ndata: ${"x".repeat(95)}\n\n`, [m("", "a")], true],
  "the longest line": [`data: ${"x".repeat(94)}\r\n\n`, [m("", "x".repeat(94))]],
  "a line without end": [`data: ${"x".repeat(500)}`, [], true],
  "many lines": ["data: xxxx\n".repeat(11), [], true],
  "many messages": ["data: xxxx\n\n".repeat(20), Array.from({ length: 20 }, () => m("", "xxxx"))],
  "all of UTF-8": ["data: aé€😀\u2028\n\ndata: \ud7ff\uffff\n\n", [m("", "aé€😀\u2028"), m("", "\ud7ff\uffff")]],
};

for (const [name, [text, want, tooLong = false]] of Object.entries(cases)) {
  test(`messages: ${name}, in one part, byte by byte, and cut at every byte`, () => {
    const bytes = encode(text);
    assert.deepEqual(parse([bytes]), { messages: want, tooLong });
    assert.deepEqual(parse(Array.from(bytes, (b) => Uint8Array.of(b))), { messages: want, tooLong });
    for (let at = 0; at <= bytes.length; at++) {
      assert.deepEqual(parse([bytes.subarray(0, at), bytes.subarray(at)]), { messages: want, tooLong }, `cut at ${at}`);
    }
  });
}

test("whatever is written as messages is read as the same, however it is cut", () => {
  const letters = [..."ab:/ {}\"\\\t\0é€😀\u2028\ufeff"];
  random(500, (roll) => {
    const pick = <T>(from: readonly T[]): T => from[Math.floor(roll() * from.length)] as T;
    const word = (): string => Array.from({ length: Math.floor(roll() * 20) }, () => pick(letters)).join("");
    let text = roll() < 0.2 ? "\ufeff" : "";
    const want: Message[] = [];
    for (let n = Math.floor(roll() * 6); n > 0; n--) {
      const end = pick(["\n", "\r\n"]);
      const kind = word();
      const data = Array.from({ length: 1 + Math.floor(roll() * 3) }, word);
      if (roll() < 0.5) text += `id: I:${n}${end}`;
      if (roll() < 0.3) text += `:${word()}${end}`;
      text += `event: ${kind}${end}${data.map((d) => `data: ${d}${end}`).join("")}${end}`;
      want.push(m(kind, data.join("\n")));
    }
    const bytes = encode(text);
    const parts: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; ) {
      const to = at + Math.floor(roll() * 9);
      parts.push(bytes.subarray(at, to));
      at = to;
    }
    assert.deepEqual(parse(parts, 10_000), { messages: want, tooLong: false });
  });
});

test("whatever bytes come, they are read the same however they are cut, and nothing is held beyond the bound", () => {
  const likely = [10, 10, 10, 13, 58, 32, 0, 100, 97, 116, 0xf0, 0x9f, 0xc3, 0xff];
  random(2000, (roll) => {
    const bytes = Uint8Array.from({ length: Math.floor(roll() * 60) }, () => likely[Math.floor(roll() * likely.length)] as number);
    const whole = parse([bytes], 16);
    assert.deepEqual(parse(Array.from(bytes, (b) => Uint8Array.of(b)), 16), whole);
    const at = Math.floor(roll() * bytes.length);
    assert.deepEqual(parse([bytes.subarray(0, at), bytes.subarray(at)], 16), whole);
  });
});

test("lines know whether there is a rest", () => {
  const lines = new LineSplitter(10);
  assert.deepEqual([...lines.push(encode("a\nb"))], ["a"]);
  assert.equal(lines.open, true);
  assert.deepEqual([...lines.push(encode("c\n"))], ["bc"]);
  assert.equal(lines.open, false);
});

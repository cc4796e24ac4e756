// The hooks where there is no page; test/browser.test.ts has them in one.
import assert from "node:assert/strict";
import { test } from "node:test";

import { createElement, type ReactElement } from "react";
import { renderToString } from "react-dom/server";

import { Store } from "../src/index.js";
import { FoldhostProvider, useEntry, useProjection, useSession, useStore } from "../src/react.js";
import { faked } from "./kit.js";

const store = new Store();
store.apply("e.1", "title", "of above", 1, 1);
const other = new Store();
other.apply("e.1", "title", "of another", 1, 1);
other.unavailable("e.1", "title", { code: "faulted", seq: 2, message: "" }, 1);

const below = (part: () => string): string => renderToString(createElement(FoldhostProvider, { store }, createElement(part)));

test("hooks give the latest value of the store above, or of a given one", () => {
  assert.equal(below(() => String(useProjection<string>("title"))), "of above");
  assert.equal(below(() => String(useProjection("todos"))), "undefined");
  assert.equal(below(() => String(useProjection<string>("title", other))), "of another");
  assert.equal(below(() => String(useEntry("title")?.stale)), "false");
  assert.equal(below(() => String(useEntry("title", other)?.why?.code)), "faulted");
  assert.equal(below(() => String(useStore() === store)), "true");
});

test("without a store they say what to do", () => {
  const alone = (use: () => unknown): ReactElement => createElement(() => String(use()));
  for (const use of [() => useStore(), () => useProjection("title"), () => useEntry("title")]) {
    assert.throws(() => renderToString(alone(use)), /FoldhostProvider/);
  }
  assert.equal(renderToString(alone(() => useProjection("title", store))), "of above");
});

test("where there is no page nothing is sent", () => {
  const { client, asked } = faked(() => new Response());
  assert.equal(renderToString(createElement(() => useSession(client, "s").state)), "connecting");
  assert.equal(asked.length, 0);
});

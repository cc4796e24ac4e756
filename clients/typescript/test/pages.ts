// Serves pages for tests in a browser: an empty one that finds the client and React as modules, and files.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

const imports = { "@foldhost/client": "/dist/index.js", "@foldhost/client/react": "/dist/react.js", react: "/react.js", "react-dom/client": "/react-dom-client.js" };

/** React comes as CommonJS, which needs ten lines in a page. */
const commonJS = `
const files = { react: "react/cjs/react.production.js", scheduler: "scheduler/cjs/scheduler.production.js",
  "react-dom": "react-dom/cjs/react-dom.production.js", "react-dom/client": "react-dom/cjs/react-dom-client.production.js" };
const texts = Object.fromEntries(await Promise.all(Object.entries(files).map(async ([name, file]) => [name, await (await fetch("/modules/" + file)).text()])));
const loaded = {};
export function require(name) {
  if (!loaded[name]) {
    const module = (loaded[name] = { exports: {} });
    new Function("module", "exports", "require", texts[name])(module, module.exports, require);
  }
  return loaded[name].exports;
}`;

const made: Record<string, [kind: string, text: string]> = {
  "/": ["text/html", `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="importmap">${JSON.stringify({ imports })}</script><div id="root"></div>`],
  "/require.js": ["text/javascript", commonJS],
  "/react.js": ["text/javascript",
    'import { require } from "/require.js"; export const { createContext, createElement, useContext, useEffect, useMemo, useState, useSyncExternalStore, StrictMode } = require("react");'],
  "/react-dom-client.js": ["text/javascript", 'import { require } from "/require.js"; export const { createRoot } = require("react-dom/client");'],
};

const dirs: Record<string, string> = {
  "/dist/": at("../../dist/"),
  "/test/": at("./"),
  "/modules/": at("../../node_modules/"),
  "/testdata/": at("../../../../client/testdata/"),
};

/** Serves them on a port of its own. */
export async function servePages(): Promise<{ port: number; close: () => void }> {
  const server = createServer((req, res) => {
    const { pathname } = new URL(req.url ?? "/", "http://localhost");
    const [kind, text] = made[pathname] ?? [pathname.endsWith(".json") ? "application/json" : "text/javascript", undefined];
    const prefix = Object.keys(dirs).find((p) => pathname.startsWith(p));
    const body = text !== undefined ? Promise.resolve(text) : prefix !== undefined ? readFile(dirs[prefix] + pathname.slice(prefix.length)) : Promise.reject(new Error("no such file"));
    body.then(
      (b) => res.writeHead(200, { "Content-Type": kind }).end(b),
      () => res.writeHead(404).end(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

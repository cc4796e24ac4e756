import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { AnswerError, Client, FoldhostError, type ClientOptions } from "../src/index.js";
import { LineSplitter } from "../src/lines.js";
import { all, faked, said, subscribed } from "./kit.js";

/** Runs something with a client of a server that answers as a function says. */
async function against(answer: (req: IncomingMessage, res: ServerResponse) => void, run: (client: Client) => Promise<void>, options: Partial<ClientOptions> = {}): Promise<void> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await run(new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, ...options }));
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const answers = (call: Promise<unknown>): Promise<void> => assert.rejects(call, (err) => err instanceof AnswerError);

// A redirect makes a GET of a POST, and the answer of a GET looks like that of an append: nothing would have been appended, and nobody told.
for (const status of [301, 302, 303, 307, 308]) {
  test(`a redirect is not followed: ${status}`, async () => {
    let led = 0;
    const answer = (req: IncomingMessage, res: ServerResponse): void => {
      if (req.url?.startsWith("/there")) {
        led++;
        res.end('{"seq":1,"events":[{"seq":0,"time":1}],"ready":true}');
      } else res.writeHead(status, { Location: `/there${req.url}` }).end();
    };
    await against(answer, async (client) => {
      const redirect = (err: unknown): boolean => err instanceof FoldhostError && err.status === status && err.code === "" && err.detail.includes('"/there/');
      await assert.rejects(client.append("s", { type: "t" }), redirect);
      await assert.rejects(client.ready(), redirect);
      assert.ok(redirect((await all(client.stream("s"))).error));
    });
    assert.equal(led, 0);
  });
}

test("an answer without end is given up", async () => {
  let sent = 0;
  const answer = (_: IncomingMessage, res: ServerResponse): void => {
    const part = Buffer.alloc(64 << 10, " ");
    const more = (): void => {
      while (!res.destroyed && (sent += part.length) > 0 && res.write(part));
    };
    res.on("drain", more);
    more();
  };
  await against(answer, async (client) => {
    await answers(client.get("s"));
    await answers(client.ready());
  }, { maxAnswerBytes: 1 << 20 });
  assert.ok(sent < 64 << 20, `${sent} bytes were taken`);
});

test("a page that says that all is well is no stream, and no log without events", async () => {
  for (const kind of ["text/html", "application/json", " "]) {
    const { client, asked } = faked(() => new Response("\n\n", { headers: { "Content-Type": kind } }));
    assert.ok((await all(client.stream("s"))).error instanceof AnswerError);
    assert.ok((await all(client.follow(["s"]))).error instanceof AnswerError);
    await answers(client.checkStore());
    assert.equal(asked.length, 3, "it is asked once for each");
  }
});

test("a heartbeat that no timer has time for is no reason to give a connection up", async () => {
  for (const heartbeatMs of [2 ** 31, Number.MAX_SAFE_INTEGER]) {
    const stop = new AbortController();
    const breaks: unknown[] = [];
    const { client } = faked(({ signal }) => said(subscribed({ heartbeatMs }), "is silent", signal));
    const frames = client.stream("s", { signal: stop.signal, onBroken: (err) => breaks.push(err) });
    await frames.next();
    const next = frames.next();
    setTimeout(() => stop.abort(), 50);
    await assert.rejects(next, (err) => err === stop.signal.reason);
    assert.deepEqual(breaks, []);
  }
});

// Chunks of a byte each come as parts of a byte each.
test("a line that comes byte by byte takes no more room than it has bytes", () => {
  const part = Uint8Array.of(97);
  const lines = new LineSplitter(1 << 20);
  const before = process.memoryUsage();
  for (let n = 0; n < 1 << 20; n++) lines.push(part.subarray(0)).next();
  const after = process.memoryUsage();
  const grown = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
  assert.ok(lines.open);
  assert.ok(grown < 64 << 20, `${grown} bytes for a line of one MiB`);
});

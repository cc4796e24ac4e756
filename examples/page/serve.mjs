// Serves this page, and the client that was built for it, to this machine: node serve.mjs [PORT]. Any other server of files does as well.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const client = fileURLToPath(new URL("../../clients/typescript/dist/", import.meta.url));
const kinds = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript" };

const server = createServer(async (req, res) => {
  // URL takes ".." out of the path. What it cannot read, such as //, is no file.
  const pathname = URL.canParse(req.url, "http://localhost") ? new URL(req.url, "http://localhost").pathname : "";
  const file = pathname.startsWith("/client/") ? join(client, pathname.slice("/client/".length)) : join(here, pathname === "/" ? "index.html" : pathname);
  const kind = kinds[extname(file)];
  if (kind === undefined || !(await stat(file).catch(() => undefined))?.isFile()) {
    res.writeHead(404).end("there is no such file\n");
    return;
  }
  res.writeHead(200, { "Content-Type": kind, "Cache-Control": "no-cache" });
  createReadStream(file).pipe(res);
});

server.on("error", (err) => {
  console.error(`the page cannot be served: ${err.message}`);
  process.exit(1);
});
// The port is one of the allowedOrigins of examples/foldhost.yaml.
server.listen(Number(process.argv[2] ?? 7421), "127.0.0.1", () => console.log(`the page is at http://127.0.0.1:${server.address().port}/`));

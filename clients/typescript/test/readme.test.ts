// What the documents show of the client is TypeScript that its types allow.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { root } from "./host.js";

const here = fileURLToPath(new URL("../../", import.meta.url));

/** The blocks of TypeScript of a document, the imports of all first. */
async function blocks(file: string): Promise<{ imports: string; rest: string; count: number }> {
  const all = [...(await readFile(file, "utf8")).matchAll(/^```tsx?\n(.*?)^```$/gms)].map((m) => m[1] ?? "");
  const lines = all.join("\n").split("\n");
  const isImport = (line: string): boolean => line.startsWith("import ");
  return { imports: lines.filter(isImport).join("\n"), rest: lines.filter((line) => !isImport(line)).join("\n"), count: all.length };
}

test("the TypeScript of the documents compiles", async () => {
  const own = await blocks(join(here, "README.md"));
  const front = await blocks(join(root, "README.md"));
  assert.ok(own.count >= 4 && front.count >= 1, "blocks were found");
  const text = `${own.imports}
declare function draw(todos: unknown): void;
declare function show(state: string): void;
declare function handle(event: unknown): Promise<void>;
declare function remember(position: string): Promise<void>;
${own.rest}
export async function front() {
${front.rest}
}
`;
  // Within the package, which so finds itself by its name and its exports.
  const dir = join(here, "build", "readme");
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, "readme.tsx"), text);
  const options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--jsx", "react-jsx", "--types", "react"];
  const { status, stdout } = spawnSync(process.execPath, [join(here, "node_modules", "typescript", "bin", "tsc"), ...options, join(dir, "readme.tsx")], { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

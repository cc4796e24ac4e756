// Builds the host and its plugins where they are not there, once before the tests, which run side by side.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const needed = ["foldhost", ...["todo", "imagelimits", "title", "tokenusage"].map((name) => `plugins/${name}`)];
if (!needed.every((name) => existsSync(`${root}/bin/${name}`))) {
  const { status, error } = spawnSync("make", ["build"], { cwd: root, stdio: "inherit" });
  if (status !== 0) {
    console.error(`the tests need a host, which make builds with Go: ${error?.message ?? `it ended with ${status}`}`);
    process.exit(1);
  }
}

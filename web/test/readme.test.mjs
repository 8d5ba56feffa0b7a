// Runs the examples of the package's README.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, symlinkSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { packageDir } from "./lib.mjs";

const blocks = [...readFileSync(join(packageDir, "README.md"), "utf8").matchAll(/^```js\n([^]*?)^```$/gm)].map((m) => m[1]);
const folder = mkdtempSync(join(tmpdir(), "onx-readme-"));
mkdirSync(join(folder, "node_modules"));
symlinkSync(packageDir, join(folder, "node_modules/onx"));

function runBlock(i) {
  const file = join(folder, `example${i}.mjs`);
  writeFileSync(file, blocks[i]);
  return execFileSync(process.execPath, [file], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

test("there are examples", () => assert.equal(blocks.length, 6));
test("running", () => assert.match(runBlock(0), /^true 0\n\[ 2, 2 \] Float32Array\(4\) \[ 2, 3, 20, 30 \]/));
test("models", () => assert.match(runBlock(1), /removed[^]*\nonnx 3\n$/));
test("the program", () => assert.match(runBlock(2), /^0 /));
test("pictures", () => assert.equal(runBlock(3), "[ 1, 1, 4, 3 ] data:image/png;base64,\n"));
test("errors", () => assert.match(runBlock(4), /^true .*\[/));
test("threads", () => assert.match(runBlock(5), /^(true|false)\n$/));

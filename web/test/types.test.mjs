// Checks the type declarations: every export of index.js is declared, and so are the methods of its classes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import onx, { packageDir } from "./lib.mjs";

const declared = readFileSync(join(packageDir, "lib/index.d.ts"), "utf8");

test("all that is exported is declared, and the other way round", () => {
  const names = new Set([...declared.matchAll(/^export (?:declare )?(?:class|function|const) (\w+)/gm)].map((m) => m[1]));
  assert.deepEqual([...names].sort(), Object.keys(onx).sort());
});

test("so are methods", () => {
  for (const name of ["InferenceSession", "Model", "Tensor"]) {
    const body = new RegExp(`^export class ${name}(?:<[^{]*>)? \\{([^]*?)^\\}`, "m").exec(declared)[1];
    const own = Object.getOwnPropertyNames(onx[name].prototype).filter((m) => m !== "constructor");
    for (const method of own) assert.match(body, new RegExp(`\\b${method}[(<:]`), `${name}.${method}`);
  }
});

/** The TypeScript compiler: the one that ONX_TSC names, else `tsc`. */
function findCompiler() {
  const command = process.env.ONX_TSC ?? "tsc";
  return spawnSync(command, ["--version"]).status === 0 ? command : undefined;
}

test("a script with onnxruntime-web's types compiles", { skip: findCompiler() ? false : "no tsc (ONX_TSC names one)" }, () => {
  const folder = mkdtempSync(join(tmpdir(), "onx-types-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(packageDir, join(folder, "node_modules/onx"));
  writeFileSync(join(folder, "package.json"), `{ "type": "module" }`);
  copyFileSync(new URL("./typed.ts", import.meta.url), join(folder, "typed.ts"));
  const words = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "--lib", "es2022,dom"];
  const { status, stdout } = spawnSync(findCompiler(), [...words, "typed.ts"], { cwd: folder, encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

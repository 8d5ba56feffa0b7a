// The types say what there is: every name that index.js exports is declared, and the methods of its classes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
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
    const body = new RegExp(`^export class ${name} \\{([^]*?)^\\}`, "m").exec(declared)[1];
    const own = Object.getOwnPropertyNames(onx[name].prototype).filter((m) => m !== "constructor");
    for (const method of own) assert.match(body, new RegExp(`\\b${method}[(:]`), `${name}.${method}`);
  }
});

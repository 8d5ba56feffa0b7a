// Finding, compiling and instantiating the WebAssembly modules. Each is compiled once and instantiated for each job and
// each session: an instance has a memory of its own, which goes when nobody refers to it any more, so that nothing can
// leak from one job to another, and no job can break another by using up the memory or by a trap.
import { OnxError } from "./errors.js";
import { version } from "./version.js";

/** Where things are, and which build is used; settings that hold for all that is compiled after they were made. */
export const env = {
  /** Folder of the modules (onx-run.wasm, onx.wasm, ...), ending in a slash, or { wasm: URL } of the one for sessions; undefined: beside this package. */
  wasmPath: undefined,
  /** Bytes of the module for sessions, or of several by their names without .wasm, instead of fetching them. */
  wasmBinary: undefined,
  /** Use the builds with vectors? undefined: if the engine has them. */
  simd: undefined,
  /** How many threads a session may use, where the page may share memory between threads. */
  threads: 1,
  /** This package's version, under the names that onnxruntime-web has. */
  versions: Object.freeze({ onx: version, common: version, web: version }),
  /** The same settings in onnxruntime-web's spelling. What is not here can be set, and means nothing. */
  wasm: spelled({
    numThreads: { get: () => env.threads, set: (count) => (env.threads = count) },
    wasmPaths: { get: () => env.wasmPath, set: (where) => (env.wasmPath = where) },
    wasmBinary: { get: () => env.wasmBinary, set: (bytes) => (env.wasmBinary = bytes) },
    simd: { get: () => env.simd, set: (kind) => (env.simd = kind === undefined ? undefined : Boolean(kind)) }, // true, "fixed", "relaxed"
  }),
  webgl: {},
  webgpu: {},
};

function spelled(properties) {
  for (const each of Object.values(properties)) each.enumerable = true;
  return Object.defineProperties({}, properties);
}

// A function that makes a vector: (func (result v128) i32.const 0 i8x16.splat).
const SIMD_PROBE = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11];

/** Does this engine have the vectors of WebAssembly? */
export function hasSimd() {
  return WebAssembly.validate(new Uint8Array(SIMD_PROBE));
}

// The modules, and Emscripten's code around them: sessions, the program, sessions with threads. Names are written out, so
// that bundlers find the files.
const BUILDS = {
  "onx-run": { url: () => new URL("../wasm/onx-run.wasm", import.meta.url), glue: () => import("../wasm/onx-run.js") },
  "onx-run-plain": {
    url: () => new URL("../wasm/onx-run-plain.wasm", import.meta.url),
    glue: () => import("../wasm/onx-run-plain.js"),
  },
  onx: { url: () => new URL("../wasm/onx.wasm", import.meta.url), glue: () => import("../wasm/onx.js") },
  "onx-plain": {
    url: () => new URL("../wasm/onx-plain.wasm", import.meta.url),
    glue: () => import("../wasm/onx-plain.js"),
  },
  "onx-threads": {
    url: () => new URL("../wasm/onx-threads.wasm", import.meta.url),
    glue: () => import("../wasm/onx-threads.js"),
  },
};

const MODULE_OF = { session: "onx-run", program: "onx", threads: "onx-threads" };

function urlOf(name, where) {
  if (typeof where === "string" || where instanceof URL) return new URL(`${where}${name}.wasm`, import.meta.url);
  const forSessions = name.startsWith("onx-run") ? where?.wasm : undefined;
  return forSessions === undefined ? BUILDS[name].url() : new URL(forSessions, import.meta.url);
}

async function fetchBuild(name) {
  const url = urlOf(name, env.wasmPath);
  if (url.protocol === "file:") {
    const { readFileSync } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:fs");
    return readFileSync(url); // once, 2 ms sooner than by a thread
  }
  const response = await fetch(url);
  if (!response.ok) throw new OnxError(`cannot fetch ${url}: ${response.status} ${response.statusText}`);
  return response;
}

/** Bytes that somebody gave for a module. */
function givenBuild(name) {
  const given = env.wasmBinary;
  if (given === undefined) return undefined;
  const isBytes = ArrayBuffer.isView(given) || given instanceof ArrayBuffer;
  return isBytes ? (name.startsWith("onx-run") ? given : undefined) : given[name];
}

/** Emscripten's code takes random bytes from the global `crypto`, which Node has from version 19 on. */
async function needRandom() {
  if (globalThis.crypto || typeof process === "undefined" || !process.versions?.node) return;
  const { webcrypto } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:crypto");
  globalThis.crypto ??= webcrypto;
}

async function compile(what) {
  const vectors = env.simd ?? hasSimd();
  const name = MODULE_OF[what] + (vectors ? "" : "-plain");
  const glue = BUILDS[name].glue();
  glue.catch(() => {}); // the other may fail first
  const module = compileFrom(givenBuild(name) ?? (await fetchBuild(name)));
  module.catch(() => {});
  await needRandom(); // Node loads its own for that, while others compile
  return { module: await module, create: (await glue).default };
}

async function compileFrom(source) {
  // A Response is told by what it can do: where its name is looked at, Node loads all of its fetch, which takes longer than compiling.
  if (typeof source?.arrayBuffer !== "function") return WebAssembly.compile(source);
  // Servers that do not know the type of .wasm are common.
  if (source.headers.get("content-type")?.startsWith("application/wasm")) return WebAssembly.compileStreaming(source);
  return WebAssembly.compile(await source.arrayBuffer());
}

export const compiled = {}; // promises of modules, shared by all

/**
 * Compiles a module now, rather than when it is first needed; once. `what` is "session", which models need that run,
 * "program", which all else needs, or "threads".
 */
export function init(what = "session") {
  if (!Object.hasOwn(MODULE_OF, what)) throw new OnxError(`there is no module for ${JSON.stringify(what)}: session, program, threads`);
  compiled[what] ??= compile(what).catch((error) => {
    delete compiled[what]; // a network that failed may be there the next time
    throw error;
  });
  return compiled[what];
}

/** Bytes that are written one at a time. */
class Bytes {
  #bytes = new Uint8Array(256);
  #length = 0;

  put(byte) {
    if (this.#length === this.#bytes.length) {
      const more = new Uint8Array(this.#length * 2);
      more.set(this.#bytes);
      this.#bytes = more;
    }
    this.#bytes[this.#length++] = byte;
  }

  text() {
    return new TextDecoder().decode(this.#bytes.subarray(0, this.#length));
  }
}

/**
 * A new instance. `module` is Emscripten's, with the exports and the file system in memory; `stdout` and `stderr` are
 * what was printed so far. `more` is what Emscripten's code is told beside that.
 */
export async function instantiate(what, more = {}) {
  const { module, create } = await init(what);
  const stdout = new Bytes();
  const stderr = new Bytes();
  const instance = await create({
    instantiateWasm(imports, done) {
      // Rejections would be lost in there: a memory that cannot be had is one.
      try {
        done(new WebAssembly.Instance(module, imports), module);
      } catch (error) {
        throw new OnxError(`the module cannot be instantiated: ${error.message}`);
      }
      return {};
    },
    stdin: () => null,
    stdout: (byte) => byte !== null && stdout.put(byte),
    stderr: (byte) => byte !== null && stderr.put(byte),
    ...more,
  });
  return { module: instance, stdout, stderr };
}

/** Calls that end in a trap or run out of memory become errors. */
export function guarded(what, call) {
  try {
    return call();
  } catch (error) {
    if (error instanceof OnxError) throw error;
    throw new OnxError(`${what}: ${error.message}`, [{ severity: "error", message: error.message }]);
  }
}

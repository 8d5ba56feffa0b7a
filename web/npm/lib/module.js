// Locates, compiles and instantiates the WebAssembly modules. Each is compiled once and instantiated for each job and each
// session. An instance has a memory of its own, which is garbage-collected with it. So nothing leaks from one job to another,
// and no job can break another one by a trap or by using up the memory.
import { OnxError } from "./errors.js";
import { version } from "./version.js";

/** Settings: locations, and which build is used. They apply to modules compiled afterwards. */
export const env = {
  /** Folder of the modules (onx-run.wasm, onx.wasm, ...), ending in a slash, or { wasm: URL } of the module for sessions; undefined: next to this package. */
  wasmPath: undefined,
  /** Bytes of the module for sessions, or of several modules by name without .wasm, to use instead of fetching them. */
  wasmBinary: undefined,
  /** Use the builds with SIMD? undefined: if the engine supports it. */
  simd: undefined,
  /** Number of threads of a session, where the page can share memory between threads. */
  threads: 1,
  /** This package's version, under the names of onnxruntime-web. */
  versions: Object.freeze({ onx: version, common: version, web: version }),
  /** The same settings by the names of onnxruntime-web. Other settings are accepted and ignored. */
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

// A function that uses SIMD: (func (result v128) i32.const 0 i8x16.splat).
const SIMD_PROBE = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11];

/** Does this engine support SIMD? */
export function hasSimd() {
  return WebAssembly.validate(new Uint8Array(SIMD_PROBE));
}

// The modules and Emscripten's code for them: sessions, the program, sessions with threads. File names are written out so that
// bundlers find them.
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
    return readFileSync(url); // synchronously, which is 2 ms faster than with a thread
  }
  const response = await fetch(url);
  if (!response.ok) throw new OnxError(`cannot fetch ${url}: ${response.status} ${response.statusText}`);
  return response;
}

/** The bytes that the user has set for a module. */
function givenBuild(name) {
  const given = env.wasmBinary;
  if (given === undefined) return undefined;
  const isBytes = ArrayBuffer.isView(given) || given instanceof ArrayBuffer;
  return isBytes ? (name.startsWith("onx-run") ? given : undefined) : given[name];
}

/** Emscripten's code needs the global `crypto` for random bytes; Node has it from version 19 on. */
async function needRandom() {
  if (globalThis.crypto || typeof process === "undefined" || !process.versions?.node) return;
  const { webcrypto } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:crypto");
  globalThis.crypto ??= webcrypto;
}

async function compile(what) {
  const vectors = env.simd ?? hasSimd();
  const name = MODULE_OF[what] + (vectors ? "" : "-plain");
  const glue = BUILDS[name].glue();
  glue.catch(() => {}); // the other promise may fail first
  const module = compileFrom(givenBuild(name) ?? (await fetchBuild(name)));
  module.catch(() => {});
  await needRandom(); // Node loads a module for that while others compile
  return { module: await module, create: (await glue).default };
}

async function compileFrom(source) {
  // Responses are recognized by their methods: mentioning the class makes Node load all of its fetch, which takes longer than
  // compiling.
  if (typeof source?.arrayBuffer !== "function") return WebAssembly.compile(source);
  // Many servers do not know the MIME type of .wasm.
  if (source.headers.get("content-type")?.startsWith("application/wasm")) return WebAssembly.compileStreaming(source);
  return WebAssembly.compile(await source.arrayBuffer());
}

export const compiled = {}; // promises of modules, shared by all users

/**
 * Compiles a module now instead of at its first use, once. `what` is "session" (models that run), "program" (everything else),
 * or "threads".
 */
export function init(what = "session") {
  if (!Object.hasOwn(MODULE_OF, what)) throw new OnxError(`there is no module for ${JSON.stringify(what)}: session, program, threads`);
  compiled[what] ??= compile(what).catch((error) => {
    delete compiled[what]; // retried next time: the network may be back
    throw error;
  });
  return compiled[what];
}

/** Collects bytes that are written one at a time. */
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
 * A new instance. `module` is Emscripten's, with the exports and the file system in memory; `stdout` and `stderr` are the text
 * printed so far. `more` are further options for Emscripten's code.
 */
export async function instantiate(what, more = {}) {
  const { module, create } = await init(what);
  const stdout = new Bytes();
  const stderr = new Bytes();
  const instance = await create({
    instantiateWasm(imports, done) {
      // Emscripten would lose a rejection here, such as memory that is not available.
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

/** Converts traps and lack of memory in calls to errors. */
export function guarded(what, call) {
  try {
    return call();
  } catch (error) {
    if (error instanceof OnxError) throw error;
    throw new OnxError(`${what}: ${error.message}`, [{ severity: "error", message: error.message }]);
  }
}

// Finding, compiling and instantiating the WebAssembly module. It is compiled once and instantiated for each job and
// each session: an instance has a memory of its own, which goes when nobody refers to it any more, so that nothing can
// leak from one job to another, and no job can break another by using up the memory or by a trap.
import { OnxError } from "./errors.js";

/** Where things are, and which build is used; settings that hold for all that is compiled after they were made. */
export const env = {
  /** Folder of onx.wasm and onx-plain.wasm, ending in a slash; undefined: beside this package. */
  wasmPath: undefined,
  /** Bytes of a build, instead of fetching one. */
  wasmBinary: undefined,
  /** Use the build with vectors? undefined: if the engine has them. */
  simd: undefined,
};

// A function that makes a vector: (func (result v128) i32.const 0 i8x16.splat).
const SIMD_PROBE = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11];

/** Does this engine have the vectors of WebAssembly? */
export function hasSimd() {
  return WebAssembly.validate(new Uint8Array(SIMD_PROBE));
}

// The builds: the module, and Emscripten's code around it. Names are written out, so that bundlers find the files.
const BUILDS = {
  onx: { url: () => new URL("../wasm/onx.wasm", import.meta.url), glue: () => import("../wasm/onx.js") },
  "onx-plain": {
    url: () => new URL("../wasm/onx-plain.wasm", import.meta.url),
    glue: () => import("../wasm/onx-plain.js"),
  },
};

async function fetchBuild(name) {
  const url = env.wasmPath === undefined ? BUILDS[name].url() : new URL(`${env.wasmPath}${name}.wasm`, import.meta.url);
  if (url.protocol === "file:") {
    const { readFile } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:fs/promises");
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new OnxError(`cannot fetch ${url}: ${response.status} ${response.statusText}`);
  return response;
}

async function compile() {
  const name = (env.simd ?? hasSimd()) ? "onx" : "onx-plain";
  const glue = BUILDS[name].glue();
  const module = compileFrom(env.wasmBinary ?? (await fetchBuild(name)));
  return { module: await module, create: (await glue).default };
}

async function compileFrom(source) {
  if (typeof Response === "undefined" || !(source instanceof Response)) return WebAssembly.compile(source);
  // Servers that do not know the type of .wasm are common.
  if (source.headers.get("content-type")?.startsWith("application/wasm")) return WebAssembly.compileStreaming(source);
  return WebAssembly.compile(await source.arrayBuffer());
}

let compiled; // the promise of a module, shared by all

/** Compiles the module now, rather than when it is first needed; once. */
export function init() {
  compiled ??= compile().catch((error) => {
    compiled = undefined; // a network that failed may be there the next time
    throw error;
  });
  return compiled;
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
 * what was printed so far.
 */
export async function instantiate() {
  const { module, create } = await init();
  const stdout = new Bytes();
  const stderr = new Bytes();
  const instance = await create({
    instantiateWasm(imports, done) {
      // Rejections would be lost in there: a memory that cannot be had is one.
      try {
        done(new WebAssembly.Instance(module, imports));
      } catch (error) {
        throw new OnxError(`the module cannot be instantiated: ${error.message}`);
      }
      return {};
    },
    stdin: () => null,
    stdout: (byte) => byte !== null && stdout.put(byte),
    stderr: (byte) => byte !== null && stderr.put(byte),
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

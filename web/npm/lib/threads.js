// Instances with threads: a module of its own, in a memory that workers share with the one that runs the session. Pages may
// have such memory only where they are served with two headers (README.md); Node always may.
import { env, hasSimd, instantiate } from "./module.js";

const isNode = typeof process !== "undefined" && Boolean(process.versions?.node);

/** May memory be shared here? */
export function hasThreads() {
  return typeof SharedArrayBuffer !== "undefined" && (isNode || globalThis.crossOriginIsolated === true) && (env.simd ?? hasSimd());
}

/**
 * Emscripten's code waits until a worker has loaded before it tells it to run something. thread.js takes all in order, and a helper that
 * comes late costs nothing (docs/notes/threads.md), so the first result waits for none.
 */
function early(worker, { cmd }) {
  if (cmd === "load") worker.onmessage({ data: { cmd: "loaded" } });
}

function browserWorker() {
  return class {
    constructor() {
      const worker = new Worker(new URL("./thread.js", import.meta.url), { type: "module", name: "onx" });
      const post = worker.postMessage.bind(worker);
      worker.postMessage = (data, list) => {
        post(data, list);
        early(worker, data);
      };
      return worker;
    }
  };
}

/** Node's workers, as browsers have them. A process may end while they wait. */
async function nodeWorker() {
  const { Worker: Thread } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:worker_threads");
  return class {
    #thread;

    constructor() {
      this.#thread = new Thread(new URL("./thread.js", import.meta.url), { execArgv: [] }); // words for the program's own script are not for this
      this.#thread.unref();
      this.#thread.on("message", (data) => this.onmessage?.({ data }));
      this.#thread.on("error", (error) => this.onerror?.({ message: error.message, filename: "thread.js", lineno: 0 }));
    }

    postMessage(data, list) {
      this.#thread.postMessage(data, list);
      early(this, data);
    }

    terminate() {
      this.#thread.terminate();
    }
  };
}

/** An instance whose sessions use `threads` threads, and `end()`, which ends them. */
export async function instantiateThreads(threads) {
  const made = await instantiate("threads", {
    helpers: threads - 1,
    printErr() {}, // it warns of main threads that wait; here they work meanwhile
    Worker: isNode ? await nodeWorker() : browserWorker(),
    locateFile: (name) => name,
    mainScriptUrlOrBlob: new URL("../wasm/onx-threads.js", import.meta.url).href,
  });
  const { PThread } = made.module;
  return { ...made, end: () => PThread.terminateAllThreads() };
}

// Instances with threads: they use a module of their own, in a memory shared with workers. Pages can have shared memory only if
// they are served with two headers (README.md); Node always can.
import { env, hasSimd, instantiate } from "./module.js";

const isNode = typeof process !== "undefined" && Boolean(process.versions?.node);

/** Can memory be shared here? */
export function hasThreads() {
  return typeof SharedArrayBuffer !== "undefined" && (isNode || globalThis.crossOriginIsolated === true) && (env.simd ?? hasSimd());
}

/**
 * Emscripten's code would wait until a worker has loaded before it gives it a function. thread.js takes messages in order, and
 * a thread that is late costs nothing (docs/notes/threads.md), so the first result waits for no worker.
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

/** Node's workers with the interface of browsers. A process may exit while they wait. */
async function nodeWorker() {
  const { Worker: Thread } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:worker_threads");
  return class {
    #thread;

    constructor() {
      this.#thread = new Thread(new URL("./thread.js", import.meta.url), { execArgv: [] }); // options of the program's own script are not for the worker
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

/** An instance whose sessions use `threads` threads, and `end()`, which ends the threads. */
export async function instantiateThreads(threads) {
  const made = await instantiate("threads", {
    helpers: threads - 1,
    printErr() {}, // would warn about a main thread that waits; here it works meanwhile
    Worker: isNode ? await nodeWorker() : browserWorker(),
    locateFile: (name) => name,
    mainScriptUrlOrBlob: new URL("../wasm/onx-threads.js", import.meta.url).href,
  });
  const { PThread } = made.module;
  return { ...made, end: () => PThread.terminateAllThreads() };
}

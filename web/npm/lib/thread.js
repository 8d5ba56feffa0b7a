// A thread of a session: receives the module and the memory, then the function to run, which may arrive before the module has
// loaded.
let loading;

function load({ wasmModule, wasmMemory, urlOrBlob }, say) {
  const module = {
    wasmMemory,
    buffer: wasmMemory.buffer,
    ENVIRONMENT_IS_PTHREAD: true,
    instantiateWasm(imports, done) {
      const made = new WebAssembly.Instance(wasmModule, imports);
      done(made);
      return made.exports;
    },
  };
  globalThis.postMessage = say; // used by the module to say that it has loaded
  loading = import(urlOrBlob).then(({ default: create }) => create(module));
}

async function run({ time, threadInfoStruct, start_routine, arg }) {
  const instance = await loading;
  instance.__performance_now_clock_drift = performance.now() - time;
  instance.__emscripten_thread_init(threadInfoStruct, 0, 0, 1);
  instance.establishStackSpace();
  instance.PThread.threadInit();
  instance.invokeEntryPoint(start_routine, arg);
}

function take(data, say) {
  if (data.cmd === "load") load(data, say);
  else if (data.cmd === "run") run(data);
}

if (typeof process !== "undefined" && process.versions?.node) {
  const { parentPort } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:worker_threads");
  const { webcrypto } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:crypto");
  globalThis.self ??= globalThis;
  globalThis.crypto ??= webcrypto; // needed before Node 19
  parentPort.on("message", (data) => take(data, (message) => parentPort.postMessage(message)));
} else {
  const say = self.postMessage.bind(self);
  self.onmessage = ({ data }) => take(data, say);
}

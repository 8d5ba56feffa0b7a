// web.mjs MODEL...: compares the npm package with onnxruntime-web in Node, one thread each, on random inputs with symbolic
// dimensions 1, alternating: the minimum time of a run; and in new processes the median time to the first result, from
// before the import of the package, and from the start of the process. Both get the model by path, as is usual in Node.
//   ONX_WEB  the package (build-web/package)     ORT_WEB  a folder in which onnxruntime-web is installed
//   SECONDS_EACH  per model, default 10          STARTS  of processes, default 7
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = fileURLToPath(import.meta.url);
const packageDir = resolve(process.env.ONX_WEB ?? join(here, "../../build-web/package"));
const peerDir = resolve(process.env.ORT_WEB ?? ".");

async function runtimes(which) {
  if (which === "onx") return import(pathToFileURL(join(packageDir, "lib/index.js")));
  const ort = createRequire(join(peerDir, "x.js"))("onnxruntime-web");
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  return ort;
}

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int32: Int32Array, int8: Int8Array,
  uint8: Uint8Array, bool: Uint8Array,
};

/** What both are fed: the shapes are those that the package reads from the model. */
function makeInputs(metadata) {
  let seed = 1;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
  return metadata.filter((p) => p.required).map(({ name, type, shape }) => {
    const dims = shape.map((d) => (typeof d === "number" ? d : 1));
    const data = new ARRAYS[type](dims.reduce((a, b) => a * b, 1));
    for (let i = 0; i < data.length; i++)
      data[i] = type === "int64" ? BigInt(Math.floor(random() * 2)) : type.startsWith("float") ? random() : Math.floor(random() * 2);
    return { name, type, dims, data };
  });
}

const feedsOf = (runtime, inputs) =>
  Object.fromEntries(inputs.map((t) => [t.name, new runtime.Tensor(t.type, t.data, t.dims)]));

/** A process of its own, which is told what the inputs are. */
async function firstResult(which, model) {
  const inputs = JSON.parse(process.env.ONX_INPUTS), start = performance.now();
  for (const t of inputs) t.data = new ARRAYS[t.type](t.dims.reduce((a, b) => a * b, 1));
  const runtime = await runtimes(which);
  const session = await runtime.InferenceSession.create(model);
  await session.run(feedsOf(runtime, inputs));
  console.log(performance.now() - start);
}

const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];

/** Of both sides: { library, whole }, to the first result. */
function timeStarts(model, inputs) {
  const env = { ...process.env, ONX_INPUTS: JSON.stringify(inputs.map(({ name, type, dims }) => ({ name, type, dims }))) };
  const times = { onx: { library: [], whole: [] }, ort: { library: [], whole: [] } };
  for (let i = 0; i < (process.env.STARTS ?? 7); i++)
    for (const [which, { library, whole }] of Object.entries(times)) {
      const start = performance.now();
      library.push(Number(execFileSync(process.execPath, [here, "--first", which, model], { stdio: ["ignore", "pipe", "inherit"], env })));
      whole.push(performance.now() - start);
    }
  return Object.values(times).map(({ library, whole }) => ({ library: median(library), whole: median(whole) }));
}

/** Two times, ours first, and how many times the other's is longer. */
const against = (ours, other, digits = 0) => `${ours.toFixed(digits)} ms against ${other.toFixed(digits)} ms, ${(other / ours).toFixed(2)}x`;

async function compare(model) {
  const bytes = new Uint8Array(readFileSync(model));
  const sides = [];
  let inputs;
  for (const which of ["onx", "ort"]) {
    const runtime = await runtimes(which);
    const session = await runtime.InferenceSession.create(bytes.slice());
    inputs ??= makeInputs(session.inputMetadata);
    sides.push({ session, feeds: feedsOf(runtime, inputs), best: Infinity });
  }
  const end = Date.now() + 1000 * (process.env.SECONDS_EACH ?? 10);
  for (let runs = 0; runs < 5 || Date.now() < end; runs++)
    for (const side of sides) {
      const start = process.hrtime.bigint();
      side.result = await side.session.run(side.feeds);
      side.best = Math.min(side.best, Number(process.hrtime.bigint() - start) / 1e6);
    }
  let apart = 0;
  for (const name of sides[0].session.outputNames) {
    const [a, b] = sides.map((s) => s.result[name].data);
    let greatest = 0;
    for (let i = 0; i < b.length; i++) greatest = Math.max(greatest, Math.abs(Number(b[i])));
    for (let i = 0; i < b.length; i++) apart = Math.max(apart, Math.abs(Number(a[i]) - Number(b[i])) / (greatest || 1));
  }
  const [onx, ort] = sides.map((s) => s.best);
  const [start, startPeer] = timeStarts(model, inputs);
  console.log(`${model.split("/").pop()}: run ${against(onx, ort, 2)}; first result ${against(start.library, startPeer.library)}; ` +
    `of the process ${against(start.whole, startPeer.whole)}; apart ${apart.toExponential(1)}`);
}

if (process.argv[2] === "--first") {
  await firstResult(process.argv[3], process.argv[4]);
  process.exit(0);
} else {
  for (const model of process.argv.slice(2)) await compare(model);
}

// web_page.mjs MODEL...: compares the npm package with onnxruntime-web in Chromium, both served from this machine, on random
// inputs with symbolic dimensions 1, alternating: the minimum time of a run, and in new pages the median
// time from before the import to the first result.
//   ONX_WEB  the package (build-web/package)     ORT_WEB  a folder in which onnxruntime-web is installed
//   ONX_BROWSER_TOOLS  a folder in which puppeteer-core is (build-web/browser)
//   SECONDS_EACH  per model, default 10          THREADS  default 1          STARTS  of pages, default 7
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL("..", import.meta.url)), { env } = process;
env.ONX_BROWSER_TOOLS ??= join(here, "build-web/browser");
const { browser } = await import("../tests/browser/browser.mjs");
const roots = {
  onx: resolve(env.ONX_WEB ?? join(here, "build-web/package")),
  ort: join(resolve(env.ORT_WEB ?? "."), "node_modules/onnxruntime-web/dist"),
};
const TYPES = { html: "text/html", js: "text/javascript", mjs: "text/javascript", wasm: "application/wasm" };
const models = process.argv.slice(2);
const REST = 60; // ms after which threads of the other page have gone to sleep: those of onnxruntime-web spin before

const server = createServer((request, answer) => {
  const [, root, ...rest] = new URL(request.url, "http://h").pathname.split("/");
  const file = root === "model" ? models[rest[0]] : roots[root] && join(roots[root], ...rest);
  const headers = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };
  if (!root) answer.writeHead(200, { ...headers, "Content-Type": "text/html" }).end("<!DOCTYPE html>");
  else if (!file || !existsSync(file)) answer.writeHead(404, headers).end();
  else {
    const bytes = readFileSync(file), type = TYPES[file.split(".").pop()] ?? "application/octet-stream";
    answer.writeHead(200, { ...headers, "Content-Type": type, "Content-Length": bytes.length }).end(bytes);
  }
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));

/** In the page: imports, makes a session and runs it once. `window.step` runs it some more times. */
async function first(which, model, threads) {
  const start = performance.now();
  const runtime = await import(which === "onx" ? "/onx/lib/index.js" : "/ort/ort.wasm.min.mjs");
  runtime.env.wasm.numThreads = threads;
  if (which === "ort") runtime.env.wasm.wasmPaths = "/ort/";
  runtime.env.logLevel = "error";
  const session = await runtime.InferenceSession.create(model);
  const arrays = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int32: Int32Array, int8: Int8Array, uint8: Uint8Array, bool: Uint8Array };
  let seed = 1;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31, feeds = {};
  for (const { name, type, shape } of session.inputMetadata) {
    const dims = shape.map((d) => (typeof d === "number" ? d : 1)), data = new arrays[type](dims.reduce((a, b) => a * b, 1));
    for (let i = 0; i < data.length; i++)
      data[i] = type === "int64" ? BigInt(Math.floor(random() * 2)) : type.startsWith("float") ? random() : Math.floor(random() * 2);
    feeds[name] = new runtime.Tensor(type, data, dims);
  }
  await session.run(feeds);
  window.step = async () => {
    let least = Infinity;
    for (let runs = 0; runs < 5; runs++) {
      const begin = performance.now();
      await session.run(feeds);
      least = Math.min(least, performance.now() - begin);
    }
    return least;
  };
  return performance.now() - start;
}

for (const index of models.keys()) {
  const sides = { onx: { starts: [], run: Infinity }, ort: { starts: [], run: Infinity } };
  for (let pages = 0; pages < (env.STARTS ?? 7); pages++)
    for (const [which, side] of Object.entries(sides)) {
      await side.page?.close();
      side.page = await browser.newPage();
      await side.page.goto(`http://127.0.0.1:${server.address().port}/`);
      side.starts.push(await side.page.evaluate(first, which, `/model/${index}`, Number(env.THREADS ?? 1)));
    }
  const end = Date.now() + 1000 * (env.SECONDS_EACH ?? 10);
  for (let runs = 0; runs < 3 || Date.now() < end; runs++)
    for (const side of Object.values(sides)) {
      await new Promise((rested) => setTimeout(rested, REST));
      side.run = Math.min(side.run, await side.page.evaluate(() => window.step()));
    }
  const { onx, ort } = sides;
  for (const side of [onx, ort]) side.first = side.starts.sort((a, b) => a - b)[side.starts.length >> 1];
  console.log(`${basename(models[index])}: run ${onx.run.toFixed(2)} ms against ${ort.run.toFixed(2)} ms, ${(ort.run / onx.run).toFixed(2)}x; ` +
    `first result ${onx.first.toFixed(0)} ms against ${ort.first.toFixed(0)} ms, ${(ort.first / onx.first).toFixed(2)}x`);
  for (const side of Object.values(sides)) await side.page.close();
}
await browser.close();
process.exit(0);

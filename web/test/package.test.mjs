// Tests the package in Node, for each build: models, sessions, backend cases, and invalid input. ONX_SIMD=0 tests the build
// without SIMD.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import onx, { backendDir, packageDir, readCase } from "./lib.mjs";

const { InferenceSession, OnxError, Tensor, env, hasSimd, hasThreads, init, load, parse, program } = onx;
env.simd = process.env.ONX_SIMD !== "0";

const ADD = `<ir_version: 8, opset_import: ["" : 17]>
add (float[N, 3] x, float[3] y) => (float[N, 3] z) { z = Add (x, y) }`;

async function rejects(promise, pattern) {
  const error = await promise.then(() => assert.fail("nothing was thrown"), (e) => e);
  assert.ok(error instanceof OnxError, String(error));
  assert.match(error.message, pattern);
  return error;
}

test("the engine has vectors, and each build is the one that was asked for", async () => {
  assert.equal(hasSimd(), true);
  const build = (name, simd) => join(packageDir, "wasm", name + (simd ? ".wasm" : "-plain.wasm"));
  for (const [what, name] of [["session", "onx-run"], ["program", "onx"]]) {
    const { module } = await init(what);
    const own = await WebAssembly.compile(readFileSync(build(name, env.simd)));
    assert.deepEqual(WebAssembly.Module.exports(module), WebAssembly.Module.exports(own));
    const other = build(name, !env.simd);
    if (existsSync(other)) // a test run may have built only one of the two
      assert.notDeepEqual(readFileSync(build(name, env.simd)), readFileSync(other));
  }
  assert.throws(() => init("nothing"), /session, program, threads/);
});

test("a model is parsed, shown, converted and read again", async () => {
  const model = await parse(ADD);
  assert.match(await model.show(), /z = Add\(x, y\)/);
  const binary = await model.convert("onnx");
  assert.equal(binary.format, "onnx");
  const json = JSON.parse(new TextDecoder().decode((await binary.convert("json")).bytes));
  assert.equal(json.graph.node[0].op_type, "Add");
  const again = await load(binary.bytes);
  assert.deepEqual(await again.diff(model), []);
  assert.equal((await again.info()).graph.nodes, 1);
});

test("files are read by path and by URL", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "onx-")), "a model.onnxtxt");
  writeFileSync(path, ADD);
  assert.equal((await load(path)).format, "onnxtxt");
  assert.equal((await load(new URL(`file://${path.replace(" ", "%20")}`))).format, "onnxtxt");
  await rejects(load(path + ".missing"), /cannot read/);
});

test("models are checked, inferred, simplified, retargeted and compared", async () => {
  const model = await parse(`<ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 2] x) => (float[M, 2] y) <float[2] w = {1, 2}> { a = Identity (x)  b = Mul (a, w)  y = Neg (b) }`);
  const report = await model.check({ full: true });
  assert.equal(report.valid, true);
  const broken = await parse(`<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu (z) }`);
  const found = await broken.check();
  assert.equal(found.valid, false);
  assert.ok(found.findings.some((f) => f.severity === "error" && f.rule && /z/.test(f.message)));
  assert.match(await (await model.infer({ dim: { N: 7 } })).show({ format: "onnxtxt" }), /float\[7, 2\] b/);
  const small = await model.simplify();
  assert.ok((await small.info()).graph.nodes < 3);
  const differences = await model.diff(small);
  assert.ok(differences.some((d) => d.what === "removed"));
  assert.match(await (await model.retarget(13)).show(), /"": 13/);
  await rejects(model.check({ fulll: true }), /no option "fulll"/);
});

test("a session runs, and runs again with other shapes", async () => {
  const session = await InferenceSession.create(await parse(ADD));
  assert.deepEqual(session.inputNames, ["x", "y"]);
  assert.deepEqual(session.inputMetadata[0], { name: "x", isTensor: true, required: true, type: "float32", shape: ["N", 3] });
  const y = new Tensor("float32", [10, 20, 30], [3]);
  for (const n of [1, 2, 5]) {
    const { z } = await session.run({ x: new Tensor(new Float32Array(n * 3).fill(n), [n, 3]), y });
    assert.deepEqual(z.dims, [n, 3]);
    assert.deepEqual([...z.data.subarray(0, 3)], [10 + n, 20 + n, 30 + n]);
  }
  await rejects(session.run({ x: y, y }), /x/);
  await rejects(session.run({ x: y }), /y/);
  await rejects(session.run({ w: y }), /no input "w"/);
  await rejects(session.run({ x: y, y }, ["q"]), /no output "q"/);
  const { z } = await session.run({ x: new Tensor("float32", [1, 2, 3], [1, 3]), y });
  const feeds = { x: new Tensor("float32", [1, 2, 3], [1, 3]), y };
  assert.deepEqual(Object.keys(await session.run(feeds, { logSeverityLevel: 3 })), ["z"]); // options
  assert.deepEqual(Object.keys(await session.run(feeds, { z: null }, {})), ["z"]);
  assert.deepEqual([...z.data], [11, 22, 33]);
  await session.release();
  await rejects(session.run({ y }), /released/);
});

test("sessions are made from bytes, from part of a buffer, from text", async () => {
  const { bytes } = await (await parse(ADD)).convert("onnx");
  const feeds = { x: new Tensor("float32", [1, 2, 3], [1, 3]), y: new Tensor("float32", [1, 1, 1], [3]) };
  const padded = new Uint8Array(bytes.length + 20);
  padded.set(bytes, 7);
  for (const session of [
    await InferenceSession.create(bytes),
    await InferenceSession.create(padded.buffer, 7, bytes.length),
    await InferenceSession.create(new TextEncoder().encode(ADD), { format: "onnxtxt" }),
  ])
    assert.deepEqual([...(await session.run(feeds)).z.data], [2, 3, 4]);
});

test("all element types go in and come out", async () => {
  for (const [type, data] of [
    ["float32", new Float32Array([1.5, -2])], ["float64", new Float64Array([1.5, -2])], ["int64", new BigInt64Array([-5n, 1n << 40n])],
    ["uint64", new BigUint64Array([5n, 1n << 63n])], ["int8", new Int8Array([-1, 2])], ["uint8", new Uint8Array([1, 255])],
    ["int16", new Int16Array([-1, 2])], ["uint16", new Uint16Array([1, 65535])], ["int32", new Int32Array([-1, 2])],
    ["uint32", new Uint32Array([1, 2 ** 32 - 1])], ["bool", new Uint8Array([1, 0])], ["string", ["", "zwölf"]],
    ["float16", new Uint16Array([0x3c00, 0xc000])], ["bfloat16", new Uint16Array([0x3f80, 0xc000])],
  ]) {
    const names = { float32: "float", float64: "double" };
    const session = await InferenceSession.create(
      await parse(`<ir_version: 8, opset_import: ["" : 17]> g (${names[type] ?? type}[N] x) => (${names[type] ?? type}[N] y) { y = Identity (x) }`));
    const { y } = await session.run({ x: new Tensor(type, data) });
    assert.equal(y.type, type);
    assert.deepEqual(y.data, data);
  }
});

test("sequences and maps", async () => {
  const split = await InferenceSession.create(await parse(`<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, seq(float[N]) s) => (seq(float[M]) y, int64 n) { y = SplitToSequence (x)  n = SequenceLength (s) }`));
  const x = new Tensor("float32", [1, 2, 3, 4]);
  const { y, n } = await split.run({ x, s: [x, x, x] });
  assert.deepEqual(y.map((t) => t.data[0]), [1, 2, 3, 4]);
  assert.equal(n.data[0], 3n);
  const zip = await InferenceSession.create(await parse(`<ir_version: 8, opset_import: ["ai.onnx.ml" : 3, "" : 17]>
    g (float[1, 2] x) => (seq(map(string, float)) y) { y = ai.onnx.ml.ZipMap <classlabels_strings = ["cat", "dog"]> (x) }`));
  const [map] = (await zip.run({ x: new Tensor("float32", [3, 4], [1, 2]) })).y;
  assert.deepEqual([...map.keys()], ["cat", "dog"]);
});

test("external data", async () => {
  const model = await parse(`<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) <float[2] w = {3, 4}> { y = Mul (x, w) }`);
  const { files, stderr } = await program(["convert", "m.onnxtxt", "m.onnx", "--external", "data/w.bin", "--external-threshold", "1"],
                                          { "m.onnxtxt": model.bytes }, ["m.onnx", "data/w.bin"]);
  assert.equal(stderr, "");
  const externalData = [{ path: "data/w.bin", data: files["data/w.bin"] }];
  const session = await InferenceSession.create(files["m.onnx"], { externalData });
  assert.deepEqual([...(await session.run({ x: new Tensor("float32", [1, 1]) })).y.data], [3, 4]);
  const outside = await load(files["m.onnx"], { externalData });
  assert.deepEqual(await outside.diff(model), []);
  await rejects(InferenceSession.create(files["m.onnx"]), /external data/);
  await rejects(InferenceSession.create(files["m.onnx"], { files: { "../w.bin": files["data/w.bin"] } }), /not the name of a file/);
});

test("models that are broken are errors with diagnostics", async () => {
  const error = await rejects(load(new Uint8Array([1, 2, 3, 255])), /./);
  assert.ok(error.diagnostics.length > 0 && error.diagnostics[0].severity === "error");
  await rejects(InferenceSession.create(new Uint8Array(0)), /./);
  await rejects(parse("<ir_version: 8> g ( => "), /./);
  await rejects(InferenceSession.create(await parse(`<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Nothing (x) }`)), /Nothing/);
  await rejects(load("x.onnx", { format: "pt" }), /./);
  await rejects(load(17), /expected bytes/);
  const { bytes } = await (await parse(ADD)).convert("onnx");
  for (let cut = 1; cut < bytes.length; cut += 3) await load(bytes.subarray(0, cut)).catch((e) => assert.ok(e instanceof OnxError, String(e)));
});

test("what a page fetches to run a model is about a tenth of onnxruntime-web's 6.7 MB", () => {
  for (const name of ["onx-run", "onx-threads"]) {
    const path = join(packageDir, "wasm", `${name}${env.simd ? "" : "-plain"}.wasm`);
    if (existsSync(path)) // threads exist only in the build with SIMD
      assert.ok(gzipSync(readFileSync(path)).length <= 740_000, `${path}: ${gzipSync(readFileSync(path)).length} bytes with gzip`);
  }
});

test("what the module for sessions leaves out runs in the program's", async () => {
  const upper = await parse(`<ir_version: 8, opset_import: ["" : 17, "ai.onnx.contrib" : 1]>
    g (string[N] x) => (string[N] y) { y = ai.onnx.contrib.StringUpper (x) }`);
  const slope = await parse(`<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
    g (float x) => (float y, float d) {
      y = Mul (x, x)
      d = ai.onnx.preview.training.Gradient <xs = ["x"], y = "y"> (x)
    }`);
  const search = await parse(`<ir_version: 11, opset_import: ["" : 21, "com.microsoft" : 1]>
    g (int32[1, 2] x) => (int32[b, l] y) <int32[1] n = {4}> {
      y = com.microsoft.GreedySearch <eos_token_id = 1, pad_token_id = 0, decoder =
        step (int32[b, s] i, int32[b, s] p, int32[b, a] m, float[2, b, 1, c, 1] past) => (float[b, s, 3] scores, float[2, b, 1, d, 1] present) {
          each = Constant <value = float[1, 1, 3] {1, 2, 3}> ()
          rows = Shape (i)
          tokens = Constant <value = int64[1] {3}> ()
          shape = Concat <axis = 0> (rows, tokens)
          scores = Expand (each, shape)
          f = Cast <to = 1> (i)
          axes = Constant <value = int64[3] {0, 2, 4}> ()
          key = Unsqueeze (f, axes)
          both = Concat <axis = 0> (key, key)
          present = Concat <axis = 3> (past, both)
        }> (x, n)
    }`);
  for (const threads of [1, 2]) {
    const words = await InferenceSession.create(upper, { intraOpNumThreads: threads });
    assert.deepEqual((await words.run({ x: new Tensor("string", ["ab", "Cd"], [2]) })).y.data, ["AB", "CD"]);
    const session = await InferenceSession.create((await slope.convert("onnx")).bytes, { intraOpNumThreads: threads });
    const { y, d } = await session.run({ x: new Tensor("float32", [3], []) });
    assert.deepEqual([y.data[0], d.data[0]], [9, 6]);
    const greedy = await InferenceSession.create(search, { intraOpNumThreads: threads });
    assert.deepEqual([...(await greedy.run({ x: new Tensor("int32", [1, 2], [1, 2]) })).y.data], [1, 2, 2, 2]);
  }
  // Warnings that nobody has read are still reported once.
  await rejects(InferenceSession.create(await parse(`<ir_version: 8, opset_import: ["" : 17, "ai.onnx.contrib" : 1]>
    g (string[N] x) => (string[N] y) { y = ai.onnx.contrib.BlingFireSentenceBreaker (x) }`)), /BlingFire/);
});

test("what needs more memory than there is fails, and the next job works", async () => {
  const huge = await parse(`<ir_version: 8, opset_import: ["" : 17]>
    g (int64[2] s) => (float[M, N] y) { y = ConstantOfShape (s) }`);
  const session = await InferenceSession.create(huge);
  const size = (a, b) => ({ s: new Tensor("int64", [a, b]) });
  await rejects(session.run(size(100000, 100000)), /memory|limit/); // 40 GB
  await rejects(session.run(size(2 ** 31, 2 ** 31)), /memory|limit|large|elements|dim/i);
  await rejects(session.run(size(-1, 2)), /./);
  await rejects(session.run(size(33000, 33000)), /memory|limit/); // 4.4 GB: more than 32-bit addresses reach
  const { y } = await session.run(size(2, 3));
  assert.deepEqual(y.dims, [2, 3]);
  const limited = await InferenceSession.create(huge, { memory: 1e6 });
  await rejects(limited.run(size(1000, 1000)), /limit/);
  assert.equal((await limited.run(size(10, 10))).y.size, 100);
});

test("nesting without end, and sizes that lie", async () => {
  let deep = "x";
  for (let i = 0; i < 300; i++) deep = `seq(${deep})`;
  await rejects(parse(`<ir_version: 8, opset_import: ["" : 17]> g (${deep} x) => (float y) { y = Relu (x) }`), /./);
  // A tensor that claims to have 2^62 elements, in a model of a few bytes.
  const lie = await parse(`{"ir_version": 8, "opset_import": [{"version": 17}], "graph": {"name": "g",
    "initializer": [{"name": "w", "data_type": 1, "dims": ["4611686018427387904"], "raw_data": ""}],
    "node": [{"op_type": "Identity", "input": ["w"], "output": ["y"]}], "output": [{"name": "y", "type": {"tensor_type": {"elem_type": 1}}}]}}`,
    { format: "json" });
  assert.equal((await lie.check()).valid, false);
  await rejects(InferenceSession.create(lie), /./);
});

test("memory of sessions that nobody refers to comes back", async () => {
  const { bytes } = await (await parse(ADD)).convert("onnx");
  const feeds = { x: new Tensor("float32", [1, 2, 3], [1, 3]), y: new Tensor("float32", [1, 1, 1], [3]) };
  for (let i = 0; i < 60; i++) await (await InferenceSession.create(bytes)).run(feeds); // 16 MB each, if they were kept
});

test("one session runs often without growing", async () => {
  const session = await InferenceSession.create(await parse(ADD));
  const feeds = { x: new Tensor(new Float32Array(30000), [10000, 3]), y: new Tensor("float32", [1, 1, 1], [3]) };
  for (let i = 0; i < 400; i++) await session.run(feeds); // 96 MB, if they were kept
  const before = process.memoryUsage().arrayBuffers;
  for (let i = 0; i < 400; i++) await session.run(feeds);
  globalThis.gc?.();
  assert.ok(process.memoryUsage().arrayBuffers < before + 2e8);
});

const PRODUCT = `<ir_version: 8, opset_import: ["" : 17]> g (float[N, K] x, float[K, M] w) => (float[N, M] y) { p = MatMul (x, w)  y = Relu (p) }`;

function productOf(n, k, m) {
  const [x, w] = [new Float32Array(n * k), new Float32Array(k * m)];
  x.forEach((_, i) => (x[i] = ((i * 7) % 13) - 6));
  w.forEach((_, i) => (w[i] = ((i * 5) % 11) - 5));
  return { x: new Tensor("float32", x, [n, k]), w: new Tensor("float32", w, [k, m]) };
}

test("threads give the same results, also after the memory grew, and end with their session", { skip: env.simd ? false : "vectors only" }, async () => {
  assert.equal(hasThreads(), true);
  const model = await parse(PRODUCT);
  const alone = await InferenceSession.create(model);
  const many = await InferenceSession.create(model, { intraOpNumThreads: 3 });
  for (const size of [4, 300, 700, 33]) {
    const feeds = productOf(size, 64 + size, 2 * size);
    const [a, b] = [await alone.run(feeds), await many.run(feeds)];
    assert.deepEqual(b.y.data, a.y.data);
  }
  await many.release();
  env.wasm.numThreads = 2;
  for (let i = 0; i < 8; i++) {
    const session = await InferenceSession.create(model); // freed by the garbage collector
    assert.deepEqual((await session.run(productOf(64, 8, 64))).y.data.length, 4096);
  }
  env.threads = 1;
  await rejects(InferenceSession.create(model, { intraOpNumThreads: -1 }), /threads/);
  await rejects(InferenceSession.create(new Uint8Array([1, 2]), { intraOpNumThreads: 2 }), /./);
});

test("a process ends while threads of a session wait", { skip: env.simd ? false : "vectors only" }, () => {
  const script = `import { InferenceSession, Tensor } from ${JSON.stringify(pathToFileURL(join(packageDir, "lib/index.js")).href)};
    const s = await InferenceSession.create(new TextEncoder().encode(${JSON.stringify(PRODUCT)}), { format: "onnxtxt", intraOpNumThreads: 2 });
    const t = new Tensor("float32", new Float32Array(90000), [300, 300]);
    console.log((await s.run({ x: t, w: t })).y.data.length);`;
  assert.equal(execFileSync(process.execPath, ["--input-type=module", "-e", script], { timeout: 60000, encoding: "utf8" }), "90000\n");
});

test("random bytes are found where there is no global crypto, as in Node 18", () => {
  const script = `delete globalThis.crypto;
    const { program } = await import(${JSON.stringify(pathToFileURL(join(packageDir, "lib/index.js")).href)});
    const files = { "a.onnxtxt": new TextEncoder().encode(${JSON.stringify(ADD)}) };
    const made = await program(["view", "a.onnxtxt", "-o", "a.html"], files, ["a.html"]); // uses a temporary file
    console.log(made.status, Object.keys(made.files).join());`;
  assert.equal(execFileSync(process.execPath, ["--input-type=module", "-e", script], { timeout: 60000, encoding: "utf8" }), "0 a.html\n");
});

test("the module comes while the model does", async () => {
  const script = `import { createServer } from "node:http";
    import { readFileSync } from "node:fs";
    const { InferenceSession, env } = await import(${JSON.stringify(pathToFileURL(join(packageDir, "lib/index.js")).href)});
    env.simd = ${env.simd};
    const asked = [], folder = ${JSON.stringify(join(packageDir, "wasm"))};
    let model;
    const give = () => { if (model && asked.length > 1) model.end(${JSON.stringify(ADD)}); };
    const server = createServer((request, answer) => {
      asked.push(request.url);
      if (request.url.endsWith(".wasm")) answer.end(readFileSync(folder + request.url));
      else model = answer;
      give(); // gives the model only after the module was requested, too
    }).listen(0, "127.0.0.1", async () => {
      const base = "http://127.0.0.1:" + server.address().port + "/";
      env.wasmPath = base;
      const session = await InferenceSession.create(base + "add.onnxtxt");
      console.log(session.inputNames.join(), asked.length);
      process.exit(0);
    });`;
  assert.equal(execFileSync(process.execPath, ["--input-type=module", "-e", script], { timeout: 60000, encoding: "utf8" }), "x,y 2\n");
});

test("tensors say what is wrong with them", () => {
  assert.throws(() => new Tensor("float32", [1, 2], [3]), /3 elements/);
  assert.throws(() => new Tensor("float31", [1]), /no element type/);
  assert.throws(() => new Tensor("int64", new Float32Array(1)), /BigInt64Array/);
  assert.throws(() => new Tensor("float32", [1], [-1]), /not a dimension/);
  assert.throws(() => new Tensor("string", [1]), /strings/);
  assert.throws(() => new Tensor("int64", [0.5]), /int64/);
  assert.equal(new Tensor([true, false]).type, "bool");
  assert.equal(new Tensor("int64", [1, 2]).data[1], 2n);
});

test("the program says how to call it, and what is wrong with a call", async () => {
  const version = await program(["--version"]);
  assert.equal(version.status, 0);
  assert.match(version.stdout, /^onx \d/);
  assert.equal((await program(["nonsense"])).status, 2);
  await rejects(program(["show", "\0"]), /strings/);
});

const CASES = ["test_conv_with_strides_padding", "test_conv_with_autopad_same", "test_softmax_axis_1", "test_gemm_all_attributes", "test_lstm_defaults",
  "test_matmul_3d", "test_batchnorm_epsilon", "test_maxpool_2d_ceil", "test_resize_upsample_scales_linear", "test_einsum_inner_prod",
  "test_gather_0", "test_nonmaxsuppression_two_batches", "test_quantizelinear", "test_cast_FLOAT_to_DOUBLE", "test_topk",
  "test_averagepool_2d_pads", "test_layer_normalization_2d_axis1", "test_reduce_mean_keepdims_random", "test_convtranspose_pads", "test_gru_defaults"];
const data = backendDir();
for (const name of CASES)
  test(`backend: ${name}`, { skip: data && existsSync(join(data, "node", name)) ? false : "no libonnx-testdata" }, async () => {
    const folder = join(data, "node", name);
    const session = await InferenceSession.create(readFileSync(join(folder, "model.onnx")));
    const sets = await readCase(folder);
    assert.ok(sets.length > 0);
    for (const { inputs, outputs } of sets) {
      const feeds = Object.fromEntries(inputs.map((value, i) => [session.inputNames[i], value]));
      const results = await session.run(feeds);
      outputs.forEach((want, i) => {
        const got = results[session.outputNames[i]];
        assert.deepEqual(got.dims, want.dims);
        assert.equal(got.type, want.type);
        for (let k = 0; k < want.size; k++) {
          const [a, b] = [Number(got.data[k]), Number(want.data[k])];
          assert.ok(Object.is(a, b) || Math.abs(a - b) <= 1e-7 + 1e-3 * Math.abs(b), `${name}: element ${k} is ${a}, not ${b}`);
        }
      });
    }
  });

test("compiling from a file does not let Node load its fetch", () => {
  const script = `const given = Object.getOwnPropertyDescriptor(globalThis, "Response");
    let named = false;
    Object.defineProperty(globalThis, "Response", { configurable: true, get() { named = true; return given.get ? given.get.call(globalThis) : given.value; } });
    const { init, env } = await import(${JSON.stringify(pathToFileURL(join(packageDir, "lib/index.js")).href)});
    env.simd = ${env.simd};
    await init("session");
    console.log(named);`;
  assert.equal(execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }).trim(), "false");
});

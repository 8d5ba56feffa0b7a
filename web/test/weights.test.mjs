// Models with large weights, which stay out of the session's memory until they are packed. The models are written byte by byte
// here, so that fields come in any order, repeatedly, and with wrong sizes.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import onx from "./lib.mjs";

const { InferenceSession, OnxError, Tensor, env, load } = onx;
env.simd = process.env.ONX_SIMD !== "0";

const folder = mkdtempSync(join(tmpdir(), "onx-weights-"));
after(() => rmSync(folder, { recursive: true }));
const openFiles = () => (process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0);

// ---- models ----

function number(value) {
  const bytes = [];
  for (let n = BigInt.asUintN(64, BigInt(value)); ; n >>= 7n) {
    if (n < 128n) return Buffer.from([...bytes, Number(n)]);
    bytes.push(Number(n & 127n) | 128);
  }
}
const int = (id, value) => Buffer.concat([number(id * 8), number(value)]);
const part = (id, ...content) => {
  const bytes = Buffer.concat(content.map((c) => (typeof c === "string" ? Buffer.from(c) : c)));
  return Buffer.concat([number(id * 8 + 2), number(bytes.length), bytes]);
};
const floats = (array) => Buffer.from(new Float32Array(array).buffer);
const value = (name, ...dims) =>
  Buffer.concat([part(1, name), part(2, part(1, int(1, 1), part(2, ...dims.map((d) => part(1, typeof d === "string" ? part(2, d) : int(1, d))))))]);

const SIZE = 192; // rows and columns of a matrix, which has more than 64 KiB
const weight = (i, k) => (((i * 7 + k * 3) % 11) - 5) / 8;
const matrix = (turn = 0) => floats(Array.from({ length: SIZE * SIZE }, (_, at) => weight(Math.floor(at / SIZE) + turn, at % SIZE)));

/** y = (x w) v, with w given by the fields. */
function graph(w, more = []) {
  return [
    part(1, part(1, "x"), part(1, "w"), part(2, "t"), part(4, "MatMul")),
    part(1, part(1, "t"), part(1, "v"), part(2, "y"), part(4, "MatMul")),
    part(2, "g"),
    part(5, ...w),
    part(5, int(1, SIZE), int(1, SIZE), int(2, 1), part(8, "v"), part(9, matrix(1))),
    part(11, value("x", "N", SIZE)),
    part(12, value("y", "N", SIZE)),
    ...more,
  ];
}
const model = (...graphs) => Buffer.concat([int(1, 8), part(8, int(2, 17)), ...graphs.map((g) => part(7, ...g))]);
const plain = [int(1, SIZE), int(1, SIZE), int(2, 1), part(8, "w"), part(9, matrix())];

function expected(x, rows) {
  const times = (left, turn) =>
    Float64Array.from({ length: rows * SIZE }, (_, at) => {
      let sum = 0;
      for (let k = 0; k < SIZE; k++) sum += left[Math.floor(at / SIZE) * SIZE + k] * weight(k + turn, at % SIZE);
      return sum;
    });
  return times(times(x, 0), 1);
}

async function expectRight(session, rows) {
  const x = Float32Array.from({ length: rows * SIZE }, (_, i) => ((i % 13) - 6) / 4);
  const { y } = await session.run({ x: new Tensor("float32", x, [rows, SIZE]) });
  const right = expected(x, rows);
  assert.deepEqual(y.dims, [rows, SIZE]);
  for (let i = 0; i < right.length; i++) assert.ok(Math.abs(y.data[i] - right[i]) <= 1e-3 * (1 + Math.abs(right[i])), `${i}: ${y.data[i]}, not ${right[i]}`);
}

// ---- tests ----

test("from bytes, which may change afterwards, and from a Model", async () => {
  const bytes = model(graph(plain));
  const sessions = [await InferenceSession.create(bytes), await InferenceSession.create(await load(bytes))];
  bytes.fill(0);
  for (const session of sessions) for (const rows of [1, 40, 3]) await expectRight(session, rows);
});

test("from files, which are open as long as their session", async () => {
  const path = join(folder, "m.onnx");
  writeFileSync(path, model(graph(plain)));
  await expectRight(await InferenceSession.create(path), 2); // so that files that Node opens once are open
  const before = openFiles();
  for (const source of [path, pathToFileURL(path), String(pathToFileURL(path))]) {
    const session = await InferenceSession.create(source);
    await expectRight(session, 3);
    assert.equal(openFiles(), before + (before ? 1 : 0));
    await session.release();
    assert.equal(openFiles(), before);
  }
});

test("threads read files, too", { skip: env.simd ? false : "vectors only" }, async () => {
  const path = join(folder, "t.onnx");
  writeFileSync(path, model(graph(plain)));
  const session = await InferenceSession.create(path, { intraOpNumThreads: 2 });
  for (const rows of [1, 70]) await expectRight(session, rows);
  await session.release();
});

test("data files are read where they are", async () => {
  const entry = (key, text) => part(13, part(1, key), part(2, text));
  const outside = [int(1, SIZE), int(1, SIZE), int(2, 1), part(8, "w"), entry("location", "weights"), entry("offset", "12"), int(14, 1)];
  const bytes = model(graph(outside)), data = Buffer.concat([Buffer.alloc(12), matrix()]), path = join(folder, "weights.bin");
  writeFileSync(path, data);
  const before = openFiles();
  const sessions = [
    await InferenceSession.create(bytes, { externalData: [{ path: "weights", data: path }] }), // the name of the data file for v
    await InferenceSession.create(bytes, { externalData: [{ path: "weights", data }] }),
    await InferenceSession.create(bytes, { files: { weights: data } }),
  ];
  data.fill(0);
  for (const session of sessions) {
    for (const rows of [2, 33]) await expectRight(session, rows);
    await session.release();
  }
  assert.equal(openFiles(), before);
});

test("fields in any order, packed, and more than once", async () => {
  const twice = [int(1, SIZE), int(1, SIZE), int(2, 1), part(8, "w"), part(9, matrix(5)), part(9, matrix())]; // the last one counts
  const orders = [[...plain].reverse(), [part(1, number(SIZE), number(SIZE)), ...plain.slice(2)], twice, [...plain, part(12, "a note")]];
  for (const w of orders) await expectRight(await InferenceSession.create(model(graph(w))), 2);
  const [first, second] = [graph(plain).slice(0, 3), graph(plain).slice(3)]; // two parts of one graph
  await expectRight(await InferenceSession.create(model(first, second)), 2);
});

test("what is wrong with weights is said as for any model", async () => {
  const raw = plain.at(-1), wrong = {
    "raw_data": [int(1, SIZE + 1), ...plain.slice(1)], // as many bytes as other dims need
    "-192": [int(1, -SIZE), ...plain.slice(1)],
    "999": [...plain.slice(0, 2), int(2, 999), part(8, "w"), raw],
    "external": [...plain, int(14, 1)], // no location is given
  };
  for (const [what, w] of Object.entries(wrong)) {
    const error = await InferenceSession.create(model(graph(w))).then(() => assert.fail(`${what}: no error`), (e) => e);
    assert.ok(error instanceof OnxError && error.message.includes(what) && error.message.includes('"w"'), `${what}: ${error}`);
  }
});

test("files that are cut, change, or are none", async () => {
  const path = join(folder, "cut.onnx"), bytes = model(graph(plain)), before = openFiles();
  for (const size of [0, 1, 20, 3000, 1 << 16, bytes.length >> 1, bytes.length - SIZE, bytes.length - 1]) {
    writeFileSync(path, bytes.subarray(0, size));
    for (const source of [path, bytes.subarray(0, size)])
      await InferenceSession.create(source).then(() => assert.fail(`${size} bytes are a model`), (e) => assert.ok(e instanceof OnxError, String(e)));
  }
  for (const none of [folder, join(folder, "none.onnx")]) await assert.rejects(InferenceSession.create(none), /cannot read/);
  assert.equal(openFiles(), before);
  writeFileSync(path, bytes);
  const session = await InferenceSession.create(path);
  truncateSync(path, 100); // bytes read before are there, but reading now fails
  await expectRight(session, 2).catch((e) => assert.ok(e instanceof OnxError && /data file|input or output/.test(e.message), String(e)));
  await session.release();
});

test("models come from servers, whole, or they are errors", { skip: typeof fetch === "undefined" ? "no fetch" : false }, async () => {
  const bytes = model(graph(plain)), packed = gzipSync(bytes);
  const small = model([part(1, part(1, "x"), part(2, "y"), part(4, "Neg")), part(2, "g"), part(11, value("x", 2)), part(12, value("y", 2))]);
  const slowly = async (a, bytes, size) => {
    for (let at = 0; at < bytes.length; at += size) {
      a.write(bytes.subarray(at, at + size));
      await new Promise((sent) => setTimeout(sent, 1));
    }
    a.end();
  };
  const answers = {
    right: (a) => a.writeHead(200, { "Content-Length": bytes.length }).end(bytes),
    none: (a) => (a.writeHead(200), a.write(bytes.subarray(0, 70000)), a.end(bytes.subarray(70000))),
    pieces: (a) => (a.writeHead(200), slowly(a, bytes, 4999)), // elements span two pieces
    small: (a) => (a.writeHead(200), slowly(a, small, 7)),
    smaller: (a) => (a.writeHead(200), a.end(small)),
    few: (a) => (a.writeHead(200), slowly(a, bytes, 150001)),
    gzip: (a) => a.writeHead(200, { "Content-Length": packed.length, "Content-Encoding": "gzip" }).end(packed),
    short: (a) => (a.writeHead(200, { "Content-Length": bytes.length }), a.write(bytes.subarray(0, 100000)), setTimeout(() => a.destroy(), 50)),
    huge: (a) => (a.writeHead(200, { "Content-Length": 2 ** 50 }), a.write(bytes), setTimeout(() => a.destroy(), 50)),
    missing: (a) => a.writeHead(404).end(),
  };
  const server = createServer((request, answer) => answers[request.url.slice(1)](answer));
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const url = (name) => `http://127.0.0.1:${server.address().port}/${name}`;
  for (const name of ["right", "none", "pieces", "few", "gzip"]) await expectRight(await InferenceSession.create(url(name)), 2);
  for (const name of ["short", "huge", "missing"])
    await InferenceSession.create(url(name)).then(() => assert.fail(`${name} is a model`), (e) => assert.ok(e instanceof OnxError && /cannot fetch/.test(e.message), String(e)));
  assert.deepEqual(await (await load(url("small"))).info(), await (await load(small)).info());
  for (const source of [url("small"), url("smaller"), small]) assert.deepEqual((await InferenceSession.create(source)).inputNames, ["x"]);
  server.closeAllConnections?.();
  server.close();
});

// Pictures to tensors and back, without a browser; tests/browser/app.mjs tests decoding and drawing by a browser.
import assert from "node:assert/strict";
import test from "node:test";
import { inflateSync } from "node:zlib";
import onx from "./lib.mjs";

const { OnxError, Tensor, env } = onx;
const two = { data: new Uint8ClampedArray([255, 0, 10, 255, 0, 255, 20, 128]), width: 2, height: 1 };
const numbers = (tensor) => [...tensor.data];
const whole = { norm: { mean: 1 } };

test("a picture is a tensor of 1 x 3 x height x width, from 0 to 1", async () => {
  const t = await Tensor.fromImage(two);
  assert.equal(t.type, "float32");
  assert.deepEqual([...t.dims], [1, 3, 1, 2]);
  assert.deepEqual(numbers(t), [1, 0, 0, 1, ...[10, 20].map((n) => Math.fround(n / 255))]);
});

test("channels, layout, type and norm", async () => {
  const of = async (options) => numbers(await Tensor.fromImage(two, options));
  assert.deepEqual(await of({ ...whole, tensorFormat: "BGR" }), [10, 20, 0, 255, 255, 0]);
  assert.deepEqual(await of({ ...whole, tensorFormat: "RBG" }), [255, 0, 10, 20, 0, 255]);
  assert.deepEqual(await of({ ...whole, tensorFormat: "RGBA" }), [255, 0, 0, 255, 10, 20, 255, 128]);
  assert.deepEqual(await of({ tensorLayout: "NHWC", dataType: "uint8" }), [255, 0, 10, 0, 255, 20]);
  assert.deepEqual(await of({ norm: { mean: [1, 2, 4], bias: [1, 2, 2] } }), [256, 1, 1, 128.5, 3, 5.5]);
  const rgb = await Tensor.fromImage({ data: new Uint8Array([1, 2, 3]), width: 1, height: 1 }, { ...whole, tensorFormat: "RGBA" });
  assert.deepEqual(numbers(rgb), [1, 2, 3, 255]);
});

test("another size: what shrinks is averaged, what grows is between its neighbours", async () => {
  const line = { data: new Uint8Array([0, 0, 0, 100, 100, 100]), width: 2, height: 1 };
  const wide = await Tensor.fromImage(line, { ...whole, resizedWidth: 4, resizedHeight: 2 });
  assert.deepEqual([...wide.dims], [1, 3, 2, 4]);
  assert.deepEqual(numbers(wide).slice(0, 8), [0, 25, 75, 100, 0, 25, 75, 100]);
  const small = await Tensor.fromImage({ data: new Uint8Array(300).fill(7).fill(207, 150), width: 10, height: 10 }, { ...whole, resizedWidth: 1, resizedHeight: 1 });
  assert.ok(numbers(small).every((v) => Math.abs(v - 107) < 1e-3), String(numbers(small)));
});

test("and back, whole", async () => {
  const t = await Tensor.fromImage(two, { tensorFormat: "RGBA" });
  assert.deepEqual(t.toImageData(), { ...two, data: two.data });
  const bgr = await Tensor.fromImage(two, { tensorFormat: "BGR", tensorLayout: "NHWC", dataType: "uint8" });
  assert.deepEqual([...bgr.toImageData({ format: "BGR", tensorLayout: "NHWC" }).data], [255, 0, 10, 255, 0, 255, 20, 255]);
  assert.deepEqual([...new Tensor("float32", [0.5, 2], [1, 1, 1, 2]).toImageData().data], [128, 128, 128, 255, 255, 255, 255, 255]);
  assert.deepEqual([...new Tensor("float32", [3, 4, 5], [3, 1, 1]).toImageData({ norm: { mean: 10, bias: [1, 0, 2] } }).data], [20, 40, 30, 255]);
});

test("a PNG, also of more than a block", async () => {
  const size = 200, data = Uint8Array.from({ length: size * size * 4 }, (_, i) => (i * 7919) >> 3);
  const url = (await Tensor.fromImage({ data, width: size, height: size }, { tensorFormat: "RGBA", dataType: "uint8" })).toDataURL();
  assert.match(url, /^data:image\/png;base64,/);
  const png = Buffer.from(url.slice(url.indexOf(",") + 1), "base64");
  assert.equal(png.toString("latin1", 12, 16), "IHDR");
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [size, size]);
  const length = png.readUInt32BE(33), lines = inflateSync(png.subarray(41, 41 + length)); // inflate checks the checksum after the data
  for (let y = 0; y < size; y++) assert.deepEqual(lines.subarray(y * (size * 4 + 1) + 1, (y + 1) * (size * 4 + 1)), Buffer.from(data.subarray(y * size * 4, (y + 1) * size * 4)));
});

test("what is no picture", async () => {
  const bad = async (pattern, source, options) =>
    assert.rejects(Tensor.fromImage(source, options), (e) => e instanceof OnxError && (assert.match(e.message, pattern), true));
  await bad(/nothing here decodes/, "x.png");
  await bad(/nothing here decodes/, new Blob(["x"]));
  await bad(/expected a picture/, null);
  await bad(/expected a picture/, { data: new Uint8Array(4) });
  await bad(/3 or 4 bytes for each, not 5/, { data: new Uint8Array(5), width: 1, height: 1 });
  await bad(/0 x 1 pixels/, { data: new Uint8Array(4), width: 0, height: 1 });
  await bad(/too large/, { data: new Uint8Array(4), width: 1e6, height: 1e6 });
  await bad(/too large/, two, { resizedWidth: 1e9 });
  await bad(/NaN x 1 pixels/, two, { resizedWidth: NaN });
  await bad(/Uint8ClampedArray/, { data: [1, 2, 3], width: 1, height: 1 });
  await bad(/tensorFormat "GRB"; there are RGB/, two, { tensorFormat: "GRB" });
  await bad(/tensorLayout/, two, { tensorLayout: "CHWN" });
  await bad(/dataType "int64"/, two, { dataType: "int64" });
  await bad(/norm.mean is 0/, two, { norm: { mean: [1, 0, 1] } });
  await bad(/norm.bias is a number/, two, { norm: { bias: "1" } });
  const back = (dims, pattern, options, type = "float32") =>
    assert.throws(() => new Tensor(type, new Array(dims.reduce((a, b) => a * b, 1)).fill(0), dims).toImageData(options), pattern);
  back([2, 3, 1, 1], /is no picture/);
  back([4], /is no picture/);
  back([1, 2, 1, 1], /1, 3 or 4 channels, not 2/);
  back([1, 3, 1, 1], /RGBA has 4 channels, and the tensor 3/, { format: "RGBA" });
  back([1, 3, 1, 1], /float32 or uint8, not of int64/, {}, "int64");
});

test("tensors of parts, and settings as onnxruntime-web spells them", () => {
  const t = new Tensor({ location: "cpu-pinned", type: "int32", data: new Int32Array([1, 2]), dims: [2] });
  assert.deepEqual([t.type, numbers(t)], ["int32", [1, 2]]);
  assert.throws(() => new Tensor({ location: "gpu-buffer", type: "int32", gpuBuffer: {}, dims: [2] }), /not in a gpu-buffer/);
  assert.deepEqual(numbers(Tensor.fromPinnedBuffer("float32", new Float32Array([3]))), [3]);
  assert.equal(new Tensor("int4", new Int8Array(2), [4]).size, 4);
  assert.match(env.versions.common, /^\d+\.\d+\.\d+$/);
  const { simd } = env;
  env.wasm.simd = "fixed";
  assert.equal(env.simd, true);
  env.wasm.simd = simd;
  assert.equal(env.simd, simd);
  env.webgl.contextId = "webgl2";
  assert.deepEqual(Object.keys(env.wasm), ["numThreads", "wasmPaths", "wasmBinary", "simd"]);
});

// Shared by the tests: the package under test, and the data of backend test cases.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The package that ONX_WEB names: a folder as made by `npm install`. */
export const packageDir = process.env.ONX_WEB ?? new URL("../../build-web/package", import.meta.url).pathname;
const onx = await import(pathToFileURL(join(packageDir, "lib/index.js")));
export default onx;

/** The test data of Debian's libonnx-testdata; undefined if it is not installed. */
export function backendDir() {
  const places = [process.env.ONX_BACKEND_DIR, "/usr/share/libonnx-testdata/data", "/usr/share/onnx/backend/test/data"];
  return places.find((p) => p && existsSync(join(p, "node")));
}

/** TensorProtos as ONNX text or JSON are read by the library; this reads those of a test case. */
export async function readTensor(path) {
  const made = await onx.program(["convert", "--as", "tensor", "t.pb", "t.npy"], { "t.pb": readFileSync(path) }, ["t.npy"]);
  if (!made.files["t.npy"]) throw new Error(made.stderr);
  return fromNpy(made.files["t.npy"]);
}

const NPY_TYPES = {
  "<f4": "float32", "<f8": "float64", "<f2": "float16", "|i1": "int8", "|u1": "uint8", "<i2": "int16", "<u2": "uint16",
  "<i4": "int32", "<u4": "uint32", "<i8": "int64", "<u8": "uint64", "|b1": "bool",
};

function fromNpy(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const wide = bytes[6] > 1;
  const start = wide ? 12 : 10;
  const end = start + (wide ? view.getUint32(8, true) : view.getUint16(8, true));
  const header = new TextDecoder("latin1").decode(bytes.subarray(start, end));
  const type = NPY_TYPES[/'descr': '([^']*)'/.exec(header)[1]];
  const dims = /'shape': \(([^)]*)\)/.exec(header)[1].split(",").map((s) => s.trim()).filter(Boolean).map(Number);
  const arrays = { float32: Float32Array, float64: Float64Array, int32: Int32Array, int64: BigInt64Array, uint64: BigUint64Array,
                   int16: Int16Array, uint16: Uint16Array, float16: Uint16Array, uint32: Uint32Array, int8: Int8Array };
  const array = arrays[type] ?? Uint8Array;
  return new onx.Tensor(type, new array(bytes.slice(end).buffer), dims);
}

/** The data sets of a case: inputs and expected outputs, in order. */
export async function readCase(folder) {
  const sets = [];
  for (const set of readdirSync(folder).filter((n) => n.startsWith("test_data_set_")).sort()) {
    const read = async (what) => {
      const names = readdirSync(join(folder, set)).filter((n) => n.startsWith(what)).sort((a, b) => parseInt(a.split("_")[1]) - parseInt(b.split("_")[1]));
      return Promise.all(names.map((n) => readTensor(join(folder, set, n))));
    };
    sets.push({ inputs: await read("input_"), outputs: await read("output_") });
  }
  return sets;
}

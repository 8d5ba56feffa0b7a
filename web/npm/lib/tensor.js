// Tensors, with the names of onnxruntime-web: new Tensor("float32", data, [1, 3]).
import { OnxError } from "./errors.js";
import { fromImage, toDataURL, toImageData } from "./image.js";

const HALF = typeof Float16Array === "undefined" ? Uint16Array : Float16Array;

/** Element types by name: the number in ONNX, the class of arrays that hold them, and the bits of an element below a byte. */
export const TYPES = {
  float32: { code: 1, array: Float32Array },
  uint8: { code: 2, array: Uint8Array },
  int8: { code: 3, array: Int8Array },
  uint16: { code: 4, array: Uint16Array },
  int16: { code: 5, array: Int16Array },
  int32: { code: 6, array: Int32Array },
  int64: { code: 7, array: BigInt64Array },
  string: { code: 8, array: Array },
  bool: { code: 9, array: Uint8Array },
  float16: { code: 10, array: Uint16Array },
  float64: { code: 11, array: Float64Array },
  uint32: { code: 12, array: Uint32Array },
  uint64: { code: 13, array: BigUint64Array },
  bfloat16: { code: 16, array: Uint16Array },
  float8e4m3fn: { code: 17, array: Uint8Array },
  float8e4m3fnuz: { code: 18, array: Uint8Array },
  float8e5m2: { code: 19, array: Uint8Array },
  float8e5m2fnuz: { code: 20, array: Uint8Array },
  uint4: { code: 21, array: Uint8Array, bits: 4 },
  int4: { code: 22, array: Uint8Array, bits: 4 },
  float4e2m1: { code: 23, array: Uint8Array, bits: 4 },
  float8e8m0: { code: 24, array: Uint8Array },
  uint2: { code: 25, array: Uint8Array, bits: 2 },
  int2: { code: 26, array: Uint8Array, bits: 2 },
  float6e2m3: { code: 27, array: Uint8Array, bits: 6 },
  float6e3m2: { code: 28, array: Uint8Array, bits: 6 },
};
const NAMES = new Map(Object.entries(TYPES).map(([name, type]) => [type.code, name]));

/** The name of an element type, by its number in ONNX. */
export function typeName(code) {
  return NAMES.get(code) ?? `type ${code}`;
}

const BY_ARRAY = [
  [Float32Array, "float32"], [Float64Array, "float64"], [Int8Array, "int8"], [Uint8Array, "uint8"],
  [Uint8ClampedArray, "uint8"], [Int16Array, "int16"], [Uint16Array, "uint16"], [Int32Array, "int32"],
  [Uint32Array, "uint32"], [BigInt64Array, "int64"], [BigUint64Array, "uint64"],
];

function guessType(data) {
  if (HALF !== Uint16Array && data instanceof HALF) return "float16";
  for (const [array, name] of BY_ARRAY) if (data instanceof array) return name;
  if (Array.isArray(data) && data.length) {
    if (typeof data[0] === "string") return "string";
    if (typeof data[0] === "boolean") return "bool";
  }
  throw new OnxError("give the element type: the data does not tell it");
}

/** Converts the data to the array class of its type. */
function toArray(type, data) {
  const { array } = TYPES[type];
  if (array === Array) {
    if (!Array.isArray(data) || data.some((s) => typeof s !== "string")) throw new OnxError("string tensors take an array of strings");
    return data;
  }
  if (data instanceof array) return data;
  if (type === "float16" && HALF !== Uint16Array && data instanceof HALF)
    return new Uint16Array(data.buffer, data.byteOffset, data.length);
  if (type === "int4" && data instanceof Int8Array) return new Uint8Array(data.buffer, data.byteOffset, data.length);
  if (type === "uint8" && data instanceof Uint8ClampedArray) return new Uint8Array(data.buffer, data.byteOffset, data.length);
  if (Array.isArray(data)) {
    try {
      return array.from(data, array === BigInt64Array || array === BigUint64Array ? BigInt : undefined);
    } catch (error) {
      throw new OnxError(`not the data of a ${type} tensor: ${error.message}`);
    }
  }
  throw new OnxError(`the data of a ${type} tensor is a ${array.name}`);
}

function sizeOf(dims) {
  let count = 1;
  for (const d of dims) {
    if (!Number.isSafeInteger(d) || d < 0) throw new OnxError(`${d} is not a dimension`);
    count *= d;
  }
  if (!Number.isSafeInteger(count)) throw new OnxError(`a tensor of ${dims.join(" x ")} is too large`);
  return count;
}

export class Tensor {
  /** new Tensor(type, data, dims); or new Tensor(data, dims), if the data tells the type; or with { type, data, dims }. */
  constructor(...args) {
    const named = args[0];
    if (named && typeof named === "object" && typeof named.type === "string" && "dims" in named) {
      if (!["cpu", "cpu-pinned"].includes(named.location ?? "cpu")) throw new OnxError(`tensors are in memory, not in a ${named.location}`);
      args = [named.type, named.data, named.dims];
    }
    const typed = typeof args[0] === "string";
    const [data, dims] = typed ? args.slice(1) : args;
    const type = typed ? args[0] : guessType(data);
    if (!Object.hasOwn(TYPES, type)) throw new OnxError(`no element type ${JSON.stringify(type)}`);
    this.type = type;
    this.data = toArray(type, data);
    const room = TYPES[type].bits ? Math.floor((this.data.length * 8) / TYPES[type].bits) : this.data.length;
    this.dims = Object.freeze(dims === undefined ? [room] : [...dims]);
    this.size = sizeOf(this.dims);
    const need = TYPES[type].bits ? Math.ceil((this.size * TYPES[type].bits) / 8) : this.size;
    if (need !== this.data.length)
      throw new OnxError(`a ${type} tensor of [${this.dims}] has ${this.size} elements, and the data has ${room}`);
    Object.freeze(this);
  }

  /** Converts a picture to a tensor: ImageData or { data, width, height }, anything that a browser can draw, a Blob or a URL. */
  static async fromImage(source, options) {
    const { type, data, dims } = await fromImage(source, options);
    return new Tensor(type, data, dims);
  }

  static fromPinnedBuffer(type, buffer, dims) {
    return new Tensor(type, buffer, dims);
  }

  /** Converts a tensor of shape 1 x channels x height x width to a picture. */
  toImageData(options) {
    return toImageData(this, options);
  }

  /** The same as the URL of a PNG. */
  toDataURL(options) {
    return toDataURL(this, options);
  }

  /** The same elements with another shape. */
  reshape(dims) {
    return new Tensor(this.type, this.data, dims);
  }

  async getData() {
    return this.data;
  }

  dispose() {}

  get location() {
    return "cpu";
  }
}

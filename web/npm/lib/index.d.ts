/** A finding of the library: an error, warning or note. */
export interface Diagnostic {
  severity: "error" | "warning" | "note";
  message: string;
  /** The violated rule, as known to `onx check --explain`. */
  rule?: string;
  /** The location: a file, or a path in the model. */
  where?: string;
  hint?: string;
}

/** All failures: the message is that of the first error, `diagnostics` has all findings. */
export class OnxError extends Error {
  constructor(message: string, diagnostics?: Diagnostic[]);
  readonly diagnostics: Diagnostic[];
}

export interface Env {
  /** Folder of the modules (onx-run.wasm, onx.wasm, onx-threads.wasm), ending in a slash, or the URL of the module for sessions; undefined: next to the package. */
  wasmPath: string | URL | { wasm?: string | URL } | undefined;
  /** Bytes of the module for sessions, or of several modules by name without .wasm, to use instead of fetching them; modules without SIMD need `simd: false`. */
  wasmBinary: Uint8Array | ArrayBuffer | Record<string, Uint8Array | ArrayBuffer> | undefined;
  /** Use the build with SIMD? undefined: if the engine supports it. */
  simd: boolean | undefined;
  /** Number of threads of a session, 1 by default. Without shared memory (see README), sessions always have one thread. */
  threads: number;
  /** The version of this package; `common` and `web` are onnxruntime-web's names for its versions. */
  readonly versions: { readonly onx: string; readonly common: string; readonly web: string };
  /** The settings above by the names of onnxruntime-web; initTimeout, proxy and trace are accepted and ignored. */
  readonly wasm: {
    numThreads: number;
    wasmPaths: string | URL | { wasm?: string | URL; mjs?: string | URL } | undefined;
    wasmBinary: Env["wasmBinary"];
    simd?: boolean | "fixed" | "relaxed";
    initTimeout?: number;
    proxy?: boolean;
    trace?: boolean;
  };
  /** There is no such backend: these settings are ignored. */
  readonly webgl: Record<string, unknown>;
  readonly webgpu: Record<string, unknown>;
  /** Ignored: nothing is logged or traced. */
  logLevel?: "verbose" | "info" | "warning" | "error" | "fatal";
  debug?: boolean;
  trace?: boolean;
}
export const env: Env;
export function hasSimd(): boolean;
/** Can sessions have more than one thread here? */
export function hasThreads(): boolean;
/** Fetches and compiles a module now instead of at its first use: "session" (sessions), "program" (everything else), or "threads" (sessions with threads). */
export function init(what?: "session" | "program" | "threads"): Promise<unknown>;

export type Bytes = ArrayBufferView | ArrayBuffer;
export type Format = "onnx" | "onnxtxt" | "textproto" | "json";

/** The arrays that hold elements: float16 and bfloat16 are stored as their bits, types below 8 bits as a stream of bits, the first element in the lowest. */
export interface TensorDataMap {
  float32: Float32Array;
  float64: Float64Array;
  float16: Uint16Array;
  bfloat16: Uint16Array;
  int8: Int8Array;
  uint8: Uint8Array;
  int16: Int16Array;
  uint16: Uint16Array;
  int32: Int32Array;
  uint32: Uint32Array;
  int64: BigInt64Array;
  uint64: BigUint64Array;
  bool: Uint8Array;
  string: string[];
  float8e4m3fn: Uint8Array;
  float8e4m3fnuz: Uint8Array;
  float8e5m2: Uint8Array;
  float8e5m2fnuz: Uint8Array;
  int4: Uint8Array;
  uint4: Uint8Array;
  float4e2m1: Uint8Array;
  float8e8m0: Uint8Array;
  int2: Uint8Array;
  uint2: Uint8Array;
  float6e2m3: Uint8Array;
  float6e3m2: Uint8Array;
}
export type TensorType = keyof TensorDataMap;
export type TensorData = TensorDataMap[TensorType];

export type ImageFormat = "RGB" | "RGBA" | "BGR" | "RBG";
export type ImageTensorLayout = "NCHW" | "NHWC";
/** One number for each of red, green, blue and alpha. */
export type PerChannel = number | readonly [number, number, number] | readonly [number, number, number, number];
export interface ImageNorm {
  bias?: PerChannel;
  mean?: PerChannel;
}
export interface FromImageOptions {
  tensorFormat?: ImageFormat;
  tensorLayout?: ImageTensorLayout;
  dataType?: "float32" | "uint8";
  resizedWidth?: number;
  resizedHeight?: number;
  /** The tensor has (pixel + bias) / mean. Defaults: bias 0; mean 255, or 1 for uint8. */
  norm?: ImageNorm;
}
export interface ToImageOptions {
  /** Default: RGBA for four channels, else RGB. */
  format?: ImageFormat;
  tensorLayout?: ImageTensorLayout;
  /** The picture has (value - bias) * mean. */
  norm?: ImageNorm;
}
/** Pixels of three or four bytes; ImageData is an example. */
export interface Pixels {
  readonly data: Uint8ClampedArray | Uint8Array;
  readonly width: number;
  readonly height: number;
}
/** A class of the browser, if its types are known to the compiler. */
type OfPage<Name extends string> = typeof globalThis extends { [name in Name]: { prototype: infer T } } ? T : never;
/** Sources of pictures; in Node, which decodes no pictures, only Pixels. */
export type ImageSource =
  | Pixels | OfPage<"ImageData"> | OfPage<"ImageBitmap"> | OfPage<"HTMLImageElement"> | OfPage<"HTMLVideoElement">
  | OfPage<"HTMLCanvasElement"> | OfPage<"OffscreenCanvas"> | OfPage<"Blob"> | string | URL;

export class Tensor<T extends TensorType = TensorType> {
  constructor(type: T, data: TensorDataMap[T] | readonly TensorElement<T>[] | (T extends "uint8" ? Uint8ClampedArray : never), dims?: readonly number[]);
  /** The type is determined from the data. */
  constructor(data: TensorDataMap[T] | Uint8ClampedArray | readonly boolean[], dims?: readonly number[]);
  constructor(parts: { location?: "cpu" | "cpu-pinned"; type: T; data: TensorDataMap[T]; dims: readonly number[] });
  static fromImage(source: ImageSource, options?: FromImageOptions): Promise<Tensor<"float32"> | Tensor<"uint8">>;
  static fromPinnedBuffer<T extends TensorType>(type: T, buffer: TensorDataMap[T], dims?: readonly number[]): Tensor<T>;
  readonly type: T;
  readonly data: TensorDataMap[T];
  readonly dims: readonly number[];
  readonly size: number;
  readonly location: "cpu";
  reshape(dims: readonly number[]): Tensor<T>;
  getData(releaseData?: boolean): Promise<TensorDataMap[T]>;
  dispose(): void;
  /** Converts a tensor of shape 1 x channels x height x width (or without the 1) to a picture; where ImageData does not exist, to an object with its fields. */
  toImageData(options?: ToImageOptions): typeof globalThis extends { ImageData: unknown } ? OfPage<"ImageData"> : Pixels;
  /** The same as the URL of a PNG. */
  toDataURL(options?: ToImageOptions): string;
}
export type TensorElement<T extends TensorType> =
  T extends "string" ? string : T extends "bool" ? boolean | number : T extends "int64" | "uint64" ? bigint | number : number;
/** Type names of onnxruntime-web. */
export namespace Tensor {
  type Type = TensorType;
  type DataTypeMap = TensorDataMap;
  type DataType = TensorData;
  type DataLocation = "cpu" | "cpu-pinned";
}
export type TypedTensor<T extends TensorType> = Tensor<T>;
export type OnnxValue = Value;

/** An input or output: a tensor, a sequence, a map, or an empty optional. */
export type Value = Tensor | Value[] | Map<bigint | string, Value> | null;
export type Input = Tensor | Tensor[] | null | undefined;

export interface ValueMetadata {
  readonly name: string;
  readonly isTensor: boolean;
  /** Is the input required? */
  readonly required: boolean;
  readonly type?: TensorType;
  /** Numbers, and names of symbolic dimensions; an empty name is an unknown dimension. */
  readonly shape?: readonly (number | string)[];
}

export interface LoadOptions {
  /** Needed if the name does not tell the format; the default for bytes is "onnx". */
  format?: Format;
  /** External data files by the names that the model uses. */
  files?: Record<string, Bytes>;
  /** The same by the name of onnxruntime-web. */
  externalData?: readonly ({ path: string; data: string | Bytes } | string)[];
}

export interface SessionOptions extends LoadOptions {
  graphOptimizationLevel?: "disabled" | "basic" | "extended" | "layout" | "all";
  /** Limit in bytes for constants, and for each run. */
  memory?: number;
  /** Number of threads for runs; default: `env.threads`. */
  intraOpNumThreads?: number;
  /** Further options of onnxruntime-web, which are accepted and ignored. */
  [name: string]: unknown;
}

export class InferenceSession {
  static create(source: Model | Bytes | string | URL, options?: SessionOptions): Promise<InferenceSession>;
  static create(buffer: ArrayBuffer, byteOffset: number, byteLength?: number, options?: SessionOptions): Promise<InferenceSession>;
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly ValueMetadata[];
  readonly outputMetadata: readonly ValueMetadata[];
  /** If the second argument is an object and none of its keys is an output, it is taken as options, as in onnxruntime-web. */
  run<T extends Value = any>(feeds: Readonly<Record<string, Input>>, fetches?: readonly string[] | Readonly<Record<string, unknown>>, options?: unknown): Promise<Record<string, T>>;
  /** Frees the memory now; otherwise it is freed when the session is garbage-collected. */
  release(): Promise<void>;
  startProfiling(): void;
  endProfiling(): void;
}
/** Type names of onnxruntime-web. */
export namespace InferenceSession {
  type OnnxValueMapType = { readonly [name: string]: any };
  type NullableOnnxValueMapType = { readonly [name: string]: any };
  type FeedsType = Record<string, Input>;
  type FetchesType = readonly string[] | Record<string, unknown>;
  type ReturnType = Record<string, any>;
  type SessionOptions = import("./index.js").SessionOptions;
  type RunOptions = Record<string, unknown>;
  type ValueMetadata = import("./index.js").ValueMetadata;
}

export interface CheckOptions {
  /** Also infers types and shapes, strictly. */
  full?: boolean;
  /** Treats warnings as errors. */
  strict?: boolean;
  pedantic?: boolean;
  /** Reports errors only, as fast as possible. */
  structure?: boolean;
  checksums?: boolean;
  customDomains?: boolean;
  /** Rules, or groups of rules, to apply or to ignore. */
  only?: string | readonly string[];
  ignore?: string | readonly string[];
  maxErrors?: number;
}
/** A finding has its location in the model and, for text, also line and column. */
export interface Finding extends Diagnostic {
  path?: string;
  line?: number;
  column?: number;
}
export interface CheckReport {
  valid: boolean;
  errors: number;
  warnings: number;
  notes: number;
  findings: Finding[];
}
export interface Difference {
  what: "added" | "removed" | "changed";
  where: string;
  name: string;
  a?: string;
  b?: string;
}

export class Model {
  readonly bytes: Uint8Array;
  readonly format: Format;
  readonly files: Readonly<Record<string, Bytes>>;
  check(options?: CheckOptions): Promise<CheckReport>;
  info(): Promise<Record<string, any>>;
  infer(options?: { strict?: boolean; checkType?: boolean; noDataProp?: boolean; plainNames?: boolean; dim?: Record<string, number> }): Promise<Model>;
  show(options?: { format?: "onnxtxt" | "textproto" | "json"; full?: boolean; types?: boolean; node?: string }): Promise<string>;
  convert(format: Format, options?: { lenient?: boolean; sort?: boolean; inlineExternal?: boolean }): Promise<Model>;
  simplify(options?: {
    passes?: string | readonly string[];
    exact?: boolean;
    dim?: Record<string, number>;
    inputShape?: Record<string, string | readonly number[]>;
    keep?: string | readonly string[];
    foldLimit?: number | string;
  }): Promise<Model>;
  retarget(opset: number | Record<string, number>): Promise<Model>;
  /** The differences from another model; `this` is the older one. Empty if there are none. */
  diff(other: Model, options?: { atol?: number; rtol?: number }): Promise<Difference[]>;
  /** Creates a session and runs it once. */
  /** Where the second argument is an object none of whose names is an output, it is options, as for onnxruntime-web. */
  run<T extends Value = any>(feeds: Readonly<Record<string, Input>>, fetches?: readonly string[]): Promise<Record<string, T>>;
}

/** Loads bytes, a URL or, in Node, a path. */
export function load(source: Bytes | string | URL, options?: LoadOptions): Promise<Model>;
/** Parses ONNX text, or with a format, protobuf text or JSON. */
export function parse(text: string, options?: LoadOptions): Promise<Model>;

/** Runs `onx ...words` with these files in its folder; `outputs` are names of files that it writes. */
export function program(words: readonly string[], files?: Record<string, Bytes | string>, outputs?: readonly string[]): Promise<{
  status: number;
  stdout: string;
  stderr: string;
  files: Record<string, Uint8Array>;
}>;

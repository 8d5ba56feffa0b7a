/** What the library found: one error, warning or note. */
export interface Diagnostic {
  severity: "error" | "warning" | "note";
  message: string;
  /** The rule that is broken, as `onx check --explain` knows it. */
  rule?: string;
  /** The place: a file, or a path into the model. */
  where?: string;
  hint?: string;
}

/** Every failure: the message is that of the first error, `diagnostics` has all findings. */
export class OnxError extends Error {
  constructor(message: string, diagnostics?: Diagnostic[]);
  readonly diagnostics: Diagnostic[];
}

export interface Env {
  /** Folder of the modules (onx-run.wasm, onx.wasm, onx-threads.wasm), ending in a slash, or the address of the one for sessions; undefined: beside the package. */
  wasmPath: string | URL | { wasm?: string | URL } | undefined;
  /** Bytes of the module for sessions, or of several by their names without .wasm, instead of fetching them; those without vectors need `simd: false`. */
  wasmBinary: Uint8Array | ArrayBuffer | Record<string, Uint8Array | ArrayBuffer> | undefined;
  /** Use the build with vectors? undefined: if the engine has them. */
  simd: boolean | undefined;
  /** How many threads a session may use, 1 unless it is set. Without shared memory (see README) sessions have one all the same. */
  threads: number;
  /** This package's version; `common` and `web` are onnxruntime-web's names for theirs. */
  readonly versions: { readonly onx: string; readonly common: string; readonly web: string };
  /** The settings above in onnxruntime-web's spelling; initTimeout, proxy and trace can be set, and mean nothing. */
  readonly wasm: {
    numThreads: number;
    wasmPaths: string | URL | { wasm?: string | URL; mjs?: string | URL } | undefined;
    wasmBinary: Env["wasmBinary"];
    simd?: boolean | "fixed" | "relaxed";
    initTimeout?: number;
    proxy?: boolean;
    trace?: boolean;
  };
  /** There is no such backend: what is set here means nothing. */
  readonly webgl: Record<string, unknown>;
  readonly webgpu: Record<string, unknown>;
  /** Nothing is logged and nothing traced. */
  logLevel?: "verbose" | "info" | "warning" | "error" | "fatal";
  debug?: boolean;
  trace?: boolean;
}
export const env: Env;
export function hasSimd(): boolean;
/** May sessions have more than one thread here? */
export function hasThreads(): boolean;
/** Fetches and compiles a module now, rather than when it is first needed: that of sessions, of the program, which all else needs, or of sessions with threads. */
export function init(what?: "session" | "program" | "threads"): Promise<unknown>;

export type Bytes = ArrayBufferView | ArrayBuffer;
export type Format = "onnx" | "onnxtxt" | "textproto" | "json";

/** The arrays that hold elements: float16 and bfloat16 are their bits, types of 4 bits stand two to a byte. */
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
}
export type TensorType = keyof TensorDataMap;
export type TensorData = TensorDataMap[TensorType];

export type ImageFormat = "RGB" | "RGBA" | "BGR" | "RBG";
export type ImageTensorLayout = "NCHW" | "NHWC";
/** For each of red, green, blue and alpha. */
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
  /** The tensor has (pixel + bias) / mean; bias 0, and mean 255, or 1 for uint8, unless they are given. */
  norm?: ImageNorm;
}
export interface ToImageOptions {
  /** RGBA for four channels, else RGB. */
  format?: ImageFormat;
  tensorLayout?: ImageTensorLayout;
  /** The picture has (value - bias) * mean. */
  norm?: ImageNorm;
}
/** Pixels of three bytes or four; ImageData is one. */
export interface Pixels {
  readonly data: Uint8ClampedArray | Uint8Array;
  readonly width: number;
  readonly height: number;
}
/** A class of the browser, where its types are known. */
type OfPage<Name extends string> = typeof globalThis extends { [name in Name]: { prototype: infer T } } ? T : never;
/** What pictures are made of; in Node, which decodes none, Pixels. */
export type ImageSource =
  | Pixels | OfPage<"ImageData"> | OfPage<"ImageBitmap"> | OfPage<"HTMLImageElement"> | OfPage<"HTMLVideoElement">
  | OfPage<"HTMLCanvasElement"> | OfPage<"OffscreenCanvas"> | OfPage<"Blob"> | string | URL;

export class Tensor<T extends TensorType = TensorType> {
  constructor(type: T, data: TensorDataMap[T] | readonly TensorElement<T>[] | (T extends "uint8" ? Uint8ClampedArray : never), dims?: readonly number[]);
  /** The data tells the type. */
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
  /** A picture of a tensor of 1 x channels x height x width, with or without the 1; where there is no ImageData, an object with its fields. */
  toImageData(options?: ToImageOptions): typeof globalThis extends { ImageData: unknown } ? OfPage<"ImageData"> : Pixels;
  /** The same as a PNG. */
  toDataURL(options?: ToImageOptions): string;
}
export type TensorElement<T extends TensorType> =
  T extends "string" ? string : T extends "bool" ? boolean | number : T extends "int64" | "uint64" ? bigint | number : number;
/** Names of types as onnxruntime-web has them. */
export namespace Tensor {
  type Type = TensorType;
  type DataTypeMap = TensorDataMap;
  type DataType = TensorData;
  type DataLocation = "cpu" | "cpu-pinned";
}
export type TypedTensor<T extends TensorType> = Tensor<T>;
export type OnnxValue = Value;

/** What goes in and comes out: a tensor, a sequence, a map, or an optional that is empty. */
export type Value = Tensor | Value[] | Map<bigint | string, Value> | null;
export type Input = Tensor | Tensor[] | null | undefined;

export interface ValueMetadata {
  readonly name: string;
  readonly isTensor: boolean;
  /** Does an input have to be given? */
  readonly required: boolean;
  readonly type?: TensorType;
  /** Numbers, and symbols by their names; an empty name is a size that nothing is known of. */
  readonly shape?: readonly (number | string)[];
}

export interface LoadOptions {
  /** Where the name does not tell; "onnx" for bytes. */
  format?: Format;
  /** Data files beside the model, by the names that the model has for them. */
  files?: Record<string, Bytes>;
  /** The same in onnxruntime-web's spelling. */
  externalData?: readonly ({ path: string; data: string | Bytes } | string)[];
}

export interface SessionOptions extends LoadOptions {
  graphOptimizationLevel?: "disabled" | "basic" | "extended" | "layout" | "all";
  /** Bytes that constants, and each run, may take. */
  memory?: number;
  /** How many threads runs may use; `env.threads` unless it is given. */
  intraOpNumThreads?: number;
  /** More of onnxruntime-web's, which can be given and mean nothing. */
  [name: string]: unknown;
}

export class InferenceSession {
  static create(source: Model | Bytes | string | URL, options?: SessionOptions): Promise<InferenceSession>;
  static create(buffer: ArrayBuffer, byteOffset: number, byteLength?: number, options?: SessionOptions): Promise<InferenceSession>;
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly ValueMetadata[];
  readonly outputMetadata: readonly ValueMetadata[];
  /** Where the second argument is an object none of whose names is an output, it is options, as for onnxruntime-web. */
  run<T extends Value = any>(feeds: Readonly<Record<string, Input>>, fetches?: readonly string[] | Readonly<Record<string, unknown>>, options?: unknown): Promise<Record<string, T>>;
  /** Gives the memory back now; without it that happens when nobody refers to the session any more. */
  release(): Promise<void>;
  startProfiling(): void;
  endProfiling(): void;
}
/** Names of types as onnxruntime-web has them. */
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
  /** Infer types and shapes as well, strictly. */
  full?: boolean;
  /** Take warnings for errors. */
  strict?: boolean;
  pedantic?: boolean;
  /** Errors only, as quickly as can be. */
  structure?: boolean;
  checksums?: boolean;
  customDomains?: boolean;
  /** Rules, or groups of rules, that are applied, or left out. */
  only?: string | readonly string[];
  ignore?: string | readonly string[];
  maxErrors?: number;
}
/** A finding says where in the model it is, and in text also at which line and column. */
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
  /** What differs from another model, this one being the older; empty when nothing does. */
  diff(other: Model, options?: { atol?: number; rtol?: number }): Promise<Difference[]>;
  /** A session, and one run of it. */
  /** Where the second argument is an object none of whose names is an output, it is options, as for onnxruntime-web. */
  run<T extends Value = any>(feeds: Readonly<Record<string, Input>>, fetches?: readonly string[]): Promise<Record<string, T>>;
}

/** From bytes, a URL or, in Node, a path. */
export function load(source: Bytes | string | URL, options?: LoadOptions): Promise<Model>;
/** From ONNX text, or, with a format, protobuf text or JSON. */
export function parse(text: string, options?: LoadOptions): Promise<Model>;

/** Runs `onx ...words` with these files in its folder; `outputs` names files that it writes. */
export function program(words: readonly string[], files?: Record<string, Bytes | string>, outputs?: readonly string[]): Promise<{
  status: number;
  stdout: string;
  stderr: string;
  files: Record<string, Uint8Array>;
}>;

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
  /** Folder of the modules (onx-run.wasm, onx.wasm, onx-threads.wasm), ending in a slash; undefined: beside the package. */
  wasmPath: string | undefined;
  /** Bytes of the module for sessions, or of several by their names without .wasm, instead of fetching them; those without vectors need `simd: false`. */
  wasmBinary: Uint8Array | ArrayBuffer | Record<string, Uint8Array | ArrayBuffer> | undefined;
  /** Use the build with vectors? undefined: if the engine has them. */
  simd: boolean | undefined;
  /** How many threads a session may use, 1 unless it is set. Without shared memory (see README) sessions have one all the same. */
  threads: number;
  /** onnxruntime-web's spelling of `threads` and `wasmPath`. */
  readonly wasm: { numThreads: number; wasmPaths: string | undefined };
}
export const env: Env;
export function hasSimd(): boolean;
/** May sessions have more than one thread here? */
export function hasThreads(): boolean;
/** Fetches and compiles a module now, rather than when it is first needed: that of sessions, of the program, which all else needs, or of sessions with threads. */
export function init(what?: "session" | "program" | "threads"): Promise<unknown>;

export type Bytes = ArrayBufferView | ArrayBuffer;
export type Format = "onnx" | "onnxtxt" | "textproto" | "json";

export type TensorType =
  | "float32" | "float64" | "float16" | "bfloat16" | "int8" | "uint8" | "int16" | "uint16" | "int32" | "uint32"
  | "int64" | "uint64" | "bool" | "string" | "float8e4m3fn" | "float8e4m3fnuz" | "float8e5m2" | "float8e5m2fnuz"
  | "int4" | "uint4";
export type TensorData =
  | Float32Array | Float64Array | Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array
  | BigInt64Array | BigUint64Array | string[];

export class Tensor {
  constructor(type: TensorType, data: TensorData | readonly number[] | readonly bigint[] | readonly boolean[], dims?: readonly number[]);
  /** The data tells the type. */
  constructor(data: TensorData | readonly boolean[], dims?: readonly number[]);
  readonly type: TensorType;
  /** float16 and bfloat16 are their bits in a Uint16Array, types of 4 bits two to a byte. */
  readonly data: TensorData;
  readonly dims: readonly number[];
  readonly size: number;
  readonly location: "cpu";
  reshape(dims: readonly number[]): Tensor;
  getData(): Promise<TensorData>;
  dispose(): void;
}

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
  graphOptimizationLevel?: "disabled" | "basic" | "extended" | "all";
  /** Bytes that constants, and each run, may take. */
  memory?: number;
  /** How many threads runs may use; `env.threads` unless it is given. */
  intraOpNumThreads?: number;
}

export class InferenceSession {
  static create(source: Model | Bytes | string | URL, options?: SessionOptions): Promise<InferenceSession>;
  static create(buffer: ArrayBuffer, byteOffset: number, byteLength?: number, options?: SessionOptions): Promise<InferenceSession>;
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly ValueMetadata[];
  readonly outputMetadata: readonly ValueMetadata[];
  /** Where the second argument is an object none of whose names is an output, it is options, as for onnxruntime-web. */
  run(feeds: Record<string, Input>, fetches?: readonly string[] | Record<string, unknown>, options?: unknown): Promise<Record<string, Value>>;
  /** Gives the memory back now; without it that happens when nobody refers to the session any more. */
  release(): Promise<void>;
  startProfiling(): void;
  endProfiling(): void;
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
  run(feeds: Record<string, Input>, fetches?: readonly string[]): Promise<Record<string, Value>>;
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

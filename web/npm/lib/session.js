// Runs models, with the names of onnxruntime-web.
import { OnxError } from "./errors.js";
import { env, guarded, instantiate } from "./module.js";
import { putFiles, toBytes } from "./program.js";
import { hasThreads, instantiateThreads } from "./threads.js";
import { Tensor, TYPES, typeName } from "./tensor.js";
import { FORMATS, openSource } from "./model.js";
import { bytesSource, takeApart } from "./weights.js";

const KIND_TENSOR = 1, KIND_SEQUENCE = 2, KIND_OPTIONAL = 3, KIND_MAP = 4; // onx_value_kind
const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** The instance of a session: calls, memory, values. Addresses are unsigned; each call may grow the memory. */
class Engine {
  constructor({ module, end }, threads = 1) {
    this.m = module;
    this.threads = threads;
    this.ends = end ? [end] : []; // ends its threads, and closes what it reads
    this.scratch = this.#allocate(64);
  }

  /** The memory as a view: threads may have grown it, which Emscripten's views do not notice. */
  get bytes() {
    const { HEAPU8, wasmMemory } = this.m;
    if (!wasmMemory || HEAPU8.buffer.byteLength === wasmMemory.buffer.byteLength) return HEAPU8;
    return new Uint8Array(wasmMemory.buffer);
  }

  /** Ends threads and closes files. */
  end() {
    for (const each of this.ends.splice(0)) each();
  }

  #allocate(size) {
    const at = size < 2 ** 32 ? this.m._malloc(Math.max(size, 1)) >>> 0 : 0;
    if (!at) throw new OnxError("out of memory", [{ severity: "error", message: "out of memory" }]);
    return at;
  }

  putBytes(bytes) {
    const at = this.#allocate(bytes.length);
    this.bytes.set(bytes, at);
    return at;
  }

  /** Grows the memory to the expected size at once, because engines need longer for several steps. If that fails, smaller steps may succeed. */
  expect(size) {
    const at = this.m._malloc(Math.min(size, 2 ** 30)) >>> 0;
    if (at) this.m._free(at);
  }

  /** Allocates memory of that size and calls `write` to fill it. */
  putMade(size, write) {
    const at = this.#allocate(size);
    write(this.bytes.subarray(at, at + size));
    return at;
  }

  putText(text) {
    return this.putBytes(encoder.encode(text + "\0"));
  }

  text(at, length) {
    return decoder.decode(this.bytes.slice(at, at + length)); // a copy, because shared or growing memory cannot be decoded
  }

  textToZero(at) {
    return this.text(at, this.bytes.indexOf(0, at) - at);
  }

  #wordsAt(at, count) {
    return new Uint32Array(this.bytes.slice(at, at + count * 4).buffer);
  }

  words(count) {
    return this.#wordsAt(this.scratch, count);
  }

  /** Throws the error that the session recorded. */
  fail(otherwise) {
    const lines = [];
    const count = this.session ? this.m._web_diag_count(this.session) : 0;
    for (let i = 0; i < count; i++) lines.push(this.textToZero(this.m._web_diag(this.session, i) >>> 0));
    if (this.session) this.m._web_diag_clear(this.session);
    throw OnxError.fromText(lines.join("\n"), otherwise);
  }

  check(status, otherwise) {
    if (status !== 0) this.fail(otherwise);
  }

  // ---- values ----

  /** Copies a tensor, or an array of tensors, to a value of the library. */
  putValue(name, value) {
    if (Array.isArray(value)) {
      const items = value.map((item) => this.putValue(name, item));
      const list = this.putBytes(new Uint8Array(Uint32Array.from(items).buffer));
      const made = this.m._web_sequence(this.session, list, items.length) >>> 0;
      this.m._free(list);
      if (!made) this.fail("out of memory");
      return made;
    }
    if (!(value instanceof Tensor) && !(value && TYPES[value.type] && value.dims && value.data))
      throw new OnxError(`the input ${name} is no Tensor`);
    const tensor = value instanceof Tensor ? value : new Tensor(value.type, value.data, value.dims);
    const dims = this.putBytes(new Uint8Array(BigInt64Array.from(tensor.dims, BigInt).buffer));
    const made = this.m._web_tensor(this.session, TYPES[tensor.type].code, tensor.dims.length, dims) >>> 0;
    this.m._free(dims);
    if (!made) this.fail("out of memory");
    if (tensor.type === "string") this.#putStrings(made, tensor.data);
    else {
      const { data } = tensor;
      this.bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), this.#look(made).data);
    }
    return made;
  }

  #putStrings(value, strings) {
    strings.forEach((text, i) => {
      const bytes = encoder.encode(text);
      const at = this.putBytes(bytes);
      const status = this.m._web_set_text(value, i, at, bytes.length);
      this.m._free(at);
      this.check(status, "out of memory");
    });
  }

  #look(value) {
    this.m._web_value(value, this.scratch);
    const [kind, dtype, rank, dims, data, size, count, items] = this.words(8);
    return { kind, dtype, rank, dims, data, size, count, items };
  }

  #numbers(v, array) {
    return new array(this.bytes.slice(v.data, v.data + v.size).buffer);
  }

  #strings(value, count) {
    return Array.from({ length: count }, (_, i) => {
      this.m._web_text(value, i, this.scratch);
      return this.text(...this.words(2));
    });
  }

  /** Copies a value to a Tensor, an array, a Map, or null for an empty optional. */
  getValue(value) {
    const v = this.#look(value);
    if (v.kind === KIND_TENSOR) {
      const type = typeName(v.dtype);
      if (!TYPES[type]) throw new OnxError(`there is no array for elements of ${type}`);
      const dims = Array.from(new BigInt64Array(this.bytes.slice(v.dims, v.dims + v.rank * 8).buffer), Number);
      const data = type === "string" ? this.#strings(value, v.count) : this.#numbers(v, TYPES[type].array);
      return new Tensor(type, data, dims);
    }
    const items = Array.from(this.#wordsAt(v.items, v.count), (at) => this.getValue(at));
    if (v.kind === KIND_SEQUENCE) return items;
    if (v.kind === KIND_OPTIONAL) return items[0] ?? null;
    if (v.kind !== KIND_MAP) return null;
    const keys = typeName(v.dtype) === "string" ? this.#strings(value, v.count) : [...this.#numbers(v, BigInt64Array)];
    return new Map(keys.map((key, i) => [key, items[i]]));
  }

  // ---- inputs and outputs ----

  ports(output) {
    const count = this.m._web_port_count(this.session, output);
    return Array.from({ length: count }, (_, i) => this.#port(output, i));
  }

  #port(output, index) {
    this.m._web_port(this.session, output, index, this.scratch);
    const [at, length, dtype, rank, required] = this.words(5);
    const port = { name: this.text(at, length), isTensor: dtype !== 0, required: required !== 0 };
    if (!dtype) return port;
    port.type = typeName(dtype);
    if (rank === 0xffffffff) return port;
    port.shape = Array.from({ length: rank }, (_, axis) => {
      const size = this.m._web_port_dim(this.session, output, index, axis, this.scratch);
      const [symbol, symbolLength] = this.words(2);
      return size >= 0 ? size : symbolLength ? this.text(symbol, symbolLength) : "";
    });
    return port;
  }
}

function threadsOf(options) {
  const count = options.intraOpNumThreads ?? env.threads;
  if (!Number.isInteger(count) || count < 0 || count > 64) throw new OnxError(`a session has 1 to 64 threads, not ${count}`);
  return count || 1;
}

const usesThreads = (options) => threadsOf(options) > 1 && hasThreads();

const abandoned = typeof FinalizationRegistry === "undefined" ? undefined : new FinalizationRegistry((ends) => ends.splice(0).forEach((end) => end()));

/** An instance for a session; with threads if more than one is wanted and threads are available. */
async function makeEngine(options) {
  if (usesThreads(options)) {
    const made = await instantiateThreads(threadsOf(options)).catch(() => undefined); // fails where such memory is not available, for example
    if (made) return new Engine(made, threadsOf(options));
  }
  return new Engine(await instantiate("session"));
}

/** Copies a model to the memory of the session; large weights stay in a file (weights.js). */
function openBytes(engine, { from, files }, optimize) {
  let weights = "weights";
  while (Object.hasOwn(files, weights)) weights += "_";
  const apart = takeApart(from, weights);
  if (apart) putFiles(engine.m.FS, { [weights]: from.own || !from.bytes ? from : bytesSource(new Uint8Array(from.bytes), true) });
  const { pieces, moved } = apart ?? { moved: 0 };
  const size = pieces ? pieces.size : from.size;
  engine.expect(3 * moved + 8 * size); // estimated: weights and their packed form; everything else and its decoded form
  const bytes = engine.putMade(size, (to) => (pieces ? pieces.write(from, to) : from.read(0, to)));
  const folder = apart || Object.keys(files).length ? engine.putText("/work") : 0;
  return engine.m._web_open_bytes(engine.session, bytes, size, folder, optimize);
}

/** False if the module lacks something that the model needs; the program's module has it. */
function openModel(engine, source, options) {
  const { m } = engine;
  engine.session = m._web_new(options.memory ?? 0, engine.threads) >>> 0;
  if (!engine.session) throw new OnxError("out of memory");
  m.FS.mkdir("/work");
  m.FS.chdir("/work");
  putFiles(m.FS, source.files);
  const optimize = (options.graphOptimizationLevel ?? "all") !== "disabled";
  let status;
  if (source.format === "onnx") status = openBytes(engine, source, optimize);
  else {
    const name = `model${FORMATS[source.format]}`;
    putFiles(m.FS, { [name]: source.from });
    status = m._web_open_file(engine.session, engine.putText(name), optimize);
  }
  if (status !== 0 && m._web_lacks(engine.session)) return false;
  engine.check(status, "the model cannot be run");
  engine.ends.push(source.close);
  abandoned?.register(engine, engine.ends);
  return true;
}

/** A session, or undefined if another module is needed. */
function openSession(engine, source, options) {
  let session;
  try {
    session = guarded("making a session", () => (openModel(engine, source, options) ? new InferenceSession(engine) : undefined));
    return session;
  } finally {
    if (!session) engine.end();
  }
}

export class InferenceSession {
  #engine;

  constructor(engine) {
    this.#engine = engine;
    this.inputMetadata = engine.ports(false).map(Object.freeze);
    this.outputMetadata = engine.ports(true).map(Object.freeze);
    this.inputNames = this.inputMetadata.map((p) => p.name);
    this.outputNames = this.outputMetadata.map((p) => p.name);
  }

  /**
   * From a Model, its bytes, its text, or a URL (in Node: also a path). Also accepts onnxruntime-web's create(buffer,
   * byteOffset, byteLength, options).
   */
  static async create(source, ...rest) {
    if (typeof rest[0] === "number") {
      const [offset, length, options] = rest;
      const bytes = toBytes(source);
      return InferenceSession.create(bytes.subarray(offset, length === undefined ? undefined : offset + length), options);
    }
    const options = rest[0] ?? {};
    const making = makeEngine(options); // the module and its threads load while the model loads
    making.catch(() => {}); // reported to the code that awaits it
    let opened;
    try {
      opened = await openSource(source, options);
      return (
        openSession(await making, opened, options) ?? openSession(new Engine(await instantiate("program")), opened, options)
      );
    } catch (error) {
      if (opened) opened.close();
      else making.then((engine) => engine.end(), () => {});
      throw error;
    }
  }

  /** Returns all outputs by name, or those in `fetches` (an array, or an object whose keys are names). */
  async run(feeds, fetches, _options) {
    const engine = this.#engine;
    if (!engine) throw new OnxError("the session was released");
    const wanted = this.#wanted(this.#isOptions(fetches) ? undefined : fetches);
    for (const name of Object.keys(feeds))
      if (!this.inputNames.includes(name)) throw new OnxError(`the model has no input ${JSON.stringify(name)}; it has ${this.inputNames.join(", ")}`);
    return guarded("running a model", () => {
      this.inputNames.forEach((name, i) => {
        const value = feeds[name];
        engine.m._web_set_input(engine.session, i, value == null ? 0 : engine.putValue(name, value));
      });
      engine.check(engine.m._web_run(engine.session), "the run failed");
      const results = {};
      for (const name of wanted) {
        const at = engine.m._web_output(engine.session, this.outputNames.indexOf(name)) >>> 0;
        results[name] = at ? engine.getValue(at) : null;
      }
      return results;
    });
  }

  /** In run(feeds, options), the second argument names no output; an array is always `fetches`. */
  #isOptions(fetches) {
    return Boolean(fetches) && !Array.isArray(fetches) && !Object.keys(fetches).some((name) => this.outputNames.includes(name));
  }

  #wanted(fetches) {
    if (!fetches) return this.outputNames;
    const names = Array.isArray(fetches) ? fetches : Object.keys(fetches);
    for (const name of names)
      if (!this.outputNames.includes(name)) throw new OnxError(`the model has no output ${JSON.stringify(name)}; it has ${this.outputNames.join(", ")}`);
    return names;
  }

  /** Frees the memory now; otherwise it is freed when the session is garbage-collected. */
  async release() {
    this.#engine?.end();
    this.#engine = undefined;
  }

  startProfiling() {}
  endProfiling() {}

  async [Symbol.asyncDispose ?? Symbol("asyncDispose")]() {
    await this.release();
  }
}

// Models in JavaScript: bytes, their format, and external data files. Operations run the program in an instance of its own, so
// a Model owns nothing that has to be freed.
import { OnxError, parseDiagnostics } from "./errors.js";
import { run as runProgram, toBytes } from "./program.js";
import { bytesSource, fileSource, piecesSource } from "./weights.js";

/** Formats, and the file extensions that the program knows them by. */
export const FORMATS = { onnx: ".onnx", onnxtxt: ".onnxtxt", textproto: ".textproto", json: ".json" };

function formatOfName(name) {
  const dot = name.lastIndexOf(".");
  const known = { pb: "onnx", pbtxt: "textproto", prototxt: "textproto" };
  const extension = dot < 0 ? "" : name.slice(dot + 1).toLowerCase();
  return known[extension] ?? (Object.hasOwn(FORMATS, extension) ? extension : undefined);
}

function isNode() {
  return typeof process !== "undefined" && Boolean(process.versions?.node);
}

/** If a name is not a URL to fetch: in Node, a path or a file URL. */
function localName(name) {
  const isUrl = /^[a-z][a-z0-9+.-]+:/i.test(name);
  if (!isNode() || (isUrl && !name.startsWith("file:"))) return undefined;
  return isUrl ? new URL(name) : name;
}

/** Reads a file with `read`, which gets its path. */
async function readLocal(name, read) {
  try {
    return await read(localName(name));
  } catch (error) {
    throw new OnxError(`cannot read ${name}: ${error.message}`);
  }
}

async function readWhole(path) {
  const { readFile } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:fs/promises");
  return readFile(path);
}

/** Fetches a URL; `read` processes the response. */
async function fetched(name, read) {
  const response = await fetch(name);
  if (!response.ok) throw new OnxError(`cannot fetch ${name}: ${response.status} ${response.statusText}`);
  try {
    return await read(response);
  } catch (error) {
    throw new OnxError(`cannot fetch ${name}: ${error.message}`);
  }
}

/** The bytes at a URL or, in Node, a path. */
async function fetchBytes(name) {
  if (localName(name)) return readLocal(name, readWhole);
  return fetched(name, async (response) => new Uint8Array(await response.arrayBuffer()));
}

/** The same for a session, in pieces as they arrive: browsers need a quarter more time to join them. */
function fetchPieces(name) {
  return fetched(name, async (response) => {
    const pieces = [], reader = response.body?.getReader?.(); // a replacement of fetch may have none
    if (!reader) return bytesSource(new Uint8Array(await response.arrayBuffer()), true);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return piecesSource(pieces);
      if (value.length) pieces.push(value);
    }
  });
}

/** External data files: from onnxruntime-web's externalData, where a string is a name, or from `files`. `named` and `given` read them. */
async function readFiles(options, named, given) {
  const files = {};
  for (const [path, data] of Object.entries(options.files ?? {})) files[path] = given(toBytes(data));
  for (const item of options.externalData ?? []) {
    const { path, data } = typeof item === "string" ? { path: item.split("/").pop(), data: item } : item;
    files[path] = typeof data === "string" ? await named(data) : given(toBytes(data));
  }
  return files;
}

const isName = (source) => typeof source === "string" || source instanceof URL;

function formatOf(source, options) {
  const named = isName(source) ? formatOfName(new URL(String(source), "file:///").pathname) : undefined;
  const format = options.format ?? named ?? "onnx";
  if (!Object.hasOwn(FORMATS, format)) throw new OnxError(`no format ${JSON.stringify(format)}; there are ${Object.keys(FORMATS).join(", ")}`);
  return format;
}

/** Converts bytes, a URL or a path to bytes with a format. */
async function readSource(source, options = {}) {
  const bytes = isName(source) ? await fetchBytes(String(source)) : toBytes(source);
  return { bytes, format: formatOf(source, options), files: await readFiles(options, fetchBytes, (data) => data) };
}

/**
 * The same for a session, also from a Model: `from` and `files` are what it reads (weights.js), now and later. Data of the
 * caller may change, so it is copied: files here; a model by the code that knows how much of it is read later.
 */
export async function openSource(source, options = {}) {
  const opened = [];
  const named = async (name) => {
    if (!localName(name)) return fetchPieces(name);
    opened.push(await readLocal(name, fileSource));
    return opened.at(-1);
  };
  const given = (bytes) => bytesSource(new Uint8Array(bytes), true);
  const close = () => opened.forEach((file) => file.close());
  const model = source instanceof Model;
  try {
    const format = model ? source.format : formatOf(source, options);
    let from;
    if (model || !isName(source)) from = bytesSource(model ? source.bytes : toBytes(source));
    else from = format === "onnx" ? await named(String(source)) : bytesSource(await fetchBytes(String(source)), true);
    return { from, format, files: await readFiles(model ? source : options, named, given), close };
  } catch (error) {
    close();
    throw error;
  }
}

/** The words of a command for options: { dim: { N: 1 } } becomes --dim N=1. */
function wordsOf(options, known) {
  const words = [];
  for (const [key, value] of Object.entries(options)) {
    const kind = known[key];
    if (!kind) throw new OnxError(`no option ${JSON.stringify(key)}; there are ${Object.keys(known).join(", ")}`);
    const word = `--${key.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`;
    if (value === undefined || value === false) continue;
    if (kind === "flag") words.push(word);
    else if (kind === "list") words.push(word, [].concat(value).join(","));
    else if (kind === "each") for (const item of [].concat(value)) words.push(word, String(item));
    else if (kind === "map") for (const [k, v] of Object.entries(value)) words.push(word, `${k}=${Array.isArray(v) ? v.join("x") : v}`);
    else words.push(word, String(value));
  }
  return words;
}

function parseJson(result) {
  try {
    return JSON.parse(result.stdout);
  } catch {
    throw OnxError.fromText(result.stderr, "the library said nothing that can be read");
  }
}

export class Model {
  constructor({ bytes, format, files = {} }) {
    this.bytes = bytes;
    this.format = format;
    this.files = files;
    Object.freeze(this);
  }

  get #name() {
    return `model${FORMATS[this.format]}`;
  }

  /** Runs `onx command ...words model`; `outputs` are files that it writes. */
  #run(command, words, outputs) {
    return runProgram([command, ...words, this.#name], { ...this.files, [this.#name]: this.bytes }, outputs);
  }

  /** The same for commands that write a model. */
  async #make(command, words, format = this.format) {
    if (!Object.hasOwn(FORMATS, format)) throw new OnxError(`no format ${JSON.stringify(format)}; there are ${Object.keys(FORMATS).join(", ")}`);
    const out = `out${FORMATS[format]}`;
    const result = await this.#run(command, [...words, "-o", out], [out]);
    if (result.status !== 0 || !result.files[out]) throw OnxError.fromText(result.stderr, `onx ${command} failed`);
    return new Model({ bytes: result.files[out], format, files: this.files });
  }

  /** Violations of the rules of ONNX: { valid, errors, warnings, notes, findings }. */
  async check(options = {}) {
    const words = wordsOf(options, {
      full: "flag", strict: "flag", pedantic: "flag", structure: "flag", checksums: "flag", customDomains: "flag",
      only: "list", ignore: "list", maxErrors: "word",
    });
    const { file, ...report } = parseJson(await this.#run("check", ["--json", ...words]));
    return report;
  }

  /** A summary of the model, as data. */
  async info() {
    const result = await this.#run("info", ["--json"]);
    if (result.status !== 0) throw OnxError.fromText(result.stderr, "onx info failed");
    const { file, ...info } = parseJson(result);
    return info;
  }

  /** The model with the types and shapes of all values. */
  infer(options = {}) {
    const words = wordsOf(options, { strict: "flag", checkType: "flag", noDataProp: "flag", plainNames: "flag", dim: "map" });
    return this.#make("infer", words);
  }

  /** The model as text. */
  async show(options = {}) {
    const words = wordsOf(options, { format: "word", full: "flag", types: "flag", node: "word" });
    const result = await this.#run("show", words);
    if (result.status !== 0) throw OnxError.fromText(result.stderr, "onx show failed");
    return result.stdout;
  }

  /** The same model in another format: onnx, onnxtxt, textproto, json. */
  convert(format, options = {}) {
    return this.#make("convert", wordsOf(options, { lenient: "flag", sort: "flag", inlineExternal: "flag" }), format);
  }

  /** The model without parts that its results do not need. */
  simplify(options = {}) {
    const words = wordsOf(options, { passes: "list", exact: "flag", dim: "map", inputShape: "map", keep: "each", foldLimit: "word" });
    return this.#make("simplify", words);
  }

  /** The model for other versions of the operator sets: a number for the default domain, or { domain: version }. */
  retarget(opset) {
    const words = typeof opset === "object" ? wordsOf({ opset }, { opset: "map" }) : ["--opset", String(opset)];
    return this.#make("retarget", words);
  }

  /** The differences from another model; `this` is the older one. Empty if there are none. */
  async diff(other, options = {}) {
    if (!(other instanceof Model)) throw new OnxError("diff compares with a Model");
    const words = wordsOf(options, { atol: "word", rtol: "word" });
    const names = [`a/model${FORMATS[this.format]}`, `b/model${FORMATS[other.format]}`];
    const files = { [names[0]]: this.bytes, [names[1]]: other.bytes };
    for (const [name, data] of Object.entries(this.files)) files[`a/${name}`] = data;
    for (const [name, data] of Object.entries(other.files)) files[`b/${name}`] = data;
    const result = await runProgram(["diff", "--json", ...words, ...names], files);
    if (result.status > 1 || !result.stdout) throw OnxError.fromText(result.stderr, "onx diff failed");
    return parseJson(result).differences;
  }

  /** Creates a session and runs it once. */
  async run(feeds, fetches) {
    const { InferenceSession } = await import("./session.js");
    const session = await InferenceSession.create(this);
    try {
      return await session.run(feeds, fetches);
    } finally {
      await session.release();
    }
  }
}

/** Loads a model from bytes, a URL or, in Node, a path; options: format, files, externalData. Parses it once, as a check. */
export async function load(source, options = {}) {
  const model = new Model(await readSource(source, options));
  await model.info();
  return model;
}

/** Parses ONNX text, or with a format, protobuf text or JSON. */
export async function parse(text, options = {}) {
  if (typeof text !== "string") throw new OnxError("parse takes a string");
  return load(toBytes(text), { ...options, format: options.format ?? "onnxtxt" });
}

export { parseDiagnostics };

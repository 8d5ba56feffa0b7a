// The program `onx` in an instance of its own: takes words and files, returns status, text and files.
import { OnxError } from "./errors.js";
import { guarded, instantiate } from "./module.js";
import { bytesSource, putSource } from "./weights.js";

const encoder = new TextEncoder();

/** A file name inside the working folder; names that lead outside are refused. */
function checkName(name) {
  const parts = name.split("/");
  if (!name || name.includes("\0") || parts.some((p) => p === "" || p === "." || p === ".."))
    throw new OnxError(`${JSON.stringify(name)} is not the name of a file`);
  return parts.slice(0, -1);
}

/** Writes files to the working folder of an instance; contents are bytes, or sources as in weights.js. */
export function putFiles(fs, files) {
  for (const [name, content] of Object.entries(files)) {
    let folder = "";
    for (const part of checkName(name)) {
      folder += part;
      if (!fs.analyzePath(folder).exists) fs.mkdir(folder);
      folder += "/";
    }
    // The file system keeps the array: a copy would double the memory for a large model.
    putSource(fs, name, content.read ? content : bytesSource(toBytes(content)));
  }
}

/** Converts strings and anything that holds bytes to bytes. */
export function toBytes(content) {
  if (typeof content === "string") return encoder.encode(content);
  if (content instanceof Uint8Array) return content;
  if (ArrayBuffer.isView(content)) return new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
  if (content instanceof ArrayBuffer || (typeof SharedArrayBuffer !== "undefined" && content instanceof SharedArrayBuffer))
    return new Uint8Array(content);
  throw new OnxError("expected bytes (Uint8Array, ArrayBuffer) or a string");
}

/** Stores the words of a command as argc and argv. */
function putWords(module, words) {
  const list = module._malloc((words.length + 1) * 4) >>> 0;
  if (!list) throw new OnxError("out of memory");
  const at = words.map((word) => {
    const bytes = encoder.encode(word + "\0");
    const to = module._malloc(bytes.length) >>> 0;
    if (!to) throw new OnxError("out of memory");
    module.HEAPU8.set(bytes, to);
    return to;
  });
  module.HEAPU32.set([...at, 0], list >>> 2);
  return list;
}

/**
 * Runs `onx ...words` with files in its folder. Returns the exit status, the printed text, and those of the files named in
 * `outputs` that exist.
 */
export async function run(words, files = {}, outputs = []) {
  for (const word of words)
    if (typeof word !== "string" || word.includes("\0")) throw new OnxError("words of a command are strings without \\0");
  const { module, stdout, stderr } = await instantiate("program");
  return guarded(`onx ${words[0] ?? ""}`, () => {
    module.FS.mkdir("/work");
    module.FS.chdir("/work");
    putFiles(module.FS, files);
    const argv = putWords(module, ["onx", ...words]);
    const status = module._onx_program(words.length + 1, argv);
    const made = {};
    for (const name of outputs) if (module.FS.analyzePath(name).exists) made[name] = module.FS.readFile(name);
    return { status, stdout: stdout.text(), stderr: stderr.text(), files: made };
  });
}

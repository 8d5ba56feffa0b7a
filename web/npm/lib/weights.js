// Large weights stay out of the memory of the instance. A binary model is divided into the bytes of its large weights, which
// become a file that the library reads while packing, and everything else, which the library decodes. So weights are in memory
// only once, packed. It also saves fresh memory for a copy, which costs more than the copying itself.

const MIN_BYTES = 1 << 16; // elements of smaller tensors stay in the model
const LATE_BYTES = 1 << 16; // the library reads smaller files at once (base_late.c)
const MOST_FIELDS = 1 << 14; // of a graph; a graph with more fields does not consist mostly of weights
const WINDOW = 1 << 16; // bytes read at a time while searching for fields

const VARINT = 0, I64 = 1, LENGTH = 2, I32 = 5; // how a field is written
const GRAPH = 7; // of ModelProto
const INITIALIZER = 5; // of GraphProto
const TENSOR = { dims: 1, dataType: 2, name: 8, rawData: 9, docString: 12 }; // fields that a moved tensor may have
const WIDTH = new Map([[1, 4], [10, 2], [11, 8], [16, 2]]); // bytes per element of the float types whose weights are moved

const encoder = new TextEncoder();

/** Bytes in memory as a source; `own`: nobody else uses them. */
export function bytesSource(bytes, own = false) {
  return { size: bytes.length, bytes, own, read: (at, to) => to.set(bytes.subarray(at, at + to.length)), close() {} };
}

/** Bytes that arrived in pieces. They stay in pieces, because joining them would need as much memory again. */
export function piecesSource(pieces) {
  const starts = [];
  let size = 0;
  for (const piece of pieces) {
    starts.push(size);
    size += piece.length;
  }
  if (pieces.length === 1) return bytesSource(pieces[0], true);
  /** The last piece that begins at or before a position. */
  const pieceAt = (at) => {
    let low = 0;
    for (let high = pieces.length; high - low > 1; ) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= at) low = middle;
      else high = middle;
    }
    return low;
  };
  const read = (at, to) => {
    for (let done = 0, i = pieceAt(at); done < to.length; i++) {
      const from = at + done - starts[i], part = pieces[i].subarray(from, from + to.length - done);
      to.set(part, done);
      done += part.length;
    }
  };
  if (size >= LATE_BYTES) return { size, read, close() {} };
  const bytes = new Uint8Array(size);
  read(0, bytes);
  return bytesSource(bytes, true);
}

/** In Node, a file that is read on demand. It stays open until `close`. */
export async function fileSource(path) {
  const fs = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:fs");
  const most = 2 ** 30; // most bytes that Node reads at a time
  let file = fs.openSync(path);
  const close = () => {
    if (file !== undefined) fs.closeSync(file);
    file = undefined;
  };
  const read = (at, to) => {
    for (let done = 0; done < to.length; ) {
      const got = fs.readSync(file, to, done, Math.min(to.length - done, most), at + done);
      if (got === 0) throw new Error(`the file ends at ${at + done} bytes`);
      done += got;
    }
  };
  try {
    const about = fs.fstatSync(file);
    if (!about.isFile()) throw new Error("it is no regular file");
    if (about.size >= LATE_BYTES) return { size: about.size, read, close };
    const bytes = new Uint8Array(about.size);
    read(0, bytes);
    close();
    return bytesSource(bytes, true);
  } catch (error) {
    close();
    throw error;
  }
}

/** A file of an instance whose contents are read from a source. */
export function putSource(fs, name, source) {
  if (source.bytes) return fs.writeFile(name, source.bytes, { canOwn: true });
  fs.writeFile(name, "");
  const { node } = fs.lookupPath(name);
  node.usedBytes = source.size;
  const read = (stream, memory, offset, length, position) => {
    const size = Math.max(0, Math.min(length, source.size - position));
    try {
      source.read(position, new Uint8Array(memory.buffer, memory.byteOffset + offset, size));
    } catch {
      throw new fs.ErrnoError(29); // EIO in WASI
    }
    return size;
  };
  node.stream_ops = { ...node.stream_ops, read };
}

/** Reads numbers and fields from a source. Throws on any irregularity; the model is then not divided. */
class Reader {
  #source;
  #window = new Uint8Array(0);
  #from = 0;

  constructor(source) {
    this.#source = source;
    this.at = 0;
  }

  #byte() {
    if (this.at >= this.#source.size) throw new RangeError("the model ends early");
    if (this.at < this.#from || this.at >= this.#from + this.#window.length) {
      this.#from = this.at;
      const { bytes, size } = this.#source;
      if (bytes) this.#window = bytes.subarray(this.at, this.at + WINDOW);
      else this.#source.read(this.at, (this.#window = new Uint8Array(Math.min(WINDOW, size - this.at))));
    }
    return this.#window[this.at++ - this.#from];
  }

  /** A number below 2^53. */
  number() {
    let value = 0;
    for (let scale = 1; scale < 2 ** 53; scale *= 128) {
      const byte = this.#byte();
      value += (byte & 127) * scale;
      if (byte < 128) {
        if (!Number.isSafeInteger(value)) break;
        return value;
      }
    }
    throw new RangeError("a number is too large");
  }

  /** The next field, which must end before `end`: number, wire type, start, and content. */
  field(end) {
    const from = this.at, tag = this.number(), kind = tag % 8, id = Math.floor(tag / 8);
    let value, size = 0;
    if (kind === VARINT) value = this.number();
    else if (kind === LENGTH) size = this.number();
    else if (kind === I64) size = 8;
    else if (kind === I32) size = 4;
    else throw new RangeError("a field is written in no way that is known");
    const start = this.at;
    if (start + size > end) throw new RangeError("a field is longer than what it is in");
    this.at = start + size;
    return { id, kind, from, start, end: this.at, value };
  }
}

/** The position of a tensor's elements, if they can be moved; else undefined. */
function elementsOf(reader, tensor) {
  const once = {};
  let count = 1, rank = 0;
  const dim = (size) => ((count *= size), rank++);
  reader.at = tensor.start;
  while (reader.at < tensor.end) {
    const field = reader.field(tensor.end), { id, kind } = field;
    if (id === TENSOR.dims && kind === VARINT) dim(field.value);
    else if (id === TENSOR.dims && kind === LENGTH) {
      reader.at = field.start;
      while (reader.at < field.end) dim(reader.number());
      if (reader.at !== field.end) return undefined;
    } else if (!Object.values(TENSOR).includes(id) || once[id]) return undefined;
    else once[id] = field;
  }
  const raw = once[TENSOR.rawData], type = once[TENSOR.dataType];
  if (raw?.kind !== LENGTH || type?.kind !== VARINT || rank < 2) return undefined;
  const size = raw.end - raw.start;
  return size >= MIN_BYTES && count * WIDTH.get(type.value) === size ? raw : undefined;
}

function numberBytes(value) {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return [...bytes, value];
}

const fieldBytes = (id, content) => [...numberBytes(id * 8 + LENGTH), ...numberBytes(content.length), ...content];

/** The fields that give the location of a tensor's elements. */
function placeBytes(name, raw) {
  const entry = (key, value) => fieldBytes(13, [...fieldBytes(1, encoder.encode(key)), ...fieldBytes(2, encoder.encode(value))]);
  return [
    ...entry("location", name), ...entry("offset", String(raw.start)), ...entry("length", String(raw.end - raw.start)),
    ...numberBytes(14 * 8 + VARINT), 1, // data_location: EXTERNAL
  ];
}

/** A sequence of ranges of a source and of bytes made here. */
class Pieces {
  list = [];
  size = 0;

  own(bytes) {
    this.list.push({ own: bytes });
    this.size += bytes.length;
  }

  stretch(from, end) {
    if (from === end) return;
    const last = this.list.at(-1);
    if (last && last.end === from) last.end = end;
    else this.list.push({ from, end });
    this.size += end - from;
  }

  all(other) {
    for (const { own, from, end } of other.list) own ? this.own(own) : this.stretch(from, end);
  }

  /** Writes all of it to memory of that size. */
  write(source, to) {
    let at = 0;
    for (const { own, from, end } of this.list) {
      if (own) to.set(own, at);
      else source.read(from, to.subarray(at, at + end - from));
      at += own ? own.length : end - from;
    }
  }
}

function takeTensor(reader, tensor, name, pieces) {
  const raw = elementsOf(reader, tensor);
  if (!raw) return 0;
  const place = placeBytes(name, raw), size = tensor.end - tensor.start - (raw.end - raw.from) + place.length;
  pieces.own([...numberBytes(INITIALIZER * 8 + LENGTH), ...numberBytes(size)]);
  pieces.stretch(tensor.start, raw.from);
  pieces.stretch(raw.end, tensor.end);
  pieces.own(place);
  return raw.end - raw.start;
}

function takeGraph(reader, graph, name) {
  const pieces = new Pieces();
  let moved = 0;
  reader.at = graph.start;
  for (let fields = 0; reader.at < graph.end; fields++) {
    if (fields === MOST_FIELDS) {
      pieces.stretch(reader.at, graph.end);
      break;
    }
    const field = reader.field(graph.end);
    const size = field.id === INITIALIZER && field.end - field.start >= MIN_BYTES ? takeTensor(reader, field, name, pieces) : 0;
    if (!size) pieces.stretch(field.from, field.end);
    moved += size;
    reader.at = field.end;
  }
  return { pieces, moved };
}

/**
 * Divides a binary model: `pieces` make a model whose large weights are in a data file called `name`, at their offsets in the
 * source; `moved` is the number of bytes moved. Returns undefined if that does not pay, or if the model is not regular: the
 * library then reports the error.
 */
export function takeApart(source, name) {
  const reader = new Reader(source), pieces = new Pieces();
  let graph;
  try {
    while (reader.at < source.size) {
      const field = reader.field(source.size);
      if (field.id !== GRAPH) {
        pieces.stretch(field.from, field.end);
        continue;
      }
      if (graph || field.kind !== LENGTH) return undefined; // parts of one graph
      graph = takeGraph(reader, field, name);
      pieces.own([...numberBytes(GRAPH * 8 + LENGTH), ...numberBytes(graph.pieces.size)]);
      pieces.all(graph.pieces);
      reader.at = field.end;
    }
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
  return graph?.moved * 2 > source.size ? { pieces, moved: graph.moved } : undefined;
}

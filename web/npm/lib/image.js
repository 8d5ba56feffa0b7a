// Converts pictures to tensors and back, with the names of onnxruntime-web. The computations need no browser; only files and
// elements of a page are decoded by the browser.
import { OnxError } from "./errors.js";

/** The positions of red, green, blue and alpha in each format. */
const FORMATS = { RGB: [0, 1, 2], RBG: [0, 2, 1], BGR: [2, 1, 0], RGBA: [0, 1, 2, 3] };
const MAX_PIXELS = 2 ** 28; // a gigabyte of RGBA

function choice(what, value, known) {
  if (!known.includes(value)) throw new OnxError(`no ${what} ${JSON.stringify(value)}; there are ${known.join(", ")}`);
  return value;
}

function pixelCount(width, height) {
  for (const n of [width, height])
    if (!Number.isSafeInteger(n) || n < 1) throw new OnxError(`a picture of ${width} x ${height} pixels`);
  if (width * height > MAX_PIXELS) throw new OnxError(`a picture of ${width} x ${height} pixels is too large; there may be ${MAX_PIXELS}`);
  return width * height;
}

/** Expands to a number for each of red, green, blue, alpha; missing ones are `otherwise`. */
function perChannel(what, value, otherwise) {
  const list = Array.isArray(value) ? value : [value, value, value, value];
  const full = Array.from({ length: 4 }, (_, i) => list[i] ?? otherwise);
  if (list.length > 4 || !full.every(Number.isFinite)) throw new OnxError(`norm.${what} is a number, or 3 or 4 of them`);
  return full;
}

/** As in onnxruntime-web: a tensor has (pixel + bias) / mean, a picture has (value - bias) * mean. */
function normOf(norm, type) {
  const mean = perChannel("mean", norm?.mean ?? (type === "uint8" ? 1 : 255), type === "uint8" ? 1 : 255);
  if (mean.includes(0)) throw new OnxError("norm.mean is 0: pixels are divided by it");
  return { mean, bias: perChannel("bias", norm?.bias ?? 0, 0) };
}

// ---- pictures ----

/** Draws something that a browser can draw, and returns its pixels. */
function draw(source, width, height) {
  pixelCount(width, height);
  let canvas;
  if (typeof OffscreenCanvas !== "undefined") canvas = new OffscreenCanvas(width, height);
  else if (typeof document !== "undefined") canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas?.getContext("2d");
  if (!context) throw new OnxError("there is no canvas here: give the pixels as { data, width, height }");
  context.drawImage(source, 0, 0);
  return context.getImageData(0, 0, width, height);
}

async function decodeFile(blob) {
  if (typeof createImageBitmap === "undefined")
    throw new OnxError("nothing here decodes pictures: give the pixels as { data, width, height }");
  const bitmap = await createImageBitmap(blob).catch((error) => {
    throw new OnxError(`the picture cannot be decoded: ${error.message}`);
  });
  try {
    return draw(bitmap, bitmap.width, bitmap.height);
  } finally {
    bitmap.close();
  }
}

const isOf = (source, ...names) => names.some((name) => typeof globalThis[name] === "function" && source instanceof globalThis[name]);

/** The pixels of any kind of picture: { data, width, height }, with the channels of `data`. */
async function pixelsOf(source) {
  if (typeof source === "string" || source instanceof URL) {
    if (typeof createImageBitmap === "undefined") return decodeFile();
    const response = await fetch(source);
    if (!response.ok) throw new OnxError(`cannot fetch ${source}: ${response.status} ${response.statusText}`);
    return decodeFile(await response.blob());
  }
  if (isOf(source, "HTMLImageElement")) {
    await source.decode().catch((error) => {
      throw new OnxError(`the picture cannot be decoded: ${error.message}`);
    });
    return draw(source, source.naturalWidth, source.naturalHeight);
  }
  if (isOf(source, "HTMLVideoElement")) return draw(source, source.videoWidth, source.videoHeight);
  if (isOf(source, "ImageBitmap", "HTMLCanvasElement", "OffscreenCanvas")) return draw(source, source.width, source.height);
  if (source?.data && "width" in source && "height" in source) return source;
  if (isOf(source, "Blob")) return decodeFile(source);
  throw new OnxError("expected a picture: ImageData or { data, width, height }, an element of a page, an ImageBitmap, a Blob or a URL");
}

function checkPixels({ data, width, height }) {
  const count = pixelCount(width, height);
  if (!(data instanceof Uint8Array || data instanceof Uint8ClampedArray)) throw new OnxError("the data of a picture is a Uint8Array or a Uint8ClampedArray");
  const channels = data.length / count;
  if (channels !== 3 && channels !== 4) throw new OnxError(`a picture of ${width} x ${height} pixels has 3 or 4 bytes for each, not ${data.length} in all`);
  return { data, width, height, channels };
}

/** For each output position, the first input pixel and the weights of a triangle filter as wide as the step. */
function taps(from, to) {
  const step = from / to, reach = Math.max(step, 1);
  return Array.from({ length: to }, (_, i) => {
    const center = (i + 0.5) * step - 0.5;
    const first = Math.max(0, Math.ceil(center - reach)), last = Math.min(from - 1, Math.floor(center + reach));
    const weights = Array.from({ length: last - first + 1 }, (_, k) => Math.max(0, 1 - Math.abs(first + k - center) / reach));
    const sum = weights.reduce((a, b) => a + b, 0);
    return { first, weights: weights.map((w) => w / sum) };
  });
}

/** Resizes lines of `count` points with stride `stride` to `to` points each. */
function resizeLines(data, { lines, count, to, lineAt, stride, outAt, outStride, channels }, out) {
  const all = taps(count, to);
  for (let line = 0; line < lines; line++)
    for (let i = 0; i < to; i++)
      for (let c = 0; c < channels; c++) {
        let sum = 0;
        all[i].weights.forEach((w, k) => (sum += w * data[lineAt(line) + (all[i].first + k) * stride + c]));
        out[outAt(line) + i * outStride + c] = sum;
      }
  return out;
}

/** Resizes the picture; when it shrinks, every pixel contributes. Values are not rounded to integers. */
function resize({ data, width, height, channels }, newWidth, newHeight) {
  pixelCount(newWidth, newHeight);
  pixelCount(newWidth, height);
  const row = width * channels, newRow = newWidth * channels;
  const wide = resizeLines(data, {
    lines: height, count: width, to: newWidth, lineAt: (y) => y * row, stride: channels, outAt: (y) => y * newRow, outStride: channels, channels,
  }, new Float32Array(height * newRow));
  const high = resizeLines(wide, {
    lines: newWidth, count: height, to: newHeight, lineAt: (x) => x * channels, stride: newRow, outAt: (x) => x * channels, outStride: newRow, channels,
  }, new Float32Array(newHeight * newRow));
  return { data: high, width: newWidth, height: newHeight, channels };
}

/** Converts a picture to the type, data and dims of a tensor. */
export async function fromImage(source, options = {}) {
  const format = choice("tensorFormat", options.tensorFormat ?? "RGB", Object.keys(FORMATS));
  const layout = choice("tensorLayout", options.tensorLayout ?? "NCHW", ["NCHW", "NHWC"]);
  const type = choice("dataType", options.dataType ?? "float32", ["float32", "uint8"]);
  const { mean, bias } = normOf(options.norm, type);
  let picture = checkPixels(await pixelsOf(source));
  const width = options.resizedWidth ?? picture.width, height = options.resizedHeight ?? picture.height;
  if (width !== picture.width || height !== picture.height) picture = resize(picture, width, height);

  const places = FORMATS[format], pixels = width * height, channels = places.length;
  const data = type === "uint8" ? new Uint8ClampedArray(pixels * channels) : new Float32Array(pixels * channels);
  places.forEach((place, c) => {
    const at = layout === "NCHW" ? place * pixels : place, stride = layout === "NCHW" ? 1 : channels;
    for (let i = 0; i < pixels; i++) {
      const pixel = c < picture.channels ? picture.data[i * picture.channels + c] : 255;
      data[at + i * stride] = (pixel + bias[c]) / mean[c];
    }
  });
  return { type, data, dims: layout === "NCHW" ? [1, channels, height, width] : [1, height, width, channels] };
}

// ---- tensors to pictures ----

/** The pixels of a tensor, four bytes each. */
function toPixels({ type, data, dims }, options = {}) {
  const layout = choice("tensorLayout", options.tensorLayout ?? "NCHW", ["NCHW", "NHWC"]);
  if (type !== "float32" && type !== "uint8") throw new OnxError(`a picture is made of float32 or uint8, not of ${type}`);
  const size = dims.length === 4 ? dims.slice(1) : dims;
  if (size.length !== 3 || (dims.length === 4 && dims[0] !== 1)) throw new OnxError(`a tensor of [${dims}] is no picture: that is 1 x channels x height x width, or without the 1`);
  const [channels, height, width] = layout === "NCHW" ? size : [size[2], size[0], size[1]];
  const pixels = pixelCount(width, height);
  if (![1, 3, 4].includes(channels)) throw new OnxError(`a picture has 1, 3 or 4 channels, not ${channels}`);
  const format = choice("format", options.format ?? (channels === 4 ? "RGBA" : "RGB"), Object.keys(FORMATS));
  const places = channels === 1 ? [0, 0, 0] : FORMATS[format];
  if (channels > 1 && places.length !== channels) throw new OnxError(`${format} has ${places.length} channels, and the tensor ${channels}`);

  const { mean, bias } = normOf(options.norm, type);
  const out = new Uint8ClampedArray(pixels * 4).fill(255);
  places.forEach((place, c) => {
    const at = layout === "NCHW" ? place * pixels : place, stride = layout === "NCHW" ? 1 : channels;
    for (let i = 0; i < pixels; i++) out[i * 4 + c] = (data[at + i * stride] - bias[c]) * mean[c];
  });
  return { data: out, width, height };
}

/** Makes ImageData, or an object with the same fields where that class does not exist. */
export function toImageData(tensor, options) {
  const picture = toPixels(tensor, options);
  return typeof ImageData === "undefined" ? picture : new ImageData(picture.data, picture.width, picture.height);
}

let crcTable;
function crc(bytes) {
  crcTable ??= Uint32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
    return n;
  });
  let sum = ~0;
  for (const byte of bytes) sum = crcTable[(sum ^ byte) & 255] ^ (sum >>> 8);
  return ~sum >>> 0;
}

const bigEndian = (n) => [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255];

function pngChunk(name, content) {
  const body = new Uint8Array(4 + content.length);
  body.set([...name].map((c) => c.charCodeAt(0)));
  body.set(content, 4);
  return [new Uint8Array(bigEndian(content.length)), body, new Uint8Array(bigEndian(crc(body)))];
}

/** The zlib format without compression: blocks of up to 65535 bytes. */
function stored(bytes) {
  const blocks = Math.ceil(bytes.length / 65535);
  const out = new Uint8Array(2 + blocks * 5 + bytes.length + 4);
  out.set([0x78, 0x01]);
  let at = 2, a = 1, b = 0;
  for (let from = 0; from < bytes.length; from += 65535) {
    const part = bytes.subarray(from, from + 65535), length = part.length;
    out.set([from + length === bytes.length ? 1 : 0, length & 255, length >>> 8, ~length & 255, (~length >>> 8) & 255], at);
    out.set(part, at + 5);
    at += 5 + length;
  }
  for (const byte of bytes) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  out.set(bigEndian(b * 65536 + a), at);
  return out;
}

/** A PNG without compression, which needs no library and is made synchronously. */
export function toDataURL(tensor, options) {
  const { data, width, height } = toPixels(tensor, options);
  const row = width * 4, lines = new Uint8Array(height * (row + 1)); // each line begins with filter type 0 (none)
  for (let y = 0; y < height; y++) lines.set(data.subarray(y * row, (y + 1) * row), y * (row + 1) + 1);
  const parts = [
    new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]),
    ...pngChunk("IHDR", new Uint8Array([...bigEndian(width), ...bigEndian(height), 8, 6, 0, 0, 0])),
    ...pngChunk("IDAT", stored(lines)), ...pngChunk("IEND", new Uint8Array(0)),
  ];
  let text = "";
  for (const part of parts) for (let i = 0; i < part.length; i += 8192) text += String.fromCharCode(...part.subarray(i, i + 8192));
  return `data:image/png;base64,${btoa(text)}`;
}

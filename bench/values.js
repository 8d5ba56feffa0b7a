// values.js - shared by the comparisons with onnxruntime-node: random tensors, .npy files, and the difference of two
// tensors.
'use strict';
const ort = require('onnxruntime-node'), fs = require('fs');
const types = {
  float32: ['<f4', Float32Array], float64: ['<f8', Float64Array], int64: ['<i8', BigInt64Array], int32: ['<i4', Int32Array],
  int16: ['<i2', Int16Array], uint16: ['<u2', Uint16Array], uint32: ['<u4', Uint32Array], uint64: ['<u8', BigUint64Array],
  int8: ['|i1', Int8Array], uint8: ['|u1', Uint8Array], bool: ['|b1', Uint8Array], float16: ['<f2', Uint16Array],
};

function write(file, t) {
  let header = `{'descr': '${types[t.type][0]}', 'fortran_order': False, 'shape': (${t.dims.map(d => d + ',').join('')}), }`;
  header = header.padEnd(117) + '\n';
  const start = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length, 0]);
  fs.writeFileSync(file, Buffer.concat([start, Buffer.from(header, 'latin1'), Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength)]));
}

function read(file) {
  const bytes = fs.readFileSync(file), begin = 10 + bytes.readUInt16LE(8), header = bytes.toString('latin1', 10, begin);
  const dims = header.match(/'shape': \(([^)]*)\)/)[1].split(',').filter(x => x.trim()).map(Number);
  const kind = Object.values(types).find(t => header.includes(`'${t[0]}'`));
  const data = bytes.subarray(begin);
  return { dims, data: new kind[1](data.buffer.slice(data.byteOffset, data.byteOffset + data.length)) };
}

let seed = 1;
const next = () => { seed = (Math.imul(seed, 1103515245) + 12345) >>> 0; return (seed >>> 8) / 16777216; };
function random(m) {
  const dims = m.shape.map(d => typeof d === 'number' && d >= 0 ? d : 1), data = new types[m.type][1](dims.reduce((a, b) => a * b, 1));
  for (let i = 0; i < data.length; i++) {
    const x = m.type.startsWith('float') ? next() : Math.floor(next() * 2);
    data[i] = /int64/.test(m.type) ? BigInt(x) : x;
  }
  return new ort.Tensor(m.type, data, dims);
}

function apart(want, got) {
  if (String(want.dims) !== String(got.dims)) throw new Error(`shape ${got.dims}, not ${want.dims}`);
  let whole = 0, wrong = 0;
  const real = want.type.startsWith('float');
  for (let i = 0; i < want.data.length; i++) {
    const a = Number(want.data[i]), b = Number(got.data[i]);
    if (a === b || (a !== a && b !== b)) { whole += real ? Math.min(a * a, 1e300) : 1; continue; }
    whole += real ? a * a : 1;
    wrong += real ? (a - b) * (a - b) : 1;
  }
  return wrong === 0 ? 0 : Math.sqrt(wrong / whole);
}

module.exports = { write, read, random, apart };

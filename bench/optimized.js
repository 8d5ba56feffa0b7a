// optimized.js - what onnxruntime's optimizer writes, read, checked and run by onx:
//   NODE_PATH=.../node_modules node optimized.js ONX MODEL...
// For each level the model that onnxruntime-node writes (optimizedModelFilePath) goes through `onx check` and `onx run`, on
// the inputs on which onnxruntime runs the model as it was. Prints how far the outputs are apart (the root of the ratio of
// the sums of squares; for integers the part that differs) and exits with 1 where a model fails or departs by more than 1e-3.
'use strict';
const ort = require('onnxruntime-node'), fs = require('fs'), os = require('os'), path = require('path'), { spawnSync } = require('child_process');
const [onx, ...models] = process.argv.slice(2);
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

function call(...args) {
  const p = spawnSync(onx, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (p.status !== 0) throw new Error(`onx ${args[0]}: ${(p.stderr || p.stdout || String(p.signal)).trim().split('\n')[0].slice(0, 300)}`);
  return p.stdout;
}

async function model(file, folder) {
  const options = { intraOpNumThreads: 1, logSeverityLevel: 4 };
  const plain = await ort.InferenceSession.create(file, { ...options, graphOptimizationLevel: 'disabled' });
  const feeds = {}, args = [];
  plain.inputMetadata.forEach((m, i) => {
    feeds[m.name] = random(m);
    write(path.join(folder, `in${i}.npy`), feeds[m.name]);
    args.push('-i', `${m.name}=${path.join(folder, `in${i}.npy`)}`);
  });
  const want = await plain.run(feeds);
  let wrong = 0;
  for (const level of ['basic', 'extended', 'layout', 'all']) {
    const made = path.join(folder, `${level}.onnx`), out = path.join(folder, level);
    let said;
    try {
      await ort.InferenceSession.create(file, { ...options, graphOptimizationLevel: level, optimizedModelFilePath: made });
      call('check', made);
      call('run', made, ...args, '--npy', '-o', out, '--threads', '1');
      const far = plain.outputNames.map((n, i) => apart(want[n], read(path.join(out, `output_${i}.npy`))));
      const most = Math.max(...far);
      if (!(most <= 1e-3)) wrong++;
      said = `${most <= 1e-3 ? 'agrees' : 'DEPARTS'} ${most.toExponential(1)}`;
    } catch (e) {
      wrong++;
      said = `FAILS ${String(e.message).split('\n')[0]}`;
    }
    console.log(`${path.basename(file)} ${level}: ${said}`);
    fs.rmSync(made, { force: true });
    fs.rmSync(made + '.data', { force: true });
  }
  return wrong;
}

(async () => {
  let wrong = 0;
  for (const file of models) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onx-'));
    try { wrong += await model(file, folder); } catch (e) { console.log(`${path.basename(file)}: onnxruntime: ${String(e.message).split('\n')[0].slice(0, 200)}`); }
    fs.rmSync(folder, { recursive: true });
  }
  process.exit(wrong ? 1 : 0);
})();

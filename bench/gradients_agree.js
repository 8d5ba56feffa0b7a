// gradients_agree.js - expanded gradients of models in onnxruntime-node beside those of onx, in float:
//   NODE_PATH=.../node_modules node gradients_agree.js ONX MODEL...      needs Debian's python3-onnx
// `onx grad` derives the sum of the first output of floats by a dozen weights; both run what it writes on the same inputs.
// Symbolic sizes are 2. The largest error of an element counts, relative to the largest element of that gradient, or to
// 1e-3 of the largest of all, as derivatives of zero are rounding alone. The exit status is 1 where it is above 1e-3.
'use strict';
const ort = require('onnxruntime-node'), fs = require('fs'), os = require('os'), path = require('path'), { spawnSync } = require('child_process');
const [onx, ...files] = process.argv.slice(2);
const types = {
  float32: [Float32Array, '<f4'], float64: [Float64Array, '<f8'], int64: [BigInt64Array, '<i8'], int32: [Int32Array, '<i4'], bool: [Uint8Array, '|b1'], uint8: [Uint8Array, '|u1'],
};
const NAMES = `import onnx, sys, json
g = onnx.load(sys.argv[1], load_external_data=False).graph
w = [t.name for t in g.initializer if t.data_type == 1 and t.dims]
print(json.dumps({"weights": [w[i] for i in sorted({i * (len(w) - 1) // 11 for i in range(12)})] if w else [],
                  "of": next(o.name for o in g.output if o.type.tensor_type.elem_type == 1)}))`;

function call(program, ...args) {
  const r = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (r.status !== 0) throw new Error(`${path.basename(program)} ${args[0]}: ${r.stderr}`);
  return r.stdout;
}

function readNpy(file) {
  const b = fs.readFileSync(file), at = 10 + b.readUInt16LE(8);
  return new Float32Array(b.buffer.slice(b.byteOffset + at, b.byteOffset + b.length));
}

function writeNpy(file, type, dims, data) {
  const head = Buffer.from('\x93NUMPY\x01\x00\x76\x00' + `{'descr': '${types[type][1]}', 'fortran_order': False, 'shape': (${dims.map(d => d + ',').join('')})}`.padEnd(117) + '\n', 'latin1');
  fs.writeFileSync(file, Buffer.concat([head, Buffer.from(data.buffer)]));
}

let state = 12345;
function random() {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return (state >>> 8) / 16777216;
}

function input(meta) {
  const dims = meta.shape.map(d => (typeof d === 'number' && d >= 0 ? d : 2)), data = new types[meta.type][0](dims.reduce((a, b) => a * b, 1));
  for (let i = 0; i < data.length; i++) {
    const x = meta.type.startsWith('float') ? random() : Math.floor(random() * 2);
    data[i] = meta.type === 'int64' ? BigInt(x) : x;
  }
  return new ort.Tensor(meta.type, data, dims);
}

async function compare(file, folder) {
  const names = JSON.parse(call('/usr/bin/python3', '-c', NAMES, file)), derived = path.join(folder, 'gradients.onnx');
  call(onx, 'grad', file, '-o', derived, '--of', names.of, '--wrt', names.weights.join(','), '--only');
  const session = await ort.InferenceSession.create(derived, { intraOpNumThreads: 1, logSeverityLevel: 4 });
  const feeds = {}, args = [];
  session.inputMetadata.forEach((meta, i) => {
    const t = feeds[meta.name] = input(meta), at = path.join(folder, `input${i}.npy`);
    writeNpy(at, meta.type, t.dims, t.data);
    args.push('-i', `${meta.name}=${at}`);
  });
  const theirs = await session.run(feeds);
  call(onx, 'run', derived, ...args, '--threads', '1', '--npy', '--output-dir', path.join(folder, 'out'));
  const all = session.outputNames.map((name, k) => {
    const a = readNpy(path.join(folder, 'out', `output_${k}.npy`)), b = theirs[name].data;
    let error = a.length === b.length ? 0 : Infinity, most = 0;
    for (let i = 0; i < b.length; i++) {
      if (!(Math.abs(a[i] - b[i]) <= error)) error = Math.abs(a[i] - b[i]);
      most = Math.max(most, Math.abs(b[i]));
    }
    return { error, most };
  });
  const least = 1e-3 * Math.max(...all.map(o => o.most)), worst = all.map(o => o.error / (Math.max(o.most, least) || 1)).reduce((a, b) => (b <= a ? a : b), 0);
  console.log(`${path.basename(file)}: ${names.weights.length} weights, largest relative error ${worst.toExponential(1)}${worst <= 1e-3 ? '' : '  ABOVE 1e-3'}`);
  return worst <= 1e-3;
}

(async () => {
  let bad = 0;
  for (const file of files) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'gradients'));
    try {
      bad += !await compare(file, folder);
    } catch (e) {
      console.log(`${path.basename(file)}: ${String(e.message).slice(0, 200)}`);
      bad++;
    }
    fs.rmSync(folder, { recursive: true, force: true });
  }
  process.exit(bad ? 1 : 0);
})();

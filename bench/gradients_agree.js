// gradients_agree.js - runs expanded gradients of models in float in onx and in onnxruntime-node, and compares both with a run in double:
//   NODE_PATH=.../node_modules node gradients_agree.js ONX MODEL...      needs Debian's python3-onnx
//   ONX_BENCH_CHECKPOINT  value of --checkpoint (sqrt, a number): activations are recomputed; default: they are kept
// `onx grad` differentiates a scalar made of the first float output with respect to a dozen weights. Both runtimes run the result on the same
// inputs, and onx runs it in double, too (`onx precision`). Symbolic dimensions are 2. The error of a gradient is the largest error of its
// elements, relative to its largest element. For a gradient that is zero (in double below 1e-10 of the largest of all gradients, such as that of
// a bias before a normalization) it is relative to the largest of all gradients.
// Where the input of a Relu is within rounding of 0, float and double take the derivatives of different sides, and differ by a whole
// element. This is not an error of a rule, and occurs at other positions for other inputs. So a gradient above the limit is tried with up to DRAWS
// inputs, and its least error counts: an error of a rule or kernel would occur each time. Detectors select by scores that are nearly equal, and
// select differently in double; and elements that almost cancel have few correct digits in float. So a gradient also passes if it agrees with
// onnxruntime's, or if it is at most twice as far from double. The exit status is 1 if any other gradient of onx has an error above 1e-4.
'use strict';
const ort = require('onnxruntime-node'), fs = require('fs'), os = require('os'), path = require('path'), { spawnSync } = require('child_process');
const [onx, ...files] = process.argv.slice(2), LIMIT = 1e-4, DRAWS = 5;
const CHECKPOINT = process.env.ONX_BENCH_CHECKPOINT ? ['--checkpoint', process.env.ONX_BENCH_CHECKPOINT] : [];
const types = {
  float32: [Float32Array, '<f4'], float64: [Float64Array, '<f8'], int64: [BigInt64Array, '<i8'], int32: [Int32Array, '<i4'], bool: [Uint8Array, '|b1'], uint8: [Uint8Array, '|u1'],
};
// Adds the output y * y * (1 + y), where y is the model's first float output. The sums of y and of its squares would not do: they may be constant
// (Softmax, normalizations). Weights that are all zero, as in freshly initialized heads, pass no gradient on, so they get random values.
const LOSS = `import onnx, onnx.numpy_helper, sys, json, numpy
m = onnx.load(sys.argv[1]); g = m.graph
for t in g.initializer:
    if t.data_type == 1 and len(t.dims) > 1 and not onnx.numpy_helper.to_array(t).any():
        t.CopyFrom(onnx.numpy_helper.from_array(numpy.random.RandomState(1).uniform(-0.05, 0.05, list(t.dims)).astype(numpy.float32), t.name))
of = next(o.name for o in g.output if o.type.tensor_type.elem_type == 1)
w = [t.name for t in g.initializer if t.data_type == 1 and t.dims]
node = onnx.helper.make_node
g.node.extend([node("Mul", [of, of], ["agree_squares"]), node("Mul", ["agree_squares", of], ["agree_cubes"]),
               node("Add", ["agree_squares", "agree_cubes"], ["agree_loss"])])
g.output.append(onnx.helper.make_tensor_value_info("agree_loss", 1, None))
onnx.save(m, sys.argv[2])
print(json.dumps([w[i] for i in sorted({i * (len(w) - 1) // 11 for i in range(12)})] if w else []))`;

function call(program, ...args) {
  const r = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (r.status !== 0) throw new Error(`${path.basename(program)} ${args[0]}: ${r.stderr}`);
  return r.stdout;
}

function readNpy(file, type) {
  const b = fs.readFileSync(file), at = 10 + b.readUInt16LE(8);
  return new type(b.buffer.slice(b.byteOffset + at, b.byteOffset + b.length));
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

// The inputs of one draw: for onnxruntime, and as files in float and in double.
function draw(session, folder) {
  const feeds = {}, floats = [], doubles = [];
  session.inputMetadata.forEach((meta, i) => {
    const t = feeds[meta.name] = input(meta), at = path.join(folder, `input${i}.npy`), wide = path.join(folder, `wide${i}.npy`);
    writeNpy(at, meta.type, t.dims, t.data);
    floats.push('-i', `${meta.name}=${at}`);
    if (meta.type === 'float32') writeNpy(wide, 'float64', t.dims, Float64Array.from(t.data));
    doubles.push('-i', `${meta.name}=${meta.type === 'float32' ? wide : at}`);
  });
  return { feeds, floats, doubles };
}

const most = a => a.reduce((m, x) => (Math.abs(x) <= m ? m : Math.abs(x)), 0);
const apart = (a, b) => (a.length === b.length ? a.reduce((m, x, i) => (Math.abs(x - b[i]) <= m ? m : Math.abs(x - b[i])), 0) : Infinity);

// The errors of one draw: how far the gradients of onx are from the double run and from onnxruntime, and onnxruntime's from the double run.
async function errors(session, derived, folder) {
  const { feeds, floats, doubles } = draw(session, folder), out = path.join(folder, 'out');
  const gradients = (model, args, read) => {
    call(onx, 'run', path.join(folder, model), ...args, '--npy', '--output-dir', out);
    return session.outputNames.map((_, k) => readNpy(path.join(out, `output_${k}.npy`), read));
  };
  const ours = gradients('gradients.onnx', floats, Float32Array), exact = gradients('double.onnx', doubles, Float64Array);
  const theirs = await session.run(feeds), largest = Math.max(...exact.map(most));
  if (!(largest > 0)) throw new Error('all gradients are zero, which compares nothing');
  return session.outputNames.map((name, k) => {
    const own = most(exact[k]), by = (own > 1e-10 * largest ? own : largest) || 1, peer = theirs[name].data;
    return [apart(ours[k], exact[k]) / by, apart(ours[k], peer) / by, apart(peer, exact[k]) / by];
  });
}

async function compare(file, folder) {
  const model = path.join(folder, 'model.onnx'), derived = path.join(folder, 'gradients.onnx');
  const weights = JSON.parse(call('/usr/bin/python3', '-c', LOSS, file, model));
  call(onx, 'grad', model, '-o', derived, '--of', 'agree_loss', '--wrt', weights.join(','), '--only', ...CHECKPOINT);
  call(onx, 'precision', derived, '-o', path.join(folder, 'double.onnx'), '--to', 'double');
  const session = await ort.InferenceSession.create(derived, { intraOpNumThreads: 1, logSeverityLevel: 4 });
  const least = session.outputNames.map(() => [Infinity, Infinity, Infinity]), worst = of => least.reduce((m, e) => (of(e) <= m ? m : of(e)), 0);
  const good = () => least.every(e => e[0] <= LIMIT || e[1] <= LIMIT || e[0] <= 2 * e[2]);
  let draws = 0;
  for (; draws < DRAWS && !(draws && good()); draws++)
    (await errors(session, derived, folder)).forEach((e, k) => { least[k] = least[k].map((x, i) => (x <= e[i] ? x : e[i])); });
  const [ours, between, theirs] = [0, 1, 2].map(i => worst(e => e[i]).toExponential(1));
  console.log(`${path.basename(file)}: ${weights.length} weights, from double ${ours} (onnxruntime ${theirs}), from each other ${between}, ` +
              `${draws} draw${draws > 1 ? 's' : ''}${good() ? '' : '  ABOVE ' + LIMIT}`);
  return good();
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

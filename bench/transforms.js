// Runs models transformed by onx in onnxruntime-node and in onx on the same inputs: node transforms.js ONX MODEL...
// Prints models that onnxruntime refuses, and the difference of its outputs from those of onx and from its own outputs for the
// original model: the root of the ratio of the sums of squares, of the worst output (for integers the fraction that
// differs). Needs onnxruntime-node in NODE_PATH.
'use strict';
const ort = require('onnxruntime-node'), fs = require('fs'), os = require('os'), path = require('path'), { execFileSync } = require('child_process');
const { write, read, random, apart } = require('./values.js');

const [onx, ...models] = process.argv.slice(2);
const ways = [
  ['simplify'],
  ['retarget', '--opset', '13'],
  ['retarget', '--opset', '17'],
  ['retarget', '--opset', '22'],
  ['outline'],
  ['compress'],
  ['precision', '--to', 'float16', '--keep-io'],
  ['quantize', '--mode', 'dynamic'],
  ['quantize', '--mode', 'static'],
  ['quantize', '--mode', 'static', '--form', 'qlinear'],
  ['quantize', '--mode', 'weights'],
  ['quantize', '--mode', 'weights', '--weight-type', 'int4'],
];
const quiet = { stdio: ['ignore', 'ignore', 'pipe'] };

async function compare(model, way, feeds, args, folder, before) {
  const made = path.join(folder, 'made.onnx'), out = path.join(folder, 'out');
  execFileSync(onx, [way[0], model, '-o', made, ...way.slice(1)], quiet);
  const session = await ort.InferenceSession.create(made, { intraOpNumThreads: 1, logSeverityLevel: 4 });
  const want = await session.run(feeds);
  await session.release();
  execFileSync(onx, ['run', made, ...args, '-o', out, '--npy'], quiet);
  const far = session.outputNames.map((n, i) => apart(want[n], read(path.join(out, `output_${i}.npy`))));
  const since = session.outputNames.map(n => apart(before[n], want[n]));
  return `departs by ${Math.max(...far).toExponential(2)} from onx, by ${Math.max(...since).toExponential(2)} from the model`;
}

async function main() {
  for (const model of models) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onx-')), feeds = {}, args = [];
    const plain = await ort.InferenceSession.create(model, { intraOpNumThreads: 1, logSeverityLevel: 4 });
    plain.inputMetadata.forEach((m, i) => {
      feeds[m.name] = random(m);
      write(path.join(folder, `in${i}.npy`), feeds[m.name]);
      args.push('-i', `${m.name}=${path.join(folder, `in${i}.npy`)}`);
    });
    const before = await plain.run(feeds);
    await plain.release();
    for (const way of ways) {
      let said;
      try {
        said = await compare(model, way, feeds, args, folder, before);
      } catch (error) {
        said = `refused: ${String(error.stderr || error.message).trim().split('\n')[0].slice(0, 240)}`;
      }
      console.log(`${path.basename(model)} ${way.join(' ')}: ${said}`);
    }
    fs.rmSync(folder, { recursive: true });
  }
}
main();

// optimized.js - checks and runs with onx the models that onnxruntime's optimizer writes:
//   NODE_PATH=.../node_modules node optimized.js ONX MODEL...
// For each optimization level the model that onnxruntime-node writes (optimizedModelFilePath) goes through `onx check` and `onx run`,
// on the inputs on which onnxruntime runs the original model. Prints the difference of the outputs (the root of the ratio of
// the sums of squares; for integers the fraction that differs), and exits with 1 if a model fails or differs by more than 1e-3.
'use strict';
const ort = require('onnxruntime-node'), fs = require('fs'), os = require('os'), path = require('path'), { spawnSync } = require('child_process');
const { write, read, random, apart } = require('./values.js');
const [onx, ...models] = process.argv.slice(2);
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

// microsoft_agree.js - runs each model of a folder with onnxruntime-node, on inputs made from a fixed seed:
//   NODE_PATH=.../node_modules node microsoft_agree.js DIR   writes DIR/NAME.json with inputs and outputs, or with the error.
//   A model that already has a result is skipped: if onnxruntime aborts the process, run the same command again to continue.
'use strict';
const ort = require('onnxruntime-node'), fs = require('fs'), path = require('path');
const arrays = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int32: Int32Array, int8: Int8Array, uint8: Uint8Array,
  int16: Int16Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array, bool: Uint8Array };
const plain = t => t.type === 'string' ? Array.from(t.data) : Array.from(t.data, v => typeof v === 'bigint' ? v.toString() : Number.isFinite(v) ? v : String(v));

async function answer(file) {
  const s = await ort.InferenceSession.create(file, { intraOpNumThreads: 1, graphOptimizationLevel: 'all', logSeverityLevel: 4 });
  const feeds = {}, out = { inputs: {}, outputs: [] };
  let seed = 12345;
  const next = () => { seed = (Math.imul(seed, 1103515245) + 12345) >>> 0; return (seed >>> 8) / 16777216; };
  for (const m of s.inputMetadata) {
    const shape = m.shape.map(d => typeof d === 'number' && d >= 0 ? d : 1), n = shape.reduce((a, b) => a * b, 1);
    if (m.type === 'string') {
      feeds[m.name] = new ort.Tensor('string', Array.from({ length: n }, (_, i) => 'text ' + i), shape);
    } else {
      const a = new arrays[m.type](n), real = m.type.startsWith('float');
      for (let i = 0; i < n; i++) {
        const v = real ? next() : m.type === 'bool' ? (next() < .5 ? 1 : 0) : Math.floor(next() * 4);
        a[i] = /64$/.test(m.type) && !real ? BigInt(v) : v;
      }
      feeds[m.name] = new ort.Tensor(m.type, a, shape);
    }
    out.inputs[m.name] = { type: m.type, dims: shape, data: plain(feeds[m.name]) };
  }
  const r = await s.run(feeds);
  for (const m of s.outputMetadata)
    if (r[m.name]) out.outputs.push({ name: m.name, type: r[m.name].type, dims: r[m.name].dims, data: plain(r[m.name]) });
  return out;
}

(async () => {
  const dir = process.argv[2];
  for (const f of fs.readdirSync(dir).filter(f => f.endsWith('.onnx')).sort()) {
    const to = path.join(dir, f.replace(/onnx$/, 'json'));
    if (fs.existsSync(to)) continue;
    fs.writeFileSync(to, JSON.stringify({ refused: 'it ended the process' })); // which is true when it does
    let out;
    try { out = await answer(path.join(dir, f)); } catch (e) { out = { refused: String(e) }; }
    fs.writeFileSync(to, JSON.stringify(out));
  }
})();

// generate_agree.js - compares a greedy loop over onnxruntime-node with `onx generate`, for each decoder of a folder (generate.py):
//   NODE_PATH=.../node_modules node generate_agree.js ONX DIR [TOKENS [PROMPT [THREADS]]]
// Prints whether the tokens are the same, and the tokens per second of both.
'use strict';
const ort = require('onnxruntime-node'), fs = require('fs'), path = require('path'), { execFileSync } = require('child_process');
const [onx, dir, tokens = '24', length = '7', threads = '1'] = process.argv.slice(2);
const zeros = { float32: n => new Float32Array(n), float16: n => new Uint16Array(n) };
const ints = (list, dims) => new ort.Tensor('int64', BigInt64Array.from(list, BigInt), dims);
const half = h => { const s = h >> 15 ? -1 : 1, e = h >> 10 & 31, f = h & 1023; return e === 31 ? (f ? NaN : s * Infinity) : s * (e ? (1 + f / 1024) * 2 ** (e - 15) : f * 2 ** -24); };

async function loop(file, prompt, count) {
  const s = await ort.InferenceSession.create(file, { intraOpNumThreads: +threads, logSeverityLevel: 4,
    extra: { session: { qdq_matmulnbits_accuracy_level: '1' } } }); // else products with 4-bit weights go by way of 8 bits
  const meta = Object.fromEntries(s.inputMetadata.map(m => [m.name, m])), caches = s.inputNames.filter(n => n.startsWith('past'));
  const fixed = caches.length && typeof meta[caches[0]].shape[2] === 'number' ? meta[caches[0]].shape[2] : 0;
  const feeds = {};
  for (const n of caches) {
    const dims = meta[n].shape.map((d, i) => i === 0 ? 1 : typeof d === 'number' && d >= 0 ? d : 0);
    feeds[n] = new ort.Tensor(meta[n].type, zeros[meta[n].type](dims.reduce((a, b) => a * b)), dims);
  }
  const out = [], all = prompt.slice();
  let fresh = prompt, past = 0, read = 0, start = performance.now();
  while (out.length < count) {
    if (!caches.length) { fresh = all; past = 0; }
    const total = past + fresh.length, keys = fixed || total;
    feeds.input_ids = ints(fresh, [1, fresh.length]);
    if (meta.attention_mask) feeds.attention_mask = ints(Array.from({ length: keys }, (_, i) => i < total ? 1 : 0), [1, keys]);
    if (meta.position_ids) feeds.position_ids = ints(fresh.map((_, i) => past + i), [1, fresh.length]);
    if (meta.write_indices) feeds.write_indices = ints([past], [1]);
    const r = await s.run(feeds), l = r.logits, v = l.dims[2], at = l.data.length - v;
    let best = 0;
    const score = i => l.type === 'float16' && l.data instanceof Uint16Array ? half(l.data[at + i]) : l.data[at + i];
    for (let i = 1; i < v; i++) if (score(i) > score(best)) best = i;
    for (const n of caches) feeds[n] = r[n.replace('past_key_values', 'present')];
    past = total;
    fresh = [best];
    out.push(best);
    all.push(best);
    if (!read) { read = performance.now() - start; start = performance.now(); }
  }
  return { ids: out, prompt: read, rate: (count - 1) / (performance.now() - start) * 1000 };
}

(async () => {
  let wrong = 0;
  for (const f of fs.readdirSync(dir).filter(f => f.endsWith('.onnx')).sort()) {
    const file = path.join(dir, f), prompt = Array.from({ length: +length }, (_, i) => 1 + i * 7 % 90);
    let theirs;
    try { theirs = await loop(file, prompt, +tokens); } catch (e) { console.log(`${f}: onnxruntime: ${String(e).slice(0, 160)}`); continue; }
    const ours = JSON.parse(execFileSync(onx, ['generate', file, '--ids', prompt.join(','), '-n', tokens, '--threads', threads, '--json'], { stdio: ['ignore', 'pipe', 'inherit'] }));
    const same = String(ours.ids) === String(theirs.ids);
    wrong += !same;
    console.log(`${f}: ${same ? 'same' : `OTHER\n  ${theirs.ids}\n  ${ours.ids}`}  prompt ${(ours.prompt_seconds * 1e3).toFixed(1)} ms (${theirs.prompt.toFixed(1)})  ${ours.tokens_per_second.toFixed(1)} tokens/s (${theirs.rate.toFixed(1)})`);
  }
  process.exit(wrong ? 1 : 0);
})();

// Compares matrix products by constant weights with sums computed in JavaScript: tiles of all heights, incomplete columns,
// recurrent layers.
import assert from "node:assert/strict";
import test from "node:test";
import onx from "./lib.mjs";

const { InferenceSession, Tensor, env, parse } = onx;
env.simd = process.env.ONX_SIMD !== "0";

let seed = 11;
const random = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
const floats = (n) => Float32Array.from({ length: n }, () => random() * 2 - 1);
const list = (data) => `{${[...data].join(", ")}}`;

function near(got, want, what) {
  want.forEach((v, i) => assert.ok(Math.abs(got[i] - v) < 1e-4, `${what}: element ${i} is ${got[i]}, not ${v}`));
}

test("MatMul, rows from 1 to 13", async () => {
  for (const [k, n] of [[5, 8], [17, 21], [400, 3]]) {
    const w = floats(k * n);
    const session = await InferenceSession.create(await parse(`<ir_version: 8, opset_import: ["" : 17]>
      g (float[M, ${k}] x) => (float[M, ${n}] y) <float[${k}, ${n}] w = ${list(w)}> { y = MatMul (x, w) }`));
    for (let m = 1; m <= 13; m++) {
      const x = floats(m * k), want = [];
      for (let i = 0; i < m; i++) for (let j = 0; j < n; j++) want.push(x.subarray(i * k, (i + 1) * k).reduce((sum, v, at) => sum + v * w[at * n + j], 0));
      near((await session.run({ x: new Tensor(x, [m, k]) })).y.data, want, `${m} x ${k} x ${n}`);
    }
  }
});

test("RNN, batches from 1 to 7", async () => {
  for (const [inputs, hidden] of [[3, 5], [9, 16], [7, 37]]) {
    const w = floats(hidden * inputs), r = floats(hidden * hidden).map((v) => v / hidden), steps = 3;
    const session = await InferenceSession.create(await parse(`<ir_version: 8, opset_import: ["" : 17]>
      g (float[${steps}, B, ${inputs}] x) => (float[${steps}, 1, B, ${hidden}] y)
      <float[1, ${hidden}, ${inputs}] w = ${list(w)}, float[1, ${hidden}, ${hidden}] r = ${list(r)}> { y = RNN <hidden_size = ${hidden}> (x, w, r) }`));
    for (let batch = 1; batch <= 7; batch++) {
      const x = floats(steps * batch * inputs), want = [];
      let state = new Float32Array(batch * hidden);
      for (let s = 0; s < steps; s++) {
        const next = new Float32Array(batch * hidden);
        for (let b = 0; b < batch; b++)
          for (let h = 0; h < hidden; h++) {
            let sum = 0;
            for (let i = 0; i < inputs; i++) sum += x[(s * batch + b) * inputs + i] * w[h * inputs + i];
            for (let i = 0; i < hidden; i++) sum += state[b * hidden + i] * r[h * hidden + i];
            next[b * hidden + h] = Math.tanh(sum);
          }
        want.push(...(state = next));
      }
      near((await session.run({ x: new Tensor(x, [steps, batch, inputs]) })).y.data, want, `batch of ${batch}, ${inputs} to ${hidden}`);
    }
  }
});

// Tiles are processed in pairs, and an odd one alone, depending on how threads share them.
test("a layer of one sequence gives the same bits on threads", { skip: env.simd ? false : "vectors only" }, async () => {
  const [steps, inputs, hidden] = [9, 3, 210];
  const model = await parse(`<ir_version: 8, opset_import: ["" : 17]>
    g (float[${steps}, 1, ${inputs}] x) => (float[${steps}, 1, 1, ${hidden}] y)
    <float[1, ${3 * hidden}, ${inputs}] w = ${list(floats(3 * hidden * inputs))},
     float[1, ${3 * hidden}, ${hidden}] r = ${list(floats(3 * hidden * hidden).map((v) => v / 20))}>
    { y = GRU <hidden_size = ${hidden}, linear_before_reset = 1> (x, w, r) }`);
  const feeds = { x: new Tensor(floats(steps * inputs), [steps, 1, inputs]) };
  const results = [];
  for (const threads of [1, 2, 3]) {
    const session = await InferenceSession.create(model, { intraOpNumThreads: threads });
    results.push((await session.run(feeds)).y.data);
    await session.release();
  }
  assert.deepEqual(results[1], results[0]);
  assert.deepEqual(results[2], results[0]);
});

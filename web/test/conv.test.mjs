// Compares convolutions of images with sums computed in JavaScript: all windows, strides, dilations and pads, with and without
// groups, and with post-operations.
import assert from "node:assert/strict";
import test from "node:test";
import onx from "./lib.mjs";

const { InferenceSession, Tensor, env, parse } = onx;
env.simd = process.env.ONX_SIMD !== "0";

let seed = 7;
const random = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
const below = (n) => Math.floor(random() * n);
const floats = (n) => Float32Array.from({ length: n }, () => random() * 2 - 1);

function convolve(q, x, w, b) {
  const y = new Float32Array(q.m * q.oh * q.ow);
  const each = q.c / q.group, made = q.m / q.group;
  for (let m = 0; m < q.m; m++)
    for (let oy = 0; oy < q.oh; oy++)
      for (let ox = 0; ox < q.ow; ox++) {
        let sum = b[m];
        for (let c = 0; c < each; c++)
          for (let ky = 0; ky < q.kh; ky++)
            for (let kx = 0; kx < q.kw; kx++) {
              const iy = oy * q.stride[0] + ky * q.dilation[0] - q.pad[0], ix = ox * q.stride[1] + kx * q.dilation[1] - q.pad[1];
              if (iy < 0 || iy >= q.h || ix < 0 || ix >= q.w) continue;
              sum += x[((Math.floor(m / made) * each + c) * q.h + iy) * q.w + ix] * w[((m * each + c) * q.kh + ky) * q.kw + kx];
            }
        y[(m * q.oh + oy) * q.ow + ox] = sum;
      }
  return y;
}

function choose(turn) {
  const q = { kh: 1 + below(4), kw: 1 + below(4), stride: [1 + below(3), 1 + below(3)], dilation: [1 + below(2), 1 + below(2)] };
  const depthwise = turn % 3 === 0;
  q.c = depthwise ? 4 * (1 + below(5)) : [3, 8, 12, 16][below(4)];
  q.m = depthwise ? q.c : [4, 8, 12, 20, 5][below(5)];
  q.group = depthwise ? q.c : 1;
  const reach = [(q.kh - 1) * q.dilation[0] + 1, (q.kw - 1) * q.dilation[1] + 1];
  q.pad = reach.concat(reach).map((r) => below(r + (turn % 7 === 0 ? 2 : 0)));
  q.h = reach[0] + below(9);
  q.w = reach[1] + below(20);
  q.oh = Math.floor((q.h + q.pad[0] + q.pad[2] - reach[0]) / q.stride[0]) + 1;
  q.ow = Math.floor((q.w + q.pad[1] + q.pad[3] - reach[1]) / q.stride[1]) + 1;
  return q;
}

test("convolutions are sums of products", async () => {
  for (let turn = 0; turn < 30; turn++) {
    const q = choose(turn), each = q.c / q.group;
    const w = floats(q.m * each * q.kh * q.kw), b = floats(q.m), x = floats(q.c * q.h * q.w), r = floats(q.m * q.oh * q.ow);
    const model = await parse(`<ir_version: 8, opset_import: ["" : 17]>
      g (float[1, C, H, W] x, float[1, M, P, Q] r) => (float[1, M, P, Q] y)
      <float[${q.m}, ${each}, ${q.kh}, ${q.kw}] w = {${[...w].join(", ")}}, float[${q.m}] b = {${[...b].join(", ")}}> {
        s = Conv <group = ${q.group}, strides = [${q.stride}], dilations = [${q.dilation}], pads = [${q.pad}]> (x, w, b)
        t = Add (s, r)
        y = Relu (t)
      }`);
    const session = await InferenceSession.create(model);
    const { y } = await session.run({ x: new Tensor(x, [1, q.c, q.h, q.w]), r: new Tensor(r, [1, q.m, q.oh, q.ow]) });
    const want = convolve(q, x, w, b);
    assert.deepEqual(y.dims, [1, q.m, q.oh, q.ow]);
    for (let i = 0; i < want.length; i++) {
      const should = Math.max(0, want[i] + r[i]);
      assert.ok(Math.abs(y.data[i] - should) < 1e-4, `${JSON.stringify(q)}: element ${i} is ${y.data[i]}, not ${should}`);
    }
    await session.release();
  }
});

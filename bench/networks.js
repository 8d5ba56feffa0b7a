// networks.js MODEL THREADS SECONDS: runs a model in onnxruntime-node on random inputs and prints the minimum time of a
// run in ms. Symbolic dimensions are 1. NODE_PATH is the folder with onnxruntime-node.
const ort = require('onnxruntime-node');
const [, , model, threads, seconds] = process.argv;
const arrays = {
  float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int32: Int32Array, int8: Int8Array,
  uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, bool: Uint8Array, float16: Uint16Array,
};
const HALVES = [0x3000, 0x3c00]; // the bits of 0.125 and of 1

function random(input) {
  const shape = input.shape.map((d) => (typeof d === 'number' && d >= 0 ? d : 1));
  const data = new arrays[input.type](shape.reduce((a, b) => a * b, 1));
  for (let i = 0; i < data.length; i++) {
    let x = input.type.startsWith('float') ? Math.random() : Math.floor(Math.random() * 2);
    if (input.type === 'float16') x = HALVES[0] + Math.floor(x * (HALVES[1] - HALVES[0]));
    data[i] = input.type === 'int64' ? BigInt(x) : x;
  }
  return new ort.Tensor(input.type, data, shape);
}

(async () => {
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: +threads, interOpNumThreads: 1, graphOptimizationLevel: 'all', logSeverityLevel: 3,
  });
  const feeds = {};
  for (const input of session.inputMetadata) feeds[input.name] = random(input);
  let best = Infinity;
  const end = Date.now() + 1000 * seconds;
  for (let runs = 0; runs < 5 || Date.now() < end; runs++) {
    const start = process.hrtime.bigint();
    await session.run(feeds);
    best = Math.min(best, Number(process.hrtime.bigint() - start) / 1e6);
  }
  console.log(best.toFixed(3));
})().catch(() => console.log('fail'));

// simplify_peer.js MODEL OUT: writes the model after onnxruntime's optimizations of level basic.
const ort = require('onnxruntime-node');
const [, , model, out] = process.argv;
ort.InferenceSession.create(model, {
  graphOptimizationLevel: 'basic', optimizedModelFilePath: out, intraOpNumThreads: 1, logSeverityLevel: 3,
}).catch(() => process.exit(1));

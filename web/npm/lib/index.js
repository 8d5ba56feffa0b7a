// All of ONNX as WebAssembly; described in README.md.
export { OnxError } from "./errors.js";
export { env, hasSimd, init } from "./module.js";
export { run as program } from "./program.js";
export { Tensor } from "./tensor.js";
export { Model, load, parse } from "./model.js";
export { InferenceSession } from "./session.js";
export { hasThreads } from "./threads.js";

// A script written for the types of onnxruntime-web with only its import changed; types.test.mjs compiles it.
import * as ort from "onx";
import { InferenceSession, Tensor, type OnnxValue, type TypedTensor } from "onx";

ort.env.wasm.numThreads = 1;
ort.env.wasm.simd = true;
ort.env.wasm.wasmPaths = { wasm: "/x.wasm" };
ort.env.wasm.wasmPaths = "/x/";
ort.env.wasm.initTimeout = 3;
ort.env.wasm.proxy = false;
ort.env.logLevel = "error";
ort.env.webgl.contextId = "webgl2";
console.log(ort.env.versions.common, ort.env.versions.web?.length);

const options: InferenceSession.SessionOptions = { executionProviders: ["wasm"], graphOptimizationLevel: "all", enableCpuMemArena: true };

export async function main(canvas: HTMLCanvasElement, element: HTMLImageElement, pixels: ImageData): Promise<string> {
  const session: InferenceSession = await InferenceSession.create("m.onnx", options);
  const picture: Tensor = await Tensor.fromImage(pixels, { tensorFormat: "RGB", norm: { mean: [1, 2, 3], bias: 0 } });
  const other = await ort.Tensor.fromImage(element);
  const feeds: Record<string, ort.Tensor> = { [session.inputNames[0]]: picture, other };
  const sameFeeds: InferenceSession.FeedsType = feeds;
  const results: InferenceSession.OnnxValueMapType = await session.run(sameFeeds);
  const out: Tensor = results[session.outputNames[0]];
  const data = out.data as Float32Array;
  const floats = new Tensor("float32", new Float32Array(4), [2, 2]);
  const longs: TypedTensor<"int64"> = new Tensor("int64", [1n, 2n]);
  const texts = new Tensor("string", ["a"]);
  const flags = new Tensor("bool", [true, false]);
  const type: Tensor.Type = "float32";
  const any = new Tensor(type, [1, 2, 3], [3]);
  const same: Float32Array = floats.data;
  const first: number = data[0] + (await floats.getData())[0];
  const image: ImageData = floats.toImageData({ format: "RGB" });
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  const value: OnnxValue = out;
  await session.release();
  return floats.toDataURL({ tensorLayout: "NHWC" }) + same.length + first + longs.size + texts.data[0] + flags.size + any.size + String(value);
}

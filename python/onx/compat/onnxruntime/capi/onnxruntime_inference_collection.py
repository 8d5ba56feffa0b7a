"""Where onnxruntime has the classes of sessions and values."""
from onx.compat.onnxruntime import IOBinding, InferenceSession, ModelMetadata, NodeArg, OrtDevice, OrtValue, RunOptions, SessionOptions

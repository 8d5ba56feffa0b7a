"""The module in which onnxruntime defines the classes of sessions and values."""
from onx.compat.onnxruntime import IOBinding, InferenceSession, ModelMetadata, NodeArg, OrtDevice, OrtValue, RunOptions, SessionOptions

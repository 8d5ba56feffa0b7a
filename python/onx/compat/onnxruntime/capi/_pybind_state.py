"""The names of the package, in place of the extension module of onnxruntime."""
from onx.compat.onnxruntime import *
from onx.compat.onnxruntime.capi.onnxruntime_pybind11_state import *

"""The names of the package, as the module in C that onnxruntime has."""
from onx.compat.onnxruntime import *
from onx.compat.onnxruntime.capi.onnxruntime_pybind11_state import *

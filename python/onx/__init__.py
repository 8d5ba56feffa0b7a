"""All of ONNX: models are loaded, looked at and run.

>>> import numpy as np, onx
>>> session = onx.Session("examples/stripes.onnxtxt")
>>> session.inputs
[Port(name='image', type='tensor(float)', shape=['N', 1, 'H', 'W'], dtype='float', required=True)]
>>> image = np.zeros((1, 1, 8, 8), np.float32)
>>> image[..., 1::3] = 1
>>> session(image=image).round(3)
array([[0.022, 0.934, 0.022, 0.022]], dtype=float32)
"""
from onx import _support
from onx._errors import (CancelledError, Diagnostic, Error, FileError, InvalidError, LimitError, MalformedError, MemoryLimitError,
                         MisuseError, NotFoundError, UnsupportedError, Warning)
from onx._onx import Session, Value, build_info, version
from onx._support import Port

__version__ = version()
__all__ = ["CancelledError", "Diagnostic", "Error", "FileError", "InvalidError", "LimitError", "MalformedError", "MemoryLimitError",
           "MisuseError", "NotFoundError", "Port", "Session", "UnsupportedError", "Value", "Warning", "build_info", "version"]

"""All of ONNX: load, inspect, check, transform and run models.

>>> import numpy as np, onx
>>> session = onx.Session("examples/stripes.onnxtxt")
>>> session.inputs
[Port(name='image', type='tensor(float)', shape=['N', 1, 'H', 'W'], dtype='float', required=True)]
>>> image = np.zeros((1, 1, 8, 8), np.float32)
>>> image[..., 1::3] = 1
>>> session(image=image).round(3)
array([[0.022, 0.934, 0.022, 0.022]], dtype=float32)
"""
from onx import _messages, _onx, _support
from onx._errors import (CancelledError, Diagnostic, Error, FileError, InvalidError, LimitError, MalformedError, MemoryLimitError,
                         MisuseError, NotFoundError, UnsupportedError, Warning)
from onx._models import (Change, attribute, check, check_update, compress, convert, diff, edit, extract, from_bytes, grad, graph,
                         infer, inline, load, merge, model, node, outline, parse, quantize, retarget, save, simplify, sort, split,
                         tensor, to_bytes, to_text, type_of, value_info)
from onx._onx import Message, Operators, Session, Value, build_info, version
from onx._proto import from_proto, to_proto
from onx._support import Port

__version__ = version()
for _name in dir(_onx):
    if _name.endswith("Proto") or _name == "TensorAnnotation":
        globals()[_name] = getattr(_onx, _name)
__all__ = [_name for _name in dir() if not _name.startswith("_")]

"""Called by the extension module: conversion to arrays and strings, and descriptions of inputs and outputs."""
import difflib
import os
import threading
from typing import NamedTuple, Optional

import numpy as np

from onx import _errors, _onx

_ROWS = _onx._dtype_rows()
DTYPES = {name: row[0] for name, row in _ROWS.items()}  # element types: their names in ONNX text, and their numbers


class Port(NamedTuple):
    """An input or output of a session. `shape` has numbers, names of dimensions, and None for unknown dimensions; it is
    None if the rank is unknown. `required` inputs have no initializer of their name."""

    name: str
    type: str
    shape: Optional[list]
    dtype: Optional[str]
    required: bool

    @property
    def numpy_dtype(self):
        """The NumPy type of its arrays; None if there is none."""
        return numpy_dtype(self.dtype)


class Step(NamedTuple):
    """A step of a run: a node, or several fused nodes, with the name of the last. `start` counts from the beginning of the run; both times
    are in seconds."""

    name: str
    op_type: str
    kernel: str
    start: float
    seconds: float


def numpy_dtype(name):
    """The NumPy type of an element type by its name in ONNX; None if NumPy lacks it.

    >>> numpy_dtype("float"), numpy_dtype("bfloat16")
    (dtype('float32'), None)
    """
    try:
        return np.dtype(_ROWS[name][1] if name in _ROWS else name) if name and name not in _STANDS_FOR else None
    except TypeError:
        return None


# For types that NumPy lacks: the NumPy types that replace them.
_STANDS_FOR = {name: _ROWS[row[2]][1] for name, row in _ROWS.items() if row[2] != name}
# Names that the package ml_dtypes gives to types of ONNX.
_OTHER_NAMES = {_ROWS[name][1]: name for name in _STANDS_FOR}


def exact_array(data, name, shape):
    """An array of a type of the package ml_dtypes; `data` has one element per byte or more."""
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError("NumPy has no type for %s: install the package ml_dtypes, or ask for wider types (ml_dtypes=False)" % name) from None
    return np.frombuffer(data, getattr(ml_dtypes, _ROWS[name][1])).reshape(shape)


def _texts(array):
    items = array.ravel().tolist()
    if not all(isinstance(item, (str, bytes)) for item in items):
        raise TypeError("an array of objects must contain only strings")
    return DTYPES["string"], items, array.shape


def prepare(x, wanted):
    """A row-major array made from any array-like object, or (type, elements, shape) for strings and types that NumPy lacks."""
    array = x if isinstance(x, np.ndarray) else None
    if array is None:
        if isinstance(x, (str, bytes)):
            return DTYPES["string"], [x], ()
        is_array = hasattr(x, "__array__") or hasattr(x, "__array_interface__")
        if wanted == "string" and not is_array:
            array = np.array(x, dtype=object)
        elif wanted and not is_array and not isinstance(x, (memoryview, bytearray)):
            array = np.array(x, dtype=_STANDS_FOR.get(wanted) or numpy_dtype(wanted))
        else:
            array = np.asarray(x)
    if array.dtype.kind in "OSU":
        return _texts(array)
    if array.dtype.name in _OTHER_NAMES:
        bits = np.ascontiguousarray(array).reshape(array.shape).view("u%d" % array.dtype.itemsize)
        return DTYPES[_OTHER_NAMES[array.dtype.name]], bits, array.shape
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.require(array, requirements=["C", "A"])


def strings(items, shape):
    """An array of strings."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def session_model(model):
    """The bytes of the model for a session."""
    if isinstance(model, bytes):
        return model
    if isinstance(model, (bytearray, memoryview)):
        return bytes(model)
    raise TypeError("a session needs a path, a ModelProto or the bytes of a model, not %s" % type(model).__name__)


def no_such(what, name, names):
    message = "the model has no %s '%s'" % (what, name)
    close = difflib.get_close_matches(str(name), names, 1)
    if close:
        message += "; did you mean '%s'?" % close[0]
    elif names:
        message += "; it has " + ", ".join("'%s'" % n for n in names[:10]) + (", ..." if len(names) > 10 else "")
    return _errors.NotFoundError(message)


def port(name, type_text, shape, dtype, required):
    return Port(name, type_text, shape, dtype, bool(required))


_core = np._core if hasattr(np, "_core") else np.core
HELPERS = {"asarray": np.asarray, "array_api": _core.multiarray._ARRAY_API, "diagnostic": _errors.Diagnostic, "failure": _errors.failure, "warn": _errors.warn,
           "prepare": prepare, "strings": strings, "session_model": session_model, "exact_array": exact_array, "no_such": no_such, "port": port, "step": Step}
_onx._set_helpers(HELPERS)
_onx._set_main_thread(threading.main_thread().ident)
os.register_at_fork(after_in_child=_onx._after_fork)

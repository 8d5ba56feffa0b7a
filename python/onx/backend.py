"""The interface of ONNX backends, for the test runner of the ONNX project and other code that works with any backend.

>>> import numpy as np, onx, onx.backend
>>> onx.backend.run_node(onx.node("Add", ["x", "y"], "z"), [np.ones(2, "f"), np.ones(2, "f")])
Outputs(z=array([2., 2.], dtype=float32))
>>> onx.backend.supports_device("CPU"), onx.backend.supports_device("CUDA")
(True, False)
"""
import collections
import importlib.util

import numpy as np

from onx import _models, _proto
from onx._errors import UnsupportedError
from onx._onx import Session, Value


_HAS_ML_DTYPES = importlib.util.find_spec("ml_dtypes") is not None


class BackendRep:
    """A model that is ready to run."""

    def __init__(self, session):
        self.session = session
        self._outputs = collections.namedtuple("Outputs", [o.name for o in session.outputs], rename=True)

    def run(self, inputs, **kwargs):
        """Returns the outputs, also accessible by name. Inputs are a list in order, a dict by name, or a single input.

        A list of as many items as there are inputs without an initializer belongs to those, wherever they are."""
        ports = self.session.inputs
        if not isinstance(inputs, dict):
            items = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(items) > len(ports):
                raise ValueError("the model has %d inputs, and %d were given" % (len(ports), len(items)))
            required = [p for p in ports if p.required]
            if len(items) == len(required):
                ports = required
            inputs = dict(zip((p.name for p in ports), items))
        return self._outputs(*self.session.run(None, inputs))


def supports_device(device):
    """Only the CPU is supported."""
    return device.split(":")[0] == "CPU"


def is_compatible(model, device="CPU", **kwargs):
    """Whether onx can run the model."""
    try:
        prepare(model, device, **kwargs)
    except Exception:
        return False
    return True


def prepare(model, device="CPU", **kwargs):
    """A BackendRep for a model: one of onx, one of the package onnx, a path, or bytes. Other arguments are passed to Session.

    Types that NumPy lacks come as those of the package ml_dtypes if it is installed."""
    if not supports_device(device):
        raise UnsupportedError("there is no device %s here" % device)
    kwargs.setdefault("ml_dtypes", _HAS_ML_DTYPES)
    return BackendRep(Session(_proto.from_proto(model) if _proto.is_proto(model) else model, **kwargs))


def run_model(model, inputs, device="CPU", **kwargs):
    """Runs a model and returns its outputs."""
    return prepare(model, device, **kwargs).run(inputs)


def run_node(node, inputs, device="CPU", outputs_info=None, *, opset_version=None, **kwargs):
    """Runs a single node and returns its outputs. Inputs are a list in the order of the node's inputs, or a dict by name."""
    node = _proto.from_proto(node) if _proto.is_proto(node) else node
    names = list(dict.fromkeys(n for n in node.input if n))
    if not isinstance(inputs, dict):
        items = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        inputs = {n: x for n, x in zip(node.input, items) if n}
    values = {n: Value(x) for n, x in inputs.items() if x is not None}
    graph = _models.graph([node], "node", [_models.value_info(n, v.dtype, v.shape) for n, v in values.items() if n in names],
                          [_models.ValueInfoProto(name=n) for n in node.output if n])
    opset = {node.domain: opset_version or 21}
    opset.setdefault("", 21)
    made = _models.infer(_models.model(graph, opset))
    return prepare(made, device, **kwargs).run(values)


class Backend:
    """The same functions as a class, as the test runner of the ONNX project expects."""

    is_compatible = staticmethod(is_compatible)
    prepare = staticmethod(prepare)
    run_model = staticmethod(run_model)
    run_node = staticmethod(run_node)
    supports_device = staticmethod(supports_device)

"""Methods of messages."""
import collections.abc

from onx import _drawing, _models, _onx
from onx._onx import FunctionProto, GraphProto, Message, ModelProto, TensorProto


def _repr(self):
    """ONNX text, with long lists abbreviated."""
    return _models.to_text(self, elide=8).rstrip("\n")


def _reduce(self):
    return _restored, (_models.to_bytes(self), type(self), _onx._base_dir(self))


def _restored(data, type, base_dir):
    return _models.from_bytes(data, type, base_dir=base_dir)


def _serialize(self):
    """The message as the bytes of a binary file. Protobuf messages have a method with the same name."""
    return _models.to_bytes(self)


def _numpy(self):
    """The elements as a read-only array over the memory of the file; it keeps the model alive. Types that NumPy lacks are widened."""
    return self._numpy()


def _array(self, dtype=None, copy=None):
    array = self._numpy()
    return array if dtype is None else array.astype(dtype)


def _find(self, name):
    """Finds a node, initializer or input by name, else the node that makes the value of that name, else a typed value, output or function.

    >>> import onx
    >>> print(onx.load("examples/stripes.onnxtxt")["probability"])
    probability = Softmax<axis = 1>(score)
    """
    graph = self.graph if isinstance(self, ModelProto) else self
    if graph is not None:
        for field in ("node", "initializer", "input"):
            for message in getattr(graph, field):
                if message.name == name:
                    return message
        for node in graph.node:
            if name and name in node.output:
                return node
        for field in ("value_info", "output"):
            for message in getattr(graph, field):
                if message.name == name:
                    return message
    if isinstance(self, ModelProto):
        for function in self.functions:
            if function.name == name:
                return function
    raise KeyError(name)


Message.__repr__ = _repr
Message.__str__ = _repr
Message.__reduce__ = _reduce
Message.SerializeToString = _serialize
Message.to_bytes = _models.to_bytes
Message.to_text = _models.to_text
TensorProto.numpy = _numpy
TensorProto.__array__ = _array
ModelProto.__getitem__ = _find
GraphProto.__getitem__ = _find
for _type in (ModelProto, GraphProto, FunctionProto):
    _type._repr_html_ = _drawing.repr_html
for _name in ("check", "infer", "simplify", "retarget", "inline", "extract", "split", "edit", "save"):
    setattr(ModelProto, _name, getattr(_models, _name))

_List = _onx.List
for _name in ("clear", "reverse", "pop", "remove", "__iadd__"):
    setattr(_List, _name, getattr(collections.abc.MutableSequence, _name))
for _name in ("index", "count", "__contains__", "__reversed__"):
    setattr(_List, _name, getattr(collections.abc.Sequence, _name))


def _sort(self, *, key=None, reverse=False):
    """Sorts the list in place."""
    self[:] = sorted(self, key=key, reverse=reverse)


_List.sort = _sort
_List.copy = list
collections.abc.MutableSequence.register(_List)

for _name in dir(_onx):  # TypeProto.Tensor is TypeProto_Tensor
    _outer, _, _inner = _name.partition("_")
    if _inner and hasattr(_onx, _outer) and isinstance(getattr(_onx, _name), type):
        setattr(getattr(_onx, _outer), _inner, getattr(_onx, _name))
for _name, (_number, *_) in _onx._dtype_rows().items():
    setattr(TensorProto, _name.upper(), _number)

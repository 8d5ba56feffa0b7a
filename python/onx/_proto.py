"""Conversion between messages of onx and of the package onnx, through their bytes."""
from onx import _models, _onx


def is_proto(message):
    """Whether the object is a protobuf message, like those of the package onnx."""
    return hasattr(message, "SerializeToString") and hasattr(message, "DESCRIPTOR")


def from_proto(message):
    """Converts a message of the package onnx to one of onx.

    >>> import onnx.helper, onx  # doctest: +SKIP
    >>> onx.from_proto(onnx.helper.make_node("Relu", ["x"], ["y"]))  # doctest: +SKIP
    y = Relu(x)
    """
    if not is_proto(message):
        raise TypeError("%s is not a protobuf message" % type(message).__name__)
    name = message.DESCRIPTOR.full_name.partition(".")[2].replace(".", "_")
    type_ = getattr(_onx, name, None)
    if type_ is None:
        raise TypeError("onx has no message %s" % message.DESCRIPTOR.full_name)
    return _models.from_bytes(message.SerializeToString(), type_)


def to_proto(message):
    """Converts a message of onx to one of the package onnx, which must be installed."""
    import onnx

    made = onnx
    for part in type(message).__name__.split("_"):
        made = getattr(made, part)
    made = made()
    made.ParseFromString(_models.to_bytes(message))
    return made

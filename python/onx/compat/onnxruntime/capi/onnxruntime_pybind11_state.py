"""Exceptions with the names that onnxruntime uses; all other names are those of the package."""


class OnnxRuntimeException(RuntimeError):
    """The base class of the exceptions."""


class Fail(OnnxRuntimeException):
    pass


class InvalidArgument(OnnxRuntimeException, ValueError):
    pass


class NoSuchFile(OnnxRuntimeException):
    pass


class NoModel(OnnxRuntimeException):
    pass


class EngineError(OnnxRuntimeException):
    pass


class RuntimeException(OnnxRuntimeException):
    pass


class InvalidProtobuf(OnnxRuntimeException):
    pass


class ModelLoaded(OnnxRuntimeException):
    pass


class NotImplemented(OnnxRuntimeException):
    pass


class InvalidGraph(OnnxRuntimeException):
    pass


class EPFail(OnnxRuntimeException):
    pass


def __getattr__(name):
    from onx.compat import onnxruntime

    try:
        return vars(onnxruntime)[name]
    except KeyError:
        raise AttributeError("the module has no attribute %s" % name) from None

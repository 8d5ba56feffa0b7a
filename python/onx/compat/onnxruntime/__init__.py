"""The API of the package onnxruntime on top of onx: a script for onnxruntime only has to change its import.

>>> import numpy as np
>>> import onx.compat.onnxruntime as ort
>>> session = ort.InferenceSession("examples/stripes.onnxtxt", providers=["CPUExecutionProvider"])
>>> session.get_inputs()[0]
NodeArg(name='image', type='tensor(float)', shape=['N', 1, 'H', 'W'])
>>> session.run(["probability"], {"image": np.zeros((1, 1, 8, 8), np.float32)})
[array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)]

Everything runs on the CPU. Options that have no meaning in onx are accepted and ignored; options whose effect a script
would miss (custom operator libraries for onnxruntime, sparse tensors) are an error.
"""
import enum
import os
import time
from typing import NamedTuple, Optional

import numpy as np

from onx import _errors, _models, _onx, _proto, _support
from onx._onx import Session, Value
from onx.compat.onnxruntime import capi
from onx.compat.onnxruntime._profile import Profile
from onx.compat.onnxruntime.capi import onnxruntime_pybind11_state
from onx.compat.onnxruntime.capi.onnxruntime_pybind11_state import (
    EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoaded, NoModel, NoSuchFile, NotImplemented,
    OnnxRuntimeException, RuntimeException)

__version__ = "1.20.0"  # the version of onnxruntime whose names are defined here


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1


class OrtAllocatorType(enum.IntEnum):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    DEFAULT = 0


class OrtMemoryInfo(NamedTuple):
    """The location of memory; onx has only one, CPU memory."""

    name: str
    allocator: OrtAllocatorType = OrtAllocatorType.ORT_ARENA_ALLOCATOR
    device_id: int = 0
    mem_type: OrtMemType = OrtMemType.DEFAULT


class OrtArenaCfg:
    """Options of onnxruntime's memory allocation; ignored."""

    def __init__(self, *numbers, **options):
        """Accepts any arguments."""


class NodeArg(NamedTuple):
    """An input or output of a model."""

    name: str
    type: str
    shape: Optional[list]


class ModelMetadata(NamedTuple):
    """The metadata of a model."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict


class RunOptions:
    """Options of one run: `terminate` ends it, also if another thread sets it during the run; the other options concern logging."""

    __slots__ = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches", "run_tag", "terminate", "training_mode",
                 "_entries")

    def __init__(self):
        self.run_tag = ""
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self.training_mode = False
        self._entries = {}

    def add_run_config_entry(self, key, value):
        self._entries[key] = value

    def get_run_config_entry(self, key):
        return self._entries[key]


class SessionOptions:
    """Options of a session. In effect are `intra_op_num_threads`, `graph_optimization_level`, free dimensions, initializers and profiling."""

    __slots__ = ("intra_op_num_threads", "inter_op_num_threads", "graph_optimization_level", "execution_mode", "execution_order",
                 "enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "enable_profiling", "use_deterministic_compute",
                 "use_per_session_threads", "log_severity_level", "log_verbosity_level", "logid", "optimized_model_filepath", "profile_file_prefix",
                 "_dims", "_denotations", "_entries", "_initializers")

    def __init__(self):
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.use_deterministic_compute = False
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.enable_profiling = False
        self.use_per_session_threads = True
        self._dims = {}
        self._denotations = {}
        self._entries = {}
        self._initializers = {}

    def add_free_dimension_override_by_name(self, name, size):
        self._dims[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation, size):
        self._denotations[denotation] = int(size)

    def add_initializer(self, name, value):
        """Replaces the value of an initializer of the model."""
        self._initializers[name] = value

    def add_external_initializers(self, names, values):
        self._initializers.update(_pairs(names, values))

    def has_providers(self):
        return False

    def add_provider(self, name, options):
        _check_providers([name])

    def add_session_config_entry(self, key, value):
        self._entries[key] = value

    def get_session_config_entry(self, key):
        return self._entries[key]

    def register_custom_ops_library(self, path):
        raise _errors.UnsupportedError("operator libraries for onnxruntime cannot be used here; see onx.Operators")


def _pairs(names, values):
    if len(names) != len(values):
        raise InvalidArgument("there are %d names and %d values" % (len(names), len(values)))
    return dict(zip(names, values))


def _number(element_type):
    """The element type given by its number, a NumPy type, or its name."""
    return _models._dtype(element_type)


class OrtValue:
    """A value: a tensor or a sequence, in CPU memory."""

    def __init__(self, value):
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(array, device_type="cpu", device_id=0):
        _cpu(device_type)
        return OrtValue(Value(array))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(array, onnx_element_type):
        return OrtValue(Value(array, _models.type_of(int(onnx_element_type), array.shape)))

    @staticmethod
    def ortvalue_from_shape_and_type(shape, element_type, device_type="cpu", device_id=0):
        _cpu(device_type)
        name = {v: k for k, v in _support.DTYPES.items()}[_number(element_type)]
        dtype = _support.numpy_dtype(name)
        if dtype is None or name == "string":
            raise InvalidArgument("a tensor of %s cannot be made without elements" % name)
        return OrtValue(Value(np.zeros(shape, dtype)))

    @staticmethod
    def ort_value_from_sparse_tensor(tensor):
        raise _errors.UnsupportedError("only tensors and sequences of tensors are supported")

    def numpy(self):
        return self._value.numpy()

    def __array__(self, dtype=None, copy=None):
        array = self._value.numpy()
        return array if dtype is None else array.astype(dtype)

    def __dlpack__(self, **kwargs):
        return self._value.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._value.__dlpack_device__()

    def shape(self):
        return list(self._value.shape)

    def data_type(self):
        kind, name = self._value.kind, self._value.dtype
        return "tensor(%s)" % name if kind == "tensor" else "seq(tensor(%s))" % (self._value[0].dtype if len(self._value) else name)

    def element_type(self):
        return _support.DTYPES[self._value.dtype]

    def device_name(self):
        return "cpu"

    def data_ptr(self):
        return self._value.address

    def tensor_size_in_bytes(self):
        return self._value.nbytes

    def has_value(self):
        return self._value.kind != "optional" or len(self._value) > 0

    def is_tensor(self):
        return self._value.kind == "tensor"

    def is_tensor_sequence(self):
        return self._value.kind == "sequence"

    def is_sparse_tensor(self):
        return False

    def update_inplace(self, array):
        here = np.asarray(self._value)
        if here.shape != array.shape or here.dtype != array.dtype:
            raise InvalidArgument("the value has type %s and shape %s, not %s and %s" % (here.dtype, here.shape, array.dtype, array.shape))
        here[...] = array

    @property
    def _ortvalue(self):
        return self

    def to_dlpack(self):
        return self._value.__dlpack__()

    @staticmethod
    def from_dlpack(data, is_bool_tensor=False):
        """Makes a value from a tensor of any library, or from its DLPack capsule. Older libraries pass booleans as bytes; `is_bool_tensor` declares them as booleans."""
        value = Value(data if hasattr(data, "__dlpack__") else np.from_dlpack(_Capsule(data)))
        return OrtValue(Value(value.numpy().view(np.bool_)) if is_bool_tensor and value.dtype == "uint8" else value)


class _Capsule:
    """A tensor that has already been handed over."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **kwargs):
        return self._capsule

    def __dlpack_device__(self):
        return (1, 0)


def copy_tensors(sources, targets, stream=None):
    """Copies tensors into others of the same types and shapes."""
    for source, target in zip(sources, targets):
        target.update_inplace(source.numpy())


def _cpu(device_type):
    if str(device_type).lower() not in ("cpu", "cpuexecutionprovider"):
        raise _errors.UnsupportedError("there is no device %s here" % device_type)


class OrtDevice:
    """The CPU."""

    def __init__(self, device_type="cpu", memory=0, device_id=0):
        _cpu("cpu" if device_type == 0 else device_type)

    @staticmethod
    def make(ort_device_name, device_id=0, *more):
        return OrtDevice(ort_device_name)

    @staticmethod
    def cpu():
        return 0

    @staticmethod
    def default_memory():
        return 0

    def device_type(self):
        return "cpu"

    def device_id(self):
        return 0


class IOBinding:
    """Inputs and outputs of a session in memory that is reused from run to run."""

    def __init__(self, session):
        self._session = session
        self._inputs = {}
        self._outputs = {}
        self._made = {}

    def bind_cpu_input(self, name, array):
        self._inputs[name] = OrtValue.ortvalue_from_numpy(array)

    def bind_ortvalue_input(self, name, value):
        self._inputs[name] = value

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        _cpu(device_type)
        self._inputs[name] = OrtValue(Value(_over(buffer_ptr, element_type, shape)))

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        _cpu(device_type)
        self._outputs[name] = None if buffer_ptr is None else _over(buffer_ptr, element_type, shape)

    def bind_ortvalue_output(self, name, value):
        self._outputs[name] = value

    def clear_binding_inputs(self):
        self._inputs.clear()

    def clear_binding_outputs(self):
        self._outputs.clear()
        self._made.clear()

    def synchronize_inputs(self):
        """Does nothing: runs are complete when they return."""

    def synchronize_outputs(self):
        """Does nothing: runs are complete when they return."""

    def get_outputs(self):
        return [self._made[name] for name in self._outputs]

    def get_outputs_as_ortvaluevector(self):
        return self.get_outputs()

    def copy_outputs_to_cpu(self):
        return [np.array(v.numpy()) if v.is_tensor() else v.numpy() for v in self.get_outputs()]

    def _run(self, run):
        out = {n: np.asarray(v._value) if isinstance(v, OrtValue) else v for n, v in self._outputs.items() if v is not None}
        free = [n for n in self._outputs if n not in out]
        made = run(free, {n: v._value for n, v in self._inputs.items()}, out=out, values=True)
        self._made = dict(zip(free, map(OrtValue, made)))
        for name in out:
            bound = self._outputs[name]
            self._made[name] = bound if isinstance(bound, OrtValue) else OrtValue(Value(bound))


class _Memory:
    """An array interface over an address whose validity the caller guarantees."""

    def __init__(self, address, dtype, shape):
        self.__array_interface__ = {"data": (address, False), "typestr": dtype.str, "shape": tuple(shape), "version": 3}


def _over(address, element_type, shape):
    name = {v: k for k, v in _support.DTYPES.items()}[_number(element_type)]
    return np.asarray(_Memory(address, _support.numpy_dtype(name), shape))


SessionIOBinding = IOBinding


def _check_providers(providers):
    for provider in providers or ():
        name = provider[0] if isinstance(provider, (tuple, list)) else provider
        if name != "CPUExecutionProvider" and name not in _ELSEWHERE:
            raise ValueError("there is no execution provider %s" % name)


def _prepared(model, options):
    """The model as changed by the options."""
    dims = dict(options._dims)
    for port in model.graph.input if options._denotations and model.graph else ():
        for dim in port.type.tensor_type.shape.dim if port.type and port.type.tensor_type and port.type.tensor_type.shape else ():
            if dim.denotation in options._denotations and dim.dim_param:
                dims[dim.dim_param] = options._denotations[dim.denotation]
    if dims:
        model = _models.infer(model, dims=dims)
    if not options._initializers and _seed is None:
        return model
    model = model.copy()
    there = {t.name: i for i, t in enumerate(model.graph.initializer)}
    for name, value in options._initializers.items():
        if name not in there:
            raise InvalidArgument("the model has no initializer '%s'" % name)
        model.graph.initializer[there[name]] = _models.tensor(value.numpy() if isinstance(value, OrtValue) else value, name)
    if _seed is not None:
        for index, node in enumerate(model.walk()):
            if node.op_type in _RANDOM and node.domain in ("", "ai.onnx") and not any(a.name == "seed" for a in node.attribute):
                node.attribute.append(_models.attribute("seed", float((_seed + index) % 2**24)))
    return model


_RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
_seed = None


def set_seed(seed):
    """Sets the seed for random nodes without a seed of their own, in sessions made from now on."""
    global _seed
    _seed = int(seed)


class InferenceSession:
    """A model that is ready to run."""

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **kwargs):
        options = sess_options or SessionOptions()
        started_ns = time.perf_counter_ns()
        _check_providers(providers)
        self._model_path = os.fspath(path_or_bytes) if isinstance(path_or_bytes, (str, os.PathLike)) else None
        try:
            if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
                model = _models.from_bytes(path_or_bytes)
            elif _proto.is_proto(path_or_bytes):
                model = _proto.from_proto(path_or_bytes)
            else:
                model = path_or_bytes if isinstance(path_or_bytes, _onx.ModelProto) else _models.load(path_or_bytes)
            model = _prepared(model, options)
            level = options.graph_optimization_level
            lean = options._entries.get("session.disable_prepacking") == "1"
            self._session = Session(model, threads=options.intra_op_num_threads, optimize=level != GraphOptimizationLevel.ORT_DISABLE_ALL,
                                    lean_memory=lean)
        except _errors.Error as e:
            raise _translated(e, path_or_bytes) from e
        self._model = model
        self._sess_options = options
        self._profile = Profile(self, options.profile_file_prefix, started_ns) if options.enable_profiling else None
        self._started_ns = started_ns
        if options.optimized_model_filepath:
            _models.save(_models.simplify(model), options.optimized_model_filepath)

    def get_inputs(self):
        return [NodeArg(p.name, p.type, p.shape or []) for p in self._session.inputs if p.required]

    def get_overridable_initializers(self):
        return [NodeArg(p.name, p.type, p.shape or []) for p in self._session.inputs if not p.required]

    def get_outputs(self):
        return [NodeArg(p.name, p.type, p.shape or []) for p in self._session.outputs]

    def get_providers(self):
        return get_available_providers()

    def get_provider_options(self):
        return {name: {} for name in get_available_providers()}

    def set_providers(self, providers=None, provider_options=None):
        """Does nothing: there is only one provider."""

    def get_session_options(self):
        return self._sess_options

    def end_profiling(self):
        """Writes the profile and returns the name of its file; empty if there is none."""
        if self._profile is None:
            return ""
        self._profile.end()
        return self._profile.path

    def get_profiling_start_time_ns(self):
        return self._started_ns

    def get_modelmeta(self):
        m = self._model
        return ModelMetadata(m.producer_name, m.graph.name, m.domain, m.doc_string, m.graph.doc_string, m.model_version,
                             {p.key: p.value for p in m.metadata_props})

    def disable_fallback(self):
        """Does nothing: there is no other provider to fall back to."""

    def enable_fallback(self):
        """Does nothing: there is no other provider to fall back to."""

    def _checked(self, feeds, run_options):
        if run_options is not None and run_options.terminate:
            raise Fail("the run was terminated before it started")
        missing = [p.name for p in self._session.inputs if p.required and p.name not in feeds]
        if missing:
            raise ValueError("Required inputs (%s) are missing from input feed (%s)." % (missing, list(feeds)))
        return feeds

    def _run(self, output_names, feeds, run_options=None, **more):
        if run_options is not None:
            more["stop"] = lambda: run_options.terminate
        profile = self._profile
        if profile is None or not profile.end.alive:
            return self._session.run(output_names, feeds, **more)
        steps, begin = [], time.perf_counter_ns()
        results = self._session.run(output_names, feeds, profile=steps, **more)
        profile.note_run(steps, begin)
        return results

    def run(self, output_names, input_feed, run_options=None):
        try:
            return self._run(output_names or None, self._checked(input_feed, run_options), run_options)
        except _errors.Error as e:
            raise _translated(e) from e

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        feeds = {name: v._value for name, v in self._checked(input_dict_ort_values, run_options).items()}
        try:
            return [OrtValue(v) for v in self._run(output_names or None, feeds, run_options, values=True)]
        except _errors.Error as e:
            raise _translated(e) from e

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None):
        """Runs the model in another thread, which then calls `callback` with the results, `user_data` and an error message."""
        import threading

        def work():
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as e:
                results, error = [], str(e)
            callback(results, user_data, error)

        threading.Thread(target=work, daemon=True).start()

    def io_binding(self):
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        self._checked(iobinding._inputs, run_options)
        try:
            iobinding._run(lambda names, feeds, **more: self._run(names, feeds, run_options, **more))
        except _errors.Error as e:
            raise _translated(e) from e


_ELSEWHERE = ("CUDAExecutionProvider", "TensorrtExecutionProvider", "OpenVINOExecutionProvider", "CoreMLExecutionProvider",
              "DmlExecutionProvider", "ROCMExecutionProvider", "MIGraphXExecutionProvider", "QNNExecutionProvider",
              "XnnpackExecutionProvider", "AzureExecutionProvider", "ACLExecutionProvider", "DnnlExecutionProvider")


def get_available_providers():
    return ["CPUExecutionProvider"]


def get_all_providers():
    return ["CPUExecutionProvider"]


def get_device():
    return "CPU"


def get_build_info():
    return ", ".join(_onx.build_info())


def set_default_logger_severity(level):
    """Ignored: warnings are controlled by Python's module warnings."""


def set_default_logger_verbosity(level):
    """Ignored: warnings are controlled by Python's module warnings."""


def get_version_string():
    return __version__


def enable_telemetry_events():
    """Ignored: nothing is ever sent."""


def disable_telemetry_events():
    """Ignored: nothing is ever sent."""


def preload_dlls(*where, **which):
    """Ignored: there are no libraries to load."""


def create_and_register_allocator(memory_info, config=None):
    """Ignored: sessions allocate memory as needed."""


def set_global_thread_pool_sizes(intra_op, inter_op):
    """Ignored: threads are set per session."""


def _translated(error, source=None):
    """The exception that onnxruntime would raise for an error when creating a session from `source`, or when running it."""
    kind = Fail
    if isinstance(error, _errors.FileError):
        kind = NoSuchFile
    elif isinstance(error, _errors.MalformedError):
        kind = InvalidProtobuf
    elif isinstance(error, _errors.UnsupportedError):
        kind = NotImplemented
    elif source is not None and isinstance(error, _errors.InvalidError):
        kind = InvalidGraph
    elif isinstance(error, (_errors.InvalidError, _errors.MisuseError, _errors.NotFoundError)):
        kind = InvalidArgument
    elif isinstance(error, (_errors.MemoryLimitError, _errors.LimitError)):
        kind = RuntimeException
    return kind("[ONNXRuntimeError] : %s" % error)

"""The functions of onnxruntime.quantization that scripts call: quantization to 8 bits, with or without calibration.

Options about the method of onnxruntime are accepted and ignored.
"""
import abc
import enum
import os

import numpy as np

from onx import _models, _onx
from onx._onx import Session


class QuantType(enum.Enum):
    QInt8 = "int8"
    QUInt8 = "uint8"
    QInt4 = "int4"
    QUInt4 = "uint4"


class QuantFormat(enum.Enum):
    QOperator = "qlinear"
    QDQ = "qdq"


class CalibrationMethod(enum.Enum):
    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class CalibrationDataReader(abc.ABC):
    """Returns the inputs of calibration runs, one dict per run, and None at the end."""

    @abc.abstractmethod
    def get_next(self):
        """The inputs of a run, or None."""

    def __iter__(self):
        return self

    def __next__(self):
        feeds = self.get_next()
        if feeds is None:
            raise StopIteration
        return feeds


def _model(source):
    return source if isinstance(source, _onx.ModelProto) else _models.load(source)


def _save(model, target, external):
    _models.save(model, target, external=os.path.basename(os.fspath(target)) + ".data" if external else None)


def _choice(model, op_types, nodes, excluded):
    """The operators, and the names of nodes, that are not quantized."""
    names = set(excluded or ()) | {node.name for node in model.graph.node if nodes and node.name not in nodes}
    others = {node.op_type for node in model.graph.node if op_types and node.op_type not in op_types}
    return {"block_op": sorted(others), "exclude": sorted(names - {""})}


def quantize_dynamic(model_input, model_output, op_types_to_quantize=None, per_channel=False, reduce_range=False,
                     weight_type=QuantType.QInt8, nodes_to_quantize=None, nodes_to_exclude=None, use_external_data_format=False,
                     extra_options=None):
    """Quantizes weights to 8 bits; the other operands are quantized in each run."""
    model = _model(model_input)
    choice = _choice(model, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude)
    _save(_models.quantize(model, "dynamic", dtype=weight_type.value, per_channel=per_channel, **choice), model_output,
          use_external_data_format)


def _ranges(model, reader):
    """The least and the greatest element of each value over all runs with the inputs of the reader."""
    names = [name for node in model.graph.node for name in node.output if name]
    there = {port.name for port in model.graph.output}
    watched = _models.edit(model, *[("add_output", name) for name in names if name not in there])
    session, ranges = Session(watched, optimize=False), {}
    for feeds in iter(reader.get_next, None):
        values = dict(zip([port.name for port in session.outputs], session.run(None, feeds)), **feeds)
        for name, value in values.items():
            array = np.asarray(value)
            if array.dtype == np.float32 and array.size:
                low, high = ranges.get(name, (np.inf, -np.inf))
                ranges[name] = (min(low, float(array.min())), max(high, float(array.max())))
    return ranges


def quantize_static(model_input, model_output, calibration_data_reader, quant_format=QuantFormat.QDQ, op_types_to_quantize=None,
                    per_channel=False, reduce_range=False, activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                    nodes_to_quantize=None, nodes_to_exclude=None, use_external_data_format=False,
                    calibrate_method=CalibrationMethod.MinMax, extra_options=None, **more):
    """Quantizes weights and values to 8 bits. The ranges of values are measured by runs of the model."""
    model = _model(model_input)
    choice = _choice(model, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude)
    made = _models.quantize(model, quant_format.value, dtype=weight_type.value, per_channel=per_channel,
                            ranges=_ranges(model, calibration_data_reader), **choice)
    _save(made, model_output, use_external_data_format)


def quant_pre_process(input_model_path, output_model_path, *more, **options):
    """Simplifies the model: infers shapes and folds constants."""
    _models.save(_models.simplify(_model(input_model_path)), output_model_path)

"""Shared by the modules of microsoft_random.py: random sizes, shapes and values, and the list of models."""
import numpy as np
import onnx
from onnx import TensorProto as T

import microsoft as m
from microsoft import In, case, s

R = np.random.default_rng(1)
SIZES = [1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]


def seed(n):
    R.bit_generator.state = np.random.default_rng(n).bit_generator.state


def draw(*of):
    return of[R.integers(len(of))]


def chance(p=0.5):
    return bool(R.random() < p)


def size():
    return 0 if chance(0.02) else int(draw(*SIZES))


def some(*of):  # about half of the attributes
    return {k: v for k, v in of if chance()}


def f(*shape, lo=-1.0, hi=1.0, t=np.float32):
    return R.uniform(lo, hi, shape).astype(t)


def ints(t, lo, hi, *shape):
    return R.integers(lo, hi, shape, endpoint=True).astype(t)


def code(a):
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(a)) if hasattr(onnx.helper, "np_dtype_to_tensor_dtype") else onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(a)]


def byte():
    t = draw(np.uint8, np.int8)
    return t, code(t), np.iinfo(t)


def bytes_of(t, *shape):
    i = np.iinfo(t)
    return ints(t, i.min, i.max, *shape)


def scale(lo=0.002, hi=0.1):
    return s(R.uniform(lo, hi)) if chance(0.8) else s([R.uniform(lo, hi)])


def zero(t, like=None):
    i = np.iinfo(t)
    return s(int(R.integers(i.min, i.max, endpoint=True)), t)


def shape(least=1, most=4):
    return [size() for _ in range(R.integers(least, most, endpoint=True))]


def broadcast(d):  # a shape that broadcasts to d
    d = [1 if chance(0.2) else x for x in d]
    return d[R.integers(len(d), endpoint=True):] if chance(0.3) else d


N = [0]


def put(op, inputs, outputs=1, **attrs):
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    N[0] += 1
    case("%s_%d" % (op.lower(), N[0]), op, inputs, outputs, **attrs)


def maybe(x, p=0.5):
    return x if chance(p) else None


def group(*makers):
    def run(count):
        while len(m.MODELS) < count:
            draw(*makers)()
    return run

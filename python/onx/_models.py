"""Loading, saving, checking and transforming models. Functions that return a model do not change their argument; both share the weights.

The parameter `operators` of a function is a set of Operators that are known in addition to the built-in ones."""
import difflib
from typing import NamedTuple

import numpy as np

from onx import _onx, _support
from onx._errors import InvalidError
from onx._onx import (AttributeProto, FunctionProto, GraphProto, Message, ModelProto, NodeProto, SparseTensorProto, TensorProto,
                      TensorShapeProto, TypeProto, ValueInfoProto)

_FORMATS = {"auto": 0, "binary": 1, "onnxtxt": 2, "textproto": 3, "json": 4}


def _format(name):
    try:
        return _FORMATS[name]
    except KeyError:
        raise ValueError("there is no format %r: %s" % (name, ", ".join(_FORMATS))) from None


class Change(NamedTuple):
    """One change of a model: the pass and rule that made it, its location, and a description."""

    by: str
    rule: str
    path: str
    text: str


_support.HELPERS["change"] = Change


def _names(names):
    """A list of strings from one string or several."""
    return [] if names is None else [names] if isinstance(names, (str, bytes)) else list(names)


def _pairs(mapping):
    return [(k, v) for k, v in (mapping or {}).items()]


# ---- files ----


def load(path, type=ModelProto, *, format="auto", base_dir=None, links=False, lenient=False, copy=False, threads=1):
    """Loads a model, or a message of another type, from a file of any format.

    Files are mapped: a model of ten gigabytes loads within milliseconds, and its weights are used in place.

    >>> import onx
    >>> model = onx.load("examples/stripes.onnxtxt")
    >>> [node.op_type for node in model.graph.node]
    ['Conv', 'Relu', 'MaxPool', 'GlobalAveragePool', 'Reshape', 'Softmax']

    `links`: external data may be reached through links, as in caches of models. `lenient`: for damaged files. `copy`: the
    file is read into memory, so that it may change meanwhile. `threads`: for decoding.
    """
    flags = (1 if copy else 0) | (2 if lenient else 0) | (4 if links else 0)
    return _onx._load(path, type, _format(format), flags, threads, base_dir)


def from_bytes(data, type=ModelProto, *, format="binary", base_dir=None):
    """A model, or a message of another type, from the bytes of a file. Bytes are not copied."""
    return _onx._read(bytes(data), type, _format(format), 0, base_dir)


def parse(text, type=ModelProto):
    """A model, or a message of another type, from ONNX text.

    >>> import onx
    >>> onx.parse("y = Conv <pads = [1, 1, 1, 1]> (x, w)", onx.NodeProto).attribute[0].ints
    [1, 1, 1, 1]
    """
    return _onx._read(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text), type, 2, 0, None)


def save(model, path, *, format="auto", external=None, threshold=1024, alignment=4096, split=0, file_per_tensor=False,
         checksum=False, inline=False):
    """Writes a model to a file; the format follows from the extension. The old file stays intact until the new one is complete.

    `external` names a file for weights of at least `threshold` bytes, relative to the model's folder; `inline` brings all
    weights into the model.
    """
    use = external is not None or inline
    _onx._save(model, path, _format(format), use, external, threshold, alignment, split, file_per_tensor, checksum, inline)


def to_bytes(message, format="binary"):
    """The message as the bytes of a file."""
    return _onx._write(message, _format(format), 0, 0)


def to_text(message, elide=0, width=100):
    """A message as ONNX text, or protobuf text where ONNX text has no notation. Lists of more than `elide` elements are abbreviated."""
    return _onx._write(message, 2, elide, width).decode("utf-8", "surrogateescape")


# ---- checks ----


def check(model, *, full=False, strict=False, pedantic=False, custom_domains=False, checksums=False, only=None, ignore=None,
          max_errors=0, ir_version=0, raise_errors=False, operators=None):
    """Checks a model (or another message) by the rules of ONNX: returns a list of Diagnostic, empty if there are no findings.

    `full` infers types and shapes as well. `only` and `ignore` are rules ("T-04") or groups of them ("T"). With
    `raise_errors` errors become an InvalidError.

    >>> import onx
    >>> model = onx.parse('<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Relu(z) }')
    >>> for finding in onx.check(model, ignore=["M-06", "G-24"]):
    ...     print(finding.severity, finding.rule, finding.message)
    error G-07 "z" is not defined: no input, initializer or node output has that name
    """
    flags = 0
    for bit, wanted in ((1, full), (2, strict), (4, custom_domains), (16, checksums), (64, pedantic)):
        flags |= bit if wanted else 0
    findings = _onx._check(model, flags, max_errors, ir_version, _names(only), _names(ignore), operators)
    errors = [f for f in findings if f.severity == "error"]
    if raise_errors and errors:
        raise InvalidError("\n".join(str(f) for f in errors[:20]), findings)
    return findings


def check_update(older, newer, *, operators=None):
    """Checks the versioning rules for a model that replaces another: returns a list of Diagnostic."""
    return _onx._check_update(older, newer, operators)


# ---- transformations of models ----


def infer(model, *, strict=False, check_type=False, data_prop=True, plain_names=False, dims=None, operators=None):
    """The model with the types and shapes of all values that can be inferred. `dims` fixes symbolic dimensions.

    >>> import onx
    >>> model = onx.infer(onx.load("examples/stripes.onnxtxt"), dims={"N": 2})
    >>> print(model.graph.input[0])
    float[2, 1, H, W] image
    """
    return _onx._infer(model, strict, check_type, not data_prop, plain_names, _pairs(dims), operators)


def simplify(model, *, exact=False, passes=None, dims=None, shapes=None, keep=None, fold_limit=0, freeze_defaults=False, operators=None,
             changes=None):
    """The model simplified: without parts that do not affect its results. The changes are appended to the list `changes`.

    `dims` fixes symbolic dimensions, `shapes` those of inputs ({"x": [1, 3, 224, 224]}; -1 keeps a dimension). `keep` names values
    that must stay. With `freeze_defaults` inputs with a default become constants, which callers cannot set any more.
    """
    shapes = [(name, [int(d) for d in dims]) for name, dims in _pairs(shapes)]
    return _onx._simplify(model, exact, _names(passes), _pairs(dims), shapes, _names(keep), fold_limit, freeze_defaults, changes, operators)


def retarget(model, opset=None, *, ir_version=0, best_effort=False, operators=None, changes=None):
    """The model converted to other operator-set versions, up or down: a number for the default domain, or {domain: version}."""
    opsets = [("", opset)] if isinstance(opset, int) else _pairs(opset)
    return _onx._retarget(model, opsets, ir_version, best_effort, False, changes, operators)


def inline(model, functions=None, *, exclude=False, schema=False, domain="", operators=None, changes=None):
    """The model with function calls inlined: all, or only those of the given functions (domain, name)."""
    return _onx._inline(model, [tuple(f) for f in functions or ()], exclude, schema, domain, changes, operators)


def outline(model, *, min_nodes=0, min_calls=0, domain="", operators=None, changes=None):
    """The model with repeated sequences of nodes replaced by functions."""
    return _onx._outline(model, min_nodes, min_calls, domain, changes, operators)


def sort(model, *, operators=None):
    """The model with its nodes in topological order."""
    return _onx._sort(model, operators)


def compress(model, *, sparse=False, operators=None, changes=None):
    """The model with identical weights stored once; with `sparse`, weights that are mostly zeros become sparse initializers."""
    return _onx._compress(model, sparse, changes, operators)


def _dtype(dtype):
    if isinstance(dtype, str) and dtype in _support.DTYPES:
        return _support.DTYPES[dtype]
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        return dtype
    name = np.dtype(dtype).name
    name = {"float32": "float", "float64": "double", "object": "string"}.get(name, "string" if name.startswith("str") else name)
    try:
        return _support.DTYPES[name]
    except KeyError:
        raise TypeError("ONNX has no element type %s" % name) from None


def convert(model, dtype, *, keep_io=False, exact=False, only=None, exclude=None, block_op=None, operators=None, changes=None):
    """The model with floating-point values and weights converted to another type: "float16", "bfloat16", "float" or "double".

    By default, nodes that compute positions, ranks or angles are not converted to "float16" or "bfloat16", because low precision
    harms them most. With `exact` they are."""
    return _onx._precision(model, _dtype(dtype), keep_io, exact, _names(only), _names(exclude), _names(block_op), changes, operators)


_MODES = {"weights": 0, "dynamic": 1, "qdq": 2, "qlinear": 3}


def quantize(model, mode="weights", *, dtype="int8", block_size=0, per_channel=False, ranges=None, only=None, exclude=None,
             block_op=None, operators=None, changes=None):
    """The model with matrix products and convolutions by constant weights quantized to 8 or 4 bits. The modes "qdq" and "qlinear"
    need the `ranges` of values: {name: (low, high)}."""
    if mode not in _MODES:
        raise ValueError("there is no mode %r: %s" % (mode, ", ".join(_MODES)))
    ranges = [(name, low, high) for name, (low, high) in _pairs(ranges)]
    return _onx._quantize(model, _MODES[mode], per_channel, _dtype(dtype), block_size, _names(only), _names(exclude),
                          _names(block_op), ranges, changes, operators)


def grad(model, of, wrt, *, only=False, operators=None):
    """The model with the gradients of the value `of` with respect to the values `wrt` as additional outputs <value>_grad."""
    return _onx._grad(model, of, _names(wrt), only, operators)


def extract(model, inputs=None, outputs=None, *, nodes=None, operators=None, changes=None):
    """The part of a model between values, or of the nodes whose names match patterns.

    >>> import onx
    >>> part = onx.extract(onx.load("examples/stripes.onnxtxt"), outputs="mean")
    >>> [node.op_type for node in part.graph.node]
    ['Conv', 'Relu', 'MaxPool', 'GlobalAveragePool']
    """
    return _onx._extract(model, _names(inputs), _names(outputs), _names(nodes), changes, operators)[0]


def split(model, count=None, *, at=None, operators=None, changes=None):
    """A model split into consecutive parts: into a number of parts, or after the values or nodes `at`."""
    at = _names(at)
    if count is None:
        count = len(at) + 1
    if not 1 <= count <= max(1, len(model.graph.node) if model.graph else 1):
        raise ValueError("a model has one part at least, and no more than it has nodes")
    return _onx._split(model, count, at, changes, operators)


_HOW = {"name": 0, "map": 1, "sequence": 2, "side": 3}


def merge(models, *, how=None, io_map=None, inputs=None, outputs=None, prefix1="", prefix2="", operators=None, changes=None):
    """Merges models: by the names of their values, by `io_map` {output: input}, in "sequence", or "side" by side."""
    models = list(models)
    if not models:
        raise ValueError("there is no model to merge")
    how = how or ("map" if io_map else "name")
    if how not in _HOW:
        raise ValueError("there is no way %r to merge: %s" % (how, ", ".join(_HOW)))
    return _onx._merge(models, _HOW[how], _pairs(io_map), _names(inputs), _names(outputs), prefix1, prefix2, changes, operators)


_EDITS = ("rename_value", "rename_node", "rename_dim", "rename_domain", "rename_function", "type", "set_inputs", "set_outputs",
          "add_output", "drop_output", "drop_input", "initializer", "metadata", "field", "strip", "batch", "nhwc", "normalize",
          "resize", "argmax", "softmax")


def edit(model, *edits, operators=None, changes=None):
    """The model after a list of edits: tuples of a kind and its arguments.

    >>> import onx
    >>> model = onx.edit(onx.load("examples/stripes.onnxtxt"), ("rename_value", "image", "x"), ("batch", 4))
    >>> model.graph.input[0].name
    'x'
    """
    todo = []
    for kind, a, *rest in edits:
        if kind not in _EDITS:
            raise ValueError("there is no edit %r: %s" % (kind, ", ".join(_EDITS)))
        b = rest[0] if rest else ""
        extra = [None, None]
        if kind == "type":
            extra[0], b = b if isinstance(b, Message) else parse(b, TypeProto), ""
        elif kind == "initializer":
            extra[1], b = b if isinstance(b, Message) else tensor(b), ""
        if isinstance(a, (list, tuple)):
            a = ",".join(a)
        todo.append((_EDITS.index(kind), str(a), str(b), *extra))
    return _onx._edit(model, todo, changes, operators)


# ---- building messages ----


def tensor(data, name="", dtype=None):
    """A TensorProto with the elements of an array, a list or a number.

    >>> import onx
    >>> print(onx.tensor([1, 2, 3], "w", "float"))
    float[3] w = {1, 2, 3}
    """
    number = _dtype(dtype) if dtype is not None else None
    name_of = {v: k for k, v in _support.DTYPES.items()}
    made = TensorProto(name=name) if name else TensorProto()
    prepared = _support.prepare(data, name_of[number] if number else None)
    if isinstance(prepared, tuple):
        kind, elements, shape = prepared
        made.data_type, made.dims = kind, shape
        if kind == _support.DTYPES["string"]:
            made.string_data = [e.encode("utf-8", "surrogateescape") if isinstance(e, str) else e for e in elements]
        else:
            made.raw_data = _onx._pack(elements, kind)
        return made
    made.data_type = _dtype(prepared.dtype)
    if number and number != made.data_type:
        stands_for = _support._STANDS_FOR.get(name_of[number])
        if stands_for is None:
            prepared = prepared.astype(_support.numpy_dtype(name_of[number]))
            made.data_type = number
        else:
            prepared = np.ascontiguousarray(prepared, stands_for)
            made.data_type, made.raw_data = number, _onx._narrow(prepared, number)
            made.dims = prepared.shape
            return made
    made.dims, made.raw_data = prepared.shape, prepared.tobytes()
    return made


def type_of(dtype, shape=None):
    """A TypeProto of tensors: `shape` contains numbers, names, and None for unknown dimensions; without `shape`, the rank is unknown."""
    made = TypeProto(tensor_type=_onx.TypeProto_Tensor(elem_type=_dtype(dtype)))
    if shape is not None:
        dims = []
        for d in shape:
            dims.append(_onx.TensorShapeProto_Dimension(dim_param=d) if isinstance(d, str) else _onx.TensorShapeProto_Dimension()
                        if d is None else _onx.TensorShapeProto_Dimension(dim_value=d))
        made.tensor_type.shape = TensorShapeProto(dim=dims)
    return made


def value_info(name, dtype, shape=None):
    """A ValueInfoProto: an input, an output, or the type of another value.

    >>> import onx
    >>> print(onx.value_info("x", "float", ["N", 3, None]))
    float[N, 3, ?] x
    """
    return ValueInfoProto(name=name, type=type_of(dtype, shape))


def attribute(name, value):
    """An AttributeProto with a number, a string, a tensor, a graph, a type, or a list of these."""
    made = AttributeProto(name=name)
    items = list(value) if isinstance(value, (list, tuple)) or type(value).__name__ == "List" else None
    one = value if items is None else items[0] if items else 0
    if isinstance(one, np.ndarray):
        one, items = tensor(one), [tensor(i) for i in items] if items else None
    if isinstance(one, (np.floating, np.integer, np.bool_)):
        items, one = [i.item() if isinstance(i, np.generic) else i for i in items] if items else items, one.item()
    if items and isinstance(one, int) and any(isinstance(i, float) for i in items):
        one = float(one)
    for kind, single, several, number in ((int, "i", "ints", 2), (float, "f", "floats", 1), ((str, bytes), "s", "strings", 3),
                                          (TensorProto, "t", "tensors", 4), (GraphProto, "g", "graphs", 5),
                                          (SparseTensorProto, "sparse_tensor", "sparse_tensors", 11),
                                          (TypeProto, "tp", "type_protos", 13)):
        if isinstance(one, kind):
            if items is None:
                setattr(made, single, one)
                made.type = number
            else:
                setattr(made, several, items)
                made.type = number + 1 if number in (11, 13) else number + 5
            return made
    raise TypeError("an attribute cannot be of type %s" % type(value).__name__)


def node(op_type, inputs=(), outputs=(), name="", domain="", **attributes):
    """A NodeProto.

    >>> import onx
    >>> print(onx.node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]))
    y = Conv<pads = [1, 1, 1, 1]>(x, w)
    """
    made = NodeProto(op_type=op_type, input=_names(inputs), output=_names(outputs))
    if name:
        made.name = name
    if domain:
        made.domain = domain
    made.attribute = [attribute(k, v) for k, v in attributes.items() if v is not None]
    return made


def graph(nodes, name, inputs, outputs, initializers=()):
    """A GraphProto."""
    return GraphProto(node=nodes, name=name, input=inputs, output=outputs, initializer=initializers)


def model(graph, opset=None, *, ir_version=10, functions=(), producer_name="onx"):
    """A ModelProto: `opset` is the version of the default domain, or a dict {domain: version}."""
    opsets = {"": opset or 21} if not isinstance(opset, dict) else opset
    imports = [_onx.OperatorSetIdProto(domain=d, version=v) for d, v in opsets.items()]
    return ModelProto(ir_version=ir_version, producer_name=producer_name, opset_import=imports, graph=graph, functions=functions)


# ---- differences ----


def _key(message):
    if isinstance(message, NodeProto):
        return message.output[0] if len(message.output) else message.name
    for field in ("name", "key", "domain"):
        if isinstance(message, Message) and getattr(message, field, None):
            return getattr(message, field)
    return None


def _brief(value):
    text = " ".join(str(value).split()) if isinstance(value, Message) else repr(value)
    return text if len(text) < 80 else text[:77] + "..."


def _diff_tensor(a, b, path):
    try:
        x, y = a.numpy(), b.numpy()
    except Exception:
        return [path + ": elements differ"] if a != b else []
    if x.dtype != y.dtype or x.shape != y.shape:
        return ["%s: %s%s, and %s%s" % (path, x.dtype, list(x.shape), y.dtype, list(y.shape))]
    if x.dtype == object or np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"):
        return [] if (x == y).all() or x.dtype != object else [path + ": elements differ"]
    return ["%s: %d of %d elements differ" % (path, int((x != y).sum()), x.size)]


def diff(a, b, path=""):
    """The differences between two messages of one type: a list of strings, each with the location. Lists are compared by names.

    >>> import onx
    >>> model = onx.load("examples/stripes.onnxtxt")
    >>> onx.diff(model, onx.edit(model, ("metadata", "key", "value")))
    ["metadata_props 'key': only in the second"]
    """
    if type(a) is not type(b):
        raise TypeError("only messages of one type are compared")
    found = []
    if isinstance(a, TensorProto):
        return _diff_tensor(a, b, path or "tensor")
    for name, _, repeated, _, kind in _onx._fields(type(a)):
        x, y, at = getattr(a, name), getattr(b, name), path + ("." if path else "") + name
        if not repeated:
            if kind and x is not None and y is not None:
                found += diff(x, y, at)
            elif a.has(name) != b.has(name) or x != y:
                found.append("%s: %s, and %s" % (at, _brief(x) if a.has(name) else "absent", _brief(y) if b.has(name) else "absent"))
            continue
        x, y = list(x), list(y)
        if x == y:
            continue
        if not kind:
            found.append("%s: %s, and %s" % (at, _brief(x), _brief(y)))
            continue
        keys = [[_key(m) or i for i, m in enumerate(l)] for l in (x, y)]
        for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
            if tag == "equal":
                for i, j in zip(range(i1, i2), range(j1, j2)):
                    found += diff(x[i], y[j], "%s[%d]" % (at, i))
                continue
            found += ["%s %r: only in the first" % (at, keys[0][i]) for i in range(i1, i2)]
            found += ["%s %r: only in the second" % (at, keys[1][j]) for j in range(j1, j2)]
    return found

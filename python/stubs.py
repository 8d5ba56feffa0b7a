"""Writes the type stubs of the package, for editors and type checkers, from the package itself: stubs.py FOLDER-OF-PACKAGE"""
import inspect
import os
import sys

folder = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.dirname(folder))
try:
    import numpy
except ImportError:
    # pip builds in an environment without NumPy. Only the declarations of the package are used here.
    class Absent:
        def __getattr__(self, name):
            return Absent()

    sys.modules["numpy"] = Absent()
import onx
from onx import _onx

HEAD = '''"""Made by stubs.py."""
import os
from typing import Any, Callable, Dict, Generic, Iterable, Iterator, List as _L, Mapping, MutableSequence, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar, Union, overload

import numpy as np
import numpy.typing as npt

_T = TypeVar("_T")
_M = TypeVar("_M", bound="Message")
_Path = Union[str, bytes, "os.PathLike[str]"]
_Texts = Union[str, Iterable[str], None]

__version__: str

class List(MutableSequence[_T], Generic[_T]):
    def add(self, **fields: Any) -> _T: ...
    def sort(self, *, key: Any = ..., reverse: bool = ...) -> None: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __delitem__(self, index: Any) -> None: ...
    def __len__(self) -> int: ...
    def insert(self, index: int, value: _T) -> None: ...

class Message:
    def has(self, name: str) -> bool: ...
    def clear(self, name: str) -> None: ...
    def HasField(self, name: str) -> bool: ...
    def ClearField(self, name: str) -> None: ...
    def SerializeToString(self) -> bytes: ...
    def to_bytes(self, format: str = ...) -> bytes: ...
    def to_text(self, elide: int = ..., width: int = ...) -> str: ...
    def copy(self: _M) -> _M: ...
    def walk(self, type: Optional[Type[Message]] = ..., paths: bool = ...) -> _L[Any]: ...

class Value:
    kind: str
    dtype: str
    shape: Optional[Tuple[int, ...]]
    nbytes: int
    address: int
    def __new__(cls, value: Any, type: Optional[TypeProto] = ...) -> Value: ...
    def numpy(self) -> Any: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Value: ...
    def __dlpack__(self, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> Tuple[int, int]: ...

class Operators:
    def __new__(cls) -> Operators: ...
    def add(self, domain: str, name: str, function: Callable[..., Any], since: int = ...) -> Callable[..., Any]: ...
    def load(self, path: _Path) -> None: ...
    def document(self, operator_set: OperatorSetProto) -> None: ...

class Session:
    inputs: _L[Port]
    outputs: _L[Port]
    def __init__(self, model: Union[_Path, bytearray, memoryview, ModelProto], *, threads: int = ..., optimize: bool = ..., plain: bool = ...,
                 strict: bool = ..., precision: Optional[str] = ..., isa: Optional[str] = ..., memory: int = ..., timeout: float = ...,
                 operators: Optional[Operators] = ..., base_dir: Optional[_Path] = ..., links: bool = ...) -> None: ...
    def __call__(self, *inputs: Any, **named: Any) -> Any: ...
    def run(self, output_names: Optional[Sequence[str]], input_feed: Dict[str, Any], run_options: Any = ..., *, out: Dict[str, npt.NDArray[Any]] = ...,
            timeout: float = ..., iterations: int = ..., values: bool = ..., stop: Optional[Callable[[], Any]] = ...,
            profile: Optional[_L[Step]] = ...) -> _L[Any]: ...

class Step(NamedTuple):
    name: str
    op_type: str
    kernel: str
    start: float
    seconds: float

class Port(NamedTuple):
    name: str
    type: str
    shape: Optional[_L[Union[int, str, None]]]
    dtype: Optional[str]
    required: bool
    @property
    def numpy_dtype(self) -> Optional[np.dtype[Any]]: ...

class Change(NamedTuple):
    by: str
    rule: str
    path: str
    text: str

class Diagnostic:
    severity: str
    status: int
    rule: Optional[str]
    message: str
    path: str
    byte: int
    line: int
    column: int
    value: str
    expected: str
    hint: str
    text: str

def version() -> str: ...
def build_info() -> _L[str]: ...
'''
MODEL = ["def __getitem__(self, name: str) -> Any: ..."]
METHODS = {"ModelProto": MODEL + ["def %s(self, *args: Any, **options: Any) -> %s: ..." % (n, r) for n, r in (
    ("check", "_L[Diagnostic]"), ("infer", "ModelProto"), ("simplify", "ModelProto"), ("retarget", "ModelProto"), ("inline", "ModelProto"),
    ("extract", "ModelProto"), ("split", "_L[ModelProto]"), ("edit", "ModelProto"), ("save", "None"))],
    "GraphProto": MODEL, "TensorProto": ["def numpy(self) -> npt.NDArray[Any]: ..."] + ["%s: int" % n.upper() for n in _onx._dtype_rows()]}
# The types of parameters by name, and the return types of functions.
PARAMETERS = {"model": "ModelProto", "path": "_Path", "type": "Type[Any]", "format": "str", "base_dir": "Optional[_Path]", "operators": "Optional[Operators]", "changes": "Optional[_L[Any]]",
              "dims": "Optional[Mapping[str, int]]", "name": "str", "text": "Union[str, bytes]", "threads": "int"}
RETURNS = {"save": "None", "check": "_L[Diagnostic]", "check_update": "_L[Diagnostic]", "diff": "_L[str]", "split": "_L[ModelProto]", "to_bytes": "bytes",
           "to_text": "str", "tensor": "TensorProto", "type_of": "TypeProto", "value_info": "ValueInfoProto", "attribute": "AttributeProto",
           "node": "NodeProto", "graph": "GraphProto"}
TYPES = ["float", "float", "int", "int", "int", "int", "str", "bytes"]


def function(name, f):
    parts, star = [], False
    for p in inspect.signature(f).parameters.values():
        kind = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(p.kind.name, "")
        star = star or kind == "*"
        if p.kind.name == "KEYWORD_ONLY" and not star:
            parts.append("*")
            star = True
        known = PARAMETERS.get(p.name, "bool" if isinstance(p.default, bool) else "Any")
        if name in ("check", "save", "diff") and p.name == "model":
            known = "Message"
        parts.append("%s%s: %s%s" % (kind, p.name, known, "" if p.default is p.empty else " = ..."))
    returns = RETURNS.get(name, "Any" if name in ("load", "from_bytes", "parse", "from_proto", "to_proto") else "ModelProto")
    return "def %s(%s) -> %s: ..." % (name, ", ".join(parts), returns)


lines = [HEAD]
for name in sorted(dir(_onx)):
    type_ = getattr(_onx, name)
    if not (isinstance(type_, type) and issubclass(type_, onx.Message) and type_ is not onx.Message):
        continue
    lines.append("class %s(Message):" % name)
    for inner in sorted(n for n in dir(_onx) if n.startswith(name + "_")):
        lines.append("    %s = %s" % (inner.partition("_")[2], inner))
    fields = []
    for field, kind, repeated, _, message in _onx._fields(type_):
        known = message.__name__ if message else TYPES[kind]
        fields.append((field, known, repeated))
        lines.append("    %s: %s" % (field, "Any  # List[%s]" % known if repeated else "Optional[%s]" % known if message else known))
    lines.append("    def __init__(self, *, %s) -> None: ..." % ", ".join("%s: Any = ..." % f[0] for f in fields))
    lines += ["    " + m for m in METHODS.get(name, [])] + [""]
for name, value in sorted(vars(onx).items()):
    if isinstance(value, type) and issubclass(value, Exception):
        bases = [b.__name__ for b in value.__bases__]
        extra = "\n    diagnostics: _L[Diagnostic]" if name == "Error" else " ..."
        lines.append("class %s(%s):%s" % (name, ", ".join(bases), extra))
lines += [function(n, f) for n, f in sorted(vars(onx).items()) if inspect.isfunction(f) and not n.startswith("_")]
with open(os.path.join(folder, "__init__.pyi"), "w") as f:
    f.write("\n".join(lines) + "\n")

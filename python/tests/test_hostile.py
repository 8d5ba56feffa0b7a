"""Objects that change the caller's lists, dicts and models while the package looks at them: no call may crash.

The functions come from the package's namespace. They run in a process of their own, so that a crash is a failure with a name."""
import inspect
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest

import models
import numpy as np
import onx
import onx.backend
import onx.compat.onnxruntime

TEXT = """<ir_version: 10, opset_import: ["": 21]>
g (float[2] a, float[2] b) => (float[2] y, float[2] z) <float[2] w = {1, 2}> { s = Add (a, b) y = Mul (s, w) z = Neg (s) }"""


class Hostile:
    """Compares, hashes, converts and ends with code that changes everything that it knows."""

    victims = []
    name = "a"

    def attack(self):
        for v in list(Hostile.victims):
            try:
                if isinstance(v, (dict, list, set)):
                    v.clear()
                else:
                    del v[:]
            except Exception:
                pass
        Hostile.waste = [bytes(n) for n in range(1, 60, 3)]  # what was freed has other contents now

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        self.attack()
        return False

    def __index__(self):
        self.attack()
        return 1

    def __int__(self):
        return self.__index__()

    def __float__(self):
        self.attack()
        return 1.5

    def __bool__(self):
        self.attack()
        return True

    def __len__(self):
        self.attack()
        return 2

    def __getitem__(self, index):
        self.attack()
        if isinstance(index, int) and index < 2:
            return 1.0
        raise IndexError(index)

    def __iter__(self):
        self.attack()
        return iter([1.0, 2.0])

    def __str__(self):
        self.attack()
        return "a"

    def __fspath__(self):
        self.attack()
        return "/none"

    def __array__(self, dtype=None, copy=None):
        self.attack()
        return np.ones(2, np.float32)

    def __call__(self, *args, **kwargs):
        self.attack()
        return False

    def __del__(self):
        if np is not None and Hostile is not None and Hostile.victims:
            Hostile.victims[-1:] = []


class Same(Hostile):
    """Equal to every name."""

    __hash__ = Hostile.__hash__

    def __eq__(self, other):
        self.attack()
        return True


def functions():
    """Everything in the package that can be called."""
    modules = [onx, onx.backend, onx.compat.onnxruntime] + [m for m in vars(onx).values() if inspect.ismodule(m) and m.__name__.startswith("onx.")]
    seen = set()
    for module in modules:
        for name, f in sorted(vars(module).items()):
            if callable(f) and not name.startswith("__") and id(f) not in seen and getattr(f, "__module__", "").startswith("onx"):
                seen.add(id(f))
                yield module.__name__ + "." + name, f


def victim(kind, r):
    """A container with hostile items, which they change."""
    items = [r.choice([Hostile, Same])() if r.random() < 0.7 else r.choice(["a", "b", "y", 1, 2.0, None, np.float32(3)]) for _ in range(r.randint(1, 4))]
    if kind == "dict":
        v = {r.choice(["a", "b", "y", "z"]): i for i in items}
        v[Hostile()] = 1
    elif kind == "list":
        v = items
    else:
        v = [(i, i) for i in items]
    Hostile.victims = [v]
    return v


def argument(r, folder):
    kind = r.choice(["dict", "list", "pairs", "hostile", "model", "path", "text", "number", "array", "node", "none"])
    if kind in ("dict", "list", "pairs"):
        return victim(kind, r)
    if kind == "model":
        m = onx.parse(TEXT)
        Hostile.victims = [m.graph.node, m.graph.input, m.graph.node[0].input]
        return m
    if kind == "node":
        n = onx.node("Add", ["a", "b"], "y")
        Hostile.victims = [n.input, n.output]
        return n
    return {"hostile": Hostile(), "path": folder + "/m.onnxtxt", "text": TEXT, "number": r.choice([0, -1, 3, 2**40]), "array": np.ones(2, np.float32), "none": None}[kind]


def call(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except (Exception, SystemExit):
        return None


def sessions(folder):
    """Dicts of inputs and outputs whose keys and values change them."""
    s = onx.Session(folder + "/m.onnxtxt", threads=1)
    for how in range(40):
        feeds, into, names = {}, {}, []
        Hostile.victims = []
        Hostile.name = "ab"[how // 4 % 2]
        feeds["a"] = [float(how), 2.0]  # the dict has the only reference
        feeds[Same() if how % 3 == 0 else Hostile()] = [1.0, float(how)]
        feeds["b"] = Hostile() if how % 5 == 0 else [3.0, float(how)]
        into["y"] = np.zeros(2, np.float32)
        into[Hostile() if how % 2 else Same()] = np.zeros(2, np.float32)
        names += ["y", Same(), "z", Hostile()]
        Hostile.victims = [[feeds], [feeds, into], [feeds, into, names], [into, names]][how % 4]
        for given in (dict(out=into), {}):
            call(s.run, None, feeds, **given)
            call(s.run, names, feeds, **given)
            call(s.run, None, dict(feeds), **given)
            call(s, **{str(k) if isinstance(k, str) else "b": v for k, v in dict(feeds).items()})
        steps = []
        Hostile.victims = [steps]
        call(s.run, None, {"a": [1.0, 2.0], "b": [1.0, 2.0]}, profile=steps, stop=Hostile())


def lists():
    """Indices and items that change the list of a message."""
    for _ in range(20):
        m = onx.parse(TEXT)
        for field in (m.graph.node, m.graph.input, m.graph.node[0].input, m.graph.initializer[0].dims, m.opset_import):
            Hostile.victims = [field]
            call(field.__getitem__, Hostile())
            call(field.insert, Hostile(), Hostile())
            call(field.__setitem__, Hostile(), Hostile())
            call(field.__setitem__, slice(Hostile(), Hostile()), Hostile())
            call(field.__setitem__, slice(Hostile(), None, Hostile()), [Hostile(), Hostile()])
            call(field.__delitem__, slice(Hostile(), Hostile(), Hostile()))
            call(field.extend, [Hostile(), 1, "x"])
            call(field.append, Hostile())
            call(field.__eq__, [Hostile()])
            call(field.index, Hostile()) if hasattr(field, "index") else None
            call(field.add, name=Hostile()) if hasattr(field, "add") else None


def attack(seed, folder):
    models.write(folder, TEXT, "m.onnxtxt")
    sessions(folder)
    lists()
    r = random.Random(seed)
    end = time.monotonic() + 30
    for name, f in functions():
        print(name, flush=True)
        for _ in range(10):
            if time.monotonic() > end:
                return
            Hostile.victims = []
            args = [argument(r, folder) for _ in range(r.randint(0, 4))]
            kwargs = {}
            try:
                names = list(inspect.signature(f).parameters)
            except (TypeError, ValueError):
                names = []
            for n in names:
                if n not in ("self", "args", "kwargs") and r.random() < 0.2:
                    kwargs[n] = argument(r, folder)
            made = call(f, *args, **kwargs)
            if hasattr(made, "run"):
                call(made.run, None, victim("dict", r))


class TestHostile(unittest.TestCase):
    def test_namespace(self):
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(1):
                p = subprocess.run([sys.executable, os.path.abspath(__file__), "attack", str(seed), folder], cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONMALLOC="debug"))
                self.assertEqual(p.returncode, 0, "the last function was %s: %s" % (p.stdout.split("\n")[-2:], p.stderr[-1500:]))
                self.assertTrue(p.stdout)


if __name__ == "__main__":
    if sys.argv[1:2] == ["attack"]:
        import warnings

        warnings.simplefilter("ignore")
        attack(int(sys.argv[2]), sys.argv[3])
    else:
        unittest.main()

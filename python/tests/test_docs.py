"""Runs the examples in docstrings and docs/python.md and compares their output."""
import ast
import doctest
import inspect
import os
import pkgutil
import unittest

import models
import onx


def load_tests(loader, tests, pattern):
    os.chdir(models.ROOT)  # examples name files of the project
    names = [m.name for m in pkgutil.walk_packages(onx.__path__, "onx.") if not m.name.endswith("._onx")]
    for name in ["onx"] + names:
        module = __import__(name, fromlist=["_"])
        tests.addTests(doctest.DocTestSuite(module))
    tests.addTests(loader.loadTestsFromTestCase(TestStubs))
    tests.addTests(doctest.DocFileSuite(os.path.join(models.ROOT, "docs", "python.md"), module_relative=False))
    return tests


class TestStubs(unittest.TestCase):
    def test_names(self):
        """The type stubs are Python, and have every name of the package and of its messages."""
        with open(os.path.join(os.path.dirname(onx.__file__), "__init__.pyi")) as f:
            tree = ast.parse(f.read())
        there = {n.name: n for n in tree.body if hasattr(n, "name")}
        missing = [n for n in onx.__all__ if n not in there and not inspect.ismodule(getattr(onx, n))]
        self.assertEqual(missing, [])
        fields = {n.target.id for n in there["NodeProto"].body if isinstance(n, ast.AnnAssign)}
        self.assertEqual(fields, {f[0] for f in onx._onx._fields(onx.NodeProto)})
        for name, function in vars(onx).items():
            if inspect.isfunction(function) and not name.startswith("_"):
                arguments = there[name].args
                listed = [a.arg for a in arguments.args + arguments.kwonlyargs]
                known = [p.name for p in inspect.signature(function).parameters.values() if not p.kind.name.startswith("VAR")]
                self.assertEqual(listed, known, name)


if __name__ == "__main__":
    unittest.main()

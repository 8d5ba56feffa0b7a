"""The examples in docstrings and docs/python.md are run, and say what comes out."""
import doctest
import os
import pkgutil
import tempfile
import unittest

import models
import onx


def load_tests(loader, tests, pattern):
    os.chdir(models.ROOT)  # examples name files of the project
    folder = tempfile.TemporaryDirectory()
    shared = {"folder": folder}  # lives as long as the tests
    names = [m.name for m in pkgutil.walk_packages(onx.__path__, "onx.") if not m.name.endswith("._onx")]
    for name in ["onx"] + names:
        module = __import__(name, fromlist=["_"])
        tests.addTests(doctest.DocTestSuite(module, extraglobs=shared))
    tests.addTests(doctest.DocFileSuite(os.path.join(models.ROOT, "docs", "python.md"), module_relative=False))
    return tests


if __name__ == "__main__":
    unittest.main()

"""Shared by upstream_checker.py and upstream_converter.py: their options, and the models of the backend tests of the package onnx."""
import argparse
import sys
import warnings


def start(doc, count, of):
    """The options, the package and its models; ends the program with 77 if the package is not installed."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--onx", default="build/onx", help="the program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--n", type=int, default=count, help="number of " + of)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    try:
        import onnx
        import onnx.checker
        import onnx.version_converter
        from onnx.backend.test.case.node import collect_testcases
    except ImportError:
        print("skipped: the package onnx, with numpy, is not installed")
        sys.exit(77)
    return args, onnx, [t.model for t in collect_testcases(None) if t.model is not None and t.model.ByteSize() < 20000]

"""Models in ONNX text and functions shared by the tests."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STRIPES = os.path.join(ROOT, "examples", "stripes.onnxtxt")


def model(signature, body, opset=21, extra="", functions=""):
    """A model of one graph: model("(float[N] x) => (float[N] y)", "y = Neg(x)")."""
    return '<ir_version: 10, opset_import: ["" : %d%s]>\nagraph %s\n{\n%s\n}\n%s' % (opset, extra, signature, body, functions)


def write(folder, text, name="model.onnxtxt"):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def skip(reason):
    """Ends a test program as skipped."""
    print("skipped: " + reason)
    sys.exit(77)

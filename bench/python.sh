#!/bin/sh
# python.sh ONX: the package for Python against the packages onnx (Debian's python3-onnx) and onnxruntime, where they are,
# in turn: a model of 200,000 nodes loaded, written, walked and checked, and calls of a small one. Prints ratios; above 1
# means that onx is faster. ONX_PYTHON names the Python, default /usr/bin/python3.
set -eu
onx=$1
build=$(dirname "$onx")
here=$(dirname "$0")
work=$build/bench
mkdir -p "$work"
cmake --build "$build" --target bench_model onx_python_modules >/dev/null
file=$work/nodes-200000.onnx
[ -s "$file" ] || "$build/bench/bench_model" nodes 200000 "$file"
PYTHONPATH=$build/python${PYTHONPATH:+:$PYTHONPATH} "${ONX_PYTHON:-/usr/bin/python3}" "$here/python.py" "$file"

#!/bin/sh
# python.sh ONX: compares the package for Python with the packages onnx (Debian's python3-onnx) and onnxruntime, if installed,
# alternating: loading, writing, walking and checking a model of 200,000 nodes, and calls of a small model. Prints ratios; above 1
# means that onx is faster. ONX_PYTHON is the Python to use, default /usr/bin/python3.
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

# The random models cover com.microsoft: each attribute, input and output is generated, or there is a stated reason why not.
. "$ONX_SOURCE_DIR/tests/lib.sh"
python=
for candidate in python3 /usr/bin/python3; do
    [ -n "$python" ] || ! "$candidate" -c 'import numpy, onnx' 2>/dev/null || python=$candidate
done
[ -n "$python" ] || skip "no Python with numpy and onnx"
"$ONX" ops --domain com.microsoft >out 2>err || skip "com.microsoft is left out of this build"
expect 0 "$python" -B "$ONX_SOURCE_DIR/bench/microsoft_random.py" --missing "$ONX" 1500
[ "$failures" -eq 0 ] || cat out
done_testing

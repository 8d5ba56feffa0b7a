# docs/training_from_pytorch.md: its blocks are run one after the other, where PyTorch is installed.
. "$ONX_SOURCE_DIR/tests/lib.sh"
python=${ONX_PYTORCH:-python3}
"$python" -c 'import torch, onnx, onnxscript' 2>/dev/null || skip "no Python with torch, onnx and onnxscript (ONX_PYTORCH names one)"
onx() { "$ONX" "$@"; }
awk '/^```python$/ { n++; file = "block" n ".py"; next } /^```sh$/ { n++; file = "block" n ".sh"; next } /^```$/ { file = ""; next } file { print >file }' \
    "$ONX_SOURCE_DIR/docs/training_from_pytorch.md"
[ -s block1.py ] && [ -s block2.sh ] && [ -s block3.py ] && [ -s block4.py ] || fail "the page has other blocks"
cat block1.py >first.py
expect 0 "$python" first.py
. ./block2.sh >said 2>err || fail "the commands fail: $(cat err)"
grep -q '^5 weights trained' said || fail "other weights are trained: $(cat said)"
cat block1.py block3.py block4.py >all.py
expect 0 "$python" all.py
done_testing

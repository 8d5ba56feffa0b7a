# onx check --format sarif: the requirements of SARIF 2.1.0 for a log (tests/cli/check_sarif.py has the rules of its schema).
. "$ONX_SOURCE_DIR/tests/lib.sh"
python3 -c 'import json' 2>/dev/null || skip "needs python3"

cat >'a model.onnxtxt' <<'EOF'
<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float[N] y) { a = Relu(q) [n] b = Relu<zz = 0.5>(a) [n] y = Reluu(b) }
EOF
cat >good.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 21], producer_name: "test", producer_version: "1"> g (float[N] x) => (float[N] y) { y = Relu(x) }
EOF
printf '\010\216\200' >cut.onnx
expect 1 "$ONX" check --format sarif 'a model.onnxtxt'
python3 "$ONX_SOURCE_DIR/tests/cli/check_sarif.py" out 4 || fail "the log of findings"
says out 'a%20model.onnxtxt'
says out '"startLine": 2'
says out '"startColumn": 43'
# columns are in characters here
printf '<ir_version: 10, opset_import: ["" : 21]>\ng (float[N] x) => (float[N] y) { y = Sum("\303\244\303\244", q) }\n' >wide.onnxtxt
expect 1 "$ONX" check --format sarif --only G-07 wide.onnxtxt
says out '"startColumn": 42'
says out '"startColumn": 48'
expect 0 "$ONX" check --format sarif good.onnxtxt
python3 "$ONX_SOURCE_DIR/tests/cli/check_sarif.py" out 0 || fail "the empty log"
expect 1 "$ONX" check --format sarif cut.onnx
python3 "$ONX_SOURCE_DIR/tests/cli/check_sarif.py" out 1 || fail "the log of a file that cannot be read"
says out '"byteOffset"'
# Several files are results of one run, and rules are listed once.
expect 1 "$ONX" check --format sarif 'a model.onnxtxt' good.onnxtxt wide.onnxtxt
python3 "$ONX_SOURCE_DIR/tests/cli/check_sarif.py" out 6 || fail "the log of three files"
says out 'wide.onnxtxt'
done_testing

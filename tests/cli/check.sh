# onx check: findings as text, JSON and SARIF, selection of rules, parts of models, and the page docs/rules.md.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >good.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 21], producer_name: "test", producer_version: "1">
g (float[N] x) => (float[N] y) { y = Relu(x) }
EOF
cat >bad.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 21], producer_name: "test", producer_version: "1">
g (float[N] x) => (float[N] y) { a = Relu(q) [n] b = LeakyRelu<alhpa = 0.5>(a) [n] y = Reluu(b) }
EOF

expect 0 "$ONX" check good.onnxtxt
says out 'good.onnxtxt: valid; types and shapes were not checked (--full checks them)'
expect 0 "$ONX" check --json good.onnxtxt
says out '"types_checked": false'
expect 0 "$ONX" check --full good.onnxtxt
grep -q 'not checked' out && fail "--full says that it did not check types: $(cat out)"
cat >types.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 21], producer_name: "test", producer_version: "1">
g (float[2,3] x) => (float[2,3] y) <float[1,3] h> { h = Relu (x) y = Neg (h) }
EOF
expect 0 "$ONX" check types.onnxtxt
says out 'types and shapes were not checked'
expect 1 "$ONX" check --full types.onnxtxt
says out 'size 1 and size 2 at axis 0'
says out '[G-20]'
expect 0 "$ONX" check --strict good.onnxtxt
expect 0 "$ONX" check --full --quiet good.onnxtxt
[ -s out ] && fail "--quiet prints a summary"

expect 1 "$ONX" check bad.onnxtxt
says out '3 errors, 1 warning'
says out 'graph.node[0] (Relu).input[0]'
says out '"q" is not defined'
says out '[G-07]'
says out 'did you mean alpha?'
says out 'did you mean Relu?'
says out '[N-03]'
# findings come in order of place
grep -o '\[[A-Z]*-[0-9]*\]' out | tr -d '\n' >order
[ "$(cat order)" = "[G-24][G-07][ND-17][ND-04][N-03]" ] || fail "findings are not in order of place: $(cat order)"

# what was read from text has line and column, and the path as well
says out 'bad.onnxtxt:2:43: graph.node[0] (Relu).input[0]: error: "q" is not defined'
says out '(value q) [G-07]'
says out '    2 | g (float[N] x) => (float[N] y) { a = Relu(q) [n] b = LeakyRelu'
says out '      |                                           ^'
expect 1 "$ONX" check bad.onnxtxt --json
says out '"path": "graph.node[0] (Relu).input[0]"'
says out '"line": 2'
says out '"column": 43'
expect 0 "$ONX" convert bad.onnxtxt bad.onnx
expect 1 "$ONX" check bad.onnx
says out 'bad.onnx: graph.node[0] (Relu).input[0]: error: "q" is not defined'
expect 1 "$ONX" check bad.onnx --json
grep -q '"line"' out && fail "findings in a binary file have lines"
# from a pipe, which cannot be read twice
"$ONX" check - <bad.onnxtxt >out 2>err
says out 'standard input:2:43: graph.node[0] (Relu).input[0]: error: '
# names may look like paths
cat >odd.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float[N] y) {
  ["n\".input[0]"] t = Relu(x,
    x)
  y = Relu(q)
}
EOF
expect 1 "$ONX" check --only ND-09,G-07 odd.onnxtxt
says out 'odd.onnxtxt:3:3: graph.node[0] "n".input[0]" (Relu): error: Relu-14 does not take 2 inputs'
says out 'odd.onnxtxt:5:12: graph.node[1] (Relu).input[0]: error: '
# Findings, the line of the file and the total are one stream; what makes the call fail is said on the other as well.
expect 1 "$ONX" check bad.onnxtxt
says err 'bad.onnxtxt is invalid'
[ "$(wc -l <err)" -eq 1 ] || fail "more than one line on standard error: $(cat err)"

# many files, and folders: a line each, then the total
mkdir -p many/deep/.hidden many/empty
cp good.onnxtxt many/a.onnxtxt
cp bad.onnx many/deep/b.onnx
cp bad.onnx many/deep/.hidden/c.onnx
echo '{}' >many/config.json
ln -s .. many/deep/up
expect 1 "$ONX" check good.onnxtxt many
says out 'good.onnxtxt: valid'
says out 'many/a.onnxtxt: valid'
says out 'many/deep/b.onnx: graph.node[0] (Relu).input[0]: error: "q" is not defined'
says out 'many/deep/b.onnx: invalid, 3 errors'
says out '3 files: 2 valid, 1 invalid; 3 errors, 1 warning'
says err '1 of 3 files is invalid'
expect 0 "$ONX" check good.onnxtxt many/a.onnxtxt
says out '2 files: 2 valid, 0 invalid; 0 errors'
expect 1 "$ONX" check --json many
says out '"checked": 2'
says out '"file": "many/deep/b.onnx"'
if command -v python3 >/dev/null; then
    python3 -c 'import json; d = json.load(open("out")); assert [f["valid"] for f in d["files"]] == [True, False], d' ||
        fail "the JSON of two files"
fi
# A file that cannot be read is named, and the others are checked all the same.
expect 2 "$ONX" check missing.onnx many
says err 'missing.onnx'
says out 'many/deep/b.onnx: invalid'
says out '3 files: 1 valid, 1 invalid, 1 unreadable'
expect 2 "$ONX" check many/empty
says err 'the folder contains no .onnx or .onnxtxt file'

# parts
printf '# a comment\ny = Relu(x, z)\n' >node.onnxtxt
expect 1 "$ONX" check --as node --opset =21 node.onnxtxt
says out 'node.onnxtxt:2:1: NodeProto: error: '

expect 1 "$ONX" check --only G-07 bad.onnxtxt
says out '1 error, 0 warnings'
expect 1 "$ONX" check --only ND bad.onnxtxt
says out '2 errors'
expect 0 "$ONX" check --ignore ND,G-07 bad.onnxtxt
says out '1 warning'
expect 1 "$ONX" check --ignore ND,G-07 --strict bad.onnxtxt
expect 1 "$ONX" check --only g-07 bad.onnxtxt
says out '1 error, 0 warnings'
# V-04 is reported as G-14
echo 'ir_version: 3 opset_import { version: 8 } graph { name: "g" initializer { name: "w" dims: 1 data_type: 1 float_data: 1 } }' >old.textproto
expect 1 "$ONX" check --only V-04 old.textproto
says out '[G-14]'
expect 0 "$ONX" check --ignore G-14 old.textproto
expect 2 "$ONX" check --only X-99 bad.onnxtxt
says err 'no rule or group of rules X-99'
expect 1 "$ONX" check --max-errors 1 bad.onnxtxt
says out '3 errors'
[ "$(grep -c ': error: ' out)" -eq 1 ] || fail "--max-errors 1 shows more than one error"
expect 2 "$ONX" check
expect 2 "$ONX" check missing.onnx

# parts
cat >node.textproto <<'EOF'
op_type: "Relu" input: "x" output: "y"
EOF
expect 0 "$ONX" check --as node --opset =17 --ir-version 8 node.textproto
expect 1 "$ONX" check --as node --opset ai.onnx.ml=3 node.textproto
says out '[O-10]'
expect 2 "$ONX" check --as node --opset =x node.textproto

# operator-set documents
cat >set.textproto <<'EOF'
magic: "ONNXOPSET" ir_version: 10 domain: "com.example" opset_version: 1 operator { op_type: "F" since_version: 1 status: STABLE }
EOF
cat >custom.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 21, "com.example" : 1]>
g (float[N] x) => (float[N] y) { z = com.example.F(x) y = com.example.G(z) }
EOF
expect 0 "$ONX" check custom.onnxtxt
says out '[ND-06]'
expect 1 "$ONX" check --opset-doc set.textproto custom.onnxtxt
says out '1 error'
says out 'has no operator G'

# JSON
expect 1 "$ONX" check --json bad.onnxtxt
says out '"valid": false'
says out '"rule": "ND-17"'
says out '"hint": "did you mean alpha?"'

# rules
expect 0 "$ONX" check --explain T-04
says out 'T-04  Dense tensors'
says out 'dims -1'
expect 0 "$ONX" check --explain T
[ "$(grep -c 'checked by' out)" -eq 37 ] || fail "--explain T does not print 37 rules"
expect 0 "$ONX" check --explain all --format json
[ "$(grep -c '"level"' out)" -eq 420 ] || fail "--explain all does not print 420 rules"
expect 2 "$ONX" check --explain T-99
says err 'the last rule about Dense tensors is T-37'
expect 2 "$ONX" check --explain nd-4
says err 'did you mean ND-04?'
expect 0 "$ONX" check --explain nd-04
expect 2 "$ONX" check --explain nodes
says err 'hint: '
expect 0 "$ONX" check --explain all --format markdown
same out "$ONX_SOURCE_DIR/docs/rules.md" # when stale: onx check --explain all --format markdown > docs/rules.md

# After an error of one kind full mode goes on looking for the others, and says what it cannot look at.
cat >several.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 21], producer_name: "test", producer_version: "1">
g (float[2] x, float[3] y, bool[2] c) => (float[2] z) {
  [n0] a = Relu(q)
  [n1] b = Softmax(a)
  [n2] d = Add(x, y)
  [n3] e = Transpose <perm = [0, 1]> (y)
  [n4] f = LeakyRelu <alhpa = 0.5> (c)
  [n5] z = Neg(x)
}
EOF
expect 1 "$ONX" check --full several.onnxtxt
says out '"q" is not defined'
says out 'graph.node[2] "n2" (Add): error'
says out 'graph.node[3] "n3" (Transpose): error'
says out 'alhpa'
says out 'values are not known, so rules about types'
says out 'what inference says of nodes with errors is left out'
grep -q 'node\[1\].*error' out && fail "a node is blamed for what came before it"
done_testing

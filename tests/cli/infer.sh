# onx infer: the written model, the output, exit statuses, fixed dimensions.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >model.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 18]>
g (float[N,4] x) => (y)
{
  a = Concat <axis = 0> (x, x)
  b = NonZero (a)
  bad = MatMul (a, a)
  late = Relu (bad)
  y = Transpose (a)
}
END

expect 0 "$ONX" infer model.onnxtxt -o typed.onnx
says out "5 values"
says out "lost at graph.node[1] (NonZero): a size depends on data (1 value)"
[ -s typed.onnx ] || fail "nothing was written"

expect 0 "$ONX" infer typed.onnx --list
says out "x  float[N,4]"
says out "y  float[4,2*N]"
says out "b  int64[2,unk__0]"

# A fixed size: everything follows, with 3 even that the product is wrong.
expect 0 "$ONX" infer model.onnxtxt --dim N=2 --list
says out "y  float[4,4]"
says out "bad  float[4,4]"
expect 0 "$ONX" infer model.onnxtxt --dim N=3 --json
says out '"known": 2'
says out '"op_type": "MatMul"'
says err "warning: the inner dimension is 4 in one place and 6 in another"

# What is not known is listed too, and knowledge that is lost in a function is lost there.
cat >unknown.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
g (float[N,4] x) => ()
{
  a = my.f (x)
  b = my.nobody (x)
}
<domain: "my", opset_import: ["" : 18]>
f (p) => (q) { q = Concat <axis = 3> (p, p) }
END
expect 0 "$ONX" infer unknown.onnxtxt --list
says out "b  ?"
says out "lost at graph.node[0] (f) function f node[0] (Concat): axis 3 is out of range for rank 2 (1 value)"

# Strict: an error, and nothing is written.
expect 1 "$ONX" infer model.onnxtxt --dim N=3 --strict -o none.onnx
says err "error"
[ ! -e none.onnx ] || fail "a failed inference was written"

# The same through standard output; no summary comes into the model.
expect 0 "$ONX" infer model.onnxtxt -o -
mv out piped.onnx
expect 0 "$ONX" diff piped.onnx typed.onnx

# Expressions or plain names.
expect 0 "$ONX" infer model.onnxtxt --plain-names --list
says out "y  float[4,?]"

expect 2 "$ONX" infer model.onnxtxt --dim N
expect 2 "$ONX" infer model.onnxtxt --dim N=-1
expect 2 "$ONX" infer model.onnxtxt --dim N=99999999999999999999
expect 0 "$ONX" infer model.onnxtxt --dim M=4
says err 'warning: no dimension of the model contains "M"'

# A contradiction shows what went in; the inputs of what is written follow a fixed size.
expect 0 "$ONX" infer model.onnxtxt --dim N=3 -o fixed.onnx
says err 'hint: "a" is float[6,4], "a" is float[6,4]'
expect 0 "$ONX" info fixed.onnx
says out "float[3,4]"
expect 2 "$ONX" infer nobody.onnx

# The format of the output follows --to, then the extension.
expect 0 "$ONX" infer model.onnxtxt -o - --to onnxtxt
says out "float[4, \"2*N\"] y"
expect 0 "$ONX" infer model.onnxtxt -o typed.json
[ "$(head -c 1 typed.json)" = "{" ] || fail "typed.json is no JSON"

# what was read from text has line and column: in branches, in functions that are called, and while running
cat >places.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[N, 3] x, bool c) => (float[N, 3] y)
{
  e = If (c) <
    then_branch = t () => (r) {
      r = Concat<axis = 7>(x, x)
    },
    else_branch = s () => (r2) { r2 = Relu(x) }
  >
  y = local.F(x)
}
<domain: "local", opset_import: ["" : 21]>
F (u) => (z)
{
  t = Relu(u)
  z = Concat<axis = 8>(t, t)
}
EOF
expect 0 "$ONX" infer places.onnxtxt
says err 'places.onnxtxt:6:7: graph.node[0] (If).then_branch.node[0] (Concat): warning: axis 7 is out of range'
says err 'places.onnxtxt:16:3: graph.node[1] (F) function F node[1] (Concat): warning: axis 8 is out of range'
"$ONX" check --full places.onnxtxt >out 2>err
says out 'places.onnxtxt:6:7: graph.node[0] (If).then_branch.node[0] (Concat): '
says out 'places.onnxtxt:16:3: graph.node[1] (F) function F node[1] (Concat): error: axis 8 is out of range'
cat >run.onnxtxt <<'EOF'
<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float[M] y) {
  s = Constant<value_ints = [2, -3]>()
  y = Reshape(x, s)
}
EOF
"$ONX" run --random run.onnxtxt >out 2>err
says err 'run.onnxtxt:4:3: graph.node[1] (Reshape): error: '

done_testing

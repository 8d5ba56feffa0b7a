# onx inline: bodies in place of calls give the same results, names stay apart, and what cannot be is said.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cat >calls.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
g (float[2,3] x) => (float[2,3] y, float[2,3] z)
{
  t = my.twice <by = 3.0> (x)
  y = my.twice (t)
  z = my.same (x)
}
<domain: "my", opset_import: ["" : 21, "my" : 1]>
twice <by: float = 2.0> (v) => (o) { t = Constant <value_float: float = @by> ()  s = my.same (v)  o = Mul (s, t) }
<domain: "my", opset_import: ["" : 21]>
same (v) => (v) { }
END
mkdir before after
expect 0 "$ONX" run calls.onnxtxt --random --seed 3 --output-dir before
expect 0 "$ONX" inline calls.onnxtxt -o flat.onnxtxt
expect 0 "$ONX" check --full flat.onnxtxt
grep -q "my.twice\|my.same" flat.onnxtxt && fail "calls are left"
expect 0 "$ONX" run flat.onnxtxt --random --seed 3 --output-dir after
same before/output_0.pb after/output_0.pb
same before/output_1.pb after/output_1.pb
expect 0 "$ONX" inline calls.onnxtxt -o some.onnxtxt --function my.same
grep -q "my.twice" some.onnxtxt || fail "a call is gone that should stay"
grep -q "my.same (" some.onnxtxt && fail "a call is left"
expect 2 "$ONX" inline calls.onnxtxt -o none.onnx --function my.other
says err "the model has no function my.other"
cat >itself.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 20, "my" : 1]>
g (float[2] x) => (y) { y = my.f (x) }
<domain: "my", opset_import: ["" : 20, "my" : 1]>
f (v) => (o) { o = my.f (v) }
END
expect 1 "$ONX" inline itself.onnxtxt -o none.onnx
says err "function f calls itself"
[ ! -e none.onnx ] || fail "a model was written"
done_testing

# onx run and onx test: sequences and optional values as files, passed from one model to another.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cat >make.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] a, float[3] b) => (seq(float[?]) s, optional(float[2]) o, optional(seq(float[?])) os, seq(float[?]) e, optional(float[2]) n) {
  s = SequenceConstruct (a, b)
  o = Optional (a)
  os = Optional (s)
  e = SequenceEmpty ()
  n = Optional <type: type_proto = float[2]> ()
}
END
cat >take.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18]>
g (seq(float[?]) s, optional(float[2]) o, optional(seq(float[?])) os, seq(float[?]) e, optional(float[2]) n)
=> (float[?] x, float[?] y, int64 m, int64 z, bool h, seq(float[?]) again) {
  x = ConcatFromSequence <axis = 0> (s)
  y = OptionalGetElement (o)
  t = OptionalGetElement (os)
  m = SequenceLength (t)
  z = SequenceLength (e)
  h = OptionalHasElement (n)
  again = Identity (t)
}
END
expect 0 "$ONX" run make.onnxtxt --random
says out "s  sequence of 2"
says out "n  optional of 0"
expect 0 "$ONX" run make.onnxtxt --random --output-dir made
inputs="--input s=made/output_0.pb --input o=made/output_1.pb --input os=made/output_2.pb --input e=made/output_3.pb --input n=made/output_4.pb"
# shellcheck disable=SC2086
expect 0 "$ONX" run take.onnxtxt $inputs --output-dir taken
# shellcheck disable=SC2086
expect 0 "$ONX" run take.onnxtxt $inputs
says out "x  float[5]"
says out "y  float[2]"
says out "m  int64[] 2"
says out "z  int64[] 0"
says out "h  bool[] false"
expect 1 "$ONX" run make.onnxtxt --random --npy --output-dir arrays
says err "only tensors can be written as NumPy arrays"
# a test case: inputs and outputs are lists
mkdir -p case/test_data_set_0
expect 0 "$ONX" convert take.onnxtxt case/model.onnx
for i in 0 1 2 3 4; do cp made/output_$i.pb case/test_data_set_0/input_$i.pb; done
for i in 0 1 2 3 4 5; do cp taken/output_$i.pb case/test_data_set_0/output_$i.pb; done
expect 0 "$ONX" test case
says out "1 passed, 0 failed"
cp made/output_3.pb case/test_data_set_0/output_5.pb
expect 1 "$ONX" test case
says out "0 passed, 1 failed"
done_testing

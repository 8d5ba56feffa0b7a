# onx show --plan: a line per step, with its kernel and its rewrite rules, and the steps that execute the other nodes.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cat >n.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 24]>
g (float[N, 3] x, bool[N] keep) => (float[N, 2] y, float[M, 3] z)
<float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {1, 2}> {
  [unused] u = Neg (x)
  c = Add (b, b)
  [product] m = MatMul (x, w)
  [bias] a = Add (m, c)
  [gate] s = Sigmoid (a)
  [swish] y = Mul (a, s)
  [some] z = Compress <axis = 0> (x, keep)
}
done_testing

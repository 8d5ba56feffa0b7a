# onx grad: gradients as plain ONNX, nodes Gradient replaced, and what cannot be is said.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cat >model.onnxtxt <<'END'
<ir_version: 7, opset_import: ["" : 11]>
g (float[2,3] x, float[3] far) => (float[] loss) <float[3,2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {1, -40}>
{
  t = Gemm (x, w, b)
  y = Relu (t)
  loss = ReduceSum <keepdims = 0> (y)
}
END
expect 0 "$ONX" grad model.onnxtxt -o out.onnxtxt --of loss --wrt w,b --wrt x --wrt far
expect 0 "$ONX" check --full --strict out.onnxtxt
expect 0 "$ONX" run out.onnxtxt -i x='[[1,2,3],[1,1,1]]' -i far='[1,2,3]'
says out 'loss  float[] 33'
says out 'w_grad  float[3,2] 2 0 3 0'
says out 'b_grad  float[2] 2 0'
says out 'x_grad  float[2,3] 1 3 5 1'
says out 'far_grad  float[3] 0 0 0'
expect 0 "$ONX" grad model.onnxtxt -o only.onnxtxt --of loss --wrt b --only
grep -qF "float[2] b_grad" only.onnxtxt || fail "b_grad is not the output"
grep -q "loss = " only.onnxtxt && fail "what is not needed is left"
cat >asks.onnxtxt <<'END'
<ir_version: 7, opset_import: ["" : 12, "ai.onnx.preview.training" : 1]>
g (float a, float b) => (float da, float d2a)
{
  c = Mul (a, a)
  d = Mul (c, b)
  da = ai.onnx.preview.training.Gradient <xs = ["a"], zs = ["b"], y = "d"> (a, b)
  d2a = ai.onnx.preview.training.Gradient <xs = ["a"], zs = ["b"], y = "da"> (a, b)
}
END
expect 0 "$ONX" run asks.onnxtxt -i a=3 -i b=5
says out 'da  float[] 30'
says out 'd2a  float[] 10'
expect 0 "$ONX" grad asks.onnxtxt -o plain.onnxtxt
grep -q "preview.training.Gradient" plain.onnxtxt && fail "Gradient is left"
expect 0 "$ONX" check --full plain.onnxtxt
expect 0 "$ONX" run plain.onnxtxt -i a=3 -i b=5
says out 'd2a  float[] 10'
# A session that cannot derive says so.
cat >no_rule.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18, "ai.onnx.preview.training" : 1]>
g (float[3] x) => (float[3] dx)
{
  u, i = Unique <sorted = 1> (x)
  y = ReduceSum <keepdims = 0> (u)
  dx = ai.onnx.preview.training.Gradient <xs = ["x"], y = "y"> (x)
}
END
expect 1 "$ONX" run no_rule.onnxtxt -i x='[1,2,3]'
says err 'no gradient of Unique'
# Gradients of gradients would make exponentially many nodes, and many of them look at the whole graph each.
for given in a b; do
    awk -v given=$given 'BEGIN {
        print "<ir_version: 9, opset_import: [\"\" : 18, \"ai.onnx.preview.training\" : 1]>"
        print "g (float a, float b) => (float d40) { d0 = Exp (a)"
        for (i = 1; i <= 40; i++)
            printf "e%d = ai.onnx.preview.training.Gradient <xs = [\"a\"], y = \"d%d\"> (%s)  d%d = Mul (e%d, d%d)\n", \
                i, i - 1, given, i, i, i - 1
        print "}" }' >grows.onnxtxt
    expect 1 "$ONX" grad grows.onnxtxt -o x.onnx
    says err 'gradients of gradients grow'
    expect 1 "$ONX" run grows.onnxtxt -i a=1 -i b=1
    says err 'gradients of gradients grow'
done
expect 2 "$ONX" grad model.onnxtxt -o x.onnx --of nope --wrt x
says err 'no value nope'
expect 2 "$ONX" grad model.onnxtxt -o x.onnx --of loss --wrt nope
expect 2 "$ONX" grad model.onnxtxt -o x.onnx --of loss
says err "belong together"
expect 2 "$ONX" grad model.onnxtxt --of loss --wrt x
cat >none.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18]>
g (float[3] x) => (float[] y) { u, i = Unique <sorted = 1> (x)  y = ReduceSum <keepdims = 0> (u) }
END
expect 1 "$ONX" grad none.onnxtxt -o x.onnx --of y --wrt x
says err 'graph.node[0] (Unique)'
says err 'no gradient of Unique'
[ ! -e x.onnx ] || fail "a file was written"
done_testing

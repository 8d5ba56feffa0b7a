# onx grad: gradients as plain ONNX, replacement of Gradient nodes, and errors.
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
# Other runtimes have DepthToSpace for floats alone, so nothing counts elements by it.
cat >depth.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18]>
g (float[1,4,1,2] x) => (float[] loss) <float[1,1,2,4] k = {1, 2, 3, 4, 5, 6, 7, 8}>
{
  d = DepthToSpace <blocksize = 2, mode = "CRD"> (x)
  p = Mul (d, k)
  loss = ReduceSum <keepdims = 0> (p)
}
END
expect 0 "$ONX" grad depth.onnxtxt -o out.onnxtxt --of loss --wrt x --only
[ "$(grep -c DepthToSpace out.onnxtxt)" = 1 ] || fail "DepthToSpace stands in its gradient, too"
expect 0 "$ONX" run out.onnxtxt -i x='[[[[0,0]],[[0,0]],[[0,0]],[[0,0]]]]' --json --full
says out '[1, 3]' # then [2, 4], [5, 7], [6, 8]: the elements of k, gathered by channel
# What Gradient names in its attributes is followed: in copies of a function, under other names and prefixes, in other types.
cat >slope.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1, "own" : 1]>
g (float[2] p, float[2] q) => (float[2] dp, float[2] dq) { dp = own.slope (p)  dq = own.slope (q) }
<domain: "own", opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
slope (x) => (dx)
{
  u = Mul (x, x)
  s = ReduceSum <keepdims = 0> (u)
  dx = ai.onnx.preview.training.Gradient <xs = ["x"], y = "s"> (x)
}
END
expect 0 "$ONX" inline slope.onnxtxt -o plain.onnxtxt
expect 0 "$ONX" check --full plain.onnxtxt
expect 0 "$ONX" run plain.onnxtxt -i p='[1,2]' -i q='[3,4]'
says out 'dp  float[2] 2 4'
says out 'dq  float[2] 6 8'
cat >inner.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
g (float[2] x) => (float[2] du, float[2] y) <float[2] w = {1, 1}>
{
  t = Mul (x, w)
  u = Neg (t)
  v = Neg (u)
  i = Identity (v)
  y = Mul (i, i)
  s = ReduceSum <keepdims = 0> (y)
  du = ai.onnx.preview.training.Gradient <xs = ["u"], y = "s"> (u)
}
END
slope_is() { # FILE NAME: the gradient is what it was
    expect 0 "$ONX" run "$1" -i x='[1,2]'
    says out "$2  float[2] -2 -4"
}
slope_is inner.onnxtxt du
expect 0 "$ONX" edit inner.onnxtxt -o named.onnxtxt --rename u=z --rename s=loss
slope_is named.onnxtxt du
grep -q 'xs = \["z"\], y = "loss"' named.onnxtxt || fail "names in attributes stay behind"
expect 0 "$ONX" merge inner.onnxtxt inner.onnxtxt -o both.onnxtxt --side-by-side --prefix2 b/
expect 0 "$ONX" run both.onnxtxt -i x='[1,2]' -i b/x='[3,4]'
says out 'du  float[2] -2 -4'
says out 'b/du  float[2] -6 -8'
expect 0 "$ONX" simplify inner.onnxtxt -o small.onnxtxt
says err 'a node Gradient computes derivatives'
slope_is small.onnxtxt du
expect 0 "$ONX" precision inner.onnxtxt -o half.onnxtxt --to float16 --keep-io
slope_is half.onnxtxt du
expect 0 "$ONX" compress inner.onnxtxt -o less.onnxtxt
slope_is less.onnxtxt du
expect 0 "$ONX" extract inner.onnxtxt -o tail.onnxtxt --inputs t --outputs du
expect 0 "$ONX" run tail.onnxtxt -i t='[1,2]'
says out 'du  float[2] -2 -4'
# Parts that would have the node and not all that it is about are refused.
expect 1 "$ONX" extract inner.onnxtxt -o part.onnxtxt --inputs v --outputs du
says err 'graph.node[2] (Neg): error: the node is between values that another node of a part names'
expect 1 "$ONX" extract inner.onnxtxt -o part.onnxtxt --split 3
says err 'between values that another node of a part names'
awk 'BEGIN {
    print "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>"
    print "g (float[2] x) => (float[2] d0, float[2] d1, float[2] d2) {"
    for (i = 0; i < 3; i++) {
        printf "a%d = Mul (x, x)  b%d = Neg (a%d)  c%d = Exp (b%d)  s%d = ReduceSum <keepdims = 0> (c%d)\n", i, i, i, i, i, i, i
        printf "d%d = ai.onnx.preview.training.Gradient <xs = [\"x\"], y = \"s%d\"> (x)\n", i, i
    }
    print "}" }' >thrice.onnxtxt
expect 0 "$ONX" outline thrice.onnxtxt -o once.onnxtxt
expect 0 "$ONX" compare thrice.onnxtxt once.onnxtxt -i x='[0.5,1]'
# Recomputation: the same gradients, to the bit, of a deep chain in less memory.
awk 'BEGIN {
    print "<ir_version: 8, opset_import: [\"\" : 18]>"
    printf "g (float[512,16] x, float skip, float[16,16] w0"
    for (i = 1; i < 48; i++) printf ", float[16,16] w%d", i
    print ") => (float loss) { t0 = Mul (x, skip)"
    for (i = 0; i < 48; i++)
        printf "m%d = MatMul (t%d, w%d)  a%d = Tanh (m%d)  t%d = Add (a%d, %s)\n", i, i, i, i, i, i + 1, i, \
            i == 40 ? "t20" : i % 4 ? "x" : "t" i
    print "loss = ReduceMean <keepdims = 0> (t48) }" }' >deep.onnxtxt
weights=$(awk 'BEGIN { for (i = 0; i < 48; i++) printf "%sw%d", i ? "," : "", i }')
running() { # FILE: bytes that a run takes beside the model and its plan
    expect 0 "$ONX" bench "$1" --seconds 0.01 --threads 1 --json
    awk -F '[:,]' '/"planned_bytes"/ { planned = $2 }  /"running_bytes"/ { print $2 - planned }' out
}
expect 0 "$ONX" grad deep.onnxtxt -o all.onnx --of loss --wrt "$weights" --wrt skip --only
kept=$(running all.onnx)
[ "$kept" -gt 3000000 ] || fail "a run that keeps 96 values of 32 KiB takes $kept bytes"
for checkpoint in sqrt 5; do
    expect 0 "$ONX" grad deep.onnxtxt -o lean.onnx --of loss --wrt "$weights" --wrt skip --only --checkpoint "$checkpoint"
    expect 0 "$ONX" check --full lean.onnx
    lean=$(running lean.onnx)
    # half of those values; what kernels work in comes on top of either, and depends on the build
    [ $((kept - lean)) -gt 1572864 ] || fail "--checkpoint $checkpoint takes $lean bytes of $kept"
    expect 0 "$ONX" compare all.onnx lean.onnx --atol 0 --rtol 0 --threads 1
done
expect 0 "$ONX" grad deep.onnxtxt -o lean.onnx --of loss --wrt "$weights" --wrt skip --only --checkpoint 1
expect 0 "$ONX" diff all.onnx lean.onnx
# Sizes decide where the cuts are: most of this is made at the beginning, and MaxPool needs but the shape of what it reads.
awk 'BEGIN {
    print "<ir_version: 8, opset_import: [\"\" : 18]>"
    printf "g (float[4,3,64,64] x, float[16,3,3,3] w"
    for (i = 0; i < 10; i++) printf ", float[16,16,3,3] w%d", i
    print ") => (float loss) <float half = {0.5}, bool yes = {1}> { [\"first\"] c = Conv <pads = [1,1,1,1]> (x, w) r = Relu (c)"
    print "d, m = Dropout <seed = 7> (r, half, yes) t0 = MaxPool <kernel_shape = [2,2], strides = [2,2]> (d)"
    for (i = 0; i < 10; i++)
        printf "c%d = Conv <pads = [1,1,1,1]> (t%d, w%d) a%d = Tanh (c%d) t%d = Add (a%d, t%d)\n", i, i, i, i, i, i + 1, i, i
    print "loss = ReduceMean <keepdims = 0> (t10) }" }' >pooled.onnxtxt
pooled="w,w0,w1,w2,w3,w4,w5,w6,w7,w8,w9"
expect 0 "$ONX" grad pooled.onnxtxt -o all.onnx --of loss --wrt "$pooled" --only
expect 0 "$ONX" grad pooled.onnxtxt -o lean.onnx --of loss --wrt "$pooled" --only --checkpoint sqrt
kept=$(running all.onnx)
lean=$(running lean.onnx)
[ $((kept - lean)) -gt 2097152 ] || fail "--checkpoint sqrt takes $lean bytes of $kept"
expect 0 "$ONX" compare all.onnx lean.onnx --atol 0 --rtol 0 --threads 1
expect 0 "$ONX" show lean.onnx
[ "$(grep -c "Dropout" out)" -eq 1 ] || fail "random numbers are drawn again"
[ "$(grep -o '\[first[a-z_]*\]' out | sort -u | grep -c .)" -eq 2 ] || fail "a copy of a node has the name of the node"
grep -q ' d_again = Where' out || fail "what Dropout gives is kept"
# Gradients that all get one name are no reason to count too few of them.
cat >alike.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18, "ai.onnx.preview.training" : 1]>
g (float[64,64] x, float[64,64] w) => (float[64,64] d)
{
  a = Tanh (x)
  b = MatMul (a, w)
  c = Tanh (b)
  e = MatMul (c, w)
  h = Tanh (e)
  y = ReduceSum <keepdims = 0> (h)
  d, d, d = ai.onnx.preview.training.Gradient <xs = ["x", "w", "b"], y = "y"> (x, w, b)
}
END
expect 0 "$ONX" grad alike.onnxtxt -o alike.onnx --checkpoint sqrt
expect 1 "$ONX" check alike.onnx
# What draws random numbers is not run again, and what it gave is kept.
cat >drawn.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18]>
g (float[64] x) => (float loss) <float ratio = {0.5}, bool yes = {1}>
{
  a = Tanh (x)
  b = Dropout (a, ratio, yes)
  c = Tanh (b)
  d = Tanh (c)
  e = Tanh (d)
  f = Tanh (e)
  g = Tanh (f)
  loss = ReduceSum <keepdims = 0> (g)
}
END
expect 0 "$ONX" grad drawn.onnxtxt -o drawn.onnx --of loss --wrt x --checkpoint 2
expect 0 "$ONX" show drawn.onnx
[ "$(grep -c "Dropout" out)" -eq 1 ] || fail "random numbers are drawn again"
says out 'a_again = Tanh(x)'
expect 0 "$ONX" grad asks.onnxtxt -o plain.onnxtxt --checkpoint 2
expect 0 "$ONX" run plain.onnxtxt -i a=3 -i b=5
says out 'd2a  float[] 10'
sed 's/<ir_version: 7,/<ir_version: 7, metadata_props: ["onx.checkpoint" : "2"],/' asks.onnxtxt >property.onnxtxt
expect 0 "$ONX" run property.onnxtxt -i a=3 -i b=5
says out 'd2a  float[] 10'
sed -i 's/: "2"\]/: "many"]/' property.onnxtxt
expect 1 "$ONX" run property.onnxtxt -i a=3 -i b=5
says err 'onx.checkpoint is "many", which is neither sqrt nor a number of segments'
expect 2 "$ONX" grad asks.onnxtxt -o plain.onnxtxt --checkpoint none
# A session that cannot derive says so.
cat >no_rule.onnxtxt <<'END'
<ir_version: 13, opset_import: ["" : 26, "ai.onnx.preview.training" : 1]>
g (float[3] x) => (float[3] dx)
{
  u = BitCast <to = 1> (x)
  y = ReduceSum <keepdims = 0> (u)
  dx = ai.onnx.preview.training.Gradient <xs = ["x"], y = "y"> (x)
}
END
expect 1 "$ONX" run no_rule.onnxtxt -i x='[1,2,3]'
says err 'no gradient of BitCast'
# Many nodes Gradient that have nothing to do with each other are no gradients of gradients.
awk 'BEGIN {
    print "<ir_version: 9, opset_import: [\"\" : 18, \"ai.onnx.preview.training\" : 1]> g (float x) => (float d599) {"
    for (i = 0; i < 600; i++) {
        printf "a%d = Exp (x)  b%d = Mul (a%d, a%d)\n", i, i, i, i
        printf "d%d = ai.onnx.preview.training.Gradient <xs = [\"x\"], y = \"b%d\"> (x)\n", i, i
    }
    print "}" }' >many.onnxtxt
expect 0 "$ONX" grad many.onnxtxt -o x.onnxtxt
expect 0 "$ONX" run x.onnxtxt -i x=0
says out 'd599  float[] 2'
rm x.onnxtxt
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
    says err 'each higher order multiplies them'
    expect 1 "$ONX" run grows.onnxtxt -i a=1 -i b=1
    says err 'each higher order multiplies them'
done
expect 2 "$ONX" grad model.onnxtxt -o x.onnx --of nope --wrt x
says err 'no value nope'
expect 2 "$ONX" grad model.onnxtxt -o x.onnx --of loss --wrt nope
expect 2 "$ONX" grad model.onnxtxt -o x.onnx --of loss
says err "must be given together"
expect 2 "$ONX" grad model.onnxtxt --of loss --wrt x
cat >none.onnxtxt <<'END'
<ir_version: 13, opset_import: ["" : 26]>
g (float[3] x) => (float[] y) { u = BitCast <to = 1> (x)  y = ReduceSum <keepdims = 0> (u) }
END
expect 1 "$ONX" grad none.onnxtxt -o x.onnx --of y --wrt x
says err 'graph.node[0] (BitCast)'
says err 'no gradient of BitCast'
[ ! -e x.onnx ] || fail "a file was written"
# A clip without its value field is 0: nothing passes.
cat >clip.textproto <<'END'
ir_version: 8 opset_import { version: 18 } graph { name: "g"
  node { op_type: "RNN" input: "x" input: "w" input: "r" output: "" output: "y"
    attribute { name: "hidden_size" type: INT i: 1 } attribute { name: "clip" type: FLOAT } }
  initializer { name: "w" data_type: 1 dims: 1 dims: 1 dims: 1 float_data: 1 }
  initializer { name: "r" data_type: 1 dims: 1 dims: 1 dims: 1 float_data: 1 }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } dim { dim_value: 1 } dim { dim_value: 1 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } dim { dim_value: 1 } dim { dim_value: 1 } } } } } }
END
expect 0 "$ONX" grad clip.textproto -o out.onnxtxt --of y --wrt x
expect 0 "$ONX" run out.onnxtxt -i x='[[[0.5]]]'
says out 'y  float[1,1,1] 0'
says out 'x_grad  float[1,1,1] 0'
done_testing

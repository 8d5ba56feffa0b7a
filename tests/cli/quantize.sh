# onx quantize and onx compress: every form of every operator, nodes that are not quantized and why, and ranges from data.
. "$ONX_SOURCE_DIR/tests/lib.sh"

# A network with each operator that can be quantized, in all forms: weights by column and by row, biases, filters, and one in a
# subgraph. The weights follow a formula in which no two rows are equal.
awk 'BEGIN {
    print "<ir_version: 10, opset_import: [\"\" : 17]> g (float[1, 4, 8, 8] x, bool c) => (float[1, 12] y, float[1, 6] z)"
    print "<" tensor("w", "6, 4, 3, 3", 216, 0.05) "," tensor("b", "6", 6, 0.2) "," tensor("d", "6, 1, 3, 3", 54, 0.2) ","
    print tensor("m", "6, 8", 48, 0.3) "," tensor("n", "12, 8", 96, 0.3) "," tensor("nb", "12", 12, 0.1) ","
    print tensor("p", "8, 6", 48, 0.2) ">"
    print "{ v = Conv<pads = [1, 1, 1, 1]>(x, w, b)  r = Relu(v)"
    print "e = Conv<group = 6, pads = [1, 1, 1, 1]>(r, d)  s = Sigmoid(e)  a = GlobalAveragePool(s)  f = Flatten(a)"
    print "h = MatMul(f, m)  t = Tanh(h)  y = Gemm<transB = 1>(t, n, nb)"
    print "z = If(c)<then_branch = t1 () => (q) { q = MatMul(t, p) }, else_branch = t2 () => (k) { k = Identity(f) }> }"
}
function tensor(name, dims, n, scale,    i, text) {
    text = "float[" dims "] " name " = {"
    for (i = 0; i < n; i++) text = text (i ? ", " : "") scale * ((i * 7919 + n * 31) % 103 / 51.5 - 0.8)
    return text "}"
}' >net.onnxtxt
expect 0 "$ONX" check --full net.onnxtxt

# quantised ERROR OPTION...: valid, and outputs depart by no more than that part of their size
quantised() {
    bound=$1
    shift
    rm -f q.onnx
    expect 0 "$ONX" quantize net.onnxtxt -o q.onnx --table --explain --samples 4 "$@"
    cp out said
    awk -v bound="$bound" '/ outputs$/ { found = 1; bad = !($1 <= bound) } END { exit !found || bad }' said ||
        fail "$*: outputs depart by more than $bound: $(grep ' outputs$' said)"
    expect 0 "$ONX" check --full --strict q.onnx
    expect 0 "$ONX" run q.onnx --random -i c=true
    "$ONX" show q.onnx >q.txt
}
quantised 0.05 --mode dynamic
says q.txt ConvInteger
says q.txt MatMulInteger
[ "$(grep -c DynamicQuantizeLinear q.txt)" -ge 4 ] || fail "inputs are not quantised"
quantised 0.1 --mode dynamic --per-tensor
for method in minmax percentile entropy mse; do
    quantised 0.3 --mode static --calibrate $method
    says q.txt " QuantizeLinear"
    says said 'graph.node[0] (MatMul): MatMul: int8 by' # in the branch
    quantised 0.3 --mode static --form qlinear --calibrate $method
    says q.txt QLinearConv
    says q.txt QLinearMatMul
done
quantised 0.1 --mode static --form qlinear --per-tensor
quantised 0.1 --mode static --per-tensor
quantised 0.02 --mode weights
quantised 0.02 --mode weights --weight-type uint8 --block-size 4
quantised 0.1 --mode weights --weight-type float8
says q.txt float8e4m3fn
quantised 0.3 --mode weights --weight-type int4 --block-size 4
says q.txt 'int4[6, 8]'
says q.txt ': 21]'
quantised 0.3 --mode weights --weight-type uint4 --block-size 2
quantised 0.4 --mode weights --weight-type int4
quantised 0.3 --mode weights --weight-type float4 --block-size 4
says q.txt ': 23]'
quantised 0.3 --mode weights --weight-type int4 --block-size 4 --feedback

# error feedback does better than rounding, over the data that it has seen
awk 'BEGIN {
    print "<ir_version: 10, opset_import: [\"\" : 21]> g (float[48, 32] x) => (float[48, 16] y)"
    printf "<float[32, 16] w = {"
    for (i = 0; i < 512; i++) printf "%s%g", i ? ", " : "", (i * 7919 % 103) / 103 - 0.5
    print "}> { y = MatMul(x, w) }"
}' >product.onnxtxt
error_of() {
    "$ONX" quantize product.onnxtxt -o q.onnx --table --samples 4 --mode weights --weight-type int4 --block-size 0 "$@" 2>err |
        awk '/ outputs$/ { print $1 }'
}
awk -v a="$(error_of)" -v b="$(error_of --feedback)" 'BEGIN { exit !(b > 0 && b <= a) }' ||
    fail "feedback: $(error_of --feedback), rounding: $(error_of)"

# a weight that several layers read is there once, whether they read it as it is or transposed
cat >shared.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]> g (float[2, 3] x, float[1, 1, 4] i) => (float[2, 3] y, float[1, 1, 4] k)
<float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[1, 1, 1] f = {3}> {
  a = MatMul(x, w)
  b = MatMul(a, w)
  c = Gemm<transB = 1>(b, w)
  y = Gemm<transB = 1>(c, w)
  j = Conv(i, f)
  k = Conv(j, f)
}
END
for mode in "dynamic" "static" "static --form qlinear" "weights"; do
    # shellcheck disable=SC2086
    expect 0 "$ONX" quantize shared.onnxtxt -o q.onnx --mode $mode
    expect 0 "$ONX" check --full q.onnx
    expect 0 "$ONX" compare shared.onnxtxt q.onnx --rtol 0.1 --atol 0.1
    "$ONX" show q.onnx >q.txt
    [ "$(grep -o 'int8\[3, 3\] [^ ]* = ' q.txt | wc -l)" -eq 2 ] || fail "$mode: matrices: $(grep -o 'int8\[[^ ]* [^ ]* =' q.txt)"
    [ "$(grep -o 'int8\[1, 1, 1\] [^ ]* = ' q.txt | wc -l)" -eq 1 ] || fail "$mode: filters: $(cat q.txt)"
done

# what is to stay
quantised 0.05 --mode dynamic --block-op Conv
says said "it was left out"
grep -q ConvInteger q.txt && fail "a convolution was quantised"
expect 0 "$ONX" quantize net.onnxtxt -o q.onnx --mode weights --weight-type int4 --samples 2 --max-error 0.01
says out "left in float"
awk '/ outputs$/ { exit !($1 <= 0.01) }' out || fail "more than --max-error"
expect 2 "$ONX" quantize net.onnxtxt -o none.onnx --mode dynamic --only nothing
says err "no node has a name like nothing"

# weights that others use, that the caller may give, that are zero, tiny or not finite; twice
cat >odd.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g (float[2, 2] x, float[2, 2] given = {1, 2, 3, 4}) => (float[2, 2] a, float[2, 2] b, float[2, 2] c, float[2, 2] d, float[2, 2] e)
<float[2, 2] w = {1, 2, 3, 4}, float[2, 2] zero = {0, 0, 0, 0}, float[2, 2] tiny = {1e-42, 0, -1e-42, 1e-41}> {
  a = MatMul(x, w)
  b = Add(a, w)
  c = MatMul(x, given)
  d = MatMul(x, zero)
  e = MatMul(x, tiny)
}
END
for mode in "dynamic" "static" "static --form qlinear" "weights" "weights --weight-type uint4" "weights --weight-type float8"; do
    # shellcheck disable=SC2086
    expect 0 "$ONX" quantize odd.onnxtxt -o q.onnx --mode $mode --explain
    says out "its weight is no constant of type float"
    expect 0 "$ONX" check --full q.onnx
    expect 0 "$ONX" compare odd.onnxtxt q.onnx --rtol 0.2 --atol 0.2
    "$ONX" show q.onnx >q.txt
    says q.txt "float[2, 2] w"
    # shellcheck disable=SC2086
    expect 0 "$ONX" quantize q.onnx -o again.onnx --mode $mode
    expect 0 "$ONX" check --full again.onnx
done
printf '%s\n' '<ir_version: 10, opset_import: ["": 21]>' 'g (float[1, 4] x) => (float[1, 2] y)' \
    '<float[4, 2] w = {nan, 1, inf, -inf, 0.5, 2, 3, 4}> { y = MatMul(x, w) }' >bad.onnxtxt
expect 0 "$ONX" quantize bad.onnxtxt -o q.onnx --mode dynamic
says err "3 elements of the weight are not finite"
# NaN in data is passed over, and said; data with nothing else gives no range
nan=$(awk 'BEGIN {
    printf "[["
    for (a = 0; a < 4; a++) {
        printf a ? ",[" : "["
        for (b = 0; b < 8; b++) printf "%s[nan,nan,nan,nan,nan,nan,nan,nan]", b ? "," : ""
        printf "]"
    }
    print "]]"
}')
expect 0 "$ONX" quantize net.onnxtxt -o q.onnx --mode static --explain --data "x=$nan"
says err "not finite"
says out "the range of its input is not known"
awk 'BEGIN {
    print "<ir_version: 8, opset_import: [\"\": 21]> g (float[1, 2] x) => (float[1, 2] y) <float[2, 2] w = {1, 0, 0, 1}> { a0 = Div(x, x)"
    for (i = 0; i < 5000; i++) printf "a%d = MatMul(a%d, w)\n", i + 1, i
    print "y = Relu(a5000) }" }' >chain.onnxtxt
expect 0 "$ONX" quantize chain.onnxtxt -o q.onnx --mode static --data "x=[[0,0]]"
[ "$(wc -l <err)" -lt 20 ] || fail "$(wc -l <err) warnings"
says err "4993 more values have such elements"
mkdir -p empty
expect 2 "$ONX" quantize net.onnxtxt -o none.onnx --mode static --data empty
says err "no sample"
for wrong in "" "--mode none" "--mode dynamic --weight-type int4" "--mode weights --form qdq" "--mode dynamic --calibrate entropy" \
    "--mode static --percentile 0.2" "--mode dynamic --feedback"; do
    # shellcheck disable=SC2086
    expect 2 "$ONX" quantize net.onnxtxt -o none.onnx $wrong
done
[ ! -e none.onnx ] || fail "a model was written"

# ---- compress ----
cat >twice.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g (float[2] x, float[2] i = {1, 2}) => (float[2] y, float[2] z, float[2] u)
<float[2] a = {1, 2}, float[2] b = {1, 2}, float[1, 2] c = {1, 2}, int32[2] d = {1065353216, 1073741824}, float[2] o = {1, 2}, int64[1] t = {2}> {
  p = Add(x, a)
  q = Mul(p, b)
  r = Add(q, c)
  k = Cast<to = 1>(d)
  n = Add(q, k)
  y = Add(n, i)
  z = Mul(x, o)
  u = Reshape(r, t)
}
END
expect 0 "$ONX" compress twice.onnxtxt -o less.onnx --explain
says out "b: share"
says out "o: share"
[ "$(grep -c share out)" -eq 2 ] || fail "$(cat out)"
expect 0 "$ONX" check --full less.onnx
expect 0 "$ONX" compare twice.onnxtxt less.onnx --rtol 0 --atol 0

# A factor without its value field is 0, so the node is not plain.
cat >zero.textproto <<'END'
ir_version: 8 opset_import { version: 17 } graph { name: "g"
  node { op_type: "Gemm" input: "x" input: "w" output: "y" attribute { name: "alpha" type: FLOAT } }
  initializer { name: "w" data_type: 1 dims: 2 dims: 2 float_data: [1, 2, 3, 4] }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } dim { dim_value: 2 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } dim { dim_value: 2 } } } } } }
END
expect 0 "$ONX" quantize zero.textproto -o q.onnx --mode dynamic --explain
says out "its factors are not 1"
# products in the bodies of control flow and in functions are observed and quantized, also those of 16-bit floats
cat >bodies.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21, "local": 1]>
g (float[2, 3] x, bool c, int64 n) => (float[2, 3] y, float[2, 3] z, float[3, 2, 3] s, float[2, 3] f)
<float[3, 3] w = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, 0.8, 0.9}> {
  y = If (c) <
    then_branch = t () => (float[2, 3] a) { a = MatMul (x, w) },
    else_branch = e () => (float[2, 3] b) { r = Relu (x) b = MatMul (r, w) }>
  go = Constant <value = bool {1}> ()
  z, all = Loop (n, go, x) <body = l (int64 i, bool cc, float[2, 3] v) => (bool co, float[2, 3] vo, float[2, 3] o) {
    co = Identity (cc)
    vo = MatMul (v, w)
    o = Identity (vo)
  }>
  s = Scan (all) <num_scan_inputs = 1, body = k (float[2, 3] one) => (float[2, 3] p) { p = MatMul (one, w) }>
  f = local.Twice (x, w)
}
<domain: "local", opset_import: ["": 21]>
Twice (a, b) => (d) { h = MatMul (a, b) d = MatMul (h, b) }
END
inside() { # TYPE OPTION...
    type=$1
    shift
    expect 0 "$ONX" precision bodies.onnxtxt -o typed.onnx --to $type --keep-io
    expect 0 "$ONX" quantize typed.onnx -o q.onnx --samples 2 --range n=3:3 --explain --table "$@"
    cp out said
    [ "$(grep -c ': MatMul: int8' said)" -eq 6 ] || fail "$* of $type quantizes $(grep -c ': MatMul: int8' said) products of 6"
    awk '/ outputs$/ { found = 1; bad = !($1 <= 0.1) } END { exit !found || bad }' said || fail "$* of $type is not close"
    expect 0 "$ONX" check --full q.onnx
}
inside float32 --mode static --calibrate percentile
inside float32 --mode static --form qlinear
inside float32 --mode weights --feedback
inside float16 --mode static
inside float16 --mode static --form qlinear
inside float16 --mode dynamic
inside float16 --mode weights
inside bfloat16 --mode static
# one layer of a body can stay in float, and the others do not
expect 0 "$ONX" quantize bodies.onnxtxt -o q.onnx --mode static --samples 2 --range n=3:3 --range c=1:1 --table --max-error 0.012
says out ", left in float"
grep -q 'MatMul)$' out || fail "every product is left in float"

done_testing

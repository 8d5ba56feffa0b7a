# onx retarget: small models give the same results with other versions of the operator sets, nodes that cannot be converted are
# listed, and metadata of the model is kept.
. "$ONX_SOURCE_DIR/tests/lib.sh"

# moves NAME SOURCE TARGET...: the model NAME.onnxtxt gives the same outputs at each target, and back at its own version.
moves() {
    name=$1 source=$2
    shift 2
    rm -rf before && mkdir before
    expect 0 "$ONX" run "$name.onnxtxt" --random --seed 5 --output-dir before
    for target; do
        expect 0 "$ONX" retarget "$name.onnxtxt" -o there.onnx --opset "$target"
        expect 0 "$ONX" check --full there.onnx
        "$ONX" info there.onnx >out
        says out "ai.onnx $target"
        rm -rf after && mkdir after
        expect 0 "$ONX" run there.onnx --random --seed 5 --output-dir after
        for file in before/*; do
            expect 0 "$ONX" diff "$file" "after/${file#before/}" --as tensor
        done
        expect 0 "$ONX" retarget there.onnx -o back.onnx --opset "$source"
        expect 0 "$ONX" check --full back.onnx
    done
}

cat >old.onnxtxt <<'END'
<ir_version: 3, opset_import: ["" : 6]>
g (float[2,3,4] x, float[3] b) => (float[2,3,4] y, float[3,4] s)
{
  a = Add <broadcast = 1, axis = 1> (x, b)
  c = Clip <min = 0.25, max = 0.75> (a)
  n = Neg (c)
  m = Sub (n, a)
  y = Softmax <axis = 1> (m)
  r = ReduceSum <axes = [0]> (c)
  s = Squeeze <axes = [0]> (r)
}
END
moves old 6 7 8 9 11 13 18 21 28

# Windows that start in the padding count until a version that each pool has for itself, and what windows have beyond it.
pool() { # operator, version, width, attributes
    cat >pool.onnxtxt <<END
<ir_version: 8, opset_import: ["" : $2]>
g (float[1,2,$3] x) => (float[1,2,Q] y) { y = $1 <ceil_mode = 1, $4> (x) }
END
}
# changes OPERATOR FROM TO WIDTH OTHER ATTRIBUTES WHY: not of the one width, of the other one
changes() {
    pool "$1" "$2" "$4" "$6"
    expect 1 "$ONX" retarget pool.onnxtxt -o there.onnx --opset "$3"
    says err "$1 cannot be newer: a last window $7"
    pool "$1" "$3" "$4" "$6"
    expect 1 "$ONX" retarget pool.onnxtxt -o there.onnx --opset "$2"
    says err "$1 cannot be older: "
    pool "$1" "$2" "$5" "$6"
    moves pool "$2" "$3"
}
thin='kernel_shape = [1], strides = [3], pads = [2, 0]'
changes MaxPool 11 12 6 5 "$thin" "starts in the padding, or may"
changes AveragePool 18 19 6 5 "$thin" "starts in the padding, or may"
changes LpPool 21 22 6 5 "$thin" "starts in the padding, or may"
changes AveragePool 21 22 6 7 "kernel_shape = [3], strides = [2], pads = [1, 1], count_include_pad = 1" \
    "reaches past the padding, or may, and counts less there"

# a mask was a number before it was a truth value, whether somebody reads it or not
cat >mask.onnxtxt <<'END'
<ir_version: 4, opset_import: ["" : 9]>
g (float[2,3] x) => (float[2,3] y, float[2,3] z)
{
  a, unread = Dropout <ratio = 0.25> (x)
  y, mask = Dropout (a)
  z = Sub (mask, x)
}
END
moves mask 9 10 12 13 22 28

cat >shapes.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18]>
g (float[2,6,4] x) => (float[2,3,4] p, float[2,3,4] q, float[2,1,6,4] u, float[2,4,4] s, float[4,2] t)
<int64[1] one = {1}, int64[1] two = {2}, int64[1] last = {-1}, int64[6] pads = {0, 1, 0, 0, 1, 0}>
{
  p, q = Split <axis = 1, num_outputs = 2> (x)
  u = Unsqueeze (x, one)
  four = Constant <value_ints = [5]> ()
  s = Slice (x, one, four, one)
  d = Shape <start = 1> (x)
  k = ReduceMax <keepdims = 0> (x, one)
  t = Transpose (k)
}
END
moves shapes 18 12 13 10 17 21 28

cat >bodies.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 20, "my" : 1]>
g (float[2,3,4] x, float[4] scale) => (float[2,3,4] y, float[2,3,4] z)
{
  n = LayerNormalization <axis = -1> (x, scale)
  y = my.f (n)
  c = ReduceMax <keepdims = 0> (x)
  l = Constant <value = float {0.5}> ()
  w = Greater (c, l)
  z = If (w) <then_branch = t () => (float[2,3,4] a) { a = HardSwish (x) },
              else_branch = e () => (float[2,3,4] b) { b = Gelu (x) }>
}
<domain: "my", opset_import: ["" : 20]>
f (v) => (o) { o = Mish (v) }
END
rm -rf before after && mkdir before after
expect 0 "$ONX" run bodies.onnxtxt --random --seed 5 --output-dir before
for target in 13 17 19 28; do
    expect 0 "$ONX" retarget bodies.onnxtxt -o there.onnxtxt --opset $target
    expect 0 "$ONX" check --full there.onnxtxt
    rm -rf after && mkdir after
    expect 0 "$ONX" run there.onnxtxt --random --seed 5 --output-dir after
    for file in before/*; do
        expect 0 "$ONX" diff "$file" "after/${file#before/}" --as tensor --rtol 1e-5
    done
done
grep -q "Gelu\|Mish" there.onnxtxt || fail "what stays is not kept"

# All that cannot be said is listed, with the version that can, and nothing is written.
cat >wrong.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 24]>
g (float[2,6,4] x, int64[1] k) => (v, i, y)
{
  v, i = TopK (x, k)
  y = Mod <fmod = 1> (x, x)
}
END
expect 1 "$ONX" retarget wrong.onnxtxt -o none.onnx --opset 9
says err "graph.node[0] (TopK): error: TopK cannot be older: the number of elements is not constant"
says err "graph.node[1] (Mod): error: Mod was added in version 10"
says err "version 10 is the lowest that supports it"
cat >parts.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 18]>
g (float[2,7] x) => (float[2,P] a, float[2,Q] b) { a, b = Split <axis = 1, num_outputs = 3> (x) }
END
expect 1 "$ONX" retarget parts.onnxtxt -o none.onnx --opset 17
says err "Split cannot be older: the size that it splits is not known, or a part has no output"
[ ! -e none.onnx ] || fail "a model was written"
expect 0 "$ONX" retarget wrong.onnxtxt -o some.onnx --opset 9 --best-effort
says err "warning: TopK cannot be older"
expect 1 "$ONX" retarget wrong.onnxtxt -o none.onnx --opset 29
says err "version 29 of ai.onnx is not known, only 1 to 28"
expect 1 "$ONX" retarget wrong.onnxtxt -o none.onnx --opset my=2
expect 2 "$ONX" retarget wrong.onnxtxt -o none.onnx
expect 2 "$ONX" retarget wrong.onnxtxt --opset 9

# What is done is said; a dry run does nothing else.
expect 0 "$ONX" retarget old.onnxtxt --opset 13 --dry-run
says out "graph.node[0] (Add): Add 6 to 7"
says out "Softmax 11 to 13"
expect 0 "$ONX" retarget old.onnxtxt -o there.onnx --opset 13 --explain
says out "ReduceSum 11 to 13"

# IR versions: raised where the operator set needs it, lowered on request, with initializers among the inputs below 4.
cat >plain.onnxtxt <<'END'
<ir_version: 7, opset_import: ["" : 11], producer_name: "p", doc_string: "kept">
g (float[2] x) => (float[2] y)
<float[2] w = {1, 2}>
{ y = Add (x, w) }
END
expect 0 "$ONX" retarget plain.onnxtxt -o there.onnxtxt --opset 28
says there.onnxtxt "ir_version: 13"
says there.onnxtxt "kept"
expect 0 "$ONX" retarget plain.onnxtxt -o there.onnxtxt --opset 8 --ir-version 3
says there.onnxtxt "float[2] w"
expect 0 "$ONX" check there.onnxtxt
expect 1 "$ONX" retarget plain.onnxtxt -o none.onnx --opset 13 --ir-version 4
says err "IR version 4 does not have the version of an operator set"

# ai.onnx.ml.
cat >labels.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 15, "ai.onnx.ml" : 1]>
g (int64[3] x) => (string[3] y)
{ y = ai.onnx.ml.LabelEncoder <classes_strings = ["a", "b"], default_string = "?"> (x) }
END
expect 0 "$ONX" retarget labels.onnxtxt -o there.onnxtxt --opset ai.onnx.ml=4
says there.onnxtxt "keys_int64s"
expect 0 "$ONX" check --full there.onnxtxt
expect 0 "$ONX" retarget there.onnxtxt -o back.onnxtxt --opset ai.onnx.ml=1
says back.onnxtxt "classes_strings"

# Coordinates that version 18 does not know: a region of the input with its edges repeated.
cat >symmetric.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 22]>
g (float[1,2,5,7] x, float[4] s = {1, 1, 1.3, 0.6}, float[2] a = {2.3, 1.45}, int64[2] n = {8, 3}) =>
  (float[1,2,6,4] l, float[1,2,6,4] c, float[1,2,7,16] d, float[1,2,8,3] m)
{
  l = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel_symmetric"> (x, , s)
  c = Resize <mode = "cubic", coordinate_transformation_mode = "half_pixel_symmetric"> (x, , s)
  d = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel_symmetric", axes = [3, -2]> (x, , a)
  m = Resize <mode = "nearest", coordinate_transformation_mode = "half_pixel_symmetric", axes = [2, 3]> (x, , , n)
}
END
expect 0 "$ONX" retarget symmetric.onnxtxt -o there.onnxtxt --opset 18
expect 0 "$ONX" check --full there.onnxtxt
expect 0 "$ONX" compare symmetric.onnxtxt there.onnxtxt
sed 's/mode = "linear"/mode = "nearest"/' symmetric.onnxtxt >nearest.onnxtxt
expect 1 "$ONX" retarget nearest.onnxtxt -o there.onnxtxt --opset 18
says err "half_pixel_symmetric"

# What came later than version 13 and is said by what was there: triangles, reductions of scattered elements, several of
# which meet in one, and regions with half pixels, of which some are smaller than an element or outside.
cat >later.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18]>
g (float[2,4,5] t, int64 k, float[3,4] d, float[3,4] e, float[2,3] f, float[4,2] ff, float[2,3,9,8] x) =>
  (float[2,4,5] t0, float[2,4,5] t1, int32[2,4,5] t2, float[3,4] s0, float[3,4] s1, float[3,4] s2, float[3,4] s3, float[3,4] p0,
   float[3,4] p1, float[3,4] p2, float[3,4] p3, float[5,3,2,3] r)
<int64[2,3] i = {0, 2, -1, 0, 2, 1}, int64[2,2,2] j = {0, 1, -3, 1, 2, 0, 0, 1}, int64[4,1] l = {1, 1, -1, 1}, float[2,2] g2 = {1, -2, 3, 4},
 float[5,4] rois = {1, 2, 14, 15, 3, 3, 3.5, 9, 0, 0, 0.1, 0.2, -30, -9, -25, 20, 9, 9, 7, 8}, int64[5] at = {0, 1, 1, 0, 1}>
{
  t0 = Trilu (t)
  t1 = Trilu <upper = 0> (t, k)
  ti = Cast <to = 6> (t)
  t2 = Trilu <upper = 0> (ti)
  s0 = ScatterElements <reduction = "add"> (d, i, f)
  s1 = ScatterElements <reduction = "mul", axis = -1> (e, i, f)
  s2 = ScatterElements <reduction = "max", axis = 0> (d, i, f)
  s3 = ScatterElements <reduction = "min", axis = 1> (d, i, f)
  p0 = ScatterND <reduction = "add"> (d, j, g2)
  p1 = ScatterND <reduction = "mul"> (d, j, g2)
  fc = Concat <axis = 1> (ff, ff)
  p2 = ScatterND <reduction = "max"> (d, l, fc)
  p3 = ScatterND <reduction = "min"> (e, l, fc)
  r = RoiAlign <output_height = 2, output_width = 3, sampling_ratio = 2, spatial_scale = 0.5> (x, rois, at)
}
END
for opset in 17 15 13 11; do
    expect 0 "$ONX" retarget later.onnxtxt -o there.onnxtxt --opset $opset
    expect 0 "$ONX" check --full there.onnxtxt
    expect 0 "$ONX" compare later.onnxtxt there.onnxtxt
done
sed 's/sampling_ratio = 2, //' later.onnxtxt >adaptive.onnxtxt
expect 1 "$ONX" retarget adaptive.onnxtxt -o there.onnxtxt --opset 13
says err "its samples are not of a known number"

# Attention and rotary embeddings by their bodies: windows that version 24 does not have, lengths that 23 does not, heads
# that share keys, masks of bool and short ones, a cap, a past, values of another type.
cat >attention.onnxtxt <<'END'
<ir_version: 11, opset_import: ["" : 25]>
g (float[2,4,5,8] q, float[2,2,6,8] k, float16[2,2,6,3] v, float[2,2,3,8] pk, float16[2,2,3,3] pv, bool[5,9] seen, float[2,1,5,4] m,
   float[2,5,32] x, float[9,4] cos, float[9,4] sin, float[2,6,16] kp, float[2,6,10] w) =>
  (float[2,4,5,3] y0, float[2,2,9,8] nk, float16[2,2,9,3] nv, float[2,4,5,9] s, float[2,4,5,3] y1, float[2,4,5,3] y2, float[2,5,20] y3,
   float[2,4,5,8] r0, float[2,5,32] r1)
<int64[2] lengths = {4, 6}, int64[2,5] ids = {0, 1, 2, 3, 4, 4, 5, 6, 7, 8}>
{
  y0, nk, nv, s = Attention <is_causal = 1, softcap = 2.0, qk_matmul_output_mode = 2> (q, k, v, seen, pk, pv)
  y1 = Attention <left_window_size = 2, right_window_size = 1, scale = 0.3> (q, k, v)
  y2 = Attention <is_causal = 1> (q, k, v, m, , , lengths)
  y3 = Attention <q_num_heads = 4, kv_num_heads = 2, softmax_precision = 11> (x, kp, w)
  r0 = RotaryEmbedding (q, cos, sin, ids)
  r1 = RotaryEmbedding <num_heads = 4, interleaved = 1, rotary_embedding_dim = 8> (x, cos, sin, ids)
}
END
for opset in 24 23 22 18 13; do
    expect 0 "$ONX" retarget attention.onnxtxt -o there.onnxtxt --opset $opset
    expect 0 "$ONX" check --full there.onnxtxt
    expect 0 "$ONX" compare attention.onnxtxt there.onnxtxt
done
expect 0 "$ONX" inline attention.onnxtxt -o there.onnxtxt --schema
grep -q 'Attention\|RotaryEmbedding' there.onnxtxt && fail "inline --schema leaves Attention"
expect 0 "$ONX" compare attention.onnxtxt there.onnxtxt

# A Cast from a type that is not there: not even by another Cast.
cat >four.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]>
g (int4[3] x) => (float[3] y) { y = Cast <to = 1> (x) }
END
expect 1 "$ONX" retarget four.onnxtxt -o there.onnxtxt --opset 13
says err "does not support int4"
says err "version 21 is the lowest that supports it"

# Names that were onnxruntime's before they were the standard's: taken apart where the standard means something else.
if "$ONX" ops --domain com.microsoft >/dev/null 2>&1; then
    cat >former.onnxtxt <<'END'
<ir_version: 3, opset_import: ["" : 7]>
g (float[2,3,4,4] x, float[4] s) => (float[2,3,4,4] y, float[2,3,4,4] z)
{
  m = MeanVarianceNormalization <across_channels = 1> (x)
  t = ThresholdedRelu <alpha = 0.25> (m)
  y = LayerNormalization (t, s)
  z = ScaledTanh <alpha = 2.0, beta = 0.5> (t)
}
END
    expect 0 "$ONX" retarget former.onnxtxt -o there.onnxtxt --opset 18
    expect 0 "$ONX" check --full there.onnxtxt
    expect 0 "$ONX" compare former.onnxtxt there.onnxtxt
    grep -q MeanVarianceNormalization there.onnxtxt && fail "the former MeanVarianceNormalization is left"
    says there.onnxtxt LayerNormalization
fi

# operators that nobody knows stay, and are named
cat >unknown.onnxtxt <<'END'
<ir_version: 8, opset_import: ["": 17, "mine": 1]>
g (float[2,2] x) => (float[2] y) { a = Nope(x)  b = mine.Own(a)  y = ReduceMean<axes = [0], keepdims = 0>(b) }
END
expect 0 "$ONX" retarget unknown.onnxtxt -o new.onnxtxt --opset 18
says err "(Nope): warning: domain ai.onnx has no operator of that name: the node is not changed"
says err "(Nope): warning: the model is invalid already, so that the result is not checked: ai.onnx has no operator Nope"
[ "$(grep -c warning err)" -eq 2 ] || fail "$(cat err)"
says new.onnxtxt "a = Nope(x)"
grep -q "axes" new.onnxtxt && fail "what is known is not converted: $(cat new.onnxtxt)"

# what a run of the old model does otherwise: one warning for each kind of node
cat >silent.onnxtxt <<'END'
<ir_version: 7, opset_import: ["" : 6]>
g (float[2,3,4] x) => (float[2,3,4] y) <float[3] s = {1,2,3}, float[3] b = {0,0,1}, float[3] m = {0,0,1}, float[3] v = {1,1,1}>
{
  a = BatchNormalization (x, s, b, m, v)  c = BatchNormalization (a, s, b, m, v)
  d = BatchNormalization <is_test = 1> (c, s, b, m, v)  e = Dropout <is_test = 1> (d)  y = Dropout (e)
}
END
for dry in "" --dry-run; do
    expect 0 "$ONX" retarget silent.onnxtxt -o new.onnxtxt --opset 9 $dry
    says err "warning: 2 BatchNormalization nodes: is_test is left out, by which exporters mean inference; a run of the old model trains (the first is graph.node[0]"
    says err "warning: 1 Dropout node: is_test is not 1, and newer versions infer"
    [ "$(grep -c warning err)" -eq 2 ] || fail "$(cat err)"
done
sed 's/BatchNormalization (/BatchNormalization <is_test = 1> (/g; s/Dropout (/Dropout <is_test = 1> (/' silent.onnxtxt >said.onnxtxt
expect 0 "$ONX" retarget said.onnxtxt -o new.onnxtxt --opset 9
[ ! -s err ] || fail "$(cat err)"
expect 0 "$ONX" compare said.onnxtxt new.onnxtxt --random

# pads beside auto_pad, which newer versions refuse, do not count
cat >pads.onnxtxt <<'END'
<ir_version: 7, opset_import: ["" : 11]>
g (float[1,2,5,5] x, float[2,3,3,3] w) => (float[1,3,A,B] y, float[1,3,C,D] z)
{
  y = ConvTranspose <strides = [2, 2], pads = [1, 0, 1, 2], auto_pad = "VALID"> (x, w)
  z = ConvTranspose <strides = [2, 2], pads = [1, 0, 1, 2], auto_pad = "SAME_UPPER"> (x, w)
}
END
expect 0 "$ONX" retarget pads.onnxtxt -o new.onnxtxt --opset 22
grep -q pads new.onnxtxt && fail "pads are left: $(cat new.onnxtxt)"
expect 0 "$ONX" compare pads.onnxtxt new.onnxtxt --random

# BatchNormalization before version 14 trains by the number of outputs, whether they are named or not
for outputs in 'y, m2, v2' 'y, "", ""'; do
    cat >train.onnxtxt <<END
<ir_version: 8, opset_import: ["" : 15]>
g (float[2, 3, 4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2, 3, 4] y) { $outputs = BatchNormalization <training_mode = 1> (x, s, b, m, v) }
END
    for version in 13 7 6 5 1; do
        expect 0 "$ONX" retarget train.onnxtxt --opset $version -o old.onnx
        expect 0 "$ONX" check --full old.onnx
        expect 0 "$ONX" compare train.onnxtxt old.onnx
    done
done
done_testing

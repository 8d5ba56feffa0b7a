# Random inputs fit the operators that use them, directly or through other nodes, and the program says what it has chosen.
. "$ONX_SOURCE_DIR/tests/lib.sh"

suits() { # TEXT OF ERR... <MODEL: it runs, whatever the seed
    { echo '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3, "com.microsoft" : 1, "f" : 1]>'; cat; } >suits.onnxtxt
    for seed in 1 2 3; do
        expect 0 "$ONX" run suits.onnxtxt --random --seed $seed
        for text in "$@"; do says err "made up: $text"; done
    done
}
suits "ids int64[1,1], 0 to 99 (for Gather)" "ax int64[1], 0, 1, ... (for Unsqueeze)" <<'E'
g (int64[N,S] ids, int64[1] ax, float[100,8] t) => (float[?,?,8] y) { a = Cast <to = 6> (ids)  b = Unsqueeze (a, ax)  c = Squeeze (b, ax)  y = Gather (t, c) }
E
expect 0 "$ONX" run suits.onnxtxt --random --range ids=3:4 # what is asked for stands above it
says err "ids int64[1,1], 3 to 4"
suits "i uint8[1,4], 0 to 255 (for GatherElements)" <<'E'
g (uint8[1,4] i, float[300,4] t) => (float[?,4] y) { a = Cast <to = 7> (i)  y = GatherElements (t, a) }
E
suits "i int64[2], 0 to 2 (for Gather)" "x float[1,4,1]" <<'E'
g (int64[2] i, float[N,?,?] x) => (float[2,2] y, float[?,?,?] z) <float[3,2] t = {1, 2, 3, 4, 5, 6}, float[1,4,1] w = {1, 2, 3, 4}> { y = Gather (t, i)  z = Conv (x, w) }
E
suits "x float[1,3,8,8]" <<'E'
g (float[N,?,?,?] x, float[4,3,7,7] w) => (float[?,?] y) { a = Relu (x)  c = Conv (a, w)  p = MaxPool <kernel_shape = [2, 2]> (c)  y = Flatten (p) }
E
suits "x float[1,6,1]" <<'E'
g (float[] x, float[4,3,1] w) => (float[?,?,?] y) { y = Conv <group = 2> (x, w) }
E
suits "x float[1,5]" "n int64, 1 to 3 (for Loop)" "k int64[1], -1, 1, ... (for Reshape)" <<'E'
g (float[?,?] x, int64 n, int64[K] k, bool go, float[5,2] w) => (float[?,2] y, float[?] z) {
  y = Gemm (x, w)  r = Reshape (x, k)
  z = Loop (n, go, r) <body = b (int64 i, bool c, float[?] s) => (bool d, float[?] t) { d = Identity (c)  t = Relu (s) }>
}
E
suits "a float[7,7]" "b float[7,7]" <<'E'
g (float[N,?] a, float[?,M] b, float[3,7] c, float[7,3] d) => (float[?,?] y, float[?,?] z) { y = MatMul (c, a)  z = MatMul (b, d) }
E
suits "t int64[1], 0 to 5 (for Gather)" <<'E'
g (int64[1] t, float[6] v) => (float[?] y) {
  go = Constant <value = bool {1}> ()
  y = If (go) <then_branch = p () => (float[?] q) { q = Gather (v, t) }, else_branch = r () => (float[?] s) { s = Identity (v) }>
}
E
suits "x float[1,13]" <<'E'
g (float[N,?] x) => (float[?,1] y) {
  y = ai.onnx.ml.TreeEnsembleRegressor <nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [12, 0, 0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"],
    nodes_values = [0.5, 0.0, 0.0], nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0],
    target_weights = [1.0, 2.0], n_targets = 1> (x)
}
E

# ---- numbers on their way: a range holds through masks, offsets and scales
table='float[10,2] t = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}'
suits "ids int64[1,8], 0 to 9 (for Gather)" "mask int64[1,8], 0 to 1 (for Gather)" <<E
g (int64[N,8] ids, int64[N,8] mask) => (float[?,8,2] y) <$table> { a = Mul (ids, mask)  y = Gather (t, a) }
E
suits "ids int64[1,8], 0 to 9 (for Gather)" "mask bool[1,8]" <<E
g (int64[N,8] ids, bool[N,8] mask) => (float[?,8,2] y) <$table> { m = Cast <to = 7> (mask)  a = Mul (m, ids)  y = Gather (t, a) }
E
suits "ids int64[1,8], 0 to 9 (for Gather)" <<E
g (int64[N,8] ids, bool[N,8] mask) => (float[?,8,2] y) <$table, int64 pad = {3}> { a = Where (mask, ids, pad)  y = Gather (t, a) }
E
# positions that a mask counts, moved by an offset, as OPT and RoBERTa have them
suits "mask int64[1,7], 0 to 1 (for Gather)" <<E
g (int64[N,7] mask) => (float[?,7,2] y) <$table, int64 axis = {1}, int64 two = {2}> {
  c = CumSum (mask, axis)  m = Mul (c, mask)  p = Add (m, two)  y = Gather (t, p)
}
E
suits "i int64[6], 2 to 11 (for Gather)" "j float[6], 0 to 0.9 (for Gather)" "k int64[6], 0 to 9 (for Gather)" "n int64[6], -9 to 0 (for Gather)" <<E
g (int64[6] i, float[6] j, int64[6] k, int64[6] n) => (float[6,2] y0, float[6,2] y1, float[6,2] y2, float[6,2] y3)
<$table, int64 two = {2}, float ten = {10}, int64 nine = {9}> {
  a = Sub (i, two)  y0 = Gather (t, a)
  b = Mul (j, ten)  c = Floor (b)  d = Cast <to = 7> (c)  y1 = Gather (t, d)
  e = Sub (nine, k)  y2 = Gather (t, e)
  f = Neg (n)  y3 = Gather (t, f)
}
E
suits "ids int64[6], 0 to 18 (for Gather)" "far int64[6], 0 to 9 (for Gather)" <<E
g (int64[6] ids, int64[6] far) => (float[6,2] y, float[6,2] z) <$table, int64 two = {2}> { a = Div (ids, two)  y = Gather (t, a)  b = Abs (far)  z = Gather (t, b) }
E
# What is in range by itself asks for nothing: remainders, limits, comparisons.
suits "ids int64[6]" "more int64[6]" "x float[6]" <<E
g (int64[6] ids, int64[6] more, float[6] x) => (float[6,2] y0, float[6,2] y1, float[6,2] y2)
<$table, int64 ten = {10}, int64 nine = {9}, int64 zero = {0}, float half = {0.5}> {
  a = Mod (ids, ten)  y0 = Gather (t, a)  b = Clip (more, zero, nine)  y1 = Gather (t, b)
  c = Greater (x, half)  d = Cast <to = 7> (c)  y2 = Gather (t, d)
}
E
grep -q "for" err && fail "what is in range anyway is asked for: $(cat err)"
suits "a int64[6], 0 to 9 (for Gather)" "b int64[6], 0 (for Gather)" <<E
g (int64[6] a, int64[6] b) => (float[6,2] y) <$table> { s = Add (a, b)  y = Gather (t, s) }
E
suits "k int64[1], 1 (for TopK)" "n int64, 2 (for Range)" <<'E'
g (float[4] x, int64[1] k, int64 n) => (float[?] y, int64[?] i, int64[?] r) <int64 one = {1}> { y, i = TopK (x, k)  r = Range (one, n, one) }
E
suits "a int64[6], 0 to 4 (for Gather)" "b int64[6], 0 to 3 (for Gather)" "c int64[6]" <<E
g (int64[6] a, int64[6] b, int64[6] c) => (float[6,2] y, float[6,2] z, float[6,2] u) <$table> {
  s = Add (a, a)  y = Gather (t, s)  m = Mul (b, b)  z = Gather (t, m)  n = Sub (c, c)  u = Gather (t, n)
}
E
# What a run does without bends no calculation: a scale that follows from the data, a divisor.
suits "x float[8]" "s float, 0.0078125 to 0.125 (for QuantizeLinear)" <<'E'
g (float[8] x, float s, float[8] w) => (uint8[8] y, uint8[8] z) <float most = {255}, float[8] one = {1, 1, 1, 1, 1, 1, 1, 1}> {
  high = ReduceMax <keepdims = 0> (x)  low = ReduceMin <keepdims = 0> (x)  r = Sub (high, low)  scale = Div (r, most)
  y = QuantizeLinear (x, scale)  q = Sub (w, one)  v = Div (x, q)  z = QuantizeLinear (v, s)
}
E
grep -qE "(x|w) float.8., " err && fail "data are bent for a scale or a divisor: $(cat err)"

# ---- shapes that are put together
suits "b int64[1], -1, 1, ... (for Reshape)" <<'E'
g (float[2,6] x, int64[1] b) => (float[?,3] y) <int64[1] three = {3}> { s = Concat <axis = 0> (b, three)  y = Reshape (x, s) }
E
suits "b int64, 1 (for Reshape)" <<'E'
g (float[2,6] x, int64 b) => (float[?,?] y) <int64[1] rest = {-1}, int64[1] ax = {0}> { u = Unsqueeze (b, ax)  s = Concat <axis = 0> (u, rest)  y = Reshape (x, s) }
E
suits "b int64[1], 1 (for Reshape)" <<'E' # a size that is also one of a shape which may be anything
g (float[1,12] x, int64[1] b) => (float[?,?] y, float[?,?] z) <int64[1] rest = {-1}, int64[1] six = {6}> {
  r = Concat <axis = 0> (b, rest)  y = Reshape (x, r)  s = Concat <axis = 0> (b, six)  z = ConstantOfShape (s)
}
E
suits "h int64[1], 1 (for Expand)" "r int64[2], 1 (for Tile)" "d int64, 8 (for OneHot)" <<'E'
g (float[3,1] x, int64[1] h, int64[2] r, int64[3] i, int64 d, float[2] v) => (float[?,?] y, float[?,?] z, float[?,?] o) <int64[1] three = {3}> {
  s = Concat <axis = 0> (three, h)  y = Expand (x, s)  z = Tile (x, r)  o = OneHot (i, d, v)
}
E
suits "sizes int64[4], 1, 3, 8, 8 (for Resize)" <<'E'
g (float[1,3,8,8] x, int64[4] sizes) => (float[?,?,?,?] y) <float[2,3,1,1] w = {1, 2, 3, 4, 5, 6}> { a = Resize <mode = "linear"> (x, , , sizes)  y = Conv (a, w) }
E
suits "n int64[1], 2 (for Resize)" "s int64[2], 9, 10 (for Resize)" <<'E' # a list that is put together, and one of an open size
g (float[2,N,9,10] x, int64[1] n, int64[2] s) => (float[?,?,?,?] y) <int64[1] c = {1}> { sizes = Concat <axis = 0> (n, c, s)  y = Resize (x, , , sizes) }
E

# ---- parts of an axis
suits "s int64[3], adding up to 7 (for Split)" <<'E'
g (float[2,7] x, int64[3] s) => (float[2,?] a, float[2,?] b, float[2,?] c) { a, b, c = Split <axis = -1> (x, s) }
E
suits "s int64[2], adding up to 1 (for Split)" <<'E'
g (float[N,7] x, int64[2] s) => (float[?,7] a, float[?,7] b) { z = Relu (x)  a, b = Split (z, s) }
E
expect 0 "$ONX" run suits.onnxtxt --random --dim N=5
says err "s int64[2], adding up to 5"
suits "p int64[1], 4 (for Split)" "q int64[1], 3 (for Split)" <<'E'
g (float[7] x, int64[1] p, int64[1] q) => (float[?] a, float[?] b) { s = Concat <axis = 0> (p, q)  a, b = Split (x, s) }
E
suits "s int64[3], adding up to 5 (for SplitToSequence)" "c int64, adding up to 5 (for SplitToSequence)" <<'E'
g (float[5] x, int64[3] s, int64 c) => (seq(float[?]) y, seq(float[?]) z) { y = SplitToSequence (x, s)  z = SplitToSequence (x, c) }
E

# ---- texts that become numbers, and categories
suits "x string[1,3], 0 to 9 (for Cast)" "i string[4], 0 to 9 (for Gather)" "s string[2]" <<E
g (string[N,3] x, string[4] i, string[2] s) => (float[?,3] y, float[4,2] z, string[2] q) <$table> {
  y = Cast <to = 1> (x)  n = Cast <to = 7> (i)  z = Gather (t, n)  q = Identity (s)
}
E
grep -q "s string.2.," err && fail "a text that nobody casts is a number"
expect 0 "$ONX" run suits.onnxtxt --random --full
says out '"text"'
suits "c string[1,4], of 3 categories (for OneHotEncoder)" "i int64[5], of 2 categories (for OneHotEncoder)" <<'E'
g (string[N,4] c, int64[5] i) => (float[?,4,3] y, float[5,2] z) {
  y = ai.onnx.ml.OneHotEncoder <cats_strings = ["red", "green", "blue"], zeros = 0> (c)
  z = ai.onnx.ml.OneHotEncoder <cats_int64s = [70, 90], zeros = 0> (i)
}
E

# ---- through bodies and functions, each with names of its own
suits "i int64[2], 0 to 9 (for Gather)" "j int64[2], 0 to 2 (for Gather)" "go bool" <<E
g (bool go, int64[2] i, int64[2] j, float[3,2] u) => (float[2,2] y) <$table> {
  y = If (go) <then_branch = a () => (float[2,2] q) { n = Identity (i)  q = Gather (t, n) },
               else_branch = b () => (float[2,2] q) { n = Identity (j)  q = Gather (u, n) }>
}
E
suits "i int64[2], 0 to 9 (for Gather)" <<E
g (bool go, int64[2] i) => (float[2,2] y) <$table> {
  k = If (go) <then_branch = a () => (int64[2] q) { q = Identity (i) }, else_branch = b () => (int64[2] q) { q = Abs (i) }>
  y = Gather (t, k)
}
E
suits "i int64[3,2], 0 to 9 (for Gather)" "n int64, 1 to 3 (for Loop)" "s int64[2], 0 to 9 (for Gather)" <<E
g (int64[3,2] i, int64 n, bool c, int64[2] s) => (float[3,2,2] y, float[?,2,2] z) <$table> {
  y = Scan (i) <num_scan_inputs = 1, body = b (int64[2] row) => (float[2,2] q) { q = Gather (t, row) }>
  last, z = Loop (n, c, s) <body = l (int64 k, bool d, int64[2] v) => (bool e, int64[2] o, float[2,2] p) { e = Identity (d)  o = Identity (v)  p = Gather (t, v) }>
}
E
suits "ids int64[1,4], 0 to 9 (for Gather)" <<E
g (int64[N,4] ids) => (float[?,4,2] y) <$table> { y = f.look (ids, t) }
<domain: "f", opset_import: ["" : 21, "f" : 1]> look (i, t) => (y) { j = f.same (i)  y = Gather (t, j) }
<domain: "f", opset_import: ["" : 21]> same (i) => (j) { j = Identity (i) }
E

# ---- com.microsoft
"$ONX" ops --domain com.microsoft >out 2>err || done_testing # it is left out of this build
suits "ids int32[1,4], 0 to 4 (for EmbedLayerNormalization)" "segments int32[1,4], 0 to 1 (for EmbedLayerNormalization)" <<'E'
g (int32[N,4] ids, int32[N,4] segments, float[5,8] w, float[4,8] p, float[2,8] s, float[8] gamma, float[8] beta) => (float[?,4,8] y, int32[?] m) {
  y, m = com.microsoft.EmbedLayerNormalization (ids, segments, w, p, s, gamma, beta)
}
E
suits "mask int64[1,1], 1 (for GroupQueryAttention)" <<'E'
g (float[N,1,16] q, float[N,1,16] k, float[N,1,16] v, float[N,2,P,8] pk, float[N,2,P,8] pv, int64[N,T] mask)
=> (float[?,1,16] y, float[?,2,?,8] ok, float[?,2,?,8] ov) <int64[1] axis = {1}, int64 one = {1}> {
  n = ReduceSum <keepdims = 0> (mask, axis)  m = Sub (n, one)  length = Cast <to = 6> (m)
  s = Shape (mask)  l = Gather (s, one)  total = Cast <to = 6> (l)
  y, ok, ov = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 2> (q, k, v, pk, pv, length, total)
}
E
done_testing

# onx extract, merge, outline and edit: parts are correct, merged parts give the results of the whole, and errors are reported.
. "$ONX_SOURCE_DIR/tests/lib.sh"
# agrees A B: both give the same outputs, bit by bit
agrees() {
    expect 0 "$ONX" compare "$1" "$2" --rtol 0 --atol 0
}
cat >net.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 20, "my" : 1], metadata_props: ["k": "v"]>
net (float[N,4] x, bool flag) => (float[N,4] y, float[N,4] early)
<float[4] w = {1, 2, 3, 4}, float[4] unused = {0, 0, 0, 0}, float[4] v = {0.5, 0.25, 2, 8}>
{
  c = Constant <value_float: float = 2.0> ()
  cw = Mul (w, c)
  a = Mul (x, cw)
  early = my.twice (a)
  b = If (flag) <
    then_branch = t () => (float[N,4] p) { p = Add (early, v) },
    else_branch = e () => (float[N,4] q) { q = Sub (early, cw) }>
  d = Relu (b)
  [last] y = Mul (d, cw)
}
<domain: "my", opset_import: ["" : 20]>
twice (v) => (o) { o = Add (v, v) }
<domain: "my", opset_import: ["" : 20]>
never (v) => (o) { o = Neg (v) }
END
expect 0 "$ONX" check --full net.onnxtxt

# parts
expect 0 "$ONX" extract net.onnxtxt -o part.onnxtxt --inputs early --outputs d --explain
says out "part has"
expect 0 "$ONX" check --full part.onnxtxt
grep -q "my.twice\|never\|unused" part.onnxtxt && fail "the part has what it does not need"
grep -q "float\[N, 4\] early" part.onnxtxt || fail "the type of an input is not known: $(cat part.onnxtxt)"
expect 0 "$ONX" extract net.onnxtxt -o nodes.onnxtxt --nodes last
grep -q "cw = Mul" nodes.onnxtxt || fail "a constant did not come along"
expect 0 "$ONX" check --full nodes.onnxtxt
expect 2 "$ONX" extract net.onnxtxt -o none.onnx --outputs nothing
says err "no value nothing"
expect 2 "$ONX" extract net.onnxtxt -o none.onnx --nodes 'none*'
expect 2 "$ONX" extract net.onnxtxt -o none.onnx --nodes last --outputs y
expect 2 "$ONX" extract net.onnxtxt -o none.onnx --split 100
[ ! -e none.onnx ] || fail "a model was written"
expect 0 "$ONX" extract net.onnxtxt --dry-run --split 3
[ ! -e net.1.onnxtxt ] || fail "a part was written"

# parts together are the whole
# A cycle, and a name that means two values, are named; what does not touch them can be cut out all the same.
cat >cycle.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y, float[2] z) { p = Neg (x)  a = Add (p, c)  b = Exp (a)  c = Neg (b)  y = Relu (c)  z = Abs (p) }
END
for how in "extract --split 2" "extract --at p" "extract --outputs y"; do
    expect 1 "$ONX" $how cycle.onnxtxt -o none.onnx
    says err "the graph has a cycle: a needs c, which needs b, which needs a"
done
expect 0 "$ONX" extract cycle.onnxtxt -o part.onnxtxt --outputs z
expect 0 "$ONX" check --full part.onnxtxt
expect 1 "$ONX" convert --sort cycle.onnxtxt none.onnx
says err "there is no order: a needs c, which needs b, which needs a"
expect 0 "$ONX" precision cycle.onnxtxt --to float16 -o half.onnxtxt
says err "the graph has a cycle, beyond which no types are known: a needs c"
# What goes on all the same says where the cycle is, once, in a function or a branch, too.
cat >inner.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17, "f" : 1]>
g (float[2] x) => (float[2] y) { y = f.turn (x) }
<domain: "f", opset_import: ["" : 17]>
turn (p) => (q) { r = Add (p, q)  q = Neg (r) }
END
for how in "infer" "outline" "compress" "edit --metadata a=b" "inline" "quantize --mode weights" \
    "quantize --mode dynamic"; do
    # shellcheck disable=SC2086
    expect 0 "$ONX" $how cycle.onnxtxt -o same.onnxtxt
    [ "$(grep -c 'node\[1\] (Add): warning: the graph has a cycle, .*: a needs c, which needs b, which needs a' err)" = 1 ] ||
        fail "$how does not name the cycle once"
    case $how in inline | quantize*) continue ;; esac # bodies have an order, or there is no putting them in place
    # shellcheck disable=SC2086
    expect 0 "$ONX" $how inner.onnxtxt -o same.onnxtxt
    says err 'functions[0] "turn".node[0] (Add): warning: the graph has a cycle, '
done
# Inference looks for one only where a node takes what none before it makes, or where it did not look at all nodes.
cat >branch.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17, "u" : 1]>
g (bool c, float[2] x) => (float[2] y)
{ y = If (c) <then_branch = t () => (float[2] r) { s = Add (x, r)  r = Neg (s) }, else_branch = e () => (float[2] o) { o = Identity (x) }> }
END
sed 's/If (c)/u.Choose (c)/' branch.onnxtxt >unknown.onnxtxt
sed 's/turn (x)/none (x)/' inner.onnxtxt >uncalled.onnxtxt
for model in branch unknown uncalled; do
    expect 0 "$ONX" infer $model.onnxtxt -o same.onnxtxt
    says err '.node[0] (Add): warning: the graph has a cycle, '
done
expect 0 "$ONX" merge net.onnxtxt cycle.onnxtxt --prefix2 second_ -o same.onnxtxt
says err "the graph has a cycle, which stays: second_a needs second_c"
sed 's/Add (p, c)/Add (p, a)/' cycle.onnxtxt >short.onnxtxt
expect 1 "$ONX" extract short.onnxtxt -o none.onnx --split 2
says err "the graph has a cycle: a needs a"
cat >twice.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) <float[2] a = {1, 2}> { a = Neg (x)  y = Exp (a) }
END
expect 1 "$ONX" extract twice.onnxtxt -o none.onnx --outputs y
says err "the value a is made more than once"
[ ! -e none.onnx ] || fail "a part that is none was written"
# What comes out as it went in says so.
sed 's/float\[2\]/int32[2]/g; s/Relu/Neg/; s/Exp/Neg/; s/c = Neg (b)/c = Neg (p)/' cycle.onnxtxt >whole.onnxtxt
expect 0 "$ONX" precision whole.onnxtxt --to float16 -o same.onnxtxt
says err "no part of the model is converted to float16"
expect 0 "$ONX" quantize whole.onnxtxt --mode weights -o same.onnxtxt
says err "nothing is quantised"
sed 's/float\[2\] x/x/' cycle.onnxtxt | sed 's/c = Neg (b)/c = Neg (p)/' >untyped.onnxtxt
expect 0 "$ONX" precision untyped.onnxtxt --to float16 -o same.onnxtxt
says err "are not known (the first is x; onx infer reports why)"

for how in "--split 2" "--split 3" "--at early" "--at a,b"; do
    rm -f p.*.onnx
    # shellcheck disable=SC2086
    expect 0 "$ONX" extract net.onnxtxt -o p.onnx $how
    for part in p.*.onnx; do expect 0 "$ONX" check --full "$part"; done
    expect 0 "$ONX" merge p.*.onnx -o whole.onnx --outputs y,early
    expect 0 "$ONX" check --full whole.onnx
    agrees net.onnxtxt whole.onnx
    [ "$("$ONX" show whole.onnx | grep -c '= ')" -le "$("$ONX" show net.onnxtxt | grep -c '= ')" ] || fail "$how: nodes are there twice"
done

# merging: maps, names that clash, versions, metadata
cat >a.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 12], metadata_props: ["k": "1"]>
a (float[N,4] x) => (float[N,4] h, float[N,4] side) <float[4] w = {1, 2, 3, 4}> { t = Mul (x, w)  h = Relu (t)  side = Neg (t) }
END
cat >b.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 18]>
b (float[N,4] m, float[N,4] z) => (float[N,1] r) <float[4] w = {4, 3, 2, 1}, int64[1] axes = {1}> { t = Mul (m, w)  u = Add (t, z)  r = ReduceSum (u, axes) }
END
expect 0 "$ONX" merge a.onnxtxt b.onnxtxt -o ab.onnxtxt --map h=m --explain
says out "becomes w_"
expect 0 "$ONX" check --full ab.onnxtxt
grep -q '"": 18' ab.onnxtxt || fail "the models were not brought to one version"
grep -q "(float\[N, 4\] x, float\[N, 4\] z) => (float\[N, 4\] side, float\[N, 1\] r)" ab.onnxtxt || fail "other inputs and outputs: $(cat ab.onnxtxt)"
expect 0 "$ONX" merge a.onnxtxt b.onnxtxt -o ab.onnxtxt --map h=m,side=z --outputs B/r --prefix1 A/ --prefix2 B/
grep -q "A/x" ab.onnxtxt || fail "no prefix"
expect 0 "$ONX" check --full ab.onnxtxt
expect 0 "$ONX" merge a.onnxtxt b.onnxtxt -o seq.onnxtxt --sequence
expect 0 "$ONX" check --full seq.onnxtxt
expect 0 "$ONX" merge a.onnxtxt b.onnxtxt -o side.onnxtxt --side-by-side
expect 2 "$ONX" merge a.onnxtxt b.onnxtxt -o none.onnx --map none=m
says err "no model before it has an output none"
expect 2 "$ONX" merge a.onnxtxt b.onnxtxt -o none.onnx --map h=none
says err "has an input none"
expect 1 "$ONX" merge a.onnxtxt a.onnxtxt -o none.onnx --side-by-side
says err "use a prefix to distinguish them"
sed 's/"k": "1"/"k": "2"/' a.onnxtxt >other.onnxtxt
expect 1 "$ONX" merge a.onnxtxt other.onnxtxt -o none.onnx --side-by-side --prefix2 o/
says err 'metadata k is "1" in one model and "2" in another'
sed 's/float\[N,4\] m/int64[N,4] m/' b.onnxtxt >ints.onnxtxt
expect 1 "$ONX" merge a.onnxtxt ints.onnxtxt -o none.onnx --map h=m
says err "different types"
expect 2 "$ONX" merge a.onnxtxt -o none.onnx
[ ! -e none.onnx ] || fail "a model was written"

# external data of another folder is found or comes along
mkdir -p deep/er
expect 0 "$ONX" convert b.onnxtxt deep/er/b.onnx --external b.bin --external-threshold 1
expect 0 "$ONX" merge a.onnxtxt deep/er/b.onnx -o below.onnx --map h=m
expect 0 "$ONX" check --full below.onnx
"$ONX" show --format json below.onnx | grep -q "deep/er/b.bin" || fail "the reference does not lead to the data"
expect 0 "$ONX" merge deep/er/b.onnx a.onnxtxt -o deep/er/above.onnx --side-by-side --prefix2 a/
expect 0 "$ONX" check --full deep/er/above.onnx
mkdir far
expect 0 "$ONX" convert a.onnxtxt far/a.onnx --external a.bin --external-threshold 1
expect 0 "$ONX" merge deep/er/b.onnx far/a.onnx -o deep/er/both.onnx --side-by-side --prefix2 a/
says err "is moved into the model"
expect 0 "$ONX" check --full deep/er/both.onnx

# layers become a function and calls, and back
{
    echo '<ir_version: 9, opset_import: ["" : 20]>'
    echo 'g (float[2,4] x) => (float[2,4] y) <'
    for i in $(seq 1 48); do echo " float[4] w$i = {$i, 2, 3, 4}, float[4] b$i = {1, $i, 3, 4}, int64[2] s$i = {2, 4},"; done
    echo ' float[1] one = {1}> { h0 = Identity (x)'
    for i in $(seq 1 48); do
        echo "m$i = Mul (h$((i - 1)), w$i)  n$i = Tanh (m$i)  a$i = Add (n$i, b$i)  r$i = Reshape (a$i, s$i)  c$i = Constant <value_float: float = 0.5> ()"
        echo "k$i = Mul (r$i, c$i)  h$i = Add (k$i, h$((i - 1)))"
    done
    echo 'y = Identity (h48) }'
} >layers.onnxtxt
expect 0 "$ONX" outline layers.onnxtxt -o short.onnxtxt --explain
says out "6 nodes, called 48 times, with 3 inputs and 1 outputs"
[ "$(grep -c 'outlined.block_1 *(' short.onnxtxt)" = 48 ] || fail "not one function and 48 calls"
expect 0 "$ONX" check --full short.onnxtxt
agrees layers.onnxtxt short.onnxtxt
expect 0 "$ONX" inline short.onnxtxt -o flat.onnxtxt
agrees layers.onnxtxt flat.onnxtxt
expect 0 "$ONX" outline net.onnxtxt -o same.onnxtxt
agrees net.onnxtxt same.onnxtxt

# names
expect 0 "$ONX" edit net.onnxtxt -o e.onnxtxt --rename early=soon --rename 'c*=k.*' --rename-node last=final --rename-dim N=batch \
    --rename-domain my=yours --rename-function twice=double --set producer_name=me --metadata k=other --metadata new=1
expect 0 "$ONX" check --full e.onnxtxt
for word in soon k.w final batch yours.double '"me"' '"other"'; do grep -qF -- "$word" e.onnxtxt || fail "no $word: $(cat e.onnxtxt)"; done
grep -q "early\|my\.\|\[N" e.onnxtxt && fail "an old name is left: $(cat e.onnxtxt)"
expect 1 "$ONX" edit net.onnxtxt -o none.onnx --rename d=y
says err "exists already"
expect 2 "$ONX" edit net.onnxtxt -o none.onnx --rename nothing=y
expect 2 "$ONX" edit net.onnxtxt -o none.onnx
expect 2 "$ONX" edit net.onnxtxt -o none.onnx --rename-dim N
[ ! -e none.onnx ] || fail "a model was written"
# ends
expect 0 "$ONX" edit net.onnxtxt -o e.onnxtxt --add-output d --drop-output early --strip unused --strip doc --strip metadata
expect 0 "$ONX" check --full e.onnxtxt
grep -q "=> (float\[N, 4\] y, float\[N, 4\] d)" e.onnxtxt || fail "other outputs: $(cat e.onnxtxt)"
grep -q "unused\|never\|\"k\"" e.onnxtxt && fail "something is left: $(cat e.onnxtxt)"
expect 1 "$ONX" edit net.onnxtxt -o none.onnx --drop-input x
says err "input x is used"
expect 0 "$ONX" edit net.onnxtxt -o e.onnxtxt --outputs a --type 'x=float[7,4]'
grep -q "float\[7, 4\] x" e.onnxtxt || fail "no new type"
# weights
"$ONX" convert --as tensor - v.pb --from textproto <<'END' || fail "no tensor"
dims: 4 data_type: 1 float_data: 9 float_data: 9 float_data: 9 float_data: 9
END
expect 0 "$ONX" edit net.onnxtxt -o e.onnxtxt --initializer v=v.pb
grep -q "v = *{9, 9, 9, 9}" e.onnxtxt || fail "other elements: $(cat e.onnxtxt)"
expect 2 "$ONX" edit net.onnxtxt -o none.onnx --initializer nothing=v.pb
# outputs are added one by one, also of nodes that no output needs
cat >inner.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 18]>
g (float[3] x) => (float[3] y) { v7 = Neg (x)  c8 = Exp (x)  c9 = Abs (c8)  y = Add (x, v7) }
END
expect 0 "$ONX" edit inner.onnxtxt -o e.onnxtxt --add-output v7 --add-output c9 --add-output v7
grep -q "=> (float\[3\] y, float\[3\] v7, float\[3\] c9)" e.onnxtxt || fail "other outputs: $(cat e.onnxtxt)"
expect 0 "$ONX" check --full e.onnxtxt
expect 2 "$ONX" edit inner.onnxtxt -o none.onnx --add-output v7 --add-output nothing
# batch: shapes that have it baked in
cat >fixed.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 18]>
g (float[1,2,3,4] x) => (float[1,24] y, float[1,2] z) <int64[2] s = {1, 24}, int64[2] m = {6, 4}, int64[4] n = {1, 2, 3, 4}, float[4,1] w = {1, 2, 3, 4}, int64[2] q = {1, 6}, float[6,2] u = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}>
{ a = Reshape (x, m)  b = Reshape (a, n)  y = Reshape (b, s)  c = MatMul (b, w)  d = Reshape (c, q)  z = MatMul (d, u) }
END
expect 0 "$ONX" edit fixed.onnxtxt -o b.onnxtxt --batch N --explain
says out "4 shapes were adjusted"
expect 0 "$ONX" check --full b.onnxtxt
agrees fixed.onnxtxt b.onnxtxt
expect 0 "$ONX" run b.onnxtxt --random --dim N=3
expect 0 "$ONX" edit fixed.onnxtxt -o b5.onnxtxt --batch 5
expect 0 "$ONX" run b5.onnxtxt --random
# The batch in the middle of shapes, as exporters write attention: [length, batch * heads, width]. Of two dimensions that may
# take it the nodes behind say which.
cat >both.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 18]>
g (float[] a, float[] b) => (float[] y) { y = Concat <axis = 0> (a, b) }
END
cat >differ.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 18]>
g (float[] a, float[] b) => (float[] most) { d = Sub (a, b)  e = Abs (d)  most = ReduceMax <keepdims = 0> (e) }
END
cat >heads.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 18]>
g (float[1,4,6] x) => (float[1,4,6] y) <int64[3] split = {4, 2, 3}, int64[2] flat = {4, 6}, int64[3] rows = {4, 1, 6}, float[6,6] w = {1, 2, 0, 4, 1, 3, 0, 1, 2, 2, 1, 0, 3, 1, 0, 2, 1, 4, 2, 2, 1, 0, 3, 1, 1, 0, 4, 2, 2, 3, 0, 1, 1, 2, 0, 3}>
{
  t = Transpose <perm = [1, 0, 2]> (x)  h = Reshape (t, split)  q = Transpose <perm = [1, 0, 2]> (h)  k = Transpose <perm = [1, 2, 0]> (h)
  s = MatMul (q, k)  p = Softmax (s)  v = MatMul (p, q)  u = Transpose <perm = [1, 0, 2]> (v)  m = Reshape (u, flat)  o = MatMul (m, w)
  r = Reshape (o, rows)  b = Transpose <perm = [1, 0, 2]> (r)  y = Add (x, b)
}
END
cat >two.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 18]>
g () => (float[2,4,6] x, float[1,4,6] a, float[1,4,6] b) <int64[2] halves = {1, 1}>
{ x = RandomNormal <seed = 2.0, shape = [2, 4, 6]> ()  a, b = Split <axis = 0> (x, halves) }
END
cat >apart.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 18]>
g (float[2,4,6] y, float[1,4,6] a, float[1,4,6] b) => (float[] most) { c = Concat <axis = 0> (a, b)  d = Sub (c, y)  e = Abs (d)  most = ReduceMax <keepdims = 0> (e) }
END
expect 0 "$ONX" run two.onnxtxt --npy --output-dir two
for size in 2 N; do
    expect 0 "$ONX" edit heads.onnxtxt -o b.onnxtxt --batch $size --explain
    [ ! -s err ] || fail "--batch $size: $(cat err)"
    says out "3 shapes were adjusted"
    expect 0 "$ONX" check --full b.onnxtxt
    expect 0 "$ONX" run b.onnxtxt -i x=two/output_0.npy -o together.npy
    for k in 1 2; do expect 0 "$ONX" run heads.onnxtxt -i x=two/output_$k.npy -o alone$k.npy; done
    expect 0 "$ONX" run apart.onnxtxt -i y=together.npy -i a=alone1.npy -i b=alone2.npy
    awk '$1 == "most" { found = 1; if (!($3 < 1e-5)) exit 1 } END { exit !found }' out || fail "samples are mixed up: $(cat out)"
done
# What is joined to the batch, and has size 1, is repeated: class tokens, and initial states.
sed 's/y = Add (x, b)/j = Concat <axis = 1> (b, token)  y = Slice (j, one, two, one)/; s/float\[6,6\] w/float[1,1,6] token = {1, 2, 3, 4, 5, 6}, int64[1] one = {1}, int64[1] two = {5}, &/' heads.onnxtxt >token.onnxtxt
cat >class.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,4,6] x) => (float[1,6,6] y) <float[1,1,6] cls = {7, 8, 9, 1, 2, 3}, float[1,6,6] pos = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6}>
{ dist = Neg (cls)  j = Concat <axis = 1> (cls, dist, x)  y = Add (j, pos) }
END
cat >state.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,4,6] x) => (float[1,2] y) <float[1,2,6] w = {1, 2, 0, 4, 1, 3, 0, 1, 2, 2, 1, 0}, float[1,2,2] r = {1, 0, 2, 1}, float[1,1,2] h = {0.5, 0.25}>
{ t = Transpose <perm = [1, 0, 2]> (x)  a, b = RNN <hidden_size = 2> (t, w, r, "", "", h)  zero = Constant <value_ints = [0]> ()  y = Squeeze (b, zero) }
END
for model in token class state; do
    for size in 2 N; do
        expect 0 "$ONX" edit $model.onnxtxt -o b.onnxtxt --batch $size
        [ ! -s err ] || fail "$model --batch $size: $(cat err)"
        expect 0 "$ONX" check --full b.onnxtxt
        expect 0 "$ONX" run b.onnxtxt -i x=two/output_0.npy --npy --output-dir together
        for k in 1 2; do expect 0 "$ONX" run $model.onnxtxt -i x=two/output_$k.npy --npy --output-dir alone$k; done
        expect 0 "$ONX" run both.onnxtxt -i a=alone1/output_0.npy -i b=alone2/output_0.npy --npy --output-dir joined
        expect 0 "$ONX" run differ.onnxtxt -i a=together/output_0.npy -i b=joined/output_0.npy
        awk '$1 == "most" { found = 1; if (!($3 < 1e-5)) exit 1 } END { exit !found }' out || fail "$model --batch $size: $(cat out)"
    done
done
# What cannot follow is an error, and no model is written: of a symbol as of a number.
sed 's/float\[1,1,6\] cls/float[1,1,6] unused/; s/^g (/g (float[1,1,6] cls, /' class.onnxtxt >inputs.onnxtxt # both are inputs
expect 0 "$ONX" edit inputs.onnxtxt -o b.onnxtxt --batch 3
expect 0 "$ONX" run b.onnxtxt --random
cat >baked.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,3] y) <float[2,3] c = {1, 2, 3, 4, 5, 6}> { y = Add (x, c) }
END
for size in 3 N; do
    rm -f none.onnx
    expect 1 "$ONX" edit baked.onnxtxt -o none.onnx --batch $size
    says err "the batch size cannot be changed"
    [ ! -e none.onnx ] || fail "a model was written"
done
# Constants of an old size above 1 follow if their parts for the samples are equal.
cat >even.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3,2] x) => (float[2,4,2] y, float[2,2] z, float[2,3,3] m) <
  float[2,1,2] cls = {1, 2, 1, 2}, float[2,4,2] pos = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8},
  float[1,2,2] w = {1, 2, 0, 4}, float[1,2,2] r = {1, 0, 2, 1}, float[1,2,2] h = {0.5, 0.25, 0.5, 0.25},
  float[2,2,3] k = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}, bool[2,1,1] on = {1, 1}, int64[1] zero = {0}>
{
  j = Concat <axis = 1> (cls, x)  s = Add (pos, j)  y = Where (on, s, j)
  t = Transpose <perm = [1, 0, 2]> (x)  a, b = RNN <hidden_size = 2> (t, w, r, "", "", h)  z = Squeeze (b, zero)
  m = MatMul (x, k)
}
END
for size in 1 2 5 N; do
    expect 0 "$ONX" edit even.onnxtxt -o b.onnxtxt --batch $size
    [ ! -s err ] || fail "even --batch $size: $(cat err)"
    expect 0 "$ONX" check --full b.onnxtxt
    expect 0 "$ONX" run b.onnxtxt --random
done
expect 0 "$ONX" compare even.onnxtxt b.onnxtxt --random
for part in 'cls = {1, 2, 1' 'h = {0.5, 0.25, 0.5' 'pos = {1, 2' 'k = {1, 2, 3' 'on = {1'; do
    sed "s/$part/${part%?}9/; s/on = {9/on = {0/" even.onnxtxt >uneven.onnxtxt
    expect 1 "$ONX" edit uneven.onnxtxt -o none.onnx --batch N
    says err "the batch size cannot be changed: constant ${part%% *} has 2 parts, one for each sample, which differ"
done
# around a model
expect 0 "$ONX" edit fixed.onnxtxt -o around.onnxtxt --normalize x=0.5,0.25:2,4 --resize x --nhwc x --softmax y --argmax z
expect 0 "$ONX" check --full around.onnxtxt
grep -q "float\[1, x_height, x_width, 2\] x) => (float\[1, 24\] y, int64\[1\] z)" around.onnxtxt || fail "other ends: $(cat around.onnxtxt)"
expect 0 "$ONX" run around.onnxtxt --random --dim x_height=7 --dim x_width=5
expect 0 "$ONX" edit fixed.onnxtxt -o plain.onnxtxt --nhwc x
expect 0 "$ONX" run plain.onnxtxt --input x='[[[[1,2],[3,4],[5,6],[7,8]],[[1,2],[3,4],[5,6],[7,8]],[[1,2],[3,4],[5,6],[7,8]]]]' --output-dir nhwc
expect 0 "$ONX" run fixed.onnxtxt --input x='[[[[1,3,5,7],[1,3,5,7],[1,3,5,7]],[[2,4,6,8],[2,4,6,8],[2,4,6,8]]]]' --output-dir nchw
same nhwc/output_0.pb nchw/output_0.pb
expect 1 "$ONX" edit fixed.onnxtxt -o none.onnx --normalize x=1,2,3:1
says err "3 numbers for 2 channels"

# A default, which callers override, and a constant of the same name and value stay apart.
cat >default.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, float[2] d = {1, 2}) => (float[2] y) { y = Add (x, d) }
END
cat >constant.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] u) => (float[2] z) <float[2] d = {1, 2}> { z = Mul (u, d) }
END
expect 0 "$ONX" merge default.onnxtxt constant.onnxtxt --sequence -o both.onnxtxt
expect 0 "$ONX" run both.onnxtxt -i x='[1,1]' -i d='[0,0]' --full
says out '[1, 2]'
expect 1 "$ONX" merge constant.onnxtxt default.onnxtxt --sequence -o both.onnxtxt
says err 'use a prefix'

# What a part takes has the type that is proven, not the one that is declared.
cat >stale.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,3] x) => (float[?,?] y) <float[1,3] h> { h = Relu (x) y = Neg (h) }
END
expect 0 "$ONX" extract stale.onnxtxt --inputs h -o part.onnxtxt
expect 0 "$ONX" run part.onnxtxt -i h='[[1,2,3],[4,5,6]]'
done_testing

# onx compare: two models, two settings, files; which values differ, and where the difference begins.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >a.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 4] x, float[4, 4] w) => (float[N, 4] y) {
  [first] a = MatMul (x, w)
  [second] b = Relu (a)
  [third] c = Exp (b)
  [fourth] y = Add (c, c)
}
END
sed 's/Add (c, c)/Mul (c, two)/; s/\[fourth\]/two = Constant<value_float = 2.0>() [fourth]/' a.onnxtxt >same.onnxtxt
sed 's/Relu (a)/LeakyRelu<alpha = 0.5> (a)/' same.onnxtxt >other.onnxtxt
expect 0 "$ONX" compare a.onnxtxt same.onnxtxt --dim N=3
says out 'max abs'
cp out plain
expect 0 "$ONX" compare a.onnxtxt same.onnxtxt --dim N=3 --random # as with run; it is what is done anyway
same out plain
expect 1 "$ONX" compare a.onnxtxt other.onnxtxt --dim N=3
says out 'y  deviates: '
says err '1 value deviates'
expect 1 "$ONX" compare a.onnxtxt other.onnxtxt --dim N=3 --bisect
says out 'starts at graph.node[1] "second" (Relu)'
expect 0 "$ONX" compare a.onnxtxt other.onnxtxt --dim N=3 --rtol 1 --atol 1
# one model, two settings
for setting in "--kernels plain" "--threads 2" --no-optimize "--isa base"; do
    # shellcheck disable=SC2086
    expect 0 "$ONX" compare a.onnxtxt $setting
done
# Only the last node differs: nothing inside deviates.
sed 's/Add (c, c)/Mul (c, c)/' a.onnxtxt >last.onnxtxt
expect 1 "$ONX" compare a.onnxtxt last.onnxtxt --bisect
says out 'starts at graph.node[3] "fourth" (Add)'
# Other names: values belong together in their order.
sed 's/\bx\b/u/g; s/\by\b/v/g' a.onnxtxt >renamed.onnxtxt
sed 's/\bw\b/k/g' renamed.onnxtxt >all_renamed.onnxtxt
expect 0 "$ONX" compare a.onnxtxt all_renamed.onnxtxt
expect 2 "$ONX" compare a.onnxtxt renamed.onnxtxt
says err 'input "u" of renamed.onnxtxt is none of a.onnxtxt'

# numbers: [1, 2, 4] and [1, 2, 3]
number() {
    echo "<ir_version: 8, opset_import: [\"\" : 17]> g ($1) => ($2) { $3 }" >"$4.onnxtxt"
}
number 'float[3] x' 'float[3] y' 'y = Identity (x)' p
number 'float[3] x' 'float[3] y' 'd = Constant<value_floats = [0.0, 0.0, -1.0]>() y = Add (x, d)' q
expect 1 "$ONX" compare p.onnxtxt q.onnxtxt -i x=[1,2,4] --json
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "the numbers"
import json, math
d = json.load(open("out"))
v = d["values"][0]
assert not d["agree"] and (v["elements"], v["different"], v["first"], v["a"], v["b"]) == (3, 1, 2, 4, 3), v
assert v["max_abs"] == 1 and v["max_rel"] == 0.25, v
assert abs(v["cosine"] - 17 / math.sqrt(21 * 14)) < 1e-7 and abs(v["snr_db"] - 10 * math.log10(21)) < 1e-6, v
END
fi
expect 1 "$ONX" compare p.onnxtxt q.onnxtxt -i x=[1,2,4] --json --bisect
says out '"starts"'
# NaN agrees with NaN only, infinities with themselves; equal values have no noise.
number 'float[3] x' 'float[3] y' 'y = Log (x)' l
number 'float[3] x' 'float[3] y' 'z = Abs (x) y = Log (z)' m
expect 0 "$ONX" compare l.onnxtxt l.onnxtxt -i x=[-1,0,2]
says out ' inf  y'
expect 1 "$ONX" compare l.onnxtxt m.onnxtxt -i x=[-1,0,2]
says out 'deviates: 1 of 3, first [0] '
number 'float[3] x' 'float[3] y' 'z = Log (x) y = Neg (z)' i
number 'float[3] x' 'float[3] y' 'z = Log (x) big = Constant <value_float = -3e38> () y = Max (z, big)' j
for tolerances in "" "--atol 0 --rtol 0"; do
    expect 0 "$ONX" compare l.onnxtxt l.onnxtxt -i x=[-1,0,1] $tolerances
    expect 1 "$ONX" compare l.onnxtxt i.onnxtxt -i x=[1,0,1] $tolerances # opposite ones
    says out 'deviates: 1 of 3, first [1] -inf and inf'
    expect 1 "$ONX" compare l.onnxtxt j.onnxtxt -i x=[1,0,1] $tolerances # and a finite one
    says out 'deviates: 1 of 3, first [1] -inf and -3'
    expect 1 "$ONX" compare j.onnxtxt l.onnxtxt -i x=[1,0,1] $tolerances
done
# shapes, types, texts, sequences
number 'float[3] x' 'float[1,3] y' 's = Constant<value_ints = [1, 3]>() y = Reshape (x, s)' r
expect 1 "$ONX" compare p.onnxtxt r.onnxtxt
says out 'deviates: float[3] and float[1,3]'
number 'string[2] x' 'string[2] y' 'y = Identity (x)' s
expect 0 "$ONX" compare s.onnxtxt s.onnxtxt
number 'string[2] x' 'string[2] y' 'y = Constant<value_strings = ["a", "b"]>()' t
expect 1 "$ONX" compare s.onnxtxt t.onnxtxt -i 'x=["a","c"]'
says out 'deviates: 1 of 2, first [1]'
number 'float[3] x' 'seq(float[3]) y' 'y = SequenceConstruct (x, x)' u
number 'float[3] x' 'seq(float[3]) y' 'y = SequenceConstruct (x)' v
expect 0 "$ONX" compare u.onnxtxt u.onnxtxt
expect 1 "$ONX" compare u.onnxtxt v.onnxtxt
says out 'a sequence of 2 and of 1'

# outputs that somebody else computed
mkdir set
"$ONX" run p.onnxtxt -i x=[1,2,3] -o set >/dev/null || fail "outputs of p"
expect 0 "$ONX" compare p.onnxtxt -i x=[1,2,3] --against set
expect 1 "$ONX" compare p.onnxtxt -i x=[1,2,4] --against set
says out 'first [2] 3 and 4'
expect 0 "$ONX" compare p.onnxtxt -i x=[1,2,3] --against set/output_0.pb
mkdir none
expect 2 "$ONX" compare p.onnxtxt --against none
expect 2 "$ONX" compare p.onnxtxt --against missing.npy
expect 2 "$ONX" compare p.onnxtxt q.onnxtxt --against set

# mistakes of the call
expect 2 "$ONX" compare a.onnxtxt
says err 'nothing to compare a.onnxtxt with'
expect 2 "$ONX" compare - - <a.onnxtxt
expect 2 "$ONX" compare a.onnxtxt missing.onnx
expect 2 "$ONX" compare a.onnxtxt same.onnxtxt --rtol -1
expect 2 "$ONX" compare a.onnxtxt same.onnxtxt --kernels slow
# A run that fails names its model.
number 'float[3] x' 'float[K] y' 'i = Constant<value_ints = [7]>() y = Gather (x, i)' bad
expect 1 "$ONX" compare p.onnxtxt bad.onnxtxt
says err 'bad.onnxtxt'
# So does what is odd about one of the two, once, whatever is run to find where they part.
printf '<ir_version: 9, opset_import: ["" : 17]>\ng (float[2] x) => (float[2] y) { y = Exp (b)  b = Neg (a)  a = Abs (x) }' >odd.onnxtxt
printf '<ir_version: 9, opset_import: ["" : 17]>\ng (float[2] x) => (float[2] y) { a = Abs (x)  b = Neg (a)  y = Sin (b) }' >even.onnxtxt
expect 1 "$ONX" compare odd.onnxtxt even.onnxtxt --bisect
[ "$(grep -c '^odd.onnxtxt.*G-03' err)" -eq 1 ] && ! grep -q '^graph' err || fail "the model is not named, or twice: $(cat err)"
done_testing

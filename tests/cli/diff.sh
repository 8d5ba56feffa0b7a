# onx diff: the differences as text and as JSON, and the exit status.
. "$ONX_SOURCE_DIR/tests/lib.sh"
stripes=$ONX_SOURCE_DIR/examples/stripes.onnxtxt

expect 0 "$ONX" diff "$stripes" "$stripes"
[ ! -s out ] || fail "output although nothing differs"
sed -e 's/"" : 17/"" : 18/' -e 's/float\[N, 4\]/float[N, K]/' -e 's/2,  2,  2/2,  2.5,  2/' -e 's/Relu (edges)/LeakyRelu <alpha = 0.5> (edges)/' \
    -e 's/kernel_shape = \[2, 2\]/kernel_shape = [3, 3]/' -e 's/by hand/by foot/' "$stripes" >other.onnxtxt
expect 1 "$ONX" diff "$stripes" other.onnxtxt
golden_is diff_stripes.txt
expect 1 "$ONX" diff --json "$stripes" other.onnxtxt
sed 's|"a": ".*/examples/|"a": "|' out >relative
golden_is diff_stripes.json relative

# Nodes that came, went and moved.
printf '<ir_version: 8, opset_import: ["" : 17]>\ng (float[2] x) => (float[2] y) {\n  a = Neg (x)\n  b = Abs (a)\n  c = Exp (x)\n  y = Add (b, c)\n}\n' >a.onnxtxt
printf '<ir_version: 8, opset_import: ["" : 17]>\ng (float[2] x) => (float[2] y) {\n  c = Exp (x)\n  a = Neg (x)\n  y = Add (a, c)\n}\n' >b.onnxtxt
expect 1 "$ONX" diff a.onnxtxt b.onnxtxt
golden_is diff_nodes.txt

# Tensors: tolerance, NaN, types, 64-bit integers that a double cannot tell apart.
echo 'float[4] t = {1, 2, nan, 4}' >t.onnxtxt
echo 'float[4] t = {1, 2.001, nan, 4}' >u.onnxtxt
expect 1 "$ONX" diff --as tensor t.onnxtxt u.onnxtxt
says out "1 of 4 elements differ, first at 1"
expect 0 "$ONX" diff --as tensor --rtol 1e-2 t.onnxtxt u.onnxtxt
expect 0 "$ONX" diff --as tensor --atol 0.01 t.onnxtxt u.onnxtxt
expect 1 "$ONX" diff --as tensor --atol 1e-4 t.onnxtxt u.onnxtxt
expect 0 "$ONX" diff --as tensor t.onnxtxt t.onnxtxt
echo 'float[4] t = {1, nan, nan, 4}' >v.onnxtxt
expect 1 "$ONX" diff --as tensor --atol 1000 t.onnxtxt v.onnxtxt
echo 'int64[1] t = {9007199254740992}' >i.onnxtxt
echo 'int64[1] t = {9007199254740993}' >j.onnxtxt
expect 1 "$ONX" diff --as tensor i.onnxtxt j.onnxtxt
says out "max abs 1,"
echo 'string[2] t = {"a", "b"}' >s.onnxtxt
echo 'string[2] t = {"a", "c"}' >r.onnxtxt
expect 1 "$ONX" diff --as tensor s.onnxtxt r.onnxtxt
expect 1 "$ONX" diff --as tensor s.onnxtxt t.onnxtxt
says out "string[2] -> float[4]"

# M-10: what changed between two editions calls for a greater version.
edition() { # file version interface body
    printf '<ir_version: 8, opset_import: ["" : 17], model_version: %s>\ng (%s { %s }\n' "$2" "$3" "$4" >"$1"
}
v1=$(((1 << 48) + (2 << 32) + 3)) # 1.2.3
edition a.onnxtxt $v1 'float[2] x, float[2] z) => (float[2] y)' 'y = Add (x, z)'
edition b.onnxtxt $v1 'float[2] x) => (float[2] y)' 'y = Neg (x)'
expect 1 "$ONX" diff a.onnxtxt b.onnxtxt
says err 'an input is gone: z, and model_version has not grown with it (value 1.2.3 after 1.2.3, expected a greater major number) [M-10]'
edition b.onnxtxt $(((1 << 48) + (3 << 32))) 'float[2] x) => (float[2] y)' 'y = Neg (x)'
expect 1 "$ONX" diff a.onnxtxt b.onnxtxt
says err M-10
edition b.onnxtxt $((2 << 48)) 'float[2] x) => (float[2] y)' 'y = Neg (x)'
expect 1 "$ONX" diff a.onnxtxt b.onnxtxt
! grep -q M-10 err || fail "M-10 although the major number has grown"
edition b.onnxtxt $v1 'float[N] x, float[2] z) => (float[2] y, float[N] n)' 'y = Add (x, z) n = Neg (x)'
expect 1 "$ONX" diff a.onnxtxt b.onnxtxt
says err 'expected a greater minor number) [M-10]'
edition b.onnxtxt $(((1 << 48) + (3 << 32))) 'float[N] x, float[2] z) => (float[2] y, float[N] n)' 'y = Add (x, z) n = Neg (x)'
expect 1 "$ONX" diff a.onnxtxt b.onnxtxt
! grep -q M-10 err || fail "M-10 although the minor number has grown"
edition b.onnxtxt $v1 'float[2] x, float[2] z) => (float[2] y)' 'y = Sub (x, z)'
expect 1 "$ONX" diff a.onnxtxt b.onnxtxt
says err 'expected a greater patch number) [M-10]'
edition b.onnxtxt $((v1 + 1)) 'float[2] x, float[2] z) => (float[2] y)' 'y = Sub (x, z)'
expect 1 "$ONX" diff a.onnxtxt b.onnxtxt
! grep -q M-10 err || fail "M-10 although the patch number has grown"

expect 2 "$ONX" diff "$stripes"
expect 2 "$ONX" diff "$stripes" no-such-file.onnx
expect 2 "$ONX" diff --rtol none "$stripes" "$stripes"
# an infinity is equal to nothing else, whatever the tolerances
cat >infinite.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g () => (float[2] y) <float[2] c = {1, inf}> { y = Identity (c) }
END
for other in 5 -inf nan; do
    sed "s/{1, inf}/{1, $other}/" infinite.onnxtxt >finite.onnxtxt
    expect 1 "$ONX" diff infinite.onnxtxt finite.onnxtxt --rtol 0.1
    says out '1 of 2 elements differ, first at 1, max abs inf, max rel inf'
    expect 1 "$ONX" diff finite.onnxtxt infinite.onnxtxt --rtol 0.1
done
done_testing

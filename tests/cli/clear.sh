# Models that violate the standard but are unambiguous: they run, with a warning that names the rule.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cat >unsorted.onnxtxt <<'E'
<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
  y = f.Twice (b)
  b = If (c) <then_branch = t () => (u) { u = Add (v, late)  v = Neg (a) }, else_branch = n () => (a2) { a2 = Identity (late) }>
  late = Mul (a, w)
  a = Identity (x)
}
<opset_import: ["" : 21], domain: "f">
Twice (x) => (y) { y = Add (h, k)  h = Neg (m)  m = Identity (k)  k = Mul (x, x) }
E
inputs="-i x=[1,2] -i c=true"
# shellcheck disable=SC2086
expect 0 "$ONX" run unsorted.onnxtxt $inputs
for rule in G-03 S-06 S-11 F-12; do
    says err "[$rule]"
done
says err "warning: "
cp out first
# shellcheck disable=SC2086
expect 1 "$ONX" run unsorted.onnxtxt $inputs --strict
says err "error: "
expect 1 "$ONX" bench unsorted.onnxtxt --seconds 0 --strict
expect 1 "$ONX" check unsorted.onnxtxt
says out G-03
expect 0 "$ONX" convert --sort unsorted.onnxtxt sorted.onnxtxt
expect 0 "$ONX" check sorted.onnxtxt
# shellcheck disable=SC2086
expect 0 "$ONX" run sorted.onnxtxt $inputs --strict
same out first
expect 0 "$ONX" convert --sort sorted.onnxtxt again.onnxtxt
same sorted.onnxtxt again.onnxtxt
expect 0 "$ONX" convert sorted.onnxtxt plain.onnx
expect 0 "$ONX" convert --sort sorted.onnxtxt sorted.onnx
same plain.onnx sorted.onnx # what is in order stays byte for byte

# a word that only a later version of the operator has
cat >later.onnxtxt <<'E'
<ir_version: 8, opset_import: ["" : 16]>
g (float[3] x, int64[1,1] i = {1}, float[1] u = {7}) => (float[3] y) { y = ScatterND <reduction = "max"> (x, i, u) }
E
expect 0 "$ONX" run later.onnxtxt -i 'x=[1,2,3]' --full
says err "[ND-26]"
says out "7"
expect 1 "$ONX" run later.onnxtxt -i 'x=[1,2,3]' --strict
says err "error: ScatterND has that word from version 18 on, not yet in version 16"
expect 0 "$ONX" check later.onnxtxt
expect 1 "$ONX" check --strict later.onnxtxt

# nodes that are in order keep it
cat >mixed.onnxtxt <<'E'
<ir_version: 10, opset_import: ["" : 21]>
g (float x) => (float y, float z) { z = Neg (x)  y = Add (b, a)  a = Abs (x)  b = Exp (x) }
E
expect 0 "$ONX" convert --sort mixed.onnxtxt mixed-sorted.onnxtxt
[ "$(sed -n 's/.* = \([A-Z][a-z]*\)(.*/\1/p' mixed-sorted.onnxtxt | tr -d '\n')" = NegExpAbsAdd ] || fail "another order: $(cat mixed-sorted.onnxtxt)"

# a cycle has no order, and no meaning
cat >cycle.onnxtxt <<'E'
<ir_version: 10, opset_import: ["" : 21]>
g (float x) => (float y) { y = Add (b, x)  b = Neg (y)  c = Neg (d)  d = Neg (x) }
E
expect 1 "$ONX" run cycle.onnxtxt --random
says err "G-02"
expect 1 "$ONX" convert --sort cycle.onnxtxt cycle.onnx
says err "depends on what it makes itself"
[ ! -e cycle.onnx ] || fail "a model without an order was written"
expect 1 "$ONX" check cycle.onnxtxt
says out "G-02"

cat >hidden.onnxtxt <<'E'
<ir_version: 10, opset_import: ["" : 21]>
g (float x, bool c) => (float y) {
  a = If (c) <then_branch = t () => (u) { u = Neg (y) }, else_branch = n () => (v) { v = Abs (x) }>
  y = Neg (a)
}
E
expect 1 "$ONX" run hidden.onnxtxt --random # a cycle through a subgraph
says err "error: "

# no type, no name, an initializer that is no input
cat >loose.textproto <<'E'
ir_version: 3
opset_import { version: 9 }
graph {
  node { op_type: "Add" input: "x" input: "w" output: "y" }
  initializer { name: "w" data_type: 1 dims: 2 float_data: 1 float_data: 2 }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
  output { name: "y" }
}
E
expect 0 "$ONX" run loose.textproto -i 'x=[1,2]'
for rule in G-01 G-09 G-14; do
    says err "[$rule]"
done
says out "y  float[2] 2 4"
expect 1 "$ONX" run loose.textproto -i 'x=[1,2]' --strict

# a long graph in the worst order is sorted in linear time, and warned of once
{
    echo '<ir_version: 10, opset_import: ["" : 21]> g (float v0) => (float v60000) {'
    i=60000
    while [ $i -gt 0 ]; do
        echo "v$i = Neg (v$((i - 1)))"
        i=$((i - 1))
    done
    echo '}'
} >long.onnxtxt
expect 0 timeout 60 "$ONX" run long.onnxtxt -i v0=1
[ "$(grep -c G-03 err)" -eq 1 ] || fail "G-03 is said $(grep -c G-03 err) times"
says out "v60000  float[] 1"
expect 0 timeout 60 "$ONX" convert --sort long.onnxtxt long.onnx
expect 0 timeout 60 "$ONX" check long.onnx
# one node in the wrong place among many, and one that needs what comes after it, is found
"$ONX" show long.onnx | awk '/v30000 = / { late = $0; next } { print } /v40000 = / { print late }' >moved.onnxtxt
expect 1 "$ONX" check moved.onnxtxt
expect 0 timeout 60 "$ONX" convert --sort moved.onnxtxt mended.onnx
expect 0 timeout 60 "$ONX" check mended.onnx
"$ONX" show long.onnx | sed 's/v30000 = Neg *(v29999)/v30000 = Neg (v40000)/' >round.onnxtxt
expect 1 timeout 60 "$ONX" convert --sort round.onnxtxt none.onnx
says err "v30000 needs v40000"
for command in "retarget --opset 22" compress "edit --strip doc" inline outline; do
    # shellcheck disable=SC2086
    expect 0 timeout 60 "$ONX" $command round.onnxtxt -o none.onnx
    [ "$(grep -c "the graph has a cycle" err)" -eq 1 ] || fail "$command: $(cat err)"
done

# a function that calls itself through another is named by what can go on with it; many that call one another are looked at
# in linear time
cat >self.onnxtxt <<'END'
<ir_version: 8, opset_import: ["": 17, "f": 1]>
g (float[2] x) => (float[2] y) { y = f.F(x) }
<domain: "f", opset_import: ["": 17, "f": 1]> F (v) => (o) { t = f.G(v)  o = Neg(t) }
<domain: "f", opset_import: ["": 17, "f": 1]> G (v) => (o) { c = Constant<value_int = 1>()  d = Cast<to = 9>(c)  o = If(d)<then_branch = p () => (q) { q = f.F(v) }, else_branch = e () => (r) { r = Neg(v) }> }
END
for command in "retarget --opset 18" compress "edit --strip doc" outline; do
    # shellcheck disable=SC2086
    expect 0 "$ONX" $command self.onnxtxt -o none.onnx
    [ "$(grep -c "function F calls itself: its body has no end" err)" -eq 1 ] || fail "$command: $(cat err)"
done
{
    echo '<ir_version: 9, opset_import: ["" : 17, "f" : 1]> g (float[4] x) => (float[4] y) { y = f.F0(x) }'
    awk 'BEGIN { for (i = 0; i < 20000; i++) printf "<domain: \"f\", opset_import: [\"\" : 17, \"f\": 1]> F%d (a) => (b) { t = Exp(a)  b = %s }\n", i, (i < 19999 ? "f.F" i + 1 "(t)" : "Neg(t)") }'
} >calls.onnxtxt
expect 0 timeout 60 "$ONX" compress calls.onnxtxt -o none.onnx
grep -q "calls itself" err && fail "$(cat err)"
expect 0 timeout 60 "$ONX" retarget --opset 18 calls.onnxtxt -o none.onnx
done_testing

# onx simplify on graphs of very many nodes that all change: the time is linear in their number.
. "$ONX_SOURCE_DIR/tests/lib.sh"
# chain COUNT HEAD NODE TAIL: NODE with %d for its number and %p for the previous number.
chain() {
    awk -v n="$1" -v head="$2" -v node="$3" -v tail="$4" 'BEGIN {
        print "<ir_version: 9, opset_import: [\"\" : 17]>"; print head
        for (i = 1; i <= n; i++) { line = node; gsub(/%d/, i, line); gsub(/%p/, i - 1, line); print line }
        gsub(/%d/, n, tail); print tail }'
}
left() { # NODES: so many are left, within a time that is far above what it takes
    expect 0 timeout 60 "$ONX" simplify many.onnxtxt -o few.onnx
    grep -q "^$1 nodes of" out || fail "$(cat out), expected $1"
}
chain 8000 'g (float[3,4] x) => (float[4,3] y) { a0 = Transpose (x)' ' a%d = Transpose (a%p)' ' y = Neg (a%d) }' >many.onnxtxt
left 2
chain 8000 'g (float[3,4] x) => (float[3,4] y) { a0 = Exp (x)' ' b%d = Exp (x)  c%d = Neg (b%d)  a%d = Identity (c%d)' \
    ' y = Neg (a%d) }' >many.onnxtxt
left 1
chain 8000 'g (float[3] x) => (float[3] y) { a0 = Constant <value_float = 1.0> ()' ' a%d = Cos (a%p)' \
    ' y = Add (x, a%d) }' >many.onnxtxt
left 1
chain 3000 'g (float[3] x) => (float[3] y) <bool c = {1}> { a0 = Identity (x)' \
    ' a%d = If (c) <then_branch = t () => (r) { e = Exp (a%p)  r = Neg (e) }, else_branch = f () => (r) { r = Abs (a%p) }>' \
    ' y = Identity (a%d) }' >many.onnxtxt
left 6000
chain 8000 'g (float[N,4] x) => (float[M,4] y) { a0 = Identity (x)' ' a%d = Concat <axis = 0> (a%p, x)' \
    ' y = Identity (a%d) }' >many.onnxtxt
expect 0 timeout 60 "$ONX" simplify many.onnxtxt -o few.onnx
done_testing

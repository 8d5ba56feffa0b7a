# onx simplify on graphs of very many nodes that all change: the time is linear in their number.
. "$ONX_SOURCE_DIR/tests/lib.sh"
export ONX
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
quick() { # processor time, as other tests run beside it; quadratic time takes twice as long and more
    expect 0 sh -c 'ulimit -t 4; exec "$ONX" simplify many.onnxtxt -o few.onnx'
}
# Nodes that differ only in an attribute, of each kind, or only in what is an output of the graph.
alike() { # NODE: 20,000 of it, with %d for its number
    awk -v n=20000 -v node="$1" 'BEGIN {
        print "<ir_version: 10, opset_import: [\"\" : 21, \"ai.onnx.ml\" : 4]>"
        print "g (float[N,2] x, int64[2] s, string[2] t, bool b) => (float[N,2] y) {"
        for (i = 1; i <= n; i++) { line = node; gsub(/%d/, i, line); print line; sum = sum (i > 1 ? ", v" : "v") i }
        print " y = Sum (" sum ") }" }' >many.onnxtxt
    quick
}
alike ' v%d = LeakyRelu <alpha = 0.0%d> (x)'
alike ' v%d = AveragePool <kernel_shape = [1], pads = [0, %d]> (x)'
alike ' v%d = Einsum <equation = "ab->a%db"> (x)'
alike ' v%d = ConstantOfShape <value = float[1] {%d.0}> (s)'
alike ' v%d = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b%d"], values_floats = [1.0, 2.0]> (t)'
alike ' v%d = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_floats = [1.0, %d.0]> (t)'
alike ' v%d = Concat <axis = 0> (x, x)'
awk 'BEGIN { print "<ir_version: 10, opset_import: [\"\" : 21]> g (float[N] x) => ("
    for (i = 1; i <= 20000; i++) { outputs = outputs (i > 1 ? ", float[N] y" : "float[N] y") i; nodes = nodes " y" i " = Exp (x)\n" }
    print outputs ") {\n" nodes "}" }' >many.onnxtxt
quick
# and constants whose bytes are the same, which are none, but not their dims
awk 'BEGIN { print "<ir_version: 10, opset_import: [\"\" : 21]> g (float[N,0] x) => ("
    for (i = 1; i <= 20000; i++) { outputs = outputs (i > 1 ? ", float[M,0] y" : "float[M,0] y") i
        constants = constants (i > 1 ? ", float[" : "float[") i ",0] c" i " = {}"; nodes = nodes " y" i " = Concat <axis = 0> (x, c" i ")\n" }
    print outputs ") <" constants "> {\n" nodes "}" }' >many.onnxtxt
quick
done_testing

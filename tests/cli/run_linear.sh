# onx run: the time is linear in the size of the model and in the work of a loop, not quadratic. Each model below takes more
# than half a minute if one of its lists is searched once per element.
. "$ONX_SOURCE_DIR/tests/lib.sh"
limit=30 # seconds of processor time; a release build takes one or two for each of them
bounded() { (ulimit -t $limit && exec "$@"); }

# operands OPERATOR COUNT: one node with so many operands, all different; its attributes are in the file `attributes`
operands() {
    awk -v op="$1" -v n="$2" 'BEGIN {
        getline attributes <"attributes"
        print "<ir_version: 10, opset_import: [\"\" : 21]> g (float[4] x) => (float[?] y) {"
        for (i = 0; i < n; i++) print "v" i " = Neg(x)"
        printf "y = %s%s(v0", op, attributes
        for (i = 1; i < n; i++) printf ", v" i
        print ") }"
    }'
}
echo >attributes
operands Max 120000 >max.onnxtxt
expect 0 bounded "$ONX" run max.onnxtxt --random
echo '<axis = 0>' >attributes
operands Concat 320000 >concat.onnxtxt
expect 0 bounded "$ONX" run concat.onnxtxt --random
says out "y  float[1280000]"

# what is cut into many parts, each of which lies in the whole
awk 'BEGIN {
    n = 120000
    print "<ir_version: 8, opset_import: [\"\" : 18]> g (float[" n ",16] x) => (float[?,16] y) { n = Neg (x)"
    for (i = 0; i < n; i++) printf "%s v%d", i ? "," : "", i
    printf " = Split <axis = 0, num_outputs = %d> (n)  y = Concat <axis = 0> (v0", n
    for (i = 1; i < n; i++) printf ", v" i
    print ") }" }' >split.onnxtxt
expect 0 bounded "$ONX" run split.onnxtxt --random --threads 1
says out "y  float[120000,16]"

# a subgraph that captures all there is
awk 'BEGIN {
    n = 50000
    print "<ir_version: 10, opset_import: [\"\" : 21]> g (float[4] x, bool c) => (float[?] y) {"
    for (i = 0; i < n; i++) print "v" i " = Neg(x)"
    for (branch = 0; branch < 2; branch++) {
        printf branch ? ", else_branch = b () => (q) { q = Max(v0" : "y = If(c)<then_branch = a () => (p) { p = Max(v0"
        for (i = 1; i < n; i++) printf ", v" i
        printf ") }"
    }
    print "> }"
}' >captures.onnxtxt
expect 0 bounded "$ONX" run captures.onnxtxt --random

# all values of a chain of sequences, each with one element more: shown in short, they need no copies
awk 'BEGIN {
    n = 10000
    print "<ir_version: 10, opset_import: [\"\" : 21]> g (float x) => (int64 y) { s0 = SequenceEmpty ()"
    for (i = 0; i < n; i++) print "s" i + 1 " = SequenceInsert (s" i ", x)"
    print "y = SequenceLength (s" n ") }"
}' >chain.onnxtxt
expect 0 bounded "$ONX" run chain.onnxtxt -i x=1 --outputs all --max-memory 200M
says out "s10000  sequence of 10000"
says out "y  int64[] 10000"

# a sequence that grows at its end, shrinks from its front, and grows in a branch
cat >lists.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g () => (seq(float[1]) s, seq(float[1]) t, seq(float[1]) u)
<int64 m = {100000}, int64 k = {99999}, bool c = {1}, float[1] a = {0}, int64 zero = {0}> {
  e = SequenceEmpty()
  s = Loop(m, c, e)<body = b (int64 i, bool cc, seq(float[1]) v) => (bool co, seq(float[1]) vo) {
    co = Identity(cc)
    vo = SequenceInsert(v, a)
  }>
  f = Identity(s)
  t = Loop(k, c, f)<body = b (int64 i, bool cc, seq(float[1]) v) => (bool co, seq(float[1]) vo) {
    co = Identity(cc)
    vo = SequenceErase(v, zero)
  }>
  u = Loop(m, c, e)<body = b (int64 i, bool cc, seq(float[1]) v) => (bool co, seq(float[1]) vo) {
    co = Identity(cc)
    two = Constant<value = int64 {2}>()
    r = Mod(i, two)
    odd = Cast<to = 9>(r)
    vo = If(odd)<then_branch = p () => (seq(float[1]) w) { w = SequenceInsert(v, a, zero) },
                 else_branch = q () => (seq(float[1]) w) { w = Identity(v) }>
  }>
}
END
expect 0 bounded "$ONX" run lists.onnxtxt
says out "s  sequence of 100000"
says out "t  sequence of 1"
says out "u  sequence of 50000"
done_testing

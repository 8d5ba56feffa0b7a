# onx inline: models with inlined functions give the same results, names do not collide, and errors are reported.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cat >calls.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
g (float[2,3] x) => (float[2,3] y, float[2,3] z)
{
  t = my.twice <by = 3.0> (x)
  y = my.twice (t)
  z = my.same (x)
}
<domain: "my", opset_import: ["" : 21, "my" : 1]>
twice <by: float = 2.0> (v) => (o) { t = Constant <value_float: float = @by> ()  s = my.same (v)  o = Mul (s, t) }
<domain: "my", opset_import: ["" : 21]>
same (v) => (v) { }
END
mkdir before after
expect 0 "$ONX" run calls.onnxtxt --random --seed 3 --output-dir before
expect 0 "$ONX" inline calls.onnxtxt -o flat.onnxtxt
expect 0 "$ONX" check --full flat.onnxtxt
grep -q "my.twice\|my.same" flat.onnxtxt && fail "calls are left"
expect 0 "$ONX" run flat.onnxtxt --random --seed 3 --output-dir after
same before/output_0.pb after/output_0.pb
same before/output_1.pb after/output_1.pb
expect 0 "$ONX" inline calls.onnxtxt -o some.onnxtxt --function my.same
grep -q "my.twice" some.onnxtxt || fail "a call is gone that should stay"
grep -q "my.same (" some.onnxtxt && fail "a call is left"
expect 2 "$ONX" inline calls.onnxtxt -o none.onnx --function my.other
says err "the model has no function my.other"
cat >itself.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 20, "my" : 1]>
g (float[2] x) => (y) { y = my.f (x) }
<domain: "my", opset_import: ["" : 20, "my" : 1]>
f (v) => (o) { o = my.f (v) }
END
expect 1 "$ONX" inline itself.onnxtxt -o none.onnx
says err "function f calls itself"
expect 1 "$ONX" precision itself.onnxtxt -o none.onnx --to float16 # which is not a matter of limits
says err "function f calls itself"
[ ! -e none.onnx ] || fail "a model was written"

# functions that call each other twice would make 2^40 nodes
{
    echo '<ir_version: 10, opset_import: ["" : 20, "my" : 1]>'
    echo 'g (float[2] x) => (y) { y = my.f40 (x) }'
    echo '<domain: "my", opset_import: ["" : 20, "my" : 1]>'
    echo 'f0 (v) => (o) { o = Neg (v) }'
    for i in $(seq 1 40); do
        echo '<domain: "my", opset_import: ["" : 20, "my" : 1]>'
        echo "f$i (v) => (o) { t = my.f$((i - 1)) (v)  o = my.f$((i - 1)) (t) }"
    done
} >twice.onnxtxt
expect 1 timeout 60 "$ONX" inline twice.onnxtxt -o none.onnx
says err "the model has more than 1000000 nodes"
# many operands, called often, are as many nodes
{
    echo '<ir_version: 10, opset_import: ["" : 20, "my" : 1]>'
    echo 'g (float[2] x) => (x) {'
    for i in $(seq 1 20000); do echo "y$i = my.wide (x)"; done
    echo '}'
    echo '<domain: "my", opset_import: ["" : 20, "my" : 1]>'
    echo "wide (v) => (o) { o = Sum (v$(yes ', v' | head -n 20000 | tr -d '\n')) }"
} >wide.onnxtxt
expect 1 timeout 60 "$ONX" inline wide.onnxtxt -o none.onnx
says err "nodes"
# imports of many functions
{
    echo '<ir_version: 10, opset_import: ["" : 20, "my" : 1]>'
    echo 'g (float[2] x) => (y) { y = my.f1 (x) }'
    for i in $(seq 1 20000); do
        echo "<domain: \"my\", opset_import: [\"\" : 20, \"my\" : 1, \"d$i\" : 1]>"
        echo "f$i (v) => (o) { o = Neg (v) }"
    done
} >imports.onnxtxt
expect 0 timeout 20 "$ONX" inline imports.onnxtxt -o many.onnx

# --explain says what took the place of what, in subgraphs and bodies, too; --dry-run only says it
cat >explained.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21, "f": 1]>
g (float[2] x, bool c) => (float[2] y) {
  [first] a = f.Outer(x)
  y = If(c) <then_branch = t () => (u) { u = f.Inner(a) }, else_branch = e () => (v) { v = Gelu(a) }>
}
<domain: "f", opset_import: ["": 21, "f": 1]> Outer (v) => (o) { t = f.Inner(v)  o = Neg(t) }
<domain: "f", opset_import: ["": 21]> Inner (v) => (o) { t = Exp(v)  o = Abs(t) }
END
expect 0 "$ONX" inline explained.onnxtxt --dry-run --schema
cp out dry.txt
says out 'graph.node[0] "first" (Outer): call: function Outer: 2 nodes in its place'
says out 'graph.node[0] "first" (Outer): call: function Inner: 2 nodes in its place'
says out '.then_branch.node[0] (Inner): call: function Inner: 2 nodes in its place'
says out '(Gelu): Gelu: replaced by its function body'
expect 0 "$ONX" inline explained.onnxtxt -o flat.onnx --explain --schema
same out dry.txt
expect 0 "$ONX" inline explained.onnxtxt -o flat.onnx
[ ! -s out ] || fail "$(cat out)"

# subgraphs nested as deep as the limit lets them: every command ends by itself
nest() { # nest COUNT
    echo '<ir_version: 10, opset_import: ["" : 21]>'
    echo 'g (bool c, float x) => (float y) {'
    for i in $(seq 1 "$1"); do echo "o$i = If (c) <then_branch = t$i () => (float p$i) {"; done
    echo 'last = Neg (x)'
    for i in $(seq "$1" -1 1); do
        [ "$i" = "$1" ] && from=last || from=o$((i + 1))
        echo "p$i = Identity ($from) }, else_branch = e$i () => (float q$i) { q$i = Abs (x) }>"
    done
    echo 'y = Identity (o1) }'
}
nest 300 >deep.onnxtxt
nest 700 >deeper.onnxtxt
for depth in 100 2000; do
    for command in "convert --sort @ -o x.onnx" "inline @ -o x.onnx" "inline @ -o x.onnx --schema" "retarget @ -o x.onnx --opset 11" \
        "info --cost @" "check --full @" "infer @ -o x.onnx" "run --random @" "compare @ @ --seed 1" "diff @ @" "show @"; do
        for file in deep.onnxtxt deeper.onnxtxt; do
            # shellcheck disable=SC2086
            timeout 60 "$ONX" $(echo "$command" | sed "s/@/$file/g") --max-depth $depth >/dev/null 2>err
            got=$?
            [ $got -le 2 ] || fail "exit status $got: $command, $file, depth $depth"
            [ $got -eq 0 ] || [ $depth = 100 ] || [ $file = deeper.onnxtxt ] || fail "$command: $(head -n 1 err)"
        done
    done
done

# ---- operators of a domain, in standard ones; the import goes with the last of them ----
if "$ONX" ops --domain com.microsoft >/dev/null 2>&1; then
    cat >gelu.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
g (float[2, 3] x, bool c) => (float[2, 3] y)
<float[3] b = {0.5, -1, 2}> {
  t = com.microsoft.BiasGelu(x, b)
  y = If(c) <then_branch = a () => (p) { p = com.microsoft.QuickGelu(t) }, else_branch = e () => (q) { q = Identity(t) }>
}
END
    expect 0 "$ONX" inline gelu.onnxtxt --domain com.microsoft -o flat.onnxtxt
    grep -q com.microsoft flat.onnxtxt && fail "the domain is left: $(cat flat.onnxtxt)"
    expect 0 "$ONX" check --full --strict flat.onnxtxt
    expect 0 "$ONX" compare gelu.onnxtxt flat.onnxtxt
    # what has no body stays, and with it the import
    sed 's/2, 3\]/3, 3]/g; s/QuickGelu(t)/Inverse(t)/' gelu.onnxtxt >inverse.onnxtxt
    expect 0 "$ONX" inline inverse.onnxtxt --domain com.microsoft -o some.onnxtxt
    grep -q com.microsoft.BiasGelu some.onnxtxt && fail "a BiasGelu is left"
    says some.onnxtxt com.microsoft.Inverse
    expect 0 "$ONX" check --full --strict some.onnxtxt
    expect 0 "$ONX" compare inverse.onnxtxt some.onnxtxt -i 'x=[[1,2,3],[4,5,7],[7,8,2]]' -i c=true
fi

# ---- operators that an operator-set document defines as functions, one of which uses another ----
cat >set.textproto <<'END'
magic: "ONNXOPSET" ir_version: 10 domain: "com.example" opset_version: 2
operator { op_type: "Square" since_version: 2 status: EXPERIMENTAL }
operator { op_type: "Fourth" since_version: 2 status: EXPERIMENTAL }
functions { name: "Square" domain: "com.example" input: "a" output: "b"
  node { op_type: "Mul" input: "a" input: "a" output: "b" } opset_import { domain: "" version: 21 } }
functions { name: "Fourth" domain: "com.example" input: "a" output: "c"
  node { op_type: "Square" domain: "com.example" input: "a" output: "b" }
  node { op_type: "Square" domain: "com.example" input: "b" output: "c" }
  opset_import { domain: "com.example" version: 2 } }
END
cat >square.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21, "com.example": 2]>
g (float[2, 3] x, bool c) => (float[2, 3] y) {
  t = local.Half(x)
  y = If(c) <then_branch = a () => (p) { p = com.example.Fourth(t) }, else_branch = e () => (q) { q = com.example.Square(t) }>
}
<domain: "local", opset_import: ["": 21, "com.example": 2]>
Half (a) => (b) { s = com.example.Square(a) b = Sub(s, a) }
END
sed -i 's/"com.example": 2]>$/"com.example": 2, "local": 1]>/; 6,$s/, "local": 1//' square.onnxtxt
document="--opset-doc set.textproto"
# shellcheck disable=SC2086
{
    expect 0 "$ONX" inline square.onnxtxt $document --schema -o flat.onnxtxt
    grep -qE "Square|Fourth|Half" flat.onnxtxt && fail "a call is left: $(cat flat.onnxtxt)"
    expect 0 "$ONX" check --full flat.onnxtxt
    for c in true false; do
        expect 0 "$ONX" run square.onnxtxt $document -i 'x=[[1,2,3],[4,5,7]]' -i c=$c -o want.npz
        expect 0 "$ONX" run flat.onnxtxt -i 'x=[[1,2,3],[4,5,7]]' -i c=$c -o got.npz
        same want.npz got.npz
    done
    # only functions of the model; one by its name, the other stays an operator of the document
    expect 0 "$ONX" inline square.onnxtxt $document -o own.onnxtxt
    grep -q Half own.onnxtxt && fail "a call of Half is left"
    says own.onnxtxt com.example.Fourth
    expect 0 "$ONX" inline square.onnxtxt $document --function com.example.Fourth -o one.onnxtxt
    grep -q Fourth one.onnxtxt && fail "a call of Fourth is left"
    says one.onnxtxt com.example.Square
    says one.onnxtxt local.Half
    grep -q 'domain: "com.example"' one.onnxtxt && fail "an operator of the document is a function of the model"
    expect 0 "$ONX" inline square.onnxtxt $document --schema --except com.example.Square -o rest.onnxtxt
    grep -qE "Fourth|Half" rest.onnxtxt && fail "a call is left: $(cat rest.onnxtxt)"
    says rest.onnxtxt com.example.Square
    for file in own one rest; do
        expect 0 "$ONX" check --full $file.onnxtxt $document
        expect 0 "$ONX" run $file.onnxtxt $document -i 'x=[[1,2,3],[4,5,7]]' -i c=false -o got.npz
        same want.npz got.npz
    done
    expect 2 "$ONX" inline square.onnxtxt $document --function com.example.Cube -o none.onnxtxt
    says err com.example.Cube
}
done_testing

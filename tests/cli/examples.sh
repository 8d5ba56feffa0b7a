# The programs in examples/ print what they promise.
. "$ONX_SOURCE_DIR/tests/lib.sh"
bin=$(dirname "$ONX")/examples
examples=$ONX_SOURCE_DIR/examples
stripes=$examples/stripes.onnxtxt

expect 0 "$bin/example_run" "$stripes"
printf '0.022\n0.932\n0.023\n0.023\n' >wanted
awk '{ printf "%.2f\n", $1 }' wanted >w; awk '{ printf "%.2f\n", $1 }' out >o
same w o
expect 1 "$bin/example_run" no_such.onnx
says err "no_such.onnx"

expect 0 "$bin/example_bound_memory" "$stripes"
# Of each frame the score of its direction is the highest: horizontal, vertical, and the two diagonals.
awk '{ best = 1; for (i = 2; i <= 4; i++) if ($i > $best) best = i; printf "%d ", best }' out >o
[ "$(cat o)" = "1 2 3 4 " ] || fail "bound_memory says $(cat o)"

expect 0 "$bin/example_threads" "$stripes"
says out "100 runs"

expect 0 "$bin/example_build" layer.onnx
expect 0 "$ONX" check --full --strict layer.onnx
expect 0 "$ONX" show layer.onnx
says out "Gemm"

expect 0 "$bin/example_check" layer.onnx
says out "0 errors"
sed 's/pooled = /pooled = Relu (strong) again = /; s/(strong)$/(missing)/' "$stripes" >broken.onnxtxt
expect 1 "$bin/example_check" broken.onnxtxt
says out "G-"

printf '4\n4\n4\n0\n' >numbers
"$bin/example_stream" "$examples/average.onnxtxt" <numbers >out 2>err || fail "stream fails"
printf '1.0000\n1.7500\n2.3125\n1.7344\n' >wanted
same wanted out

# An operator of one's own, from C and from a library, in every command that takes one.
smooth=$examples/smooth.onnxtxt
printf '0\n0.5\n2.5\n6.5\n12.5\n20.5\n' >wanted
expect 0 "$bin/example_custom_operator" "$smooth"
same wanted out
plugin=$bin/moving_average.so
expect 0 "$bin/example_custom_operator" "$smooth" "$plugin"
same wanted out
expect 0 "$ONX" check --full --strict --custom-domains --library "$plugin" "$smooth"
expect 1 "$ONX" check --full --strict --custom-domains "$smooth"
expect 0 "$ONX" infer --list --library "$plugin" "$smooth"
says out "y  float[N]"
expect 0 "$ONX" ops --library "$plugin" MovingAverage --domain com.example
says out "window"
grep -q "^  kernel: plain" out || fail "onx ops does not know the kernel of a plugin"
# What comes behind such an operator has a type, too, where values inside are asked for.
behind() { # number
    cat <<END
<ir_version: 10, opset_import: ["" : 21, "com.example" : 1]>
g (float[N] x) => (float[N] y) <float w = {$1}>
{ a = com.example.MovingAverage (x)  b = Add (a, w)  c = Neg (b)  y = Exp (c) }
END
}
behind 1 >one.onnxtxt
behind 2 >two.onnxtxt
expect 1 "$ONX" compare --library "$plugin" one.onnxtxt two.onnxtxt --dim N=4 --bisect
says out "starts at graph.node[1] (Add)"
expect 0 "$ONX" run --library "$plugin" "$smooth" --random --dim N=4
says out "y  float[4]"
expect 1 "$ONX" run "$smooth" --random --dim N=4
expect 0 "$ONX" compare --library "$plugin" "$smooth" "$smooth" --dim N=4
expect 0 "$ONX" bench --library "$plugin" "$smooth" --seconds 0.01
# A plugin in the folder that one is in needs no slash, and is not searched for elsewhere.
cp "$plugin" here.so
expect 0 "$ONX" check --library here.so "$smooth"
# Attributes are checked by the row, and by its shape rule.
sed 's/window = 2/window = 0/' "$smooth" >zero.onnxtxt
expect 1 "$ONX" check --full --library "$plugin" zero.onnxtxt
says out "the window has 0 elements"
sed 's/window = 2/window = 0.5/' "$smooth" >half.onnxtxt
expect 1 "$ONX" check --library "$plugin" half.onnxtxt
sed 's/window = 2/windows = 2/' "$smooth" >other.onnxtxt
expect 1 "$ONX" check --library "$plugin" other.onnxtxt
expect 1 "$ONX" run --library "$plugin" zero.onnxtxt --random --dim N=4

# Plugins that cannot be used are refused, by every command in the same way.
refused() { # library, status, text
    expect "$2" "$ONX" check --library "$1" "$smooth"
    says err "$3"
}
refused "$bin/bad_edition.so" 1 "was compiled for edition 1001 of the interface for plugins; this library has"
refused "$bin/bad_sizes.so" 1 "whose structs have other sizes"
refused "$bin/bad_none.so" 1 "it does not export onx_plugin_entry"
refused "$bin/bad_refuses.so" 1 "says that it cannot be used here"
refused "$bin/no_such.so" 2 "cannot be loaded"
refused "$smooth" 2 "cannot be loaded"
expect 1 "$ONX" check --library "$plugin" --library "$plugin" "$smooth"
says err "is there already"

# The guides show what is compiled here: each of their pieces of C stands in an example.
for page in custom_operators.md embedding.md; do
    [ -f "$ONX_SOURCE_DIR/docs/$page" ] || continue
    awk -v dir="$here" '/^```c$/ { file = sprintf("%s/piece%d.c", dir, ++n); printf "" >file; next }
        /^```/ { if (file) close(file); file = "" } file { print >file }' "$ONX_SOURCE_DIR/docs/$page"
    for piece in "$here"/piece*.c; do
        awk 'FNR == NR { piece = piece $0 "\n"; next } FNR == 1 { check() } { text = text $0 "\n" } END { check(); exit !found }
            function check() { if (index(text, piece)) found = 1; text = "" }' "$piece" "$examples"/*.c ||
            fail "$page shows a piece of C that is in no example: $(head -n 1 "$piece")"
        rm "$piece"
    done
done
done_testing

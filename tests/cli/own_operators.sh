# Custom operators (--library) in every command: a model with one of them is opened and transformed into a valid model with the
# same results, and a library that cannot be used is refused.
. "$ONX_SOURCE_DIR/tests/lib.sh"
plugins=$(dirname "$ONX")/examples
plugin=$plugins/moving_average.so

# Behind the operator types have to be known: Softmax means something else from version 13 on, and Reshape goes.
cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 12, "com.example" : 1]>
net (float[2, 4] x) => (float[2, 3] y)
<float[4, 4] w = {1, -2, 3, -1, 2, 1, 0.5, 1, -1, 2, 0, 1, 3, 1, 1, -2}, float[4, 3] v = {1, 2, 3, -4, 5, -6, 0.5, 1, -1, 2, 0, 1},
 float[4] k = {1, 2, 3, 4}>
{
  a = MatMul (x, w)
  b = com.example.MovingAverage <window = 2> (a)
  c = Softmax (b)
  s = Shape (c)
  d = Reshape (c, s)
  f = com.example.MovingAverage (k)
  e = Add (d, f)
  y = MatMul (e, v)
}
END
cat >words.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
words (int64[1, N] input_ids) => (float[1, N, 4] logits)
<float[4, 4] table = {1, 2, 3, 4, 4, 3, 2, 1, 2, 4, 1, 3, 3, 1, 4, 2}>
{
  a = Gather (table, input_ids)
  logits = com.example.MovingAverage <window = 2> (a)
}
END
sed 's,(,( ,' net.onnxtxt >messy.onnxtxt
cat >next.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 12, "com.example" : 1]>
next (float[2, 3] z) => (float[2, 3] t) { t = com.example.MovingAverage (z) }
END
cat >data.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
data (float[8, 4] x0, float[8, 3] l0) => (float[8, 4] x, float[8, 3] label) { x = Neg (x0)  label = Neg (l0) }
END
expect 0 "$ONX" run data.onnxtxt --random -o data.npz
mkdir -p case/test_data_set_0
expect 0 "$ONX" convert net.onnxtxt case/model.onnx
expect 0 "$ONX" run net.onnxtxt --random --library "$plugin" -o case/test_data_set_0
echo 'in (float[2, 4] x) => (float[2, 4] y) { y = Identity (x) }' | sed '1s/^/<ir_version: 8, opset_import: ["" : 17]> /' >in.onnxtxt
expect 0 "$ONX" run in.onnxtxt --random -o case/test_data_set_0/input_0.pb # the same numbers
expect 0 "$ONX" trainable net.onnxtxt -o learner.onnx --library "$plugin" --freeze w --freeze k --loss mse --batch 2

# A row for each command of the table: how it is called, and what the result has to be; `-` where it opens no model.
#   same: result.onnx gives what the model gives       near: to rounding of few bits
#   valid: it is a valid model                         said: something is printed
rows() {
    cat <<'END'
info        said  net.onnxtxt
show        said  net.onnxtxt --types
view        said  net.onnxtxt -o -
convert     same  net.onnxtxt result.onnx
fmt         said  --check messy.onnxtxt
diff        said  net.onnxtxt words.onnxtxt
ops         said  MovingAverage
check       said  --full --custom-domains net.onnxtxt
infer       same  net.onnxtxt --strict -o result.onnx
retarget    same  net.onnxtxt --opset 13 -o result.onnx
inline      same  net.onnxtxt --schema -o result.onnx
simplify    near  net.onnxtxt -o result.onnx
grad        valid net.onnxtxt --of y --wrt v -o result.onnx
extract     valid net.onnxtxt --inputs b -o result.onnx
merge       valid net.onnxtxt next.onnxtxt --map y=z -o result.onnx
outline     same  net.onnxtxt -o result.onnx
edit        valid net.onnxtxt --batch 3 -o result.onnx
precision   valid net.onnxtxt --to float16 --keep-io --samples 1 -o result.onnx
quantize    near  net.onnxtxt --mode static -o result.onnx
compress    same  net.onnxtxt -o result.onnx
shard       same  net.onnxtxt --tensor-parallel --devices 2 -o result.onnx
trainable   valid net.onnxtxt --freeze w --freeze k --loss mse -o result.onnx
train       valid learner.onnx --data data.npz --epochs 1 -o result.onnx
run         said  net.onnxtxt --random
generate    said  words.onnxtxt --ids 1,2 --max-tokens 3
tokenize    -
test        said  case
compare     said  net.onnxtxt net.onnxtxt
bench       said  net.onnxtxt --seconds 0
help        -
completion  -
END
}
rows >rows.txt
called() { # STATUS LIBRARY: the command of the row with the library
    # shellcheck disable=SC2086
    expect "$1" "$ONX" "$command" $arguments --library "$2"
}
tried=0
for command in $("$ONX" help --list); do
    row=$(grep "^$command " rows.txt) || fail "the table of this test has no row for onnx $command"
    read -r _ kind arguments <<END
$row
END
    if [ "$kind" = - ]; then
        "$ONX" "$command" --help | grep -qE '^usage: .*(MODEL|FILE|IN|DIR|\<A\>)' && fail "onx $command opens something"
        continue
    fi
    tried=$((tried + 1))
    rm -f result.onnx
    case $command in
    diff | fmt) called 1 "$plugin" ;;
    *) called 0 "$plugin" ;;
    esac
    case $kind in
    said) [ -s out ] || fail "onx $command says nothing" ;;
    *)
        expect 0 "$ONX" check --full --custom-domains --library "$plugin" result.onnx
        [ "$kind" = same ] && expect 0 "$ONX" compare --library "$plugin" net.onnxtxt result.onnx
        [ "$kind" = near ] && expect 0 "$ONX" compare --library "$plugin" net.onnxtxt result.onnx --atol 0.2
        ;;
    esac
    called 1 "$plugins/bad_none.so"
    says err "it does not export onx_plugin_entry"
    called 1 "$plugins/bad_edition.so"
    says err "was compiled for edition 1001 of the interface for plugins; this library has"
    called 2 "$plugins/no_such.so"
    says err "cannot be loaded"
done
[ $tried -gt 25 ] || fail "only $tried commands were tried"
[ $tried -eq "$(awk '$2 != "-"' rows.txt | wc -l)" ] || fail "the table of this test has rows of no command"

# ---- what transforms know of such operators: each of these differs without the library
both() { # COMMAND...: with the library to with.onnxtxt, without it to without.onnxtxt
    expect 0 "$ONX" "$@" --library "$plugin" -o with.onnxtxt
    expect 0 "$ONX" "$@" -o without.onnxtxt
}
lacks() { # FILE TEXT
    grep -qF "$2" "$1" && fail "$1 has $2"
}
both retarget net.onnxtxt --opset 13 # the rank of what Softmax reads
lacks with.onnxtxt Flatten
says without.onnxtxt Flatten
both simplify net.onnxtxt # the shape of what Reshape reads; an operator of constants is computed
lacks with.onnxtxt Reshape
[ "$(grep -c MovingAverage with.onnxtxt)" -eq 1 ] || fail "an operator of constants alone is not computed"
[ "$(grep -c MovingAverage without.onnxtxt)" -eq 2 ] || fail "an operator that nobody knows is computed"
both precision net.onnxtxt --to float16 # its types: it takes no float16, but what is behind it does
[ "$(grep -c 'MatMul(' with.onnxtxt)" -eq 2 ] || fail "MatMul is gone"
grep -q 'float16\[4, 3\] v' with.onnxtxt || fail "what follows the operator stays in float"
grep -q 'float16\[4, 3\] v' without.onnxtxt && fail "types are known without the library"
# the type of the new input: without the library nobody knows it, and the result would be invalid
expect 0 "$ONX" extract net.onnxtxt --inputs b --library "$plugin" -o with.onnxtxt
grep -q '(float\[2, 4\] b' with.onnxtxt || fail "extract does not know the type of b"
expect 1 "$ONX" extract net.onnxtxt --inputs b -o untyped.onnxtxt
says err "the value has no type"
[ ! -e untyped.onnxtxt ] || fail "an invalid model was written"
expect 1 "$ONX" grad net.onnxtxt --of y --wrt x --library "$plugin" -o x.onnx
says err "no gradient of MovingAverage is known"
[ -e x.onnx ] && fail "a gradient was written"
# Documents of operator sets are opened in the same place.
cat >set.textproto <<'END'
magic: "ONNXOPSET" ir_version: 8 domain: "com.example" opset_version: 1
operator { op_type: "MovingAverage" since_version: 1 status: STABLE }
END
expect 0 "$ONX" compress net.onnxtxt --opset-doc set.textproto -o x.onnx
expect 2 "$ONX" compress net.onnxtxt --opset-doc none.textproto -o x.onnx
done_testing

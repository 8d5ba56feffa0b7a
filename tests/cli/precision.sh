# --precision and onx bench --accuracy: low-precision weights, and the error of results.
. "$ONX_SOURCE_DIR/tests/lib.sh"
{
    echo '<ir_version: 8, opset_import: ["" : 17]> g (float[1, 64] x) => (float[1, 64] y, int64[2] s)'
    printf '<float[64, 64] w = {'
    awk 'BEGIN { for (i = 0; i < 4096; i++) printf "%s%.6f", i ? "," : "", sin(i) * 3 }'
    echo '}> { y = MatMul (x, w) s = Shape (x) }'
} >m.onnxtxt
expect 0 "$ONX" bench m.onnxtxt --accuracy
says out "max abs"
[ "$(awk '$4 == "y" && $1 > 1e-3' out | wc -l)" -eq 0 ] || fail "full precision is off by more than rounding"
for type in bf16 f16 int8-weights; do
    expect 0 "$ONX" bench m.onnxtxt --precision "$type" --accuracy
    awk '$4 == "y" { if ($3 < 0.999 || $2 > 0.05) exit 1; found = 1 } END { exit !found }' out || fail "$type is far off"
    awk '$4 == "s" && $1 != 0 { exit 1 }' out || fail "an integer changed"
    expect 0 "$ONX" bench m.onnxtxt --precision "$type" --accuracy --json
    says out '"max_abs"'
    says out '"cosine"'
    expect 0 "$ONX" run m.onnxtxt --random --precision "$type"
    says out "y"
done
for type in "" int4 BF16 bf16,f16; do
    expect 2 "$ONX" run m.onnxtxt --random --precision "$type"
    says err "precision"
done
# A model that cannot be run fails in the same way as without the option.
echo 'g' >broken.onnxtxt
expect 1 "$ONX" bench broken.onnxtxt --accuracy
done_testing

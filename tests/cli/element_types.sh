# Every element type, from the rows of onx/dtype.def: tensors in every format, with entries and with raw_data, differences,
# the checker, runs, NumPy files, comparison of models and quantized weights.
. "$ONX_SOURCE_DIR/tests/lib.sh"

rows() { # NAME NUMBER BITS CLASS TEXT ... of each type
    sed -n 's/^DTYPE(//p' "$ONX_SOURCE_DIR/include/onx/dtype.def" | tr -d '",)'
}
head='<ir_version: 14, producer_name: "t", producer_version: "1", opset_import: ["" : 28]>'
share=${ONX_TEST_SHARE:-1} # tests/share.h
count=0
rows >rows
while read -r _ number bits class type _ _ entry mantissa _; do
    count=$((count + 1))
    [ $((number % share)) -eq $((share / 2)) ] || continue
    # Thirteen elements, which end within a byte for 2, 4 and 6 bits: numbers, or codes of floats below 32 bits
    case $class$bits in
    TEXT*) values='"a", "", "b\"c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"' other='"a", "", "b\"c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "n"' ;;
    BOOLEAN*) values='1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1' other='1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0' ;;
    SIGNED2) values='1, -2, 0, -1, 1, 1, -2, 0, 1, -1, 0, 0, -2' other='1, -2, 0, -1, 1, 1, -2, 0, 1, -1, 0, 0, 1' ;;
    UNSIGNED2) values='1, 2, 0, 3, 1, 1, 2, 0, 1, 3, 0, 0, 2' other='1, 2, 0, 3, 1, 1, 2, 0, 1, 3, 0, 0, 1' ;;
    SIGNED4) values='1, -8, 7, 3, -5, 0, 6, 2, -1, 4, 5, -3, -7' other='1, -8, 7, 3, -5, 0, 6, 2, -1, 4, 5, -3, 7' ;;
    FLOATING6) values='1, 63, 31, 32, 5, 0, 17, 42, 9, 60, 2, 33, 45' other='1, 63, 31, 32, 5, 0, 17, 42, 9, 60, 2, 33, 44' ;;
    COMPLEX*) values='1, 2, -3, 4, 5, 0, 6, 0.5, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8' other='1, 2, -3, 4, 5, 0, 6, 0.5, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 9' ;;
    *) values='1, 15, 7, 8, 5, 0, 3, 2, 9, 12, 6, 10, 13' other='1, 15, 7, 8, 5, 0, 3, 2, 9, 12, 6, 10, 14' ;;
    esac

    # A tensor through every format, and packed
    echo "$type[13] w = {$values}" >w.onnxtxt
    echo "$type[13] w = {$other}" >v.onnxtxt
    expect 0 "$ONX" check --as tensor w.onnxtxt
    for name in w v; do
        expect 0 "$ONX" convert --as tensor $name.onnxtxt $name.pb
    done
    for step in textproto json onnxtxt pb; do
        expect 0 "$ONX" convert --as tensor w.pb w1.$step
        expect 0 "$ONX" convert --as tensor w1.$step w2.pb
        cmp -s w.pb w2.pb || fail "$type: not the same after $step"
        expect 0 "$ONX" diff --as tensor w.pb w1.$step
    done
    [ "$(tr -d ' \n' <w1.onnxtxt)" = "$(tr -d ' \n' <w.onnxtxt)" ] || fail "$type: printed as $(cat w1.onnxtxt)"
    expect 1 "$ONX" diff --as tensor w.pb v.pb
    says out '1 of 13 elements'

    # A model: the same bits from constants, and one element that differs
    for name in w v; do
        echo "$head g () => ($type[13] y) { y = Constant <value = $(sed 's/ w = / /' $name.onnxtxt)> () }" >$name.model.onnxtxt
        expect 0 "$ONX" convert $name.model.onnxtxt $name.onnx
        expect 0 "$ONX" check --full $name.onnx
    done
    expect 0 "$ONX" info w.onnx
    says out "$type"
    expect 0 "$ONX" run w.onnx -o y.npy
    expect 0 "$ONX" run w.onnx -o y.pb
    expect 0 "$ONX" convert --as tensor y.pb y.onnxtxt
    [ "$(sed '/^#@/d; s/ y = / w = /' y.onnxtxt)" = "$(cat w1.onnxtxt)" ] || fail "$type: the output is $(cat y.onnxtxt)"
    expect 0 "$ONX" compare w.onnx w.onnx --atol 0 --rtol 0
    expect 1 "$ONX" compare w.onnx v.onnx --atol 0 --rtol 0
    expect 1 "$ONX" diff w.onnx v.onnx
    expect 0 "$ONX" run w.onnx --full
    cp out printed

    # As an input from both files; NumPy files have the next wider type that NumPy knows
    pass="f = Cast <to = 1> (x)  z = Cast <to = $number> (f)"
    case $class in
    TEXT | COMPLEX) pass='z = Identity (x)' ;;
    esac
    echo "$head g ($type[13] x) => ($type[13] z) { $pass }" >pass.onnxtxt
    expect 0 "$ONX" check --full pass.onnxtxt
    for file in y.pb y.npy; do
        if [ $file = y.npy ] && ! "$ONX" run pass.onnxtxt -i x=y.npy >out 2>err; then
            wide=$(sed -n 's/.*input "x" is of type \([a-z0-9]*\), the model wants .*/\1/p' err)
            case $bits:$class:$wide in
            ?:FLOATING:float | 16:FLOATING:float | [24]:SIGNED:int8 | [24]:UNSIGNED:uint8) ;;
            *) fail "$type is $wide in NumPy files" ;;
            esac
            sed "s/g ($type/g ($wide/" pass.onnxtxt >wide.onnxtxt
            mv wide.onnxtxt pass.onnxtxt
        fi
        expect 0 "$ONX" run pass.onnxtxt -i x=$file --full
        [ "$(sed 's/^z /y /' out)" = "$(cat printed)" ] || fail "$type from $file: $(cat out), not $(cat printed)"
    done
done <rows
[ $count -ge 28 ] || fail "$count types"

# Weights in every type of quantization: valid, of that type, near the original, and the same from textproto and JSON
weights=
for i in 1 2 3 4 5 6 7 8; do
    weights="$weights 0.5, -0.25, 1, 0.75, -1, 0.125, -0.5, 0.25,"
done
echo "$head g (float[2, 8] x) => (float[2, 8] y) <float[8, 8] w = {${weights%,}}> { y = MatMul (x, w) }" >float.onnxtxt
types=$("$ONX" quantize --help | sed -n '/--weight-type/,/--block-size/p' | grep -o ' u*int[248]\| float[4-8]e*[0-9a-z]*' | sort -u)
for given in $types; do
    expect 0 "$ONX" quantize float.onnxtxt --mode weights --weight-type $given --block-size 0 -o q.onnx
    expect 0 "$ONX" check --full q.onnx
    case $given in
    float4) type=float4e2m1 ;;
    float6) type=float6e2m3 ;;
    float8) type=float8e4m3fn ;;
    *) type=$given ;;
    esac
    expect 0 "$ONX" show q.onnx
    says out "$type["
    for step in textproto json onnxtxt; do
        expect 0 "$ONX" convert q.onnx q.$step
        expect 0 "$ONX" diff q.onnx q.$step
        expect 0 "$ONX" compare q.onnx q.$step --atol 0 --rtol 0
    done
    case $given in
    *int2) near=4 ;;
    *int4 | float4) near=1 ;;
    *) near=0.3 ;;
    esac
    expect 0 "$ONX" compare float.onnxtxt q.onnx --atol $near --rtol 0
done
[ "$(echo $types | wc -w)" -ge 11 ] || fail "types of weights: $types"
done_testing

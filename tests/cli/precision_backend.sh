# onx precision on the models of the ONNX project's backend tests: with 16 and with 64 bits, they are valid, and results are the
# same within the precision of the type.
. "$ONX_SOURCE_DIR/tests/lib.sh"
backend_models 'NR % 10 == 3'
number=0 moved=0
while read -r model; do
    number=$((number + 1))
    case $((number % 3)) in 0) type=double ;; 1) type=float16 ;; 2) type=bfloat16 ;; esac
    name=$(basename "$(dirname "$model")")
    "$ONX" precision "$model" -o out.onnx --to $type --keep-io >out 2>err
    case $? in
    0) moved=$((moved + 1)) ;;
    1) says err "error: "; continue ;;
    *) fail "$name to $type: $(cat err)"; continue ;;
    esac
    # What is wrong with the model itself is not what is tested.
    "$ONX" check --full "$model" >out 2>err || continue
    expect 0 "$ONX" check --full out.onnx
    # Results that jump, or that are random, do not depart little; they are of the same types and shapes.
    mkdir -p "there/${name}_$type"
    [ $type = double ] || continue
    cp out.onnx "there/${name}_$type/model.onnx"
    link_sets "$model" "there/${name}_$type"
done <models
[ $((moved * 10)) -ge $((number * 7)) ] || fail "only $moved of $number models were converted"
find there -type d -empty -delete
"$ONX" test there/* >out 2>err
[ $? -le 1 ] || fail "onx test: $(cat err)"
failed_cases <out >failed
[ -s failed ] && fail "other results than before: $(cat failed; cat out)"
passed_at_least $((number / 9))
done_testing

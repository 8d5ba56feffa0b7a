# onx retarget on the models of the ONNX project's backend tests: results are the same with other versions.
. "$ONX_SOURCE_DIR/tests/lib.sh"
backend_models 'NR % 9 == 4'
number=0 moved=0
while read -r model; do
    number=$((number + 1))
    case $((number % 4)) in 0) target=28 ;; 1) target=13 ;; 2) target=22 ;; 3) target=17 ;; esac
    folder=there/$(basename "$(dirname "$model")")_$target
    mkdir -p "$folder"
    "$ONX" retarget "$model" -o "$folder/model.onnx" --opset $target >out 2>err
    case $? in
    0) moved=$((moved + 1)) ;;
    1) says err "error: "; rm -r "$folder"; continue ;;
    *) fail "$model to $target"; continue ;;
    esac
    link_sets "$model" "$folder"
done <models
[ $((moved * 10)) -ge $((number * 7)) ] || fail "only $moved of $number models were moved"
# Inverse transforms that are compared with an error of a rounding more than they can have.
rm -rf there/test_dft_inverse*
"$ONX" test there/* >out 2>err
[ $? -le 1 ] || fail "onx test: $(cat err)"
failed_cases <out >failed
[ -s failed ] && fail "other results than before: $(cat failed; cat out)"
passed_at_least $((moved * 6 / 10))
done_testing

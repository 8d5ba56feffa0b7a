# onx extract and onx merge on the models of the ONNX project's backend tests: split in two and merged again, they give the same
# results.
. "$ONX_SOURCE_DIR/tests/lib.sh"
backend_models 'NR % 3 == 1'
# names FILE LIST: the names of inputs or outputs, separated by commas
names() {
    "$ONX" info --json "$1" | awk -v list="\"$2\": [" 'index($0, list) { on = 1; next } on && /^    ]/ { exit }
        on && /"name"/ { gsub(/.*: "|",?$/, ""); printf "%s%s", comma, $0; comma = "," }'
}
number=0 cut=0
while read -r model; do
    "$ONX" extract "$model" -o part.onnx --split 2 >out 2>err
    case $? in
    0) ;;
    1) says err "between values that another node of a part names"; continue ;; # Gradient is about the whole
    2) says err "parts cannot be made of"; continue ;;                          # of a single node
    *) fail "$model: $(cat err)"; continue ;;
    esac
    number=$((number + 1))
    folder=there/$(basename "$(dirname "$model")")
    mkdir -p "$folder"
    if ! "$ONX" merge part.1.onnx part.2.onnx -o "$folder/model.onnx" --inputs "$(names "$model" inputs)" --outputs "$(names "$model" outputs)" >out 2>err; then
        says err "has no value" # an input that no node reads
        rm -r "$folder"
        continue
    fi
    link_sets "$model" "$folder"
    cut=$((cut + 1))
done <models
[ $((cut * 10)) -ge $((number * 8)) ] || fail "only $cut of $number models were put together"
"$ONX" test there/* >out 2>err
[ $? -le 1 ] || fail "onx test: $(cat err)"
failed_cases <out >failed
[ -s failed ] && fail "other results than before: $(cat failed; cat out)"
passed_at_least $((cut * 8 / 10))
done_testing

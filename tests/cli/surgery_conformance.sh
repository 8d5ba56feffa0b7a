# onx merge and onx inline on the cases of the reference implementation: the same acceptance, ports and results.
. "$ONX_SOURCE_DIR/tests/lib.sh"
data=${ONX_CONFORMANCE_DIR:-}
[ -n "$data" ] && [ -d "$data/merge" ] && [ -d "$data/inline" ] || skip "no cases of merge and inline (ONX_CONFORMANCE_DIR)"
# field NAME: the text of a member of the case in $line, empty for null
field() {
    printf '%s\n' "$line" | sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p"
}
# list NAME: the texts of a list, separated by commas
list() {
    printf '%s\n' "$line" | sed -n "s/.*\"$1\": \[\([^]]*\)\].*/\1/p" | tr -d '" '
}
# ends FILE: inputs and outputs with their types
ends() {
    "$ONX" info "$1" | sed -n '/^Inputs/,/^Operators/p' | grep -v '^Operators'
}
# alike OURS THEIRS: the same ends and as many nodes, and where the model can run, the same outputs
alike() {
    "$ONX" check --full "$2" >/dev/null 2>&1 && expect 0 "$ONX" check --full "$1"
    [ "$(ends "$1")" = "$(ends "$2")" ] || fail "$number: other ends: $(ends "$1"), not $(ends "$2")"
    if "$ONX" run "$2" --random >/dev/null 2>&1; then
        ran=$((ran + 1))
        expect 0 "$ONX" compare "$1" "$2" --rtol 0 --atol 0
    fi
}

number=0 ran=0
while read -r line; do
    number=$((number + 1))
    map=$(printf '%s\n' "$line" | sed -n 's/.*"io_map": \[\(\[.*\]\)\], "args".*/\1/p' | sed 's/", "/=/g; s/\], \[/,/g' | tr -d '[]" ')
    set -- "$data/merge/blobs/$(field a)" "$data/merge/blobs/$(field b)" -o ours.onnx --map "$map"
    for option in inputs outputs; do
        [ -z "$(list $option)" ] || set -- "$@" "--$option" "$(list $option)"
    done
    for option in prefix1 prefix2; do
        [ -z "$(field $option)" ] || set -- "$@" "--$option" "$(field $option)"
    done
    rm -f ours.onnx
    "$ONX" merge "$@" >out 2>err
    got=$?
    case "$line" in
    *"different operator set ids"*) # which are brought together
        [ $got -eq 0 ] || fail "$number: $(cat err)"
        expect 0 "$ONX" check --full ours.onnx
        ;;
    *'"error": null'*)
        [ $got -eq 0 ] || fail "$number: exit status $got: $(cat err)"
        alike ours.onnx "$data/merge/blobs/$(field out)"
        ;;
    *) { [ $got -eq 1 ] || [ $got -eq 2 ]; } && [ -s err ] && [ ! -e ours.onnx ] || fail "$number: exit status $got where the reference fails" ;;
    esac
done <"$data/merge/index.jsonl"
[ $number -gt 0 ] && [ $ran -gt 0 ] || fail "no case of merge ran"

number=0 ran=0
while read -r line; do
    number=$((number + 1))
    set -- "$data/inline/blobs/$(field in)" -o ours.onnx
    names=$(printf '%s\n' "$line" | sed -n 's/.*"function_ids": \[\(\[.*\]\)\], "exclude".*/\1/p' | sed 's/\], \[/ /g; s/", "/./g' | tr -d '[]"')
    option=--function
    case "$line" in *'"exclude": true'*) option=--except ;; esac
    for name in $names; do set -- "$@" $option "$name"; done
    case "$line" in *inline_selected_functions2*) set -- "$@" --schema ;; esac
    rm -f ours.onnx
    "$ONX" inline "$@" >out 2>err
    got=$?
    [ $got -eq 0 ] || fail "$number: exit status $got: $(cat err)"
    case "$line" in
    *inline_selected_functions2*) "$ONX" show ours.onnx | grep -q "Softsign" && fail "$number: an operator that is a function is left" ;;
    esac
    case "$line" in
    *'"error": null'*) alike ours.onnx "$data/inline/blobs/$(field out)" ;;
    esac
done <"$data/inline/index.jsonl"
[ $number -gt 0 ] && [ $ran -gt 0 ] || fail "no case of inline ran"
done_testing

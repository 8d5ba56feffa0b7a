# All errors are reported: each exit status other than 0 comes with a line on standard error or, for the commands whose answer
# may be "no" (diff, check, test, fmt --check), with an answer on standard output.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >model.textproto <<'E'
ir_version: 8 opset_import { version: 17 } graph { name: "g"
node { op_type: "Add" input: "x" input: "w" output: "y" }
input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim { dim_value: 4 } } } } }
output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim { dim_value: 4 } } } } }
initializer { dims: 4 data_type: 1 name: "w" float_data: 1 float_data: 2 float_data: 3 float_data: 4 } }
E
expect 0 "$ONX" convert model.textproto model.onnx
head -c 60 model.onnx >short.onnx
head -c 3000 /dev/urandom >noise.onnx
: >empty.onnx
: >empty.npy
mkdir folder.onnx
printf 'x' >file
printf '\x93NUMPY\001\000\377\377{' >bad.npy
mkdir -p case/test_data_set_0
cp model.onnx case
"$ONX" ops --export set.pb --opset 17 2>err || fail "ops --export"
cases=0 calls=0
# reports ARGUMENT...: whatever the exit status, a failure is reported. The answers of some commands are on standard output. Of all
# calls, the share of share.h.
reports() {
    calls=$((calls + 1))
    [ $((calls % ${ONX_TEST_SHARE:-1})) = 0 ] || return 0
    cases=$((cases + 1))
    timeout 60 "$ONX" "$@" >answer 2>err
    got=$?
    case $got in
    0) return ;;
    1 | 2) ;;
    *) fail "exit status $got: $*" ;;
    esac
    [ -s err ] && return
    case "$got $*" in
    "1 diff "* | "1 test "* | "1 check "* | "1 fmt --check"*) [ -s answer ] && return ;;
    esac
    fail "exit status $got and not a word: $*"
}

for file in none.onnx folder.onnx empty.onnx short.onnx noise.onnx model.onnx bad.npy set.pb /dev/null; do
    for command in info show check infer run bench fmt "fmt --check" "run --random" "info --json" "check --json" "check --format sarif" \
        "check --strict --quiet" "check --full" "infer --strict" "bench --codec --seconds 1" "show --format json" "convert -o x.onnx" \
        "convert -o x.json" "diff model.onnx" "test" "infer -o x.onnx" "run --input x=bad.npy" "run --input x=empty.npy" \
        "run --random --output-dir file" "run --random --profile --trace folder.onnx" "check --opset-doc model.onnx" \
        "convert -o x.onnx --external x/y/.." "convert -o folder.onnx" "convert -o none/x.onnx"; do
        # shellcheck disable=SC2086
        case "$command $file" in
        "bench model.onnx" | "bench set.pb" | "bench /dev/null") continue ;; # seconds of work
        esac
        # shellcheck disable=SC2086
        reports $command "$file"
    done
done
reports test case
reports test none
reports test
# little memory: at each limit something else is the first that does not fit
for memory in 1 100 1000 5000 10000 20000 40000 80000 200000 1000000; do
    for command in "info model.onnx" "check --full model.onnx" "infer --list model.onnx" "run --random model.onnx" \
        "convert model.textproto x.onnx" "convert model.onnx x.onnx --external w --external-threshold 1" "show model.onnx" \
        "diff model.onnx model.textproto" "fmt model.textproto" "ops --export x.pb" "ops --opset-doc set.pb" \
        "run --random --profile --trace x.json --dim N=100000 model.onnx" "test case"; do
        # shellcheck disable=SC2086
        reports $command --max-memory $memory
    done
done
# little address space: malloc fails. Where the program itself, with sanitizers, does not fit, the system ends it before
# it begins; its code and data take that much.
bytes=$(size "$ONX" 2>/dev/null | awk 'NR == 2 { print $4 }')
needs=$((${bytes:-0} / 1024))
for kilobytes in 60000 80000 100000 150000; do
    [ "$needs" -lt $kilobytes ] || continue
    for command in "info model.onnx" "check --full model.onnx" "run --random --dim N=10000000 model.onnx" "convert model.onnx x.json"; do
        cases=$((cases + 1))
        # shellcheck disable=SC2086
        (ulimit -v $kilobytes 2>/dev/null && exec timeout 60 "$ONX" $command) >answer 2>err
        got=$?
        [ $got -eq 0 ] || [ -s err ] || fail "exit status $got and not a word in $kilobytes K: $command"
    done
done
if [ -w /dev/full ]; then
    for command in "info model.onnx" "show model.onnx" "ops" "help" "completion bash" "check --json model.onnx" "run --random model.onnx"; do
        # shellcheck disable=SC2086
        "$ONX" $command >/dev/full 2>err
        got=$?
        [ $got -eq 2 ] || fail "exit status $got on a full device: $command"
        says err "cannot write standard output"
    done
fi
# what cannot be written: no such folder, a folder, a file in place of a folder
for out in none/x.onnx folder.onnx file/x.onnx /proc/x.onnx ''; do
    for command in "convert model.onnx --to onnx -o" "infer model.onnx --to onnx -o" "ops --export" \
        "run model.onnx --random --profile --trace" "run model.onnx --random --output-dir"; do
        # shellcheck disable=SC2086
        reports $command "$out"
    done
done

# ---- values that are none
for value in '' = N N= =3 N=-1 N=+1 'N= 1' N=1K N=0x10 N=1.5 N=9223372036854775808 N=99999999999999999999 N==; do
    for command in "run --random" bench infer; do
        # shellcheck disable=SC2086
        expect 2 "$ONX" $command model.onnx --dim "$value"
        says err "--dim"
    done
done
for command in "run --random" "bench --seconds 0"; do
    # shellcheck disable=SC2086
    expect 2 "$ONX" $command model.onnx --dim M=3
    says err 'no input has a dimension "M"'
    says err "hint: the inputs have N"
    # shellcheck disable=SC2086
    expect 2 "$ONX" $command model.onnx --dim N=3 --dim N=4
    says err 'given twice for "N"'
    # shellcheck disable=SC2086
    expect 0 "$ONX" $command model.onnx --dim N=3
    # shellcheck disable=SC2086
    expect 0 "$ONX" $command model.onnx --dim N=0
done
expect 0 "$ONX" run --random model.onnx --dim N=3
says out "float[3,4]"
for value in '' = x =x -1 =99999999999999999999 ai.onnx= ai.onnx=-1; do
    expect 2 "$ONX" check --as node model.onnx --opset "$value"
    says err "--opset"
done
for value in '' = x x= =file y=file; do
    expect 2 "$ONX" run model.onnx --input "$value"
    [ -s err ] || fail "--input $value: not a word"
done
for value in '' x -1 nan inf 1e999 ' 1' 0x1 1x; do
    for call in "diff model.onnx model.onnx --rtol" "diff model.onnx model.onnx --atol" "test case --rtol" "test case --atol" \
        "bench model.onnx --seconds"; do
        # shellcheck disable=SC2086
        expect 2 "$ONX" $call "$value"
        says err "${call##* }"
    done
done
[ $cases -gt $((400 / ${ONX_TEST_SHARE:-1})) ] || fail "only $cases calls were tried"

# ---- options that messages name are options of some command
for command in $("$ONX" help --list); do
    "$ONX" "$command" --help
done >help.txt
{
    cat "$ONX_SOURCE_DIR"/cli/*.c
    find "$ONX_SOURCE_DIR/src" -name '*.c' -exec cat {} +
} | grep -v '^ *\(//\|\*\|/\*\)' | grep -oE '"([^"\\]|\\.)*"' | grep -oE -- '(^|[^-a-z])--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u >named.txt
[ "$(wc -l <named.txt)" -gt 10 ] || fail "the options in messages are not found"
while read -r option; do
    grep -qE -- "$option([^a-z-]|\$)" help.txt || [ "$option" = --version ] || fail "a message names $option, which no command has"
done <named.txt
# and a hint names one that helps: limits that no option raises have none
cat >regex.onnxtxt <<'E'
<ir_version: 9, opset_import: ["" : 20]>
g (string[1] x = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}) => (bool[1] y) {
  y = RegexFullMatch <pattern = "(a+a+)+b"> (x)
}
E
"$ONX" run regex.onnxtxt >out 2>err
grep -q -- "--max-" err && fail "a hint that does not help: $(cat err)"
expect 1 "$ONX" run --random --dim N=1000000 --max-memory 1M model.onnx
says err "--max-memory SIZE raises the limit"
{
    printf 'ir_version: 8 graph { name: "g" node { '
    i=0
    while [ $i -lt 60 ]; do
        printf 'attribute { name: "a" type: GRAPH g { name: "g" node { '
        i=$((i + 1))
    done
} >deep.textproto
expect 1 "$ONX" info deep.textproto
says err "--max-depth N raises the limit, which is 2000 at most"
done_testing

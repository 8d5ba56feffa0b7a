# --timeout ends every command with a message, and leaves nothing behind.
. "$ONX_SOURCE_DIR/tests/lib.sh"
awk 'BEGIN {
    print "<ir_version: 10, opset_import: [\"\": 21]> g (float[N,4] v0) => (float[N,4] y) {"
    for (i = 0; i < 300000; i++) print "v" i + 1 " = " (i % 3 ? "Neg" : "Exp") " (v" i ")"
    print "y = Identity (v300000) }" }' >long.onnxtxt
expect 0 "$ONX" convert long.onnxtxt long.onnx
expect 0 "$ONX" check long.onnx --timeout 300
# The limit has passed before the file is read, however fast the machine is: a command that has done its work by the time
# it looks at the limit may well say so and end with 0.
while read -r words; do
    # shellcheck disable=SC2086
    expect 1 timeout 100 "$ONX" $words --timeout 0.0001
    says err "this takes longer than 0.0001 s"
    says err "hint: --timeout SECONDS sets the limit"
done <<'END'
check long.onnx
check --full long.onnxtxt
infer long.onnx -o out.onnx
simplify long.onnx -o out.onnx
retarget long.onnx -o out.onnx --opset 13
convert long.onnx out.json
convert long.onnxtxt out.onnx
info long.onnxtxt
diff long.onnx long.onnxtxt
grad long.onnx -o out.onnx --of y --wrt v0
extract long.onnx -o out.onnx --split 3
precision long.onnx -o out.onnx --to float16
view long.onnx -o out.html
show long.onnxtxt
END
rest=$(find . -name 'out*' -o -name '.*onx*' | grep -v '^./out$' || true)
[ -z "$rest" ] || fail "files are left: $rest"
# What waits for somebody else takes no memory, and is ended all the same.
mkfifo pipe.onnx
sleep 60 >pipe.onnx &
sleeper=$!
expect 1 timeout 30 "$ONX" check pipe.onnx --timeout 0.1
says err "longer than"
kill $sleeper
# mistakes
for value in 0 -1 x 1e99; do
    expect 2 "$ONX" check long.onnx --timeout $value
done
# One row for each command, be it the common one or its own.
for command in run check; do
    expect 0 "$ONX" $command --help
    [ "$(grep -c -- '--timeout SECONDS' out)" = 1 ] || fail "$command --help: --timeout is not there once"
done
done_testing

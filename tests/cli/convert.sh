# onx convert and onx show: conversion between formats and back, pipes, external data, and errors.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cp "$ONX_SOURCE_DIR/examples/stripes.onnxtxt" "$ONX_SOURCE_DIR/examples/image.onnxtxt" .

expect 0 "$ONX" convert stripes.onnxtxt stripes.onnx
for format in onnx pb onnxtxt textproto pbtxt json; do
    expect 0 "$ONX" convert stripes.onnx "copy.$format"
    expect 0 "$ONX" convert "copy.$format" back.onnx
    same stripes.onnx back.onnx
    expect 0 "$ONX" convert image.onnxtxt --as tensor "image.$format"
    expect 0 "$ONX" convert "image.$format" --as tensor image-back.pb
    same image.onnx image-back.pb
done

# Pipes: binary unless --to says otherwise.
expect 0 "$ONX" convert - piped.onnx <stripes.onnx
same stripes.onnx piped.onnx
expect 0 "$ONX" convert stripes.onnx -
same stripes.onnx out
expect 0 "$ONX" convert stripes.onnx -o - --to json
same copy.json out
expect 0 "$ONX" convert - back.onnx --from json <copy.json
same stripes.onnx back.onnx

# The old file stays whole when the call fails, and no temporary file is left.
cp stripes.onnx kept.onnx
printf '\010\012\072\177\001' >broken.onnx
expect 1 "$ONX" convert broken.onnx kept.onnx
same stripes.onnx kept.onnx
expect 2 "$ONX" convert stripes.onnx no-such-folder/out.onnx
expect 2 "$ONX" convert no-such-file.onnx out.onnx
expect 2 "$ONX" convert stripes.onnx unknown.extension
says err "--to"
expect 2 "$ONX" convert stripes.onnx
expect 2 "$ONX" convert stripes.onnx a.onnx -o b.onnx
(ulimit -f 0 2>/dev/null && "$ONX" convert stripes.onnx kept.onnx 2>err)
status=$?
[ $status -eq 2 ] || fail "exit status $status when the file size limit is hit"
same stripes.onnx kept.onnx
if [ -e /dev/full ]; then
    "$ONX" convert stripes.onnx - --to json >/dev/full 2>err
    [ $? -eq 2 ] || fail "exit status of a write to a full device"
fi
[ -z "$(find . -name '.*' -type f)" ] || fail "files left: $(find . -name '.*' -type f)"

# A text that does not parse: line, column, caret.
printf '<ir_version: 8, opset_import: ["" : 17]>\ng (float[2] x) => (float[2] y) {\n  y = Neg (x, \n}\n' >bad.onnxtxt
expect 1 "$ONX" convert bad.onnxtxt out.onnx
says err "bad.onnxtxt:3:15"
says err "^"

# Weights outside and back in.
expect 0 "$ONX" convert stripes.onnx out.onnx --external w.bin --external-threshold 100
[ "$(wc -c <w.bin)" -ge 144 ] || fail "no weights in w.bin"
expect 0 "$ONX" info out.onnx
says out "w.bin"
expect 0 "$ONX" diff stripes.onnx out.onnx
expect 0 "$ONX" convert out.onnx inside.onnx --inline-external
expect 0 "$ONX" diff stripes.onnx inside.onnx
expect 2 "$ONX" convert stripes.onnx out2.onnx --external-align 64
says err "needs --external"
expect 2 "$ONX" convert stripes.onnx out2.onnx --external w2.bin --external-align 65
says err "power of two"
expect 2 "$ONX" convert stripes.onnx out2.onnx --external w2.bin --inline-external

# show
expect 0 "$ONX" show stripes.onnx
golden_is show_stripes.txt
expect 0 "$ONX" show --full stripes.onnx
cp out full.onnxtxt
expect 0 "$ONX" convert full.onnxtxt back.onnx
same stripes.onnx back.onnx
expect 0 "$ONX" show --full --format textproto stripes.onnx
same copy.textproto out
expect 0 "$ONX" show --format textproto stripes.onnx
golden_is show_stripes.textproto
expect 0 "$ONX" show --format json --as tensor image.onnx
golden_is show_image.json
expect 0 "$ONX" show --node strong stripes.onnx
golden_is show_node.txt
expect 2 "$ONX" show --node weak stripes.onnx
says err 'called "weak"'
done_testing

# A user without permissions: exit status 2 and the reason; no file is changed, and none is left behind.
. "$ONX_SOURCE_DIR/tests/lib.sh"

if [ "$(id -u)" -ne 0 ]; then
    as=
elif command -v setpriv >/dev/null && setpriv --reuid=65534 --regid=65534 --clear-groups "$ONX" --version >/dev/null 2>&1; then
    as="setpriv --reuid=65534 --regid=65534 --clear-groups"
else
    skip "root may do everything, and there is no setpriv"
fi
cat >model.textproto <<'E'
ir_version: 8 opset_import { version: 17 } graph { name: "g"
node { op_type: "Add" input: "x" input: "w" output: "y" }
input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
initializer { dims: 4 data_type: 1 name: "w" float_data: 1 float_data: 2 float_data: 3 float_data: 4 } }
E
expect 0 "$ONX" convert model.textproto a.onnx
expect 0 "$ONX" convert a.onnx ext.onnx --external w.bin --external-threshold 1
printf 'dims: 4 data_type: 1 float_data: 1 float_data: 2 float_data: 3 float_data: 4' >x.textproto
expect 0 "$ONX" convert --as tensor x.textproto secret.pb
expect 0 "$ONX" run a.onnx --random --output-dir values --npy
"$ONX" show a.onnx >mine.onnxtxt
echo >>mine.onnxtxt
cp a.onnx secret.onnx
cp values/output_0.npy secret.npy
mkdir nowrite noentry blind
cp a.onnx nowrite
cp a.onnx noentry
cp a.onnx nowrite/open.onnx
chmod 666 nowrite/open.onnx
chmod 444 a.onnx mine.onnxtxt
chmod 000 secret.onnx secret.pb secret.npy w.bin
chmod 555 nowrite
chmod 000 noentry
chmod 733 blind
chmod 755 .
# denied ARGUMENT...
denied() {
    ls -lR nowrite a.onnx mine.onnxtxt >before 2>&1
    # shellcheck disable=SC2086
    (cd "$where" && exec $as timeout 60 "$ONX" "$@") >out 2>err
    got=$?
    [ $got -eq 2 ] || fail "exit status $got: $*"
    says err "Permission denied"
    ls -lR nowrite a.onnx mine.onnxtxt >after 2>&1
    cmp -s before after || fail "something was changed by: $*"
    [ -z "$(find . -name '.*.tmp')" ] || fail "a temporary file was left by: $*"
}
where=.
for command in info show check infer "run --random" "bench --codec" "diff a.onnx" "convert -o x.onnx" "check --opset-doc secret.onnx"; do
    # shellcheck disable=SC2086
    denied $command secret.onnx
    # shellcheck disable=SC2086
    denied $command noentry/a.onnx
done
denied fmt mine.onnxtxt
denied run a.onnx --input x=secret.pb
denied run a.onnx --input x=secret.npy
# data files that may not be read: not the model is at fault
denied run ext.onnx --random
denied convert ext.onnx blind/x.onnx --inline-external
denied convert ext.onnx blind/x.onnx --external v.bin
[ ! -e blind/x.onnx ] && [ ! -e blind/v.bin ] || fail "a model without its data was written"
for out in nowrite/new.onnx nowrite/a.onnx nowrite/open.onnx a.onnx noentry/new.onnx; do
    denied convert mine.onnxtxt "$out"
    denied infer mine.onnxtxt -o "$out"
    denied ops --export "$out"
    denied run mine.onnxtxt --random --profile --trace "$out"
done
denied run mine.onnxtxt --random --output-dir nowrite
denied run mine.onnxtxt --random --output-dir nowrite/sub
where=nowrite
denied run a.onnx --random --profile
denied convert a.onnx x.onnx --external w.bin
where=.
# A folder that may be written but not read is no obstacle.
# shellcheck disable=SC2086
expect 0 $as "$ONX" convert mine.onnxtxt "$here/blind/new.onnx" --external new.bin --external-threshold 1
[ -s blind/new.onnx ] && [ -s blind/new.bin ] || fail "nothing was written to a folder that may not be read"
# shellcheck disable=SC2086
expect 2 $as "$ONX" test noentry
says err "Permission denied"
chmod 755 noentry nowrite blind
done_testing

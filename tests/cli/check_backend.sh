# onx check --full on the models that the ONNX project tests runtimes with: none of them has an error.
. "$ONX_SOURCE_DIR/tests/lib.sh"
data=${ONX_CONFORMANCE_DIR:-}
[ -n "$data" ] && data=$data/backend || data=/usr/share/libonnx-testdata/data
[ -d "$data" ] || skip "no conformance data (ONX_CONFORMANCE_DIR or Debian's libonnx-testdata)"
find "$data" -name model.onnx | sort >models
[ -s models ] || skip "no models in $data"
while read -r model; do
    "$ONX" check --full --quiet "$model" >out 2>err || { fail "$model"; sed 's/^/    /' out | head -n 3; }
done <models
done_testing

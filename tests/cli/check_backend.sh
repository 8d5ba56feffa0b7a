# onx check --full on the models that the ONNX project tests runtimes with: none of them has an error.
. "$ONX_SOURCE_DIR/tests/lib.sh"
backend_models 1 light
while read -r model; do
    "$ONX" check --full --quiet "$model" >out 2>err || { fail "$model"; sed 's/^/    /' out | head -n 3; }
done <models
done_testing

# onx check --full on the models of the ONNX project's backend tests: none has an error.
. "$ONX_SOURCE_DIR/tests/lib.sh"
backend_models 1 light
# A hundred models per process: with a sanitizer, starting the program takes longer than checking a model.
xargs -n 100 "$ONX" check --full --quiet <models >out 2>err || { fail "onx check finds errors"; head -n 20 out err; }
done_testing

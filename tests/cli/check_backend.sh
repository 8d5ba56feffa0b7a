# onx check --full on the models that the ONNX project tests runtimes with: none of them has an error.
. "$ONX_SOURCE_DIR/tests/lib.sh"
backend_models 1 light
# A hundred at a time: a program under a sanitizer takes longer to start than to check one.
xargs -n 100 "$ONX" check --full --quiet <models >out 2>err || { fail "onx check finds errors"; head -n 20 out err; }
done_testing

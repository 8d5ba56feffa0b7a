# README.md contains the example that is compiled and run here.
. "$ONX_SOURCE_DIR/tests/lib.sh"
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$ONX_SOURCE_DIR/README.md" >shown.c
same "$ONX_SOURCE_DIR/examples/run.c" shown.c
expect 0 "$ONX" convert "$ONX_SOURCE_DIR/examples/stripes.onnxtxt" stripes.onnx
expect 0 "$(dirname "$ONX")/examples/example_operators" stripes.onnx
[ "$(tr '\n' ' ' <out)" = "Conv Relu MaxPool GlobalAveragePool Reshape Softmax " ] || fail "the example prints $(cat out)"
done_testing

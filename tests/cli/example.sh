# The network of the examples classifies the picture of the examples correctly, also as a test case that must fail.
. "$ONX_SOURCE_DIR/tests/lib.sh"
examples=$ONX_SOURCE_DIR/examples
mkdir -p case/test_data_set_0
expect 0 "$ONX" convert "$examples/stripes.onnxtxt" case/model.onnx
expect 0 "$ONX" convert --as tensor "$examples/image.onnxtxt" case/test_data_set_0/input_0.pb
expect 0 "$ONX" convert --as tensor "$examples/answer.onnxtxt" case/test_data_set_0/output_0.pb
expect 0 "$ONX" check --full case/model.onnx
expect 0 "$ONX" test case
says out "1 passed, 0 failed"
sed 's/0.93/0.92/' "$examples/answer.onnxtxt" >wrong.onnxtxt
expect 0 "$ONX" convert --as tensor wrong.onnxtxt case/test_data_set_0/output_0.pb
expect 1 "$ONX" test case
says out "0 passed, 1 failed"
done_testing

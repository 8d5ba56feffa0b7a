# The demo runs to its end: every command in it succeeds, and the networks exported by PyTorch give the expected results.
. "$ONX_SOURCE_DIR/tests/lib.sh"
[ -d /usr/share/libonnx-testdata/data/pytorch-converted ] || skip "the package libonnx-testdata is not installed"
expect 0 sh "$ONX_SOURCE_DIR/examples/demo.sh" "$ONX"
says out "Networks that PyTorch exported"
grep -Eq '^[1-9][0-9]{2,} passed, 0 failed$' out || fail "fewer than a hundred networks passed"
says out "That was it."
done_testing

# NumPy files as inputs and outputs; tests/unit/test_value_npy.c tests which files the reader refuses.
. "$ONX_SOURCE_DIR/tests/lib.sh"
seeds=$ONX_SOURCE_DIR/fuzz/corpora/npy
cat >model.onnxtxt <<'E'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,3] y) { y = Identity (x) }
E
cp "$seeds/float" x.npy
expect 0 "$ONX" run model.onnxtxt --input x=x.npy --output-dir o --npy
expect 0 "$ONX" run model.onnxtxt --input x=o/output_0.npy --output-dir again --npy
same o/output_0.npy again/output_0.npy

# ---- archives
cp "$seeds/stored" stored.npz
cp "$seeds/deflated" deflated.npz
if "$ONX" run model.onnxtxt --input x=stored.npz --output-dir zip --npy 2>err; then
    same o/output_0.npy zip/output_0.npy
    expect 0 "$ONX" run model.onnxtxt --input x=deflated.npz --output-dir zip --npy
    same o/output_0.npy zip/output_0.npy
    # one element is another one: the sum tells
    LC_ALL=C sed 's/\x80?/\x81?/' stored.npz >other.npz
    cmp -s stored.npz other.npz && fail "other.npz is no other"
    expect 1 "$ONX" run model.onnxtxt --input x=other.npz
    says err "other.npz: "
    says err "CRC"
    cut=$(($(wc -c <deflated.npz) - 30))
    head -c $cut deflated.npz >cut.npz
    expect 1 "$ONX" run model.onnxtxt --input x=cut.npz
    says err "cut.npz: "
    sed 's/: "" : 17/&/; s/float\[2,3\] x/float[2,3] z/; s/(x)/(z)/' model.onnxtxt >z.onnxtxt
    expect 2 "$ONX" run z.onnxtxt --input z=stored.npz
    says err 'is named "z"'
else
    says err "needs libzip"
    echo "archives are not tested: there is no libzip"
fi

# ---- errors name the file and the byte
cp "$seeds/huge" huge.npy
expect 1 "$ONX" run model.onnxtxt --input x=huge.npy
says err "huge.npy: byte "
says err "2^63"
: >empty.npy
expect 1 "$ONX" run model.onnxtxt --input x=empty.npy
says err "empty.npy: "
expect 2 "$ONX" run model.onnxtxt --input x=none.npy
says err "none.npy"
done_testing

# NumPy files where messages are expected: show, info, diff, convert; and files whose kind is not specified.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cp "$ONX_SOURCE_DIR/fuzz/corpora/npy/float" x.npy
expect 0 "$ONX" show --full x.npy
says out "float[2, 3]"
expect 0 "$ONX" info x.npy
says out "$(wc -c <x.npy) B, TensorProto"
says out "float[2,3]"
expect 0 "$ONX" info --json x.npy
says out '"kind": "TensorProto"'
expect 0 "$ONX" convert x.npy x.pb
expect 0 "$ONX" convert --as tensor x.pb again.npy
expect 0 "$ONX" convert x.pb guessed.npy # the content shows what it is
same again.npy guessed.npy
expect 0 "$ONX" diff x.npy again.npy
expect 0 "$ONX" diff x.npy x.pb
expect 0 "$ONX" info x.pb
says out "TensorProto"
[ -s err ] && fail "info of a tensor complains"
expect 0 "$ONX" show x.pb
printf 'dims: 2 dims: 3 data_type: 1 float_data: [1, 2, 3, 4, 5, 7]' >other.textproto
expect 1 "$ONX" diff --as tensor x.npy other.textproto
expect 0 "$ONX" convert --as tensor other.textproto other.npy
expect 1 "$ONX" diff x.npy other.npy
says out "1 difference"
expect 0 "$ONX" diff --atol 1000 x.npy other.npy

# Without the name, what it looks like and what helps is said, once, of a file as of a stream.
cp x.npy x.data
mkfifo fifo
for from in x.data - fifo; do
    [ $from = fifo ] && { cat x.npy >fifo & }
    expect 1 "$ONX" show "$from" <x.npy
    says err "a NumPy array"
    says err "hint: NumPy files are recognised by their extension: rename the file to .npy"
    [ "$(grep -c error: err)" -eq 1 ] || fail "more than one message: $(cat err)"
done

# ---- archives
cat >model.onnxtxt <<'E'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x, float[2] "b c") => (float[2,3] y, float[2] z) { y = Identity (x)  z = Identity ("b c") }
E
expect 0 "$ONX" run model.onnxtxt --random -o all.npz
if "$ONX" show all.npz >out 2>err; then
    says out "float[2, 3] y"
    expect 0 "$ONX" info all.npz
    says out "8 elements in 2 tensors"
    expect 0 "$ONX" diff all.npz all.npz
    expect 0 "$ONX" convert all.npz all.onnxtxt
    expect 0 "$ONX" convert --as graph all.onnxtxt again.npz
    same all.npz again.npz
    expect 0 "$ONX" convert x.npy x.npz
    expect 0 "$ONX" run model.onnxtxt --random -i x=x.npz
    expect 2 "$ONX" show --as tensor all.npz
    expect 0 "$ONX" convert x.npz alone.npy # one tensor is one, whatever file it was in
    same again.npy alone.npy
    expect 2 "$ONX" convert all.npz two.npy
    says err "an .npy file contains one tensor, but there are 2"
    # members that name no input
    expect 2 "$ONX" run model.onnxtxt --random -i all.npz
    says err "all.npz: no member is named like an input"
    sed 's/ y,/ x,/; s/{ y =/{ x2 =/' model.onnxtxt >unused
    sed 's/(x)  z/(a)  z/; s/float\[2,3\] x/float[2,3] a/; s/ y/ x/g' model.onnxtxt >source.onnxtxt
    expect 0 "$ONX" run source.onnxtxt --random -o part.npz
    expect 0 "$ONX" run model.onnxtxt --random -i part.npz
    says err 'part.npz: "z" is no input of the model'
    says err 'made up: b c'
else
    says err "needs libzip"
    echo "archives are not tested: there is no libzip"
fi

# ---- mistakes
expect 2 "$ONX" show --as model x.npy
expect 2 "$ONX" convert model.onnxtxt model.npy
says err "a NumPy file can contain only tensors"
expect 2 "$ONX" convert x.npy y.npy --external data
expect 2 "$ONX" diff x.npy model.onnxtxt
expect 2 "$ONX" info --cost x.npy
says err "applies to models only"
head -c $(($(wc -c <x.npy) - 3)) x.npy >cut.npy
for command in show info "convert -o out.pb"; do
    expect 1 "$ONX" $command cut.npy
    says err "cut.npy: "
done
[ -e out.pb ] && fail "a file was left behind"
: >empty.onnx
expect 1 "$ONX" info empty.onnx
says err "the file is empty"
expect 0 "$ONX" convert model.onnxtxt model.onnx
expect 1 "$ONX" fmt model.onnx
says err "model.onnx is binary data, not ONNX text"
[ "$(wc -l <err)" -le 2 ] || fail "fmt says more than that"
done_testing

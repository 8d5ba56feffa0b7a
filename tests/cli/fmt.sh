# onx fmt: canonical style, preserved comments, --check, errors; and ONNX text in other commands.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >a.onnxtxt <<'E'
# about the model
<ir_version:10,opset_import:["":21]>
agraph(float[N,128] X,float[128,10] W)   =>  (float[N,10] C) {
  # multiply
  T=MatMul(X,W)    # T is big
  C =   Softmax<axis:int=-1>( T )


  # the end
}
E
cat >want <<'E'
# about the model
<ir_version: 10, opset_import: ["": 21]>
agraph (float[N, 128] X, float[128, 10] W) => (float[N, 10] C) {
  # multiply
  T = MatMul(X, W)  # T is big
  C = Softmax<axis = -1>(T)

  # the end
}
E
cp a.onnxtxt b.onnxtxt
expect 1 "$ONX" fmt --check a.onnxtxt
says out a.onnxtxt
same a.onnxtxt b.onnxtxt
expect 0 "$ONX" fmt a.onnxtxt
same a.onnxtxt want
expect 0 "$ONX" fmt --check a.onnxtxt
[ -s out ] && fail "--check printed something about a file in canonical style"
expect 0 "$ONX" fmt - <b.onnxtxt
same out want
expect 1 "$ONX" fmt --check want b.onnxtxt
says out b.onnxtxt

printf 'g (float x) => (float y) {\n  y = Abs[x]\n  z = Neg(x x)\n}\n' >bad.onnxtxt
cp bad.onnxtxt bad2.onnxtxt
expect 1 "$ONX" fmt bad.onnxtxt
says err "bad.onnxtxt:2:10: error:"
says err "  y = Abs[x]"
says err "bad.onnxtxt:3:13: error:"
same bad.onnxtxt bad2.onnxtxt
expect 2 "$ONX" fmt nothing.onnxtxt
says err "cannot open nothing.onnxtxt"
expect 2 "$ONX" fmt /dev/zero
says err 'not a regular file'
printf 'y = Abs( x )' >n.onnxtxt
expect 0 "$ONX" fmt --as node n.onnxtxt
[ -s err ] && fail "notes about a node"
echo 'y = Abs(x)' >want
same n.onnxtxt want

# What is said about a text is about its style, and a file keeps its mode and its links.
printf 'g(x)=>(y){y=Abs(x)}' >mode.onnxtxt
chmod 640 mode.onnxtxt
ln -s mode.onnxtxt link.onnxtxt
expect 0 "$ONX" fmt link.onnxtxt
[ -s err ] && fail "notes about the model"
[ -h link.onnxtxt ] || fail "the link became a file"
[ "$(ls -l mode.onnxtxt | cut -c1-10)" = "-rw-r-----" ] || fail "the mode of the file changed"
expect 0 "$ONX" fmt --check mode.onnxtxt

# Text and binary files are the same models.
expect 0 "$ONX" convert b.onnxtxt b.onnx
expect 0 "$ONX" convert b.onnx c.onnxtxt
expect 0 "$ONX" convert c.onnxtxt c.onnx
same b.onnx c.onnx
expect 1 "$ONX" convert bad.onnxtxt bad.onnx
[ -e bad.onnx ] && fail "a file was made from a faulty text"
expect 0 "$ONX" info b.onnxtxt

# Deliberately wrong models are written with --lenient.
printf 'g () => () <uint8[1] w = {300}> {}' >wrong.onnxtxt
expect 1 "$ONX" convert --as graph wrong.onnxtxt wrong.pb
says err "out of the range of uint8"
expect 0 "$ONX" convert --lenient --as graph wrong.onnxtxt wrong.pb
says err "warning"

# Inferred types stand beside the nodes on request.
expect 0 "$ONX" show --types b.onnx
says out "T = MatMul(X, W)                              # float[N, 10]"
expect 2 "$ONX" show --types --format json b.onnx
says err "--types needs"

# A million nested types are an error, at once.
awk 'BEGIN { printf "g ("; for (i = 0; i < 1000000; i++) printf "seq("; print }' >deep.onnxtxt
expect 1 "$ONX" convert deep.onnxtxt deep.onnx
says err "limit depth"
done_testing

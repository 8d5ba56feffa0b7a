# ImageReader reads files only where external data of the model may be.
. "$ONX_SOURCE_DIR/tests/lib.sh"
printf 'P6\n2 1\n255\n\001\002\003\004\005\006' >a.ppm
model() { # NAME OF THE IMAGE
    printf '<ir_version: 9, opset_import: ["": 20, "ai.onnx.contrib": 1]>\n'
    printf 'g (string[1] x = {"%s"}) => (uint8[1,?,?,3] y) { y = ai.onnx.contrib.ImageReader (x) }\n' "$1"
}
model a.ppm >m.onnxtxt
"$ONX" run m.onnxtxt >out 2>err || ! grep -qE 'no kernel|left out|leptonica|unknown operator|not known' err ||
    skip 'this build has no ai.onnx.contrib or no leptonica'
expect 0 "$ONX" run m.onnxtxt
says out 'uint8[1,1,2,3] 3 2 1 6'

# ---- the folder is that of the model, or the one that is named
mkdir sub
cp m.onnxtxt sub
expect 1 "$ONX" run sub/m.onnxtxt
says err 'graph.node[0]'
says err 'cannot open a.ppm: No such file'
expect 0 "$ONX" run sub/m.onnxtxt --external-dir .
says out 'uint8[1,1,2,3] 3 2 1 6'
expect 1 "$ONX" run - <m.onnxtxt
says err 'the model comes from no folder'
says err '--external-dir DIR'
expect 0 "$ONX" run - --external-dir . <m.onnxtxt
expect 1 "$ONX" run m.onnxtxt --external-dir missing
says err 'cannot be opened: No such file'

# ---- names that lead elsewhere, as text or through what lies in the folder
cp a.ppm sub/b.ppm
for name in ../a.ppm "$PWD/a.ppm" sub/../a.ppm 'C:a.ppm' 'sub\\b.ppm' nul.ppm sub/; do
    model "$name" >n.onnxtxt
    expect 1 "$ONX" run n.onnxtxt
    says err 'is not read: the location'
done
model '' >n.onnxtxt
expect 1 "$ONX" run n.onnxtxt
says err 'the name of the file is empty'
model sub >n.onnxtxt
expect 1 "$ONX" run n.onnxtxt
says err 'sub is a directory, not a regular file'
mkfifo fifo
model fifo >n.onnxtxt
expect 1 "$ONX" run n.onnxtxt
says err 'fifo is a FIFO, not a regular file'
model sub/b.ppm >n.onnxtxt
expect 0 "$ONX" run n.onnxtxt
ln -s a.ppm l.ppm
ln a.ppm h.ppm
for name in l.ppm h.ppm; do
    model $name >n.onnxtxt
    expect 1 "$ONX" run n.onnxtxt
    says err '--external-links follows links'
    expect 0 "$ONX" run n.onnxtxt --external-links
    says out 'uint8[1,1,2,3] 3 2 1 6'
done
rm h.ppm

# ---- nothing that only looks at a model reads its files, and a file that is too large is an error
expect 0 "$ONX" simplify m.onnxtxt -o s.onnxtxt
says s.onnxtxt ImageReader
{ cat a.ppm; head -c 70000000 /dev/zero; } >big
model big >n.onnxtxt
expect 1 "$ONX" run n.onnxtxt --max-memory 64M
says err memory
done_testing

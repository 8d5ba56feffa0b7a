# onx run: which values are shown, in which form, and where they are written.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cat >model.onnxtxt <<'E'
<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
g (float[2,3] x, bool c) => (float[2,3] y, string[2] t, bool[2,3] b, int4[3] q, float[2,3] bad)
<string[2] texts = {"a\"b", "ä"}, int4[3] small = {-8, 7, 1}, float zero = {0}> {
  h = Neg (x)
  y = f.Twice (h)
  u = If (c) <then_branch = p () => (v) { inner = Abs (x)  v = Neg (inner) }, else_branch = n () => (w) { w = Exp (x) }>
  t = Identity (texts)
  b = Less (x, u)
  q = Identity (small)
  bad = Div (x, zero)
}
<opset_import: ["" : 21], domain: "f">
Twice (x) => (y) { deep = Add (x, x)  y = Abs (deep) }
E
run() { "$ONX" run model.onnxtxt -i 'x=[[1,-2,3],[0,5,6]]' -i c=true "$@"; }

expect 0 run
says out "y  float[2,3] 2 4 6 0 ...  (min 0, max 12"
says out 't  string[2] "a"b" "ä"'
says out "b  bool[2,3] false false false false ...  (0 of 6 true)"
says out "q  int4[3] -8 7 1"
says out "1 NaN, 5 infinite"
expect 0 run --full --outputs y --outputs q
says out "[[2, 4, 6],"
says out " [0, 10, 12]]"
says out "[-8, 7, 1]"
expect 0 run --outputs y --top-k 2
says out "row 0:"
says out "         2  6"
says out "         1  4"
expect 0 run --json
for text in '"name": "y"' '"type": "float"' '[[2, 4, 6],' '"NaN"' '"-Infinity"' '"a\"b"' '"nan": 1' '"infinite": 5' 'false'; do
    says out "$text"
done
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; d = json.load(open("out")); assert [o["name"] for o in d["outputs"]] == ["y", "t", "b", "q", "bad"]; assert d["outputs"][0]["values"] == [[2, 4, 6], [0, 10, 12]]; assert d["outputs"][3]["shape"] == [3]' || fail "the JSON is another one"
fi
expect 0 run --json --top-k 1 --outputs y
says out '"index": 2'

# ---- values inside: of the main graph, of functions, of subgraphs
expect 0 run --outputs h
says out "h  float[2,3] -1 2 -3"
[ "$(wc -l <out)" -eq 1 ] || fail "more than h is shown"
expect 0 run --outputs deep --outputs inner
says out "deep  float[2,3] -2 4 -6"
says out "inner  float[2,3] 1 2 3"
expect 0 run --outputs all
for name in h deep inner v u y b bad; do
    grep -q "^$name  " out || fail "$name is not shown"
done
expect 2 run --outputs nothing
says err 'no node that ran computed "nothing"'
expect 2 run --outputs w # the branch that is not taken

# ---- files
expect 0 run -o folder
[ -f folder/output_4.pb ] || fail "no folder/output_4.pb"
expect 0 run -o arrays --npy --outputs y
expect 0 run -o y.npy --outputs y
same y.npy arrays/output_0.npy
expect 0 run -o y.pb --outputs y
same y.pb folder/output_0.pb
expect 0 sh -c "'$ONX' run model.onnxtxt -i 'x=[[1,-2,3],[0,5,6]]' -i c=true --outputs y -o - >y2.pb"
same y.pb y2.pb
expect 0 sh -c "'$ONX' run model.onnxtxt -i 'x=[[1,-2,3],[0,5,6]]' -i c=true --outputs y --npy -o - >y2.npy"
same y.npy y2.npy
[ ! -e - ] || fail "a file named - was made"
expect 0 run -o all.npz
cat >again.onnxtxt <<'E'
<ir_version: 10, opset_import: ["" : 21]>
g (float[2,3] y, string[2] t, bool[2,3] b) => (float[2,3] yy, string[2] tt, bool[2,3] bb) {
  yy = Identity (y)  tt = Identity (t)  bb = Not (b)
}
E
if "$ONX" run again.onnxtxt -i all.npz >out 2>err; then
    says out "yy  float[2,3] 2 4 6"
    says out 'tt  string[2] "a"b" "ä"'
    says out "(6 of 6 true)"
else
    says err "needs libzip"
fi
expect 0 run -o texts.npy --outputs t
cat >t.onnxtxt <<'E'
<ir_version: 10, opset_import: ["" : 21]>
g (string[2] t) => (string[2] tt) { tt = Identity (t) }
E
expect 0 "$ONX" run t.onnxtxt -i t=texts.npy
says out 'tt  string[2] "a"b" "ä"'
expect 2 run -o single.npy
says err "there are 5 outputs"
expect 2 run -o -
expect 2 run --npy
expect 2 run --json -o - --outputs y
expect 2 run --full --top-k 2
for bad in 0 101 x -1; do
    expect 2 run --top-k "$bad"
done
expect 2 run -o none/x.npz
expect 0 "$ONX" run again.onnxtxt --random --shape y=2x3 -o out.npz
done_testing

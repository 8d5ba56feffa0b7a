# onx bench: its output, streams that run concurrently, and usage errors. No test depends on how long anything takes.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >n.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 4] x, float[4, 2] w) => (float[N, 2] y) { y = MatMul (x, w) }
END
expect 0 "$ONX" bench n.onnxtxt --seconds 0 --dim N=3
for word in median mean minimum p90 p99 maximum 'per second' '1 thread' 'planned in' 'first run' 'running' 'process at most'; do says out "$word"; done
expect 0 "$ONX" bench n.onnxtxt --seconds 0.05 --streams 3 --json -i w=[[1,2],[3,4],[5,6],[7,8]]
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "the JSON of three streams"
import json
d = json.load(open("out"))
assert d["streams"] == 3 and d["threads"] == 1 and d["runs"] >= 15, d
assert 0 < d["min_ms"] <= d["p10_ms"] <= d["median_ms"] <= d["p90_ms"] <= d["p99_ms"] <= d["max_ms"], d
assert d["min_ms"] <= d["mean_ms"] <= d["max_ms"] and d["runs_per_second"] > 0, d
assert 0 < d["planned_bytes"] <= d["running_bytes"], d
END
fi
expect 0 "$ONX" convert n.onnxtxt n.onnx
expect 0 "$ONX" bench --codec --seconds 0.1 n.onnx
says out "decode"

expect 2 "$ONX" bench n.onnxtxt --streams 0
expect 2 "$ONX" bench n.onnxtxt --streams 100000
expect 2 "$ONX" bench n.onnxtxt --seconds -1
expect 2 "$ONX" bench n.onnxtxt --trace t.json
expect 2 "$ONX" bench n.onnxtxt -i x=nothing.npy
# A run that fails, alone or in any of several streams, is told once.
cat >bad.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x, int64[1] i) => (float[K] y) { y = Gather (x, i) }
END
for streams in 1 3; do
    expect 1 "$ONX" bench bad.onnxtxt --seconds 0 --streams $streams -i i=[9]
    [ "$(grep -c 'error:' err)" -eq 1 ] || fail "the failure of $streams streams is told $(grep -c 'error:' err) times"
done
expect 1 "$ONX" bench n.onnxtxt --seconds 0 --max-memory 2000
# Packed weights in a folder: the first run keeps them, the next one takes them; what is damaged is said.
cat >wide.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 256] x) => (float[1, 256] y) {
  shape = Constant <value_ints = [256, 256]> () w = ConstantOfShape <value = float[1] {0.5}> (shape) y = MatMul (x, w) }
END
expect 0 "$ONX" run wide.onnxtxt --random --cache kept
mv out first
expect 0 "$ONX" run wide.onnxtxt --random --cache kept
cmp -s out first || fail "results differ with what was kept"
[ ! -s err ] || ! grep -q note: err || fail "a note about what was kept well"
for f in kept/*.pack; do [ ! -f "$f" ] || : >"$f"; done
expect 0 "$ONX" bench wide.onnxtxt --seconds 0 --cache kept
[ ! -f "$f" ] || says err "has another size"
cat >conv.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 19]>
g (float[1, 8, 12, 12] x) => (float[1, 8, 12, 12] y) {
  shape = Constant <value_ints = [8, 8, 3, 3]> () w = ConstantOfShape <value = float[1] {0.5}> (shape)
  y = Conv <pads = [1, 1, 1, 1]> (x, w) }
END
expect 0 "$ONX" run conv.onnxtxt --random --measure --no-measure --cache measured
[ "$(find measured -name '*.pack' | wc -l)" -eq 0 ] || fail "--no-measure measures"
expect 0 "$ONX" run conv.onnxtxt --random --measure --cache measured
[ "$(find measured -name '*.pack' | wc -l)" -eq 1 ] || fail "--measure keeps no table"
for f in measured/*.pack; do cp "$f" table; done
mv out first
expect 0 "$ONX" run conv.onnxtxt --random --measure --cache measured
cmp -s out first || fail "results differ with one table"
cmp -s "$f" table || fail "what was measured is measured again"
expect 0 "$ONX" show --plan conv.onnxtxt --measure --cache measured
expect 0 "$ONX" bench conv.onnxtxt --seconds 0 --measure --cache measured --profile --json
says out '"measured":'
: >"$f"
expect 0 "$ONX" run conv.onnxtxt --random --measure --cache measured
says err "has another size"
expect 2 "$ONX" run wide.onnxtxt --random --cache wide.onnxtxt
says err "cannot open the folder wide.onnxtxt"
done_testing

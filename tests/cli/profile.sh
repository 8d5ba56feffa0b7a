# onx run --profile: a row per step, slowest first, and a Chrome trace that names each step once.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cat >n.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 2] x, float[2, 2] w) => (float[2, 2] y) {
  [product] a = MatMul (x, w)
  [wave] y = Sin (a)
}
END
expect 0 "$ONX" run n.onnxtxt --random --profile --trace trace.json
says out "operator"
says out "MatMul"
says out "product"
says out "wave"
says out "ms in 2 steps"
[ "$(grep -c '^ *[0-9.]* *[0-9.]*% ' out)" -eq 2 ] || fail "not a row for each of two steps"
# The slowest first.
grep -o '^ *[0-9.]* *[0-9.]*%' out | awk '{ if (NR > 1 && $1 > last) exit 1; last = $1 }' || fail "rows are not sorted by time"
says trace.json '"traceEvents"'
[ "$(grep -o '"ph": *"X"' trace.json | wc -l)" -eq 2 ] || fail "not an event for each of two steps"
says trace.json '"product"'
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "the trace is not what trace viewers read"
import json
events = json.load(open("trace.json"))["traceEvents"]
assert [e["name"] for e in events] == ["product", "wave"]
assert [e["cat"] for e in events] == ["MatMul", "Sin"]
assert all(e["ph"] == "X" and e["dur"] >= 0 and e["ts"] >= 0 for e in events)
assert events[0]["ts"] + events[0]["dur"] <= events[1]["ts"] + 1e-3
assert [e["args"]["output_bytes"] for e in events] == [16, 16]
END
fi
# Without --profile nothing is written, and an unwritable trace is an error of the call.
expect 0 "$ONX" run n.onnxtxt --random
[ ! -e onx-trace.json ] || fail "a trace without --profile"
expect 2 "$ONX" run n.onnxtxt --random --profile --trace no/such/folder/trace.json
done_testing

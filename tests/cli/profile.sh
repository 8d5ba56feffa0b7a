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
says out "in 2 steps"
says out "warm runs"
says err "the trace is in trace.json"
expect 0 "$ONX" run n.onnxtxt --random --profile
says err "the trace is in onx-trace.json"
[ -s onx-trace.json ] || fail "no trace was written"
expect 0 "$ONX" run n.onnxtxt --random --profile --trace trace.json
# 2x2x2 multiply-adds, twice; 3 matrices of 16 bytes
says out "flop/s"
# A table by operator comes first, then one by node.
awk '/MatMul/ { n++; if (/product/ && n != 2) exit 1 } END { exit n != 2 }' out || fail "not a row per operator and one per node"
[ "$(grep -c '^ *[0-9.]* [mu]*s *[0-9.]*% ' out)" -eq 4 ] || fail "not a row for each of two operators and two steps"
# The slowest first.
grep -o '^ *[0-9.]* [mu]*s *[0-9.]*%' out | tail -n 2 | awk '{ if (NR > 1 && $3 + 0 > last) exit 1; last = $3 + 0 }' || fail "rows are not sorted by time"
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
rm -f trace.json onx-trace.json
expect 2 "$ONX" run n.onnxtxt --random --trace trace.json
says err "--trace needs --profile"
# The same for bench, as JSON too; it writes no file that nobody asked for.
expect 0 "$ONX" bench n.onnxtxt --seconds 0 --profile --json
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "the JSON of a profile"
import json
d = json.load(open("out"))
p = d["profile"]
assert p["runs"] >= 1 and p["machine_flops_per_second"] > 0
assert {o["op"]: o["steps"] for o in p["operators"]} == {"MatMul": 1, "Sin": 1}, p
assert [s["name"] for s in p["steps"]] == ["product", "wave"], p
product = p["steps"][0]
assert abs(product["flops_per_second"] * product["ms"] / 1e3 - 16) < 0.1, product
assert abs(product["bytes_per_second"] * product["ms"] / 1e3 - 48) < 0.1, product
END
fi
[ "$(ls | tr '\n' ' ')" = "err n.onnxtxt out " ] || fail "files are left: $(ls)"
# Names are whole, however long.
long=$(printf 'n%0300d' 7)
echo "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) { [$long] y = Exp (x) }" >long.onnxtxt
expect 0 "$ONX" run long.onnxtxt --random --profile --trace long.json
says out "$long"
says long.json "$long"

# Without --profile nothing is written, and an unwritable trace is an error of the call.
expect 0 "$ONX" run n.onnxtxt --random
[ ! -e onx-trace.json ] || fail "a trace without --profile"
expect 2 "$ONX" run n.onnxtxt --random --profile --trace no/such/folder/trace.json
done_testing

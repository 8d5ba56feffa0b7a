# onx test: outputs are compared by value; random outputs only by type and shape.
. "$ONX_SOURCE_DIR/tests/lib.sh"

# A case with the expected output of another model. what, its node, the node of the other model
case_of() {
    rm -rf "$1" && mkdir -p "$1/test_data_set_0"
    for node in "$2" "$3"; do
        cat >"$1.onnxtxt" <<END
<ir_version: 10, opset_import: ["" : 21]>
g () => (float[2] y) <bool yes = {1}, float[1,2,3] theta = {1, 0, 0, 0, 1, 0}, int64[4] size = {1, 1, 1, 1}> {
  $node
}
END
        [ -f "$1/model.onnx" ] || "$ONX" convert "$1.onnxtxt" "$1/model.onnx" || fail "convert $1"
    done
    "$ONX" run "$1.onnxtxt" --output-dir "$1/test_data_set_0" >/dev/null || fail "run $1"
}

branch() {
    echo "y = If (yes) <then_branch = a () => (v) { v = $1 }, else_branch = b () => (w) { w = Constant <value_floats = [0.0, 0.0]> () }>"
}
good='Constant <value_floats = [1.0, 2.0]> ()'
bad='Constant <value_floats = [1.0, 3.0]> ()'

case_of same "y = $good" "y = $good"
expect 0 "$ONX" test same
case_of other "y = $good" "y = $bad"
expect 1 "$ONX" test other
says out "differs at element 1"
case_of same_branch "$(branch "$good")" "$(branch "$good")"
expect 0 "$ONX" test same_branch
case_of other_branch "$(branch "$good")" "$(branch "$bad")"
expect 1 "$ONX" test other_branch

# The mark "nondeterministic" alone does not make a result random.
moved='theta2 = Constant <value = float[1,2,3] {1, 0, 0.5, 0, 1, 0}> () full = AffineGrid (theta2, size) flat = Constant <value_ints = [2]> () y = Reshape (full, flat)'
still='theta2 = Constant <value = float[1,2,3] {1, 0, 0.25, 0, 1, 0}> () full = AffineGrid (theta2, size) flat = Constant <value_ints = [2]> () y = Reshape (full, flat)'
case_of grid "$moved" "$moved"
expect 0 "$ONX" test grid
case_of other_grid "$moved" "$still"
expect 1 "$ONX" test other_grid

# Random numbers, on their own and inside of a branch.
case_of random 'y = RandomNormal <shape = [2]> ()' "y = $good"
expect 0 "$ONX" test random
case_of random_branch "$(branch 'RandomNormal <shape = [2]> ()')" "y = $good"
expect 0 "$ONX" test random_branch

# A folder without data is skipped; one that holds no case at all, or is not there, is a mistake of the call.
mkdir -p set/bare set/empty
cp same/model.onnx set/bare/model.onnx
cp -r same set/same
expect 0 "$ONX" test set
says out 'skip set/bare: the folder contains no test_data_set_*'
says out '1 passed, 0 failed, 1 skipped'
expect 2 "$ONX" test set/empty
says err 'the folder contains no test case'
expect 2 "$ONX" test nowhere same
says err 'nowhere: there is no such folder'
says out '1 passed, 0 failed'
expect 0 "$ONX" test --verbose same
says out 'ok   same'

# Why a model is refused is told in lines, without escapes but those that names need.
mkdir -p set/fake
cat >fake.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x) => (float[2] y) { y = Reluu (x) }
END
"$ONX" convert fake.onnxtxt set/fake/model.onnx
cp -r other set/other
expect 1 "$ONX" test set
says out 'FAIL set/fake: the model cannot be planned'
says out 'hint: did you mean Relu?'
grep -q 'x0a' out && fail "escapes in messages"
says out '1 passed, 2 failed, 1 skipped'

# documents
expect 1 "$ONX" test --json set
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "the JSON of four cases"
import json
d = json.load(open("out"))
assert (d["passed"], d["failed"], d["skipped"]) == (1, 2, 1), d
assert {c["name"]: c["outcome"] for c in d["cases"]} == {
    "set/bare": "skipped", "set/fake": "failed", "set/other": "failed", "set/same": "passed"}, d
assert "differs at element 1" in d["cases"][2]["text"]
END
fi
mv set/other "set/<b>&"
expect 1 "$ONX" test --junit o.xml set
says out '1 passed, 2 failed, 1 skipped'
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "the JUnit file"
import xml.etree.ElementTree as tree
suite = tree.parse("o.xml").getroot()[0]
assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "1")
assert [c.get("name") for c in suite] == ["<b>&", "bare", "fake", "same"], [c.get("name") for c in suite]
assert [[e.tag for e in c] for c in suite] == [["failure"], ["skipped"], ["failure"], []]
END
fi
expect 2 "$ONX" test --junit no/such/folder/o.xml same
done_testing

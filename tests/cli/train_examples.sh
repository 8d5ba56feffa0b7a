# The training examples reach the results that they promise.
. "$ONX_SOURCE_DIR/tests/lib.sh"
"$ONX" help --libraries | grep -q '^libzip .*[0-9]' || skip "this build has no libzip, which writes the samples"
examples=$ONX_SOURCE_DIR/examples/train
for model in draw digits cut letters; do
    expect 0 "$ONX" check --full "$examples/$model.onnxtxt"
done
expect 0 sh "$examples/digits.sh" "$ONX" --short
tail -n 1 out | awk '{ exit !($1 == "loss" && $3 == "accuracy" && $4 > 0.97) }' || fail "digits are not read: $(tail -n 1 out)"
expect 0 sh "$examples/letters.sh" "$ONX" --short
grep '^epoch' out | awk 'NR == 1 { first = $4 } END { exit !(NR == 2 && $4 < first && $4 < 2.8) }' || fail "no text is learned: $(cat out)"
tail -n 1 out | grep -q '^   Licensed under the Apa|...$' || fail "nothing is written on: $(tail -n 1 out)"
done_testing

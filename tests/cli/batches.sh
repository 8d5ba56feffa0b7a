# onx run --batches: sets of inputs in a folder, run one after the other or divided among ranks, give the results of single
# runs.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >model.onnxtxt <<'END_MODEL'
<ir_version: 9, opset_import: ["" : 20]>
g (float[N, 4] x, float[4] scale) => (float[N, 4] y, float[N] sum)
  <float[4] bias = {1, 2, 3, 4}>
{ a = Mul (x, scale) y = Add (a, bias) s = Constant <value = int64[1] {1}> () sum = ReduceSum <keepdims = 0> (y, s) }
END_MODEL
cat >copy.onnxtxt <<'END_MODEL'
<ir_version: 9, opset_import: ["" : 20]>
g (float[N, 4] a, float[4] b) => (float[N, 4] x, float[4] scale) { x = Identity (a) scale = Identity (b) }
END_MODEL
mkdir sets
for i in 1 2 3 4; do
    expect 0 "$ONX" run copy.onnxtxt --random --seed $i --shape a=${i}x4 -o sets/case$i.npz
done
expect 0 "$ONX" run copy.onnxtxt --random --seed 5 --shape a=5x4 --output-dir sets/set_5
for i in 0 1; do mv sets/set_5/output_$i.pb sets/set_5/input_$i.pb; done
mkdir sets/model sets/.hidden one alone
echo 'what there is' >sets/README.md
for i in 1 2 3 4; do
    expect 0 "$ONX" run model.onnxtxt -i sets/case$i.npz --output-dir one/case$i
done
expect 0 "$ONX" run model.onnxtxt -i sets/set_5 --output-dir one/set_5
expect 0 "$ONX" run model.onnxtxt --batches sets --output-dir all
diff -r one all >/dev/null || fail "the results are not those of single runs: $(diff -r one all)"
expect 0 "$ONX" run model.onnxtxt --batches sets
[ "$(grep -c '^sets/' out)" = 5 ] || fail "not all sets are printed: $(cat out)"
[ "$(grep -c '^y ' out)" = 5 ] || fail "not all outputs are printed: $(cat out)"
expect 0 "$ONX" run model.onnxtxt --batches sets --json
! command -v python3 >/dev/null || python3 -c 'import json; rows = json.load(open("out"))["batches"]; assert len(rows) == 5 and all(len(r["outputs"]) == 2 for r in rows)' ||
    fail "--json is not a list of all: $(cat out)"

# Files of one value are for the input that is left open; values inside can be had of each set.
mkdir files
for i in 1 2; do
    expect 0 "$ONX" run copy.onnxtxt --random --seed $i --shape a=${i}x4 --outputs x -o files/part$i.npy
    expect 0 "$ONX" run model.onnxtxt -i x=files/part$i.npy -i 'scale=[1,2,3,4]' --outputs a --npy --output-dir alone/part$i
done
expect 0 "$ONX" run model.onnxtxt --batches files -i 'scale=[1,2,3,4]' --outputs a --npy -o several
diff -r alone several >/dev/null || fail "files of one value give other results: $(diff -r alone several)"
expect 2 "$ONX" run model.onnxtxt --batches files -o no
says err 'files/part1.npy contains one value, but 2 inputs are not given'

# What cannot be done.
cp sets/case1.npz files/part1.npz
expect 2 "$ONX" run model.onnxtxt --batches files -i 'scale=[1,2,3,4]' -o no
says err 'would have the same name'
rm files/part1.npz
mkdir empty
expect 2 "$ONX" run model.onnxtxt --batches empty -o no
says err 'empty: the folder contains no inputs'
expect 2 "$ONX" run model.onnxtxt --batches missing -o no
says err 'cannot read the folder missing'
expect 2 "$ONX" run model.onnxtxt --batches sets -o no.npz
says err 'batches writes to a folder, but no.npz is not one'
expect 2 "$ONX" run model.onnxtxt --batches sets --profile
says err 'profile measures one set of inputs'
mkdir bad
echo 'not an array' >bad/a.npz
expect 1 "$ONX" run model.onnxtxt --batches bad -o no
says err 'bad/a.npz'

# Ranks share them: nothing else is different.
if has_ranks; then
    for n in 1 2 3 8; do
        ranks 0 $n "$ONX" run model.onnxtxt --batches sets --ranks -o shared$n
        diff -r one shared$n >/dev/null || fail "$n ranks give other results: $(diff -r one shared$n)"
    done
    ranks 1 1 "$ONX" run model.onnxtxt --ranks --random
    says err 'ranks needs --batches'
    ranks 1 1 "$ONX" run model.onnxtxt --ranks --batches sets
    says err 'with --ranks, give the output folder'
    ranks 1 1 "$ONX" run model.onnxtxt --ranks --batches sets --json -o no
    says err 'ranks prints no outputs'
    ranks 1 1 "$ONX" run model.onnxtxt --ranks --batches sets --configuration c -o no
    says err 'configuration all ranks run every set together'
    cp bad/a.npz sets/case3.npz
    ranks 1 2 "$ONX" run model.onnxtxt --batches sets --ranks -o shared
    [ "$(grep -c 'sets/case3.npz' err)" -le 2 ] || fail "what is wrong is said too often: $(cat err)"
    [ -z "$(find shared -name '*.tmp*' -o -name '.*' -type f)" ] || fail "something half-written is left"
fi
done_testing

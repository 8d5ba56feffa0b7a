# onx train --ranks: the ranks of mpirun train like one program that has all of their batches.
. "$ONX_SOURCE_DIR/tests/lib.sh"
awk 'BEGIN {
    print "<ir_version: 8, opset_import: [\"\" : 18]>"
    print "g (float[N,4] x, float[4,8] w1, float[8] b1, float[8,3] w2) => (float[N,3] y) {"
    print "  h = Gemm (x, w1, b1)  t = Tanh (h)  y = MatMul (t, w2)"
    print "}" }' >net.onnxtxt
cat >data.onnxtxt <<'END_MODEL'
<ir_version: 8, opset_import: ["" : 18]>
d (float[N,4] r) => (float[N,4] x, int64[N] label) <int64[3] first = {0, 1, 2}, int64[1] axis = {1}> {
  x = Identity (r)
  some = Gather <axis = 1> (r, first)
  label = ArgMax <axis = 1, keepdims = 0> (some)
}
END_MODEL
expect 0 "$ONX" run data.onnxtxt --random --seed 5 --dim N=50 -o data.npz
expect 0 "$ONX" trainable net.onnxtxt -o net.onnx --train 'w*' --train 'b*' --rate 0.05
train() { # OUT OPTION...
    to=$1
    shift
    echo "$ONX" train net.onnx --data data.npz -o "$to" --epochs 3 --batch 16 --shuffle --validation 0.1 "$@"
}
# shellcheck disable=SC2046
expect 0 $(train alone.onnx --threads 1)
needs_ranks
for n in 1 2 3; do
    # shellcheck disable=SC2046
    ranks 0 $n $(train "many$n.onnx" --ranks --checkpoint "state$n.onnx" --log "log$n.csv")
    [ "$(grep -c '^epoch' out)" -eq 3 ] || fail "$n ranks: not the first rank alone says something"
    [ "$(wc -l <"log$n.csv")" -eq 4 ] || fail "$n ranks: the log is not that of one rank"
    expect 0 "$ONX" compare alone.onnx "many$n.onnx" --dim N=5 --atol 1e-4 --rtol 1e-4
done
# Two epochs and a third one, by another number of ranks, are three.
# shellcheck disable=SC2046
ranks 0 2 $(train half.onnx --ranks --checkpoint half_state.onnx) --epochs 2
# shellcheck disable=SC2046
ranks 0 3 $(train rest.onnx --ranks --checkpoint half_state.onnx --resume)
expect 0 "$ONX" compare alone.onnx rest.onnx --dim N=5 --atol 1e-4 --rtol 1e-4
# The last batch of an epoch has one sample for three ranks.
# shellcheck disable=SC2046
ranks 0 3 $(train last.onnx --ranks --batch 44)
# shellcheck disable=SC2046
expect 0 $(train last1.onnx --batch 44)
expect 0 "$ONX" compare last1.onnx last.onnx --dim N=5 --atol 1e-4 --rtol 1e-4
# Where the model says how large a batch is, each rank has one.
sed 's/float\[N,/float[8,/g' net.onnxtxt >fixed.onnxtxt
expect 0 "$ONX" trainable fixed.onnxtxt -o fixed.onnx --train 'w*' --train 'b*'
ranks 0 2 "$ONX" train fixed.onnx --data data.npz -o fixed2.onnx --epochs 1 --ranks --batch 16
ranks 1 2 "$ONX" train fixed.onnx --data data.npz -o fixed2.onnx --epochs 1 --ranks --batch 8
[ "$(grep -c "the model takes batches of 8 for each" err)" -eq 1 ] || fail "not said once: $(cat err)"
# What goes wrong on all of them is said once, and they end.
# shellcheck disable=SC2046
ranks 1 2 $(train x.onnx --ranks --set rate=1e38)
[ "$(grep -c 'the loss is\|a variable becomes' err)" -eq 1 ] || fail "not one message: $(cat err)"
done_testing

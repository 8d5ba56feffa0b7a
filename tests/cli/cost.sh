# onx info --cost: multiply-adds, weights and activations, as numbers and as expressions.
. "$ONX_SOURCE_DIR/tests/lib.sh"

header='<ir_version: 10, opset_import: ["" : 23, "com.example" : 1]>'
# cost EXPRESSION BODY [OPTION...]: checks the multiply-adds of a graph
cost() {
    hoped=$1
    echo "$header $2" >m.onnxtxt
    shift 2
    expect 0 "$ONX" info --cost "$@" m.onnxtxt
    sed -n 's/^Cost  \(.*\) multiply-adds, .*/\1/p' out >sum
    [ "$(cat sum)" = "$hoped" ] || fail "cost $(cat sum), expected $hoped, of $(tail -n 1 m.onnxtxt)"
}
# 8 outputs of 6x6, each of 3x3x4
cost "10.4 k" 'g (float[1,4,8,8] x, float[8,4,3,3] w) => (float[1,8,6,6] y) { y = Conv(x, w) }'
cost "5.18 k" 'g (float[1,4,8,8] x, float[8,2,3,3] w) => (float[1,8,6,6] y) { y = Conv<group = 2>(x, w) }'
cost "18.4 k" 'g (float[1,4,8,8] x, float[4,8,3,3] w) => (float[1,8,10,10] y) { y = ConvTranspose(x, w) }'
cost "120" 'g (float[2,3,4] x, float[4,5] w) => (float[2,3,5] y) { y = MatMul(x, w) }'
cost "60" 'g (float[4,3] x, float[4,5] w) => (float[3,5] y) { y = Gemm<transA = 1>(x, w) }'
cost "120" 'g (float[2,3,4] x, float[4,5] w) => (float[2,3,5] y) { y = Einsum<equation = "bij, jk -> bik">(x, w) }'
# 5 steps of 2, each with all of W (12x3) and R (12x3)
cost "720" 'g (float[5,2,3] x, float[1,12,3] w, float[1,12,3] r) => (float[5,1,2,3] y) { y = LSTM<hidden_size = 3>(x, w, r) }'
# 4 queries, 6 keys: 2*4*8 elements of Q and of Y, times 6
cost "768" 'g (float[1,2,4,8] q, float[1,2,6,8] k, float[1,2,6,8] v) => (float[1,2,4,8] y) { y = Attention(q, k, v) }'
cost "144" 'g (float[1,4,6,6] x) => (float[1,4,3,3] y) { y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x) }'
cost "24" 'g (float[2,3,4] x) => (float[2,1,4] y) { y = ReduceSum<keepdims = 1>(x) }'
cost "12" 'g (float[3,4] x) => (float[3,4] y) { y = Relu(x) }'
cost "0" 'g (float[3,4] x) => (float[4,3] y) { y = Transpose(x) }'
# other domains have rows of their own
if "$ONX" ops --domain com.microsoft >/dev/null 2>&1; then
    header='<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]>'
    cost "160" 'g (float[2,16] x, uint8[5,1,8] b, float[5] s) => (float[2,5] y) { y = com.microsoft.MatMulNBits<K = 16, N = 5, block_size = 16>(x, b, s) }'
    cost "60" 'g (float[4,3] x, float[4,5] w) => (float[3,5] y) { y = com.microsoft.FusedMatMul<transA = 1>(x, w) }'
    # the batch is in the middle: what is summed over comes last, or first
    cost "120" 'g (float[4,2,3] x, float[2,3,5] w) => (float[2,4,5] y) { y = com.microsoft.FusedMatMul<transBatchA = 1>(x, w) }'
    cost "120" 'g (float[3,2,4] x, float[2,3,5] w) => (float[2,4,5] y) { y = com.microsoft.FusedMatMul<transA = 1, transBatchA = 1>(x, w) }'
    # 4 tokens of 8, three products by 8x8; 2 heads of 4, scores and sums over 4 keys
    cost "1.02 k" 'g (float[1,4,8] x, float[8,24] w, float[24] b) => (float[1,4,8] y) { y = com.microsoft.Attention<num_heads = 2>(x, w, b) }'
    header='<ir_version: 10, opset_import: ["" : 23, "com.example" : 1]>'
fi
# symbols stay, and become numbers
cost "20 * N" 'g (float[N,4] x, float[4,5] w) => (float[N,5] y) { y = MatMul(x, w) }'
cost "160" 'g (float[N,4] x, float[4,5] w) => (float[N,5] y) { y = MatMul(x, w) }' --dim N=8
cost "4 * N * S^2" 'g (float[N,S,4] x, float[N,4,S] w) => (float[N,S,S] y) { y = MatMul(x, w) }'
cost "N * (H + 1)" 'g (float[N,H] x, float[N,1] w) => (float[N,K] y) { c = Concat<axis = 1>(x, w) y = Neg(c) }'
# weights are counted once, activations are what nodes write
cost "16" 'g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { a = Add(x, w) b = Add(a, w) c = Mul(b, b) y = Neg(c) }'
says out 'weights 16 B, activations 64 B'
# what depends on data is not known
cost "12 + ?" 'g (float[12] x) => (float[K] y) { a = Neg(x) y = com.example.Thing(a) }'
says out '? stands for 1 node whose'
# branches are said
cost "8" 'g (bool c, float[4] x) => (float[4] y) { y = If(c)<then_branch = p () => (u) { u = Relu(x) }, else_branch = n () => (v) { v = Neg(x) }> }'
says out '2 nodes of branches and loop bodies'

# JSON
expect 0 "$ONX" info --cost --json m.onnxtxt
says out '"macs"'
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "the JSON of a cost"
import json
c = json.load(open("out"))["cost"]
assert c["macs"]["value"] == 8 and c["macs"]["complete"], c
assert {o["op_type"]: o["macs"]["value"] for o in c["operators"]} == {"If": 0, "Relu": 4, "Neg": 4}, c
END
fi
# mistakes of the call
expect 2 "$ONX" info --dim N=1 m.onnxtxt
says err '--dim needs --cost'
expect 2 "$ONX" info --cost --dim N=x m.onnxtxt
expect 2 "$ONX" info --cost --as graph m.onnxtxt
# Sizes beyond all numbers, and dims below 0, are no reason to fail.
cost "9.22 E" 'g (float[9223372036854775807] x) => (float[9223372036854775807] y) { y = Neg(x) }'
cost "7.85 E * N" 'g (float[N, 3037000499,  2584000000] x) => (float[N, 3037000499, 2584000000] y) { y = Neg(x) }'
done_testing

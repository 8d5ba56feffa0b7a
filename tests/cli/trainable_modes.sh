# onx trainable: models that were exported in training mode, frozen averages, and the two running variances.
. "$ONX_SOURCE_DIR/tests/lib.sh"
array() { # FILE SHAPE PRINTF-BYTES: floats
    printf '\223NUMPY\001\000\166\000' >"$1"
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($2)}" >>"$1"
    # shellcheck disable=SC2059
    printf "$3" >>"$1"
}
about() { # NAME VALUE: the elements of an initializer of after.onnx
    expect 0 "$ONX" show --full after.onnx
    got=$(tr -d '\n' <out | sed -n "s/.*[] ]$1 = {\([^}]*\)}.*/\1/p")
    echo "$got|$2" | tr -d ' ' | awk -F'|' '{ n = split($1, a, ","); if (!n || n != split($2, b, ",")) exit 1
        for (i = 1; i <= n; i++) { d = a[i] - b[i]; if (d < 0) d = -d; if (!(d <= 1e-5)) exit 1 } }' || fail "$1 is $got instead of $2"
}
after() { # MODEL EPOCHS OPTION...: trains it
    from=$1 epochs=$2
    shift 2
    expect 0 "$ONX" trainable "$from" -o t.onnx --loss value --keep --optimizer sgd "$@"
    expect 0 "$ONX" check --full t.onnx
    expect 0 "$ONX" train t.onnx --data x.npy --epochs "$epochs" --set rate=0 -o after.onnx --threads 1
}
array x.npy '2,1' '\000\000\200\077\000\000\100\100' # 1 and 3: mean 2, variance 1, unbiased 2
cat >batch.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18]>
g (float[N,1] x) => (float[N,1] y, float[1] seen) <float[1] s = {1}, float[1] b = {0}, float[1] m = {0}, float[1] v = {1}>
{ y, mean, var = BatchNormalization <training_mode = 1, momentum = 0.75, epsilon = 0.0> (x, s, b, m, v)  seen = Identity (mean) }
END
sed 's/y, mean, var = /y = /; s/training_mode = 1, //; s/Identity (mean)/Identity (m)/' batch.onnxtxt >single.onnxtxt
for model in batch single; do
    after $model.onnxtxt 2
    about m 0.875
    about v 1
    after $model.onnxtxt 1 --unbiased-variance
    about m 0.5
    about v 1.25
    after $model.onnxtxt 2 --unbiased-variance
    about v 1.4375
    after $model.onnxtxt 2 --freeze-statistics
    about m 0
    about v 1
    # the result normalizes by the averages that it has
    after $model.onnxtxt 1
    expect 0 "$ONX" edit after.onnx --strip training -o plain.onnx
    expect 0 "$ONX" check --full plain.onnx
    expect 0 "$ONX" run plain.onnx -i x='[[1],[3]]'
    says out "y  float[2,1] 0.5 2.5"
    says out "seen  float[1] 0.5"
done
# Frozen statistics normalize a step: y = s x, so the gradient of s is 2 instead of 0.
expect 0 "$ONX" trainable batch.onnxtxt -o t.onnx --loss value --keep --optimizer sgd --rate 0.25 --freeze-statistics
expect 0 "$ONX" train t.onnx --data x.npy --epochs 1 -o after.onnx
about s 0.5
about m 0
# A batch of one value per channel has no unbiased variance.
array x.npy '1,1' '\000\000\000\100'
sed 's/epsilon = 0.0/epsilon = 1.0/' single.onnxtxt >few.onnxtxt
after few.onnxtxt 1 --unbiased-variance
about m 0.5
about v 0.75
array x.npy '2,1' '\000\000\200\077\000\000\100\100'

# The average is read after the node and before Relu, which the node takes along.
sed 's/y = BatchNormalization/z = BatchNormalization/; s/seen = /y = Relu (z)  seen = /' single.onnxtxt >relu.onnxtxt
after relu.onnxtxt 1 --unbiased-variance
about m 0.5
about v 1.25

# ---- Dropout, in a function, and BatchNormalization in a subgraph
ones=$(awk 'BEGIN { for (i = 1; i <= 64; i++) printf "%s0.125", (i > 1 ? ", " : "") }')
cat >mode.onnxtxt <<END
<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
g (float[N,1] x) => (float[N,1] y)
<float[1,64] w = {$ones}, float[64,1] v = {$ones}, float ratio = {0.5}, bool yes = {1}, float[1] one = {1}, float[1] nil = {0}>
{
  a = MatMul (x, w)  b = own.drop (a, ratio, yes)  c = MatMul (b, v)
  y = If (yes) <then_branch = t () => (float[N,1] z) { z, m, s = BatchNormalization <training_mode = 1> (c, one, nil, nil, one) },
                else_branch = e () => (float[N,1] z) { z = Identity (c) }>
}
<domain: "own", opset_import: ["" : 18]>
drop (a, ratio, yes) => (b) { b, mask = Dropout (a, ratio, yes) }
END
after mode.onnxtxt 3
expect 0 "$ONX" edit after.onnx --strip training -o plain.onnx
expect 0 "$ONX" check --full plain.onnx
expect 0 "$ONX" run plain.onnx -i x='[[1],[3]]'
awk '$1 == "y" { found = 1; if ($3 < 0.99 || $3 > 1.01 || $4 < 2.99 || $4 > 3.01) exit 1 } END { exit !found }' out || fail "inference drops or normalizes: $(cat out)"
# A mode that the caller of the model chooses stays an input.
cat >chosen.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18]>
g (float[2,1] x, bool train) => (float[2,1] y) <float[1,1] w = {1}, float ratio = {0.5}> { a = MatMul (x, w)  y = Dropout (a, ratio, train) }
END
expect 0 "$ONX" trainable chosen.onnxtxt -o t.onnx --loss value
expect 0 "$ONX" show t.onnx
says out "Dropout(a, ratio, train)"
done_testing

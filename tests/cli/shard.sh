# onx shard: annotations that pass the checker, messages about them, and errors.
. "$ONX_SOURCE_DIR/tests/lib.sh"

# A layer of two matrix products with a residual connection.
tensor() { # NAME ROWS COLUMNS SEED
    awk -v name="$1" -v rows="$2" -v columns="$3" -v seed="$4" 'BEGIN {
        printf "float[%d,%d] %s = {", rows, columns, name
        for (k = 0; k < rows * columns; k++) printf "%s%g", k ? "," : "", ((k * 7 + seed) % 13 - 6) / 8
        printf "}"
    }'
}
mkdir layer
cat >layer/model.onnxtxt <<END_MODEL
<ir_version: 8, opset_import: ["" : 17], producer_name: "hand", model_version: 1>
layer (float[B, 8] x) => (float[B, 8] z) <$(tensor w 8 12 1), $(tensor v 12 8 5)>
{ h = MatMul (x, w) r = Relu (h) y = MatMul (r, v) z = Add (y, x) }
END_MODEL

expect 0 "$ONX" shard layer/model.onnxtxt -o tensor.onnx --devices 4 --tensor-parallel --explain
says out 'configuration tensor4: 4 devices, 3 of 4 nodes annotated'
says out 'columns and rows'
expect 0 "$ONX" check --full tensor.onnx
[ ! -s out ] || ! grep -q 'D-' out || fail "the checker finds something: $(cat out)"
expect 0 "$ONX" show tensor.onnx
says out 'tensor4'
expect 0 "$ONX" shard layer/model.onnxtxt -o data.onnx --devices 2 --data-parallel
says out 'configuration data2: 2 devices, 4 of 4 nodes annotated'
expect 0 "$ONX" shard layer/model.onnxtxt -o stages.onnx --pipeline 2 --devices 2 --explain --name two
says out 'configuration two: 2 devices, 4 of 4 nodes annotated'
says out 'stage 1 begins here'
expect 0 "$ONX" shard layer/model.onnxtxt -o mesh.onnx --mesh 2x4 --dim B=6
says out 'configuration data2_tensor4: 8 devices'
expect 0 "$ONX" shard layer/model.onnxtxt -o cube.onnx --pipeline 2 --mesh 2x1
says out 'configuration pipeline2_data2: 4 devices'
# One after the other: both are there.
expect 0 "$ONX" shard tensor.onnx -o both.onnx --mesh 3x1x1
says out 'configuration pipeline3: 3 devices'
for model in data stages mesh cube both; do
    expect 0 "$ONX" check --full $model.onnx
    ! grep -q 'D-' out || fail "the checker finds something in $model: $(cat out)"
done
expect 0 "$ONX" shard layer/model.onnxtxt --dry-run --devices 2 --tensor-parallel
says out 'configuration tensor2'

# The plan, and predictions; figures of this machine, and of another one.
says out 'predicted '
says out 'times as fast'
grep -q '^0 to 1  *4  *1  *384 B ' out || fail "there is no row for the devices: $(cat out)"
expect 0 "$ONX" shard --measure
for figure in operations bandwidth latency link cache shared passes; do
    grep -q "^$figure  *[0-9]" out || fail "--measure says no $figure"
done
expect 0 "$ONX" shard --measure -o here.txt
[ "$(grep -c '^[a-z]*=[0-9.e+-]*$' here.txt)" = 7 ] || fail "--measure does not write seven figures: $(cat here.txt)"
expect 0 "$ONX" shard layer/model.onnxtxt -o auto.onnx --devices 4 --auto --dim B=64 --machine here.txt --machine latency=1e-9
says out 'pipeline   data tensor'
grep -q '^ *1 *2 *2 ' out || fail "--auto does not try 2 by 2: $(cat out)"
expect 0 "$ONX" check --full auto.onnx
expect 1 "$ONX" shard layer/model.onnxtxt -o no.onnx --devices 4 --auto --memory 1
says err 'no distribution of the model over 4 devices'
says out 'too much'
expect 0 "$ONX" shard layer/model.onnxtxt --dry-run --devices 4096 --data-parallel --machine link=1e9
says out 'data4096'
expect 2 "$ONX" shard layer/model.onnxtxt -o no.onnx --devices 4 --auto --mesh 2x2
says err '--auto chooses the mesh itself'
expect 2 "$ONX" shard layer/model.onnxtxt -o no.onnx --mesh 2x2 --machine speed=1
says err 'the figures are operations'
expect 2 "$ONX" shard layer/model.onnxtxt -o no.onnx --mesh 2x2 --machine link=fast
says err 'not a number above 0'
expect 2 "$ONX" shard layer/model.onnxtxt -o no.onnx --mesh 2x2 --machine missing.txt
says err 'cannot open missing.txt'
expect 2 "$ONX" shard
says err 'name a model'

# What cannot be done.
expect 1 "$ONX" shard tensor.onnx -o again.onnx --devices 4 --tensor-parallel
says err 'has a device configuration "tensor4" already'
expect 1 "$ONX" shard layer/model.onnxtxt -o no.onnx --devices 64 --tensor-parallel
says err 'no weights that 64 devices can share'
expect 1 "$ONX" shard layer/model.onnxtxt -o no.onnx --pipeline 9 --devices 9
says err 'cannot be cut into 9 stages'
[ ! -e no.onnx ] || fail "there is a model after a failure"
expect 2 "$ONX" shard layer/model.onnxtxt -o no.onnx --devices 4
says err 'say how'
expect 2 "$ONX" shard layer/model.onnxtxt -o no.onnx --tensor-parallel
says err 'give the number of devices'
expect 2 "$ONX" shard layer/model.onnxtxt -o no.onnx --mesh 4
says err 'a mesh is written 2x4'
expect 2 "$ONX" shard layer/model.onnxtxt -o no.onnx --mesh 2x2 --devices 5
says err 'the mesh has 4 devices, not 5'
expect 2 "$ONX" shard layer/model.onnxtxt -o no.onnx --devices 5 --pipeline 2 --tensor-parallel
says err '5 devices cannot be shared by 2 stages'
expect 2 "$ONX" shard layer/model.onnxtxt -o no.onnx --devices 4 --data-parallel --tensor-parallel
says err 'has to give the devices for each'

# A node of very many operands takes time in proportion to them.
{
    echo '<ir_version: 10, opset_import: ["" : 20]>'
    echo 'g (float[64, 8] x) => (float[64, 8] y) {'
    echo '  x0 = Relu (x)'
    echo '  y = Sum (x0'
    awk 'BEGIN { for (i = 1; i < 150000; i++) print ", x0" }'
    echo ')'
    echo '}'
} >wide.onnxtxt
expect 0 timeout 60 "$ONX" shard wide.onnxtxt -o wide.onnx --devices 4 --data-parallel

# Queries, keys and values of one product with weights of few bits are made apart: in the file of the weights, whose
# bytes stay where they are, and with the same results. A build without com.microsoft has no such operators.
{
    echo '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>'
    echo 'g (float[2, 3, 16] x) => (float[2, 3, 16] y)'
    awk 'function list(n, m,    i) { for (i = 0; i < n; i++) printf "%s%d", i ? ", " : "", i * 37 % m }
        BEGIN {
            printf "<uint8[48, 1, 8] w = {"; list(384, 251); printf "}, float[48] s = {"; list(48, 3)
            printf "}, int32[2] lengths = {2, 2}, int32 all = {3}>\n"
        }'
    echo '{ p = com.microsoft.MatMulNBits <K = 16, N = 48, block_size = 16> (x, w, s)'
    echo 'y = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 2> (p, , , , , lengths, all) }'
} >packed.onnxtxt
if "$ONX" run packed.onnxtxt --random --seed 5 -o whole.npz >/dev/null 2>&1; then
    expect 0 "$ONX" convert packed.onnxtxt packed.onnx --external packed.data --external-threshold 64
    expect 0 "$ONX" shard packed.onnx -o apart.onnx --devices 2 --tensor-parallel
    says out '4 of 4 nodes annotated'
    expect 0 "$ONX" check apart.onnx --full
    expect 0 "$ONX" run apart.onnx --random --seed 5 -o apart.npz
    cmp whole.npz apart.npz || fail "the model made apart gives something else"
    grep -q 'packed.data' apart.onnx || fail "weights are copied that lie in one piece"
    if has_ranks; then
        mkdir -p heads/test_data_set_0
        cat >as_it_is.onnxtxt <<'END_MODEL'
<ir_version: 9, opset_import: ["" : 20]>
g (float[2, 3, 16] x) => (float[2, 3, 16] y) { y = Identity (x) }
END_MODEL
        expect 0 "$ONX" run as_it_is.onnxtxt --random --seed 3 --output-dir of_heads
        cp of_heads/output_0.pb heads/test_data_set_0/input_0.pb
        cp apart.onnx heads/model.onnx
        cp packed.data heads
        expect 0 "$ONX" run packed.onnxtxt -i x=of_heads/output_0.pb --output-dir heads/test_data_set_0
        ranks 0 2 "$ONX" test heads --configuration tensor2
        says out "1 passed"
    fi
fi

# Ranks of MPI give the results of the whole model.
if has_ranks; then
    ranks 0 3 "$ONX" shard --measure --ranks -o ranks.txt
    [ "$(grep -c '^[a-z]*=[0-9.e+-]*$' ranks.txt)" = 7 ] || fail "ranks do not measure seven figures: $(cat ranks.txt)"
    ranks 1 1 "$ONX" shard --measure --ranks
    says err 'but only one rank was started'
    mkdir -p case/test_data_set_0
    cat >copy.onnxtxt <<'END_MODEL'
<ir_version: 9, opset_import: ["" : 20]>
g (float[6, 8] x) => (float[6, 8] y) { y = Identity (x) }
END_MODEL
    expect 0 "$ONX" run copy.onnxtxt --random --seed 3 --output-dir inputs
    cp inputs/output_0.pb case/test_data_set_0/input_0.pb
    expect 0 "$ONX" run layer/model.onnxtxt -i x=inputs/output_0.pb --output-dir case/test_data_set_0
    for row in 'tensor 4 tensor4' 'data 2 data2' 'stages 2 two' 'mesh 8 data2_tensor4' 'both 3 pipeline3'; do
        # shellcheck disable=SC2086
        set -- $row
        cp "$1.onnx" case/model.onnx
        ranks 0 "$2" "$ONX" test case --configuration "$3"
        says out "1 passed"
    done
fi
# What a node must have and does not is no operand that can be made apart, and nothing that is written over.
cat >none.textproto <<'END_MODEL'
ir_version: 9 opset_import { domain: "" version: 21 } opset_import { domain: "com.microsoft" version: 1 }
graph { name: "g"
 node { op_type: "MatMul" input: "x" input: "wq" output: "q" }
 node { op_type: "MatMul" input: "x" input: "wk" output: "k" }
 node { op_type: "MatMul" input: "x" input: "wv" output: "v" }
 node { op_type: "MultiHeadAttention" domain: "com.microsoft" input: "q" input: "k" input: "v" input: "b" attribute { name: "num_heads" type: INT i: 2 } }
 initializer { name: "wq" data_type: 1 dims: 2 dims: 2 float_data: [1,1,1,1] }
 initializer { name: "wk" data_type: 1 dims: 2 dims: 2 float_data: [1,1,1,1] }
 initializer { name: "wv" data_type: 1 dims: 2 dims: 2 float_data: [1,1,1,1] }
 initializer { name: "b" data_type: 1 dims: 6 float_data: [1,1,1,1,1,1] }
 input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } dim { dim_value: 2 } dim { dim_value: 2 } } } } }
 output { name: "x" type { tensor_type { elem_type: 1 } } }
}
END_MODEL
expect 1 "$ONX" shard none.textproto -o none.onnx --devices 2 --tensor-parallel
says err "has no weights that 2 devices can share"
done_testing

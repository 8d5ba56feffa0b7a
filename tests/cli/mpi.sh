# Distributed models with MPI: each rank of mpirun has its shards, and the results are those of the whole model.
. "$ONX_SOURCE_DIR/tests/lib.sh"

# Without MPI, the error says what to install; an ordinary run does not need MPI.
mkdir alone hidden
echo "not a library" >hidden/libonx-mpi.so.0
cp "$ONX" alone/onx # it is looked for beside the program, too
cat >half.textproto <<'END_MODEL'
ir_version: 11 opset_import { version: 21 } configuration { name: "all" num_devices: 2 }
graph { name: "g" input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } node { op_type: "Neg" input: "x" output: "y" } }
END_MODEL
expect 1 env LD_LIBRARY_PATH="$here/hidden" alone/onx run half.textproto --random --configuration all
says err "a rank among others needs MPI, which"
expect 1 env LD_LIBRARY_PATH="$here/hidden" alone/onx train half.textproto --data none.npz -o no.onnx --ranks
says err "a rank among others needs MPI, which"
expect 0 env LD_LIBRARY_PATH="$here/hidden" alone/onx run half.textproto --random

needs_ranks

# A layer of two products, the one by columns, the other by rows, for N devices.
model() { # N
    devices=
    i=0
    while [ $i -lt "$1" ]; do
        devices="$devices device: $i"
        i=$((i + 1))
    done
    spec() {
        echo "device_configurations { configuration_id: \"all\" sharding_spec { tensor_name: \"$1\" $devices
            sharded_dim { axis: $2 simple_sharding { num_shards: $3 } } } }"
    }
    awk -v n="$1" -v one="$(spec w 1 "$1")" -v two="$(spec v 0 "$1")" '
        function tensor(name, rows, columns, seed,    k) {
            printf "initializer { name: \"%s\" dims: %d dims: %d data_type: 1", name, rows, columns
            for (k = 0; k < rows * columns; k++) printf " float_data: %g", ((k * 7 + seed) % 13 - 6) / 8
            print " }"
        }
        function value(kind, name) {
            printf "%s { name: \"%s\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } dim { dim_value: 16 } } } } }\n", kind, name
        }
        BEGIN {
            printf "ir_version: 11 opset_import { version: 21 } configuration { name: \"all\" num_devices: %d }\ngraph { name: \"g\"\n", n
            value("input", "x"); value("output", "z"); tensor("w", 16, 24, 1); tensor("v", 24, 16, 5)
            print "node { op_type: \"MatMul\" input: \"x\" input: \"w\" output: \"h\"", one, "}"
            print "node { op_type: \"Relu\" input: \"h\" output: \"r\" }"
            print "node { op_type: \"MatMul\" input: \"r\" input: \"v\" output: \"y\"", two, "}"
            print "node { op_type: \"Add\" input: \"y\" input: \"x\" output: \"z\" } }"
        }'
}
for n in 1 2 3 4 8; do
    mkdir -p "case$n/test_data_set_0"
    model $n >"case$n.textproto"
    expect 0 "$ONX" convert "case$n.textproto" "case$n/model.onnx"
    expect 0 "$ONX" run "case$n/model.onnx" --random --seed 3 --output-dir "case$n/test_data_set_0"
done
cat >copy.onnxtxt <<'END_MODEL'
<ir_version: 9, opset_import: ["" : 20]>
g (float[4, 16] x) => (float[4, 16] y) { y = Identity (x) }
END_MODEL
expect 0 "$ONX" run copy.onnxtxt --random --seed 3 --output-dir inputs
for n in 1 2 3 4 8; do
    cp inputs/output_0.pb "case$n/test_data_set_0/input_0.pb"
    ranks 0 $n "$ONX" test "case$n" --configuration all
    says out "1 passed"
    ranks 0 $n "$ONX" run "case$n/model.onnx" --configuration all -i "x=case$n/test_data_set_0/input_0.pb" -o "got$n.npz"
    [ -s "got$n.npz" ] || fail "$n ranks write no outputs"
done
ranks 0 2 "$ONX" run case2/model.onnx --configuration all --random
[ "$(grep -c '^.*z.*float' out)" = 1 ] || fail "more than one rank prints the outputs"
[ "$(grep -c 'made up' err)" = 1 ] || fail "more than one rank says what it makes up"
ranks 0 2 "$ONX" bench case2/model.onnx --configuration all --seconds 0
says out "median"

# What goes wrong is said once, and all ranks end.
once() { # TEXT: in err, once
    [ "$(grep -c "$1" err)" = 1 ] || fail "\"$1\" is not said once: $(cat err)"
}
ranks 1 2 "$ONX" run case2/model.onnx --configuration none --random
once 'no device configuration "none"'
ranks 1 3 "$ONX" run case2/model.onnx --configuration all --random
once 'is for 2 devices, and there are 3 ranks'
model 2 | sed 's/float_data: 0.5/float_data: 0.625/' >other.textproto
# shellcheck disable=SC2016
ranks 1 2 sh -c 'f=case2.textproto; [ "$OMPI_COMM_WORLD_RANK" = 0 ] || f=other.textproto; exec "$ONX" run $f --configuration all --random'
once 'rank 1 has other weights than rank 0'
sed 's/"Relu"/"Abs"/' case2.textproto >other.textproto
# shellcheck disable=SC2016
ranks 1 2 sh -c 'f=case2.textproto; [ "$OMPI_COMM_WORLD_RANK" = 0 ] || f=other.textproto; exec "$ONX" run $f --configuration all --random'
once 'rank 1 has another model than rank 0'
# shellcheck disable=SC2016
ranks 1 2 sh -c 'f=case2.textproto; [ "$OMPI_COMM_WORLD_RANK" = 0 ] || f=missing.onnx; exec "$ONX" run $f --configuration all --random'
once 'cannot open missing.onnx'
# A rank that dies, and one that hangs.
slow() { # SIGNAL: what becomes of rank 1 while both measure
    # shellcheck disable=SC2016
    expect_failure timeout 120 mpirun --oversubscribe --allow-run-as-root -n 2 sh -c '
        [ "$OMPI_COMM_WORLD_RANK" = 1 ] && { (sleep 2; kill -'"$1"' $$; sleep 6; kill -KILL $$) & }
        exec "$ONX" bench case2/model.onnx --configuration all --seconds 600 --rank-timeout 1'
}
expect_failure() {
    started=$(date +%s)
    "$@" >out 2>err && fail "$* succeeds"
    [ $(($(date +%s) - started)) -lt 30 ] || fail "it takes too long to end"
}
slow KILL
slow STOP
once 'rank 1 was waited for longer than 1 s'
done_testing

# Sparse initializers: onx compress --sparse makes them, and every command treats them as the tensors that they represent.
. "$ONX_SOURCE_DIR/tests/lib.sh"

# weight NAME TYPE FIELD ROWS COLUMNS EVERY: a weight in which every EVERYth element is nonzero.
weight() {
    awk -v name="$1" -v type="$2" -v field="$3" -v rows="$4" -v columns="$5" -v every="$6" 'BEGIN {
        printf "initializer { name: \"%s\" data_type: %d dims: %d dims: %d %s: [", name, type, rows, columns, field
        for (i = 0; i < rows * columns; i++) printf "%s%d", i ? ", " : "", every && i % every == 3 ? i % 7 - (i % 5 + 1) * 10 : 0
        print "] }" }'
}
{
    cat <<'END'
ir_version: 4 producer_name: "test" opset_import { version: 17 }
graph { name: "g"
  node { name: "first" op_type: "MatMul" input: "x" input: "w" output: "h" }
  node { name: "act" op_type: "Relu" input: "h" output: "a" }
  node { name: "second" op_type: "Gemm" input: "a" input: "v" output: "y" }
  node { name: "ids" op_type: "Gather" input: "t" input: "i" output: "z" }
  node { name: "twice" op_type: "Mul" input: "f" input: "d" output: "u" }
  node { name: "none" op_type: "Add" input: "f" input: "e" output: "n" }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim { dim_value: 16 } } } } }
  input { name: "i" type { tensor_type { elem_type: 7 shape { dim { dim_value: 3 } } } } }
  input { name: "f" type { tensor_type { elem_type: 1 shape { dim { dim_value: 16 } dim { dim_value: 40 } } } } }
  input { name: "given" type { tensor_type { elem_type: 1 shape { dim { dim_value: 16 } dim { dim_value: 40 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim { dim_value: 32 } } } } }
  output { name: "z" type { tensor_type { elem_type: 7 shape { dim { dim_value: 3 } dim { dim_value: 32 } } } } }
  output { name: "u" type { tensor_type { elem_type: 1 shape { dim { dim_value: 16 } dim { dim_value: 40 } } } } }
  output { name: "n" type { tensor_type { elem_type: 1 shape { dim { dim_value: 16 } dim { dim_value: 40 } } } } }
END
    weight w 1 float_data 16 40 10
    weight v 1 float_data 40 32 8
    weight t 7 int64_data 16 32 5
    weight d 1 float_data 16 40 4
    weight e 1 float_data 16 40 0
    weight given 1 float_data 16 40 10
    echo '}'
} >pruned.textproto
# Zeros below zero are no zeros.
sed 's/\(name: "w" data_type: 1 dims: 16 dims: 40 float_data: .0, \)0,/\1-0.0,/' pruned.textproto >model.textproto
if cmp -s pruned.textproto model.textproto; then fail "no zero below zero"; fi
expect 0 "$ONX" check --full model.textproto
expect 0 "$ONX" convert model.textproto model.onnx

expect 0 "$ONX" compress model.onnx -o plain.onnx
expect 0 "$ONX" info --json plain.onnx
says out '"sparse_initializers": 0'
expect 0 "$ONX" compress model.onnx -o sparse.onnx --sparse --explain
for name in w v t e; do says out "$name: sparse"; done
[ "$(grep -c ': sparse' out)" -eq 4 ] || fail "others than w, v, t and e: $(cat out)" # d is too full, one may be given
expect 0 "$ONX" info --json sparse.onnx
says out '"sparse_initializers": 4'
says out '"ir_version": 6'
[ "$(wc -c <sparse.onnx)" -lt $(($(wc -c <plain.onnx) * 2 / 3)) ] ||
    fail "it is not much smaller: $(wc -c <sparse.onnx) of $(wc -c <plain.onnx) bytes"
expect 0 "$ONX" show --format textproto --full sparse.onnx
says out 'dims: 65' # 64 of 640, and the zero below zero

# same_results MODEL [OPTION...]: it is valid, and gives what the model that it was made of gives.
same_results() {
    result=$1
    shift
    [ $# -gt 0 ] || set -- --rtol=0 --atol=0
    expect 0 "$ONX" check --full "$result"
    expect 0 "$ONX" compare model.onnx "$result" --dim N=5 "$@"
}
same_results sparse.onnx
expect 0 "$ONX" compare sparse.onnx --kernels plain
expect 0 "$ONX" infer sparse.onnx -o inferred.textproto
says inferred.textproto 'name: "h"'
if grep -q sparse_tensor_type inferred.textproto; then fail "a value of sparse type"; fi
expect 0 "$ONX" convert sparse.onnx text.onnxtxt
expect 0 iconv -f UTF-8 -t UTF-8 text.onnxtxt # bytes that are no text are escaped
expect 0 "$ONX" convert text.onnxtxt back.onnx
same_results back.onnx
expect 0 "$ONX" convert sparse.onnx outside.onnx --external w.bin --external-threshold 1
expect 0 "$ONX" compare model.onnx outside.onnx --rtol 0 --atol 0
expect 0 "$ONX" compress outside.onnx -o again.onnx --sparse

for change in simplify "retarget --opset 13" "retarget --opset 22" outline inline "edit --rename w=weight" \
    "edit --strip types" "compress --sparse"; do
    # shellcheck disable=SC2086
    expect 0 "$ONX" $change sparse.onnx -o changed.onnx
    same_results changed.onnx
done
expect 0 "$ONX" extract sparse.onnx -o part.onnx --split 2
expect 0 "$ONX" merge part.1.onnx part.2.onnx -o whole.onnx
same_results whole.onnx
expect 0 "$ONX" merge sparse.onnx sparse.onnx -o two.onnx --side-by-side --prefix1 a/ --prefix2 b/
expect 0 "$ONX" check --full two.onnx
for to in float16 double; do
    expect 0 "$ONX" precision sparse.onnx -o other.onnx --to $to --keep-io
    same_results other.onnx --rtol=0.01
done
for mode in dynamic weights; do
    expect 0 "$ONX" quantize sparse.onnx -o q.onnx --mode $mode
    same_results q.onnx --rtol=0.1
done

# What training changes, what others name, text, and elements without bytes of their own stay as they are.
cat >stay.textproto <<'END'
ir_version: 10 producer_name: "test" opset_import { version: 21 }
graph { name: "g"
  node { op_type: "Cast" input: "four" output: "y" attribute { name: "to" type: INT i: 1 } }
  node { op_type: "Identity" input: "words" output: "z" }
  node { op_type: "Add" input: "state" input: "scaled" output: "u" }
  initializer { name: "four" data_type: 22 dims: 4096 raw_data: "@" }
  initializer { name: "words" data_type: 8 dims: 2 string_data: "" string_data: "" }
  initializer { name: "state" data_type: 1 dims: 1024 raw_data: "@@" }
  initializer { name: "scaled" data_type: 1 dims: 1024 raw_data: "@@" }
  quantization_annotation { tensor_name: "scaled" }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4096 } } } } }
  output { name: "z" type { tensor_type { elem_type: 8 shape { dim { dim_value: 2 } } } } }
  output { name: "u" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1024 } } } } } }
training_info { algorithm { name: "a" node { op_type: "Identity" input: "state" output: "next" }
    output { name: "next" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1024 } } } } } }
  update_binding { key: "state" value: "next" } }
END
awk 'BEGIN { for (i = 0; i < 2048; i++) zeros = zeros "\\000" }
    match($0, /@+/) { $0 = substr($0, 1, RSTART - 1) zeros (RLENGTH > 1 ? zeros : "") substr($0, RSTART + RLENGTH) } { print }
' stay.textproto >stays.textproto
expect 0 "$ONX" convert stays.textproto stays.onnx
expect 0 "$ONX" compress stays.onnx -o less.onnx --sparse --explain
if grep -q sparse out; then fail "$(cat out)"; fi
same less.onnx stays.onnx

# An operator that takes a sparse matrix has it from an initializer, declared as an input or not, or is given all of it.
if "$ONX" ops --domain com.microsoft >out 2>&1 && grep -q SparseToDenseMatMul out; then
    cat >product.textproto <<'END'
ir_version: 9 producer_name: "test" opset_import { version: 17 } opset_import { domain: "com.microsoft" version: 1 }
graph { name: "g"
  node { domain: "com.microsoft" op_type: "SparseToDenseMatMul" input: "s" input: "b" output: "y" }
  node { domain: "com.microsoft" op_type: "SparseToDenseMatMul" input: "r" input: "b" output: "z" }
  input { name: "s" type { sparse_tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 3 } } } } }
  input { name: "b" type { tensor_type { elem_type: 1 shape { dim { dim_value: 3 } dim { dim_value: 1 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 1 } } } } }
  output { name: "z" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 1 } } } } }
  initializer { name: "b" data_type: 1 dims: 3 dims: 1 float_data: [1, 10, 100] }
  sparse_initializer { dims: 2 dims: 3 values { name: "s" data_type: 1 dims: 2 float_data: [2, 3] } indices { data_type: 7 dims: 2 int64_data: [1, 5] } }
  sparse_initializer { dims: 2 dims: 3 values { name: "r" data_type: 1 dims: 1 float_data: 4 } indices { data_type: 7 dims: 1 dims: 2 int64_data: [0, 2] } }
}
END
    expect 0 "$ONX" check --full product.textproto
    expect 0 "$ONX" run product.textproto --full
    for number in "[[20]," "[300]]" "[[400],"; do says out "$number"; done
    expect 0 "$ONX" run product.textproto --full -i "s=[[1, 0, 0], [0, 0, 2]]"
    says out "[200]]"
fi
done_testing

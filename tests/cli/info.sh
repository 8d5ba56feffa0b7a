# onx info: text and JSON, for models and parts.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cp "$ONX_SOURCE_DIR/examples/stripes.onnxtxt" "$ONX_SOURCE_DIR/examples/image.onnxtxt" .

expect 0 "$ONX" info stripes.onnxtxt
golden_is info_stripes.txt
expect 0 "$ONX" info --json stripes.onnxtxt
golden_is info_stripes.json
expect 0 "$ONX" info --as tensor image.onnxtxt
golden_is info_image.txt

# Everything that a model can hold.
cat >all.textproto <<'END'
ir_version: 10
producer_name: "hand"
producer_version: "1.0"
domain: "org.example"
model_version: 844424930131994
doc_string: "Two lines,\nof which one shows."
opset_import { version: 21 }
opset_import { domain: "ai.onnx.ml" version: 5 }
graph {
  name: "g"
  node { op_type: "If" input: "c" output: "y" attribute { name: "then_branch" type: GRAPH g { name: "t"
    node { op_type: "Neg" input: "x" output: "z" } output { name: "z" } } } }
  node { op_type: "Scaler" domain: "ai.onnx.ml" input: "x" output: "s" }
  node { op_type: "Twice" domain: "org.example" input: "x" output: "t" }
  initializer { name: "c" data_type: 9 int32_data: 1 }
  initializer { name: "w" dims: 1000 dims: 256 data_type: 1 data_location: EXTERNAL external_data { key: "location" value: "w.bin" } }
  initializer { name: "v" dims: 3 data_type: 1 data_location: EXTERNAL external_data { key: "location" value: "../v.bin" } }
  initializer { name: "u" dims: 16 data_type: 22 data_location: EXTERNAL external_data { key: "location" value: "none.bin" } }
  initializer { name: "bad" dims: -1 data_type: 1 }
  initializer { name: "words" dims: 2 data_type: 8 string_data: "one" string_data: "two" }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim { dim_value: 3 } dim { } } } } }
  input { name: "c" type { tensor_type { elem_type: 9 shape { } } } }
  input { name: "list" type { sequence_type { elem_type { tensor_type { elem_type: 7 } } } } }
  input { name: "map" type { map_type { key_type: 8 value_type { tensor_type { elem_type: 1 shape { } } } } } }
  input { name: "maybe" type { optional_type { elem_type { sparse_tensor_type { elem_type: 1 shape { dim { dim_value: 9 } } } } } } }
  output { name: "y" }
  output { name: "bell\007 and \033[31mred" type { tensor_type { elem_type: 99 shape { } } } }
}
functions { domain: "org.example" name: "Twice" input: "a" output: "b" opset_import { version: 21 } node { op_type: "Add" input: "a" input: "a" output: "b" } }
training_info { algorithm { name: "step" node { op_type: "Add" input: "w" input: "w" output: "w2" } output { name: "w2" } } update_binding { key: "w" value: "w2" } }
metadata_props { key: "license" value: "none" }
END
printf '%1024000s' '' >w.bin
expect 0 "$ONX" info all.textproto
golden_is info_all.txt
expect 0 "$ONX" info --json all.textproto
golden_is info_all.json

# Long lists are cut, --all shows them.
{
    echo 'ir_version: 3 opset_import { version: 9 } graph { name: "long"'
    for i in $(seq 40); do
        echo "node { op_type: \"Op$((i % 20))\" output: \"v$i\" } input { name: \"i$i\" } initializer { name: \"w$i\" data_type: 1 float_data: 1 } input { name: \"w$i\" }"
    done
    echo '}'
} >long.textproto
expect 0 "$ONX" info long.textproto
golden_is info_long.txt
expect 0 "$ONX" info --all long.textproto
says out "i40"
says out "w40"

expect 2 "$ONX" info no-such-file.onnx
says err "no-such-file.onnx"
expect 2 "$ONX" info .
printf '\010\012\072\177\001' >broken.onnx
expect 1 "$ONX" info broken.onnx
says err "broken.onnx: byte"
expect 0 "$ONX" info --as graph - </dev/null
expect 2 "$ONX" info --as grahp stripes.onnxtxt
says err 'did you mean "graph"?'
done_testing

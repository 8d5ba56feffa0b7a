# onx trainable: which initializers are weights, which of them are one, and what is said about those that are left.
. "$ONX_SOURCE_DIR/tests/lib.sh"
array() { # FILE SHAPE PRINTF-BYTES: floats
    printf '\223NUMPY\001\000\166\000' >"$1"
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($2)}" >>"$1"
    # shellcheck disable=SC2059
    printf "$3" >>"$1"
}
model() { # NAME SIGNATURE INITIALIZERS NODES
    printf '<ir_version: 8, opset_import: ["" : 18]>\ng %s\n<%s>\n{ %s }\n' "$2" "$3" "$4" >"$1.onnxtxt"
}
trained() { # MODEL NAMES OPTION...: the weights that are trained, in this order
    model=$1 names=$2
    shift 2
    expect 0 "$ONX" trainable "$model" --loss value --keep --dry-run "$@"
    [ "$(sed -n 's/: train: .*//p' out | tr '\n' ' ')" = "${names:+$names }" ] || fail "$model $*: trained are $(cat out)"
}

# ---- values between a weight and the node that uses it
two='{0.5, -0.25}'
four='{0.1, 0.2, -0.3, 0.4}'
x='(float[2,2] x) => (float[2,2] y)'
while IFS='|' read -r name initializers nodes weights; do
    [ -n "$name" ] || continue
    model "$name" "$x" "$initializers" "$nodes"
    trained "$name.onnxtxt" "$weights"
    expect 0 "$ONX" trainable "$name.onnxtxt" -o t.onnx --loss value --keep --optimizer sgd --rate 0.5
    expect 0 "$ONX" check --full t.onnx
    array x.npy '2,2' '\000\000\200\077\000\000\000\100\000\000\000\077\000\000\200\277'
    expect 0 "$ONX" train t.onnx --data x.npy --epochs 1 -o after.onnx --threads 1
    expect 0 "$ONX" show --full t.onnx
    sed -n '/^</,/^>/p' out >before.txt
    expect 0 "$ONX" show --full after.onnx
    for weight in $weights; do
        line=$(grep "[] ]$weight = " out)
        [ -n "$line" ] && ! grep -qF "$line" before.txt || fail "$name: $weight does not change: $line"
    done
done <<END
slice|float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, int64[1] a = {0}, int64[1] b = {2}, int64[1] c = {4}|p = Slice (w, a, b)  q = Slice (w, b, c)  m = MatMul (x, p)  y = MatMul (m, q)|w
split|float[2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}|p, q = Split <axis = 1, num_outputs = 2> (w)  m = MatMul (x, p)  y = MatMul (m, q)|w
concat|float[1,2] v = $two, float[1,2] u = {1, 2}|w = Concat <axis = 0> (v, u)  y = MatMul (x, w)|v u
token|float[1,2] token = $two, float[2,2] w = $four, int64[2] size = {1, 2}, int64[1] one = {1}, int64[1] three = {3}, int64[1] zero = {0}|t = Expand (token, size)  c = Concat <axis = 0> (t, x)  m = MatMul (c, w)  y = Slice (m, one, three, zero)|token w
where|float[2] fill = $two, float[2,2] w = $four, float zero = {0}|c = Less (x, zero)  f = Where (c, fill, x)  y = MatMul (f, w)|fill w
norm|float[2,2] v = $four, float[2,1] s = {1, 2}|n = ReduceL2 <keepdims = 1> (v)  u = Div (v, n)  w = Mul (u, s)  y = MatMul (x, w)|v s
softmax|float[2] mix = $two, float[2,2] w = $four|m = MatMul (x, w)  p = Softmax (mix)  y = Mul (m, p)|mix w
temperature|float t = {0.5}, float[2,2] w = $four|m = MatMul (x, w)  e = Exp (t)  y = Mul (m, e)|t w
scalar|float half = {0.5}, float[2,2] w = $four|m = MatMul (x, w)  y = Mul (m, half)|w
mask|float[2,2] far = {0, -100, 0, -100}, float[2,2] w = $four|m = MatMul (x, w)  y = Add (m, far)|w
data|float[2] mean = {0.5, 0.25}, float[2] s = {0.5, 2}, float[2,2] w = $four|d = Sub (x, mean)  e = Div (d, s)  y = MatMul (e, w)|w
onlyscale|float[2] s = {0.5, 2}|y = Mul (x, s)|s
where_no|float[2,2] w = $four, float[2,2] u = $four|m = MatMul (x, w)  f = MatMul (x, u)  r = Round (f)  y = Add (m, r)|w
END
# Positions that are sines and cosines are computed, those that are learned are not.
model waves '(float[4,2] x) => (float[4,2] y)' "float[4,2] p = {0, 1, 0.841471, 0.540302, 0.909297, -0.416147, 0.14112, -0.989992}, float[2,2] w = $four" \
    'm = MatMul (x, w)  y = Add (m, p)'
trained waves.onnxtxt w
says out "left: p: is a table of sines and cosines"
sed 's/0.841471/0.5/' waves.onnxtxt >learned.onnxtxt
trained learned.onnxtxt "p w"
# The state of a recurrent layer: one that is given is learned, unless its elements are equal.
model state '(float[3,1,1] x) => (float[1,1,2] y)' \
    'float[1,8,1] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[1,8,2] r = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}, float[1,1,2] h = {0, 0}, float[1,1,2] c = {0.5, 1}' \
    'a, y = LSTM <hidden_size = 2> (x, w, r, , , h, c)'
trained state.onnxtxt "w r c"
says out "left: h: is an initial state of equal elements"

# ---- the summary, and the warning about what looks like a constant
expect 0 "$ONX" trainable where_no.onnxtxt -o t.onnx --loss value
says out "1 weight trained (4 values), 1 left"
says out "left: u: has no gradient"
[ ! -s err ] || fail "a warning: $(cat err)"
expect 0 "$ONX" trainable mask.onnxtxt -o t.onnx --loss value
says out "left: far: is a mask"
says err "not trained, although the loss depends on it: far"
expect 0 "$ONX" trainable mask.onnxtxt -o t.onnx --loss value --freeze far
says out "left: far: is frozen"
[ ! -s err ] || fail "a warning about what is frozen: $(cat err)"
trained mask.onnxtxt "far w" --train '*'
expect 0 "$ONX" trainable scalar.onnxtxt -o t.onnx --loss value
says out "left: half: is a single number"
[ ! -s err ] || fail "a warning about a number: $(cat err)"

# ---- exporters list parameters and buffers
cat >marked.textproto <<'END'
ir_version: 10 producer_name: "pytorch" opset_import { version: 18 } graph { name: "g"
  node { op_type: "MatMul" input: "x" input: "w" output: "a" }
  node { op_type: "Mul" input: "a" input: "scale" output: "b" }
  node { op_type: "Add" input: "b" input: "table" output: "c" }
  node { op_type: "Mul" input: "c" input: "val_1" output: "d" }
  node { op_type: "MatMul" input: "d" input: "val_2" output: "y" }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 2 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 2 } } } } }
  initializer { name: "w" data_type: 1 dims: 2 dims: 2 float_data: 1 float_data: 2 float_data: 3 float_data: 4 }
  initializer { name: "scale" data_type: 1 float_data: 1.5 }
  initializer { name: "table" data_type: 1 dims: 2 dims: 2 float_data: 0.5 float_data: 2 float_data: 3 float_data: 4 }
  initializer { name: "val_1" data_type: 1 dims: 2 float_data: 2 float_data: 3 }
  initializer { name: "val_2" data_type: 1 dims: 2 dims: 2 float_data: 7 float_data: 2 float_data: 3 float_data: 4 }
  value_info { name: "w" metadata_props { key: "pkg.torch.export.graph_signature.InputSpec.kind" value: "PARAMETER" } }
  value_info { name: "scale" metadata_props { key: "pkg.torch.export.graph_signature.InputSpec.kind" value: "PARAMETER" } }
  value_info { name: "table" metadata_props { key: "pkg.torch.export.graph_signature.InputSpec.kind" value: "BUFFER" } }
  value_info { name: "val_2" metadata_props { key: "pkg.onnxscript.optimizer.folded_from" value: "['fc.weight', 'val_0']" } }
  metadata_props { key: "pkg.torch.export.ExportedProgram.graph_signature" value: "\n# inputs\np_w: PARAMETER target='w'\np_fc: PARAMETER target='fc.weight'\nb_t: BUFFER target='table' persistent=True\nx: USER_INPUT\n" }
}
END
trained marked.textproto "w scale val_2"
says out "left: table: is a buffer of the exported module"
says out "left: val_1: is a constant of the exporter"
expect 0 "$ONX" trainable marked.textproto -o t.onnx --loss value
[ ! -s err ] || fail "a warning about what the file says: $(cat err)"
trained marked.textproto "w scale table val_2" --train '*2' --train w --train scale --train table

# ---- one weight or several
model scales '(float[2,2] x) => (float[2,2] y)' "float[2,2] w = $four, float[2] one = {1, 1}, float[2] nil = {0, 0}" \
    'a = LayerNormalization (x, one, nil)  b = MatMul (a, w)  c = LayerNormalization (b, one, nil)  y = Add (c, nil)'
trained scales.onnxtxt "w one nil one_own nil_own nil_own_2"
says out "one_own: own: is a weight of its own, that begins as one"
trained scales.onnxtxt "w one nil one_own" --tie nil
trained scales.onnxtxt "w one nil" --tie '*'
expect 2 "$ONX" trainable scales.onnxtxt -o t.onnx --loss value --tie nope
says err "nope"
# An average and a bias that begin with zeros
model average '(float[2,2] x) => (float[2,2] y)' 'float[2] one = {1, 1}, float[2] nil = {0, 0}' 'y = BatchNormalization (x, one, nil, nil, one)'
expect 0 "$ONX" trainable average.onnxtxt -o t.onnx --loss value --keep
says out "2 weights trained (4 values), 2 left"
says out "each is a running average"
# Equal matrices in the same place of different layers, and the weight of an embedding that the head uses.
model layers "$x" "float[2,2] w = $four" 'a = MatMul (x, w)  b = Tanh (a)  y = MatMul (b, w)'
trained layers.onnxtxt "w w_own"
trained layers.onnxtxt "w" --tie w
model again "$x" "float[2,2] w = $four" 'v = Identity (w)  a = MatMul (x, w)  b = Tanh (a)  y = MatMul (b, v)'
trained again.onnxtxt "w"
trained again.onnxtxt "w v" --untie v
model turned "$x" "float[2,2] w = $four" 'a = MatMul (x, w)  b = Tanh (a)  t = Transpose (w)  y = MatMul (b, t)'
trained turned.onnxtxt "w"
trained turned.onnxtxt "w w_own" --untie w
model head '(int64[2] i) => (float[2,3] y)' 'float[3,2] e = {1, 2, 3, 4, 5, 6}, float[2,3] h = {1, 3, 5, 2, 4, 6}' 'a = Gather (e, i)  y = MatMul (a, h)'
trained head.onnxtxt e
says out "h: tie: is the transpose of weight e"
trained head.onnxtxt "e h" --untie h
# Both uses are in the gradient: d mean (x w w^T) / d w for x = (1, 0) and w of ones with one column is 2.
mkdir d
array d/x.npy '1,2' '\000\000\200\077\000\000\000\000'
model both '(float[N,2] x) => (float[N,2] y)' 'float[2,1] w = {1, 1}' 'a = MatMul (x, w)  t = Transpose (w)  y = MatMul (a, t)'
expect 0 "$ONX" trainable both.onnxtxt -o t.onnx --loss value --keep --optimizer sgd --rate 0.1
expect 0 "$ONX" train t.onnx --data d --epochs 1 -o after.onnx
expect 0 "$ONX" show --full after.onnx
says out "w = {0.85, 0.95}"

# ---- modules of the source: the same one is called twice, or two are equal
module() { # FILE MODULE MODULE: two products with the same weight, in these modules
    {
        echo 'ir_version: 10 producer_name: "pytorch" opset_import { version: 18 } graph { name: "g"'
        for i in 1 2; do
            shift
            name=x
            [ $i = 1 ] || name=a
            echo "node { op_type: 'MatMul' input: '$name' input: 'l.0.fc.weight' output: '$([ $i = 1 ] && echo a || echo y)' metadata_props { key: 'pkg.torch.onnx.name_scopes' value: \"['', '$1', 'linear']\" } }"
        done
        echo 'input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 2 } } } } }'
        echo 'output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 2 } } } } }'
        echo 'initializer { name: "l.0.fc.weight" data_type: 1 dims: 2 dims: 2 float_data: 1 float_data: 2 float_data: 3 float_data: 4 }'
        echo 'value_info { name: "l.0.fc.weight" metadata_props { key: "pkg.torch.export.graph_signature.InputSpec.kind" value: "PARAMETER" } } }'
    } >module.textproto
}
module x l.0.fc l.1.fc
trained module.textproto "l.0.fc.weight l.1.fc.weight"
module x l.0.fc l.0.fc
trained module.textproto "l.0.fc.weight"
# TorchScript writes Identity for weights that are equal, and numbers the calls of a module.
script() { # NODE IDENTITY-OUTPUT
    cat >script.textproto <<END
ir_version: 8 producer_name: "pytorch" opset_import { version: 18 } graph { name: "g"
  node { op_type: "Identity" input: "onnx::MatMul_5" output: "$2" }
  node { op_type: "MatMul" name: "/fc/MatMul" input: "x" input: "onnx::MatMul_5" output: "a" }
  node { op_type: "MatMul" name: "$1" input: "a" input: "$2" output: "y" }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 2 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 2 } } } } }
  initializer { name: "onnx::MatMul_5" data_type: 1 dims: 2 dims: 2 float_data: 1 float_data: 2 float_data: 3 float_data: 4 } }
END
}
script /fc_1/MatMul onnx::MatMul_6
trained script.textproto onnx::MatMul_5
script /other/MatMul onnx::MatMul_6
trained script.textproto "onnx::MatMul_5 onnx::MatMul_6"
script /fc_1/MatMul other.weight
trained script.textproto "onnx::MatMul_5 other.weight"

# ---- as many weights as modules, in linear time
{
    echo '<ir_version: 8, opset_import: ["" : 17]> g (float[2,4] x0) => (float[2,4] y) <float[4] w = {1, 1, 1, 1}> {'
    i=0
    while [ $i -lt 5000 ]; do
        echo "[\"/m$i/Mul\"] x$((i + 1)) = Mul (x$i, w)"
        i=$((i + 1))
    done
    echo 'y = Identity (x5000) }'
} >many.onnxtxt
expect 0 "$ONX" trainable many.onnxtxt -o t.onnx --loss mse --dry-run
says out "5000 weights trained"

# ---- patterns and inputs
model fixed '(float[2,2] x, float[2,2] u) => (float[2,2] y)' "float[2,2] w = $four" 'a = MatMul (x, w)  y = MatMul (a, u)'
trained fixed.onnxtxt w --train '*'
trained fixed.onnxtxt "w u" --train '*' --train u
printf '<ir_version: 8, opset_import: ["" : 18]>\ng (float[2,2] x, float[2,2] w1) => (float[2,2] y) { y = MatMul (x, w1) }\n' >bare.onnxtxt
trained bare.onnxtxt w1 --train 'w*'
expect 2 "$ONX" trainable bare.onnxtxt -o t.onnx --loss value --train '*'
done_testing

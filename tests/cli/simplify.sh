# onx simplify: the effect of each pass on small models, parts that are kept, and messages about models with unknown operators.
. "$ONX_SOURCE_DIR/tests/lib.sh"
# simplified IN NODES OPTION...: the result runs as before, is valid, and has that number of nodes.
simplified() {
    model=$1 nodes=$2
    shift 2
    expect 0 "$ONX" simplify "$model" -o small.onnxtxt "$@"
    grep -q "^$nodes nodes of" out || fail "$model: $(cat out), expected $nodes"
    expect 0 "$ONX" check --full small.onnxtxt
}
# alike IN OPTION...: and gives the same outputs.
alike() { expect 0 "$ONX" compare "$1" small.onnxtxt; }

cat >shapes.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[N,S,48] x) => (float[N,12,S,4] y, float[N,S,48] z)
{
  size = Shape (x)
  first = Constant <value_int = 0> ()
  second = Constant <value_int = 1> ()
  n = Gather (size, first)
  s = Gather (size, second)
  axis = Constant <value_ints = [0]> ()
  n1 = Unsqueeze (n, axis)
  s1 = Unsqueeze (s, axis)
  heads = Constant <value_ints = [12, 4]> ()
  shape = Concat <axis = 0> (n1, s1, heads)
  r = Reshape (x, shape)
  y = Transpose <perm = [0, 2, 1, 3]> (r)
  i = Identity (x)
  d = Dropout (i)
  c = Cast <to = 1> (d)
  one = Constant <value_float = 1.0> ()
  m = Mul (c, one)
  z = Relu (m)
}
END
simplified shapes.onnxtxt 3
alike shapes.onnxtxt
grep -q "{0, 0, 12, 4}" small.onnxtxt || fail "the shape is no constant: $(cat small.onnxtxt)"
simplified shapes.onnxtxt 3 --dim N=2 --dim S=3
grep -q "g (float\[2, 3, 48\] x) => (float\[2, 12, 3, 4\] y" small.onnxtxt || fail "sizes are not fixed: $(cat small.onnxtxt)"
simplified shapes.onnxtxt 3 --input-shape x=2x3x48
grep -q "float\[2, 12, 3, 4\] y" small.onnxtxt || fail "a shape is not fixed: $(cat small.onnxtxt)"
simplified shapes.onnxtxt 4 --keep r --keep i
grep -q " i = Identity" small.onnxtxt || fail "a value that should stay is gone"
expect 0 "$ONX" simplify shapes.onnxtxt --dry-run
grep -q "(Identity): Identity: removed" out || fail "a change is not told: $(cat out)"
simplified shapes.onnxtxt 13 --passes identity
expect 2 "$ONX" simplify shapes.onnxtxt -o none.onnx --passes identity,nothing
says err "no pass is called nothing"
expect 2 "$ONX" simplify shapes.onnxtxt -o none.onnx --input-shape w=1
says err "no input is called w"
expect 1 "$ONX" simplify shapes.onnxtxt -o none.onnx --input-shape x=1x2
says err "input x has 3 dimensions, not 2"
[ ! -e none.onnx ] || fail "a model was written"

# x + 0.0 is not x where x is -0.0; x - 0.0 is.
cat >zeros.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y, float[2] z) <float zero = {0}> { a = Add (x, zero)  y = Neg (a)  b = Sub (x, zero)  z = Neg (b) }
END
simplified zeros.onnxtxt 3
alike zeros.onnxtxt

cat >convolution.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[N,2,8,8] x) => (float[N,4,H,W] y, float[N,4,H,W] w)
<float[4,2,3,3] k = {1,2,3,4,5,6,7,8,9,-1,-2,-3,-4,-5,-6,-7,-8,-9,1,2,3,4,5,6,7,8,9,-1,-2,-3,-4,-5,-6,-7,-8,-9,1,2,3,4,5,6,7,8,9,-1,-2,-3,-4,-5,-6,-7,-8,-9,1,2,3,4,5,6,7,8,9,-1,-2,-3,-4,-5,-6,-7,-8,-9},
 float[4] scale = {1, 2, 3, 4}, float[4] shift = {0, 1, 2, 3}, float[4] mean = {0.5, 0, -1, 2}, float[4] variance = {1, 2, 3, 4},
 float[1,4,1,1] factor = {2, 3, 4, 5}, int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}>
{
  p = Pad (x, pads)
  c = Conv (p, k)
  b = BatchNormalization (c, scale, shift, mean, variance)
  f = Mul (b, factor)
  y = Add (f, factor)
  w = Relu (y)
}
END
simplified convolution.onnxtxt 2
alike convolution.onnxtxt
simplified convolution.onnxtxt 5 --exact
alike convolution.onnxtxt

cat >control.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[3] x) => (float[3] y, float[3] z, float[3] v, float[3] w)
<bool yes = {1}, int64 once = {1}, int64 never = {0}>
{
  y = If (yes) <then_branch = t () => (r) { e = Exp (x)  r = Neg (e) }, else_branch = f () => (r) { r = Abs (x) }>
  u = Exp (y)
  z = If (yes) <then_branch = t () => (x1) { e = Exp (u)  x1 = Identity (e) }, else_branch = f () => (x2) { x2 = Abs (x) }>
  v = Loop (once, , x) <body = b (i, c, a) => (c1, a1) { c1 = Identity (c)  fi = Cast <to = 1> (i)  a1 = Add (a, fi) }>
  w = Loop (never, yes, x) <body = b (i, c, a) => (c1, a1) { c1 = Identity (c)  a1 = Add (a, a) }>
}
END
expect 0 "$ONX" simplify control.onnxtxt -o small.onnxtxt
expect 0 "$ONX" check --full small.onnxtxt
grep -q "If\|Loop" small.onnxtxt && fail "control flow is left: $(cat small.onnxtxt)"
alike control.onnxtxt

cat >repeats.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[3] x) => (float[3] y, float[3] z, float[3] r)
{
  a = Exp (x)  b = Exp (x)  y = Add (a, b)  z = Mul (b, a)
  u = RandomUniformLike (x)  v = RandomUniformLike (x)  r = Sub (u, v)
}
END
simplified repeats.onnxtxt 6

# Functions that nothing calls and imports that nothing needs go.
cat >calls.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21, "my" : 1, "other" : 3]>
g (float[2,3] x) => (float[2,3] y) { i = Identity (x)  y = my.f (i) }
<domain: "my", opset_import: ["" : 21]>
f (v) => (o) { a = Identity (v)  b = Constant <value_float = 2.0> ()  c = Constant <value_float = 2.0> ()  d = Mul (a, b)  o = Mul (d, c) }
<domain: "my", opset_import: ["" : 21]>
unused (v) => (o) { o = Neg (v) }
END
expect 0 "$ONX" simplify calls.onnxtxt -o small.onnxtxt
alike calls.onnxtxt
grep -q "other\|unused\|Identity" small.onnxtxt && fail "what nothing needs is left: $(cat small.onnxtxt)"
cat >large.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[N,4] x) => (float[N,400] y) <int64[2] s = {4, 400}> { w = ConstantOfShape (s)  i = Identity (x)  y = MatMul (i, w) }
END
simplified large.onnxtxt 2
expect 0 "$ONX" simplify large.onnxtxt -o small.onnxtxt
says err 'note: 1 value of 6400 bytes depends on constants only, but would make the model larger; values are computed up to 1024 bytes'
simplified large.onnxtxt 1 --fold-limit 1M
expect 0 "$ONX" simplify large.onnxtxt -o small.onnxtxt --fold-limit 1M
grep -q note err && fail "a note about what is computed: $(cat err)"
alike large.onnxtxt

# Weights that two convolutions share become two only where the model may grow by them.
# many NUMBER: 64 of it.
many() { yes -- "$1" | head -n 64 | paste -s -d , -; }
cat >shared.onnxtxt <<END
<ir_version: 9, opset_import: ["" : 17]>
g (float[1,64,4,4] x) => (float[1,64,4,4] y, float[1,64,4,4] z)
<int64[4] s = {64, 64, 1, 1}, float[64] one = {$(many 1.5)}, float[64] shift = {$(many 2)}, float[64] mean = {$(many 0.25)},
 float[64] other = {$(many -1)}, float[64] variance = {$(many 3)}>
{
  k = ConstantOfShape <value = float[1] {0.5}> (s)
  c = Conv (x, k)  y = BatchNormalization (c, one, shift, mean, variance)
  d = Conv (x, k)  e = Neg (d)  f = Conv (e, k)  z = BatchNormalization (f, one, other, mean, variance)
}
END
simplified shared.onnxtxt 6
alike shared.onnxtxt
simplified shared.onnxtxt 4 --fold-limit 1M
alike shared.onnxtxt

# Before IR version 4 initializers are inputs, and meant as constants: those that go are inputs that go, and those that
# come, inputs that come; in subgraphs they would be operands of the body.
cat >old.onnxtxt <<'END'
<ir_version: 3, opset_import: ["" : 9]>
g (float[2] x, float[2] a, float[2] b, bool c) => (float[2] y, float[2] z) <float[2] a = {1, 2}, float[2] b = {3, 4}>
{
  s = Add (a, b)  u = Mul (x, s)  k = Constant <value = float[2] {5, 6}> ()  y = Add (u, k)
  z = If (c) <then_branch = t () => (float[2] r) { q = Constant <value = float[2] {7, 8}> ()  r = Sub (x, q) }, else_branch = f () => (float[2] w) { w = Neg (x) }>
}
END
simplified old.onnxtxt 6
alike old.onnxtxt
tr -d ' \n' <small.onnxtxt | grep -q "g(float\[2\]x,boolc,float\[2\]s,float\[2\]k)=>" ||
    fail "not the inputs: $(cat small.onnxtxt)"
simplified old.onnxtxt 7 --keep a
tr -d ' \n' <small.onnxtxt | grep -q "float\[2\]a={1,2},float\[2\]b={3,4},boolc" ||
    fail "what is kept is no input: $(cat small.onnxtxt)"

# What quantization annotations and training name stays under its name; what nothing names does not.
cat >trained.textproto <<'END'
ir_version: 8 opset_import { version: 17 } graph { name: "g"
node { op_type: "Identity" input: "x" output: "i" }
node { op_type: "Add" input: "i" input: "w" output: "a" }
node { op_type: "Identity" input: "a" output: "y" }
input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
initializer { dims: 4 data_type: 1 name: "w" float_data: 0 float_data: 0 float_data: 0 float_data: 0 }
initializer { dims: 1 data_type: 1 name: "q" float_data: 0 }
initializer { dims: 1 data_type: 1 name: "nobody" float_data: 0 }
quantization_annotation { tensor_name: "a" quant_parameter_tensor_names { key: "SCALE_TENSOR" value: "q" } } }
training_info { algorithm { name: "t" node { op_type: "Identity" input: "y" output: "k" }
node { op_type: "Exp" input: "k" output: "w2" } output { name: "w2" } } update_binding { key: "w" value: "w2" } }
END
expect 0 "$ONX" simplify trained.textproto -o small.textproto
grep -q '^4 nodes of 5' out || fail "$(cat out)"
for name in '"a"' '"w"' '"q"' '"w2"'; do
    grep -q "name: $name\|output: $name" small.textproto || fail "$name is gone"
done
grep -q nobody small.textproto && fail "an initializer that nothing names is left"
# Weights in files stay there.
expect 0 "$ONX" convert convolution.onnxtxt outside.onnx --external outside.data --external-threshold 100
expect 0 "$ONX" simplify outside.onnx -o small.onnx --exact
"$ONX" show --format json small.onnx | grep -q outside.data || fail "weights are not in their file any more"
expect 0 "$ONX" compare outside.onnx small.onnx

# What is not understood stays, and is said: values made twice, a cycle, a function that calls itself, a version from
# the future.
cat >twice.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) { a = Identity (x)  a = Neg (x)  y = Exp (a) }
END
expect 0 "$ONX" simplify twice.onnxtxt -o same.onnxtxt
says err "a is defined more than once"
cat >cycle.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) { a = Add (x, b)  b = Identity (a)  y = Exp (b) }
END
expect 0 "$ONX" simplify cycle.onnxtxt -o same.onnxtxt
says err "there is a cycle, so the graph is not changed: a needs b, which needs a"
cat >unsorted.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) { y = Exp (a)  a = Identity (x) }
END
expect 0 "$ONX" simplify unsorted.onnxtxt -o same.onnxtxt
says err "graph: warning: a is used before it is defined (onx convert --sort sorts the nodes)"
cat >itself.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
g (float[2] x) => (float[2] y) { i = Identity (x)  y = my.f (i) }
<domain: "my", opset_import: ["" : 21, "my" : 1]>
f (v) => (o) { i = Identity (v)  o = my.f (i) }
END
expect 0 "$ONX" simplify itself.onnxtxt -o same.onnxtxt
grep -q Identity same.onnxtxt && fail "nodes are left that need no types: $(cat same.onnxtxt)"
sed 's/: 17/: 999/' repeats.onnxtxt >future.onnxtxt
expect 0 "$ONX" simplify future.onnxtxt -o same.onnxtxt
# A subgraph that has a name of the graph around: not valid, and not mixed up.
cat >shadow.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[2] x, bool c) => (float[2] y)
{
  a = Exp (x)
  b = Identity (a)
  y = If (c) <then_branch = t () => (r) { a = Neg (x)  r = Add (a, b) }, else_branch = f () => (r) { r = Abs (b) }>
}
END
expect 0 "$ONX" simplify shadow.onnxtxt -o same.onnxtxt
grep -q "Add(a_2, a)" same.onnxtxt || fail "names are mixed up: $(cat same.onnxtxt)"

# Without numbers the order is the reverse one, as for who leaves perm out.
cat >perm.onnxtxt <<'END'
<ir_version: 9, opset_import: ["" : 17]>
g (float[2,3] x) => (float[3,2] y, float[3,2] z)
{
  y = Transpose <perm: ints = []> (x)
  t = Transpose <perm: ints = []> (x)
  u = Transpose <perm: ints = []> (t)
  z = Transpose <perm = [1, 0]> (u)
}
END
simplified perm.onnxtxt 2
alike perm.onnxtxt

# Zeros around an average that counts them are its own; windows that do not, or reach beyond them, stay as they are.
cat >average.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,2,5,6] x) => (float[1,2,5,6] a, float[1,2,6,7] b, float[1,2,3,4] c) <int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}> {
  xa = Pad (x, p)
  a = AveragePool <kernel_shape = [3, 3]> (xa)
  xb = Pad (x, p)
  b = AveragePool <kernel_shape = [4, 4], pads = [1, 1, 1, 1]> (xb)
  xc = Pad (x, p)
  c = AveragePool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1> (xc)
}
END
expect 0 "$ONX" simplify average.onnxtxt -o out.onnxtxt
[ "$(grep -c 'count_include_pad = 1' out.onnxtxt)" -eq 1 ] || fail "not the one Pad went: $(cat out.onnxtxt)"
expect 0 "$ONX" compare average.onnxtxt out.onnxtxt

# Defaults of inputs are variables, unless the caller asks for constants.
cat >defaults.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[6] x, int64[2] size = {2, 3}, float[1] k = {2}) => (float[?,?] y) { r = Reshape (x, size) y = Mul (r, k) }
END
expect 0 "$ONX" simplify defaults.onnxtxt -o out.onnxtxt
expect 0 "$ONX" run out.onnxtxt -i x='[1,2,3,4,5,6]' -i size='[3,2]' --full
says out 'float[3,2]'
expect 0 "$ONX" simplify --freeze-defaults defaults.onnxtxt -o out.onnxtxt
says err '2 inputs with a default became constants, which callers cannot set any more: size, k'
expect 2 "$ONX" run out.onnxtxt -i x='[1,2,3,4,5,6]' -i size='[3,2]'
expect 0 "$ONX" run out.onnxtxt -i x='[1,2,3,4,5,6]'
says out 'float[2,3]'

# Sizes of one name need not be equal.
cat >names.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[N] x, float[N] z) => (float[N] y) { s = Shape (x) e = Expand (z, s) y = Add (e, z) }
END
expect 0 "$ONX" simplify names.onnxtxt -o out.onnxtxt
expect 0 "$ONX" run out.onnxtxt -i x='[1,1,1]' -i z='[2]' --full
says out 'float[3]'

done_testing

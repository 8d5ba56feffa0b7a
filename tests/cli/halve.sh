# onx precision: values and weights in another type, parts that are not converted, the number of Casts, and messages.
. "$ONX_SOURCE_DIR/tests/lib.sh"

# halved MODEL TYPE OPTION...: the result is valid, and gives the same results within the precision of the type.
halved() {
    model=$1 type=$2
    shift 2
    expect 0 "$ONX" precision "$model" -o half.onnx --to "$type" "$@"
    cp out said
    cp err complaint
    expect 0 "$ONX" check --full half.onnx
    case " $* " in
    *" --keep-io "* | *" --only "*) expect 0 "$ONX" compare "$model" half.onnx --rtol 0.02 --atol 0.01 ;;
    *) # inputs of another type: the command itself has to find that the error is small
        expect 0 "$ONX" precision "$model" -o measured.onnx --to "$type" --samples 2 --max-error 0.01 "$@"
        says out "error "
        says out ", 0 nodes kept"
        ;;
    esac
    "$ONX" show half.onnx >half.txt
}
casts() { # COUNT
    count=$(grep -c 'Cast *<' half.txt)
    [ "$count" -eq "$1" ] || { fail "$count Casts, not $1"; cat half.txt; }
}

cat >plain.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 22]>
g (float[2, 3] x) => (float[2, 4] y)
<float[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[4] b = {0.5, 0.25, 1, 2}> {
  m = MatMul(x, w)
  a = Add(m, b)
  y = Relu(a)
}
END
halved plain.onnxtxt float16 --keep-io
casts 2
says half.txt "float16[3, 4] w"
says half.txt "(float[2, 3] x) => (float[2, 4] y)"
for type in float16 bfloat16 double; do
    halved plain.onnxtxt $type
    casts 0
    says half.txt "$type[2, 4] y"
done
# and back: nothing is left of it
expect 0 "$ONX" precision half.onnx -o back.onnx --to float32
expect 0 "$ONX" compare plain.onnxtxt back.onnx --rtol 0 --atol 0
halved plain.onnxtxt float16 --block-op Add
casts 2 # the input of Add and what comes out: its constant stays
halved plain.onnxtxt float16 --only m
says half.txt "float[2, 4] y"
casts 2
halved plain.onnxtxt float16 --except '*m*' --except 'a'
halved plain.onnxtxt float16 --explain
says said "computes in float16"
expect 0 "$ONX" precision plain.onnxtxt --to float16 --dry-run
says out "computes in float16"

# one Cast for each value and type, whoever wants it
cat >shared.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 22]>
g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z)
{
  a = Sigmoid(x)
  b = Exp(a)
  c = Exp(a)
  y = Tanh(b)
  z = Tanh(c)
}
END
halved shared.onnxtxt float16 --block-op Exp
casts 3
# what passes data on stays between operators that stay, and a Cast to the type goes
cat >passing.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 22]>
g (float[2, 3] x, float16[2, 3] h) => (float[6] y, float[2, 3] z)
<int64[1] shape = {-1}> {
  a = Exp(x)
  r = Reshape(a, shape)
  t = Identity(r)
  y = Exp(t)
  f = Cast<to = 1>(h)
  z = Relu(f)
}
END
halved passing.onnxtxt float16 --block-op Exp --keep-io
casts 1
halved passing.onnxtxt float16
casts 0

# weights beyond the range, constants that would be zero, weights that both types need
cat >range.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 22]>
g (float[3] x) => (float[3] y, float[3] z)
<float[3] low = {-1e30, -2, 3e-9}, float tiny = {1e-12}> {
  a = Max(x, low)
  b = Add(a, tiny)
  y = Relu(b)
  c = Exp(low)
  z = Add(c, x)
}
END
expect 0 "$ONX" precision range.onnxtxt -o half.onnx --to float16 --explain
says err '1 of 3 elements are beyond the range of float16, and become 65504'
says out "become zero"
says out "become its smallest number"
says err 'note: of 4 elements of weights 1 are too small for float16 and become zero, and 0 are so small that they lose digits'
expect 0 "$ONX" check --full half.onnx
halved range.onnxtxt float16 --block-op Exp
says half.txt "float[3] low"
sed 's/-1e30, -2, 3e-9/1e-6, -2, 1e-5/' range.onnxtxt >small.onnxtxt
expect 0 "$ONX" precision small.onnxtxt -o half.onnx --to float16
says err '0 are too small for float16 and become zero, and 2 are so small that they lose digits'
expect 0 "$ONX" precision small.onnxtxt -o half.onnx --to bfloat16
grep -q 'lose digits' err && fail 'nothing is small for bfloat16'

# control flow, sequences, optionals, functions, attributes with tensors and types
cat >control.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 22, "my": 1]>
g (float[2] x, bool c) => (float[2] y, float[?, 2] scan, float[2] s, float[2] q, float[2] f, float[4] k)
<int64 n = {3}, bool go = {1}, float[2] w = {0.5, 0.25}, int64 zero = {0}, int64[1] four = {4}> {
  y = If(c)<then_branch = a () => (float[2] p) { p = Add(x, w) }, else_branch = b () => (float[2] r) { r = Exp(x) }>
  last, scan = Loop(n, go, x)<body = l (int64 i, bool cc, float[2] v) => (bool co, float[2] vo, float[2] o) {
    co = Identity(cc)
    vo = Mul(v, w)
    o = Exp(vo)
  }>
  seq = SequenceConstruct(x, w)
  more = SequenceInsert(seq, last)
  s = SequenceAt(more, zero)
  opt = Optional(x)
  q = OptionalGetElement(opt)
  f = my.twice(x)
  filled = ConstantOfShape<value = float[1] {1.5}>(four)
  one = Constant<value_float = 0.125>()
  k = Mul(filled, one)
}
<domain: "my", opset_import: ["": 22]>
twice (a) => (b) { b = Add(a, a) }
END
halved control.onnxtxt float16
halved control.onnxtxt float16 --keep-io
halved control.onnxtxt float16 --block-op Exp
halved control.onnxtxt float16 --block-op Sequence* --keep-io
halved control.onnxtxt bfloat16 --keep-io
halved control.onnxtxt double --keep-io

# sizes stay; operators that do not take the type stay
cat >sizes.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g (float[5001] x) => (float[?] y)
<float half = {0.5}, int64[1] z = {0}, int64[1] ax = {0}> {
  s = Shape(x)
  f = Cast<to = 1>(s)
  h = Mul(f, half)
  i = Cast<to = 7>(h)
  y = Slice(x, z, i, ax)
}
END
halved sizes.onnxtxt float16
cat >old.onnxtxt <<'END'
<ir_version: 7, opset_import: ["": 12]>
g (float[2] x) => (float[2] y) { y = Exp(x) }
END
halved old.onnxtxt float16
expect 0 "$ONX" precision old.onnxtxt -o new.onnxtxt --to bfloat16
says new.onnxtxt '"": 13'
says new.onnxtxt 'bfloat16'
expect 0 "$ONX" check --full new.onnxtxt
cat >conv.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g (float[1, 1, 4, 4] x) => (float[1, 1, 2, 2] y) <float[1, 1, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>
{ c = Conv(x, w)  y = Relu(c) }
END
halved conv.onnxtxt bfloat16 # version 21 of Conv does not take it
says half.txt "float[1, 1, 3, 3] w"

# inputs with initializers, weights that training refers to, sparse ones
cat >inputs.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 22]>
g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Mul(x, w) }
END
halved inputs.onnxtxt float16
halved inputs.onnxtxt float16 --keep-io

# data: numbers that float16 cannot hold, and an error that is not to be passed
cat >large.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 22]>
g (float[4] x) => (float[4] y)
<float big = {30000}, float down = {0.00001}> {
  a = Mul(x, big)
  b = Mul(a, x)
  c = Mul(b, down)
  y = Tanh(c)
}
END
expect 0 "$ONX" precision large.onnxtxt -o half.onnx --to float16 --keep-io --data x=[3,4,5,6]
says err '"a" has elements beyond the range of float16: the nodes around it keep their type'
! grep -q "too small" err || fail "numbers that are left are said to vanish"
says out "error "
expect 0 "$ONX" compare large.onnxtxt half.onnx -i x=[3,4,5,6] --rtol 0.01
# ... and numbers of which it leaves nothing
sed 's/30000/0.00000001/' large.onnxtxt >tiny.onnxtxt
expect 0 "$ONX" precision tiny.onnxtxt -o half.onnx --to float16 --keep-io --data x=[0.1,0.2,0.3,0.4]
says err '"a" and others: all elements, of at most 4e-09, are too small for float16 and become zero; bfloat16 can represent them'
expect 0 "$ONX" precision plain.onnxtxt -o half.onnx --to float16 --keep-io --data x=[[1.1,2.2,3.3],[4.4,5.5,6.6]] --max-error 0
says out "error 0,"
expect 0 "$ONX" compare plain.onnxtxt half.onnx --rtol 0 --atol 0
mkdir -p sets/test_data_set_0 sets/test_data_set_1 none
"$ONX" run plain.onnxtxt --random -o sets/test_data_set_0 >/dev/null 2>&1
expect 2 "$ONX" precision plain.onnxtxt -o half.onnx --to float16 --data none
says err "no sample"

# external data, in and out
expect 0 "$ONX" convert plain.onnxtxt away.onnx --external away.data --external-threshold 1
halved away.onnx float16

# what is wrong is said
expect 2 "$ONX" precision plain.onnxtxt -o none.onnx
says err "--to"
expect 2 "$ONX" precision plain.onnxtxt --to float16
expect 2 "$ONX" precision plain.onnxtxt -o none.onnx --to float16 --only 'nothing*' --block-op Nothing
says err "no node has a name like nothing*"
says err "no node has an operator like Nothing"
expect 2 "$ONX" precision plain.onnxtxt -o none.onnx --to int8
[ ! -e none.onnx ] || fail "a model was written"
# an operator that nobody knows, and values whose types nobody knows, stay
cat >unknown.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 22, "other": 1]>
g (float[2] x) => (float[2] y) {
  a = Relu(x)
  b = other.Thing(a)
  c = Relu(b)
  y = Identity(c)
}
END
expect 0 "$ONX" precision unknown.onnxtxt -o half.onnx --to float16
"$ONX" show half.onnx >half.txt
casts 1 # what other.Thing takes; the type that y declares is a claim, so y and the nodes before it stay
says half.txt "float[2] y"
# Values that vanish in the middle: what comes behind shows what it adds only once they are kept.
awk 'BEGIN {
    print "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[4,8] x) => (float[4,8] h16)\n<"
    for (i = 1; i <= 16; i++) {
        printf "%s float[8,8] w%d = {", (i > 1 ? "," : ""), i
        for (k = 0; k < 64; k++)
            printf "%s%.6f", (k ? ", " : ""), (i > 6 ? 0.004 : 0.3) * (1 + 0.37 * ((k * 7 + i * 5) % 11)) / 3
        print "}"
    }
    print ">\n{"
    for (i = 1; i <= 16; i++)
        printf "  h%d = MatMul (%s, w%d)\n", i, (i > 1 ? "h" (i - 1) : "x"), i
    print "}"
}' >vanish.onnxtxt
expect 0 "$ONX" precision vanish.onnxtxt -o out.onnx --to float16 --keep-io --samples 2
says err "too small for float16"
expect 0 "$ONX" precision vanish.onnxtxt -o out.onnx --to float16 --keep-io --samples 2 --max-error 0.01
expect 0 "$ONX" convert out.onnx out.onnxtxt
[ "$(grep -c '^ *float16\[8, *8\] w' out.onnxtxt)" -ge 5 ] || fail "layers that lose nothing were kept: $(cat out)"
awk 'BEGIN { for (i = 0; i < 32; i++) printf "%s%s", (i ? "," : "{\"dims\": [4, 8], \"data_type\": 1, \"float_data\": ["), (i ? i : "\"NaN\""); print "]}" }' >nan.json
expect 0 "$ONX" precision vanish.onnxtxt -o out.onnx --to bfloat16 --data x=nan.json
says err '"x" has elements in the data that are not finite'
# Boxes of classes that an offset keeps apart, 16 numbers apart in float16 there; ranks of what Softmax leaves; a grid;
# angles of positions: what is worked out for them stays, unless --all says otherwise.
cat >boxes.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g (float[4, 4] b, float[4, 8] f, int64[1, 3] position) => (int64[n, 3] y, float[k, 4] taken, float[4, 2] top, float[2, 3] turned)
<float[8, 8] w = {0.9,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,0.3,0.4,0.5,0.6,0.7,0.8,0.9,0.1,
 0.4,0.5,0.6,0.7,0.8,0.9,0.1,0.2,0.5,0.6,0.7,0.8,0.9,0.1,0.2,0.3,0.6,0.7,0.8,0.9,0.1,0.2,0.3,0.4,0.7,0.8,0.9,0.1,0.2,0.3,0.4,0.5},
 float[4, 1] offset = {20000, 20000, 20000, 20000}, int64[1] most = {10}, float[1] overlap = {0.5}, float[1] least = {0},
 int64[1] axis = {0}, float[1, 1, 4] scores = {0.9, 0.8, 0.7, 0.6}, int64[1] two = {2}, float[2, 1] frequency = {1, 0.5},
 int64[1] third = {2}, int64[1] fourth = {3}, int64[1] last = {1}> {
  m = MatMul(f, w)
  s = Softmax(m)
  top, which = TopK(s, two)
  first, where = TopK(m, two)
  r = Relu(b)
  o = Add(r, offset)
  u = Unsqueeze(o, axis)
  y = NonMaxSuppression(u, scores, most, overlap, least)
  row = Slice(y, third, fourth, last)
  flat = Squeeze(row, last)
  taken = Gather(o, flat)
  p = Cast<to = 1>(position)
  angle = MatMul(frequency, p)
  turned = Sin(angle)
}
END
given="-i b=[[0,0,10,10],[0,6,10,16],[0,12,10,22],[0,18,10,28]] -i position=[[4095,2049,1023]] --random"
for type in float16 bfloat16; do
    expect 0 "$ONX" precision boxes.onnxtxt -o half.onnx --to $type --keep-io --explain
    says out 'node[1] (Softmax): exact: keeps its type'
    says out 'node[5] (Add): exact'
    says out 'node[11] (Cast): exact'
    says out 'node[12] (MatMul): exact'
    says out 'node[13] (Sin): exact'
    grep -q 'node\[0\] (MatMul): exact' out && fail "a product stays"
    grep -q 'node\[3\] (TopK): exact' out && fail "what ranks a product stays"
    says err 'note: 8 nodes that compute positions, ranks or angles keep their type (the first is "s")'
    expect 0 "$ONX" check --full half.onnx
    # shellcheck disable=SC2086 # words of their own
    expect 0 "$ONX" compare boxes.onnxtxt half.onnx $given --rtol 0.01 --atol 0.01
    expect 0 "$ONX" precision boxes.onnxtxt -o half.onnx --to $type --keep-io --all
    # shellcheck disable=SC2086
    expect 1 "$ONX" compare boxes.onnxtxt half.onnx $given --rtol 0.01 --atol 0.01
    [ $type = bfloat16 ] || says out "y  deviates"
    says out "turned  deviates"
done
cat >regions.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 22]>
g (float[1, 1, 8, 8] x, float[2, 4] rois, float[1, 2, 2, 2] flow) => (float[2, 1, 1, 1] y, float[1, 1, 2, 2] z)
<int64[2] batch = {0, 0}, float half = {0.5}> {
  a = Relu(x)
  y = RoiAlign<output_height = 1, output_width = 1>(a, rois, batch)
  b = Sigmoid(x)
  grid = Mul(flow, half)
  z = GridSample(b, grid)
}
END
halved regions.onnxtxt float16 --keep-io --explain
says said '(RoiAlign): exact'
says said '(Mul): exact'
grep -q 'Sigmoid): exact' said && fail "an image of GridSample stays"
grep -q 'Relu): exact' said && fail "an image of RoiAlign stays"
# values in the bodies of control flow and in functions are kept one by one
cat >inside.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21, "local": 1]>
g (float[2, 3] x, bool c, int64 n) => (float[2, 3] y, float[2, 3] z, float[2, 2, 3] s, float[2, 3] k)
<float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[2, 2, 3] q = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[3, 3] u = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}> {
  y = If (c) <
    then_branch = t () => (float[2, 3] a) {
      big = Constant <value = float {1048576.0}> ()
      m = MatMul (x, w)
      ym = Mul (m, big)
      g1 = local.Up (ym)
      l = Log (g1)
      a = Add (l, m)
    },
    else_branch = e () => (float[2, 3] b) { b = MatMul (x, w) }>
  go = Constant <value = bool {1}> ()
  z = Loop (n, go, x) <body = body (int64 i, bool cc, float[2, 3] st) => (bool co, float[2, 3] so) {
    co = Identity (cc)
    h = Constant <value = float {300.0}> ()
    p = MatMul (st, w)
    so = Mul (p, h)
  }>
  s = Scan (q) <num_scan_inputs = 1, body = sb (float[2, 3] one) => (float[2, 3] o) {
    v = MatMul (one, w)
    o = Relu (v)
  }>
  k = MatMul (x, u)
}
<domain: "local", opset_import: ["": 21]>
Up (a) => (b) { d = Abs (a) one = Constant <value = float {1.0}> () b = Add (d, one) }
END
expect 0 "$ONX" precision inside.onnxtxt -o half.onnx --to float16 --keep-io --samples 2 --range n=3:3 --range c=1:1 --range x=1:2
says err '"ym" has elements beyond the range of float16: the nodes around it keep their type'
says err '"so" has elements beyond the range of float16: the nodes around it keep their type'
expect 0 "$ONX" check --full half.onnx
"$ONX" show half.onnx >half.txt
says half.txt 'v = MatMul(one, w_float16' # the Scan is converted,
grep -q '(float\[2, 3\] one)' half.txt && fail 'a Scan without large values is kept'
says half.txt 'm = MatMul(x_float16, w_float16)' # and most of the branch,
says half.txt 'so = Mul(p, h)' # the Loop is not
expect 0 "$ONX" compare inside.onnxtxt half.onnx --rtol 0.02 --atol 0.01 -i 'x=[[1,2,1],[1,1,2]]' -i c=true -i n=3
# and in the body of a SequenceMap
cat >mapped.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x, float[2, 3] z) => (float[2, 3] y, float[2, 3] v) <float[3] c = {1, 2, 60000}, float[3] d = {0.5, 0.25, 30}> {
  s = SequenceConstruct (x, z)
  r, q = SequenceMap <body = body (float[2, 3] e) => (float[2, 3] f, float[2, 3] k) {
    [first] m = Mul (e, d)  [second] big = Mul (m, c)  f = Tanh (big)  k = Neg (m) }> (s)
  zero = Constant <value_int = 0> ()  y = SequenceAt (r, zero)  v = SequenceAt (q, zero)
}
END
expect 0 "$ONX" precision mapped.onnxtxt -o half.onnxtxt --to float16 --keep-io --samples 2 --max-error 0.01
says err '"big" has elements beyond the range of float16: the nodes around it keep their type'
says half.onnxtxt 'big = Mul(m_float, c)'
says half.onnxtxt 'm = Mul(e, d)'
expect 0 "$ONX" compare mapped.onnxtxt half.onnxtxt --random --rtol 0.02 --atol 0.01
expect 0 "$ONX" precision mapped.onnxtxt -o half.onnxtxt --to float16 --keep-io --except first
says half.onnxtxt 'm = Mul(e_float, d)'
sed 's/m = Mul (e, d)/m = MatMul (e, d)/; s/float\[3\] d = {0.5, 0.25, 30}/float[3, 3] d = {1, 2, 3, 4, 5, 6, 7, 8, 9}/' mapped.onnxtxt >product.onnxtxt
expect 0 "$ONX" quantize product.onnxtxt -o bytes.onnxtxt --mode static --samples 2
says bytes.onnxtxt 'e_quantized = QuantizeLinear(e, e_scale, e_zero_point)'
expect 0 "$ONX" check --full bytes.onnxtxt
# an error of one node keeps that node, and not the If around it
cat >cancel.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g (float[2, 3] x) => (float[2, 3] y)
<bool c = {1}, float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
  y = If (c) <
    then_branch = t () => (float[2, 3] a) {
      odd = Constant <value = float {2049.0}> ()
      even = Constant <value = float {2048.0}> ()
      m = MatMul (x, w)
      p = Mul (m, odd)
      q = Mul (m, even)
      d = Sub (p, q)
      a = Relu (d)
    },
    else_branch = e () => (float[2, 3] b) { b = MatMul (x, w) }>
}
END
expect 0 "$ONX" precision cancel.onnxtxt -o half.onnx --to float16 --keep-io --samples 2 --range x=0:1
expect 0 "$ONX" precision cancel.onnxtxt -o half.onnx --to float16 --keep-io --samples 2 --range x=0:1 --max-error 0.02
"$ONX" show half.onnx >half.txt
says half.txt 'b = MatMul(x_float16, w'
says half.txt 'odd = Constant<value = float {2049}>'
expect 0 "$ONX" compare cancel.onnxtxt half.onnx --rtol 0.05 --atol 0.05 -i 'x=[[0.1,0.2,0.1],[0.3,0.1,0.2]]'

# a warning that is the same at the same place is printed once, with a count
cat >twice.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g (float[2] x, bool c) => (float[2] y) {
  y = If (c) <
    then_branch = t () => (float[2] a) <float w = {1e9}> { a = Add (x, w) },
    else_branch = e () => (float[2] b) <float w = {1e9}> { b = Mul (x, w) }>
}
END
expect 0 "$ONX" precision twice.onnxtxt -o half.onnx --to float16
says err 'initializer "w": warning: 1 of 1 elements are beyond the range of float16, and become 65504 (2 times)'
[ "$(grep -c 65504 err)" -eq 1 ] || fail "a warning is repeated"

done_testing

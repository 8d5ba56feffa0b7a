# onx trainable: adds training information to models. Every loss and optimizer follows its formula.
. "$ONX_SOURCE_DIR/tests/lib.sh"
array() { # FILE TYPE SHAPE PRINTF-BYTES
    printf '\223NUMPY\001\000\166\000' >"$1"
    printf '%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': ($3)}" >>"$1"
    # shellcheck disable=SC2059
    printf "$4" >>"$1"
}
about() { # WHAT NAME VALUE TOLERANCE: the first number of a value that run has printed
    awk -v name="$2" -v want="$3" -v by="$4" '$1 == name { d = $3 - want; found = 1; if (d < 0) d = -d; if (!(d <= by)) exit 1 }
        END { if (!found) exit 1 }' out || fail "$1: $2 is not $3: $(cat out)"
}
# ---- optimisers: y = w x with w = 1, x = 2 and the square of y as loss, whose gradient is 8 w
cat >one.onnxtxt <<'END_MODEL'
<ir_version: 7, opset_import: ["" : 13]>
g (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}> { y = MatMul (x, w) }
END_MODEL
mkdir d
array d/x.npy '<f4' '1,1' '\000\000\000\100'
array d/label.npy '<f4' '1,1' '\000\000\000\000'
learns() { # STEPS VALUE OPTION...: what w is after so many steps
    steps=$1 value=$2
    shift 2
    expect 0 "$ONX" trainable one.onnxtxt -o t.onnx --loss mse --keep --rate 0.01 "$@"
    expect 0 "$ONX" check --full t.onnx
    expect 0 "$ONX" train t.onnx --data d --epochs "$steps" -o after.onnx --threads 1
    expect 0 "$ONX" run after.onnx -i x='[[1]]'
    about "$*" y "$value" 1e-5
}
learns 1 0.92 --optimizer sgd
learns 2 0.8464 --optimizer sgd
learns 1 0.915 --optimizer sgd --weight-decay 0.5
learns 2 0.7744 --optimizer momentum
learns 2 0.8064 --optimizer momentum --number momentum=0.5
learns 1 0.848 --optimizer nesterov
learns 1 0.99 --optimizer adam
learns 2 0.980003 --optimizer adam
learns 1 0.985 --optimizer adamw --weight-decay 0.5
learns 1 0.99 --optimizer adagrad
learns 1 0.9 --optimizer rmsprop
learns 1 0.98 --optimizer rmsprop --number beta=0.75
learns 1 0.99 --optimizer sgd --clip-norm 1
learns 1 0.92 --optimizer sgd --clip-norm 100
# ---- losses of 2 (or classes -1, 2) where 0 (or class 0) is wanted
costs() { # LOSS VALUE [MODEL DATA OPTION...]
    loss=$1 value=$2 from=${3:-one.onnxtxt} data=${4:-d}
    shift $(($# < 4 ? $# : 4))
    expect 0 "$ONX" trainable "$from" -o t.onnx --loss "$loss" --keep --optimizer sgd --rate 0 "$@"
    expect 0 "$ONX" check --full t.onnx
    expect 0 "$ONX" train t.onnx --data "$data" --epochs 1 --set rate=0 -o after.onnx --threads 1
    awk -v want="$value" '{ d = $4 - want; if (d < 0) d = -d; if (d > 1e-4) exit 1 }' out || fail "$loss is not $value: $(cat out)"
}
costs mse 4
costs l1 2
costs huber 1.5
costs huber 0.875 one.onnxtxt d --number delta=0.5
costs bce-logits 2.126928
sed 's/y = MatMul (x, w)/z = MatMul (x, w)  y = Sigmoid (z)/' one.onnxtxt >sigmoid.onnxtxt
costs bce 2.126928 sigmoid.onnxtxt
sed 's/y = MatMul (x, w)/z = MatMul (x, w)  s = Sigmoid (z)  y = Identity (s)/' one.onnxtxt >sigmoid2.onnxtxt
costs bce 2.126928 sigmoid2.onnxtxt
expect 0 "$ONX" trainable one.onnxtxt -o t.onnx --loss value --keep --optimizer sgd
mkdir x
cp d/x.npy x
expect 0 "$ONX" train t.onnx --data x --epochs 1 -o after.onnx
says out "loss 2"
cat >two.onnxtxt <<'END_MODEL'
<ir_version: 7, opset_import: ["" : 13]>
g (float[N,1] x) => (float[N,2] y) <float[1,2] w = {-0.5, 1}> { y = MatMul (x, w) }
END_MODEL
mkdir c
cp d/x.npy c
array c/label.npy '<i8' '1,' '\000\000\000\000\000\000\000\000'
costs cross-entropy 3.048587 two.onnxtxt c
sed 's/y = MatMul (x, w)/z = MatMul (x, w)  y = Softmax (z)/' two.onnxtxt >softmax.onnxtxt
costs cross-entropy 3.048587 softmax.onnxtxt c
sed 's/y = MatMul (x, w)/z = MatMul (x, w)  y = LogSoftmax (z)/' two.onnxtxt >logsoftmax.onnxtxt
costs cross-entropy 3.048587 logsoftmax.onnxtxt c
# classes along other axes: the last of 3, and where it is said
sed 's/float\[N,2\] y/float[N,1,2] y/; s/y = MatMul (x, w)/m = MatMul (x, w)  s = Constant <value_ints = [0, 1, 2]> ()  y = Reshape (m, s)/' two.onnxtxt >three.onnxtxt
mkdir e
cp d/x.npy e
array e/label.npy '<i8' '1,1' '\000\000\000\000\000\000\000\000'
costs cross-entropy 3.048587 three.onnxtxt e
costs cross-entropy 3.048587 three.onnxtxt e --axis -1
costs cross-entropy 3.048587 three.onnxtxt e --axis 2
expect 1 "$ONX" trainable three.onnxtxt -o x.onnx --axis 3
expect 1 "$ONX" trainable three.onnxtxt -o x.onnx --axis 0

# ---- BatchNormalization and Dropout: inference stays what it was, training updates averages
cat >modes.onnxtxt <<'END_MODEL'
<ir_version: 7, opset_import: ["" : 13]>
g (float[N,1] x) => (float[N,1] y)
<float[1] scale = {1}, float[1] bias = {0}, float[1] mean = {0}, float[1] var = {1}, float ratio = {0.5}, float[1,1] w = {1}>
{
  n = BatchNormalization <epsilon = 0.0> (x, scale, bias, mean, var)
  p = Dropout (n, ratio)
  y = MatMul (p, w)
}
END_MODEL
mkdir n
array n/x.npy '<f4' '2,1' '\000\000\200\077\000\000\100\100'
array n/label.npy '<f4' '2,1' '\000\000\000\000\000\000\000\000'
expect 0 "$ONX" trainable modes.onnxtxt -o t.onnx --loss mse --keep --optimizer sgd --rate 0
expect 0 "$ONX" check --full t.onnx
expect 0 "$ONX" run t.onnx -i x='[[1],[3]]'
says out "y  float[2,1] 1 3"
expect 0 "$ONX" train t.onnx --data n --epochs 2 --set rate=0 -o after.onnx
# mean 0.2 then 0.38; var 1 (that of 1 and 3 is 1)
expect 0 "$ONX" run after.onnx -i x='[[0]]'
about "the mean" y -0.38 1e-5
expect 0 "$ONX" trainable modes.onnxtxt -o t.onnx --loss mse --freeze 'w' --freeze scale
expect 0 "$ONX" show t.onnx
grep -q "w_start\|w_new\|scale_new" out && fail "what is frozen is drawn or trained"
says out "mean takes mean_new"

# Exporters store weights of equal values once, with Identity in the place of the others: averages and scales behind it
# are those of another layer. The second mean stays 0, as what comes there has that mean.
cat >shared.onnxtxt <<'END_MODEL'
<ir_version: 8, opset_import: ["" : 15]>
g (float[N,1] x) => (float[N,1] y)
<float[1] scale = {1}, float[1] bias = {0}, float[1] mean = {0}, float[1] var = {1}, float[1,1] w = {1}>
{
  scale2 = Identity (scale)
  mean2 = Identity (mean)
  mean3 = Identity (mean2)
  var2 = Identity (var)
  w2 = Identity (w)
  a = BatchNormalization <epsilon = 0.0> (x, scale, bias, mean, var)
  b = BatchNormalization <epsilon = 0.0> (a, scale2, bias, mean3, var2)
  c = MatMul (b, w)
  y = MatMul (c, w2)
}
END_MODEL
expect 0 "$ONX" trainable shared.onnxtxt -o t.onnx --loss mse --keep --optimizer sgd --rate 0 --explain
says out "mean3: own: is a weight of its own, that begins as mean2"
expect 0 "$ONX" check --full t.onnx
expect 0 "$ONX" run t.onnx -i x='[[1],[3]]'
says out "y  float[2,1] 1 3"
expect 0 "$ONX" train t.onnx --data n --epochs 2 --set rate=0 -o after.onnx
expect 0 "$ONX" run after.onnx -i x='[[0]]'
about "the means" y -0.38 1e-5
expect 0 "$ONX" show t.onnx
says out "scale2 takes scale2_new"
grep -q "w2_new" out && fail "a product's weight that is used twice has become two"
# What normalises by its batch already, and whose averages nobody takes, is trained as it is.
sed 's/a = BatchNormalization </a, m1, v1 = BatchNormalization <training_mode = 1, /
  s/b = BatchNormalization </b, m2, v2 = BatchNormalization <training_mode = 1, /' shared.onnxtxt >batch.onnxtxt
expect 0 "$ONX" trainable batch.onnxtxt -o t.onnx --loss mse --keep --optimizer sgd --rate 0.25
expect 0 "$ONX" train t.onnx --data n --epochs 1 -o after.onnx
# the loss is w^4 (1 + 1) / 2, so w goes from 1 to 1 - 4 / 4
expect 0 "$ONX" run after.onnx -i x='[[1],[3]]'
about "the product" y 0 1e-5

# ---- validation without learning: the main graph, in which Dropout does nothing, and what else is measured
sed 's/y = MatMul/y0 = MatMul/; s/^}/  y = Sigmoid (y0)\n}/' modes.onnxtxt >sure.onnxtxt
mkdir v
array v/x.npy '<f4' '4,1' '\000\000\200\077\000\000\100\100\000\000\200\277\000\000\100\100'
array v/label.npy '<f4' '4,1' '\000\000\200\077\000\000\200\077\000\000\200\077\000\000\200\077'
expect 0 "$ONX" trainable sure.onnxtxt -o t.onnx --loss bce --keep --optimizer sgd --rate 0
expect 0 "$ONX" train t.onnx --data v --epochs 2 --set rate=0 -o after.onnx --batch 2 --validation 0.5 --log log.jsonl --plot curve.svg
grep -q '"validation_accuracy": 0.5}' log.jsonl || fail "no accuracy in the log: $(cat log.jsonl)"
# The first epoch has changed the mean from 0 to 0.2; the loss of -1.2 and 2.8 is that of Sigmoid.
awk -F'"validation": ' 'NR == 1 { split($2, a, ","); d = a[1] - 0.76116; if (d < 0) d = -d; if (d > 1e-4) exit 1 }' log.jsonl ||
    fail "validation is not that of inference: $(cat log.jsonl)"
says out "  accuracy 0.5"
for text in '<svg xmlns' 'epoch</text>' 'stroke="#1f77b4"' '>validation</text>' '</svg>'; do says curve.svg "$text"; done
rm -f curve.svg
expect 2 "$ONX" train t.onnx --data v -o after.onnx --plot curve.png
says err "a .svg file"
expect 0 "$ONX" train t.onnx --data v --epochs 1 -o after.onnx --log log.csv --plot curve.svg
[ "$(head -n 1 log.csv)" = "epoch,loss,validation,seconds,accuracy,validation_accuracy" ] || fail "log.csv: $(head -n 1 log.csv)"
[ "$(sed 1d log.csv | tr -cd , | wc -c)" -eq 5 ] || fail "log.csv has not as many numbers as names"
# The rate that the model has is where a schedule starts.
expect 0 "$ONX" trainable one.onnxtxt -o t.onnx --loss mse --keep --optimizer sgd --rate 0.01
expect 0 "$ONX" train t.onnx --data d --epochs 2 -o after.onnx --schedule rate=cosine
expect 0 "$ONX" run after.onnx -i x='[[1]]'
about "a schedule" y 0.8832 1e-5
expect 2 "$ONX" train t.onnx --data d -o after.onnx --schedule x=cosine
says err "a start value with --set"

# Gradients of 1: after four steps, each with its rate, w = 1 less the sum of the rates.
cat >slope.onnxtxt <<'END_MODEL'
<ir_version: 7, opset_import: ["" : 13]>
g (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}> { y = MatMul (x, w) }
END_MODEL
array slope.npy '<f4' '1,1' '\000\000\200\077'
mkdir slope
mv slope.npy slope/x.npy
expect 0 "$ONX" trainable slope.onnxtxt -o t.onnx --loss value --keep --optimizer sgd --rate 0.1
sum() { # SUM OF FOUR RATES OVER 0.1, OPTION...
    rates=$1
    shift
    expect 0 "$ONX" train t.onnx --data slope --epochs 4 -o after.onnx "$@"
    expect 0 "$ONX" run after.onnx -i x='[[1]]'
    about "rates of $*" y "$(awk -v r="$rates" 'BEGIN { print 1 - 0.1 * r }')" 1e-6
}
sum 4 --schedule rate=constant
sum 2.5 --schedule rate=cosine
sum 2.5 --schedule rate=linear                            # 1, 3/4, 1/2, 1/4
sum 2.75 --schedule rate=linear --rate-min 0.0166666667   # 1, 19/24, 14/24, 9/24
sum 3.5 --schedule rate=constant --warmup 2               # 1/2, 1, 1, 1
sum 3 --schedule rate=linear --warmup 2                   # 1/2, 1, 1, 1/2
sum 2.5 --schedule rate=constant --warmup 4
sum 1.25 --schedule rate=constant --warmup 8
sum 2.11 --schedule rate=step                             # 1, 1, 0.1, 0.01
sum 2.2 --schedule rate=step --rate-min 0.01
sum 2.070499 --schedule rate=one-cycle
expect 2 "$ONX" train t.onnx --data slope -o after.onnx --warmup 2
says err "need --schedule"

# ---- which weights, how they begin
ones() { awk -v n="$1" 'BEGIN { for (i = 1; i <= n; i++) printf "%s1", (i > 1 ? ", " : "") }'; }
cat >net.onnxtxt <<END_MODEL
<ir_version: 7, opset_import: ["" : 13]>
g (float[N,3,8,8] x, int64[N] id) => (float[N,4] y, int64[N] same)
<float[20,3,3,3] conv = {$(ones 540)}, float[20] conv_b = {$(ones 20)}, float[4,20] fc = {$(ones 80)}, float[4] fc_b = {$(ones 4)},
 float[90,4] table = {$(ones 360)}, float[1,4] mask = {0, 0, 0, -100000}, float half = {0.5}, float[4] unused = {1, 1, 1, 1}>
{
  c = Conv <pads = [1, 1, 1, 1]> (x, conv, conv_b)  r = Relu (c)  a = GlobalAveragePool (r)  f = Flatten (a)
  t = Transpose (fc)  m = MatMul (f, t)  b = Add (m, fc_b)  h = Mul (b, half)
  e = Gather (table, id)  s = Add (h, e)  y = Add (s, mask)  same = Identity (id)
}
END_MODEL
trained() { # NAMES OPTION...: the weights that are trained, in this order
    names=$1
    shift
    expect 0 "$ONX" trainable net.onnxtxt --dry-run "$@"
    [ "$(sed -n 's/: train: .*//p' out | tr '\n' ' ')" = "$names " ] || fail "$*: trained are $(cat out)"
}
trained "conv conv_b fc fc_b table"
trained "fc fc_b" --train 'fc*'
trained "conv fc fc_b" --train 'fc*,conv' --train 'conv'
trained "conv fc table" --freeze '*_b'
trained "mask" --train mask
expect 0 "$ONX" trainable net.onnxtxt -o t.onnx --rate 0.1
expect 0 "$ONX" check --full t.onnx
mkdir s
array s/x.npy '<f4' '2,3,8,8' ''
head -c 1536 /dev/zero >>s/x.npy
array s/id.npy '<i8' '2,' ''
head -c 16 /dev/zero >>s/id.npy
array s/label.npy '<i8' '2,' ''
head -c 16 /dev/zero >>s/label.npy
# A step of rate 0 leaves what the initialisers have drawn. Of a zero image only what is added counts.
expect 0 "$ONX" train t.onnx --data s --epochs 1 --set rate=0 -o begun.onnx --threads 1
expect 0 "$ONX" show --full begun.onnx
spread() { # NAME FROM TO: the root of the mean square of a weight
    tr -d '\n' <out | sed "s/.*[] ]$1 = {\([^}]*\)}.*/\1/" | tr ',' '\n' |
        awk -v from="$2" -v to="$3" '{ s += $1 * $1; n++ } END { d = sqrt(s / n); exit !(d >= from && d <= to) }' ||
        fail "$1 is not drawn with a deviation from $2 to $3"
}
spread conv 0.24 0.30 # sqrt (2 / 27) = 0.272
spread fc 0.23 0.35   # sqrt (6 / 24) / sqrt (3) = 0.289
spread table 0.43 0.57 # 1 / sqrt (4)
spread conv_b 0 0
spread fc_b 0 0
spread half 0.5 0.5
expect 0 "$ONX" trainable net.onnxtxt -o t2.onnx --rate 0.1 --seed 1
expect 0 "$ONX" train t2.onnx --data s --epochs 1 --set rate=0 -o begun2.onnx --threads 1
cmp -s begun.onnx begun2.onnx && fail "another seed draws the same"

# ---- adapters: the base stays, merging gives what the sum gave
cat >gemm.onnxtxt <<'END_MODEL'
<ir_version: 7, opset_import: ["" : 13]>
g (float[N,2] x) => (float[N,3] y)
<float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3,3] v = {1, 0, 0, 0, 1, 0, 0, 0, 1}, float[3] b = {1, 1, 1}>
{ h = MatMul (x, w)  y = Gemm <transB = 1> (h, v, b) }
END_MODEL
mkdir l
array l/x.npy '<f4' '1,2' '\000\000\000\100\000\000\200\077'
array l/label.npy '<f4' '1,3' '\000\000\000\000\000\000\000\000\000\000\000\000'
expect 0 "$ONX" trainable gemm.onnxtxt -o lora.onnx --loss mse --lora 2 --lora-scale 2 --optimizer sgd --rate 0.001
expect 0 "$ONX" check --full lora.onnx
expect 0 "$ONX" run gemm.onnxtxt -i x='[[2,1]]'
cp out plain.txt
expect 0 "$ONX" run lora.onnx -i x='[[2,1]]'
same plain.txt out
expect 0 "$ONX" train lora.onnx --data l --epochs 20 -o tuned.onnx
awk 'NR == 1 { first = $4 } END { exit !($4 < first / 2) }' out || fail "adapters learn nothing: $(cat out)"
expect 0 "$ONX" show tuned.onnx
says out "w = {1, 2, 3, 4, 5, 6}"
says out "v = {1, 0, 0, 0, 1, 0, 0, 0, 1}"
expect 0 "$ONX" trainable tuned.onnx --merge -o merged.onnx --explain
says out "2 adapters merged"
expect 0 "$ONX" check --full merged.onnx
expect 0 "$ONX" show merged.onnx
grep -q "adapter\|training" out && fail "adapters are left: $(cat out)"
expect 0 "$ONX" compare tuned.onnx merged.onnx -i x='[[2,1]]'
expect 0 "$ONX" trainable merged.onnx --merge -o x.onnx
says err "no adapters"
# A default that is written out changes nothing.
sed 's/<transB = 1>/<alpha = 1.0, transB = 1>/' gemm.onnxtxt >alpha.onnxtxt
expect 0 "$ONX" trainable alpha.onnxtxt -o lora.onnx --loss mse --lora 1 --train v
sed 's/<transB = 1>/<alpha = 2.0, transB = 1>/' gemm.onnxtxt >alpha.onnxtxt
expect 1 "$ONX" trainable alpha.onnxtxt -o lora.onnx --loss mse --lora 1 --train v
says err "adapters are asked for"
expect 0 "$ONX" trainable gemm.onnxtxt -o lora.onnx --loss mse --lora 1 --train v
expect 0 "$ONX" show lora.onnx
says out "v_adapter_up"
grep -q "w_adapter" out && fail "another product has an adapter"

# A weight that exporters store once for several products: each of these has an adapter, behind Identity and Transpose, too.
cat >once.onnxtxt <<'END_MODEL'
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2,2] u = {1, 0.5, 0, 1}>
{
  a = MatMul (x, w)  w2 = Identity (w)  b = MatMul (a, w2)  w3 = Identity (w2)  wt = Transpose (w3)  c = Gemm (b, wt)
  u2 = Transpose <perm = [1, 0]> (u)  d = Gemm <transB = 1> (c, u2)  u3 = Identity (u)  e = MatMul (d, u3)  s = ReduceSum <keepdims = 0> (u3)  y = Add (e, s)
}
END_MODEL
mkdir o
array o/x.npy '<f4' '1,2' '\000\000\000\100\000\000\200\077'
array o/label.npy '<f4' '1,2' '\000\000\000\000\000\000\000\000'
expect 0 "$ONX" trainable once.onnxtxt -o lora.onnx --loss mse --lora 1 --optimizer adam --rate 0.01
expect 0 "$ONX" train lora.onnx --data o --epochs 40 -o tuned.onnx
awk 'NR == 1 { first = $4 } END { exit !($4 < first / 2) }' out || fail "adapters learn nothing: $(cat out)"
expect 0 "$ONX" show tuned.onnx
says out "w = {1, 2, 3, 4}"
says out "u = {1, 0.5, 0, 1}"
expect 0 "$ONX" trainable tuned.onnx --merge -o merged.onnx --explain
says out "5 adapters merged"
expect 0 "$ONX" check --full merged.onnx
expect 0 "$ONX" compare tuned.onnx merged.onnx -i x='[[2,1],[-1,0.5]]'
expect 0 "$ONX" show merged.onnx
says out "u = {1, 0.5, 0, 1}" # its sum is read, too
grep -q "adapter\|Transpose\|w2\|w = {" out && fail "something is left of the adapters: $(cat out)"
expect 0 "$ONX" trainable once.onnxtxt -o lora.onnx --loss mse --lora 1 --train w2
expect 0 "$ONX" trainable lora.onnx --merge -o merged.onnx --explain
says out "1 adapter merged"

# ---- what is quantised: a step rounds as QuantizeLinear does, and gradients pass where nothing is cut off
cat >rounded.onnxtxt <<'END_MODEL'
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1.1}, float s = {0.25}, int8 z = {3}>
{ q = QuantizeLinear (w, s, z)  d = DequantizeLinear (q, s, z)  y = MatMul (x, d) }
END_MODEL
for steps in "1 1" "2 1" "3 0.75"; do # w is 1.1, 1.02, 0.94, 0.86: the gradient is that at 1
    expect 0 "$ONX" trainable rounded.onnxtxt -o t.onnx --loss mse --keep --rate 0.01 --optimizer sgd
    expect 0 "$ONX" check --full t.onnx
    expect 0 "$ONX" train t.onnx --data d --epochs "${steps% *}" -o after.onnx --threads 1
    expect 0 "$ONX" run after.onnx -i x='[[1]]'
    about "rounded" y "${steps#* }" 1e-5
done
sed 's/{1.1}/{40}/' rounded.onnxtxt >cut.onnxtxt
expect 0 "$ONX" trainable cut.onnxtxt -o t.onnx --loss mse --keep --rate 0.01 --optimizer sgd
expect 0 "$ONX" train t.onnx --data d --epochs 3 -o after.onnx
expect 0 "$ONX" show after.onnx
says out "w = {40}"
# Other readers of the integers, and scales by blocks, are left alone.
sed 's/y = MatMul (x, d)/y = MatMul (x, d)  i = Cast <to = 1> (q)/; s/(float\[N,1\] y)/(float[N,1] y, float[1,1] i)/' rounded.onnxtxt >read.onnxtxt
expect 1 "$ONX" trainable read.onnxtxt -o t.onnx --loss mse --keep --rate 0.01 --optimizer sgd
says err "nothing to train"
sed 's/MatMul (x, w)  y/MatMul (x, w)  r = Relu (h)  y/; s/(h, v, b)/(r, v, b)/' gemm.onnxtxt >relu.onnxtxt
expect 0 "$ONX" quantize relu.onnxtxt --mode static --form qdq --samples 4 --range x=-2:2 --dim N=4 -o quantized.onnx
expect 1 "$ONX" trainable quantized.onnx -o x.onnx --loss mse
says err "nothing to train"
says err "--qat"
expect 0 "$ONX" trainable quantized.onnx -o aware.onnx --qat --loss mse --optimizer sgd --rate 0.001
expect 0 "$ONX" check --full aware.onnx
expect 0 "$ONX" run quantized.onnx -i x='[[2,1],[-1,0.3]]'
cp out plain.txt
expect 0 "$ONX" run aware.onnx -i x='[[2,1],[-1,0.3]]'
same plain.txt out
expect 0 "$ONX" train aware.onnx --data l --evaluate
cp out evaluated.txt
expect 0 "$ONX" train aware.onnx --data l --epochs 8 -o after.onnx --threads 1
[ "$(sed -n '1s/.*loss //p' out)" = "$(sed 's/.*loss //' evaluated.txt)" ] || fail "a step rounds in another way: $(cat out evaluated.txt)"
awk 'NR == 1 { first = $4 } END { exit !($4 < first / 2) }' out || fail "quantised weights learn nothing: $(cat out)"
expect 0 "$ONX" show after.onnx
says out "QuantizeLinear"

# Learning while rounded gives more than rounding what has learned: of a network whose outputs are what is wanted, so that
# more steps in float give nothing, and one unit of which is large, so that a scale for all weights is coarse.
cat >wide.onnxtxt <<'END_MODEL'
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,2] x) => (float[N,1] label)
<float[2,6] w = {0.7, -0.4, 0.9, 0.2, -0.8, 40, 0.5, 0.6, -0.3, -0.9, 0.1, 25}, float[6] a = {0.1, 0.2, -0.1, 0.3, 0, 4},
 float[6,1] v = {0.8, -0.5, 0.6, 0.9, -0.7, 0.01}>
{ m = MatMul (x, w)  s = Add (m, a)  h = Relu (s)  label = MatMul (h, v) }
END_MODEL
cat >draw.onnxtxt <<'END_MODEL'
<ir_version: 8, opset_import: ["" : 17]>
g () => (float[512,2] x) { x = RandomNormal <seed = 3.0, shape = [512, 2]> () }
END_MODEL
mkdir w
expect 0 "$ONX" run draw.onnxtxt -o w/x.npy
expect 0 "$ONX" run wide.onnxtxt -i x=w/x.npy -o w/label.npy
sed 's/label/y/g' wide.onnxtxt >net6.onnxtxt
expect 0 "$ONX" quantize net6.onnxtxt --mode static --form qdq --per-tensor --samples 8 --range x=-3:3 --dim N=64 -o quantized.onnx
expect 0 "$ONX" trainable quantized.onnx -o aware.onnx --qat --loss mse --optimizer adam --rate 0.003
expect 0 "$ONX" train aware.onnx --data w --evaluate --threads 1
after=$(sed -n 's/^loss \([^ ]*\).*/\1/p' out)
expect 0 "$ONX" train aware.onnx --data w --epochs 60 --shuffle --threads 1 --schedule rate=cosine -o learned.onnx
expect 0 "$ONX" train learned.onnx --data w --evaluate --threads 1
during=$(sed -n 's/^loss \([^ ]*\).*/\1/p' out)
awk -v a="$after" -v d="$during" 'BEGIN { exit !(a > 0 && d < 0.85 * a) }' || fail "rounded after it has learned: $after, while it learns: $during"
# and so it is for who runs the result
expect 0 "$ONX" edit learned.onnx --strip training -o plain.onnx
expect 0 "$ONX" run plain.onnx -i x=w/x.npy -o w/y.npy
cat >apart.onnxtxt <<'END_MODEL'
<ir_version: 8, opset_import: ["" : 17]>
g (float[512,1] y, float[512,1] label) => (float[] mean) { d = Sub (y, label)  s = Mul (d, d)  mean = ReduceMean <keepdims = 0> (s) }
END_MODEL
expect 0 "$ONX" run apart.onnxtxt -i y=w/y.npy -i label=w/label.npy
awk -v d="$during" '$1 == "mean" { found = 1; e = $3 / d; if (e < 0.99 || e > 1.01) exit 1 } END { exit !found }' out ||
    fail "the loss of the result is not $during: $(cat out)"

# ---- batch, names, text
expect 0 "$ONX" trainable net.onnxtxt -o t.onnx --batch 7 --label class
expect 0 "$ONX" show t.onnx
says out "float[7, 3, 8, 8] x"
says out "int64[7] class"
says out "# training_info[1].algorithm"
expect 0 "$ONX" trainable net.onnxtxt -o t.onnxtxt
expect 0 "$ONX" check --full t.onnxtxt
expect 0 "$ONX" trainable --list
says out "cross-entropy"
says out "beta1=0.9"

# ---- what cannot be
refused() { # STATUS TEXT ARGUMENT...
    wanted_status=$1 text=$2
    shift 2
    rm -f x.onnx
    expect "$wanted_status" "$ONX" trainable "$@"
    says err "$text"
    [ ! -e x.onnx ] || fail "a file was written: $*"
}
refused 2 "say where" net.onnxtxt
refused 2 "name a model" -o x.onnx
refused 2 "no loss nope" net.onnxtxt -o x.onnx --loss nope
says err "losses are cross-entropy, smooth-cross-entropy"
refused 2 "no optimiser nope" net.onnxtxt -o x.onnx --optimizer nope
says err "optimisers are sgd"
refused 2 "have no number beta1" net.onnxtxt -o x.onnx --optimizer sgd --number beta1=0.5
refused 2 "is not a number" net.onnxtxt -o x.onnx --number beta1=fast
refused 2 "no output nope" net.onnxtxt -o x.onnx --output-name nope
refused 1 "float or double" net.onnxtxt -o x.onnx --output-name same
refused 2 "no weight that the loss depends on is like nope*" net.onnxtxt -o x.onnx --train 'nope*'
refused 2 "is like unused" net.onnxtxt -o x.onnx --freeze unused
refused 1 "nothing to train" net.onnxtxt -o x.onnx --freeze '*'
refused 1 "already" t.onnx -o x.onnx
says err "onx edit --strip training"
expect 0 "$ONX" edit t.onnx --strip training -o stripped.onnx
expect 0 "$ONX" check --full stripped.onnx
expect 0 "$ONX" show stripped.onnx
grep -q training out && fail "training is left: $(cat out)"
expect 0 "$ONX" trainable stripped.onnx -o again.onnx
refused 1 "has a value id already" net.onnxtxt -o x.onnx --label id
refused 2 "--rate" net.onnxtxt -o x.onnx --rate -1
refused 2 "--rate" net.onnxtxt -o x.onnx --rate nan
refused 2 "--lora" net.onnxtxt -o x.onnx --lora 0
refused 1 "memory" gemm.onnxtxt -o x.onnx --lora 4294967295 --loss mse
refused 1 "adapters are asked for" net.onnxtxt -o x.onnx --lora 2 --train 'conv*'
refused 2 "--axis" net.onnxtxt -o x.onnx --axis one
cat >ints.onnxtxt <<'END_MODEL'
<ir_version: 13, opset_import: ["" : 26]>
g (float[3] x) => (float y) <float[3] w = {1, 2, 3}> { u = Mul (x, w)  v = BitCast <to = 1> (u)  y = ReduceSum <keepdims = 0> (v) }
END_MODEL
refused 1 "classes are along" ints.onnxtxt -o x.onnx --train w
# An axis without its value field is 0.
cat >empty.textproto <<'END_MODEL'
ir_version: 8 opset_import { version: 18 } graph { name: "g"
  node { op_type: "MatMul" input: "x" input: "w" output: "m" }
  node { op_type: "Softmax" input: "m" output: "y" attribute { name: "axis" type: INT } }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 5 } dim { dim_value: 4 } } } } }
  input { name: "w" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } dim { dim_value: 3 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } } }
END_MODEL
refused 1 "classes are along" empty.textproto -o x.onnx --train w
# What no gradient passes is said when training begins.
expect 0 "$ONX" trainable ints.onnxtxt -o x.onnx --train w --loss value
expect 1 "$ONX" train x.onnx --data d -o y.onnx
says err "no gradient of BitCast"
done_testing

# onx trainable: optimizers take the steps that PyTorch's take (and for lion, lamb and muon those of their papers), with
# tiny gradients too. The numbers are those of PyTorch in float32; muon's there iterates in bfloat16, here in float32.
. "$ONX_SOURCE_DIR/tests/lib.sh"
array() { # FILE SHAPE PRINTF-BYTES: floats
    printf '\223NUMPY\001\000\166\000' >"$1"
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($2)}" >>"$1"
    # shellcheck disable=SC2059
    printf "$3" >>"$1"
}
about() { # WHAT NAME VALUES: the elements of an initializer of after.onnx
    expect 0 "$ONX" show --full after.onnx
    got=$(tr -d '\n' <out | sed -n "s/.*[] ]$2 = {\([^}]*\)}.*/\1/p")
    echo "$got|$3" | tr -d ' ' | awk -F'|' '{ n = split($1, a, ","); if (!n || n != split($2, b, ",")) exit 1
        for (i = 1; i <= n; i++) { d = a[i] - b[i]; if (d < 0) d = -d; if (!(d <= 5e-6)) exit 1 } }' || fail "$1: $2 is $got instead of $3"
}
model() { # SCALE OF THE GRADIENTS, TYPE
    cat >model.onnxtxt <<END
<ir_version: 8, opset_import: ["" : 18]>
g (TYPE[N,2] x) => (TYPE[N,2] y) <TYPE[2,2] w = {0.5, -1, 2, 1}, TYPE[2] b = {0.5, -0.5}, TYPE s = {$1}>
{ m = MatMul (x, w)  a = Add (m, b)  y = Mul (a, s) }
END
    sed "s/TYPE/${2-float}/g" model.onnxtxt >m.onnxtxt
}
steps() { # COUNT OPTION...
    epochs=$1
    shift
    expect 0 "$ONX" trainable m.onnxtxt -o t.onnx --loss mse --keep --rate 0.01 "$@"
    expect 0 "$ONX" check --full t.onnx
    expect 0 "$ONX" train t.onnx --data d --epochs "$epochs" -o after.onnx --threads 1
}
mkdir d
array d/x.npy '2,2' '\000\000\200\077\000\000\000\100\000\000\200\277\000\000\000\077' # 1, 2, -1, 0.5
array d/label.npy '2,2' '\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000'
count=0
while IFS='|' read -r optimizer scale w b; do
    model "$scale"
    steps 20 --optimizer "$optimizer" --weight-decay 0.125
    about "$optimizer, $scale" w "$w"
    about "$optimizer, $scale" b "$b"
    count=$((count + 1))
done <<END
sgd|1|0.1894688, -0.9227085, 1.178896, 0.8664955|0.05570569, -0.6201257
sgd|1e-6|0.4876473, -0.9752946, 1.950589, 0.9752946|0.5, -0.5
momentum|1|-0.4031291, -0.5429766, -0.3150033, 0.5885762|-0.7102656, -0.9248112
momentum|1e-6|0.4272834, -0.8545669, 1.709134, 0.8545669|0.5, -0.5
nesterov|1|-0.3407011, -0.5329564, -0.1449845, 0.610605|-0.6122366, -0.9057935
nesterov|1e-6|0.4231529, -0.8463058, 1.692612, 0.8463058|0.5, -0.5
adam|1|0.3023988, -0.8027971, 1.802005, 0.8109006|0.3019405, -0.6897265
adam|1e-6|0.306034, -0.8026664, 1.801256, 0.8026664|0.4999415, -0.5000135
adamw|1|0.2926336, -0.7809137, 1.755276, 0.7914969|0.3022264, -0.6888013
adamw|1e-6|0.4876078, -0.9752895, 1.950485, 0.9752796|0.4999404, -0.5000147
adagrad|1|0.4250821, -0.9252566, 1.924923, 0.9277679|0.4248974, -0.5723879
adagrad|1e-6|0.4263763, -0.9251869, 1.924611, 0.9251869|0.4946041, -0.5013577
rmsprop|1|-0.1464769, -0.4658181, 1.329937, 0.6290009|-0.1733716, -0.812228
rmsprop|1e-6|0.03590162, -0.3666083, 1.290173, 0.3666083|0.4999508, -0.500005
adadelta|1|0.4993013, -0.9993014, 1.999301, 0.9993019|0.4993013, -0.5006981
adadelta|1e-6|0.4993025, -0.9993017, 1.999301, 0.9993017|0.5, -0.5
adafactor|1|0.2716663, -0.7605252, 1.732181, 0.7794334|0.4024806, -0.5886139
adafactor|1e-6|0.487643, -0.9752942, 1.950578, 0.975293|0.4999976, -0.5000012
lion|1|0.2900046, -0.7776516, 1.752946, 0.7776516|0.3000002, -0.6999998
lion|1e-6|0.2900046, -0.7776516, 1.752946, 0.7776516|0.3000002, -0.6999998
lamb|1|0.2852563, -0.773037, 1.746168, 0.7799338|0.3977019, -0.5987242
lamb|1e-6|0.4089521, -0.8179092, 1.635812, 0.8179087|0.368394, -0.5312343
muon|1|0.4224968, -0.808746, 1.827989, 0.8982346|0.3017872, -0.6933321
muon|1e-6|0.4868452, -0.9751936, 1.948481, 0.9749957|0.4999404, -0.5000147
END
[ "$count" -eq 24 ] || fail "$count rows were read"
# every optimizer of the program is in the table, except the standard's Adam
expect 0 "$ONX" trainable --list
[ "$(sed -n '/^optimi/,$p' out | grep -c '^  ')" -eq 13 ] || fail "an optimizer is missing here: $(cat out)"
# weights of double
model 1 double
for optimizer in sgd adam adamw lion muon adafactor; do
    expect 0 "$ONX" trainable m.onnxtxt -o t.onnx --loss mse --keep --rate 0.01 --optimizer $optimizer --weight-decay 0.125
    expect 0 "$ONX" check --full t.onnx
done
# ---- the standard's Adam: epsilon counts more in the first steps
model 1e-6
steps 1 --optimizer onnx-adam
# the gradients of b are about 1e-12, far below an epsilon of 1e-8
about onnx-adam b "0.4999999, -0.4999999"
# ---- groups
model 1
steps 1 --optimizer sgd --group 'b:rate=0'
about group b "0.5, -0.5"
steps 1 --optimizer sgd --group 'w:rate=0.5,decay=0' --weight-decay 0.125
about group w "0.49, -0.99875, 1.97375, 0.99625"
steps 1 --optimizer sgd --group 'w:decay=0.125'
cp after.onnx one.onnx
steps 1 --optimizer sgd --weight-decay 0.125
same one.onnx after.onnx
steps 3 --optimizer adam --group '*:rate=10'
cp after.onnx one.onnx
expect 0 "$ONX" trainable m.onnxtxt -o t.onnx --loss mse --keep --rate 0.1 --optimizer adam
expect 0 "$ONX" train t.onnx --data d --epochs 3 -o after.onnx --threads 1
expect 0 "$ONX" show --full one.onnx
about "a factor" w "$(tr -d '\n' <out | sed -n 's/.*[] ]w = {\([^}]*\)}.*/\1/p')"
for wrong in w w:rate w:rate=fast w:rate=-1 w:speed=1 :rate=1 w: nope:rate=1; do
    expect 2 "$ONX" trainable m.onnxtxt -o x.onnx --loss mse --group "$wrong"
done
# ---- limits of gradients: those of b are 3 and 0.75
steps 1 --optimizer sgd --clip-value 0.5
about "clipped" b "0.495, -0.505"
steps 1 --optimizer sgd --clip-value 1e9
cp after.onnx one.onnx
steps 1 --optimizer sgd
expect 0 "$ONX" show --full one.onnx
about "a high limit" w "$(tr -d '\n' <out | sed -n 's/.*[] ]w = {\([^}]*\)}.*/\1/p')"
done_testing

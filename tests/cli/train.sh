# onx train: a linear regression learns what made its data, checkpoints go on exactly, and what cannot be is said.
. "$ONX_SOURCE_DIR/tests/lib.sh"
# y = 3 a - 2 b + 0.5, drawn by models of their own; npy files need no library.
cat >draw_x.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g () => (float[200,2] x) { x = RandomNormal <seed = 1.0, shape = [200, 2]> () }
END
cat >draw_t.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[200,2] x) => (float[200,1] t) <float[2,1] w = {3, -2}, float[1] b = {0.5}> { m = MatMul (x, w)  t = Add (m, b) }
END
mkdir d
expect 0 "$ONX" run draw_x.onnxtxt -o d/x.npy
expect 0 "$ONX" run draw_t.onnxtxt -i x=d/x.npy -o d/t.npy
# model NAME FIRST_DIMENSION: w and b by gradient descent, steps counted
model() {
    cat >"$1" <<END
ir_version: 10 opset_import { version: 17 } opset_import { domain: "ai.onnx.preview.training" version: 1 }
graph { name: "g"
  node { op_type: "MatMul" input: "x" input: "w" output: "m" }
  node { op_type: "Add" input: "m" input: "b" output: "y" }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { $2 } dim { dim_value: 2 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { $2 } dim { dim_value: 1 } } } } }
  initializer { dims: 2 dims: 1 data_type: 1 name: "w" float_data: 0 float_data: 0 }
  initializer { dims: 1 data_type: 1 name: "b" float_data: 0 } }
training_info {
  initialization { name: "i"
    node { op_type: "RandomNormal" output: "w0"
      attribute { name: "shape" type: INTS ints: 2 ints: 1 } attribute { name: "seed" type: FLOAT f: 7 } }
    output { name: "w0" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 1 } } } } } }
  algorithm { name: "a"
    node { op_type: "Sub" input: "y" input: "t" output: "e" }
    node { op_type: "Mul" input: "e" input: "e" output: "s" }
    node { op_type: "ReduceMean" input: "s" output: "loss" attribute { name: "keepdims" type: INT i: 0 } }
    node { op_type: "Gradient" domain: "ai.onnx.preview.training" input: "w" input: "b" input: "x" output: "dw" output: "db"
      attribute { name: "xs" type: STRINGS strings: "w" strings: "b" } attribute { name: "zs" type: STRINGS strings: "x" }
      attribute { name: "y" type: STRING s: "loss" } }
    node { op_type: "Mul" input: "dw" input: "rate" output: "ws" }
    node { op_type: "Sub" input: "w" input: "ws" output: "w_new" }
    node { op_type: "Mul" input: "db" input: "rate" output: "bs" }
    node { op_type: "Sub" input: "b" input: "bs" output: "b_new" }
    node { op_type: "Add" input: "n" input: "one" output: "n_new" }
    initializer { data_type: 7 name: "n" int64_data: 0 }
    initializer { data_type: 7 name: "one" int64_data: 1 }
    input { name: "t" type { tensor_type { elem_type: 1 shape { dim { $2 } dim { dim_value: 1 } } } } }
    input { name: "rate" type { tensor_type { elem_type: 1 shape { } } } }
    output { name: "w_new" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 1 } } } } }
    output { name: "b_new" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } } }
    output { name: "n_new" type { tensor_type { elem_type: 7 shape { } } } }
    output { name: "loss" type { tensor_type { elem_type: 1 shape { } } } } }
  initialization_binding { key: "w" value: "w0" }
  update_binding { key: "w" value: "w_new" }
  update_binding { key: "b" value: "b_new" }
  update_binding { key: "n" value: "n_new" } }
END
}
model m.textproto 'dim_param: "N"'
expect 0 "$ONX" check --full m.textproto

# ---- it learns
expect 0 "$ONX" train m.textproto --data d --set rate=0.1 --epochs 30 -o out.onnx --threads 1
says out "epoch 30/30  loss "
[ "$(wc -l <out)" -eq 30 ] || fail "not a line for each epoch"
awk 'NR == 30 && $4 + 0 > 1e-6 { exit 1 }' out || fail "the loss stays large: $(tail -n 1 out)"
awk 'NR == 1 && $4 + 0 < 0.01 { exit 1 }' out || fail "the first loss is small already"
expect 0 "$ONX" run out.onnx -i x='[[1,0],[0,1],[0,0]]' --json
tr -d ' \n' <out | grep -qE '"(data|values|elements)":\[?\[?\[?3\.[45]|3\.(5|49)' || fail "no 3.5: $(cat out)"
"$ONX" show --format textproto out.onnx >out.textproto
grep -q "onx.train" out.textproto && fail "the result holds the state of training"
# ---- orders, seeds, and that all is deterministic
train="train m.textproto --data d --set rate=0.1 --threads 1 --shuffle --seed 5"
for name in a b; do
    # shellcheck disable=SC2086
    expect 0 "$ONX" $train --epochs 4 -o $name.onnx
    cp out $name.txt
done
same a.onnx b.onnx
same a.txt b.txt
# shellcheck disable=SC2086
expect 0 "$ONX" $train --epochs 4 --seed 6 -o c.onnx
cmp -s a.onnx c.onnx && fail "another seed makes the same model"
# Numbers of double, as NumPy makes them, are rounded to what the input takes.
cat >double.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[200,2] x0) => (double[200,2] x) { x = Cast <to = 11> (x0) }
END
mkdir double
cp d/t.npy double
expect 0 "$ONX" run double.onnxtxt -i x0=d/x.npy -o double/x.npy
# shellcheck disable=SC2086
expect 0 "$ONX" train m.textproto --data double --set rate=0.1 --threads 1 --shuffle --seed 5 --epochs 4 -o c.onnx
says err '"x" is converted from double to float, with rounding'
same a.onnx c.onnx
expect 0 "$ONX" train m.textproto --data d/x.npy --data d/t.npy --set rate=0.1 --threads 1 --shuffle --seed 5 --epochs 4 -o c.onnx
same a.onnx c.onnx
# shellcheck disable=SC2086
expect 0 "$ONX" $train --epochs 4 --keep -o c.onnx
cmp -s a.onnx c.onnx && fail "--keep has initialised"

# ---- checkpoints: stopped and resumed gives the very same model and log
# shellcheck disable=SC2086
expect 0 "$ONX" $train --validation 0.2 --epochs 6 --log whole.jsonl -o whole.onnx
says out "validation"
says out "best"
# shellcheck disable=SC2086
expect 0 "$ONX" $train --validation 0.2 --epochs 3 --log part.jsonl -o part.onnx --checkpoint state.onnx --resume
# shellcheck disable=SC2086
expect 0 "$ONX" $train --validation 0.2 --epochs 6 --log part.jsonl -o part.onnx --checkpoint state.onnx --resume
[ "$(wc -l <out)" -eq 3 ] || fail "resumed epochs: $(cat out)"
[ ! -s err ] || fail "resuming complains: $(cat err)"
same whole.onnx part.onnx
for log in whole part; do
    [ "$(wc -l <$log.jsonl)" -eq 6 ] || fail "$log.jsonl has not 6 lines"
    sed 's/, "seconds.*//' $log.jsonl >$log.log
done
same whole.log part.log
grep -q '^{"epoch": 6, "loss": [0-9.e-]*, "validation": [0-9.e-]*$' part.log || fail "the log: $(tail -n 1 part.log)"
expect 0 "$ONX" check --full state.onnx
# killed at any moment: right away, and while the log grows
rm -f state.onnx killed.onnx
# shellcheck disable=SC2086
expect 0 "$ONX" $train --validation 0.2 --epochs 150 --log whole.jsonl -o whole.onnx
killed=0
for more in 0 1 5 20 1 0 30; do
    lines=$(cat killed.jsonl 2>/dev/null | wc -l)
    # shellcheck disable=SC2086
    "$ONX" $train --validation 0.2 --epochs 150 --log killed.jsonl -o killed.onnx --checkpoint state.onnx --resume >/dev/null 2>&1 &
    pid=$!
    if [ "$more" -eq 0 ]; then
        sleep 0.02
    else
        while kill -0 $pid 2>/dev/null && [ "$(cat killed.jsonl 2>/dev/null | wc -l)" -lt $((lines + more)) ]; do :; done
    fi
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? -ne 137 ] || killed=$((killed + 1))
done
[ $killed -ge 3 ] || fail "only $killed runs were killed before their end"
# shellcheck disable=SC2086
expect 0 "$ONX" $train --validation 0.2 --epochs 150 --log killed.jsonl -o killed.onnx --checkpoint state.onnx --resume
same whole.onnx killed.onnx
for log in whole killed; do
    sed 's/, "seconds.*//' $log.jsonl >$log.log
done
same whole.log killed.log
# shellcheck disable=SC2086
expect 0 "$ONX" $train --validation 0.2 --epochs 7 -o x.onnx --checkpoint state.onnx --resume --seed 9 --batch 8
says err "with other options"
says err "in batches of 32"
expect 0 "$ONX" train m.textproto --data d --set rate=0.1 --epochs 2 --log curve.csv --checkpoint other.state
[ "$(head -n 1 curve.csv)" = "epoch,loss,validation,seconds" ] || fail "curve.csv: $(head -n 1 curve.csv)"
[ "$(wc -l <curve.csv)" -eq 3 ] || fail "curve.csv has not 3 lines"
sed 's/op_type: "Mul" input: "e" input: "e"/op_type: "Mul" input: "e" input: "s2"/; s/node { op_type: "ReduceMean"/node { op_type: "Identity" input: "e" output: "s2" } &/' m.textproto >changed.textproto
expect 1 "$ONX" train changed.textproto --data d --set rate=0.1 -o x.onnx --checkpoint state.onnx --resume
says err "contains another model"
cp m.textproto plain.textproto
expect 1 "$ONX" train m.textproto --data d --set rate=0.1 -o x.onnx --checkpoint plain.textproto --resume
says err "is not a checkpoint"
expect 2 "$ONX" train m.textproto --data d --set rate=0.1 -o x.onnx --checkpoint x.onnx
expect 2 "$ONX" train m.textproto --data d --set rate=0.1 -o m.textproto --checkpoint d/x.npy

# ---- schedules and stopping
expect 0 "$ONX" train m.textproto --data d --set rate=0.1 --schedule rate=cosine --epochs 5 -o cosine.onnx
expect 0 "$ONX" train m.textproto --data d --set rate=0.1 --schedule rate=step --epochs 5 -o step.onnx
expect 0 "$ONX" train m.textproto --data d --set rate=0.1 --schedule rate=constant --epochs 5 -o constant.onnx
expect 0 "$ONX" train m.textproto --data d --set rate=0.1 --epochs 5 -o none.onnx
same constant.onnx none.onnx
cmp -s cosine.onnx none.onnx && fail "cosine changes nothing"
cmp -s cosine.onnx step.onnx && fail "cosine and step are the same"
expect 0 "$ONX" train m.textproto --data d --set rate=0 --epochs 9 --patience 2 -o x.onnx
says out "no improvement for 2 epochs"
[ "$(grep -c ^epoch out)" -eq 3 ] || fail "stopped late: $(cat out)"

# ---- a loss that is not finite
rm -f nan.onnx
expect 1 "$ONX" train m.textproto --data d --set rate=1e30 --epochs 5 -o nan.onnx
grep -qE "the loss is (NaN|infinite)" err || fail "NaN is not said: $(cat err)"
expect 1 "$ONX" train m.textproto --data d --set rate=1.7 --epochs 500 --batch 200 -o nan.onnx
grep -qE "the loss is (NaN|infinite) in epoch [0-9]+" err || fail "NaN is not said: $(cat err)"
says err "nan.onnx has the last complete epoch"
expect 0 "$ONX" run nan.onnx -i x='[[1,0]]'
grep -qi nan out && fail "the last good state is none"

# ---- memory that runs out in the middle: a step that takes 400 kB more each time, 7 steps to an epoch
sed 's/input: "s" output: "loss"/input: "s" output: "mean"/
    s/    node { op_type: "Gradient"/    node { op_type: "Mul" input: "n" input: "many" output: "count" } \
    node { op_type: "ConstantOfShape" input: "count" output: "zeros" } \
    node { op_type: "ReduceSum" input: "zeros" output: "none" attribute { name: "keepdims" type: INT i: 0 } } \
    node { op_type: "Add" input: "mean" input: "none" output: "loss" } \
&/
    s/    initializer { data_type: 7 name: "one"/    initializer { dims: 1 data_type: 7 name: "many" int64_data: 100000 }\n&/' m.textproto >grows.textproto
expect 0 "$ONX" check --full grows.textproto
grown="train grows.textproto --data d --set rate=0.1 --threads 1 --shuffle --validation 0"
# shellcheck disable=SC2086
expect 1 "$ONX" $grown --epochs 50 -o short.onnx --checkpoint short.state --log short.jsonl --max-memory 8M
says err "max-memory SIZE raises the limit" # whichever piece of memory was the last
says err "short.onnx has the last complete epoch"
complete=$(grep -c ^epoch out)
[ "$complete" -ge 2 ] && [ "$complete" -lt 50 ] || fail "memory ran out after $complete epochs"
[ "$(wc -l <short.jsonl)" -eq "$complete" ] || fail "the log has other epochs: $(cat short.jsonl)"
# shellcheck disable=SC2086
expect 0 "$ONX" $grown --epochs "$complete" -o enough.onnx
same enough.onnx short.onnx
# and with enough memory it goes on as if nothing had been
# shellcheck disable=SC2086
expect 0 "$ONX" $grown --epochs $((complete + 2)) -o resumed.onnx --checkpoint short.state --resume
# shellcheck disable=SC2086
expect 0 "$ONX" $grown --epochs $((complete + 2)) -o enough.onnx
same enough.onnx resumed.onnx

# ---- sizes
model fixed.textproto 'dim_value: 30'
expect 0 "$ONX" train fixed.textproto --data d --set rate=0.1 --epochs 2 -o x.onnx
expect 2 "$ONX" train fixed.textproto --data d --set rate=0.1 --batch 32 -o x.onnx
says err "takes batches of 30"
model large.textproto 'dim_value: 300'
expect 1 "$ONX" train large.textproto --data d --set rate=0.1 -o x.onnx
says err "too few"
expect 0 "$ONX" train m.textproto --data d --data d --set rate=0.1 --epochs 1 --batch 400 -o x.onnx
expect 0 "$ONX" train m.textproto --data d --set rate=0.1 --epochs 1 --batch 1 -o x.onnx

# ---- what cannot be
refused() { # STATUS TEXT ARGUMENT...
    wanted_status=$1 text=$2
    shift 2
    rm -f x.onnx
    expect "$wanted_status" "$ONX" train "$@"
    says err "$text"
    [ ! -e x.onnx ] || fail "a file was written: $*"
}
# array FILE SHAPE COUNT [TYPE]: zeros of four bytes
array() {
    printf '\223NUMPY\001\000\166\000' >"$1"
    printf '%-117s\n' "{'descr': '${4-<f4}', 'fortran_order': False, 'shape': ($2)}" >>"$1"
    head -c "$(($3 * 4))" /dev/zero >>"$1"
}
mkdir empty few wide ints alone scalar
array empty/x.npy 0,2 0
array empty/t.npy 0,1 0
array few/x.npy 5,2 10
array few/t.npy 4,1 4
array wide/x.npy 5,3 15
array wide/t.npy 5,1 5
array ints/x.npy 5,2 10 '<i4'
array ints/t.npy 5,1 5
array alone/x.npy 5,2 10
array scalar/x.npy '' 1
mkdir nothing others
array others/z.npy 5,2 10
refused 2 "samples with --data" m.textproto -o x.onnx
refused 2 "say where" m.textproto --data d --set rate=0.1
refused 2 'the input "rate" has no value' m.textproto --data d -o x.onnx
refused 2 'the input "t" has no value' m.textproto --data alone --set rate=0.1 -o x.onnx
refused 2 'no input "nope"' m.textproto --data d --set nope=1 -o x.onnx
refused 2 'no input "w"' m.textproto --data d --set rate=1 --set w=1 -o x.onnx
refused 2 "twice" m.textproto --data d --set rate=1 --set rate=1 -o x.onnx
refused 2 "also given by --set" m.textproto --data d --set rate=1 --set x=1 -o x.onnx
refused 2 "--set rate" m.textproto --data d --set rate=fast -o x.onnx
refused 1 "contain no samples" m.textproto --data empty --set rate=0.1 -o x.onnx
refused 1 'there are 5 samples of "x" but 4 of "t"' m.textproto --data few --set rate=0.1 -o x.onnx
refused 1 "is 3 along axis 1, where the input needs 2" m.textproto --data wide --set rate=0.1 -o x.onnx
refused 1 "has element type int32, but the input needs float" m.textproto --data ints --set rate=0.1 -o x.onnx
refused 1 "without a first axis" m.textproto --data scalar --set rate=0.1 -o x.onnx
refused 2 "no array is named like an input" m.textproto --data nothing --set rate=0.1 -o x.onnx
refused 2 "no array is named like an input" m.textproto --data others --set rate=0.1 -o x.onnx
refused 2 "come from" m.textproto --data m.textproto --set rate=0.1 -o x.onnx
refused 2 "none" m.textproto --data none --set rate=0.1 -o x.onnx
refused 2 "--entry 1" m.textproto --data d --set rate=0.1 --entry 1 -o x.onnx
refused 2 "no output" m.textproto --data d --set rate=0.1 --loss nope -o x.onnx
refused 1 "not a scalar" m.textproto --data d --set rate=0.1 --loss y -o x.onnx
refused 2 "the schedule has to be" m.textproto --data d --set rate=0.1 --schedule rate=up -o x.onnx
refused 2 "a start value with --set" m.textproto --data d --set rate=0.1 --schedule x=cosine -o x.onnx
refused 2 "--validation" m.textproto --data d --set rate=0.1 --validation 1 -o x.onnx
refused 2 "--checkpoint" m.textproto --data d --set rate=0.1 --resume -o x.onnx
refused 2 "the log has to be" m.textproto --data d --set rate=0.1 --log log.txt -o x.onnx
refused 2 "has to be a file" m.textproto --data d --set rate=0.1 --validation 0.5 -o -
refused 2 "no training information" draw_x.onnxtxt --data d -o x.onnx
says err "onx trainable"
array huge.npy '4294967297, 0' 0
mkdir huge
mv huge.npy huge/x.npy
refused 1 "x" m.textproto --data huge --set rate=0.1 -o x.onnx
# Labels that are no classes, above and below.
cat >classes.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 18]>
g (float[N,2] x) => (float[N,3] y) <float[2,3] w = {1, 2, 3, 4, 5, 6}> { y = MatMul (x, w) }
END
expect 0 "$ONX" trainable classes.onnxtxt -o classes.onnx
mkdir high low
array high/x.npy 2,2 4
array low/x.npy 2,2 4
array high/label.npy 2, 0 '<i8'
cp high/label.npy low
printf '\002\000\000\000\000\000\000\000\003\000\000\000\000\000\000\000' >>high/label.npy
printf '\002\000\000\000\000\000\000\000\377\377\377\377\377\377\377\377' >>low/label.npy
refused 1 "label 3 of element 1 is none of 3 classes" classes.onnx --data high -o x.onnx
# Narrower integers are numbers of the class, too; wider ones and floats are none.
mkdir narrow
for type in '<i4 4' '|u1 1'; do
    array narrow/x.npy 2,2 4
    array narrow/label.npy 2, 0 "${type% *}"
    head -c $((2 * ${type#* })) /dev/zero >>narrow/label.npy
    expect 0 "$ONX" train classes.onnx --data narrow --epochs 1 -o x.onnx
    [ ! -s err ] || fail "labels of ${type% *}: $(cat err)"
done
array narrow/label.npy 2, 2 '<f4'
refused 1 '"label" has element type float, but the input needs int64' classes.onnx --data narrow -o x.onnx
array narrow/label.npy 2, 4 '<u8'
refused 1 '"label" has element type uint64, but the input needs int64' classes.onnx --data narrow -o x.onnx
refused 1 "label -1 of element 1 is none of 3 classes" classes.onnx --data low -o x.onnx
sed 's/key: "b" value: "b_new"/key: "nope" value: "b_new"/' m.textproto >names.textproto
refused 1 "nope" names.textproto --data d --set rate=0.1 -o x.onnx
sed 's/key: "b" value: "b_new"/key: "b" value: "nope"/' m.textproto >names.textproto
refused 1 "nope" names.textproto --data d --set rate=0.1 -o x.onnx
sed 's/key: "b" value: "b_new"/key: "w" value: "w_new"/' m.textproto >names.textproto
refused 1 "w" names.textproto --data d --set rate=0.1 -o x.onnx
sed 's/key: "b" value: "b_new"/key: "b" value: "w_new"/' m.textproto >names.textproto
refused 1 "shape" names.textproto --data d --set rate=0.1 -o x.onnx

# ---- archives
"$ONX" help --libraries | grep -q '^libzip .*[0-9]' || done_testing
cat >draw.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[200,2] x0, float[200,1] t0) => (float[200,2] x, float[200,1] t, float[200,2] more) { x = Identity (x0)  t = Identity (t0)  more = Neg (x0) }
END
expect 0 "$ONX" run draw.onnxtxt -i x0=d/x.npy -i t0=d/t.npy -o all.npz
# shellcheck disable=SC2086
expect 0 "$ONX" train m.textproto --data all.npz --set rate=0.1 --threads 1 --shuffle --seed 5 --epochs 4 -o c.onnx
says err 'no input is named "more"'
same a.onnx c.onnx
head -c 900 all.npz >cut.npz
refused 1 "cut.npz" m.textproto --data cut.npz --set rate=0.1 -o x.onnx

# ---- what a step takes: by operator and by node, and as a trace; the values are those that training gives without.
expect 0 "$ONX" train m.textproto --data d --set rate=0.1 --keep --epochs 3 --batch 50 -o unprofiled.onnx
expect 0 "$ONX" train m.textproto --data d --set rate=0.1 --keep --epochs 3 --batch 50 -o profiled.onnx --profile --trace t.json
says out 'operator             '
says out 'ReduceMean'
says out 'mean of 11 warm runs'
says t.json '"traceEvents"'
same unprofiled.onnx profiled.onnx
expect 0 "$ONX" train m.textproto --data d --set rate=0.1 --keep --epochs 1 --batch 200 -o profiled.onnx --profile
says err 'only full batches after the first step are measured'
expect 2 "$ONX" train m.textproto --data d --set rate=0.1 --keep -o profiled.onnx --trace t.json
says err 'trace needs --profile'
expect 2 "$ONX" train m.textproto --data d --set rate=0.1 --keep --evaluate --profile
says err 'measures training steps'
expect 2 "$ONX" train m.textproto --data d --set rate=0.1 --keep --profile -o -
says err 'standard output'
done_testing

# Inputs of commands that run models: files, folders, archives, values on the command line, random ones.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cat >model.onnxtxt <<'E'
<ir_version: 10, opset_import: ["" : 21]>
g (float[N,3] x, int64[1] rate, string text, int4[M] small, bool flag, uint64 big)
=> (float[N,3] y, int64[1] r, string t, int8[M] s, bool f, uint64 b) {
  y = Identity (x)  r = Identity (rate)  t = Identity (text)  s = Cast <to = 3> (small)  f = Identity (flag)  b = Identity (big)
}
E
run() { "$ONX" run model.onnxtxt "$@"; }

# ---- values on the command line
expect 0 run -i 'x=[[1,2,3],[4,5,-6e2]]' -i rate=16000 -i 'text=a=b c' -i 'small=[-8, 7, 1]' -i flag=true -i big=18446744073709551615
says out "y  float[2,3] 1 2 3 4"
says out "min -600"
says out "r  int64[1] 16000"
says out 't  string[] "a=b c"'
says out "s  int8[3] -8 7 1"
says out "uint64[] 18446744073709551615"
expect 0 run --random -i 'text="say \"\u00e9\ud83d\ude00\""'
says out 't  string[] "say "é😀""'
expect 0 run --random -i x=1 --shape x=0x3
expect 0 run --random -i x=7 --shape x=2x3
says out "y  float[2,3] 7 7 7 7 ..."
says out "min 7, max 7"
expect 0 run --random -i 'x=[[nan, -inf, Infinity]]'
says out "float[1,3] nan -inf inf"
for bad in 'x=[[1,2,3],[4,5]]' 'x=[1,[2]]' 'x=[[1],2]' 'x=[1' 'x=[1,]' 'x=[,]' 'x=[1 2]' 'x=[1]]' 'x=[0x10]' 'x=[nan(1)]' 'x=[1e999]' \
    'x=["a"]' 'x="a"' 'rate=1.5' 'rate=9223372036854775808' 'rate=[-9223372036854775809]' 'small=[8]' 'small=[-9]' 'flag=2' 'flag=nan' \
    'big=-1' 'big=18446744073709551616' 'text=["a" "b"]' 'text="a' 'text="\u12"' 'text="\ud800"' 'text="\q"' 'text=[1]' 'text=[true]' 'x=' \
    'x=[--1]' 'x=[+]' 'x=[.]' 'x=[truefalse]' 'x=[-true]'; do
    expect 2 run --random -i "$bad"
    says err "error: "
    [ "$(grep -c "error:" err)" -eq 1 ] || fail "-i $bad is said more than once"
done
deep=$(printf '[%.0s' $(seq 1 500))
expect 2 run --random -i "x=$deep"
says err "nest too deeply"
# a long list is read in linear time
i=0
{
    printf '['
    while [ $i -lt 40000 ]; do
        printf '[1,2,3],[4,-5,6.5],[1e-3,7,8],[9,1,2],[nan,0,1],'
        i=$((i + 1))
    done
    printf '[0,0,0]]'
} >long.json
expect 0 timeout 60 "$ONX" run model.onnxtxt --random -i x=long.json
says out "float[200001,3] 1 2 3 4"
echo '[[1,2,3],[4,5' >cut.json
expect 1 run --random -i x=cut.json
says err "cut.json"
echo '{"dims": ["2", "3"], "data_type": 1, "float_data": [1, 2, 3, 4, 5, 6]}' >message.json
expect 0 run --random -i x=message.json
says out "y  float[2,3] 1 2 3 4"

# ---- names
expect 2 run --random -i z=1
says err 'no input "z"'
says err "hint: the inputs are x, rate, text, small, flag, big"
expect 2 run --random -i 1
expect 2 run --random -i none
cat >names.onnxtxt <<'E'
<ir_version: 10, opset_import: ["" : 21]>
g (float[1] "a=b", float[1] a) => (float[1] y, float[1] z) { y = Identity ("a=b")  z = Identity (a) }
E
expect 0 "$ONX" run names.onnxtxt -i a=b=1 -i a=2
says out "y  float[1] 1"
says out "z  float[1] 2"

# ---- made up
expect 0 run --shape x=4x3 --range x=5:6 --range rate=100:102 --shape 'small=[5]' --random
says err "made up: x float[4,3], 5 to 6"
says err "made up: small int4[5]"
says out "y  float[4,3] 5."
expect 0 run --random --shape x=4,3
cp out first
expect 0 run --random --shape x=4x3 --seed 0
same first out
expect 0 run --random --shape x=4x3 --seed 1
cmp -s first out && fail "--seed changes nothing"
expect 0 run --random -i 'x=[[1,2,3],[1,2,3]]' # and what is given says how large a symbol is
cat >same.onnxtxt <<'E'
<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x, float[N] y) => (float[N] z) { z = Add (x, y) }
E
expect 0 "$ONX" run same.onnxtxt --random -i 'x=[1,2,3]'
says out "z  float[3]"
expect 0 "$ONX" run same.onnxtxt --random --shape y=5
says out "z  float[5]"
for bad in x=4x2 x=4 x= x=4x x=x4 x=-1x3 x=4x3x 'x=[4x3' x=4y3 z=4 4x3 x=99999999999999999999x3 x=4.5x3 "rate=[]"; do
    expect 2 run --random --shape "$bad"
    says err "error: "
done
expect 1 run --random --shape x=9223372036854775807x3
says err 'input "x"'
says err "float[9223372036854775807,3]"
expect 2 "$ONX" run same.onnxtxt --random --dim N=4 --shape x=5
says err "dimension 0, N is 4"
expect 2 "$ONX" run same.onnxtxt --random --shape x=5 --shape y=4
expect 2 run --random --shape x=4x3 --shape x=4x3
says err "given twice"
for bad in x=2:1 x=1 x=: x=1: x=:1 x=a:b x=nan:1 x=0:inf x=0x1:2 x=1:2:3 0:1 small=0:8 big=-1:5 flag=0:2 rate=0.2:0.8 text=0:1; do
    expect 2 run --random --range "$bad"
    says err "range"
done
expect 2 run --random --range z=0:1
says err 'no input "z"'
expect 2 run --random -i rate=3 --range rate=0:5
says err "is given"

# a dimension that is declared as a number below 0 has no name and no size
echo '<ir_version: 7, opset_import: ["" : 13]> g (float[-1,3,-4] x) => (float[?,3,?] y) { y = Relu (x) }' >below.onnxtxt
expect 0 "$ONX" run below.onnxtxt --random
says out "y  float[1,3,1]"
expect 0 "$ONX" run below.onnxtxt --random --profile --threads 1
expect 0 "$ONX" run below.onnxtxt -i 'x=[[[1],[2],[3]],[[1],[2],[3]]]' --profile
expect 0 "$ONX" bench below.onnxtxt --seconds 0

# ---- all inputs from one place
mkdir set
expect 0 run --random -o made
for i in 0 1 2 4 5; do cp made/output_$i.pb set/input_$i.pb; done
expect 2 run -i set
says err 'input "small" is not given'
cp made/output_3.pb set/input_3.pb
expect 0 "$ONX" run same.onnxtxt --random -o pair
mkdir empty two
expect 2 run --random -i empty
says err "the folder contains no input_0.pb"
cp pair/output_0.pb two/input_0.pb
expect 0 "$ONX" run same.onnxtxt --random -o pair --npy
cp pair/output_0.npy two/input_1.npy
expect 0 "$ONX" run same.onnxtxt -i two
cp pair/output_0.npy two/input_2.npy
expect 1 "$ONX" run same.onnxtxt -i two
says err "the model has only 2 inputs"
echo garbage >two/input_0.pb
expect 1 "$ONX" run same.onnxtxt -i two
says err "two/input_0.pb"
cp "$ONX_SOURCE_DIR/fuzz/corpora/npy/stored" stored.npz
cat >one.onnxtxt <<'E'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,3] y) { y = Identity (x) }
E
if "$ONX" run one.onnxtxt -i stored.npz >out 2>err; then
    says out "y  float[2,3]"
else
    says err "needs libzip"
fi
expect 2 "$ONX" run one.onnxtxt -i none.npz
says err "none.npz"
expect 1 "$ONX" run one.onnxtxt -i x=two/input_0.pb

# ---- the same words for bench
expect 0 "$ONX" bench same.onnxtxt --seconds 0 -i 'x=[1,2,3]' --range y=0:1
says err "made up: y float[3], 0 to 1"
expect 2 "$ONX" bench same.onnxtxt --seconds 0 -i z=1
done_testing

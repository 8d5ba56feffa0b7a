# onx run, bench and test: --timeout and --max-iterations end runs that would not end, and the error names the option.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cat >endless.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g () => (float[1] y) <bool c = {1}, float[1] a = {0}> {
  y = Loop("", c, a)<body = b (int64 i, bool go, float[1] v) => (bool on, float[1] w) { on = Identity(go) w = Neg(v) }>
}
END
# a body without any node
cat >empty.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g () => (float[1] y) <bool c = {1}, float[1] a = {0}> {
  y = Loop("", c, a)<body = b (int64 i, bool go, float[1] v) => (bool go, float[1] v) { }>
}
END
for model in endless empty; do
    for threads in 1 2; do
        expect 1 timeout 120 "$ONX" run $model.onnxtxt --random --timeout 0.2 --threads $threads
        says err "graph.node[0] (Loop)"
        says err "this takes longer than 0.2 s (limit timeout)"
        says err "hint: --timeout SECONDS"
    done
    expect 1 timeout 120 "$ONX" run $model.onnxtxt --random --max-iterations 1000
    says err "graph.node[0] (Loop): error: the run enters subgraphs more than 1000 times (limit iterations)"
    says err "hint: --max-iterations N"
    expect 1 timeout 120 "$ONX" bench $model.onnxtxt --timeout 0.2
    expect 1 timeout 120 "$ONX" bench $model.onnxtxt --max-iterations 1000
done

# one node whose work is large, and the same of constants, which is done while the session is made
cat >large.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g (float[N, N] x) => (float[N, N] y) { y = MatMul(x, x) }
END
cat >constant.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g () => (float[n, n] y) <int64[2] n = {5000, 5000}> {
  x = ConstantOfShape(n)
  e = Exp(x)
  y = MatMul(e, e)
}
END
expect 1 env ONX_KERNELS=plain timeout 120 "$ONX" run large.onnxtxt --random --dim N=5000 --timeout 0.1 --threads 1
says err "(limit timeout)"
expect 1 env ONX_KERNELS=plain timeout 120 "$ONX" run constant.onnxtxt --timeout 0.1 --threads 1
says err "(limit timeout)"

# and so is a kernel whose row of work alone takes longer: each of these took seconds, and its success came too late
single() { # NODE INPUTS...
    node=$1
    shift
    printf '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>\ng (%s) => (%s) { %s }\n' "$1" "$2 y" "$node" >single.onnxtxt
    expect 1 timeout 120 "$ONX" run single.onnxtxt --random --timeout 0.2 --threads 1
    says err "(limit timeout)"
}
single 'm = Constant <value_int = 12000> () i = Constant <value_float = 0.99> () y = NonMaxSuppression (b, s, m, i)' \
    'float[1,12000,4] b, float[1,40,12000] s' 'int64[?,?]'
single 'y = LpPool <kernel_shape = [400, 400], p = 3> (x)' 'float[1,1,1500,1500] x' 'float[?,?,?,?]'
single 'b = Constant <value_ints = [0]> () y = RoiAlign <output_height = 100, output_width = 100, sampling_ratio = 300> (x, r, b)' \
    'float[1,1,9,9] x, float[1,4] r' 'float[?,?,?,?]'
single 'y = DFT (x)' 'float[1,3000017,2] x' 'float[?,?,?]'
single 'y = Det (x)' 'double[1500,1500] x' 'double'
! "$ONX" ops --domain com.microsoft >/dev/null 2>&1 || single 'y = com.microsoft.Inverse (x)' 'float[1500,1500] x' 'float[?,?]'
single 'y = LSTM <hidden_size = 256> (x, w, r)' 'float[20000,1,32] x, float[1,1024,32] w, float[1,1024,256] r' 'float[?,?,?,?]'
single 'y = RandomNormal <shape = [8000, 8000]> ()' '' 'float[?,?]'
single 'y = Relu (x)' 'float[20000,5000] x' 'float[?,?]' # making it up takes longer

# words of the environment that nobody knows are refused, and what is empty is not there
expect 2 env ONX_KERNELS=fast "$ONX" run large.onnxtxt --random --dim N=5
says err 'ONX_KERNELS in the environment has to be "plain" or unset, not "fast"'
expect 2 env ONX_ISA=avx2 "$ONX" run large.onnxtxt --random --dim N=5
says err 'ONX_ISA in the environment has to be base, v3, v4, vnni, bf16, amx or unset, not "avx2"'
expect 0 env ONX_KERNELS= ONX_ISA= "$ONX" run large.onnxtxt --random --dim N=5

# what stays below its limits is not disturbed
cat >ends.onnxtxt <<'END'
<ir_version: 10, opset_import: ["": 21]>
g () => (float[1] y) <bool c = {1}, float[1] a = {0}, int64 n = {100}> {
  y = Loop(n, c, a)<body = b (int64 i, bool go, float[1] v) => (bool on, float[1] w) { on = Identity(go) w = Neg(v) }>
}
END
expect 0 "$ONX" run ends.onnxtxt --random --max-iterations 100 --timeout 20
expect 1 "$ONX" run ends.onnxtxt --random --max-iterations 99

# onx test
mkdir -p case/test_data_set_0
"$ONX" convert endless.onnxtxt case/model.onnx
"$ONX" run ends.onnxtxt --random --output-dir case/test_data_set_0
expect 1 timeout 120 "$ONX" test case --timeout 0.2
says out "(limit timeout)"
expect 1 timeout 120 "$ONX" test case --max-iterations 10
says out "(limit iterations)"

for wrong in 0 -1 x 1e10 1x ''; do
    expect 2 "$ONX" run ends.onnxtxt --random --timeout "$wrong"
    says err "error: --timeout "
done
expect 2 "$ONX" run ends.onnxtxt --random --max-iterations 0
done_testing

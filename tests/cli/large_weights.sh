# Commands that change models, with a gigabyte of weights in another file, which are never in memory: the process may use 100 MB
# of memory of its own.
. "$ONX_SOURCE_DIR/tests/lib.sh"
(ulimit -d 102400 && exec "$ONX" --version) >/dev/null 2>&1 || skip "memory cannot be limited here, or a sanitizer needs more"

# 16 weights of 4096 x 4096 floats in a sparse file with a few nonzero elements
awk 'BEGIN {
    print "ir_version: 10 opset_import { version: 21 } graph { name: \"g\""
    for (i = 0; i < 16; i++) {
        printf "node { op_type: \"MatMul\" input: \"%s\" input: \"w%d\" output: \"h%d\" }\n", i ? "h" i - 1 : "x", i, i
        printf "initializer { name: \"w%d\" data_type: 1 dims: 4096 dims: 4096 data_location: EXTERNAL", i
        printf " external_data { key: \"location\" value: \"w.data\" } external_data { key: \"offset\" value: \"%d\" }", i * 67108864
        printf " external_data { key: \"length\" value: \"67108864\" } }\n"
    }
    print "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } dim { dim_value: 4096 } } } } }"
    print "output { name: \"h15\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } dim { dim_value: 4096 } } } } } }"
}' >big.textproto
truncate -s 1073741824 w.data
for at in 0 100000 67108864 500000000 1073741820; do
    printf '\000\000\200\077' | dd of=w.data bs=4 seek=$((at / 4)) conv=notrunc 2>/dev/null
done
expect 0 "$ONX" convert big.textproto big.onnx
small() { # COMMAND...
    (ulimit -d 102400 && exec "$ONX" "$@") >out 2>err || fail "$*: $(cat err)"
}
limited() { # SIZE COMMAND...: of the data that comes out
    size=$1
    shift
    rm -f out.onnx out.onnx.data
    small "$@" big.onnx -o out.onnx
    [ "$(wc -c <out.onnx.data)" -ge "$size" ] || fail "$*: too little data"
    expect 0 "$ONX" check --full out.onnx
}
# Those that leave weights as they are go on referring to the file that has them.
shared() { # COMMAND...
    rm -f out.onnx out.onnx.data
    small "$@" big.onnx -o out.onnx
    [ -e out.onnx.data ] && fail "$*: weights were copied"
    [ "$(wc -c <out.onnx)" -lt 100000 ] || fail "$*: weights were copied into the model"
    expect 0 "$ONX" check --full out.onnx
}
limited 536870912 precision --to float16
limited 536870912 precision --to bfloat16 --keep-io
limited 268435456 quantize --mode weights
limited 134217728 quantize --mode weights --weight-type int4
limited 134217728 quantize --mode weights --weight-type int4 --block-size 128
limited 268435456 quantize --mode dynamic
limited 67108864 compress
shared retarget --opset 13
shared retarget --opset 28
shared simplify
shared extract --outputs h7
shared edit --batch 2 --rename 'h*=layer*' --strip doc
shared inline --schema
shared outline
# Runs use weights where they lie, too, before and after a change, and for each node that stays.
small run big.onnx --random --lean-memory --threads 1
limited 268435456 quantize --mode static --form qlinear --calibrate entropy --samples 2 --threads 1
limited 268435456 quantize --mode static --samples 1 --table --threads 1
limited 134217728 quantize --mode weights --weight-type int4 --samples 1 --max-error 0.5 --threads 1
limited 268435456 precision --to bfloat16 --samples 1 --max-error 0.01 --threads 1
rm out.onnx out.onnx.data
small extract big.onnx --split 2 -o part.onnx
small merge part.1.onnx part.2.onnx -o out.onnx
[ -e out.onnx.data ] && fail "merge: weights were copied"
expect 0 "$ONX" check --full out.onnx
done_testing

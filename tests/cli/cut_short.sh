# A file that another process truncates while it is read: reported with its name and the byte, never a signal.
. "$ONX_SOURCE_DIR/tests/lib.sh"
[ -r /proc/self/maps ] || skip "/proc/self/maps is not there: it says which file it was"

# Half a megabyte of weights, so that a pipe does not buffer all of it.
awk 'BEGIN {
    print "ir_version: 8 opset_import { version: 17 } graph { name: \"g\""
    print "node { op_type: \"Mul\" input: \"x\" input: \"w\" output: \"y\" }"
    print "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 131072 } } } } }"
    print "output { name: \"y\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 131072 } } } } }"
    print "initializer { name: \"w\" dims: 131072 data_type: 1"
    for (i = 0; i < 131072; i++) print "float_data: 1.5"
    print "} }"
}' >model.textproto
expect 0 "$ONX" convert model.textproto whole.onnx

cut_short_is_said() { # byte from, byte to
    says err "/mapped.onnx: byte "
    says err "error: the file was cut short while it was read"
    byte=$(sed -n 's/.*: byte \([0-9]*\): error.*/\1/p' err)
    if [ "${byte:-0}" -lt "$1" ] || [ "${byte:-0}" -ge "$2" ]; then
        fail "byte ${byte:-?} is not from $1 to $2"
    fi
    [ "$(wc -l <err)" -eq 1 ] || fail "more is said than one line"
}

# ---- between mapping and comparing: `diff` has mapped the first file when it begins to read the second
cat >compare.sh <<'END'
cp whole.onnx mapped.onnx
{ cat whole.onnx; truncate -s 65536 mapped.onnx; } | "$ONX" diff mapped.onnx -
END
expect 2 sh compare.sh
cut_short_is_said 65536 600000

# ---- between mapping and running: the model is mapped when its input is read
awk 'BEGIN {
    print "name: \"x\" dims: 131072 data_type: 1"
    for (i = 0; i < 131072; i++) print "float_data: 2"
}' >x.textproto
expect 0 "$ONX" convert --as tensor x.textproto x.pb
cat >run.sh <<'END'
cp whole.onnx mapped.onnx
{ cat x.pb; truncate -s 65536 mapped.onnx; } | "$ONX" run mapped.onnx --input x=-
END
expect 2 sh run.sh
cut_short_is_said 65536 600000

# ---- while it is written: the system copies what is mapped, and refuses
cat >write.sh <<'END'
cp whole.onnx mapped.onnx
{ "$ONX" convert mapped.onnx -; echo $? >status; } | { head -c 1000 >/dev/null; truncate -s 65536 mapped.onnx; cat >/dev/null; }
END
expect 0 sh write.sh
[ "$(cat status)" = 2 ] || fail "exit status $(cat status), expected 2"
says err "cannot write standard output: a file that is being read was cut short"

# ---- and into data files: the program ends by itself, and leaves nothing behind. The checksum reads what is mapped.
awk 'BEGIN {
    print "ir_version: 8 opset_import { version: 17 } graph { name: \"g\""
    for (i = 0; i < 300; i++) {
        printf "initializer { name: \"w%d\" dims: 524288 data_type: 2 data_location: EXTERNAL ", i
        print "external_data { key: \"location\" value: \"data.bin\" } }"
    }
    print "}"
}' >external.textproto
mkdir target
ended=0
for wait in 0.02 0.05 0.1 0.2 0.4; do
    head -c 524288 /dev/urandom >data.bin
    { sleep $wait; truncate -s 0 data.bin; } &
    "$ONX" convert external.textproto target/m.onnx --external w/ --external-per-tensor --checksum >out 2>err
    status=$?
    wait
    [ $status -eq 0 ] || ended=$((ended + 1))
    [ -z "$(find target -name '.*.tmp')" ] || fail "$(find target -name '.*.tmp' | wc -l) files were left, exit status $status"
    [ $status -ne 139 ] && [ $status -ne 135 ] || fail "exit status $status"
    rm -rf target/*
done
[ $ended -gt 0 ] || echo "writing was always done before the data was cut short"

# ---- a name that would do something to a terminal, and one whose folder is gone
cp whole.onnx "$(printf 'loud\033[31m.onnx')"
cat >loud.sh <<'END'
{ cat whole.onnx; truncate -s 0 loud*.onnx; } | "$ONX" diff loud*.onnx -
END
expect 2 sh loud.sh
says err '/loud\x1b[31m.onnx: byte '
mkdir gone
cat >gone.sh <<'END'
cp whole.onnx gone/mapped.onnx
exec 3<>gone/mapped.onnx
{ cat whole.onnx; rm -r gone; truncate -s 0 /proc/self/fd/3; } | "$ONX" diff gone/mapped.onnx -
END
expect 2 sh gone.sh
says err '/gone/mapped.onnx (deleted): byte '

done_testing

# Invalid files, full disks, killed programs: the old file stays intact.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >small.textproto <<'END'
ir_version: 8
opset_import { version: 17 }
graph {
  name: "g"
  node { op_type: "Identity" input: "w" output: "y" }
  initializer { dims: 2 data_type: 1 name: "w" float_data: 1 float_data: 2 }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
}
END
expect 0 "$ONX" convert small.textproto small.onnx

# ---- what is no regular file is refused, and nothing waits
mkdir folder.onnx
mkfifo pipe.onnx
for name in folder.onnx /dev/zero /dev/tty none.onnx; do
    expect 2 timeout 20 "$ONX" info "$name"
    says err "$name"
done
expect 2 "$ONX" info folder.onnx
says err "a directory"
# ---- FIFOs that are named are read to their end; those found in a folder are not waited for
cat small.onnx >pipe.onnx &
expect 0 timeout 20 "$ONX" info pipe.onnx
says out "Identity"
wait
cat small.textproto >pipe.onnx &
expect 1 timeout 20 "$ONX" info pipe.onnx # which is what the name does not say
wait
: >pipe.onnx &
expect 1 timeout 20 "$ONX" run pipe.onnx
wait
mkfifo text
cat small.textproto >text &
expect 0 timeout 20 "$ONX" run text
wait
mkdir -p case/test_data_set_0
mkfifo case/model.onnx
"$ONX" run small.onnx -o case/test_data_set_0 >/dev/null || fail "run"
expect 1 timeout 20 "$ONX" test case
says out "a FIFO"
expect 2 timeout 20 "$ONX" check case
rm case/model.onnx
cp small.onnx case/model.onnx
rm case/test_data_set_0/*
mkfifo case/test_data_set_0/output_0.pb
expect 1 timeout 20 "$ONX" test case

# ---- standard input is read once
for call in "diff - -" "check - -"; do
    # shellcheck disable=SC2086
    expect 2 "$ONX" $call <small.onnx
    says err "standard input is named twice"
done
echo '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Neg (x) }' >x.onnxtxt
expect 2 "$ONX" run - -i x=- <x.onnxtxt
says err "standard input is named twice"
expect 2 "$ONX" info /dev/null
says err "a character device"
expect 2 "$ONX" convert small.onnx folder.onnx
says err "a directory"
expect 2 "$ONX" convert small.onnx none/out.onnx
says err "none/out.onnx"
expect 0 sh -c "cat small.onnx | '$ONX' info -"
expect 0 sh -c "'$ONX' info - <small.onnx"

# ---- permission
chmod 000 small.onnx
if [ "$(id -u)" -ne 0 ]; then
    as=
elif command -v setpriv >/dev/null && setpriv --reuid=65534 --clear-groups "$ONX" --version >/dev/null 2>&1; then
    as="setpriv --reuid=65534 --clear-groups"
else
    as=none
    echo "permission is not tested: root may do everything, and there is no setpriv"
fi
if [ "$as" != none ]; then
    chmod 755 .
    expect 2 $as "$ONX" info "$here/small.onnx"
    says err "Permission denied"
fi
chmod 644 small.onnx

# ---- the content is something else
printf 'PK\003\004xxxx' >zip.onnx
expect 1 "$ONX" info zip.onnx
says err "a zip archive"
cp small.textproto text.onnx
expect 1 "$ONX" info text.onnx
says err "protobuf text"
expect 0 "$ONX" convert --from textproto text.onnx back.onnx
same back.onnx small.onnx

# ---- a full disk: the error is told, the old file and nothing else is there
head -c 3000000 /dev/urandom >data.bin
cat >big.textproto <<'END'
ir_version: 8
opset_import { version: 17 }
graph {
  name: "g"
  initializer { dims: 3000000 data_type: 2 name: "w" data_location: EXTERNAL external_data { key: "location" value: "data.bin" } }
}
END
mkdir target
cp small.onnx target/m.onnx
expect 2 sh -c "ulimit -f 1000; exec '$ONX' convert big.textproto target/m.onnx --inline-external"
says err "target/m.onnx"
same target/m.onnx small.onnx
[ "$(ls -A target)" = m.onnx ] || fail "left behind: $(ls -A target)"
if [ -w /dev/full ]; then
    expect 2 "$ONX" convert --to onnx small.onnx /dev/full
    says err "No space left"
    expect 2 sh -c "'$ONX' convert small.onnx - >/dev/full"
fi
expect 0 "$ONX" convert --to onnx small.onnx /dev/null
[ -c /dev/null ] || fail "/dev/null is no device any more"

# ---- killed while it writes: the old file is whole. One data file serves many tensors, so that writing takes a while.
{
    sed '$d' big.textproto
    i=0
    while [ $i -lt 200 ]; do
        echo "initializer { dims: 3000000 data_type: 2 name: \"w$i\" data_location: EXTERNAL external_data { key: \"location\" value: \"data.bin\" } }"
        i=$((i + 1))
    done
    echo "}"
} >huge.textproto
# It may also be killed when the new file is whole and in place.
whole=$("$ONX" convert huge.textproto - --to onnx --inline-external | wc -c)
# Nothing is left behind by a signal that can be caught, wherever it comes; nor by the others, where the system has files
# without a name.
written=0
ended=0
for signal in TERM HUP INT KILL TERM HUP KILL TERM; do
    for wait in 0.002 0.01 0.03 0.1 0.2 0.35; do
        timeout -s $signal "$wait" "$ONX" convert huge.textproto target/m.onnx --inline-external 2>err
        status=$?
        case $status in
        0) written=$((written + 1)) ;;
        124 | 137) ended=$((ended + 1)) ;;
        *) fail "exit status $status after SIG$signal: $(head -n 1 err)" ;;
        esac
        [ "$(wc -c <target/m.onnx)" = "$whole" ] || same target/m.onnx small.onnx
        cp small.onnx target/m.onnx
        if [ $signal != KILL ] && [ -n "$(find target -name '.*')" ]; then
            fail "SIG$signal after $wait s left $(find target -name '.*')"
        fi
        rm -f target/.m.onnx.*.tmp
    done
done
[ $ended -gt 0 ] || echo "the program was always done before it was killed"
# Many files that wait for each other have names: data files, one per tensor.
for signal in TERM HUP INT; do
    for wait in 0.01 0.05 0.1 0.2 0.4; do
        rm -rf target/w
        timeout -s $signal $wait "$ONX" convert huge.textproto target/m.onnx --external w/ --external-per-tensor 2>err
        cp small.onnx target/m.onnx
        [ -z "$(find target -name '.*.tmp')" ] || fail "SIG$signal left $(find target -name '.*.tmp' | wc -l) files"
    done
done
rm -rf target/w
# nohup: a signal that is ignored stays so
expect 0 sh -c "trap '' HUP; '$ONX' convert huge.textproto target/m.onnx --inline-external & pid=\$!; sleep 0.05; kill -HUP \$pid 2>/dev/null; wait \$pid"
cp small.onnx target/m.onnx

# ---- a data file that is cut short while it is read: an error, never a signal
{
    "$ONX" convert huge.textproto - --to onnx --inline-external 2>err
    echo $? >status
} | {
    head -c 100000 >/dev/null
    : >data.bin
    cat >/dev/null
}
[ "$(cat status)" = 2 ] || fail "exit status $(cat status) after the data was cut short"
says err "cut short"

# ---- a link is kept, and so is the mode
chmod 600 target/m.onnx
ln -s target/m.onnx link.onnx
expect 0 "$ONX" convert small.textproto link.onnx
[ -h link.onnx ] || fail "the link was replaced"
[ "$(stat -c %a target/m.onnx)" = 600 ] || fail "mode $(stat -c %a target/m.onnx)"
# over its own input
expect 0 "$ONX" convert small.onnx small.onnx
same target/m.onnx small.onnx
done_testing

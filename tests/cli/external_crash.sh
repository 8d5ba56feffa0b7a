# A model and its external data that replace an older pair: killed at any system call, the model gives the old or the new
# results, or does not find its data; it never finds the data of the other one.
. "$ONX_SOURCE_DIR/tests/lib.sh"
strace -qq -o trace -e inject=getppid:signal=KILL:when=9 true 2>/dev/null || skip "strace cannot trace here"
for w in 1 2; do
    {
        echo '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[400] y) {'
        echo " w = Constant <value = float[400] {$(awk -v w=$w 'BEGIN { for (i = 0; i < 400; i++) printf "%s%s", i ? ", " : "", w }')}> ()"
        [ $w = 2 ] || echo ' z = Add (w, w)  y = Add (z, x) }' # with the data of the other one, both give a third result
        [ $w = 1 ] || echo ' z = Neg (w)  y = Add (z, x) }'
    } >$w.onnxtxt
done
expect 0 "$ONX" convert 1.onnxtxt m.onnx --external m.bin
mkdir old
mv m.onnx m.bin old
results() { "$ONX" run m.onnx -i 'x=[0]' --full; }
for w in 1 2; do
    expect 0 "$ONX" convert $w.onnxtxt m.onnx --external m.bin
    results >$w.out
done
cmp -s 1.out 2.out && fail "both models give the same"
killed=0 seen_old=0 seen_new=0
for call in openat write writev pwrite64 fsync ftruncate linkat rename renameat renameat2 unlink unlinkat fchmod close; do
    for n in $(seq 1 "${ONX_TEST_SHARE:-1}" 60); do
        rm -f m.* .m.*
        cp old/m.onnx old/m.bin .
        ASAN_OPTIONS=detect_leaks=0 strace -f -qq -o trace -e trace=$call -e inject=$call:signal=KILL:when=$n "$ONX" convert 2.onnxtxt m.onnx --external m.bin >out 2>err
        status=$?
        if results >now 2>why; then
            if cmp -s now 1.out; then seen_old=1; elif cmp -s now 2.out; then seen_new=1; else fail "$call $n: neither the old nor the new results"; fi
        else
            grep -q "cannot open m.bin" why || fail "$call $n: $(cat why)"
            [ -e .m.bin.old ] || fail "$call $n: the old data is lost"
        fi
        [ $status -ne 0 ] || break
        killed=$((killed + 1))
    done
done
[ $killed -gt 10 ] && [ $seen_old = 1 ] && [ $seen_new = 1 ] || fail "killed $killed times: old $seen_old, new $seen_new"
[ -z "$(find . -maxdepth 1 -name '.m.*')" ] || fail "something is left: $(ls -A)"
done_testing

# Optional libraries: nothing is linked with them, and a missing one is named in an error message when it is needed.
. "$ONX_SOURCE_DIR/tests/lib.sh"

# The files that the dynamic linker loads at the start: the C library, its loader, and the kernel's vdso.
if command -v ldd >/dev/null && ! nm "$ONX" 2>/dev/null | grep -qE '__(a|t)san_init'; then
    for file in "$ONX" "$(dirname "$ONX")/libonx.so"; do
        expect 0 ldd "$file"
        sed 's/ .*//; s/^[[:space:]]*//; s,.*/,,' out | grep -vE '^(linux-vdso|lib(c|m|pthread|dl)|ld-linux.*)\.so\.' >more
        [ ! -s more ] || fail "$file is linked with $(tr '\n' ' ' <more)"
    done
fi

# A path of the dynamic linker with an empty or a relative entry takes libraries from the folder somebody happens to be in.
if command -v readelf >/dev/null; then
    for file in "$ONX" "$(dirname "$ONX")"/lib*.so; do
        [ -e "$file" ] || continue
        expect 0 readelf -d "$file"
        sed -n 's/.*R\(UN\)\{0,1\}PATH.*\[\(.*\)\]/:\2:/p' out >path
        grep -qE '::|:[^/$:]' path && fail "$file looks for libraries in $(cat path)"
    done
fi

cat >regex.onnxtxt <<'END_MODEL'
<ir_version: 9, opset_import: ["" : 20]>
g (string[1] x) => (bool[1] y) { y = RegexFullMatch <pattern = "a"> (x) }
END_MODEL
cat >case.onnxtxt <<'END_MODEL'
<ir_version: 9, opset_import: ["" : 20]>
g (string[1] x) => (string[n] y) { y = StringNormalizer <case_change_action = "UPPER"> (x) }
END_MODEL
cat >image.onnxtxt <<'END_MODEL'
<ir_version: 9, opset_import: ["" : 20]>
g (uint8[9] x) => (uint8[h, w, 3] y) { y = ImageDecoder (x) }
END_MODEL
cat >plain.onnxtxt <<'END_MODEL'
<ir_version: 9, opset_import: ["" : 20], producer_name: "abcdefghijklmnopqrstuvwxyz">
g (float[1] x) => (float[1] y) <float[1] w = {1.5}> { y = Add (x, w) }
END_MODEL

# A product that oneDNN has at every level: its right side varies, and is too large for a cache.
cat >fast.onnxtxt <<END_MODEL
<ir_version: 9, opset_import: ["" : 20]>
g (float[40, 640] x, float[640, 640] w) => (float[40, 640] y) { y = MatMul (x, w) }
END_MODEL

# Files of those names that are not libraries hide the real ones.
expect 0 "$ONX" help --libraries
cp out libraries
mkdir hidden
for file in $(grep -o '[^ ]*\.so\.[0-9.]*$' libraries); do
    echo "not a library" >"hidden/$file"
done
without() { # STATUS COMMAND...
    status=$1
    shift
    expect "$status" env LD_LIBRARY_PATH="$here/hidden" "$@"
}
needs() { # LIBRARY: what a message says when it is not there
    if grep -q "^$1 .*left out of this build" libraries; then
        says err "needs $1, which was left out of this build"
    else
        says err "needs $1, which is not on this machine (Debian has it in lib"
    fi
}
without 0 "$ONX" help --libraries
if grep -v '^MPI ' out | grep -q '\.so\.'; then # ranks are a part of ours, and found beside the program
    skip "this dynamic linker takes no libraries from LD_LIBRARY_PATH"
fi
for pair in regex:libpcre2-8 case:libutf8proc image:leptonica; do
    without 1 "$ONX" bench --seconds 0 "${pair%%:*}.onnxtxt"
    needs "${pair##*:}"
done
without 1 "$ONX" convert plain.onnxtxt moved.onnx --external w.bin --external-threshold 1 --checksum
needs libcrypto
without 0 "$ONX" bench --seconds 0 plain.onnxtxt
# What oneDNN runs where it is there runs without it, too.
without 0 "$ONX" run fast.onnxtxt --random --profile
cat out err >both
says both "MatMul"
grep -q "dnnl" both && fail "a row of oneDNN ran without oneDNN"
if grep -q '^oneDNN .*\.so\.' libraries; then
    expect 0 "$ONX" run fast.onnxtxt --random --profile
    cat out err >both
    says both "dnnl"
fi
done_testing

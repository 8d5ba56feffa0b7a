# onx trainable: losses and their gradients are those of PyTorch; labels that are ignored do not count.
. "$ONX_SOURCE_DIR/tests/lib.sh"
array() { # FILE TYPE SHAPE PRINTF-BYTES
    printf '\223NUMPY\001\000\166\000' >"$1"
    printf '%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': ($3)}" >>"$1"
    # shellcheck disable=SC2059
    printf "$4" >>"$1"
}
model() { # SHAPE OF y
    cat >m.onnxtxt <<END
<ir_version: 8, opset_import: ["" : 18]>
g (float[1] x) => (float[$1] y) <float[$1] w = {1, 2, -1, 0.5, -0.5, 0.25, 0, 1, 2}> { y = Mul (w, x) }
END
}
array class.npy '<i8' '3,' '\001\000\000\000\000\000\000\000\234\377\377\377\377\377\377\377\000\000\000\000\000\000\000\000' # 1, -100, 0
half='\000\000\000\077' zero='\000\000\000\000' one='\000\000\200\077' quarter='\000\000\200\076' more='\000\000\100\077'
array soft.npy '<f4' '3,3' "$half$half$zero$zero$zero$one$quarter$more$zero"
array none.npy '<f4' '1,' "$one"
learn() { # LOSS KIND OPTION...
    loss=$1 kind=$2
    shift 2
    shape=3,3
    [ "$kind" != none ] || shape=1,3,3
    model $shape
    expect 0 "$ONX" trainable m.onnxtxt -o t.onnx --loss "$loss" --keep --optimizer sgd --rate 1 --train w "$@"
    expect 0 "$ONX" check --full t.onnx
    rm -rf d
    mkdir d
    if [ "$kind" = none ]; then
        cp none.npy d/x.npy
        expect 0 "$ONX" train t.onnx --data d --epochs 1 -o after.onnx
    else
        cp "$kind.npy" d/label.npy
        expect 0 "$ONX" train t.onnx --data d --set x='[1]' --batch 3 --epochs 1 -o after.onnx
    fi
    cp out said
}
count=0
while IFS='|' read -r name kind value weights; do
    margin=
    [ "$name" != triplet ] || margin="--number margin=3"
    # shellcheck disable=SC2086
    learn "$name" "$kind" $margin
    awk -v want="$value" '{ d = $4 - want; if (d < 0) d = -d; exit !(d <= 1e-5) }' said || fail "$name is not $value: $(cat said)"
    expect 0 "$ONX" show --full after.onnx
    got=$(tr -d '\n' <out | sed -n "s/.*[] ]w = {\([^}]*\)}.*/\1/p")
    echo "$got|$weights" | tr -d ' ' | awk -F'|' '{ n = split($1, a, ","); if (!n || n != split($2, b, ",")) exit 1
        for (i = 1; i <= n; i++) { d = a[i] - b[i]; if (d < 0) d = -d; if (!(d <= 1e-5)) exit 1 } }' || fail "$name: w is $got instead of $weights"
    count=$((count + 1))
done <<END
cross-entropy|class|1.37831|0.870252, 2.147308, -1.017560, 0.500000, -0.500000, 0.250000, 0.454985, 0.877636, 1.667379
smooth-cross-entropy|class|1.39498|0.886918, 2.113974, -1.000893, 0.500000, -0.500000, 0.250000, 0.421651, 0.894302, 1.684046
focal|class|1.01195|0.969917, 2.034155, -1.004071, 0.500000, -0.500000, 0.250000, 0.556233, 0.850406, 1.593361
soft-cross-entropy|soft|1.17351|1.080168, 1.931538, -1.011706, 0.344721, -0.557124, 0.462402, 0.053323, 1.168424, 1.778253
kl|soft|0.755019|1.080168, 1.931538, -1.011706, 0.344721, -0.557124, 0.462402, 0.053323, 1.168424, 1.778253
cosine|soft|0.458792|1.048113, 2.000000, -0.951887, 0.401235, -0.401235, 0.645062, 0.047140, 1.113137, 1.943431
triplet|none|2.52283|1.125421, 1.421061, -1.464309, 0.676090, 0.380451, -0.190225, -0.301512, 0.698488, 2.904534
END
[ "$count" -eq 7 ] || fail "$count rows were read"
# accuracy is that of the labels that count: 1 of 2
learn cross-entropy class
says said "accuracy 0.5"
# with another number to ignore, -100 is out of range
expect 0 "$ONX" trainable m.onnxtxt -o t.onnx --loss cross-entropy --keep --train w --number ignore=1
expect 1 "$ONX" train t.onnx --data d --set x='[1]' --batch 3 --epochs 1 -o x.onnx
says err "label -100"
done_testing

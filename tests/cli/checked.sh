# Transforms check what they make: a valid model stays valid, or nothing is written; an invalid one is reported.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >valid.onnxtxt <<'END'
<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[2,3] z) { y = Relu(x)  z = Neg(y) }
END
cat >invalid.onnxtxt <<'END'
<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[2,3] z) { y = Relu(x)  z = Neg<alpha = 1>(y) }
END

# ---- a result that would be invalid is refused, and the file that was there stays ----
echo before >out.onnxtxt
for type in 'int64[2,3]' 'float[4,3]'; do
    expect 1 "$ONX" edit valid.onnxtxt -o out.onnxtxt --type "z=$type"
    says err 'error: the result would be invalid'
    says err '"z"'
    [ "$(cat out.onnxtxt)" = before ] || fail "a file was written"
done

# ---- an invalid model is reported by everything that changes it, once, with the place and the rule ----
reports() { # COMMAND...
    expect 0 "$ONX" "$@" -o out.onnxtxt
    says err 'graph.node[1] (Neg).attribute[0] "alpha": warning: the model is invalid already'
    says err 'Neg-13 has no attribute of that name [ND-17]'
    [ "$(grep -c 'invalid already' err)" -eq 1 ] || fail "$1: $(cat err)"
}
reports simplify invalid.onnxtxt
reports edit invalid.onnxtxt --rename x=input
reports inline invalid.onnxtxt
reports precision invalid.onnxtxt --to float16 --keep-io
reports quantize invalid.onnxtxt --mode weights
reports compress invalid.onnxtxt
reports outline invalid.onnxtxt
reports extract invalid.onnxtxt --outputs z
reports retarget invalid.onnxtxt --opset 18
sed 's/ x)/ z)/; s/Relu(x)/Relu(z)/; s/) z)/) w)/; s/z = Neg/w = Neg/' invalid.onnxtxt >second.onnxtxt
reports merge valid.onnxtxt second.onnxtxt
expect 0 "$ONX" simplify valid.onnxtxt -o out.onnxtxt
[ -s err ] && fail "a valid model is reported: $(cat err)"

# ---- declared types that contradict what the model computes: what is done does not depend on them, and they stay ----
cat >right.onnxtxt <<'END'
<ir_version: 8, opset_import: ["": 17]>
g (float[N,3] x, float[4] w) => (float[N,3] y, int64[2] s) <float[N,3] a> { a = Relu(x)  y = Identity(a)  s = Shape(y)  u = Neg(w) }
END
sed 's/<float\[N,3\] a>/<int32[1,7] a>/; s/=> (float\[N,3\] y/=> (float[5,3,1] y/' right.onnxtxt >wrong.onnxtxt
despite() { # WARNINGS COMMAND...
    warnings=$1
    shift
    expect 0 "$ONX" "$@" right.onnxtxt -o right-out.onnxtxt
    expect 0 "$ONX" "$@" wrong.onnxtxt -o wrong-out.onnxtxt
    [ "$(grep -c 'warning: declared types are wrong, and are left as they are: .* exclude each other' err)" -eq "$warnings" ] || fail "$*: $(cat err)"
    for file in right-out wrong-out; do
        sed 's/<[a-z0-9]*\[[^]]*\] [a-z]*>//; /^ *[a-z0-9]*\[[^]]*\] \(a\|inner\)$/d; s/=> (.*y, /=> (y, /' $file.onnxtxt >$file
    done
    cmp right-out wrong-out || fail "$*: declared types change the result"
}
despite 1 simplify
despite 1 simplify --exact
despite 1 retarget --opset 23
despite 1 edit --rename x=input
despite 1 edit --rename a=inner
# what a declaration says becomes wrong only because the shape is known now
cat >late.onnxtxt <<'END'
<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[7,2] y) { c = Constant<value_floats = [1.1, 0.7]>()  e = Exp(c)  r = Cast<to = 7>(e)  y = Reshape(x, r) }
END
expect 0 "$ONX" check --full late.onnxtxt
expect 0 "$ONX" simplify late.onnxtxt -o out.onnxtxt
says err 'warning: declared types are wrong, and are left as they are: output 0 "y"'
grep -q 'float\[7, 2\] y' out.onnxtxt || fail "the declared type is changed"
grep -q "Exp" out.onnxtxt && fail "the constants are not computed"

# ---- before IR version 4 an initializer of an input is a constant, and it stays one ----
cat >old.onnxtxt <<'END'
<ir_version: 3, opset_import: ["": 8]>
g (float[1,2,4,4] x, float[2,2,1,1] w = {0.5, -0.25, 0.125, 1}) => (float[1,2,4,4] y) { y = Conv(x, w) }
END
keeps() { # COMMAND...
    expect 0 "$ONX" "$@" -o out.onnxtxt
    grep -q '^g (float\[1, 2, 4, 4\] x) =>' out.onnxtxt || fail "$*: the constant is an input: $(cat out.onnxtxt)"
    expect 0 "$ONX" check --full out.onnxtxt
    expect 0 "$ONX" compare old.onnxtxt out.onnxtxt --random --atol 0.1
}
keeps retarget old.onnxtxt --opset 13
keeps retarget old.onnxtxt --ir-version 4
keeps quantize old.onnxtxt --mode weights
keeps quantize old.onnxtxt --mode dynamic
keeps precision old.onnxtxt --to bfloat16 --keep-io
# also when the other model has a newer version, on either side
cat >new.onnxtxt <<'END'
<ir_version: 8, opset_import: ["": 8]>
g (float[1,2,4,4] y) => (float[1,2,4,4] z) { z = Relu(y) }
END
expect 0 "$ONX" merge old.onnxtxt new.onnxtxt -o out.onnxtxt
grep -q '(float\[1, 2, 4, 4\] x) =>' out.onnxtxt || fail "the constant is an input: $(cat out.onnxtxt)"
sed 's/ y)/ x)/; s/ z)/ v)/; s/z = Relu(y)/v = Relu(x)/' new.onnxtxt >first.onnxtxt
expect 0 "$ONX" merge first.onnxtxt old.onnxtxt --map v=x -o out.onnxtxt
grep -q 'w' out.onnxtxt || fail "the weight is lost"
grep -q '=> *(' out.onnxtxt && grep -q '] w[,)]' out.onnxtxt && fail "the constant is an input: $(cat out.onnxtxt)"
# a default of a newer version is none in an old one
sed 's/ir_version: 3/ir_version: 8/' old.onnxtxt >default.onnxtxt
expect 1 "$ONX" retarget default.onnxtxt -o out.onnxtxt --ir-version 3
says err 'input w has a default'
done_testing

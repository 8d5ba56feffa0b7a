# Operator sets and IR versions newer than the newest known: files are read and judged by the newest known version, with one
# warning; operator-set documents bring what is new.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >newer.onnxtxt <<'END'
<ir_version: 15, producer_name: "t", producer_version: "1", opset_import: ["" : 29]>
g (float[3] x = {-1, 3, 4.5}) => (float[3] y) <float[3] b = {2, 2, 2}> { h = Relu (x)  y = Mod (h, b) }
END
sed 's/: 29/: 28/; s/version: 15/version: 14/' newer.onnxtxt >known.onnxtxt
expect 0 "$ONX" check --full newer.onnxtxt
says out O-08
[ "$(grep -c 'warning: ' out)" -eq 1 ] || fail "not one warning"
expect 1 "$ONX" check --strict-opset newer.onnxtxt
says out O-08
says out M-03
expect 0 "$ONX" run newer.onnxtxt
says out '0 1 0.5'
says err 'version 29 of ai.onnx is newer'
expect 1 "$ONX" run newer.onnxtxt --strict-opset
expect 0 "$ONX" convert newer.onnxtxt -o newer.onnx
expect 0 "$ONX" show newer.onnx
expect 0 "$ONX" infer newer.onnx
expect 1 "$ONX" diff known.onnxtxt newer.onnx
expect 0 "$ONX" view newer.onnx -o newer.html
expect 0 "$ONX" simplify newer.onnx -o simple.onnx
expect 0 "$ONX" show simple.onnx
says out '"": 29'
expect 0 "$ONX" simplify newer.onnx -o simple.onnx
says err 'newer than the newest known, 28, by which its operators are judged'
[ "$(grep -c 'warning: ' err)" -eq 1 ] || fail "not one warning"

# From the newer set to known ones, with one warning and the same results
for version in 28 27 13; do
    expect 0 "$ONX" retarget newer.onnxtxt --opset $version -o older.onnx
    [ "$(grep -c 'warning: ' err)" -eq 1 ] || fail "not one warning"
    expect 0 "$ONX" check --full --strict-opset older.onnx
    expect 0 "$ONX" run older.onnx
    says out '0 1 0.5'
    ! grep -q 'newer than' err || fail "a warning of a known version"
done
expect 0 "$ONX" retarget newer.onnxtxt --opset 29 -o older.onnx
expect 1 "$ONX" retarget known.onnxtxt --opset 29 -o older.onnx
says err 'version 29 of ai.onnx is not known'
cat >calls.onnxtxt <<'END'
<ir_version: 15, producer_name: "t", producer_version: "1", opset_import: ["" : 29, "t" : 1]>
g (float[3] x = {-1, 3, 4.5}) => (float[3] y) { y = t.F (x) }
<domain: "t", opset_import: ["" : 21]> F (x) => (z) { h = Neg (x) z = Gelu (h) }
END
expect 0 "$ONX" inline calls.onnxtxt --schema -o flat.onnx
expect 0 "$ONX" check --full flat.onnx
expect 0 "$ONX" compare calls.onnxtxt flat.onnx
expect 0 "$ONX" retarget flat.onnx --opset 13 -o older.onnx
expect 0 "$ONX" compare calls.onnxtxt older.onnx

# Operators that are not known
cat >next.onnxtxt <<'END'
<ir_version: 15, producer_name: "t", producer_version: "1", opset_import: ["" : 29]>
g (float[4] a = {0, 10, -20, 0}, float[4] b = {1, 2, 3, 4}, int64[2] q = {3, 4}, float[2,2] x = {1, 2, 3, 4}, int64[2,1] at = {1, 0}) => (float[4] y, int64[2] l, int64[2] r, bool[2] m, bool[2] n, float[2,1,3] p)
<int64[4] sorted = {1, 3, 3, 7}, float[2,2,3] w = {1, 0, 0, 0, 1, 0, 0, 0, 2, 2, 0, 0}> {
  y = GeGLU <approximate = "none"> (a, b)
  l = Searchsorted <side = "left"> (sorted, q)
  r = Searchsorted <side = "right"> (sorted, q)
  m = Isin <invert = 0> (q, sorted)
  n = Isin <invert = 1> (q, sorted)
  p = GroupedMatMul (x, w, at)
}
END
expect 0 "$ONX" check next.onnxtxt
says out 'no operator GeGLU'
expect 1 "$ONX" run next.onnxtxt
says err GeGLU
rm -f older.onnx
expect 1 "$ONX" retarget next.onnxtxt --opset 28 -o older.onnx
for name in GeGLU Searchsorted Isin GroupedMatMul; do
    says err "no operator $name up to version 28, the newest known"
done
[ ! -e older.onnx ] || fail "a file was written"
expect 0 "$ONX" retarget next.onnxtxt --opset 28 --best-effort -o older.onnx

# Documents of the proposals: functions over older operators
op() { printf 'operator { op_type: "%s" since_version: 29 status: STABLE }\n' "$1"; }
node() { # OPERATOR "INPUTS" OUTPUT [ATTRIBUTES]
    printf '  node { op_type: "%s"' "$1"
    for input in $2; do printf ' input: "%s"' "$input"; done
    printf ' output: "%s" %s }\n' "$3" "${4-}"
}
of() { printf 'attribute { name: "%s" ref_attr_name: "%s" type: %s }' "$1" "$2" "$3"; }
ints() {
    printf 'attribute { name: "value_ints" type: INTS'
    for i; do printf ' ints: %s' "$i"; done
    printf ' }'
}
to() { printf 'attribute { name: "to" type: INT i: %s }' "$1"; }
end='  opset_import { domain: "" version: 21 } }'
{
    echo 'magic: "ONNXOPSET" ir_version: 14 domain: "" opset_version: 29'
    for name in GeGLU Searchsorted Isin GroupedMatMul; do op $name; done
    echo 'functions { name: "GeGLU" domain: "" input: "A" input: "B" output: "Y" attribute: "approximate"'
    node Gelu A gate "$(of approximate approximate STRING)"
    node Mul "gate B" Y
    echo "$end"
    echo 'functions { name: "Searchsorted" domain: "" input: "x1" input: "x2" output: "Y" attribute: "side"'
    node Constant "" side "$(of value_string side STRING)"
    node Constant "" left 'attribute { name: "value_string" type: STRING s: "left" }'
    node Equal "side left" first
    node Constant "" last "$(ints -1)"
    node Unsqueeze "x2 last" each
    node Less "x1 each" below
    node LessOrEqual "x1 each" upto
    node Where "first below upto" before
    node Cast before ones "$(to 7)"
    node ReduceSum "ones last" Y 'attribute { name: "keepdims" type: INT i: 0 }'
    echo "$end"
    echo 'functions { name: "Isin" domain: "" input: "x1" input: "x2" output: "Y" attribute: "invert"'
    node Constant "" last "$(ints -1)"
    node Unsqueeze "x1 last" each
    node Reshape "x2 last" all
    node Equal "each all" same
    node Cast same ones "$(to 7)"
    node ReduceMax "ones last" most 'attribute { name: "keepdims" type: INT i: 0 }'
    node Cast most found "$(to 9)"
    node Constant "" number "$(of value_int invert INT)"
    node Cast number inverted "$(to 9)"
    node Xor "found inverted" Y
    echo "$end"
    echo 'functions { name: "GroupedMatMul" domain: "" input: "input" input: "weights" input: "group_indices" output: "Y"'
    node Gather "weights group_indices" own
    node Constant "" axes "$(ints 1 2)"
    node Unsqueeze "input axes" rows
    node MatMul "rows own" products
    node Constant "" third "$(ints 2)"
    node Squeeze "products third" Y
    echo "$end"
} >next.textproto
expect 0 "$ONX" check --as operator-set next.textproto
expect 0 "$ONX" check --full --opset-doc next.textproto next.onnxtxt
says out O-08
expect 0 "$ONX" run next.onnxtxt --opset-doc next.textproto
grep '^[ylrmnp] ' out | sed 's/  (.*//' >got
cat >want <<'END'
y  float[4] 0 20 -0 0
l  int64[2] 1 3
r  int64[2] 3 3
m  bool[2] true false
n  bool[2] false true
p  float[2,1,3] 4 0 2 3 ...
END
same got want
expect 1 "$ONX" retarget next.onnxtxt --opset-doc next.textproto --opset 28 -o older.onnx
says err 'onx inline --schema replaces it by its body'
expect 0 "$ONX" inline next.onnxtxt --opset-doc next.textproto --schema -o flat.onnx
expect 0 "$ONX" retarget flat.onnx --opset 21 -o older.onnx
expect 0 "$ONX" check --full --strict-opset older.onnx
expect 0 "$ONX" run older.onnx
grep '^[ylrmnp] ' out | sed 's/  (.*//' >got
same got want

# Operators that a document changes: by a body, and by name only
{
    echo 'magic: "ONNXOPSET" ir_version: 14 domain: "" opset_version: 29'
    for name in Mod Sin Hypot; do op $name; done
    echo 'operator { op_type: "Relu" since_version: 14 status: STABLE }'
    echo 'functions { name: "Mod" domain: "" input: "A" input: "B" output: "C"'
    node Add "A B" C
    echo "$end"
    echo 'functions { name: "Relu" domain: "" input: "A" output: "C"'
    node Neg A C
    echo "$end"
} >changed.textproto
expect 0 "$ONX" check --full --opset-doc changed.textproto newer.onnxtxt
says out 'note: the operator changed in version 29, for which the given operator set has a definition (value Mod) [O-11]'
! grep -q '(Relu)' out || fail "an operator that did not change is named"
expect 0 "$ONX" run newer.onnxtxt --opset-doc changed.textproto
says out '2 5 6.5'
expect 0 "$ONX" simplify newer.onnxtxt --opset-doc changed.textproto -o simple.onnx
expect 0 "$ONX" run simple.onnx --opset-doc changed.textproto
says out '2 5 6.5'
expect 0 "$ONX" run known.onnxtxt --opset-doc changed.textproto
says out '0 1 0.5'
rm -f older.onnx
expect 1 "$ONX" retarget newer.onnxtxt --opset-doc changed.textproto --opset 28 -o older.onnx
says err 'defines Mod in version 29'
for name in Sin Hypot; do
    sed "s/h = Relu (x)  y = Mod (h, b)/y = $name (x)/" newer.onnxtxt >open.onnxtxt
    expect 0 "$ONX" check --full --opset-doc changed.textproto open.onnxtxt
    says out 'in version 29, for which the given operator set has neither a schema nor a body'
    says out "not judged (value $name) [O-11]"
    expect 1 "$ONX" run open.onnxtxt --opset-doc changed.textproto
    says err "no kernel runs operator $name of version 29"
    expect 1 "$ONX" retarget open.onnxtxt --opset-doc changed.textproto --opset 28 -o older.onnx
    says err "defines $name in version 29"
    [ ! -e older.onnx ] || fail "a file was written"
done
done_testing

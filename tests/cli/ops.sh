# onx ops: list, search, explain, JSON, documents, and the page docs/operators.md.
. "$ONX_SOURCE_DIR/tests/lib.sh"

expect 0 "$ONX" ops
# The operators of the standard; other domains, and the names that they add to the default one, are listed after them.
standard() { awk '/^[A-Z]/ { print } $1 == "Momentum" { exit }'; }
[ "$(standard <out | grep -c '^[A-Z].*  *[0-9][0-9]*  [A-Z]')" -eq 227 ] || fail "onx ops does not list 227 operators"
expect 0 "$ONX" ops --domain ai.onnx.ml
says out ZipMap
grep -q '^Conv ' out && fail "--domain lists operators of other domains"
expect 0 "$ONX" ops --opset 1
grep -q '^Swish ' out && fail "--opset 1 lists operators of version 24"

expect 0 "$ONX" ops Conv
says out 'Conv ai.onnx version 22'
says out '(X, W, B?)'
says out 'kernel: plain'
expect 0 "$ONX" ops Conv --domain ai.onnx
! grep -q 'no gradient' out || fail "onx ops does not know the gradient of Conv"
says out 'T takes tensor(bfloat16)'
expect 0 "$ONX" ops Shrink
says out 'no kernel, runs by other operators'
expect 0 "$ONX" ops TfIdfVectorizer
says out 'no gradient'
if "$ONX" ops com.microsoft.QuickGelu >out 2>err; then # in this build; it is derived by what it stands for
    ! grep -q 'no gradient' out || fail "onx ops does not know the gradient of an operator with a body"
fi
expect 0 "$ONX" ops conv --opset 11
says out 'version 11'
expect 0 "$ONX" ops convol
says out DeformConv
expect 2 "$ONX" ops Convv
says err 'did you mean Conv'
expect 2 "$ONX" ops Swish --opset 12
says err 'no operator "Swish" yet'
expect 2 "$ONX" ops --domain com.example
expect 2 "$ONX" ops --opset 0

# names as info and check print them
expect 0 "$ONX" ops ai.onnx.ml.TreeEnsembleRegressor
says out 'TreeEnsembleRegressor ai.onnx.ml version'
expect 0 "$ONX" ops ai.onnx.Conv
says out 'Conv ai.onnx version 22'
expect 0 "$ONX" ops Relu-6
says out 'Relu ai.onnx version 6'
expect 0 "$ONX" ops ai.onnx.ml.Scaler-1
expect 2 "$ONX" ops com.example.Conv
expect 2 "$ONX" ops -- Conv-
expect 2 "$ONX" ops Conv-99999999999999999999
# versions to come
expect 0 "$ONX" ops Resize --opset 99
says err 'warning: version 99 of ai.onnx is newer than the newest known one, 28'
expect 0 "$ONX" ops Scaler --opset 6
says err 'version 6 of ai.onnx.ml is newer'
expect 0 "$ONX" ops Resize --opset 28
[ ! -s err ] || fail "a warning about the newest version"

# Every input, output and attribute of every operator is explained.
expect 0 "$ONX" ops --json
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "something is not explained"
import json, sys
missing = [(o["name"], p["name"]) for o in json.load(open("out"))[:227] for k in ("inputs", "outputs", "attributes")
           for p in o[k] if not p.get("meaning")]
sys.exit(1 if missing else 0)
END
fi
expect 0 "$ONX" ops Conv
says out 'elements added before the start of each spatial axis'
says out 'y = Conv<'
# Every operator has an example, which has no error and runs; those of which there is no kernel are checked only.
"$ONX" ops 2>/dev/null | standard | awk '{ print $1 }' >names
[ "$(wc -l <names)" -eq 227 ] || fail "not 227 names"
mkdir -p examples
while read -r name; do
    "$ONX" ops "$name" --example >"examples/$name.onnxtxt" 2>err || { fail "no example of $name: $(cat err)"; continue; }
    grep -q "$name[<(]" "examples/$name.onnxtxt" || fail "the example of $name does not use it"
    case $name in ImageDecoder) continue ;; esac
    case $(cat "examples/$name.onnxtxt") in *"(map("*) continue ;; esac # maps are not made up
    "$ONX" run --random --threads 1 "examples/$name.onnxtxt" >out 2>err || grep -q "left out of this build" err || fail "the example of $name: $(cat err)"
done <names
expect 0 "$ONX" check --full --quiet examples
expect 2 "$ONX" ops gather --example --domain com.example
expect 2 "$ONX" ops zzz --example

expect 0 "$ONX" ops Clip --json
says out '"since_version": 13'
says out '"default": "3.4028235e+38"'
[ "$(grep -c '"since_version"' out)" -eq 5 ] || fail "--json does not give the 5 versions of Clip"

# Operators of the time before the first release are in a domain of the standard, but not of the standard.
expect 0 "$ONX" ops ThresholdedRelu --json
[ "$(grep -c '"standard": true' out)" -ge 2 ] || fail "the versions of ThresholdedRelu are not said to be of the standard"
expect 0 "$ONX" ops ZipMap --json
says out '"seq(map(int64, float))"'
says out '"standard": true'
if "$ONX" ops --domain com.microsoft >/dev/null 2>&1; then
    expect 0 "$ONX" ops ImageScaler --json
    says out '"standard": false'
    expect 0 "$ONX" ops --json
    [ "$(grep -c '"standard": true' out)" -ge 200 ] || fail "few operators are of the standard"
fi

expect 0 "$ONX" ops --markdown
cp out page
for domain in $(sed -n 's/^## \(.*\), version.*/\1/p' "$ONX_SOURCE_DIR/docs/operators.md" | sort -u); do
    "$ONX" ops --domain "$domain" >/dev/null 2>&1 || { echo "the page is not compared: this build has no $domain" && rm -f page; }
done
[ ! -f page ] || same page "$ONX_SOURCE_DIR/docs/operators.md" # when stale: onx ops --markdown > docs/operators.md

# operators of documents
cat >vendor.textproto <<'EOF'
magic: "ONNXOPSET" ir_version: 10 domain: "com.example.ops" opset_version: 2
operator { op_type: "Foo" since_version: 1 status: STABLE doc_string: "Does what foo does." }
operator { op_type: "Square" since_version: 2 status: EXPERIMENTAL }
functions { name: "Square" domain: "com.example.ops" input: "a" output: "b"
  node { op_type: "Mul" input: "a" input: "a" output: "b" } opset_import { domain: "" version: 21 } }
EOF
expect 0 "$ONX" ops --opset-doc vendor.textproto --domain com.example.ops
says out 'Does what foo does.'
expect 0 "$ONX" ops --opset-doc vendor.textproto Square
says out 'b? = Square (a?)'
says out 'com.example.ops version 2, family custom'
expect 0 "$ONX" ops --opset-doc vendor.textproto Conv
expect 2 "$ONX" ops --opset-doc vendor.textproto --domain com.example.ops Square --opset 1
sed 's/ONNXOPSET/ONNX/' vendor.textproto >wrong.textproto
expect 1 "$ONX" ops --opset-doc wrong.textproto
says err OS-01

expect 0 "$ONX" ops --export set.pb --opset 13
[ -s set.pb ] || fail "--export writes nothing"
expect 0 "$ONX" ops --export set.textproto --domain ai.onnx.ml --opset 3
says set.textproto 'magic: "ONNXOPSET"'
says set.textproto 'op_type: "ZipMap"'
expect 2 "$ONX" ops --export no.pb --opset 999
[ ! -e no.pb ] || fail "a file is left of a set that does not exist"

"$ONX" ops --export new.textproto --domain ai.onnx.ml --opset 5
expect 1 "$ONX" diff --as operator-set set.textproto new.textproto
says out '+ TreeEnsemble'
says out '~ LabelEncoder  version 2 -> version 4'
! grep -q OS- err || fail "a versioning rule is said to be broken between two published sets"
sed 's/since_version: 4/since_version: 2/' new.textproto >bad.textproto
expect 1 "$ONX" diff --as operator-set set.textproto bad.textproto
says err OS-11
expect 0 "$ONX" diff --as operator-set new.textproto new.textproto
done_testing

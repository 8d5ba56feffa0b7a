# No output replaces an input or another output, however the paths are written; only a model may overwrite its own input.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >model.textproto <<'E'
ir_version: 8 opset_import { version: 17 } graph { name: "g"
node { op_type: "Add" input: "x" input: "w" output: "y" }
input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
initializer { dims: 4 data_type: 1 name: "w" raw_data: "\000\000\200?\000\000\200?\000\000\200?\000\000\200?" } }
E
expect 0 "$ONX" convert model.textproto a.onnx
mkdir keep
cp a.onnx keep/a.onnx
expect 0 "$ONX" convert a.onnx ext.onnx --external w.bin --external-threshold 1
printf 'dims: 4 data_type: 1 float_data: 1 float_data: 2 float_data: 3 float_data: 4' >x.textproto
expect 0 "$ONX" convert --as tensor x.textproto x.pb
cp ext.onnx w.bin x.pb keep

# fresh: everything as it was, and nothing else
fresh() {
    rm -rf case
    mkdir case case/sub case/out
    cp keep/* case
    cp keep/x.pb case/out/output_0.pb
    ln -s a.onnx case/link.onnx
    ln -s w.bin case/wlink.bin
    ln -s . case/here
    ln case/a.onnx case/hard.onnx
}
cases=0
# kept FILE: is what it was
kept() {
    cmp -s "case/$1" "keep/$1" || fail "$1 was changed by: $line"
}
# refused ARGUMENT...: exit status 2, the reason, and all files are what they were
refused() {
    fresh
    line=$*
    cases=$((cases + 1))
    (cd case && find . | sort) >before
    (cd case && exec timeout 60 "$ONX" "$@") >out 2>err
    got=$?
    [ $got -eq 2 ] || { fail "exit status $got: $line"; sed 's/^/    /' err | head -n 3; }
    says err "would be lost"
    says err "hint: "
    for file in a.onnx ext.onnx w.bin x.pb; do
        kept $file
    done
    cmp -s case/out/output_0.pb keep/x.pb || fail "out/output_0.pb was changed by: $line"
    (cd case && find . | sort) >after
    cmp -s before after || fail "files came or went by: $line: $(diff before after | grep '^[<>]' | head -n 3)"
}
done_all() { # ARGUMENT...: works
    fresh
    line=$*
    (cd case && exec timeout 60 "$ONX" "$@") >out 2>err || { fail "exit status $?: $line"; head -n 3 err; }
    [ -z "$(find case -name '.*.tmp')" ] || fail "a temporary file was left by: $line"
}

# ---- the output model, and data files that are the same file: none of them exists yet, then both do
for model in new.onnx ./new.onnx .//new.onnx sub/../new.onnx here/new.onnx here/here/new.onnx "$here/case/new.onnx"; do
    for data in new.onnx ./new.onnx .//new.onnx; do
        refused convert a.onnx "$model" --external "$data" --external-threshold 1
    done
done
refused convert a.onnx new.00000-w --to onnx --external new --external-per-tensor --external-threshold 1
refused convert x.pb --as tensor new.pb --external new.pb --external-threshold 1

# ---- data files over the input model, over its data files
for input in a.onnx ./a.onnx here/a.onnx "$here/case/a.onnx"; do
    for data in a.onnx ./a.onnx .//a.onnx; do
        refused convert "$input" new.onnx --external "$data" --external-threshold 1
        refused convert "$input" a.onnx --external "$data" --external-threshold 1
    done
done
for input in ext.onnx here/ext.onnx "$here/case/ext.onnx"; do
    for data in w.bin ./w.bin .//w.bin; do
        refused convert "$input" new.onnx --external "$data" --external-threshold 1
        refused convert "$input" "$input" --external "$data" --external-threshold 1
    done
done

# ---- the output model over the data of the input, whether they are read or only referred to
for out in w.bin ./w.bin wlink.bin here/w.bin sub/../w.bin "$here/case/w.bin"; do
    refused convert ext.onnx "$out" --to onnx
    refused convert ext.onnx "$out" --to onnx --inline-external
    refused convert ext.onnx "$out" --to onnx --external new.bin
    refused infer ext.onnx -o "$out" --to onnx
done

# ---- what a run writes: over the model, its data, its inputs, other outputs
for trace in a.onnx ./a.onnx link.onnx hard.onnx here/a.onnx "$here/case/a.onnx" x.pb here/x.pb; do
    refused run a.onnx --input x=x.pb --profile --trace "$trace"
done
for trace in w.bin ./w.bin wlink.bin here/w.bin; do
    refused run ext.onnx --input x=x.pb --profile --trace "$trace"
done
for dir in out ./out here/out "$here/case/out"; do
    refused run a.onnx --input x=out/output_0.pb --output-dir "$dir"
    refused run a.onnx --input x=x.pb --output-dir "$dir" --profile --trace out/output_0.pb
    refused run a.onnx --input x=x.pb --output-dir "$dir" --profile --trace here/here/out/output_0.pb
done
refused run a.onnx --input x=x.pb --output-dir sub --profile --trace sub/../sub/output_0.pb
fresh
cp case/a.onnx case/sub/output_0.pb
expect 2 "$ONX" run case/sub/output_0.pb --input x=case/x.pb --output-dir case/sub
says err "would be lost"
cmp -s case/sub/output_0.pb keep/a.onnx || fail "a model of the name of an output was lost"

# ---- what is read as a stream, and what is written as one
fresh
(cd case && "$ONX" convert - new.onnx --external a.onnx --external-threshold 1 <a.onnx) >out 2>err && fail "data over standard input"
line="standard input"
kept a.onnx
(cd case && "$ONX" convert a.onnx - >>a.onnx) 2>err && fail "standard output is the input"
kept a.onnx
says err "standard output"

# ---- what was asked for, and is safe
for name in a.onnx ./a.onnx link.onnx here/a.onnx "$here/case/a.onnx"; do
    done_all convert a.onnx "$name"
    cmp -s case/a.onnx a.onnx || fail "converting a.onnx to $name"
    done_all convert "$name" a.onnx
    done_all infer a.onnx -o "$name"
    done_all convert a.onnx "$name" --external new.bin --external-threshold 1
done
[ -h case/link.onnx ] || fail "the link was replaced"
done_all convert ext.onnx ext.onnx
done_all convert ext.onnx ext.onnx --inline-external
done_all convert a.onnx new.onnx --external here.bin --external-threshold 1
done_all run a.onnx --input x=x.pb --output-dir out --profile
done_all run a.onnx --input x=out/output_0.pb --output-dir sub --npy --profile --trace sub/trace.json
# again over what an earlier call wrote
(cd case && exec "$ONX" run a.onnx --input x=x.pb --output-dir sub --npy) >out 2>err || fail "a second run into the same folder"
"$ONX" show model.textproto >text.onnxtxt
printf '\n\n\n' >>text.onnxtxt
cp text.onnxtxt again.onnxtxt
expect 0 "$ONX" fmt text.onnxtxt ./text.onnxtxt again.onnxtxt
expect 0 "$ONX" fmt --check text.onnxtxt again.onnxtxt
expect 0 "$ONX" ops --export set.pb --opset 17
expect 0 "$ONX" ops --export set.pb --opset 17

[ $cases -gt 90 ] || fail "only $cases cases were tried"
done_testing

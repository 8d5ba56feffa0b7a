# External data: moving weights out and in, checksums, and every way in which a model could refer to a file that it must not
# read.
. "$ONX_SOURCE_DIR/tests/lib.sh"

mkdir model
cd model || exit 2
# model LOCATION [ENTRY...]: makes a model with one external tensor of 16 bytes
model() {
    echo 'ir_version: 8 opset_import { version: 17 } graph { name: "g"'
    echo 'node { op_type: "Identity" input: "w" output: "y" }'
    echo 'output { name: "y" type { tensor_type { elem_type: 2 shape { dim { dim_value: 16 } } } } }'
    echo 'initializer { dims: 16 data_type: 2 name: "w" data_location: EXTERNAL'
    printf 'external_data { key: "location" value: "%s" }\n' "$1"
    shift
    for entry; do
        echo "external_data { key: \"${entry%%=*}\" value: \"${entry#*=}\" }"
    done
    echo '} }'
}
# refused RULE: model.textproto cannot be read through, and no file comes of it
refused() {
    rm -f x.onnx
    expect 1 "$ONX" convert model.textproto x.onnx --inline-external
    says err "$1"
    [ ! -e x.onnx ] || fail "x.onnx was written"
    [ -z "$(find . -name '.*.tmp')" ] || fail "a temporary file was left"
}
printf 0123456789abcdef >w.bin
printf 'a secret of 16 b' >../secret.bin
mkdir sub
cp w.bin sub/v.bin

for location in w.bin ./w.bin sub/v.bin sub//v.bin; do
    model $location >model.textproto
    expect 0 "$ONX" convert model.textproto in.onnx --inline-external
    expect 0 grep -q 0123456789abcdef in.onnx
done

# ---- places
for location in ../secret.bin sub/../../secret.bin sub/../w.bin ..; do
    model "$location" >model.textproto
    refused E-04
done
model "$here/secret.bin" >model.textproto
refused E-03
for location in 'c:w.bin' 'sub\\v.bin' 'w.bin:x' nul; do
    model "$location" >model.textproto
    refused E-05
done
model 'w.bin\000x' >model.textproto
refused E-06
ln -s w.bin link.bin
ln -s ../secret.bin out.bin
ln -s .. up
ln -s sub inside
for location in link.bin inside/v.bin; do
    model "$location" >model.textproto
    refused E-08
done
for location in out.bin up/secret.bin; do
    model "$location" >model.textproto
    refused E-07
done
mkfifo fifo
for location in sub none.bin fifo w.bin/x; do
    model "$location" >model.textproto
    refused E-09
done
cp w.bin two.bin
ln two.bin names.bin
model two.bin >model.textproto
refused E-10

# ---- links that are allowed, as caches of models have them
model link.bin >model.textproto
for command in "info model.textproto" "info --json model.textproto"; do
    # shellcheck disable=SC2086
    expect 0 "$ONX" $command
    grep -qE "refused: link|\"file\": \"link\"" out || fail "info does not say that it is a link"
done
expect 1 "$ONX" check model.textproto
says out E-08
says out "hint: --external-links"
for location in link.bin inside/v.bin two.bin out.bin up/secret.bin; do
    model "$location" >model.textproto
    expect 1 "$ONX" run model.textproto
    says err "hint: --external-links"
    expect 0 "$ONX" run model.textproto --external-links
    expect 0 "$ONX" check model.textproto --external-links
    expect 0 "$ONX" convert model.textproto in.onnx --inline-external --external-links
    expect 0 "$ONX" info model.textproto --external-links
    says out "file of 16 B"
done
ln -s none.bin dangling.bin
ln -s loop.bin loop.bin
for location in dangling.bin loop.bin fifo sub none.bin; do
    model "$location" >model.textproto
    expect 1 timeout 20 "$ONX" convert model.textproto x.onnx --inline-external --external-links
    expect 0 timeout 20 "$ONX" info model.textproto
done
for location in ../secret.bin "$here/secret.bin" sub/../w.bin; do # names stay what they have to be
    model "$location" >model.textproto
    expect 1 "$ONX" convert model.textproto x.onnx --inline-external --external-links
done

# A model cache: the model and its data are relative links to files of one folder. No other link is followed: an archive
# that contains links reaches only files that are beside the file of its model.
mkdir -p hub/blobs hub/snapshots/abc/onnx/sub hub/elsewhere
model w.bin >model.textproto
expect 0 "$ONX" convert model.textproto hub/snapshots/abc/onnx/m.onnx --external m.onnx_data --external-threshold 1
cache=hub/snapshots/abc/onnx
mv $cache/m.onnx hub/blobs/1111
mv $cache/m.onnx_data hub/blobs/2222
ln -s ../../../blobs/1111 $cache/m.onnx
data() { rm -f $cache/m.onnx_data; ln -s "$1" $cache/m.onnx_data; }
data ../../../blobs/2222
for command in run check info; do expect 0 "$ONX" $command $cache/m.onnx; done
says out "file of"
expect 0 "$ONX" convert $cache/m.onnx in.onnx --inline-external
expect 0 sh -c 'cd "$1" && "$2" run m.onnx' sh $cache "$ONX"
cp hub/blobs/2222 hub/elsewhere/2222
cp hub/blobs/2222 hub/blobs/4444
ln -s ../elsewhere/2222 hub/blobs/link
for to in ../../../elsewhere/2222 ../../../blobs/link "$PWD/hub/blobs/2222" ../../../blobs/.. ../../../blobs/none; do
    data "$to"
    expect 1 "$ONX" run $cache/m.onnx
done
data ../../../elsewhere/2222
expect 1 "$ONX" run $cache/m.onnx
says err "hint: --external-links"
ln hub/blobs/4444 hub/blobs/5555 # two names
data ../../../blobs/4444
expect 1 "$ONX" run $cache/m.onnx
data ../../../blobs/2222
cp hub/blobs/1111 $cache/copy.onnx # which is no link
expect 1 "$ONX" run $cache/copy.onnx
says err "hint: --external-links"
cp hub/blobs/1111 hub/elsewhere/1111
ln -s ../../../elsewhere/1111 $cache/far.onnx # a link to another folder
expect 1 "$ONX" run $cache/far.onnx

# ---- numbers
model w.bin offset=-1 >model.textproto
refused E-14
model w.bin length=0x10 >model.textproto
refused E-15
model w.bin offset=18446744073709551615 length=16 >model.textproto
refused E-16
model w.bin offset=1 length=16 >model.textproto
refused E-16
model w.bin length=8 >model.textproto
refused E-17
model w.bin location=sub/v.bin >model.textproto
refused E-21

# ---- from standard input there is no folder
model w.bin >model.textproto
expect 1 sh -c "cat model.textproto | '$ONX' convert - x.onnx --inline-external"
says err E-12
says err "hint: --external-dir DIR"
expect 0 sh -c "cat model.textproto | '$ONX' convert - in.onnx --inline-external --external-dir ."
model v.bin >elsewhere.textproto
expect 1 "$ONX" run elsewhere.textproto
expect 0 "$ONX" run elsewhere.textproto --external-dir sub
expect 0 "$ONX" check elsewhere.textproto --external-dir sub
expect 0 "$ONX" info elsewhere.textproto --external-dir sub
says out "file of 16 B"
expect 2 "$ONX" run elsewhere.textproto --external-dir none
# basepath is not believed
model w.bin basepath=/etc >model.textproto
expect 0 "$ONX" convert model.textproto in.onnx --inline-external

# ---- out and in again
expect 0 "$ONX" convert in.onnx moved.onnx --external weights.bin --external-threshold 1
[ "$(stat -c %a weights.bin)" = "$(stat -c %a moved.onnx)" ] || fail "the data file has mode $(stat -c %a weights.bin)"
chmod 600 weights.bin # one that is replaced keeps its mode
expect 0 "$ONX" convert in.onnx moved.onnx --external weights.bin --external-threshold 1
[ "$(stat -c %a weights.bin)" = 600 ] || fail "the replaced data file has mode $(stat -c %a weights.bin)"
same weights.bin w.bin
expect 0 "$ONX" convert moved.onnx back.onnx --inline-external
same back.onnx in.onnx
expect 0 "$ONX" convert in.onnx moved.onnx --external data/ --external-per-tensor --external-threshold 1
same data/00000-w w.bin
for location in ../w.bin /tmp/w.bin 'c:w.bin'; do
    expect 2 "$ONX" convert in.onnx moved.onnx --external "$location" --external-threshold 1
done
# E-28: what may not be written through
for location in link.bin two.bin up/new.bin; do
    "$ONX" convert in.onnx moved.onnx --external $location --external-threshold 1 >out 2>err && fail "$location was written"
done
[ ! -e ../new.bin ] || fail "written through a link"
[ "$(cat ../secret.bin)" = 'a secret of 16 b' ] || fail "the secret changed"

# ---- checksums
"$ONX" convert in.onnx moved.onnx --external weights.bin --external-threshold 1 --checksum >out 2>err
case $? in
0)
    expect 0 "$ONX" check --checksums moved.onnx
    printf X >>weights.bin
    expect 1 "$ONX" check --checksums moved.onnx
    says out E-19
    ;;
*)
    says err "needs libcrypto"
    echo "checksums are not tested: no libcrypto"
    ;;
esac
done_testing

#!/bin/sh
# demo.sh ONX: a small convolutional network, from its text to its results, then networks exported by PyTorch.
set -eu
onx=$(realpath "$1")
examples=$(cd "$(dirname "$0")" && pwd)
PATH=$(dirname "$onx"):$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

bold= plain=
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then
    bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
try() {
    printf '%s$ %s%s\n' "$bold" "$*" "$plain"
    "$@"
}

say "A network written by hand, as text: in which direction do the stripes of an image run?"
cp "$examples/stripes.onnxtxt" "$examples/image.onnxtxt" "$examples/answer.onnxtxt" .
try onx convert stripes.onnxtxt stripes.onnx
try onx info stripes.onnx

say "Is the model valid? What are the shapes of its values?"
try onx check --full stripes.onnx
try onx infer stripes.onnx -o inferred.onnx
try onx show inferred.onnx

say "An image with vertical stripes. The four scores are for horizontal, vertical, and the two diagonals."
try onx convert --as tensor image.onnxtxt image.pb
try onx run stripes.onnx --input image=image.pb --output-dir out
try onx show --as tensor out/output_0.pb

say "The same as a test case, and a benchmark."
mkdir -p case/test_data_set_0
cp stripes.onnx case/model.onnx
cp image.pb case/test_data_set_0/input_0.pb
try onx convert --as tensor answer.onnxtxt case/test_data_set_0/output_0.pb
try onx test case
try onx bench stripes.onnx --dim H=256 --dim W=256 --seconds 1

say "A changed model, and the differences that onx diff finds."
sed 's/strides = \[2, 2\]/strides = [1, 1]/; s/2,  2,  2/2,  2.5,  2/' stripes.onnxtxt >changed.onnxtxt
try onx diff stripes.onnxtxt changed.onnxtxt || true

if onx help --libraries | grep -q '^libzip .*[0-9]'; then
    say "An untrained network learns to read digits, from images that another network draws (examples/train)."
    sh "$examples/train/digits.sh" "$onx" --short
fi

data=/usr/share/libonnx-testdata/data
if [ -d $data/pytorch-converted ]; then
    say "Networks that PyTorch exported, with their expected outputs (Debian's libonnx-testdata)."
    try onx test $data/pytorch-converted $data/pytorch-operator
fi
say "That was it. \"onx help\" lists the commands."

#!/bin/sh
# digits.sh ONX [--short]: draws digits, trains an untrained network with them, and prints its accuracy on other drawings.
set -eu
onx=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
PATH=$(dirname "$onx"):$PATH
count=6000 epochs=6
[ "${2-}" != --short ] || count=1500 epochs=3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
try() {
    printf '$ %s\n' "$*"
    "$@"
}

cp "$here/draw.onnxtxt" "$here/digits.onnxtxt" .
# Two sets of drawings, with different random seeds.
try onx run draw.onnxtxt --range dice=0:1 --range shake=0:1 --dim N=$count --seed 1 -o train.npz
try onx run draw.onnxtxt --range dice=0:1 --range shake=0:1 --dim N=2000 --seed 2 -o test.npz
# Adds loss, gradients, optimiser and initialisers. Names that begin with w are weights.
try onx trainable digits.onnxtxt -o training.onnx --train 'w*'
try onx train training.onnx --data train.npz -o trained.onnx --epochs $epochs --shuffle --schedule rate=cosine
try onx train trained.onnx --data test.npz --evaluate

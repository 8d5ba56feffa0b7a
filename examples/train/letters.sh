#!/bin/sh
# letters.sh ONX [--short] [TEXT]: trains a network to predict the next letter of a text (default: the license), and lets it
# continue the beginning of the text.
set -eu
onx=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
PATH=$(dirname "$onx"):$PATH
epochs=30 length=60
if [ "${1-}" = --short ]; then
    epochs=2 length=3
    shift
fi
text=$(realpath "${1-$here/../../LICENSE}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
try() {
    printf '$ %s\n' "$*"
    "$@"
}

cp "$here/cut.onnxtxt" "$here/letters.onnxtxt" .
# The text as an array of bytes: a NumPy file starts with a line that describes the data.
{
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($(wc -c <"$text"),)}"
    cat "$text"
} >text.npy
try onx run cut.onnxtxt -i text=text.npy -o windows.npz
try onx trainable letters.onnxtxt -o training.onnx --train 'w*' --rate 0.01 --clip-norm 1
try onx train training.onnx --data windows.npz -o trained.onnx --epochs $epochs --batch 16 --shuffle --schedule rate=cosine

# Appends the most likely next letter, repeatedly.
start="   Licensed under the Apa"
codes=$(printf '%s' "$start" | od -An -v -tu1 | tr -s ' \n' ',' | sed 's/^,//; s/,$//')
printf '\n%s|' "$start"
for _ in $(seq $length); do
    code=$(onx run trained.onnx -i letter="[[$codes]]" | awk '$1 == "following" { print $3 }')
    # shellcheck disable=SC2059
    printf "$(printf '\\%03o' "$code")"
    # The network was trained on rows of 32 letters.
    codes=$(echo "$codes,$code" | tr ',' '\n' | tail -n 32 | paste -s -d , -)
done
printf '\n'

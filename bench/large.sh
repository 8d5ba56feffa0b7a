#!/bin/sh
# Measures commands that change models: seconds, and the peak of anonymous memory in MB (the model's weights are in a mapped
# file, which does not count).  bench/large.sh ONX MODEL [WORDS that select lines]
# MODEL is one of bench/large.py. The first line is `info`, which shows the memory of the program and the graph alone.
set -u
onx=$1
model=$2
only=${3:-}
here=$(dirname "$0")
work=$(mktemp -d "$(dirname "$model")/large.XXXXXX")
trap 'rm -rf "$work"' EXIT

line() { # COMMAND and options...
    case "$*" in *"$only"*) ;; *) return ;; esac
    rm -f "$work"/*
    # shellcheck disable=SC2086
    took=$("$here/anonymous.py" "$onx" "$@" 2>"$work/errors") ||
        took="${took:-} FAILED: $(grep -v 'made up' "$work/errors" | tail -n 1)"
    printf '%-90s %s\n' "$(echo "$*" | sed "s|$work/||g; s|$model|MODEL|g")" "$took"
}

line info "$model"
line check --full "$model"
line infer "$model" -o "$work/out.onnx"
line retarget "$model" --opset 17 -o "$work/out.onnx" --best-effort
line retarget "$model" --opset 22 -o "$work/out.onnx"
line simplify "$model" -o "$work/out.onnx"
line extract "$model" --split 4 -o "$work/part.onnx"
line edit "$model" -o "$work/out.onnx" --rename 'v*=value*'
line inline "$model" --schema -o "$work/out.onnx"
line outline "$model" -o "$work/out.onnx"
line compress "$model" -o "$work/out.onnx"
line precision "$model" --to float16 -o "$work/out.onnx"
line quantize "$model" --mode dynamic -o "$work/out.onnx"
line quantize "$model" --mode weights --weight-type int4 -o "$work/out.onnx"
line run "$model" --random
line quantize "$model" --mode static --samples 2 -o "$work/out.onnx"
line quantize "$model" --mode static --form qlinear --calibrate entropy --samples 2 -o "$work/out.onnx"
line quantize "$model" --mode static --samples 1 --table -o "$work/out.onnx"
line quantize "$model" --mode dynamic --samples 1 --max-error 0.02 -o "$work/out.onnx"
line quantize "$model" --mode weights --weight-type int4 --samples 1 --max-error 0.2 -o "$work/out.onnx"
line quantize "$model" --mode weights --feedback --samples 1 -o "$work/out.onnx"
line precision "$model" --to float16 --samples 1 -o "$work/out.onnx"
line precision "$model" --to float16 --samples 1 --max-error 0.001 -o "$work/out.onnx"
line precision "$model" --to bfloat16 --samples 1 --max-error 0.01 -o "$work/out.onnx"

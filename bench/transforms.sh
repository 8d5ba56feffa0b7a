#!/bin/sh
# Applies every transform to every network of some folders and measures how the results change; too slow for
# the tests.  bench/transforms.sh ONX DIR...
# Prints a line per network and transform: the signal-to-noise ratio that `onx compare` gives for the worst output, or the
# error. The exit status is 1 if an exact transform changed results, or a model is not valid afterwards.
set -u
onx=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

line() { # network, transform, words
    printf '%-24s %-16s %s\n' "$1" "$2" "$3"
}

# The lowest signal-to-noise ratio over the outputs, or "equal".
worst() { # the JSON of compare
    /usr/bin/python3 -c '
import json, sys
rows = json.load(open(sys.argv[1]))["values"]
ratios = [r.get("snr_db") for r in rows if r.get("snr_db") is not None]
bad = [r["name"] for r in rows if r.get("agrees") is False]
print("%s%s" % ("%.0f dB" % min(ratios) if ratios else "equal", "  departs: " + ", ".join(bad[:3]) if bad else ""))
' "$1"
}

compare() { # network, transform, result, exact or close
    if ! "$onx" check "$work/$3" >"$work/check" 2>&1; then
        line "$1" "$2" "NOT VALID: $(grep -m1 error "$work/check")"
        status=1
        return
    fi
    "$onx" compare "$model" "$work/$3" --json >"$work/compare" 2>"$work/errors"
    code=$?
    if [ ! -s "$work/compare" ]; then
        line "$1" "$2" "FAILED TO RUN: $(tail -n 1 "$work/errors")"
        status=1
    else
        line "$1" "$2" "$(worst "$work/compare")"
        [ "$4" != exact ] || [ $code -eq 0 ] || status=1
    fi
}

apply() { # network, name of the transform, exact or close, command of onx and options...
    name=$1
    what=$2
    how=$3
    shift 3
    rm -f "$work/out.onnx"
    if "$onx" "$@" "$model" -o "$work/out.onnx" >"$work/log" 2>&1; then
        compare "$name" "$what" out.onnx "$how"
    else
        line "$name" "$what" "refused: $(grep -m1 -E 'error|refused|cannot' "$work/log" | cut -c1-150)"
    fi
}

for folder in "$@"; do
    for model in "$folder"/*.onnx; do
        network=$(basename "$model" .onnx)
        apply "$network" simplify exact simplify
        for opset in 13 17 22 28; do
            apply "$network" "opset $opset" exact retarget --opset $opset
        done
        rm -f "$work"/part.*
        if "$onx" extract "$model" -o "$work/part.onnx" --split 2 >"$work/log" 2>&1 &&
            "$onx" merge "$work/part.1.onnx" "$work/part.2.onnx" -o "$work/out.onnx" >"$work/log" 2>&1; then
            compare "$network" "split and join" out.onnx exact
        else
            line "$network" "split and join" "refused: $(tail -n 1 "$work/log" | cut -c1-150)"
            status=1
        fi
        apply "$network" outline exact outline
        apply "$network" float16 close precision --to float16 --keep-io
        apply "$network" bfloat16 close precision --to bfloat16 --keep-io
        apply "$network" "int8 dynamic" close quantize --mode dynamic
        apply "$network" "int8 static" close quantize --mode static
        apply "$network" "int8 weights" close quantize --mode weights
        apply "$network" "int4 weights" close quantize --mode weights --weight-type int4
        apply "$network" compress exact compress
    done
done
exit $status

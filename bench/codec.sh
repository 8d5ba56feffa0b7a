#!/bin/sh
# codec.sh ONX: speed and memory of reading and writing models, against libprotobuf with the generated classes of ONNX
# (Debian's libonnx-dev), alternating on the same files. Prints ratios; above 1 means that onx is better.
#   ONX_BENCH_ROUNDS  number of measurements of each figure, default 5; the median counts
set -eu
onx=$1
build=$(dirname "$onx")
here=$(dirname "$0")
work=$build/bench
rounds=${ONX_BENCH_ROUNDS:-5}
mkdir -p "$work"

cmake --build "$build" --target bench_model bench_measure >/dev/null
peer=$work/peer
[ "$peer" -nt "$here/bench_peer.cc" ] || g++ -O3 -DONNX_ML=1 -DONNX_NAMESPACE=onnx "$here/bench_peer.cc" -o "$peer" -lonnx_proto -lprotobuf -lpthread

make_model() { # what, count
    [ -s "$work/$1-$2.onnx" ] || "$work/bench_model" "$1" "$2" "$work/$1-$2.onnx"
    echo "$work/$1-$2.onnx"
}
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
number() { sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p"; }
# what, ours, theirs, unit
line() { awk -v w="$1" -v a="$2" -v b="$3" -v u="$4" 'BEGIN { printf "  %-34s %10.2f %s %14.2f %s %9.2f x\n", w, a, u, b, u, b / (a > 0 ? a : 1e-9) }'; }

codec() { # title, file
    : >"$work/ours" && : >"$work/theirs"
    i=0
    while [ $i -lt "$rounds" ]; do
        "$onx" bench --codec "$2" --threads 1 --json | tr -d '\n' >"$work/json"
        echo "$(number decode_ms <"$work/json") $(number encode_ms <"$work/json")" >>"$work/ours"
        "$peer" codec "$2" >>"$work/theirs"
        i=$((i + 1))
    done
    line "$1: decode" "$(cut -d' ' -f1 "$work/ours" | median)" "$(cut -d' ' -f1 "$work/theirs" | median)" ms
    line "$1: encode" "$(cut -d' ' -f2 "$work/ours" | median)" "$(cut -d' ' -f2 "$work/theirs" | median)" ms
}

open() { # title, file
    : >"$work/ours" && : >"$work/theirs"
    i=0
    while [ $i -lt "$rounds" ]; do
        "$work/bench_measure" "$onx" info "$2" >>"$work/ours"
        "$work/bench_measure" "$peer" open "$2" >>"$work/theirs"
        i=$((i + 1))
    done
    line "$1: open" "$(cut -d' ' -f1 "$work/ours" | median)" "$(cut -d' ' -f1 "$work/theirs" | median)" ms
    line "$1: peak memory" "$(cut -d' ' -f2 "$work/ours" | median | awk '{ print $1 / 1024 }')" \
        "$(cut -d' ' -f2 "$work/theirs" | median | awk '{ print $1 / 1024 }')" MiB
}

nodes=$(make_model nodes 200000)
weights=$(make_model weights 839)
printf '  %-34s %13s %18s %11s\n' '' onx libprotobuf ratio
codec '200,000 nodes' "$nodes"
codec '839 MiB of weights' "$weights"
open '200,000 nodes' "$nodes"
open '839 MiB of weights' "$weights"

#!/bin/sh
# analysis.sh ONX [FILE...]: times checking and inference, including decoding, against the reference (Debian's
# python3-onnx) on the same file, alternating. Prints ratios; above 1 means that onx is faster. Without FILE it uses 200,000
# nodes, once bare and once with a type for every value.
#   ONX_BENCH_ROUNDS  number of measurements of each figure, default 3; the median counts
set -eu
onx=$1
shift
build=$(dirname "$onx")
here=$(dirname "$0")
work=$build/bench
rounds=${ONX_BENCH_ROUNDS:-3}
python=${ONX_BENCH_PYTHON:-/usr/bin/python3}
mkdir -p "$work"
cmake --build "$build" --target bench_model bench_analysis >/dev/null
"$python" -c 'import onnx' 2>/dev/null || { echo "needs python3-onnx"; exit 77; }
if [ $# -eq 0 ]; then
    for kind in bare nodes; do
        file=$work/$kind-200000.onnx
        [ -s "$file" ] || "$work/bench_model" $kind 200000 "$file"
        set -- "$@" "$file"
    done
fi

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# title, time of onx (an awk expression), column of the reference's time
line() {
    awk "{ print $2 }" "$work/ours" | median >"$work/a"
    cut -d' ' -f"$3" "$work/theirs" | median >"$work/b"
    awk -v w="$1" -v a="$(cat "$work/a")" -v b="$(cat "$work/b")" \
        'BEGIN { printf "  %-34s %10.2f ms %14.2f ms %9.2f x\n", w, a, b, b / a }'
}

printf '  %-34s %13s %18s %11s\n' '' onx python3-onnx ratio
for file in "$@"; do
    echo "$(basename "$file")"
    : >"$work/ours" && : >"$work/theirs"
    i=0
    while [ $i -lt "$rounds" ]; do
        "$work/bench_analysis" "$file" >>"$work/ours"
        "$python" "$here/analysis_peer.py" "$file" >>"$work/theirs"
        i=$((i + 1))
    done
    line "decode, check structure" '$1 + $2' 1
    line "decode, check all rules" '$1 + $3' 1
    line "decode, infer" '$1 + $4' 2
    line "decode, infer, encode" '$1 + $4 + $5' 2
done

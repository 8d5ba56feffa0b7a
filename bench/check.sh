#!/bin/sh
# check.sh ONX [FILE]: how long checking takes, decoding included, against the reference checker (Debian's python3-onnx)
# on the same file, in turn. Prints the ratio; above 1 means that onx is faster. Without FILE: 200,000 nodes.
#   ONX_BENCH_ROUNDS  how often each figure is taken, default 3; the median counts
set -eu
onx=$1
build=$(dirname "$onx")
here=$(dirname "$0")
work=$build/bench
rounds=${ONX_BENCH_ROUNDS:-3}
python=${ONX_BENCH_PYTHON:-/usr/bin/python3}
mkdir -p "$work"
cmake --build "$build" --target bench_model bench_check >/dev/null
file=${2:-$work/nodes-200000.onnx}
[ -s "$file" ] || "$work/bench_model" nodes 200000 "$file"
"$python" -c 'import onnx' 2>/dev/null || { echo "needs python3-onnx"; exit 77; }
: >"$work/ours" && : >"$work/theirs"
i=0
while [ $i -lt "$rounds" ]; do
    "$work/bench_check" "$file" >>"$work/ours"
    "$python" "$here/check_peer.py" "$file" >>"$work/theirs"
    i=$((i + 1))
done
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
theirs=$(median <"$work/theirs")
printf '  %-34s %13s %18s %11s\n' '' onx python3-onnx ratio
awk '{ print $1 + $2 }' "$work/ours" | median | awk -v t="$theirs" '{ printf "  %-34s %10.2f ms %14.2f ms %9.2f x\n", "decode, structure", $1, t, t / $1 }'
awk '{ print $1 + $3 }' "$work/ours" | median | awk -v t="$theirs" '{ printf "  %-34s %10.2f ms %14.2f ms %9.2f x\n", "decode, all rules", $1, t, t / $1 }'

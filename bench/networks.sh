#!/bin/sh
# networks.sh ONX FOLDER [THREADS]: runs every model of a folder in onnxruntime-node and in onx, alternating. Prints the
# minimum time of a run in ms over some rounds, the speed of onx relative to onnxruntime, and the share of onx's time that its
# arithmetic, or reading its weights, would take at the rates that this machine reaches in a matrix product and in copying
# (`onx bench --profile`). NODE_PATH is a folder with onnxruntime-node (npm install onnxruntime-node); ROUNDS and DURATION
# (seconds) set the length of the measurement. Other processes cost both sides more than most changes gain: use an idle
# machine, or many rounds.
set -eu
onx=$1
folder=$2
threads=${3:-1}
here=$(dirname "$0")
rounds=${ROUNDS:-3}
seconds=${DURATION:-1}

least() { # minimum of numbers, one per line
    sort -g | head -1
}
printf '  %-30s %12s %12s %8s %8s   %s thread(s)\n' '' onnxruntime onx ratio bound "$threads"
for file in "$folder"/*.onnx; do
    theirs= ours=
    for _ in $(seq "$rounds"); do
        theirs="$theirs
$(node "$here/networks.js" "$file" "$threads" "$seconds")"
        ours="$ours
$("$onx" bench "$file" --threads "$threads" --seconds "$seconds" --json | sed -n 's/.*"min_ms": \([0-9.]*\).*/\1/p')"
    done
    a=$(echo "$theirs" | sed '/^$/d' | least)
    b=$(echo "$ours" | sed '/^$/d' | least)
    case $a in fail | '') continue ;; esac
    [ -n "$b" ] || continue
    bound=$("$onx" bench "$file" --threads "$threads" --seconds 0.1 --profile --json | sed -n 's/.*"bound_ms": \([0-9.e+-]*\).*/\1/p')
    echo "$(basename "$file" .onnx) $a $b ${bound:-0}"
done | awk '{ r = $2 / $3; sum += log(r); n++; printf "  %-30s %12.3f %12.3f %7.2fx %7.0f%%\n", $1, $2, $3, r, 100 * $4 / $3; fflush() }
    END { if (n) printf "  %-30s %12s %12s %7.2fx\n", "geometric mean", "", "", exp(sum / n) }'

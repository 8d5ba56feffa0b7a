#!/bin/sh
# session.sh ONX [FILE...]: times the steps from a file to a result on one thread: reading it, making a session, the
# extra time of the first run, which plans, and a later run. Without FILE it uses 200,000 nodes, once with a
# type for every value, which are planned with the session, and once bare, which the first run plans.
set -eu
onx=$1
shift
build=$(dirname "$onx")
work=$build/bench
mkdir -p "$work"
cmake --build "$build" --target bench_model bench_session >/dev/null
if [ $# -eq 0 ]; then
    for kind in nodes bare; do
        file=$work/$kind-200000.onnx
        [ -s "$file" ] || "$work/bench_model" $kind 200000 "$file"
        set -- "$@" "$file"
    done
fi
printf '  %-30s %10s %10s %10s %10s   ms\n' '' read session plan run
for file in "$@"; do
    # shellcheck disable=SC2046
    printf '  %-30s %10s %10s %10s %10s\n' "$(basename "$file")" $("$work/bench_session" "$file")
done

#!/bin/sh
# session.sh ONX [FILE...]: how long it takes from a file to a result: reading it, making a session, what the first run
# takes longer than the next because it plans, and such a run, on one thread. Without FILE: 200,000 nodes, once with a
# type for every value, which can be planned with the session, and once bare, which the first run plans.
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

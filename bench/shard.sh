#!/bin/sh
# Runs a decoder of 440 MB on one rank and on two ranks of this machine: memory and time of each rank, and the prediction.
#   bench/shard.sh ONX DIR [SEQUENCE]
# The model is written to DIR, with its weights in a separate file, unless it exists. Each rank has one thread and a
# CPU of its own; figures of a busy machine mean little.
set -eu
onx=$1
dir=$2
tokens=${3:-32}
past=32
here=$(dirname "$0")
dims="--dim batch_size=1 --dim sequence_length=$tokens --dim past_sequence_length=$past --dim total_sequence_length=$((tokens + past))"
if [ ! -f "$dir/decoder.onnx" ]; then
    /usr/bin/python3 "$here/generate.py" "$dir" --large attention23
    "$onx" convert "$dir/attention23.onnx" "$dir/decoder.onnx" --external decoder.data
    rm "$dir/attention23.onnx"
fi
mpirun --oversubscribe --allow-run-as-root -n 2 "$onx" shard --measure --ranks -o "$dir/machine.txt"
# shellcheck disable=SC2086
"$onx" shard "$dir/decoder.onnx" -o "$dir/decoder2.onnx" --devices 2 --tensor-parallel $dims --machine "$dir/machine.txt"

measured() { # the rank's memory and the median
    sed -n 's/^time *\(.*\)/\1/p; /KB$/p'
}
format='%M KB'
echo 'one rank:'
# shellcheck disable=SC2086
/usr/bin/time -f "$format" taskset -c 0 "$onx" bench "$dir/decoder.onnx" $dims --threads 1 --seconds 4 2>&1 | measured
echo 'two ranks:'
# shellcheck disable=SC2086
mpirun --oversubscribe --allow-run-as-root --bind-to core -n 2 /usr/bin/time -f "$format" \
    "$onx" bench "$dir/decoder2.onnx" --configuration tensor2 $dims --threads 1 --seconds 4 2>&1 | measured

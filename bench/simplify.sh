#!/bin/sh
# simplify.sh ONX FOLDER [OPTION...]: simplifies every model of a folder. Prints the number of nodes before, after, and in the model
# that onnxruntime writes at its level basic; and the seconds and MB that onx took. NODE_PATH is a folder with onnxruntime-node
# (npm install onnxruntime-node); without it the column for onnxruntime is empty. onnxruntime folds constants of any size; onx does so
# with --fold-limit 1G, and otherwise lets no model grow.
set -eu
onx=$1
folder=$2
shift 2
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# nodes FILE: the number of nodes as simplify counts them, including subgraphs and functions.
nodes() { "$onx" simplify "$1" --dry-run --passes control 2>/dev/null | sed -n 's/.* nodes of \([0-9]*\) are left$/\1/p'; }
printf '  %-30s %9s %9s %12s %9s %7s\n' '' before onx onnxruntime seconds MB
for file in "$folder"/*.onnx; do
    before=$(nodes "$file")
    /usr/bin/time -f '%e %M' -o "$work/time" "$onx" simplify "$file" -o "$work/ours.onnx" "$@" >"$work/out" || continue
    after=$(sed -n 's/ nodes of .*//p' "$work/out")
    theirs=-
    if node "$here/simplify_peer.js" "$file" "$work/theirs.onnx" 2>/dev/null; then
        theirs=$(nodes "$work/theirs.onnx")
    fi
    read -r seconds kib <"$work/time"
    printf '  %-30s %9s %9s %12s %9s %7s\n' "$(basename "$file" .onnx)" "$before" "$after" "$theirs" "$seconds" $((kib / 1024))
    rm -f "$work"/*.onnx
done

#!/bin/sh
# text.sh ONX [MODEL]: speed of printing and parsing ONNX text, against the reference library (Debian's libonnx-dev),
# alternating on the same content: by default a graph of 200,000 nodes. CPU time, minimum of nine. Ratios above 1 mean that onx is faster.
set -eu
onx=$1
build=$(dirname "$onx")
here=$(dirname "$0")
work=$build/bench
mkdir -p "$work"
cmake --build "$build" --target bench_text >/dev/null
peer=$work/text_peer
[ "$peer" -nt "$here/bench_text_peer.cc" ] ||
    g++ -O3 -DONNX_ML=1 -DONNX_NAMESPACE=onnx "$here/bench_text_peer.cc" -o "$peer" -lonnx -lonnx_proto -lprotobuf -lpthread
model=${2-$work/text-200000.onnx}
[ -s "$model" ] || awk 'BEGIN {
    print "<ir_version: 8, opset_import: [\"\": 21]> g (float[N, 64] x0, float[64, 64] w) => (float[N, 64] x200000) {"
    for (i = 0; i < 200000; i++) {
        y = "x" (i + 1); x = "x" i
        if (i % 4 == 0) print y " = Gemm<alpha = 1.0, transB = 1>(" x ", w)"
        else if (i % 4 == 1) print y " = LeakyRelu<alpha = 0.01>(" x ")"
        else if (i % 4 == 2) print y " = Add(" x ", x" (i - 1) ")"
        else print y " = Transpose<perm = [0, 1]>(" x ")"
    }
    print "}"
}' | "$onx" convert --from onnxtxt - "$model"

: >"$work/ours" && : >"$work/theirs"
for _ in 1 2 3; do
    "$peer" "$model" "$work/peer.onnxtxt" "$work/same.onnx" >>"$work/theirs"
    "$work/bench_text" "$work/same.onnx" "$work/peer.onnxtxt" >>"$work/ours"
done
best() { cut -d' ' -f"$1" "$2" | sort -n | head -n 1; }
line() { awk -v w="$1" -v a="$2" -v b="$3" 'BEGIN { printf "  %-10s onx %8.1f ms   reference %8.1f ms   %6.2f x\n", w, a, b, b / a }'; }
echo "  $(wc -c <"$work/peer.onnxtxt") bytes of text"
line print "$(best 1 "$work/ours")" "$(best 1 "$work/theirs")"
line parse "$(best 2 "$work/ours")" "$(best 2 "$work/theirs")"

#!/bin/sh
# retarget.sh ONX MODEL VERSION [PYTHON]: CPU seconds of whole processes that convert a model to another version of the
# standard operators: onx (minimum of nine), and the version converter of the package onnx (once, for at most a minute).
set -eu
onx=$1
model=$2
version=$3
python=${4:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/cpu.py" <<'END'
import os, sys
times = []
for _ in range(int(sys.argv[1])):
    child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit("it failed")
    times.append(used.ru_utime + used.ru_stime)
print("%.4f" % min(times))
END
cat >"$work/peer.py" <<'END'
import resource, sys, onnx
from onnx import version_converter
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
onnx.save(version_converter.convert_version(onnx.load(sys.argv[1]), int(sys.argv[3])), sys.argv[2])
END
ours=$("$python" "$work/cpu.py" 9 "$onx" retarget "$model" -o "$work/ours.onnx" --opset "$version")
theirs=$("$python" "$work/cpu.py" 1 "$python" "$work/peer.py" "$model" "$work/theirs.onnx" "$version" 2>/dev/null) || theirs=none
printf '%-30s %10s %10s\n' '' onx onnx "$(basename "$model" .onnx) to $version" "$ours" "$theirs"

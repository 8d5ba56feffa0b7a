# The examples in other languages give the results of the C program; an example is skipped if its compiler is missing.
. "$ONX_SOURCE_DIR/tests/lib.sh"
build=$(dirname "$ONX")
[ -f "$build/libonx.so" ] || skip "a build with sanitizers has no shared library"
bindings=$ONX_SOURCE_DIR/examples/bindings
model=$ONX_SOURCE_DIR/examples/stripes.onnxtxt
LD_LIBRARY_PATH=$build
export LD_LIBRARY_PATH
expect 0 "$build/examples/example_run" "$model"
cp out wanted
tried=
runs() { # language, command...
    language=$1
    shift
    tried="$tried $language"
    expect 0 "$@" "$model"
    same wanted out
    expect 1 "$@" no_such.onnx
    says err "no_such.onnx"
}
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || continue
    # shellcheck disable=SC2086
    expect 0 $cxx -std=c++11 -Wall -Wextra -Wpedantic -Werror -I "$ONX_SOURCE_DIR/include" "$bindings/run.cpp" -o "run_$cxx" -L "$build" -lonx
    runs $cxx "./run_$cxx"
done
if command -v rustc >/dev/null && rustc --version >/dev/null 2>&1; then
    expect 0 rustc --edition 2021 -O "$bindings/run.rs" -o run_rust -L "native=$build" -l onx
    runs rust ./run_rust
fi
if command -v go >/dev/null; then
    CGO_CFLAGS="-I$ONX_SOURCE_DIR/include" CGO_LDFLAGS="-L$build -lonx" GOCACHE=$here/go GOFLAGS=-mod=mod
    export CGO_CFLAGS CGO_LDFLAGS GOCACHE GOFLAGS
    expect 0 go build -o run_go "$bindings/run.go"
    runs go ./run_go
fi
if command -v python3 >/dev/null; then
    runs python python3 "$bindings/run.py" "$build/libonx.so"
    # onx.json is JSON, and says of each function what a binding has to know.
    expect 0 python3 - "$build/onx.json" <<'END'
import json, sys
api = json.load(open(sys.argv[1]))
names = {f["name"] for f in api["functions"]}
structs = {s["name"]: s for s in api["structs"]}
assert len(names) > 200 and len(structs) > 80
for f in api["functions"]:
    assert f["returns"] and f["threads"] in ("any", "own", "each"), f["name"]
    assert not f["inline"] or "onx_ffi_" + f["name"][4:] in names, f["name"]
    assert f["returns"] != "onx_status" or "ONX_E_MISUSE" in f["errors"], f["name"]
    for p in f["parameters"]:
        assert p["name"] and p["type"], f["name"]
        assert "free" not in p or p["free"] in names, f["name"]
load = next(f for f in api["functions"] if f["name"] == "onx_session_load")
assert load["parameters"][-1]["free"] == "onx_session_free" and load["parameters"][2]["null"]
assert structs["onx_str"]["size"] == 16 and structs["onx_str"]["members"][1]["offset"] == 8
END
fi
[ -n "$tried" ] || skip "no compiler of another language"
echo "tried:$tried"
done_testing

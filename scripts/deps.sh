#!/bin/sh
# Installs the Debian 12 packages that building and testing onx needs. Does nothing if all of them are installed.
#   scripts/deps.sh [GROUP...]     groups: build libs tests python mpi packages peers browser wasm; default: build libs tests
set -eu

build='gcc g++ make cmake ninja-build pkg-config ccache git'
# Every library is optional: without it, the build omits the features that need it (see the options in CMakeLists.txt).
libs='libdnnl-dev libssl-dev libpcre2-dev libutf8proc-dev libleptonica-dev libsndfile1-dev libmpg123-dev libzip-dev'
tests='libcmocka-dev libjansson-dev clang clang-format libclang-rt-14-dev llvm protobuf-compiler libonnx-testdata'
# The package for Python, and the test runner for ONNX backends that it is tested with.
python='python3-dev python3-numpy python3-onnx python3-setuptools python3-pip'
# Running models on many devices: MPI, and the program that starts its ranks.
mpi='libopenmpi-dev openmpi-bin'
# Checks of Debian packages.
packages='lintian'
# Other implementations, for the comparisons in bench/ only.
peers='libonnx-dev libprotobuf-dev python3 python3-onnx'
# Pages in a real browser (tests/browser); the driver comes from npm when the tests run.
browser='chromium fonts-dejavu-core'
command -v node >/dev/null || browser="$browser nodejs"
command -v npm >/dev/null || browser="$browser npm" # Node packages from elsewhere include it
# The library as WebAssembly, and its npm package (web/).
wasm='emscripten'
command -v node >/dev/null || wasm="$wasm nodejs"
command -v npm >/dev/null || wasm="$wasm npm"

[ $# -gt 0 ] || set -- build libs tests
wanted=
for group in "$@"; do
    case $group in
    build) wanted="$wanted $build" ;;
    libs) wanted="$wanted $libs" ;;
    tests) wanted="$wanted $tests" ;;
    python) wanted="$wanted $python" ;;
    peers) wanted="$wanted $peers" ;;
    mpi) wanted="$wanted $mpi" ;;
    packages) wanted="$wanted $packages" ;;
    browser) wanted="$wanted $browser" ;;
    wasm) wanted="$wanted $wasm" ;;
    *)
        echo "deps.sh: no group '$group' (build, libs, tests, python, mpi, packages, peers, browser, wasm)" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "deps.sh: this is not Debian; please install the counterparts of:$wanted" >&2
    exit 0
fi

missing=
for package in $wanted; do
    # ${db:Status-Abbrev} is for dpkg-query, not for the shell.
    # shellcheck disable=SC2016
    case $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null) in
    ii*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "deps.sh: missing:$missing (and neither root nor sudo to install them with)" >&2
        exit 1
    fi
    as_root=sudo
fi
echo "deps.sh: installing$missing"
export DEBIAN_FRONTEND=noninteractive
# A package list may be there and old, so a failed installation is tried once more with a fresh one.
# shellcheck disable=SC2086
$as_root apt-get install -y -q --no-install-recommends $missing ||
    { $as_root apt-get update -q && $as_root apt-get install -y -q --no-install-recommends $missing; }

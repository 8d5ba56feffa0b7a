#!/bin/sh
# Tests the npm package that web/build.sh left in OUT: web/test.sh [OUT]. It is installed from its archive, as a user
# would, and tested in Node in both builds; the examples of its README and its types are tested, too. The module and the page
# onx.html are tested in a browser, where there is one.
set -eu
cd "$(dirname "$0")/.."
out=$(cd "${1:-build-web}" && pwd)
command -v node >/dev/null && command -v npm >/dev/null || { echo "web/test.sh: node or npm is missing (scripts/deps.sh wasm)" >&2; exit 77; }
rm -rf "$out/user"
mkdir -p "$out/user"
printf '{ "private": true, "type": "module" }\n' >"$out/user/package.json"
(cd "$out/user" && npm install --silent --no-audit --no-fund --offline "$out"/onx-*.tgz)
ONX_WEB=$out/user/node_modules/onx
export ONX_WEB
for simd in 1 0; do
    [ -e "$ONX_WEB/wasm/onx$([ $simd = 1 ] || echo -plain).wasm" ] || continue
    echo "web/test.sh: build $([ $simd = 1 ] && echo with || echo without) vectors"
    ONX_SIMD=$simd node --test web/test/
done
if [ -e "$out/onx.html" ]; then
    echo "web/test.sh: in a browser"
    mkdir -p "$out/browser"
    tests=$PWD/tests
    (cd "$out/browser" && ONX_SOURCE_DIR=${tests%/tests} ONX_WEB_OUT=$out ONX=none sh "$tests/browser/run.sh" "$out/browser" app) || [ $? -eq 77 ]
fi

#!/bin/sh
# Builds the npm package: web/build.sh OUT. The modules, with and without vectors, and the files of web/npm go to OUT/package.
# The archive for `npm install` and the page onx.html (web/app) go to OUT. The presets wasm and wasm-plain build in build-wasm
# and build-wasm-plain. ONX_WEB_BUILDS=wasm or =wasm-plain builds only one of the two, for gates that lack time for both.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build-web}
jobs=${JOBS:-$(nproc)}
for tool in emcc node npm; do
    command -v $tool >/dev/null || { echo "web/build.sh: $tool is missing (scripts/deps.sh wasm)" >&2; exit 77; }
done
builds=${ONX_WEB_BUILDS:-wasm wasm-plain}
for preset in $builds; do
    cmake --preset $preset >/dev/null
    cmake --build --preset $preset --parallel "$jobs"
done
rm -rf "$out/package"
mkdir -p "$out/package/wasm"
cp -R web/npm/. "$out/package/"
cp LICENSE "$out/package/"
node -p '`export const version = ${JSON.stringify(require("./web/npm/package.json").version)};`' >"$out/package/lib/version.js"
for preset in $builds; do
    kind=${preset#wasm}
    for module in onx onx-run onx-threads; do
        [ -e "build-wasm$kind/web/$module.wasm" ] || continue
        cp "build-wasm$kind/web/$module.wasm" "$out/package/wasm/$module$kind.wasm"
        cp "build-wasm$kind/web/$module.js" "$out/package/wasm/$module$kind.js"
    done
done
# The page for dropping models, with the module inside; not made if the module with vectors is not built.
[ ! -e "$out/package/wasm/onx.wasm" ] || node web/app/make.mjs "$out/package" examples/stripes.onnxtxt "$out/onx.html"
node web/bundle_package.mjs "$out/package"
(cd "$out" && npm pack --silent ./package >/dev/null)
node -e '
    const fs = require("fs"), zlib = require("zlib"), folder = process.argv[1];
    const mb = (n) => (n / 1e6).toFixed(2) + " MB";
    for (const name of fs.readdirSync(folder).filter((n) => n.endsWith(".wasm"))) {
        const bytes = fs.readFileSync(folder + name);
        console.log(`${name}: ${mb(bytes.length)}, gzip ${mb(zlib.gzipSync(bytes, { level: 9 }).length)}`);
    }
' "$out/package/wasm/"

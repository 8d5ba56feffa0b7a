# run.sh FOLDER TEST: runs TEST.mjs of this folder in a headless Chromium, driven by puppeteer-core. That is installed once from
# npm into FOLDER, with the versions of package-lock.json. Without Node, npm, Chromium or a registry the test is skipped.
. "$ONX_SOURCE_DIR/tests/lib.sh"
tools=$1
for program in node npm chromium; do
    command -v $program >/dev/null || skip "$program is not there (scripts/deps.sh browser)"
done
mkdir -p "$tools"
(
    # Tests that run at the same time wait for the one that installs.
    flock 9
    if ! cmp -s "$ONX_SOURCE_DIR/tests/browser/package-lock.json" "$tools/package-lock.json"; then
        cp "$ONX_SOURCE_DIR/tests/browser/package.json" "$tools"
        cp "$ONX_SOURCE_DIR/tests/browser/package-lock.json" "$tools/wanted.json"
        (cd "$tools" && cp wanted.json package-lock.json && timeout 300 npm ci --ignore-scripts --no-audit --no-fund) >log 2>&1 ||
            { rm -f "$tools/package-lock.json"; exit 1; }
    fi
) 9>"$tools/lock" || { tail -n 5 log; skip "npm cannot install puppeteer-core"; }
ONX_BROWSER_TOOLS=$tools node "$ONX_SOURCE_DIR/tests/browser/$2.mjs"

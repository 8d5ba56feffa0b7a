# lib.sh - for the scripts in tests/cli: . "$ONX_SOURCE_DIR/tests/lib.sh" at the start, done_testing at the end.
# Each script runs in a folder of its own, which is removed afterwards.
: "${ONX:?is not set: the program to test}" "${ONX_SOURCE_DIR:?is not set: the root of the sources}"
set -u
unset NO_COLOR COLUMNS
LC_ALL=C
TERM=dumb
export LC_ALL TERM
failures=0
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 2
golden=$ONX_SOURCE_DIR/tests/golden/cli

fail() { # message...
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# expect STATUS COMMAND...: runs it; output goes to the files out and err.
expect() {
    wanted=$1
    shift
    "$@" >out 2>err
    got=$?
    [ $got -eq "$wanted" ] || { fail "exit status $got, expected $wanted: $*"; sed 's/^/    /' err | head -n 5; }
}

# says FILE TEXT: the file (out or err) contains the text.
says() {
    grep -qF -- "$2" "$1" || { fail "no \"$2\" in $1 of the last command:"; sed 's/^/    /' "$1" | head -n 8; }
}

# same FILE FILE
same() {
    cmp -s "$1" "$2" || { fail "$1 and $2 differ"; diff -u "$1" "$2" | head -n 20; }
}

# leads PAGE: every file that the page in Markdown links to is there.
leads() {
    [ -f "$1" ] || fail "no page $1"
    grep -o '](\([^):#]*\))' "$1" | sed 's/](\(.*\))/\1/' | while read -r link; do
        [ -e "$(dirname "$1")/$link" ] || echo "$link"
    done >dead
    [ ! -s dead ] || fail "$1 leads to nothing: $(cat dead)"
}

# golden_is NAME [FILE]: FILE (out) is what tests/golden/cli/NAME holds. With ONX_UPDATE_GOLDEN=1 the latter is written.
golden_is() {
    if [ -n "${ONX_UPDATE_GOLDEN-}" ]; then
        cp "${2-out}" "$golden/$1"
    elif ! diff -u "$golden/$1" "${2-out}" >diff.txt 2>&1; then
        fail "differs from tests/golden/cli/$1:"
        head -n 40 diff.txt
    fi
}

# failed_cases <OUT: folders of the cases that fail in what `onx test` printed. What a build leaves out with a library
# is no failure.
failed_cases() {
    awk '/^FAIL / { if (name) print name; name = $2; sub(/:$/, "", name) } /left out of this build/ { name = "" }
         END { if (name) print name }' | sed 's,/test_data_set_[0-9]*$,,'
}

# passed_at_least NUMBER: `onx test`, whose output is in the file out, ran so many cases well, and one at least.
passed_at_least() {
    passed=$(sed -n 's/^\([0-9]*\) passed.*/\1/p' out)
    [ "${passed:-0}" -gt 0 ] && [ "$passed" -ge "$1" ] || fail "fewer than $1 ran: $(tail -n 1 out)"
}

# backend_models AWK [light]: the models that the ONNX project tests runtimes with go to the file models, those whose number
# suits the expression, without the large ones or with them; at most a third of those where ONX_TEST_SHARE is set (share.h). link_sets MODEL FOLDER:
# links the test data of such a model in the folder.
backend_models() {
    data=${ONX_CONFORMANCE_DIR:-}
    [ -n "$data" ] && data=$data/backend || data=/usr/share/libonnx-testdata/data
    [ -d "$data" ] || skip "no conformance data (ONX_CONFORMANCE_DIR or Debian's libonnx-testdata)"
    [ -d "${data}_28" ] && newest=${data}_28 || newest= # what the newest operator set adds
    find "$data" ${newest:+"$newest"} -path "*${2-}light*" -prune -o -name model.onnx -print | sort | awk "$1" >models
    [ -s models ] || skip "no models in $data"
    if [ "${ONX_TEST_SHARE:-1}" -gt 1 ]; then
        awk 'NR % 3 == 2' models >third
        mv third models
    fi
}
link_sets() {
    for set in "$(dirname "$1")"/test_data_set_*; do
        [ -e "$set" ] && ln -s "$(realpath "$set")" "$2"
    done
}

skip() { # reason
    echo "skipped: $*"
    exit 77
}

# ranks STATUS N COMMAND...: by mpirun; has_ranks: can it be had here, for this build?; needs_ranks: the test is skipped without.
ranks() {
    status=$1
    number=$2
    shift 2
    expect "$status" timeout 120 mpirun --oversubscribe --allow-run-as-root -n "$number" "$@"
}
has_ranks() {
    command -v mpirun >/dev/null && "$ONX" help --libraries | grep -q '^MPI .*\.so\.' &&
        mpirun --oversubscribe --allow-run-as-root -n 1 true 2>/dev/null
}
needs_ranks() {
    has_ranks || skip "no mpirun that runs here (scripts/deps.sh mpi), or a build without MPI"
}

done_testing() {
    [ $failures -eq 0 ] || exit 1
    exit 0
}

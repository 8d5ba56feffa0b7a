# onx test on the data of the ONNX project's backend tests: all cases pass except those in node_data.failures.
. "$ONX_SOURCE_DIR/tests/lib.sh"
data=${ONX_CONFORMANCE_DIR:-}
if [ -n "$data" ] && [ -d "$data/backend" ]; then
    copy=newest
    set -- "$data/backend" "$data/backend_history" "$data/backend_28" # the last: what the newest operator set adds
elif [ -d /usr/share/libonnx-testdata/data/node ]; then
    copy=debian
    set -- /usr/share/libonnx-testdata/data
else
    skip "no node data (ONX_CONFORMANCE_DIR or Debian's libonnx-testdata)"
fi
# Folders of cases: the networks of backend/light have weights of a hundred megabytes and are left to others.
for root; do
    case $root in
    *backend_history | *backend_28) printf '%s\n' "$root"/*/ ;;
    *) printf '%s\n' "$root"/node/*/ "$root"/simple/*/ "$root"/pytorch-*/*/ ;;
    esac
done | while read -r dir; do [ -f "$dir/model.onnx" ] && echo "${dir%/}"; done >folders
[ -s folders ] || skip "no cases in $*"

# backend/node/test_abs -> node/test_abs
short() {
    sed 's,.*/\([^/]*/[^/]*\)$,\1,'
}
grep -v '^#' "$golden/node_data.failures" | sed -n "s/^$copy //; /^[a-z]* /!p" |
    sed 's/: .*//' | sort >listed
short <folders | sort >present
sort listed | comm -12 - present >wanted

xargs "$ONX" test <folders >out 2>err
status=$?
[ $status -le 1 ] || [ $status -eq 123 ] || fail "onx test ends with status $status"
failed_cases <out | short | sort -u >failed
comm -23 failed wanted >news
comm -13 failed wanted >passed
while read -r name; do
    fail "$name"
    grep -F "$name" -A 2 out | head -n 3
done <news
while read -r name; do fail "$name passes and is listed as a failure"; done <passed
# Every folder has been looked at.
ran=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' out | awk '{ n += $1 + $2 } END { print n + 0 }')
[ "$ran" -ge "$(wc -l <folders)" ] || fail "only $ran of $(wc -l <folders) cases were run"
echo "$ran cases, $(wc -l <wanted) known failures"
done_testing

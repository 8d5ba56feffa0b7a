# The TextMate grammar in editors/ gives every part of every example a scope.
. "$ONX_SOURCE_DIR/tests/lib.sh"
command -v python3 >/dev/null || skip "no python3"
expect 0 python3 "$ONX_SOURCE_DIR/tests/textmate.py" "$ONX_SOURCE_DIR"
[ "$failures" -eq 0 ] || cat out
done_testing

# The command line: help, mistakes and their exit status, completion, man pages.
. "$ONX_SOURCE_DIR/tests/lib.sh"

expect 0 "$ONX" --version
says out "onx "
expect 0 "$ONX" --help
says out "Commands"
expect 0 "$ONX" help
expect 2 "$ONX"
says err "usage: onx COMMAND"

expect 2 "$ONX" hlep
says err 'no command "hlep"'
says err 'did you mean "onx help"?'
expect 2 "$ONX" help --lits
says err "no option --lits"
says err "did you mean --list?"
expect 2 "$ONX" help -x
says err "no option -x"
expect 2 "$ONX" help one two
says err 'one operand too many: "two"'
expect 2 "$ONX" completion
says err "SHELL missing"
expect 2 "$ONX" completion fish
expect 2 "$ONX" help --list=yes
says err "--list takes no value"
expect 2 "$ONX" help --max-depth
says err "--max-depth needs a value"
expect 2 "$ONX" help --max-depth none
says err '--max-depth needs a number, not "none"'
expect 2 "$ONX" help --max-depth 99999999
says err "is not in the range"
expect 2 "$ONX" help --max-memory -5
expect 0 "$ONX" help --max-memory 16g
expect 2 "$ONX" help --max-memory 99999999999t
expect 2 "$ONX" help --color=rainbow
says err "it is one of auto|always|never"
expect 2 "$ONX" help --color=alwais
says err 'did you mean "always"?'
expect 0 "$ONX" help -- help

expect 0 "$ONX" help --libraries
says out "libcrypto "

# Every command explains itself and shows an example; the man page is well-formed.
expect 0 "$ONX" help --list
cp out commands
for command in $(cat commands); do
    expect 0 "$ONX" "$command" --help
    says out "usage: onx $command"
    says out "Example"
    awk 'length($0) > 118 { exit 1 }' out || fail "onx $command --help has lines of more than 118 columns"
    expect 2 "$ONX" "$command" --no-such-option-at-all
    says err "lists the options"
    expect 0 "$ONX" help --man "$command"
    says out ".SH OPTIONS"
    if command -v groff >/dev/null; then
        expect 0 groff -man -Tascii -ww -z out
        [ ! -s err ] || fail "the man page of onx $command: $(head -n 1 err)"
    fi
done

expect 0 "$ONX" completion bash
cp out completion
for command in $(cat commands); do
    says completion " $command"
done
if command -v bash >/dev/null; then
    cat >try.bash <<'END'
. ./completion
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _onx; echo "${COMPREPLY[*]}"; }
try onx hel
try onx help --ma
try onx help --color al
END
    expect 0 bash try.bash
    says out "help"
    says out "--man"
    says out "always"
fi

# Colours: never into a file, unless asked for.
esc=$(printf '\033')
expect 0 "$ONX" help
if grep -q "$esc" out; then fail "colours in a file"; fi
expect 0 "$ONX" help help --color=always
says out "$esc"

# A full disk is an error, a reader that goes away is none to die of.
if [ -e /dev/full ]; then
    "$ONX" help >/dev/full 2>err
    [ $? -eq 2 ] || fail "exit status of a write to a full device"
    says err "cannot write standard output"
fi
{ "$ONX" ops --markdown 2>err; echo $? >status; } | true
case $(cat status) in
0) ;;
2) [ ! -s err ] || fail "message although the reader went away: $(cat err)" ;;
*) fail "exit status $(cat status) when the reader goes away" ;;
esac

done_testing

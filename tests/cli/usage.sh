# The command line: help, usage errors and their exit status, completion, man pages.
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
expect 2 "$ONX" completion tcsh
says err "bash, fish and zsh"
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
says err "the value has to be one of auto|always|never"
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

# The other shells: every option of every command is there, and where the shell is, it reads the file.
for shell in zsh fish; do
    expect 0 "$ONX" completion $shell
    cp out completion.$shell
    if command -v $shell >/dev/null; then expect 0 $shell -n completion.$shell; fi
done
for command in $(cat commands); do
    says completion.zsh "    $command)"
    says completion.fish "__fish_use_subcommand -a $command -d"
    "$ONX" help --man "$command" | sed -n '/^.SH OPTIONS/,/^.SH EXAMPLES/s/^\.B .*\\-\\-\([a-z]*[^ ]*\).*/\1/p' | sed 's/\\-/-/g' >names
    [ -s names ] || fail "no options in the man page of $command"
    while read -r name; do
        sed -n "/^    $command)/,/;;/p" completion.zsh | grep -q -- "'\*--$name[=[]" || fail "zsh: no --$name of $command"
        grep -q "seen_subcommand_from $command' -l $name " completion.fish || fail "fish: no --$name of $command"
    done <names
done

# Hints only name options that exist: those in the sources of a command are its own or common ones, or follow the name of
# another command, those of shared code and of the library are some command's.
for command in $(cat commands); do
    "$ONX" help --man "$command" | sed -n 's/\\-/-/g; s/^\.B .*--\([a-z][a-z-]*\).*/\1/p' | sort -u >"options.$command"
done
sort -u options.* >options
for file in "$ONX_SOURCE_DIR"/cli/*.c $(find "$ONX_SOURCE_DIR/src" -name '*.c'); do
    command=$(basename "$file" .c | sed -n 's/^cmd_\([a-z]*\).*/\1/p')
    list=options
    [ -z "$command" ] || list=options.$command
    # strings of hints, which may go on in the next lines
    awk '/cli_hint\(|hint = onx_str_of\(/ { on = 1 } on { print } /;|\},?$/ { on = 0 }' "$file" >hints
    grep -o 'onx [a-z]* --[a-z-]*' hints | while read -r _ other name; do
        grep -qx -- "${name#--}" "options.$other" 2>/dev/null || echo "onx $other $name"
    done >unknown
    while read -r name; do fail "a hint in $file names $name, which is no option"; done <unknown
    cat unknown >>all_unknown
    sed 's/onx [a-z]* --[a-z-]*//g' hints |
        grep -o '\(^\|[" (]\)--[a-z][a-z-]*' | sed 's/.*--//' | sort -u | while read -r name; do
        grep -qx -- "$name" $list || echo "$name"
    done >unknown
    while read -r name; do fail "a hint in $file names --$name, which is no option"; done <unknown
    cat unknown >>all_unknown
done
[ -s all_unknown ] && fail "hints name options that do not exist"
# So do the docs: of `onx COMMAND ... --option`, in backquotes or as a line of a block, the command has the option.
for file in "$ONX_SOURCE_DIR"/README.md "$ONX_SOURCE_DIR"/CHANGELOG.md $(find "$ONX_SOURCE_DIR/docs" "$ONX_SOURCE_DIR/examples" -name '*.md'); do
    { grep -o '`[^`]*`' "$file"; grep '^onx \|[| ]mpirun -n' "$file"; } | tr '`' ' ' | sed 's/ | *onx / \n onx /g; s/#.*//' |
        sed -n 's/^ *\(mpirun -n [^ ]* \)\{0,1\}onx \([a-z][a-z]*\) \(.*--.*\)/\2 \3/p' | while read -r command rest; do
        [ -e "options.$command" ] || { echo "onx $command"; continue; }
        for word in $rest; do
            case $word in
            --[a-z]*) word=${word#--} && grep -qx -- "${word%%[=,;.)]*}" "options.$command" || echo "onx $command --$word" ;;
            esac
        done
    done | grep -v -- '--help' >unknown
    while read -r name; do fail "$file speaks of $name, which there is not"; done <unknown
    cat unknown >>unknown_in_docs
done
[ -s unknown_in_docs ] && fail "docs speak of options that do not exist"
# A hint of the library is said in words of the command at hand.
cat >w.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]> g () => (float[2] y) <float[2] w = {1, 2}> { y = Relu(w) }
END
expect 0 "$ONX" convert w.onnxtxt w.onnx --external w.data --external-threshold 1
"$ONX" run - <w.onnx >out 2>err
says err "--external-dir DIR"
cp w.onnx binary.json
expect 1 "$ONX" info binary.json
says err "hint: rename the file to the extension"
expect 1 "$ONX" convert binary.json x.onnxtxt
says err "with --from FORMAT"

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

# onx tokenize: the ids of other implementations for texts in many scripts (bench/tokenizers_agree.js), and decoding; invalid
# files; long texts; onx generate with texts.
. "$ONX_SOURCE_DIR/tests/lib.sh"
cases=$ONX_SOURCE_DIR/tests/cases/token

printf '{"model":{"type":"WordLevel","vocab":{"a":0}},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"x"}}}' >pattern.json
printf '{"model":{"type":"WordLevel","vocab":{"a":0}},"normalizer":{"type":"NFC"}}' >form.json
for file in pattern form; do
    if ! "$ONX" tokenize $file.json a >out 2>err; then
        grep -q 'needs lib' err || fail "$file.json: $(cat err)"
        echo "skipped: $(cat err)"
        exit 77
    fi
done

for ids in "$cases"/*.ids; do
    name=$(basename "$ids" .ids)
    plain=
    file=$cases/$name.json
    [ -f "$file" ] || { file=$cases/$name.model; plain=--plain; }
    expect 0 "$ONX" tokenize "$file" --lines $plain <"$cases/texts.txt"
    cmp out "$ids" || fail "$name makes other ids"
    # nothing is lost by bytes, but for the blanks around special tokens that take these (lstrip, rstrip)
    case $name in
    gpt2 | spm_blanks)
        expect 0 "$ONX" tokenize "$file" --lines --decode --special <"$ids"
        sed 's/ *<ent> */<ent>/; s/ *<ENT> */<ENT>/' "$cases/texts.txt" >without
        sed 's/ *<ent> */<ent>/; s/ *<ENT> */<ENT>/' out >got
        cmp got without || fail "$name makes other texts"
        ;;
    esac
done

# one text, several, JSON
expect 0 "$ONX" tokenize "$cases/gpt2.json" 'Hello,' ' x<|end|>'
[ "$(wc -l <out)" -eq 2 ] || fail "two texts make $(wc -l <out) lines"
ids=$(sed -n 1p out)
expect 0 "$ONX" tokenize --decode "$cases/gpt2.json" "$ids"
[ "$(cat out)" = 'Hello,' ] || fail "the ids are \"$(cat out)\""
expect 0 "$ONX" tokenize "$cases/gpt2.json" --json 'a b'
says out '"text": "a b"'
says out '"Ġ"'
expect 0 "$ONX" tokenize "$cases/llama3.json" --plain a
plain=$(cat out)
expect 0 "$ONX" tokenize "$cases/llama3.json" a
[ "$(cat out)" != "$plain" ] || fail "--plain changes nothing"
expect 0 "$ONX" tokenize "$cases/llama3.json" --decode "$(cat out)"
[ "$(cat out)" = a ] || fail "special tokens are in the text: $(cat out)"
mkdir folder && cp "$cases/spm_bpe.model" folder/tokenizer.model
expect 0 "$ONX" tokenize folder --plain foo
expect 0 "$ONX" tokenize folder --decode "$(cat out)"
[ "$(cat out)" = foo ] || fail "the folder's tokenizer says $(cat out)"

# what cannot be
expect 2 "$ONX" tokenize "$cases" a
says err "neither tokenizer.json nor tokenizer.model"
expect 2 "$ONX" tokenize "$cases/gpt2.json" --decode 1,x
says err "a list of token ids is written like"
printf 'a\377b' >broken
expect 1 "$ONX" tokenize "$cases/gpt2.json" <broken
says err "byte 1 of the text is not UTF-8"
# refuse JSON MESSAGE: a file that is at fault
refuse() {
    printf '%s' "$1" >bad.json
    "$ONX" tokenize bad.json a >out 2>err && fail "accepted: $1"
    says err "$2"
}
refuse '{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}' 'is no token'
refuse '{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]}}' 'a pair of model.merges, "ab" is no token'
refuse '{"model":{"type":"BPE","vocab":{"a":0},"merges":[["a"]]}}' 'merges[0] is not a pair'
refuse '{"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}}' 'has no id'
refuse '{"model":{"type":"BPE","vocab":{"a":99999999999},"merges":[]}}' 'has id 99999999999'
refuse '{"model":{"type":"Unigram","vocab":[["a",0]],"unk_id":7}}' 'unk_id is none of the 1 tokens'
refuse '{"model":{"type":"Unigram","vocab":[["a"]]}}' 'is not a string with a score'
refuse '{"model":{"type":"Unigram","vocab":[["b",0]]}}' 'there is no token for unknown text'
refuse '{"model":{"type":"Magic","vocab":{}}}' 'model "Magic" is not known'
refuse '{"model":{"type":"WordLevel","vocab":{"a":0}},"normalizer":{"type":"Magic"}}' 'normalizer "Magic" is not known'
refuse '{"model":{"type":"WordLevel","vocab":{"a":0}},"normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="}}' 'says 4294967295 bytes of units'
refuse '{"model":{"type":"WordLevel","vocab":{"a":0}},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"("}}}' 'cannot be used'
refuse '{"model":{"type":"WordLevel","vocab":{"a":0}},"post_processor":{"type":"TemplateProcessing","single":[]}}' 'has the text 0 times'
refuse '{"model":{}' 'expected'
refuse '[]' 'it has no model'
long=$(printf '%02000d' 1)
refuse '{"model":{"type":"WordLevel","vocab":{"'"$long"'":0}}}' 'has 2000 bytes, expected up to 1024'
# a pattern that would try for ever
printf '{"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"},"pre_tokenizer":{"type":"Split","behavior":"Isolated","pattern":{"Regex":"(?:a+)+(?:a+)+[bc]"}}}' >slow.json
awk 'BEGIN { while (i++ < 3000) printf "aaaaaaaaaa" }' >as
"$ONX" tokenize slow.json <as >out 2>err && fail "a pattern without end is looked for"
says err "cannot be looked for"
# one word of many letters, as many merges as it can have
awk 'BEGIN { while (i++ < 30000) printf "aaaaaaaaaa" }' >as
expect 0 timeout 60 "$ONX" tokenize "$cases/gpt2.json" <as
expect 0 timeout 60 "$ONX" tokenize "$cases/spm_bpe.model" <as
# marks in the wrong order, all behind one letter
awk 'BEGIN { printf "a"; while (i++ < 100000) printf "\314\201\314\243" }' >marks
expect 0 timeout 60 "$ONX" tokenize "$cases/llama3.json" <marks
for size in 1 10 100 1000 3000 5000; do
    head -c $size "$cases/spm_bpe.model" >cut.model
    "$ONX" tokenize cut.model a >out 2>err && fail "a model of $size bytes is taken"
    [ -s err ] || fail "nothing is said of a model of $size bytes"
done

# ---- onx generate ----
mkdir lm
cat >lm/model.onnxtxt <<'END2'
<ir_version: 10, opset_import: ["" : 21]>
g (int64[1, n] input_ids) => (float[1, n, 8] logits)
<float[8, 8] next = {0,1,0,0,0,0,0,0, 0,0,1,0,0,0,0,0, 0,0,0,1,0,0,0,0, 0,0,0,0,1,0,0,0,
                     0,0,0,0,0,1,0,0, 0,0,0,0,0,0,1,0, 0,0,0,0,0,0,0,1, 1,0,0,0,0,0,0,0}>
{ logits = Gather (next, input_ids) }
END2
printf '{"model":{"type":"BPE","merges":[],"vocab":{"Ġ":0,"a":1,"b":2,"Ã":3,"©":4,"c":5,"d":6,"e":7}},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"}}' >lm/tokenizer.json
expect 0 "$ONX" generate lm/model.onnxtxt --prompt ' a' -n 9
[ "$(cat out)" = 'bécde ab' ] || fail "the text is \"$(cat out)\""
expect 0 "$ONX" generate lm/model.onnxtxt --prompt ' a' -n 2
[ "$(cat out)" = "$(printf 'b\357\277\275')" ] || fail "half a character is \"$(cat out)\""
expect 0 "$ONX" generate lm/model.onnxtxt --prompt ' a' -n 30 --stop 'cdx' --stop 'de a' --json
says out '"text": "béc"'
says out '"ended": "stop"'
expect 2 "$ONX" generate lm/model.onnxtxt --prompt - -n 3 </dev/null
says err "there is nothing to continue"
expect 0 "$ONX" generate lm/model.onnxtxt --prompt - -n 3 <<'END2'
 a
END2
[ "$(cat out)" = 'bé' ] || fail "the text of standard input goes on as \"$(cat out)\""
expect 0 "$ONX" generate lm/model.onnxtxt --ids 1 --tokenizer lm/tokenizer.json -n 4
[ "$(cat out)" = 'béc' ] || fail "ids go on as \"$(cat out)\""
expect 2 "$ONX" generate lm/model.onnxtxt --ids 1 --stop x
says err "--stop needs text"
cp lm/model.onnxtxt alone.onnxtxt
expect 2 "$ONX" generate alone.onnxtxt --prompt a
says err "needs a tokenizer"
done_testing

# onx generate: decoders of all forms generate the same tokens, whatever their caches are; sampling; end conditions; errors.
. "$ONX_SOURCE_DIR/tests/lib.sh"

# model FILE OPSET INPUTS OUTPUTS: makes a decoder of 16 tokens; standard input is its attention, from q, k and v of two heads.
# Its weights are sines.
model() {
    cat >"$1" <<END
<ir_version: 10, opset_import: ["": $2, "com.microsoft": 1]>
g (int64[batch, sequence] $6 $3) => (float[batch, sequence, 16] logits $4) {
  zero = Constant <value_float = 0.0> ()  one = Constant <value_float = 1.0> ()  end = Constant <value_float = 1280.0> ()
  k7 = Constant <value_float = 17.3> ()  index = Range (zero, end, one)  angle = Mul (index, k7)  sine = Sin (angle)
  cut = Constant <value_ints = [256, 256, 128, 128, 256, 256]> ()
  es, qs, ks, vs, os, ls = Split (sine, cut)
  square = Constant <value_ints = [16, 16]> ()  k_dims = Constant <value_ints = [16, 8]> ()
  we = Reshape (es, square)  wq = Reshape (qs, square)  wk = Reshape (ks, k_dims)
  wv = Reshape (vs, k_dims)  wo = Reshape (os, square)  wl = Reshape (ls, square)
  x = Gather (we, $6)
  q = MatMul (x, wq)  k = MatMul (x, wk)  v = MatMul (x, wv)
$5
  z = MatMul (y, wo)  x2 = Add (x, z)  logits = MatMul (x2, wl)
}
END
}
heads='  two = Constant <value_ints = [0, 0, 2, 8]> ()  single = Constant <value_ints = [0, 0, 1, 8]> ()
  whole = Constant <value_ints = [0, 0, 16]> ()
  q3 = Reshape (q, two)  k3 = Reshape (k, single)  v3 = Reshape (v, single)
  q4 = Transpose <perm = [0, 2, 1, 3]> (q3)  k4 = Transpose <perm = [0, 2, 1, 3]> (k3)  v4 = Transpose <perm = [0, 2, 1, 3]> (v3)'
tail='  y4 = Transpose <perm = [0, 2, 1, 3]> (y5)  y = Reshape (y4, whole)'
keys='float[batch, 1, past, 8] "past_key_values.0.key", float[batch, 1, past, 8] "past_key_values.0.value"'
present='float[batch, 1, total, 8] "present.0.key", float[batch, 1, total, 8] "present.0.value"'
model grows.onnxtxt 23 ", $keys" ", $present" "$heads
  y5, \"present.0.key\", \"present.0.value\" = Attention <is_causal = 1> (q4, k4, v4, , \"past_key_values.0.key\", \"past_key_values.0.value\")
$tail" input_ids
model fixed.onnxtxt 24 ', bool[1, 1, sequence, 24] attention_mask, int64[1] write_indices, float[1, 1, 24, 8] k_cache, float[1, 1, 24, 8] v_cache' \
    ', float[1, 1, 24, 8] k_cache_out, float[1, 1, 24, 8] v_cache_out' "$heads
  k_cache_out = TensorScatter (k_cache, k4, write_indices)  v_cache_out = TensorScatter (v_cache, v4, write_indices)
  y5 = Attention (q4, k_cache_out, v_cache_out, attention_mask)
$tail" input_ids
model bare.onnxtxt 23 '' '' "$heads
  y5 = Attention <is_causal = 1> (q4, k4, v4)
$tail" tokens
model shared.onnxtxt 18 ", int64[batch, total] attention_mask, $keys" ", $present" '  minus = Constant <value_ints = [1]> ()  first = Constant <value_int = 1> ()
  sum = ReduceSum <keepdims = 0> (attention_mask, minus)  less = Sub (sum, minus)  lengths = Cast <to = 6> (less)
  dims = Shape (attention_mask)  width = Gather (dims, first)  all = Cast <to = 6> (width)
  y, "present.0.key", "present.0.value" = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 1>
    (q, k, v, "past_key_values.0.key", "past_key_values.0.value", lengths, all)' input_ids

forms='grows fixed bare'
"$ONX" ops --domain com.microsoft >out 2>err && grep -q GroupQueryAttention out && forms="$forms shared"

# The tokens are those of a greedy loop over onnxruntime (bench/generate_agree.js).
for form in $forms; do
    expect 0 "$ONX" generate $form.onnxtxt --ids 1,2,3,4,5 --max-tokens 16 --threads 1
    [ "$(cat out)" = "14 12 8 1 3 14 12 8 1 3 14 12 8 1 3 10" ] || fail "$form writes $(cat out)"
    says err "5 tokens read"
    says err "16 written"
done
# token by token is the same as at once
expect 0 "$ONX" generate grows.onnxtxt --ids '1 2 3 4 5 14' -n 15 --json
says out '"ended": "max-tokens"'
tr -d ' \n' <out | grep -q '"ids":\[12,8,1,3,14,12,8,1,3,14,12,8,1,3,10\]' || fail "a longer prompt goes on otherwise: $(cat out)"

# ---- ends: of the command line, of a configuration beside the model, of the model's room
expect 0 "$ONX" generate grows.onnxtxt --ids 1,2,3,4,5 --eos 3 --json
tr -d ' \n' <out | grep -q '"ids":\[14,12,8,1\],"ended":"end"' || fail "not ended by 3: $(cat out)"
mkdir configured
cp grows.onnxtxt configured/
echo '{"model": {"eos_token_id": [15, 3], "context_length": 9}}' >configured/genai_config.json
expect 0 "$ONX" generate configured/grows.onnxtxt --ids 1,2,3,4,5 --json
tr -d ' \n' <out | grep -q '"ids":\[14,12,8,1\],"ended":"end"' || fail "not ended by 3: $(cat out)"
expect 0 "$ONX" generate configured/grows.onnxtxt --ids 1,2,3,4,5 --eos 15 --json
tr -d ' \n' <out | grep -q '"ids":\[14,12,8,1,3\],"ended":"limit"' || fail "not ended by the limit: $(cat out)"
expect 1 "$ONX" generate configured/grows.onnxtxt --ids 1,2,3,4,5,6,7,8,9,10
says err "10 tokens after 0 exceed the model's maximum of 9"
expect 0 "$ONX" generate fixed.onnxtxt --ids 1,2,3,4,5 -n 99 --json
says out '"ended": "limit"'
# the layout of the Hugging Face hub: end-of-text tokens a folder up, or in config.json; genai_config.json names none
mkdir -p hub/onnx plain both
for to in hub/onnx plain both; do cp grows.onnxtxt $to/; done
echo '{"eos_token_id": [15, 3]}' >hub/generation_config.json
echo '{"model_type": "llama", "eos_token_id": 3, "vocab_size": 16}' >plain/config.json
echo '{"eos_token_id": [15, 3]}' >both/generation_config.json
echo '{"model": {"context_length": 9}}' >both/genai_config.json
expect 0 "$ONX" generate configured/grows.onnxtxt --ids 1,2,3,4,5
cp out ends
for to in hub/onnx plain both; do
    expect 0 "$ONX" generate $to/grows.onnxtxt --ids 1,2,3,4,5 -n 9
    same ends out
done
# names by a configuration
sed 's/past_key_values.0/a.0/g; s/present.0/b.0/g' grows.onnxtxt >named.onnxtxt
sed -i 's/"a.0.key", float\[batch, 1, past, 8\] "a.0.value"/"x0", float[batch, 1, past, 8] "z0"/; s/"a.0.key"/"x0"/; s/"a.0.value"/"z0"/; s/"b.0.key"/"y0"/g; s/"b.0.value"/"w0"/g' named.onnxtxt
cat >names.json <<'END'
{"model": {"decoder": {"inputs": {"past_key_names": "x%d", "past_value_names": "z%d"}, "outputs": {"present_key_names": "y%d", "present_value_names": "w%d"}}}}
END
expect 0 "$ONX" generate named.onnxtxt --ids 1,2,3,4,5 -n 3 --config names.json
[ "$(cat out)" = "14 12 8" ] || fail "named by a configuration: $(cat out)"
expect 0 "$ONX" generate named.onnxtxt --ids 1,2,3,4,5 -n 3
[ "$(cat out)" = "14 12 8" ] || fail "paired by their order: $(cat out)"

# ---- by chance: seeds, and choices so few that nothing is left to chance
expect 0 "$ONX" generate grows.onnxtxt --ids 1,2 -n 20 --temperature 5 --seed 1
cp out one.txt
expect 0 "$ONX" generate grows.onnxtxt --ids 1,2 -n 20 --temperature 5 --seed 1
same out one.txt
expect 0 "$ONX" generate grows.onnxtxt --ids 1,2 -n 20 --temperature 5 --seed 2
cmp -s out one.txt && fail "another seed gives the same tokens"
for few in '--top-k 1' '--top-p 0.001' '--temperature 0'; do
    # shellcheck disable=SC2086
    expect 0 "$ONX" generate grows.onnxtxt --ids 1,2,3,4,5 -n 5 --seed 3 $few
    [ "$(cat out)" = "14 12 8 1 3" ] || fail "$few: $(cat out)"
done
expect 0 "$ONX" generate grows.onnxtxt --ids 1,2,3,4,5 -n 5 --repetition-penalty 100
for token in 1 2 3 4 5; do
    case " $(cat out) " in *" $token "*) fail "$token again: $(cat out)" ;; esac
done

# ---- what cannot be
refused() { # STATUS TEXT ARGUMENT...
    status=$1 text=$2
    shift 2
    expect "$status" "$ONX" generate "$@"
    says err "$text"
}
refused 2 "tokens with --ids" grows.onnxtxt
refused 2 "a list of token ids" grows.onnxtxt --ids 1,x
refused 2 "a list of token ids" grows.onnxtxt --ids 1,-2
refused 2 "a list of token ids" grows.onnxtxt --ids 1 --eos 99999999999
refused 1 "16" grows.onnxtxt --ids 16
refused 2 "--temperature" grows.onnxtxt --ids 1 --temperature nan
sed 's/float\[batch, 1, past, 8\] "past_key_values.0.value"/float[batch, 1, past] "past_key_values.0.value"/' grows.onnxtxt >rank.onnxtxt
refused 1 "past_key_values.0.value" rank.onnxtxt --ids 1
sed 's/1, past, 8/heads, past, 8/g' grows.onnxtxt >open.onnxtxt
refused 1 "is open, and nothing says how large it is" open.onnxtxt --ids 1
sed 's/\[batch, 1, past, 8\]/[2, 1, past, 8]/g' grows.onnxtxt >two.onnxtxt
refused 1 "2 sequences" two.onnxtxt --ids 1
sed 's/int64\[batch, sequence\] input_ids/int64[batch, sequence] input_ids, float[3] more/' grows.onnxtxt >more.onnxtxt
refused 1 'input "more" is nothing that a decoder' more.onnxtxt --ids 1
sed 's/float\[batch, sequence, 16\] logits/float[sequence] lengths/; s/logits = MatMul (x2, wl)/l3 = MatMul (x2, wl)  lengths = ReduceSum <keepdims = 0> (l3)/' bare.onnxtxt >scores.onnxtxt
refused 1 "no output of the model may be scores" scores.onnxtxt --ids 1
echo '{"model": {"eos_token_id": [1, ' >cut.json
refused 1 "cut.json" grows.onnxtxt --ids 1 --config cut.json
sed 's/ k7 = Constant <value_float = 17.3> ()/ k7 = Constant <value_float = nan> ()/' bare.onnxtxt >nan.onnxtxt
refused 1 "is NaN" nan.onnxtxt --ids 1
done_testing

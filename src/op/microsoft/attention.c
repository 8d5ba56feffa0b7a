/* attention.c - rows of com.microsoft: attention in the variants of transformers and language models, and rotary
 * embeddings. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

#define FILTER    { "mask_filter_value", FLOAT, DEFAULT("-10000") }
#define HEADS     { "num_heads", INT, REQUIRED }
#define KV_HEADS  { "kv_num_heads", INT, REQUIRED }
#define OWN_SCALE { "scale", FLOAT, OPTIONAL }

/* Uses matrix products and MultiHeadAttention, with queries, keys and values packed in one tensor if their heads have
 * the same size; computed in float after the product. */
WHEN(shares, MS_SET("past_present_share_buffer"))
WHEN(plain, !MS_SET("do_rotary") && !(shares(call) && MS_HAS(4) && !MS_HAS(6))) /* otherwise the kernel reports the
                                                                                 * missing input */
WHEN(plain_bias, plain(call) && MS_HAS(2))
WHEN(plain_no_bias, plain(call) && !MS_HAS(2))
WHEN(plain_past, plain(call) && MS_HAS(4))
static bool gives_sizes(onxi_call *call)
{
    uint32_t count = 0;
    return onxi_call_ints(call, "qkv_hidden_sizes", &count) && count;
}
WHEN(one_size, plain(call) && !gives_sizes(call))
WHEN(sizes, plain(call) && gives_sizes(call))
WHEN(one_size_shared, one_size(call) && MS_HAS(4) && shares(call))
WHEN(one_size_past, one_size(call) && MS_HAS(4) && !shares(call))
WHEN(one_size_no_past, one_size(call) && !MS_HAS(4))
WHEN(sizes_shared, sizes(call) && MS_HAS(4) && shares(call))
WHEN(sizes_past, sizes(call) && MS_HAS(4) && !shares(call))
WHEN(sizes_no_past, sizes(call) && !MS_HAS(4))
#define TAKE_PAST                                                                                                      \
    "first = Constant <value_ints = [0]> ()  wide_past = Cast <to = 1> (past)"        \
    "  past_keys, past_values = Split <axis = 0, num_outputs = 2> (wide_past)"        \
    "  past_key = Squeeze (past_keys, first)  past_value = Squeeze (past_values, first)"
#define HAND_ON(like)                                                                                                  \
    "front = Constant <value_ints = [0]> ()  new_keys = Unsqueeze (keys, front)"                                       \
    "  new_values = Unsqueeze (values, front)  wide_present = Concat <axis = 0> (new_keys, new_values)"                \
    "  present = CastLike (wide_present, " like ")  output = CastLike (wide_output, " like ")"
#define ATTEND(operands, mask, added, past)                                                                            \
    "wide_output, keys, values = com.microsoft.MultiHeadAttention <num_heads: int = @num_heads, scale: float = @scale,"     \
    " unidirectional: int = @unidirectional, mask_filter_value: float = @mask_filter_value>"                           \
    " (" operands ", , " mask ", " added past ")"

MS_ROW(Attention, .infer = onxi_rule_microsoft_attention, .flags = INFERS, ARITY(2, 7, 1, 2),
       .inputs = PORTS({ "input", "T", 0 }, { "weights", "T", 0 }, { "bias", "T", OPT }, { "mask_index", "M", OPT },
                       { "past", "T", OPT }, { "attention_bias", "T", OPT }, { "past_sequence_length", "M", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "present", "T", OPT }),
       .attrs = ATTRS({ "do_rotary", INT, DEFAULT("0") }, FILTER, HEADS, { "past_present_share_buffer", INT, DEFAULT("0") },
                      { "qkv_hidden_sizes", INTS, OPTIONAL }, { "rotary_embedding_dim", INT, DEFAULT("0") }, OWN_SCALE,
                      { "unidirectional", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T_INT32 }),
       BODY_FIRST(18, { plain, NODES(product = MatMul (input, weights)) },
                  { plain_bias, NODES(sum = Add (product, bias) all = Cast <to = 1> (sum)) },
                  { plain_no_bias, NODES(all = Cast <to = 1> (product)) },
                  { plain_past, TAKE_PAST },
                  { sizes, NODES(columns = Constant <value_ints: ints = @qkv_hidden_sizes> ()
                                 query, key, value = Split <axis = -1> (all, columns)) },
                  { one_size_shared, ATTEND("all, , ", "mask_index", "attention_bias",
                                            ", past_key, past_value, past_sequence_length") },
                  { one_size_past, ATTEND("all, , ", "mask_index", "attention_bias", ", past_key, past_value") },
                  { one_size_no_past, ATTEND("all, , ", "mask_index", "attention_bias", "") },
                  { sizes_shared, ATTEND("query, key, value", "mask_index", "attention_bias",
                                         ", past_key, past_value, past_sequence_length") },
                  { sizes_past, ATTEND("query, key, value", "mask_index", "attention_bias", ", past_key, past_value") },
                  { sizes_no_past, ATTEND("query, key, value", "mask_index", "attention_bias", "") },
                  { plain, HAND_ON("input") }))

WHEN(plain_8, !MS_SET("do_rotary") && !shares(call)) /* without a length nothing can be shared, as the kernel says */
WHEN(plain_past_8, plain_8(call) && MS_HAS(8))
WHEN(plain_no_past_8, plain_8(call) && !MS_HAS(8))
MS_ROW(QAttention, .infer = onxi_rule_microsoft_attention, .flags = INFERS, ARITY(5, 9, 1, 2),
       .inputs = PORTS({ "input", "T1", 0 }, { "weight", "T2", 0 }, { "bias", "T3", 0 }, { "input_scale", "T3", 0 },
                       { "weight_scale", "T3", 0 }, { "mask_index", "T4", OPT }, { "input_zero_point", "T1", OPT },
                       { "weight_zero_point", "T2", OPT }, { "past", "T3", OPT }),
       .outputs = PORTS({ "output", "T3", 0 }, { "present", "T3", OPT }),
       .attrs = ATTRS({ "do_rotary", INT, DEFAULT("0") }, FILTER, HEADS, { "past_present_share_buffer", INT, DEFAULT("0") },
                      OWN_SCALE, { "unidirectional", INT, DEFAULT("0") }),
       .types = TYPES({ "T1", T_BYTES }, { "T2", T_BYTES }, { "T3", T_FLOAT16 }, { "T4", T_INT32 }),
       BODY_FIRST(18, { plain_8, NODES(wide_input_scale = Cast <to = 1> (input_scale)
                                 wide_weight_scale = Cast <to = 1> (weight_scale)
                                 wide_bias = Cast <to = 1> (bias)
                                 all = com.microsoft.MatMulIntegerToFloat (input, weight, wide_input_scale,
                                     wide_weight_scale, input_zero_point, weight_zero_point, wide_bias)) },
                  { plain_past_8, TAKE_PAST },
                  { plain_past_8, ATTEND("all, , ", "mask_index", "", ", past_key, past_value") },
                  { plain_no_past_8, ATTEND("all, , ", "mask_index", "", "") },
                  { plain_8, HAND_ON("bias") }))

MS_ROW(MultiHeadAttention, .infer = onxi_rule_microsoft_multi_head_attention, .flags = INFERS, ARITY(1, 10, 1, 4),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", OPT }, { "value", "T", OPT }, { "bias", "T", OPT },
                       { "key_padding_mask", "M", OPT }, { "attention_bias", "T", OPT }, { "past_key", "T", OPT },
                       { "past_value", "T", OPT }, { "past_sequence_length", "M", OPT }, { "cache_indirection", "M", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "present_key", "T", OPT }, { "present_value", "T", OPT },
                        { "qk", "QK", OPT }),
       .attrs = ATTRS(FILTER, HEADS, OWN_SCALE, { "unidirectional", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "QK", T(SCALES_19) }, { "M", T_INT32 }))

MS_ROW(DecoderMaskedMultiHeadAttention, .infer = onxi_rule_microsoft_multi_head_attention, .flags = INFERS,
       ARITY(1, 11, 1, 4),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", OPT }, { "value", "T", OPT }, { "mask_index", "M", OPT },
                       { "attention_bias", "T", OPT }, { "past_key", "T", OPT }, { "past_value", "T", OPT },
                       { "past_sequence_length", "M", OPT }, { "beam_width", "M", OPT }, { "cache_indirection", "M", OPT },
                       { "bias", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "present_key", "T", OPT }, { "present_value", "T", OPT },
                        { "qk", "QK", OPT }),
       .attrs = ATTRS(FILTER, HEADS, { "output_qk", INT, DEFAULT("0") },
                      { "past_present_share_buffer", INT, DEFAULT("0") }, OWN_SCALE),
       .types = TYPES({ "T", T_FLOAT16 }, { "QK", T_FLOAT16 }, { "M", T_INT32 }))

MS_ROW(GroupQueryAttention, .infer = onxi_rule_microsoft_group_query_attention, .flags = INFERS, ARITY(7, 17, 1, 4),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", OPT }, { "value", "T", OPT }, { "past_key", "T_CACHE", OPT },
                       { "past_value", "T_CACHE", OPT }, { "seqlens_k", "M", 0 }, { "total_sequence_length", "M", 0 },
                       { "cos_cache", "T", OPT }, { "sin_cache", "T", OPT }, { "position_ids", "tensor(int64)", OPT },
                       { "attention_bias", "T", OPT }, { "head_sink", "T", OPT }, { "k_scale", "T_KV_SCALE", OPT },
                       { "v_scale", "T_KV_SCALE", OPT }, { "q_norm_weight", "T", OPT }, { "k_norm_weight", "T", OPT },
                       { "query_seqlens", "M", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "present_key", "T_CACHE", OPT }, { "present_value", "T_CACHE", OPT },
                        { "output_qk", "T", OPT }),
       .attrs = ATTRS({ "causal", INT, DEFAULT("1") }, { "do_rotary", INT, DEFAULT("0") },
                      { "k_norm_epsilon", FLOAT, OPTIONAL }, { "k_quant_type", STRING, TEXT("NONE") }, { "kv_cache_bit_width", INT, DEFAULT("8") }, KV_HEADS,
                      { "local_window_size", INT, DEFAULT("-1") }, HEADS, { "q_norm_epsilon", FLOAT, OPTIONAL },
                      { "qk_norm_epsilon", FLOAT, DEFAULT("1e-06") },
                      { "qk_output", INT, DEFAULT("0") }, { "rotary_interleaved", INT, DEFAULT("0") }, OWN_SCALE,
                      { "sliding_window_cache", INT, DEFAULT("0") }, { "smooth_softmax", INT, DEFAULT("-1") },
                      { "softcap", FLOAT, DEFAULT("0") }, { "v_quant_type", STRING, TEXT("NONE") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "T_CACHE", T(SCALES_19 | INTS_8 | BIT(FLOAT8E4M3FN)) },
                      { "T_KV_SCALE", T_FLOAT }, { "M", T_INT32 }))

MS_ROW(SparseAttention, .infer = onxi_rule_microsoft_sparse_attention, .flags = INFERS, ARITY(9, 11, 3, 3),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", OPT }, { "value", "T", OPT }, { "past_key", "T", 0 },
                       { "past_value", "T", 0 }, { "block_row_indices", "M", 0 }, { "block_col_indices", "M", 0 },
                       { "total_sequence_length", "M", 0 }, { "key_total_sequence_lengths", "M", 0 },
                       { "cos_cache", "T", OPT }, { "sin_cache", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "present_key", "T", 0 }, { "present_value", "T", 0 }),
       .attrs = ATTRS({ "do_rotary", INT, DEFAULT("0") }, KV_HEADS, HEADS, { "rotary_interleaved", INT, DEFAULT("0") },
                      OWN_SCALE, { "sparse_block_size", INT, REQUIRED }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T_INT32 }))

/* 16-bit tables in the model are converted to float once. */
WHEN(halves, onxi_call_dtype(call, 2) == ONX_FLOAT16 || onxi_call_dtype(call, 2) == ONX_BFLOAT16)
MS_ROW(RotaryEmbedding, .infer = onxi_rule_unary, .flags = INFERS, ARITY(4, 4, 1, 1),
       .inputs = PORTS({ "input", "T", 0 }, { "position_ids", "M", 0 }, { "cos_cache", "T", 0 }, { "sin_cache", "T", 0 }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "interleaved", INT, DEFAULT("0") }, { "is_packed_batching", INT, DEFAULT("0") },
                      { "num_heads", INT, DEFAULT("0") }, { "rotary_embedding_dim", INT, DEFAULT("0") },
                      { "scale", FLOAT, DEFAULT("1") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T_INT64 }),
       BODY_FIRST(18, { halves, NODES(wide_input = Cast <to = 1> (input)
                                      wide_cosines = Cast <to = 1> (cos_cache) wide_sines = Cast <to = 1> (sin_cache)
                                      wide_output = com.microsoft.RotaryEmbedding
                                          <interleaved: int = @interleaved, is_packed_batching: int = @is_packed_batching,
                                           num_heads: int = @num_heads, rotary_embedding_dim: int = @rotary_embedding_dim,
                                           scale: float = @scale>
                                          (wide_input, position_ids, wide_cosines, wide_sines)
                                      output = CastLike (wide_output, input)) }))

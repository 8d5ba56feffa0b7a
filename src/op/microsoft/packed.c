/* packed.c - rows of com.microsoft: attention on packed tokens, pages of a cache and selected keys, for
 * devices that run several requests at once; tables of relative positions. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

MS_ROW(RemovePadding, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 2, 4, 4),
       .inputs = PORTS({ "input", "T", 0 }, { "sequence_token_count", "M", 0 }),
       .outputs = PORTS({ "output", "T", 0 }, { "token_offset", "M", 0 }, { "cumulated_seq_len", "M", 0 },
                        { "max_seq_len", "M", 0 }),
       .types = TYPES({ "T", T_FLOAT16 }, { "M", T_INT32 }),
       BODY(18, { NULL, NODES(counts = Cast <to = 7> (sequence_token_count)
                          lengths = Shape <start = 1, end = 2> (input)
                          length = Squeeze (lengths)
                          nothing = Constant <value_int = 0> ()
                          step = Constant <value_int = 1> ()
                          positions = Range (nothing, length, step)
                          second = Constant <value_ints = [1]> ()
                          ends = Unsqueeze (counts, second)
                          is_token = Less (positions, ends)
                          any = Constant <value_ints = [-1]> ()
                          kept = Reshape (is_token, any)
                          dropped = Not (kept)
                          both = Shape <end = 2> (input)
                          all = ReduceProd <keepdims = 1> (both)
                          width = Shape <start = 2> (input)
                          flat_shape = Concat <axis = 0> (all, width)
                          flat = Reshape <allowzero = 1> (input, flat_shape)
                          output = Compress <axis = 0> (flat, kept)
                          all_number = Squeeze (all)
                          places = Range (nothing, all_number, step)
                          tokens = Compress <axis = 0> (places, kept)
                          paddings = Compress <axis = 0> (places, dropped)
                          order = Concat <axis = 0> (tokens, paddings)
                          order_rows = Reshape <allowzero = 1> (order, both)
                          token_offset = Cast <to = 6> (order_rows)
                          sums = CumSum (counts, nothing)
                          front = Constant <value_ints = [0]> ()
                          borders = Concat <axis = 0> (front, sums)
                          cumulated_seq_len = Cast <to = 6> (borders)
                          longest = ReduceMax <keepdims = 1> (counts)
                          max_seq_len = Cast <to = 6> (longest)) }))

MS_ROW(RestorePadding, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "input", "T", 0 }, { "token_offset", "M", 0 }),
       .outputs = PORTS({ "output", "T", 0 }),
       .types = TYPES({ "T", T_FLOAT16 }, { "M", T_INT32 }),
       BODY(18, { NULL, NODES(any = Constant <value_ints = [-1]> ()
                          order = Reshape (token_offset, any)
                          front = Constant <value_ints = [0]> ()
                          tokens = Shape <end = 1> (input)
                          narrow = Slice (order, front, tokens, front)
                          places = Cast <to = 7> (narrow)
                          second = Constant <value_ints = [1]> ()
                          tuples = Unsqueeze (places, second)
                          all = Shape (order)
                          width = Shape <start = 1> (input)
                          flat_shape = Concat <axis = 0> (all, width)
                          zeros = ConstantOfShape (flat_shape)
                          empty = CastLike (zeros, input)
                          flat = ScatterND (empty, tuples, input)
                          both = Shape (token_offset)
                          shape = Concat <axis = 0> (both, width)
                          output = Reshape <allowzero = 1> (flat, shape)) }))

static bool has_sizes(onxi_call *call)
{
    uint32_t count = 0;
    return onxi_call_ints(call, "qkv_hidden_sizes", &count) && count;
}
WHEN(has_one_size, !has_sizes(call))
MS_ROW(PackedAttention, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(5, 6, 1, 1),
       .inputs = PORTS({ "input", "T", 0 }, { "weights", "T", 0 }, { "bias", "T", 0 }, { "token_offset", "M", 0 },
                       { "cumulative_sequence_length", "M", 0 }, { "attention_bias", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "num_heads", INT, REQUIRED }, { "qkv_hidden_sizes", INTS, OPTIONAL },
                      { "scale", FLOAT, OPTIONAL }),
       .types = TYPES({ "T", T_FLOAT16 }, { "M", T_INT32 }),
       BODY(18, { NULL, NODES(product = MatMul (input, weights) sum = Add (product, bias)) },
            { has_one_size, NODES(query, key, value = Split <axis = -1, num_outputs = 3> (sum)) },
            { has_sizes, NODES(columns = Constant <value_ints: ints = @qkv_hidden_sizes> ()
                               query, key, value = Split <axis = -1> (sum, columns)) },
            { NULL, NODES(output = com.microsoft.PackedMultiHeadAttention <num_heads: int = @num_heads, scale: float = @scale>
                          (query, key, value, , token_offset, cumulative_sequence_length, attention_bias)) }))

WHEN(is_apart, MS_HAS(1))
WHEN(is_together, !MS_HAS(1))
#define ATTEND(operands)                                                                                               \
    "attended = com.microsoft.MultiHeadAttention <num_heads: int = @num_heads, scale: float = @scale,"                 \
    " mask_filter_value: float = @mask_filter_value> (" operands ", bias, counts, attention_bias)"

MS_ROW(PackedMultiHeadAttention, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(6, 7, 1, 1),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", OPT }, { "value", "T", OPT }, { "bias", "T", OPT },
                       { "token_offset", "M", 0 }, { "cumulative_sequence_length", "M", 0 },
                       { "attention_bias", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "mask_filter_value", FLOAT, DEFAULT("-10000") }, { "num_heads", INT, REQUIRED },
                      { "scale", FLOAT, OPTIONAL }),
       .types = TYPES({ "T", T_FLOAT16 }, { "M", T_INT32 }),
       BODY(18, { NULL, NODES(front = Constant <value_ints = [0]> ()
                          one = Constant <value_ints = [1]> ()
                          last = Constant <value_ints = [-1]> ()
                          end = Constant <value_ints = [9223372036854775807]> ()
                          begins = Slice (cumulative_sequence_length, front, last, front)
                          ends = Slice (cumulative_sequence_length, one, end, front)
                          counts = Sub (ends, begins)) },
            { is_apart, NODES(q = com.microsoft.RestorePadding (query, token_offset)
                              k = com.microsoft.RestorePadding (key, token_offset)
                              v = com.microsoft.RestorePadding (value, token_offset)) },
            { is_together, NODES(tokens = Shape <end = 1> (query)
                                 row_shape = Concat <axis = 0> (tokens, last)
                                 rows = Reshape (query, row_shape)
                                 padded = com.microsoft.RestorePadding (rows, token_offset)
                                 both = Shape (token_offset)
                                 heads = Shape <start = 1> (query)
                                 shape = Concat <axis = 0> (both, heads)
                                 q = Reshape <allowzero = 1> (padded, shape)) },
            { is_apart, ATTEND("q, k, v") }, { is_together, ATTEND("q, , ") },
            { NULL, NODES(order = Reshape (token_offset, last)
                          token_count = Shape <end = 1> (query)
                          places = Slice (order, front, token_count, front)
                          all = Shape (order)
                          width = Shape <start = 2> (attended)
                          flat_shape = Concat <axis = 0> (all, width)
                          flat = Reshape <allowzero = 1> (attended, flat_shape)
                          output = Gather (flat, places)) }))

MS_ROW(PagedAttention, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(8, 17, 1, 3),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", OPT }, { "value", "T", OPT }, { "key_cache", "T_CACHE", 0 },
                       { "value_cache", "T_CACHE", OPT }, { "cumulative_sequence_length", "S", 0 },
                       { "past_seqlens", "S", 0 }, { "block_table", "S", 0 }, { "cos_cache", "T", OPT },
                       { "sin_cache", "T", OPT }, { "slot_mapping", "S", OPT }, { "head_sink", "T", OPT },
                       { "q_norm_weight", "T", OPT }, { "k_norm_weight", "T", OPT }, { "k_scale", "T_KV_SCALE", OPT },
                       { "v_scale", "T_KV_SCALE", OPT }, { "attention_metadata", "S", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "key_cache_out", "T_CACHE", OPT },
                        { "value_cache_out", "T_CACHE", OPT }),
       .attrs = ATTRS({ "do_rotary", INT, DEFAULT("0") }, { "is_causal", INT, DEFAULT("1") },
                      { "k_cache_dtype", STRING, TEXT("") }, { "k_quant_type", STRING, TEXT("NONE") },
                      { "kv_cache_layout", STRING, TEXT("SEPARATE") }, { "kv_num_heads", INT, REQUIRED },
                      { "local_window_size", INT, DEFAULT("-1") }, { "num_heads", INT, REQUIRED },
                      { "qk_norm_epsilon", FLOAT, DEFAULT("1e-06") }, { "rotary_interleaved", INT, DEFAULT("0") },
                      { "rotary_offset", INT, DEFAULT("0") }, { "scale", FLOAT, OPTIONAL },
                      { "softcap", FLOAT, DEFAULT("0") }, { "v_cache_dtype", STRING, TEXT("") },
                      { "v_head_size", INT, DEFAULT("0") }, { "v_quant_type", STRING, TEXT("NONE") }),
       .types = TYPES({ "T", T_HALVES },
                      { "T_CACHE", T(BIT(FLOAT16) | BIT(BFLOAT16) | BIT(INT8) | BIT(FLOAT8E4M3FN) | BIT(UINT8)) },
                      { "T_KV_SCALE", T_FLOAT }, { "S", T_INT32 }))

MS_ROW(SparsePagedAttention, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(11, 22, 1, 3),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", OPT }, { "value", "T", OPT }, { "key_cache", "T_CACHE", 0 },
                       { "value_cache", "T_CACHE", 0 }, { "cumulative_sequence_length", "S", 0 },
                       { "past_seqlens", "S", 0 }, { "block_table", "S", 0 }, { "slot_mapping", "S", OPT },
                       { "selected_indices", "S", 0 }, { "selected_counts", "S", 0 }, { "auxiliary_key", "T", OPT },
                       { "auxiliary_value", "T", OPT }, { "auxiliary_lengths", "S", OPT }, { "cos_cache", "T", OPT },
                       { "sin_cache", "T", OPT }, { "head_sink", "T", OPT }, { "q_norm_weight", "T", OPT },
                       { "k_norm_weight", "T", OPT }, { "k_scale", "T_KV_SCALE", OPT },
                       { "v_scale", "T_KV_SCALE", OPT }, { "attention_metadata", "S", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "key_cache_out", "T_CACHE", OPT },
                        { "value_cache_out", "T_CACHE", OPT }),
       .attrs = ATTRS({ "attention_mode", STRING, TEXT("selected_only") },
                      { "auxiliary_cache_layout", STRING, TEXT("contiguous") },
                      { "auxiliary_kv_shared", INT, DEFAULT("0") }, { "do_rotary", INT, DEFAULT("0") },
                      { "is_causal", INT, DEFAULT("1") }, { "k_quant_type", STRING, TEXT("NONE") },
                      { "kv_num_heads", INT, REQUIRED }, { "local_window_size", INT, DEFAULT("-1") },
                      { "num_heads", INT, REQUIRED }, { "qk_norm_epsilon", FLOAT, DEFAULT("1e-06") },
                      { "rotary_interleaved", INT, DEFAULT("0") }, { "rotary_offset", INT, DEFAULT("0") },
                      { "scale", FLOAT, OPTIONAL }, { "selected_kv_source", STRING, TEXT("main") },
                      { "softcap", FLOAT, DEFAULT("0") }, { "v_quant_type", STRING, TEXT("NONE") }),
       .types = TYPES({ "T", T_HALVES }, { "T_CACHE", T(BIT(FLOAT16) | BIT(BFLOAT16) | BIT(INT8)) },
                      { "T_KV_SCALE", T_FLOAT }, { "S", T_INT32 }))

MS_ROW(DynamicSparseAttention, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(11, 20, 1, 4),
       .inputs = PORTS({ "query", "TQuery", 0 }, { "key", "TQuery", OPT }, { "value", "TValue", OPT },
                       { "past_key", "TCache", OPT }, { "past_value", "TCache", OPT }, { "auxiliary_key", "T", OPT },
                       { "auxiliary_value", "T", OPT }, { "selected_indices", "M", 0 }, { "selected_counts", "M", 0 },
                       { "seqlens_k", "M", 0 }, { "total_sequence_length", "M", 0 }, { "cos_cache", "T", OPT },
                       { "sin_cache", "T", OPT }, { "position_ids", "tensor(int64)", OPT },
                       { "q_norm_weight", "T", OPT }, { "k_norm_weight", "T", OPT }, { "head_sink", "T", OPT },
                       { "committed_length", "M", OPT }, { "key_scale", "S", OPT }, { "value_scale", "S", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "present_key", "TCache", OPT }, { "present_value", "TCache", OPT },
                        { "validation_status", "M", OPT }),
       .attrs = ATTRS({ "attention_mode", STRING, TEXT("selected_only") },
                      { "auxiliary_kv_shared", INT, DEFAULT("0") }, { "do_rotary", INT, DEFAULT("0") },
                      { "is_causal", INT, DEFAULT("1") }, { "kv_num_heads", INT, REQUIRED },
                      { "local_window_size", INT, DEFAULT("-1") }, { "num_heads", INT, REQUIRED },
                      { "output_bf16", INT, DEFAULT("0") }, { "qk_norm_epsilon", FLOAT, DEFAULT("1e-06") },
                      { "rotary_interleaved", INT, DEFAULT("0") }, { "rotary_offset", INT, DEFAULT("0") },
                      { "scale", FLOAT, OPTIONAL }, { "selected_kv_source", STRING, TEXT("main") },
                      { "smooth_softmax", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "TQuery", T(SCALES_19) }, { "TValue", T(SCALES_19) },
                      { "TCache", T(SCALES_19 | BIT(INT8)) }, { "S", T_FLOAT }, { "M", T_INT32 }))

MS_ROW(SparseAttentionIndexer, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(8, 14, 2, 3),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", OPT }, { "query_norm_weight", "T", 0 },
                       { "key_norm_weight", "T", 0 }, { "cos_cache", "T", 0 }, { "sin_cache", "T", 0 },
                       { "mask", "TB", OPT }, { "past_key", "T", 0 }, { "gate", "T", OPT },
                       { "position_bias", "T", OPT }, { "head_weights", "T", OPT }, { "position_ids", "I", OPT },
                       { "past_sequence_length", "M", OPT }, { "past_proj_buffer", "T", OPT }),
       .outputs = PORTS({ "selected_indices", "M", 0 }, { "present_key", "T", 0 },
                        { "present_proj_buffer", "T", OPT }),
       .attrs = ATTRS({ "compress_ratio", INT, REQUIRED }, { "epsilon", FLOAT, DEFAULT("1e-06") },
                      { "head_weight_scale", FLOAT, OPTIONAL }, { "index_topk", INT, OPTIONAL },
                      { "policy_mode", STRING, REQUIRED }, { "scale", FLOAT, OPTIONAL },
                      { "token_budget", INT, OPTIONAL }),
       .types = TYPES({ "T", T(SCALES_19) }, { "TB", T_INT64 }, { "I", T_INT64 }, { "M", T_INT32 }))

MS_ROW(PackedSparseAttentionIndexer, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(16, 22, 6, 9),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", OPT }, { "query_norm_weight", "T", 0 },
                       { "key_norm_weight", "T", 0 }, { "cos_cache", "T", 0 }, { "sin_cache", "T", 0 },
                       { "cumulative_sequence_lengths", "M", 0 }, { "past_sequence_lengths", "M", 0 },
                       { "gate", "T", OPT }, { "position_bias", "T", OPT }, { "head_weights", "T", OPT },
                       { "position_ids", "I", OPT }, { "past_key_state", "T_KEY", 0 }, { "past_kv_buffer", "T", 0 },
                       { "past_gate_buffer", "T", OPT }, { "past_state_lengths", "M", 0 },
                       { "state_update_capture_count", "M", OPT }, { "state_update_active", "M", OPT },
                       { "indexshare_mode", "M", OPT }, { "merged_indices", "M", OPT }, { "merged_counts", "M", OPT },
                       { "merged_status", "M", OPT }),
       .outputs = PORTS({ "selected_indices", "M", 0 }, { "selected_counts", "M", 0 },
                        { "present_key_state", "T_KEY", 0 }, { "present_kv_buffer", "T", 0 },
                        { "present_gate_buffer", "T", OPT }, { "present_state_lengths", "M", 0 },
                        { "state_update", "T", OPT }, { "indexshare_status", "M", OPT }, { "state_status", "M", OPT }),
       .attrs = ATTRS({ "compress_ratio", INT, REQUIRED }, { "epsilon", FLOAT, DEFAULT("1e-06") },
                      { "head_weight_scale", FLOAT, OPTIONAL }, { "index_topk", INT, OPTIONAL },
                      { "indexshare_state_policy", STRING, TEXT("default") },
                      { "max_output_entries", INT, DEFAULT("0") }, { "policy_mode", STRING, REQUIRED },
                      { "scale", FLOAT, OPTIONAL }, { "state_capacity", INT, REQUIRED },
                      { "state_update_capacity", INT, DEFAULT("0") }, { "token_budget", INT, OPTIONAL }),
       .types = TYPES({ "T", T(SCALES_19) }, { "T_KEY", T(SCALES_19) }, { "I", T_INT64 }, { "M", T_INT32 }))

MS_ROW(PackedSparseAttentionIndexerMerge, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(3, 7, 3, 3),
       .inputs = PORTS({ "base_indices", "T", 0 }, { "base_counts", "T", 0 }, { "base_row_indices", "T", 0 },
                       { "range_starts", "T", OPT }, { "range_ends", "T", OPT }, { "additional_indices", "T", OPT },
                       { "additional_counts", "T", OPT }),
       .outputs = PORTS({ "selected_indices", "T", 0 }, { "selected_counts", "T", 0 }, { "status", "T", 0 }),
       .attrs = ATTRS({ "max_output_entries", INT, REQUIRED }, { "policy_mode", STRING, REQUIRED }),
       .types = TYPES({ "T", T_INT32 }))

/* Computed with all pairs of tokens, those out of reach masked. */
MS_ROW(LongformerAttention, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(7, 7, 1, 1),
       .inputs = PORTS({ "input", "T", 0 }, { "weight", "T", 0 }, { "bias", "T", 0 }, { "mask", "T", 0 },
                       { "global_weight", "T", 0 }, { "global_bias", "T", 0 }, { "global", "G", 0 }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "num_heads", INT, REQUIRED }, { "window", INT, REQUIRED }),
       .types = TYPES({ "T", T_FLOAT16 }, { "G", T_INT32 }),
       BODY(18, { NULL, NODES(wide = Cast <to = 1> (input)
                          wide_weight = Cast <to = 1> (weight)
                          wide_bias = Cast <to = 1> (bias)
                          product = MatMul (wide, wide_weight)
                          sum = Add (product, wide_bias)
                          wide_global_weight = Cast <to = 1> (global_weight)
                          wide_global_bias = Cast <to = 1> (global_bias)
                          global_product = MatMul (wide, wide_global_weight)
                          global_sum = Add (global_product, wide_global_bias)
                          one = Constant <value_ints = [1]> ()
                          both = Shape <end = 2> (input)
                          hidden = Shape <start = 2> (input)
                          number = Constant <value_int: int = @num_heads> ()
                          heads = Mul (one, number)
                          size = Div (hidden, heads)
                          three = Constant <value_ints = [3]> ()
                          apart = Concat <axis = 0> (both, three, heads, size)
                          local_apart = Reshape <allowzero = 1> (sum, apart)
                          local_heads = Transpose <perm = [2, 0, 3, 1, 4]> (local_apart)
                          global_apart = Reshape <allowzero = 1> (global_sum, apart)
                          global_heads = Transpose <perm = [2, 0, 3, 1, 4]> (global_apart)
                          first = Constant <value_int = 0> () second = Constant <value_int = 1> () third = Constant <value_int = 2> ()
                          q = Gather (local_heads, first) k = Gather (local_heads, second) v = Gather (local_heads, third)
                          global_q = Gather (global_heads, first) global_k = Gather (global_heads, second)
                          global_v = Gather (global_heads, third)
                          lengths = Shape <start = 1, end = 2> (input)
                          length = Squeeze (lengths)
                          positions = Range (first, length, second)
                          rows = Unsqueeze (positions, one)
                          apart_by = Sub (rows, positions)
                          distance = Abs (apart_by)
                          reach = Constant <value_int: int = @window> ()
                          near = LessOrEqual (distance, reach)
                          is_global = Cast <to = 9> (global)
                          head_and_row = Constant <value_ints = [1, 2]> ()
                          seen_by_all = Unsqueeze (is_global, head_and_row)
                          seen = Or (near, seen_by_all)
                          wide_mask = Cast <to = 1> (mask)
                          key_mask = Unsqueeze (wide_mask, head_and_row)
                          lowest = Constant <value = float {-inf}> ()
                          local_mask = Where (seen, key_mask, lowest)
                          size_number = Cast <to = 1> (size)
                          root = Sqrt (size_number)
                          k_turned = Transpose <perm = [0, 1, 3, 2]> (k)
                          raw = MatMul (q, k_turned)
                          scaled = Div (raw, root)
                          scores = Add (scaled, local_mask)
                          shares = Softmax <axis = -1> (scores)
                          local = MatMul (shares, v)
                          global_k_turned = Transpose <perm = [0, 1, 3, 2]> (global_k)
                          global_raw = MatMul (global_q, global_k_turned)
                          global_scaled = Div (global_raw, root)
                          global_scores = Add (global_scaled, key_mask)
                          global_shares = Softmax <axis = -1> (global_scores)
                          global_result = MatMul (global_shares, global_v)
                          head_and_column = Constant <value_ints = [1, 3]> ()
                          global_rows = Unsqueeze (is_global, head_and_column)
                          result = Where (global_rows, global_result, local)
                          turned = Transpose <perm = [0, 2, 1, 3]> (result)
                          shape = Shape (input)
                          flat = Reshape <allowzero = 1> (turned, shape)
                          output = CastLike (flat, input)) }))

/* Flags choose what keys and values come from. The parts that are not chosen are slices without elements. */
WHEN(has_padding_mask, MS_HAS(5))
WHEN(has_no_padding_mask, !MS_HAS(5))
WHEN(has_both_caches, MS_HAS(6) && MS_HAS(7))
WHEN(has_no_caches, !MS_HAS(6) || !MS_HAS(7))
MS_ROW(DecoderAttention, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(12, 12, 1, 3),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", 0 }, { "q_weight", "T", 0 }, { "kv_weight", "T", 0 },
                       { "bias", "T", 0 }, { "key_padding_mask", "B", OPT }, { "key_cache", "T", OPT },
                       { "value_cache", "T", OPT }, { "static_kv", "B", 0 }, { "use_past", "B", 0 },
                       { "has_layer_state", "B", 0 }, { "has_key_padding_mask", "B", 0 }),
       .outputs = PORTS({ "output", "T", 0 }, { "new_key_cache", "T", OPT }, { "new_value_cache", "T", OPT }),
       .attrs = ATTRS({ "mask_filter_value", FLOAT, DEFAULT("-10000") }, { "num_heads", INT, REQUIRED }),
       .types = TYPES({ "T", T_FLOAT16 }, { "B", T(BIT(BOOL)) }),
       BODY(18, { NULL, NODES(zero = Constant <value_ints = [0]> ()
                          one = Constant <value_ints = [1]> ()
                          two = Constant <value_ints = [2]> ()
                          is_static = Reshape (static_kv, one)
                          uses = Reshape (use_past, one)
                          has = Reshape (has_layer_state, one)
                          masks = Reshape (has_key_padding_mask, one)
                          is_cached = And (uses, has)
                          is_new = Not (is_cached)
                          is_own = Not (is_static)
                          is_projected = And (is_static, is_new)
                          wide = Cast <to = 1> (query)
                          wide_key = Cast <to = 1> (key)
                          wide_weight = Cast <to = 1> (q_weight)
                          wide_kv_weight = Cast <to = 1> (kv_weight)
                          wide_bias = Cast <to = 1> (bias)
                          hidden = Shape <start = 2> (query)
                          q_bias = Slice (wide_bias, zero, hidden, zero)
                          triple = Shape (wide_bias)
                          kv_bias = Slice (wide_bias, hidden, triple, zero)
                          length = Shape <end = 1> (query)
                          key_length = Shape <end = 1> (key)
                          own_end = Where (is_own, length, zero)
                          key_end = Where (is_projected, key_length, zero)
                          own_part = Slice (wide, zero, own_end, zero)
                          key_part = Slice (wide_key, zero, key_end, zero)
                          source = Concat <axis = 0> (own_part, key_part)
                          kv_product = MatMul (source, wide_kv_weight)
                          kv = Add (kv_product, kv_bias)
                          q_product = MatMul (wide, wide_weight)
                          q_sum = Add (q_product, q_bias)
                          number = Constant <value_int: int = @num_heads> ()
                          heads = Mul (one, number)
                          size = Div (hidden, heads)
                          both = Shape <end = 2> (query)
                          q_apart = Concat <axis = 0> (both, heads, size)
                          q_heads = Reshape <allowzero = 1> (q_sum, q_apart)
                          q = Transpose <perm = [1, 2, 0, 3]> (q_heads)
                          kv_both = Shape <end = 2> (kv)
                          kv_apart = Concat <axis = 0> (kv_both, two, heads, size)
                          kv_heads = Reshape <allowzero = 1> (kv, kv_apart)
                          kv_turned = Transpose <perm = [2, 1, 3, 0, 4]> (kv_heads)
                          first = Constant <value_int = 0> () second = Constant <value_int = 1> ()
                          new_k = Gather (kv_turned, first) new_v = Gather (kv_turned, second)) },
            { has_both_caches, NODES(wide_key_cache = Cast <to = 1> (key_cache)
                                     wide_value_cache = Cast <to = 1> (value_cache)
                                     cache_length = Shape <start = 2, end = 3> (key_cache)
                                     cache_end = Where (is_cached, cache_length, zero)
                                     past_k = Slice (wide_key_cache, zero, cache_end, two)
                                     past_v = Slice (wide_value_cache, zero, cache_end, two)
                                     k = Concat <axis = 2> (past_k, new_k)
                                     v = Concat <axis = 2> (past_v, new_v)) },
            { has_no_caches, NODES(flag = Cast <to = 7> (is_cached)
                                   nothing = Gather (zero, flag)
                                   extent = Shape (new_k)
                                   same = Add (extent, nothing)
                                   k = Reshape <allowzero = 1> (new_k, same)
                                   v = Reshape <allowzero = 1> (new_v, same)) },
            { NULL, NODES(k_across = Transpose <perm = [0, 1, 3, 2]> (k)
                          raw = MatMul (q, k_across)
                          size_number = Cast <to = 1> (size)
                          root = Sqrt (size_number)
                          scores = Div (raw, root)) },
            { has_padding_mask, NODES(batch = Shape <start = 1, end = 2> (query)
                                      end = Constant <value_ints = [9223372036854775807]> ()
                                      mask_end = Where (masks, end, zero)
                                      padded = Slice (key_padding_mask, zero, mask_end, one)
                                      total = Shape <start = 2, end = 3> (k)
                                      rest = Where (masks, zero, total)
                                      rest_shape = Concat <axis = 0> (batch, rest)
                                      shown = ConstantOfShape <value = bool[1] {0}> (rest_shape)
                                      is_padding = Concat <axis = 1> (padded, shown)
                                      head_and_row = Constant <value_ints = [1, 2]> ()
                                      hidden_keys = Unsqueeze (is_padding, head_and_row)
                                      lowest = Constant <value = float {-inf}> ()
                                      masked = Where (hidden_keys, lowest, scores)) },
            { has_no_padding_mask, NODES(masked = Identity (scores)) },
            { NULL, NODES(shares = Softmax <axis = -1> (masked)
                          attended = MatMul (shares, v)
                          turned = Transpose <perm = [2, 0, 1, 3]> (attended)
                          shape = Shape (query)
                          flat = Reshape <allowzero = 1> (turned, shape)
                          output = CastLike (flat, query)
                          new_key_cache = CastLike (k, query)
                          new_value_cache = CastLike (v, query)) }))

MS_ROW(DecoderMaskedSelfAttention, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(7, 9, 2, 2),
       .inputs = PORTS({ "input", "T", 0 }, { "weights", "T", 0 }, { "bias", "T", 0 }, { "mask_index", "M", OPT },
                       { "past", "T", 0 }, { "attention_bias", "T", OPT }, { "past_sequence_length", "M", 0 },
                       { "beam_width", "M", OPT }, { "cache_indirection", "M", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "present", "T", 0 }),
       .attrs = ATTRS({ "do_rotary", INT, DEFAULT("0") }, { "mask_filter_value", FLOAT, DEFAULT("-10000") },
                      { "num_heads", INT, REQUIRED }, { "past_present_share_buffer", INT, DEFAULT("0") },
                      { "scale", FLOAT, OPTIONAL }),
       .types = TYPES({ "T", T_FLOAT16 }, { "M", T_INT32 }))

/* Half of the bins hold one distance each; the others are as wide as their distance is great. The table is stored head by
 * head, whatever its dims say. */
WHEN(is_both_ways, MS_SET("is_bidirectional"))
WHEN(is_one_way, !MS_SET("is_bidirectional"))
MS_ROW(RelativePositionBias, ARITY(3, 3, 1, 1),
       .inputs = PORTS({ "bias_table", "T", 0 }, { "query_length", "U", 0 }, { "key_length", "U", 0 }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "is_bidirectional", INT, DEFAULT("0") }, { "max_distance", INT, REQUIRED }),
       .types = TYPES({ "T", T_FLOAT16 }, { "U", T_INT64 }),
       BODY(18, { NULL, NODES(nothing = Constant <value_int = 0> ()
                          step = Constant <value_int = 1> ()
                          two = Constant <value_int = 2> ()
                          queries = Squeeze (query_length)
                          keys = Squeeze (key_length)
                          rows = Range (nothing, queries, step)
                          columns = Range (nothing, keys, step)
                          second = Constant <value_ints = [1]> ()
                          upright = Unsqueeze (rows, second)
                          ahead = Sub (columns, upright)
                          bucket_axis = Shape <end = 1> (bias_table)
                          bucket_count = Squeeze (bucket_axis)) },
            { is_both_ways, NODES(buckets = Div (bucket_count, two)
                                  is_ahead = Greater (ahead, nothing)
                                  first = Where (is_ahead, buckets, nothing)
                                  distance = Abs (ahead)) },
            { is_one_way, NODES(buckets = Identity (bucket_count)
                                first = Identity (nothing)
                                earlier = Min (ahead, nothing)
                                distance = Neg (earlier)) },
            { NULL, NODES(exact = Div (buckets, two)
                          is_near = Less (distance, exact)
                          exact_number = Cast <to = 1> (exact)
                          number = Cast <to = 1> (distance)
                          ratio = Div (number, exact_number)
                          far = Log (ratio)
                          most = Constant <value_int: int = @max_distance> ()
                          most_number = Cast <to = 1> (most)
                          most_ratio = Div (most_number, exact_number)
                          most_far = Log (most_ratio)
                          share = Div (far, most_far)
                          left = Sub (buckets, exact)
                          left_number = Cast <to = 1> (left)
                          bins = Mul (share, left_number)
                          unit = Constant <value_float = 0.0> ()
                          bin_numbers = Max (bins, unit)
                          whole = Cast <to = 7> (bin_numbers)
                          after = Add (exact, whole)
                          end = Sub (buckets, step)
                          bounded = Min (after, end)
                          within = Where (is_near, distance, bounded)
                          bucket = Add (first, within)
                          heads = Shape <start = 1> (bias_table)
                          table_shape = Concat <axis = 0> (heads, bucket_axis)
                          table = Reshape <allowzero = 1> (bias_table, table_shape)
                          picked = Gather <axis = 1> (table, bucket)
                          front = Constant <value_ints = [0]> ()
                          output = Unsqueeze (picked, front)) }))

WHEN(is_packed, MS_HAS(6))
WHEN(is_padded, !MS_HAS(6))
MS_ROW(GatedRelativePositionBias, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(6, 7, 1, 1),
       .inputs = PORTS({ "query_layer", "T", 0 }, { "query_bias", "T", 0 }, { "rel_pos", "T", 0 },
                       { "weight", "T", 0 }, { "bias", "T", 0 }, { "eco_a", "T", 0 }, { "token_offset", "M", OPT }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "num_heads", INT, REQUIRED }),
       .types = TYPES({ "T", T_FLOAT16 }, { "M", T_INT32 }),
       BODY(18, { is_packed, NODES(layer = com.microsoft.RestorePadding (query_layer, token_offset)) },
            { is_padded, NODES(layer = Identity (query_layer)) },
            { NULL, NODES(wide = Cast <to = 1> (layer)
                          wide_query_bias = Cast <to = 1> (query_bias)
                          sum = Add (wide, wide_query_bias)
                          both = Shape <end = 2> (sum)
                          hidden = Shape <start = 2> (sum)
                          one = Constant <value_ints = [1]> ()
                          number = Constant <value_int: int = @num_heads> ()
                          heads = Mul (one, number)
                          size = Div (hidden, heads)
                          apart = Concat <axis = 0> (both, heads, size)
                          by_head = Reshape <allowzero = 1> (sum, apart)
                          query = Transpose <perm = [0, 2, 1, 3]> (by_head)
                          wide_weight = Cast <to = 1> (weight)
                          wide_bias = Cast <to = 1> (bias)
                          product = MatMul (query, wide_weight)
                          projected = Add (product, wide_bias)
                          left, right = Split <axis = -1, num_outputs = 2> (projected)
                          last = Constant <value_ints = [-1]> ()
                          left_sum = ReduceSum (left, last)
                          right_sum = ReduceSum (right, last)
                          u = Sigmoid (left_sum)
                          r = Sigmoid (right_sum)
                          wide_factor = Cast <to = 1> (eco_a)
                          scaled = Mul (r, wide_factor)
                          unit = Constant <value_float = 1.0> ()
                          lowered = Sub (scaled, unit)
                          turned = Mul (u, lowered)
                          two = Constant <value_float = 2.0> ()
                          gate = Add (turned, two)
                          wide_table = Cast <to = 1> (rel_pos)
                          gated = Mul (gate, wide_table)
                          output = CastLike (gated, query_layer)) }))

/* state.c - rows of com.microsoft for language models beyond attention: operators that carry a state along a sequence,
 * rotary positions with three components, and hashes of tokens. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

/* ---- LinearAttention ---- */

/* The standard's operator requires at least as many query heads as key heads, so query heads are repeated. */
WHEN(has_more_keys, !MS_SET("state_window") && onxi_call_int(call, "kv_num_heads") > onxi_call_int(call, "q_num_heads"))
WHEN(has_no_more_keys, !MS_SET("state_window") && onxi_call_int(call, "kv_num_heads") <= onxi_call_int(call, "q_num_heads"))

MS_ROW(LinearAttention, .infer = onxi_rule_microsoft_linear_attention, .flags = INFERS, ARITY(3, 6, 2, 2),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", 0 }, { "value", "T", 0 }, { "past_state", "S", OPT },
                       { "decay", "T", OPT }, { "beta", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "present_state", "S", 0 }),
       .attrs = ATTRS({ "chunk_size", INT, DEFAULT("64") }, { "kv_num_heads", INT, REQUIRED },
                      { "q_num_heads", INT, REQUIRED }, { "scale", FLOAT, DEFAULT("0") },
                      { "state_window", INT, DEFAULT("0") }, { "update_rule", STRING, TEXT("gated_delta") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "S", T(SCALES_19) }),
       BODY(27, { has_no_more_keys,
                  NODES(output, present_state = LinearAttention <chunk_size: int = @chunk_size, scale: float = @scale,
                            kv_num_heads: int = @kv_num_heads, q_num_heads: int = @q_num_heads,
                            update_rule: string = @update_rule> (query, key, value, past_state, decay, beta)) },
            { has_more_keys,
              NODES(lengths = Shape <end = 2> (query)
                    width = Shape <start = 2> (query)
                    one = Constant <value_ints = [1]> ()
                    q_number = Constant <value_int: int = @q_num_heads> ()
                    heads = Mul (one, q_number)
                    kv_number = Constant <value_int: int = @kv_num_heads> ()
                    times = Div (kv_number, heads)
                    size = Div (width, heads)
                    apart_shape = Concat <axis = 0> (lengths, heads, one, size)
                    many_shape = Concat <axis = 0> (lengths, heads, times, size)
                    whole = Mul (width, times)
                    packed_shape = Concat <axis = 0> (lengths, whole)
                    apart = Reshape <allowzero = 1> (query, apart_shape)
                    many = Expand (apart, many_shape)
                    packed = Reshape <allowzero = 1> (many, packed_shape)
                    output, present_state = LinearAttention <chunk_size: int = @chunk_size, scale: float = @scale,
                        kv_num_heads: int = @kv_num_heads, q_num_heads: int = @kv_num_heads,
                        update_rule: string = @update_rule> (packed, key, value, past_state, decay, beta)) }))

/* ---- CausalConvWithState ---- */

/* Slices of channels, longer states and captures are for accelerators; such calls have no body. */
WHEN(is_whole, !onxi_ms_conv_is_extended(call))
WHEN(channels_first, is_whole(call) && !MS_SET("channels_last"))
WHEN(channels_last, is_whole(call) && MS_SET("channels_last"))
WHEN(channels_last_past, channels_last(call) && MS_HAS(3))
WHEN(channels_last_fresh, channels_last(call) && !MS_HAS(3))
WHEN(is_dilated, is_whole(call) && onxi_call_int(call, "dilation") != 1)
WHEN(is_not_dilated, is_whole(call) && onxi_call_int(call, "dilation") == 1)

/* A dilated kernel is one with zeros in between; its state has the same length as the operator's. If channels come
 * last, several axes may form them. */
MS_ROW(CausalConvWithState, .infer = onxi_rule_microsoft_causal_conv, .flags = INFERS, ARITY(2, 4, 2, 3),
       .inputs = PORTS({ "input", "T", 0 }, { "weight", "T", 0 }, { "bias", "T", OPT }, { "past_state", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "present_state", "T", 0 }, { "state_update", "T", OPT }),
       .attrs = ATTRS({ "activation", STRING, TEXT("none") }, { "channels_last", INT, DEFAULT("0") },
                      { "dilation", INT, DEFAULT("1") }, { "input_channel_offset", INT, DEFAULT("0") },
                      { "input_channels", INT, DEFAULT("0") }, { "ndim", INT, DEFAULT("1") },
                      { "state_channels_last", INT, DEFAULT("-1") }, { "state_length", INT, DEFAULT("0") },
                      { "state_update_capacity", INT, DEFAULT("0") }, { "state_window", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }),
       BODY(27, { is_whole, NODES(state_update = Identity (weight)) }, /* not an output of such calls */
            { is_not_dilated, NODES(kernel = Identity (weight)) },
            { is_dilated, NODES(step_number = Constant <value_int: int = @dilation> ()
                                unit = Constant <value_ints = [1]> ()
                                step = Mul (unit, step_number)
                                holes = Sub (step, unit)
                                none = Constant <value_ints = [0, 0, 0, 0, 0, 0, 0]> ()
                                pads = Concat <axis = 0> (none, holes)
                                last = Constant <value_ints = [-1]> ()
                                columns = Unsqueeze (weight, last)
                                padded = Pad (columns, pads)
                                channel = Shape <end = 2> (weight)
                                taps = Shape <start = 2> (weight)
                                wide = Mul (taps, step)
                                wide_shape = Concat <axis = 0> (channel, wide)
                                spread = Reshape <allowzero = 1> (padded, wide_shape)
                                begin = Constant <value_ints = [0]> ()
                                used = Sub (wide, holes)
                                third = Constant <value_ints = [2]> ()
                                kernel = Slice (spread, begin, used, third)) },
            { channels_first, NODES(output, present_state = CausalConvWithState <activation: string = @activation>
                                    (input, kernel, bias, past_state)) },
            { channels_last, NODES(shape = Shape (input)
                                   lengths = Shape <end = 2> (input)
                                   batch = Shape <end = 1> (input)
                                   channels = Shape <start = 2> (input)
                                   flat_channels = Shape <end = 1> (weight)
                                   rows_shape = Concat <axis = 0> (lengths, flat_channels)
                                   rows = Reshape <allowzero = 1> (input, rows_shape)
                                   first = Transpose <perm = [0, 2, 1]> (rows)) },
            { channels_last_past, NODES(past_length = Shape <start = 1, end = 2> (past_state)
                                        past_shape = Concat <axis = 0> (batch, past_length, flat_channels)
                                        past_rows = Reshape <allowzero = 1> (past_state, past_shape)
                                        past = Transpose <perm = [0, 2, 1]> (past_rows)
                                        first_output, present = CausalConvWithState <activation: string = @activation>
                                            (first, kernel, bias, past)) },
            { channels_last_fresh, NODES(first_output, present = CausalConvWithState <activation: string = @activation>
                                             (first, kernel, bias)) },
            { channels_last, NODES(output_rows = Transpose <perm = [0, 2, 1]> (first_output)
                                   output = Reshape <allowzero = 1> (output_rows, shape)
                                   present_rows = Transpose <perm = [0, 2, 1]> (present)
                                   present_length = Shape <start = 2> (present)
                                   present_shape = Concat <axis = 0> (batch, present_length, channels)
                                   present_state = Reshape <allowzero = 1> (present_rows, present_shape)) }))

/* ---- MRotaryEmbedding ---- */

/* The component (time, height or width) that gives the angle of a pair, by index. */
WHEN(has_chunks, !MS_SET("mrope_layout"))
WHEN(has_turns, MS_SET("mrope_layout"))
MS_ROW(MRotaryEmbedding, .infer = onxi_rule_microsoft_mrotary, .flags = INFERS, ARITY(4, 4, 1, 1),
       .inputs = PORTS({ "input", "T", 0 }, { "position_ids", "M", 0 }, { "cos_cache", "T", 0 }, { "sin_cache", "T", 0 }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "interleaved", INT, DEFAULT("0") }, { "is_packed_batching", INT, DEFAULT("0") },
                      { "mrope_layout", INT, DEFAULT("0") }, { "mrope_section", INTS, REQUIRED },
                      { "num_heads", INT, DEFAULT("0") }, { "rotary_embedding_dim", INT, DEFAULT("0") },
                      { "scale", FLOAT, DEFAULT("1") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T_INT64 }),
       BODY(23, { NULL, NODES(sections = Constant <value_ints: ints = @mrope_section> ()
                              nothing = Constant <value_int = 0> ()
                              one = Constant <value_int = 1> ()
                              two = Constant <value_int = 2> ()
                              of_time = Gather (sections, nothing)
                              of_height = Gather (sections, one)
                              of_width = Gather (sections, two)
                              half = ReduceSum <keepdims = 0> (sections)
                              pair = Range (nothing, half, one)) },
            { has_chunks, NODES(until_width = Add (of_time, of_height)
                                not_time = GreaterOrEqual (pair, of_time)
                                is_width = GreaterOrEqual (pair, until_width)
                                before_width = Not (is_width)
                                is_height = And (not_time, before_width)) },
            { has_turns, NODES(three = Constant <value_int = 3> ()
                               turn = Mod (pair, three)
                               round = Div (pair, three)
                               height_turn = Equal (turn, one)
                               height_round = Less (round, of_height)
                               is_height = And (height_turn, height_round)
                               width_turn = Equal (turn, two)
                               width_round = Less (round, of_width)
                               is_width = And (width_turn, width_round)) },
            { NULL, NODES(time = Gather (position_ids, nothing)
                          height = Gather (position_ids, one)
                          width = Gather (position_ids, two)
                          time_cos = Gather (cos_cache, time)
                          height_cos = Gather (cos_cache, height)
                          width_cos = Gather (cos_cache, width)
                          upright_cos = Where (is_height, height_cos, time_cos)
                          cos = Where (is_width, width_cos, upright_cos)
                          time_sin = Gather (sin_cache, time)
                          height_sin = Gather (sin_cache, height)
                          width_sin = Gather (sin_cache, width)
                          upright_sin = Where (is_height, height_sin, time_sin)
                          sin = Where (is_width, width_sin, upright_sin)
                          output = RotaryEmbedding <interleaved: int = @interleaved, num_heads: int = @num_heads,
                                                    rotary_embedding_dim: int = @rotary_embedding_dim>
                              (input, cos, sin)) }))

/* ---- Engram ---- */

#define NORMALIZED(x, scale, into)                                                                                      \
    NODES(x##_wide = Cast <to = 1> (x)                                                                                 \
          x##_squares = Mul (x##_wide, x##_wide)                                                                       \
          x##_mean = ReduceMean (x##_squares, last)                                                                    \
          x##_raised = Add (x##_mean, small)                                                                           \
          x##_root = Sqrt (x##_raised)                                                                                 \
          x##_normal = Div (x##_wide, x##_root)                                                                        \
          x##_scale = Cast <to = 1> (scale)                                                                            \
          into = Mul (x##_normal, x##_scale))

WHEN(has_conv_scale, MS_HAS(5))
WHEN(has_no_conv_scale, !MS_HAS(5)) /* then nothing uses the second output */
MS_ROW(EngramGate, .infer = onxi_rule_microsoft_engram_gate, .flags = INFERS, ARITY(5, 6, 1, 2),
       .inputs = PORTS({ "key", "T", 0 }, { "query", "T", 0 }, { "value", "T", 0 }, { "key_norm_scale", "T", 0 },
                       { "query_norm_scale", "T", 0 }, { "conv_norm_scale", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "gated_value_normed", "T", OPT }), .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }),
       .types = TYPES({ "T", T(SCALES_19) }),
       BODY(18, { NULL, NODES(last = Constant <value_ints = [-1]> ()
                              third = Constant <value_ints = [2]> ()
                              small = Constant <value_float: float = @epsilon> ()) },
            { NULL, NORMALIZED(key, key_norm_scale, k) }, { NULL, NORMALIZED(query, query_norm_scale, q) },
            { NULL, NODES(products = Mul (k, q)
                          sum = ReduceSum (products, last)
                          size = Shape <start = 3> (key)
                          size_number = Cast <to = 1> (size)
                          size_root = Sqrt (size_number)
                          dot = Div (sum, size_root)
                          distance = Abs (dot)
                          least = Constant <value_float = 0.000001> ()
                          bounded = Max (distance, least)
                          root = Sqrt (bounded)
                          sign = Sign (dot)
                          signed = Mul (sign, root)
                          gate = Sigmoid (signed)
                          shared = Unsqueeze (value, third)
                          wide = Cast <to = 1> (shared)
                          gated = Mul (gate, wide)
                          output = CastLike (gated, key)) },
            { has_conv_scale, NORMALIZED(gated, conv_norm_scale, n) },
            { has_conv_scale, NODES(gated_value_normed = CastLike (n, key)) },
            { has_no_conv_scale, NODES(gated_value_normed = Identity (output)) }))

MS_ROW(NGramHashMapping, .infer = onxi_rule_microsoft_ngram_hash, .flags = INFERS, ARITY(3, 7, 1, 2),
       .inputs = PORTS({ "input_ids", "M", 0 }, { "multipliers", "M", 0 }, { "vocab_sizes", "M", 0 },
                       { "past_ids", "M", OPT }, { "head_offsets", "M", OPT }, { "eos_token_id", "M", OPT },
                       { "segment_ids", "tensor(int32)", OPT }),
       .outputs = PORTS({ "hash_ids", "M", 0 }, { "present_ids", "M", OPT }),
       .attrs = ATTRS({ "max_ngram_size", INT, REQUIRED }, { "n_head_per_ngram", INT, REQUIRED },
                      { "pad_id", INT, REQUIRED }, { "reset_on_eos", INT, DEFAULT("0") }),
       .types = TYPES({ "M", T(INDEX) }))

/* ---- LSTM with attention ---- */

MS_ROW(AttnLSTM, .infer = onxi_rule_microsoft_lstm, .flags = INFERS, ARITY(3, 14, 0, 3),
       .inputs = PORTS({ "X", "T", 0 }, { "W", "T", 0 }, { "R", "T", 0 }, { "B", "T", OPT },
                       { "sequence_lens", "T1", OPT }, { "initial_h", "T", OPT }, { "initial_c", "T", OPT },
                       { "P", "T", OPT }, { "QW", "T", OPT }, { "MW", "T", OPT }, { "V", "T", OPT },
                       { "M", "T", OPT }, { "memory_seq_lens", "T1", OPT }, { "AW", "T", OPT }),
       .outputs = PORTS({ "Y", "T", OPT }, { "Y_h", "T", OPT }, { "Y_c", "T", OPT }),
       .attrs = ATTRS({ "activation_alpha", FLOATS, OPTIONAL }, { "activation_beta", FLOATS, OPTIONAL },
                      { "activations", STRINGS, OPTIONAL }, { "clip", FLOAT, OPTIONAL },
                      { "direction", STRING, TEXT("forward") }, { "hidden_size", INT, OPTIONAL },
                      { "input_forget", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T_FLOAT }, { "T1", T_INT32 }))

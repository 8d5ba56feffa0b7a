/* streams.c - rows of com.microsoft: activations, normalizations and mixes of several streams, and states of
 * packed sequences. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

WHEN(has_1, MS_HAS(1))
WHEN(has_no_1, !MS_HAS(1))
/* Each step is rounded. */
MS_ROW(ScaledSiLU, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(1, 2, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "scale", "M", OPT }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T(SCALES_19) }),
       BODY(18, { NULL, NODES(wide = Cast <to = 1> (X)) },
            { has_1, NODES(wide_scale = Cast <to = 1> (scale) factor = Squeeze (wide_scale)) },
            { has_no_1, NODES(factor = Constant <value_float: float = @alpha> ()) },
            { NULL, NODES(wide_scaled = Mul (wide, factor)
                          scaled = CastLike (wide_scaled, X)
                          wide_again = Cast <to = 1> (scaled)
                          wide_share = Sigmoid (wide_again)
                          share = CastLike (wide_share, X)
                          share_again = Cast <to = 1> (share)
                          product = Mul (wide_again, share_again)
                          Y = CastLike (product, X)) }))

WHEN(clamps, onxi_call_float(call, "limit") > 0)
WHEN(clamps_nothing, !clamps(call))
WHEN(rounds_activation, MS_SET("round_activation"))
WHEN(keeps_activation, !MS_SET("round_activation"))
WHEN(shifts_up, onxi_call_float(call, "activation_beta") != 0)
WHEN(keeps_up, !shifts_up(call))
MS_ROW(SwiGLU, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(1, 2, 1, 1),
       .inputs = PORTS({ "gate", "T", 0 }, { "up", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "activation_alpha", FLOAT, DEFAULT("1") }, { "activation_beta", FLOAT, DEFAULT("0") },
                      { "limit", FLOAT, DEFAULT("0") }, { "round_activation", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }),
       BODY(18, { has_1, NODES(left = Cast <to = 1> (gate) right = Cast <to = 1> (up)) },
            { has_no_1, NODES(wide = Cast <to = 1> (gate) left, right = Split <axis = -1, num_outputs = 2> (wide)) },
            { clamps, NODES(most = Constant <value_float: float = @limit> ()
                            least = Neg (most)
                            g = Min (left, most)
                            below = Min (right, most)
                            l = Max (below, least)) },
            { clamps_nothing, NODES(g = Identity (left) l = Identity (right)) },
            { NULL, NODES(slope = Constant <value_float: float = @activation_alpha> ()
                          sloped = Mul (g, slope)
                          share = Sigmoid (sloped)
                          activated = Mul (g, share)) },
            { rounds_activation, NODES(narrow = CastLike (activated, gate) a = Cast <to = 1> (narrow)) },
            { keeps_activation, NODES(a = Identity (activated)) },
            { shifts_up, NODES(shift = Constant <value_float: float = @activation_beta> () u = Add (l, shift)) },
            { keeps_up, NODES(u = Identity (l)) },
            { NULL, NODES(product = Mul (a, u) output = CastLike (product, gate)) }))

MS_ROW(RouterGateUpProj, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 2, 2, 2),
       .inputs = PORTS({ "X", "T", 0 }, { "W", "T", 0 }),
       .outputs = PORTS({ "router", "T", 0 }, { "activated", "T", 0 }),
       .attrs = ATTRS({ "activation", STRING, TEXT("swiglu") }, { "activation_alpha", FLOAT, DEFAULT("1") },
                      { "activation_beta", FLOAT, DEFAULT("0") }, { "limit", FLOAT, DEFAULT("0") },
                      { "router_size", INT, REQUIRED }),
       .types = TYPES({ "T", T_HALVES }),
       BODY(18, { NULL, NODES(wide = Cast <to = 1> (X)
                              wide_weights = Cast <to = 1> (W)
                              all = MatMul (wide, wide_weights)
                              front = Constant <value_ints = [0]> ()
                              one = Constant <value_ints = [1]> ()
                              number = Constant <value_int: int = @router_size> ()
                              border = Mul (one, number)
                              last = Constant <value_ints = [-1]> ()
                              end = Constant <value_ints = [9223372036854775807]> ()
                              logits = Slice (all, front, border, last)
                              router = CastLike (logits, X)
                              halves = Slice (all, border, end, last)
                              wide_activated = com.microsoft.SwiGLU <activation_alpha: float = @activation_alpha,
                                  activation_beta: float = @activation_beta, limit: float = @limit> (halves)
                              activated = CastLike (wide_activated, X)) }))

/* Streams as an axis of their own, in float: x. */
WHEN(is_flat, MS_SET("num_branches"))
WHEN(is_grouped, !MS_SET("num_branches"))
#define GROUPED(operand)                                                                                               \
    { is_grouped, NODES(lead = Shape <end = -2> (operand)                                                              \
                        branches = Shape <start = -2, end = -1> (operand)                                              \
                        width = Shape <start = -1> (operand)) },                                                       \
    { is_flat, NODES(lead = Shape <end = -1> (operand)                                                                 \
                     one = Constant <value_ints = [1]> ()                                                              \
                     number = Constant <value_int: int = @num_branches> ()                                             \
                     branches = Mul (one, number)                                                                      \
                     whole = Shape <start = -1> (operand)                                                              \
                     width = Div (whole, branches)) },                                                                 \
    { NULL, NODES(sizes = Shape (operand)                                                                              \
                  wide = Cast <to = 1> (operand)                                                                       \
                  apart = Concat <axis = 0> (lead, branches, width)                                                    \
                  x = Reshape <allowzero = 1> (wide, apart)                                                            \
                  any = Constant <value_ints = [-1]> ()                                                                \
                  gate_shape = Concat <axis = 0> (lead, branches, any)) }

MS_ROW(BranchwiseRMSNorm, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(1, 2, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "scale", "M", OPT }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }, { "num_branches", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T(SCALES_19) }),
       BODY(18, GROUPED(X),
            { NULL, NODES(squares = Mul (x, x)
                          mean = ReduceMean (squares, any)
                          small = Constant <value_float: float = @epsilon> ()
                          raised = Add (mean, small)
                          root = Sqrt (raised)
                          normal = Div (x, root)) },
            { has_1, NODES(wide_scale = Cast <to = 1> (scale)
                           scale_shape = Concat <axis = 0> (any, width)
                           factors = Reshape (wide_scale, scale_shape)
                           scaled = Mul (normal, factors)) },
            { has_no_1, NODES(scaled = Identity (normal)) },
            { NULL, NODES(placed = Reshape <allowzero = 1> (scaled, sizes) Y = CastLike (placed, X)) }))

MS_ROW(HyperConnectionPreMix, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "streams", "T", 0 }, { "pre_mix", "M", 0 }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "num_branches", INT, DEFAULT("0") }, { "reduction_scale", FLOAT, DEFAULT("1") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T(SCALES_19) }),
       BODY(18, GROUPED(streams),
            { NULL, NODES(wide_gates = Cast <to = 1> (pre_mix)
                          gates = Reshape (wide_gates, gate_shape)
                          gated = Mul (x, gates)
                          second = Constant <value_ints = [-2]> ()
                          sum = ReduceSum <keepdims = 0> (gated, second)
                          factor = Constant <value_float: float = @reduction_scale> ()
                          scaled = Mul (sum, factor)
                          output = CastLike (scaled, streams)) }))

WHEN(has_mix, MS_HAS(3))
WHEN(has_no_mix, !MS_HAS(3))
MS_ROW(HyperConnectionPostMix, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(3, 4, 1, 1),
       .inputs = PORTS({ "streams", "T", 0 }, { "block_output", "T", 0 }, { "post_mix", "M", 0 },
                       { "stream_mix", "M", OPT }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "num_branches", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T(SCALES_19) }),
       BODY(18, GROUPED(streams),
            { has_mix, NODES(wide_mix = Cast <to = 1> (stream_mix) mixed = Einsum <equation = "...ck,...ch->...kh"> (wide_mix, x)) },
            { has_no_mix, NODES(mixed = Identity (x)) },
            { NULL, NODES(wide_gates = Cast <to = 1> (post_mix)
                          gates = Reshape (wide_gates, gate_shape)
                          wide_block = Cast <to = 1> (block_output)
                          second = Constant <value_ints = [-2]> ()
                          block = Unsqueeze (wide_block, second)
                          added = Mul (gates, block)
                          sum = Add (mixed, added)
                          placed = Reshape <allowzero = 1> (sum, sizes)
                          output = CastLike (placed, streams)) }))

WHEN(has_previous, MS_HAS(5) && MS_HAS(6))
WHEN(has_no_previous, !has_previous(call))
/* The result of each step is rounded to the type of the streams. */
MS_ROW(HyperConnectionLowRankMix, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(5, 7, 2, 3),
       .inputs = PORTS({ "streams", "T", 0 }, { "norm_scale", "T", 0 }, { "down_weight", "T", 0 },
                       { "up_weight", "T", 0 }, { "inject_weight", "T", 0 }, { "prev_block_output", "T", OPT },
                       { "prev_post_gate", "T", OPT }),
       .outputs = PORTS({ "pre_output", "T", 0 }, { "post_gate", "T", 0 }, { "streams_out", "T", OPT }),
       .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }, { "gate_div", FLOAT, DEFAULT("1") },
                      { "gate_mul", FLOAT, DEFAULT("1") }, { "num_branches", INT, REQUIRED },
                      { "reduction_scale", FLOAT, DEFAULT("1") }, { "silu_alpha", FLOAT, DEFAULT("1") }),
       .types = TYPES({ "T", T(SCALES_19) }),
       BODY(18, { has_previous, NODES(all = com.microsoft.HyperConnectionPostMix <num_branches: int = @num_branches>
                                  (streams, prev_block_output, prev_post_gate)) },
            { has_no_previous, NODES(all = Identity (streams)) },
            { NULL, NODES(normal = com.microsoft.BranchwiseRMSNorm <epsilon: float = @epsilon, num_branches: int = @num_branches>
                              (all, norm_scale)
                          down = MatMul (normal, down_weight)
                          hidden = com.microsoft.ScaledSiLU <alpha: float = @silu_alpha> (down)
                          logits = MatMul (hidden, up_weight)
                          wide_logits = Cast <to = 1> (logits)
                          wide_gates = Sigmoid (wide_logits)
                          gates = CastLike (wide_gates, streams)
                          pre_output = com.microsoft.HyperConnectionPreMix <num_branches: int = @num_branches,
                              reduction_scale: float = @reduction_scale> (normal, gates)
                          inject = MatMul (normal, inject_weight)
                          wide_inject = Cast <to = 1> (inject)
                          divisor = Constant <value_float: float = @gate_div> ()
                          wide_part = Div (wide_inject, divisor)
                          part = CastLike (wide_part, streams)
                          part_again = Cast <to = 1> (part)
                          wide_share = Sigmoid (part_again)
                          share = CastLike (wide_share, streams)
                          share_again = Cast <to = 1> (share)
                          factor = Constant <value_float: float = @gate_mul> ()
                          wide_post = Mul (share_again, factor)
                          post_gate = CastLike (wide_post, streams)
                          streams_out = Identity (all)) }))

/* Everything is computed in float, and rounded to bfloat16 between normalization and rotation where all operands have
 * that type, which a number shows. The arithmetic of prefill and decoding differs by roundings only. */
WHEN(gives_halves, MS_SET("output_fp16"))
WHEN(gives_bfloats, !MS_SET("output_fp16"))
WHEN(keeps_batch, !MS_SET("flatten_batch"))
WHEN(flattens_batch, MS_SET("flatten_batch"))
MS_ROW(RMSNormRotary, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(5, 6, 1, 2),
       .inputs = PORTS({ "X", "T", 0 }, { "scale", "F", 0 }, { "position_ids", "I", 0 }, { "cosine", "TCos", 0 },
                       { "sine", "TCos", 0 }, { "prefill_numerics", "TI", OPT }),
       .outputs = PORTS({ "Y", "TOut", 0 }, { "normalized_fp32", "F", OPT }),
       .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-06") }, { "flatten_batch", INT, DEFAULT("0") },
                      { "input_start", INT, DEFAULT("0") }, { "input_width", INT, DEFAULT("0") },
                      { "output_fp16", INT, DEFAULT("0") }, { "rotary_embedding_dim", INT, REQUIRED },
                      { "use_fp32_arithmetic", INT, DEFAULT("1") }),
       .types = TYPES({ "T", T_HALVES }, { "TCos", T(BIT(BFLOAT16) | BIT(FLOAT)) }, { "TOut", T_HALVES },
                      { "F", T_FLOAT }, { "I", T_INT64 }, { "TI", T_INT32 }),
       BODY(18, { NULL, NODES(zero = Constant <value_ints = [0]> ()
                          one = Constant <value_ints = [1]> ()
                          last = Constant <value_ints = [-1]> ()
                          third = Constant <value_ints = [3]> ()
                          both = Shape <end = 2> (X)
                          heads = Shape <start = 2, end = 3> (X)
                          width = Shape (scale)
                          start_number = Constant <value_int: int = @input_start> ()
                          start = Mul (one, start_number)
                          end = Add (start, width)
                          part = Slice (X, start, end, third)
                          wide = Cast <to = 1> (part)
                          square = Mul (wide, wide)
                          mean = ReduceMean <keepdims = 1> (square, third)
                          small = Constant <value_float: float = @epsilon> ()
                          shifted = Add (mean, small)
                          root = Sqrt (shifted)
                          divided = Div (wide, root)
                          exact = Mul (divided, scale)
                          cosines = Cast <to = 1> (cosine)
                          sines = Cast <to = 1> (sine)) },
            { gives_halves, NODES(normal = Identity (exact)) },
            { gives_bfloats, NODES(third_of = Constant <value = bfloat16[1] {16043}> ()
                                   wide_third = Cast <to = 1> (third_of)
                                   of_x = Constant <value_floats = [0.333333343]> ()
                                   x_third = CastLike (of_x, X)
                                   x_again = Cast <to = 1> (x_third)
                                   table_third = CastLike (of_x, cosine)
                                   table_again = Cast <to = 1> (table_third)
                                   x_is_short = Equal (x_again, wide_third)
                                   table_is_short = Equal (table_again, wide_third)
                                   rounds = And (x_is_short, table_is_short)
                                   short = Cast <to = 16> (exact)
                                   rounded = Cast <to = 1> (short)
                                   normal = Where (rounds, rounded, exact)) },
            { NULL, NODES(turn_number = Constant <value_int: int = @rotary_embedding_dim> ()
                          turned_width = Mul (one, turn_number)
                          two = Constant <value_ints = [2]> ()
                          half = Div (turned_width, two)
                          low = Slice (normal, zero, half, third)
                          high = Slice (normal, half, turned_width, third)
                          rest = Slice (normal, turned_width, width, third)
                          length = Shape <start = 1, end = 2> (X)
                          length_number = Squeeze (length)
                          nothing = Constant <value_int = 0> ()
                          step = Constant <value_int = 1> ()
                          steps = Range (nothing, length_number, step)
                          count = Size (position_ids)
                          is_base = Equal (count, step)
                          no_steps = Sub (steps, steps)
                          more = Where (is_base, steps, no_steps)
                          places = Add (position_ids, more)
                          all_places = Expand (places, both)
                          c_rows = Gather (cosines, all_places)
                          s_rows = Gather (sines, all_places)
                          c = Unsqueeze (c_rows, two)
                          s = Unsqueeze (s_rows, two)
                          low_c = Mul (low, c) high_s = Mul (high, s) new_low = Sub (low_c, high_s)
                          high_c = Mul (high, c) low_s = Mul (low, s) new_high = Add (high_c, low_s)
                          turned = Concat <axis = 3> (new_low, new_high, rest)
                          flat_width = Mul (heads, width)) },
            { keeps_batch, NODES(front = Identity (both)) },
            { flattens_batch, NODES(tokens = ReduceProd <keepdims = 1> (both) front = Concat <axis = 0> (one, tokens)) },
            { NULL, NODES(flat_shape = Concat <axis = 0> (front, flat_width)
                          flat = Reshape <allowzero = 1> (turned, flat_shape)
                          apart_shape = Concat <axis = 0> (front, heads, width)
                          normalized_fp32 = Reshape <allowzero = 1> (normal, apart_shape)) },
            { gives_halves, NODES(Y = Cast <to = 10> (flat)) }, { gives_bfloats, NODES(Y = Cast <to = 16> (flat)) }))

WHEN(has_projection, MS_HAS(2))
WHEN(has_no_projection, !MS_HAS(2))
MS_ROW(MoEGroupRouter, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 3, 0, 3),
       .inputs = PORTS({ "logits", "T", 0 }, { "expert_bias", "TF", 0 }, { "projection_weight", "T", OPT }),
       .outputs = PORTS({ "router_probs", "T", OPT }, { "selection_scores", "TF", OPT },
                        { "router_weights", "TF", OPT }),
       .attrs = ATTRS({ "group_topk", INT, DEFAULT("2") }, { "n_group", INT, DEFAULT("1") },
                      { "router_sentinel", FLOAT, DEFAULT("-10000") }, { "top_k", INT, REQUIRED },
                      { "topk_group", INT, DEFAULT("1") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "TF", T_FLOAT }),
       BODY(18, { has_projection, NODES(wide = Cast <to = 1> (logits)
                                   wide_weight = Cast <to = 1> (projection_weight)
                                   turned = Transpose <perm = [1, 0]> (wide_weight)
                                   x = MatMul (wide, turned)) },
            { has_no_projection, NODES(wide = Cast <to = 1> (logits)
                                       every = Shape (expert_bias)
                                       any = Constant <value_ints = [-1]> ()
                                       flat = Concat <axis = 0> (any, every)
                                       x = Reshape (wide, flat)) },
            { NULL, NODES(router_weights = Sigmoid (x)
                          selection_scores = Add (router_weights, expert_bias)
                          one = Constant <value_ints = [1]> ()
                          tokens = Shape <end = 1> (x)
                          experts = Shape (expert_bias)
                          group_number = Constant <value_int: int = @n_group> ()
                          groups = Mul (one, group_number)
                          size = Div (experts, groups)
                          grouped_shape = Concat <axis = 0> (tokens, groups, size)
                          grouped = Reshape <allowzero = 1> (selection_scores, grouped_shape)
                          best_number = Constant <value_int: int = @group_topk> ()
                          best_wanted = Mul (one, best_number)
                          best_count = Min (best_wanted, size)
                          best, best_at = TopK (grouped, best_count)
                          last = Constant <value_ints = [-1]> ()
                          sums = ReduceSum <keepdims = 0> (best, last)
                          open_number = Constant <value_int: int = @topk_group> ()
                          open_count = Mul (one, open_number)
                          open_sums, open_at = TopK (sums, open_count)
                          sums_shape = Shape (sums)
                          closed = ConstantOfShape (sums_shape)
                          open_shape = Shape (open_at)
                          unit = Constant <value_float = 1.0> ()
                          opened = Expand (unit, open_shape)
                          marks = ScatterElements <axis = 1> (closed, open_at, opened)
                          group_marks = Unsqueeze (marks, last)
                          is_open = Cast <to = 9> (group_marks)
                          lowest = Constant <value = float {-inf}> ()
                          allowed = Where (is_open, grouped, lowest)
                          scores_shape = Shape (x)
                          candidates = Reshape <allowzero = 1> (allowed, scores_shape)
                          top_number = Constant <value_int: int = @top_k> ()
                          top_count = Mul (one, top_number)
                          top, top_at = TopK (candidates, top_count)
                          least = Constant <value_float = 1e-20> ()
                          bounded = Max (router_weights, least)
                          logs = Log (bounded)
                          chosen = GatherElements <axis = 1> (logs, top_at)
                          absent = Constant <value_float: float = @router_sentinel> ()
                          absent_all = Expand (absent, scores_shape)
                          probabilities = ScatterElements <axis = 1> (absent_all, top_at, chosen)
                          router_probs = CastLike (probabilities, logits)) }))

MS_ROW(GatedDeltaNet, .infer = onxi_rule_microsoft_gated_delta_net, .flags = INFERS, ARITY(1, 11, 1, 3),
       .inputs = PORTS({ "query", "T", 0 }, { "key", "T", OPT }, { "value", "T", OPT }, { "cu_seqlens", "TI", OPT },
                       { "decay", "TG", OPT }, { "beta", "TG", OPT }, { "initial_state", "TS", OPT },
                       { "a_log", "TS", OPT }, { "dt_bias", "TS", OPT }, { "capture_count", "TI", OPT },
                       { "state_update_active", "TI", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "final_state", "TS", OPT }, { "state_update", "TS", OPT }),
       .attrs = ATTRS({ "beta_activation", STRING, TEXT("none") }, { "chunk_size", INT, DEFAULT("64") },
                      { "gate_activation", STRING, TEXT("none") }, { "gate_lower_bound", FLOAT, DEFAULT("-5") },
                      { "qk_l2_norm", INT, DEFAULT("0") }, { "scale", FLOAT, DEFAULT("0") },
                      { "state_update_capacity", INT, DEFAULT("0") }, { "update_rule", STRING, TEXT("gated_delta") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "TS", T_FLOAT }, { "TG", T(SCALES_19) }, { "TI", T_INT32 }))

MS_ROW(GatedDeltaNetStateReplay, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(4, 4, 1, 1),
       .inputs = PORTS({ "source_backing", "T", 0 }, { "capsule_backing", "T", 0 }, { "destination_backing", "T", 0 },
                       { "metadata", "TI", 0 }),
       .outputs = PORTS({ "destination_out", "T", 0 }),
       .types = TYPES({ "T", T_FLOAT }, { "TI", T_INT64 }))

MS_ROW(VarlenCausalConvWithState, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(5, 8, 2, 3),
       .inputs = PORTS({ "input", "T", 0 }, { "weight", "T", 0 }, { "cumulative_sequence_length", "M", 0 },
                       { "bias", "T", OPT }, { "initial_state", "T", 0 }, { "capture_count", "M", OPT },
                       { "kernel_delta", "T", OPT }, { "previous_mask", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "final_state", "T", 0 }, { "state_update", "T", OPT }),
       .attrs = ATTRS({ "activation", STRING, TEXT("none") }, { "delta_offset", INT, DEFAULT("0") },
                      { "dilation", INT, DEFAULT("1") }, { "group_size", INT, DEFAULT("1") },
                      { "state_update_capacity", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T_INT32 }))

MS_ROW(ConvStateReplay, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(4, 4, 1, 1),
       .inputs = PORTS({ "source_backing", "T", 0 }, { "capture_backing", "T", 0 }, { "destination_backing", "T", 0 },
                       { "metadata", "TI", 0 }),
       .outputs = PORTS({ "destination_out", "T", 0 }),
       .types = TYPES({ "T", T_FLOAT16 }, { "TI", T_INT64 }))

MS_ROW(VarlenNGramHashMapping, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(4, 10, 1, 4),
       .inputs = PORTS({ "input_ids", "M", 0 }, { "multipliers", "M", 0 }, { "vocab_sizes", "M", 0 },
                       { "cumulative_sequence_length", "S", 0 }, { "past_ids", "M", OPT },
                       { "head_offsets", "M", OPT }, { "eos_token_id", "M", OPT },
                       { "segment_ids", "tensor(int32)", OPT }, { "past_segment_ids", "S", OPT },
                       { "capture_count", "S", OPT }),
       .outputs = PORTS({ "hash_ids", "M", 0 }, { "present_ids", "M", OPT }, { "present_segment_ids", "S", OPT },
                        { "state_update", "M", OPT }),
       .attrs = ATTRS({ "max_ngram_size", INT, REQUIRED }, { "n_head_per_ngram", INT, REQUIRED },
                      { "pad_id", INT, REQUIRED }, { "reset_on_eos", INT, DEFAULT("0") },
                      { "state_update_capacity", INT, DEFAULT("0") }),
       .types = TYPES({ "M", T(INDEX) }, { "S", T_INT32 }))

MS_ROW(Mamba2Verify, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(10, 10, 3, 5),
       .inputs = PORTS({ "projection", "T", 0 }, { "conv_state", "T", 0 }, { "ssm_state", "F", 0 },
                       { "conv_weight", "T", 0 }, { "conv_bias", "T", 0 }, { "dt_bias", "F", 0 },
                       { "A_negative", "F", 0 }, { "D", "F", 0 }, { "norm_weight", "F", 0 }, { "state_row", "I", 0 }),
       .outputs = PORTS({ "Y", "T", 0 }, { "conv_snapshots", "T", 0 }, { "ssm_snapshots", "F", 0 },
                        { "xbc", "T", OPT }, { "readout", "F", OPT }),
       .attrs = ATTRS({ "d_state", INT, DEFAULT("128") }, { "epsilon", FLOAT, DEFAULT("1e-05") },
                      { "head_dim", INT, DEFAULT("64") }, { "heads", INT, REQUIRED }, { "n_groups", INT, REQUIRED },
                      { "time_step_min", FLOAT, DEFAULT("0.001") }),
       .types = TYPES({ "T", T(BIT(BFLOAT16)) }, { "F", T_FLOAT }, { "I", T_INT32 }))

MS_ROW(SpeculativePrefixCommit, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(7, 7, 3, 3),
       .inputs = PORTS({ "next_tokens", "I64", 0 }, { "input_ids", "I64", 0 }, { "status", "I32", 0 },
                       { "ctl", "I64", 0 }, { "ctx_commit", "I64", 0 }, { "prefixes", "I64", 0 },
                       { "ptrs", "I64", 0 }),
       .outputs = PORTS({ "head_c", "I32", 0 }, { "updated_ctl", "I64", 0 }, { "updated_ctx_commit", "I64", 0 }),
       .attrs = ATTRS({ "head_rows", INT, DEFAULT("8") }),
       .types = TYPES({ "I64", T_INT64 }, { "I32", T_INT32 }))

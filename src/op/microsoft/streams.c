/* streams.c - rows of com.microsoft: activations, normalizations and mixes of several streams, and states of
 * packed sequences. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

MS_ROW(ScaledSiLU, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(1, 2, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "scale", "M", OPT }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T(SCALES_19) }))

MS_ROW(SwiGLU, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(1, 2, 1, 1),
       .inputs = PORTS({ "gate", "T", 0 }, { "up", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "activation_alpha", FLOAT, DEFAULT("1") }, { "activation_beta", FLOAT, DEFAULT("0") },
                      { "limit", FLOAT, DEFAULT("0") }, { "round_activation", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }))

MS_ROW(RouterGateUpProj, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 2, 2, 2),
       .inputs = PORTS({ "X", "T", 0 }, { "W", "T", 0 }),
       .outputs = PORTS({ "router", "T", 0 }, { "activated", "T", 0 }),
       .attrs = ATTRS({ "activation", STRING, TEXT("swiglu") }, { "activation_alpha", FLOAT, DEFAULT("1") },
                      { "activation_beta", FLOAT, DEFAULT("0") }, { "limit", FLOAT, DEFAULT("0") },
                      { "router_size", INT, REQUIRED }),
       .types = TYPES({ "T", T_HALVES }))

MS_ROW(BranchwiseRMSNorm, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(1, 2, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "scale", "M", OPT }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }, { "num_branches", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T(SCALES_19) }))

MS_ROW(HyperConnectionPreMix, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "streams", "T", 0 }, { "pre_mix", "M", 0 }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "num_branches", INT, DEFAULT("0") }, { "reduction_scale", FLOAT, DEFAULT("1") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T(SCALES_19) }))

MS_ROW(HyperConnectionPostMix, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(3, 4, 1, 1),
       .inputs = PORTS({ "streams", "T", 0 }, { "block_output", "T", 0 }, { "post_mix", "M", 0 },
                       { "stream_mix", "M", OPT }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "num_branches", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "M", T(SCALES_19) }))

MS_ROW(HyperConnectionLowRankMix, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(5, 7, 2, 3),
       .inputs = PORTS({ "streams", "T", 0 }, { "norm_scale", "T", 0 }, { "down_weight", "T", 0 },
                       { "up_weight", "T", 0 }, { "inject_weight", "T", 0 }, { "prev_block_output", "T", OPT },
                       { "prev_post_gate", "T", OPT }),
       .outputs = PORTS({ "pre_output", "T", 0 }, { "post_gate", "T", 0 }, { "streams_out", "T", OPT }),
       .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }, { "gate_div", FLOAT, DEFAULT("1") },
                      { "gate_mul", FLOAT, DEFAULT("1") }, { "num_branches", INT, REQUIRED },
                      { "reduction_scale", FLOAT, DEFAULT("1") }, { "silu_alpha", FLOAT, DEFAULT("1") }),
       .types = TYPES({ "T", T(SCALES_19) }))

MS_ROW(RMSNormRotary, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(5, 6, 1, 2),
       .inputs = PORTS({ "X", "T", 0 }, { "scale", "F", 0 }, { "position_ids", "I", 0 }, { "cosine", "TCos", 0 },
                       { "sine", "TCos", 0 }, { "prefill_numerics", "TI", OPT }),
       .outputs = PORTS({ "Y", "TOut", 0 }, { "normalized_fp32", "F", OPT }),
       .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-06") }, { "flatten_batch", INT, DEFAULT("0") },
                      { "input_start", INT, DEFAULT("0") }, { "input_width", INT, DEFAULT("0") },
                      { "output_fp16", INT, DEFAULT("0") }, { "rotary_embedding_dim", INT, REQUIRED },
                      { "use_fp32_arithmetic", INT, DEFAULT("1") }),
       .types = TYPES({ "T", T_HALVES }, { "TCos", T(BIT(BFLOAT16) | BIT(FLOAT)) }, { "TOut", T_HALVES },
                      { "F", T_FLOAT }, { "I", T_INT64 }, { "TI", T_INT32 }))

MS_ROW(MoEGroupRouter, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 3, 0, 3),
       .inputs = PORTS({ "logits", "T", 0 }, { "expert_bias", "TF", 0 }, { "projection_weight", "T", OPT }),
       .outputs = PORTS({ "router_probs", "T", OPT }, { "selection_scores", "TF", OPT },
                        { "router_weights", "TF", OPT }),
       .attrs = ATTRS({ "group_topk", INT, DEFAULT("2") }, { "n_group", INT, DEFAULT("1") },
                      { "router_sentinel", FLOAT, DEFAULT("-10000") }, { "top_k", INT, REQUIRED },
                      { "topk_group", INT, DEFAULT("1") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "TF", T_FLOAT }))

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

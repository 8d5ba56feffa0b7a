/* products.c - rows of com.microsoft: products with packed weights that do more than one step, and their kinds
 * with weights of 4 and 8 bits. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

MS_ROW(FusedMatMulActivation, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "A", "T", 0 }, { "B", "T", 0 }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "activation", STRING, REQUIRED }, { "activation_alpha", FLOAT, OPTIONAL },
                      { "activation_axis", INT, OPTIONAL }, { "activation_beta", FLOAT, OPTIONAL },
                      { "activation_gamma", FLOAT, OPTIONAL }, { "alpha", FLOAT, DEFAULT("1") },
                      { "transA", INT, DEFAULT("0") }, { "transB", INT, DEFAULT("0") },
                      { "transBatchA", INT, DEFAULT("0") }, { "transBatchB", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(FLOATING_13) }))

MS_ROW(GemmFloat8, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 6, 1, 1),
       .inputs = PORTS({ "A", "TA", 0 }, { "B", "TB", 0 }, { "C", "TC", OPT }, { "scaleA", "TS", OPT },
                       { "scaleB", "TS", OPT }, { "scaleY", "TS", OPT }),
       .outputs = PORTS({ "Y", "TR", 0 }),
       .attrs = ATTRS({ "activation", STRING, OPTIONAL }, { "alpha", FLOAT, DEFAULT("1") },
                      { "beta", FLOAT, DEFAULT("0") }, { "dtype", INT, DEFAULT("1") },
                      { "transA", INT, DEFAULT("0") }, { "transB", INT, DEFAULT("0") }),
       .types = TYPES({ "TA", T(SCALES_19 | BIT(FLOAT8E4M3FN) | BIT(FLOAT8E5M2)) },
                      { "TB", T(SCALES_19 | BIT(FLOAT8E4M3FN) | BIT(FLOAT8E5M2)) }, { "TC", T(SCALES_19) },
                      { "TR", T(SCALES_19 | BIT(FLOAT8E4M3FN) | BIT(FLOAT8E5M2)) }, { "TS", T_FLOAT }))

MS_ROW(MatMulBlockQuantizedFp4Weight, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(4, 6, 1, 1),
       .inputs = PORTS({ "A", "T", 0 }, { "B", "T1", 0 }, { "weight_scale", "T2", 0 }, { "weight_scale_2", "T3", 0 },
                       { "input_scale", "T3", OPT }, { "bias", "T", OPT }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "block_size", INT, DEFAULT("16") }),
       .types = TYPES({ "T", T_HALVES }, { "T1", T(BIT(UINT8)) }, { "T2", T(BIT(UINT8)) }, { "T3", T_FLOAT }))

MS_ROW(MatMulBlockQuantizedFp8Weight, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(3, 5, 1, 1),
       .inputs = PORTS({ "A", "T", 0 }, { "B", "T1", 0 }, { "b_scale", "T2", 0 }, { "a_scale", "T2", OPT },
                       { "bias", "T", OPT }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "block_size", INT, DEFAULT("128") }),
       .types = TYPES({ "T", T_HALVES }, { "T1", T(BIT(FLOAT8E4M3FN)) }, { "T2", T_FLOAT }))

MS_ROW(MatMulNBitsMlp, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(8, 9, 1, 2),
       .inputs = PORTS({ "A", "T1", 0 }, { "skip", "T1", OPT }, { "norm_scale", "T1", OPT }, { "gate_B", "T2", 0 },
                       { "gate_scales", "T1", 0 }, { "gate_bias", "T1", OPT }, { "up_B", "T2", 0 },
                       { "up_scales", "T1", 0 }, { "up_bias", "T1", OPT }),
       .outputs = PORTS({ "Y", "T1", 0 }, { "input_skip_bias_sum", "T1", OPT }),
       .attrs = ATTRS({ "K", INT, REQUIRED }, { "N", INT, REQUIRED }, { "accuracy_level", INT, DEFAULT("0") },
                      { "activation", STRING, REQUIRED }, { "bits", INT, DEFAULT("4") },
                      { "block_size", INT, REQUIRED }, { "epsilon", FLOAT, DEFAULT("1e-05") }),
       .types = TYPES({ "T1", T(SCALES_19) }, { "T2", T(BIT(UINT8)) }))

MS_ROW(MatMulNBitsQkv, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(11, 12, 3, 4),
       .inputs = PORTS({ "A", "T1", 0 }, { "skip", "T1", OPT }, { "norm_scale", "T1", 0 }, { "q_B", "T2", 0 },
                       { "q_scales", "T1", 0 }, { "q_bias", "T1", OPT }, { "k_B", "T2", 0 }, { "k_scales", "T1", 0 },
                       { "k_bias", "T1", OPT }, { "v_B", "T2", 0 }, { "v_scales", "T1", 0 }, { "v_bias", "T1", OPT }),
       .outputs = PORTS({ "Q", "T1", 0 }, { "K", "T1", 0 }, { "V", "T1", 0 }, { "input_skip_bias_sum", "T1", OPT }),
       .attrs = ATTRS({ "K", INT, REQUIRED }, { "Nkv", INT, REQUIRED }, { "Nq", INT, REQUIRED },
                      { "accuracy_level", INT, DEFAULT("0") }, { "bits", INT, DEFAULT("4") },
                      { "block_size", INT, REQUIRED }, { "epsilon", FLOAT, DEFAULT("1e-06") }),
       .types = TYPES({ "T1", T(SCALES_19) }, { "T2", T(BIT(UINT8)) }))

MS_ROW(MatMulNBitsQLoRA, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(7, 7, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "W", "TQ", 0 }, { "scales", "T", 0 }, { "lora_A", "TQ", 0 },
                       { "lora_A_scales", "T", 0 }, { "lora_B", "TQ", 0 }, { "lora_B_scales", "T", 0 }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "K", INT, REQUIRED }, { "N", INT, REQUIRED }, { "accuracy_level", INT, DEFAULT("0") },
                      { "bits", INT, DEFAULT("4") }, { "block_size", INT, DEFAULT("32") },
                      { "lora_bits", INT, DEFAULT("8") }, { "lora_block_size", INT, DEFAULT("32") }),
       .types = TYPES({ "T", T_FLOAT16 }, { "TQ", T(BIT(UINT8)) }))

MS_ROW(MatMulPacked, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 3, 1, 1),
       .inputs = PORTS({ "A", "T1", 0 }, { "B", "T2", 0 }, { "global_scale", "Tscale", OPT }),
       .outputs = PORTS({ "Y", "T1", 0 }),
       .attrs = ATTRS({ "K", INT, REQUIRED }, { "N", INT, REQUIRED }, { "activation_type", STRING, TEXT("none") },
                      { "packed_type", INT, REQUIRED }),
       .types = TYPES({ "T1", T_HALVES }, { "T2", T(BIT(UINT8)) }, { "Tscale", T_FLOAT }))

MS_ROW(MoEPacked, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(5, 6, 1, 1),
       .inputs = PORTS({ "input", "T", 0 }, { "router_probs", "TR", 0 }, { "gate_experts_weights", "T2", 0 },
                       { "up_experts_weights", "T2", OPT }, { "down_experts_weights", "T2", 0 },
                       { "router_weights", "TR", OPT }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "activation_type", STRING, TEXT("swiglu") }, { "down_type", INT, REQUIRED },
                      { "gate_type", INT, REQUIRED }, { "k", INT, DEFAULT("1") },
                      { "normalize_routing_weights", INT, DEFAULT("1") },
                      { "routed_scaling_factor", FLOAT, DEFAULT("1") }, { "routing_epsilon", FLOAT, DEFAULT("0") },
                      { "up_type", INT, DEFAULT("-1") }),
       .types = TYPES({ "T", T_HALVES }, { "T2", T(BIT(UINT8)) }, { "TR", T(SCALES_19) }))

MS_ROW(GatherPacked, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "data", "T1", 0 }, { "indices", "Tind", 0 }),
       .outputs = PORTS({ "output", "T2", 0 }),
       .attrs = ATTRS({ "K", INT, REQUIRED }, { "output_dtype", INT, DEFAULT("16") },
                      { "packed_type", INT, REQUIRED }),
       .types = TYPES({ "T1", T(BIT(UINT8)) }, { "T2", T(SCALES_19) }, { "Tind", T(INDEX) }))

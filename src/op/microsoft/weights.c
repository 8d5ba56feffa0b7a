/* weights.c - rows of com.microsoft: matrix products with low-bit weights, with one scale per block, and mixture of
 * experts. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

/* 16-bit scales are converted to float once, and the product is computed in float. */
WHEN(halves, onxi_call_dtype(call, 2) == ONX_FLOAT16 || onxi_call_dtype(call, 2) == ONX_BFLOAT16)
WHEN(real_zeros, halves(call) && MS_HAS(3) && onxi_call_dtype(call, 3) == onxi_call_dtype(call, 2))
WHEN(halves_bias, halves(call) && MS_HAS(5))
WHEN(real_with_bias, real_zeros(call) && MS_HAS(5))
WHEN(real_without_bias, real_zeros(call) && !MS_HAS(5))
WHEN(with_bias, halves_bias(call) && !real_zeros(call))
WHEN(without_bias, halves(call) && !MS_HAS(5) && !real_zeros(call))
#define IN_FLOATS(zeros, added)                                                                                        \
    "wide_y = com.microsoft.MatMulNBits <K: int = @K, N: int = @N, accuracy_level: int = @accuracy_level,"             \
    " bits: int = @bits, block_size: int = @block_size, weight_prepacked: int = @weight_prepacked>"                    \
    " (wide_a, B, wide_scales, " zeros ", g_idx" added ")"

MS_ROW(MatMulNBits, .infer = onxi_rule_microsoft_matmul_nbits, .flags = INFERS, ARITY(3, 6, 1, 1),
       .inputs = PORTS({ "A", "T1", 0 }, { "B", "T2", 0 }, { "scales", "T1", 0 }, { "zero_points", "T3", OPT },
                       { "g_idx", "T4", OPT }, { "bias", "T1", OPT }),
       .outputs = PORTS({ "Y", "T1", 0 }),
       .attrs = ATTRS({ "K", INT, REQUIRED }, { "N", INT, REQUIRED }, { "accuracy_level", INT, DEFAULT("0") },
                      { "bits", INT, DEFAULT("4") }, { "block_size", INT, REQUIRED },
                      { "weight_prepacked", INT, DEFAULT("0") }),
       .types = TYPES({ "T1", T(SCALES_19) }, { "T2", T(BIT(UINT8)) }, { "T3", T(SCALES_19 | BIT(UINT8)) },
                      { "T4", T_INT32 }),
       BODY_FIRST(18, { halves, NODES(wide_a = Cast <to = 1> (A) wide_scales = Cast <to = 1> (scales)) },
                  { real_zeros, NODES(wide_zeros = Cast <to = 1> (zero_points)) },
                  { halves_bias, NODES(wide_bias = Cast <to = 1> (bias)) },
                  { real_with_bias, IN_FLOATS("wide_zeros", ", wide_bias") },
                  { real_without_bias, IN_FLOATS("wide_zeros", "") },
                  { with_bias, IN_FLOATS("zero_points", ", wide_bias") },
                  { without_bias, IN_FLOATS("zero_points", "") },
                  { halves, NODES(Y = CastLike (wide_y, A)) }))

MS_ROW(MatMulBnb4, .infer = onxi_rule_microsoft_matmul_nbits, .flags = INFERS, ARITY(3, 3, 1, 1),
       .inputs = PORTS({ "A", "T1", 0 }, { "B", "T2", 0 }, { "absmax", "T1", 0 }), .outputs = PORTS({ "Y", "T1", 0 }),
       .attrs = ATTRS({ "K", INT, REQUIRED }, { "N", INT, REQUIRED }, { "block_size", INT, REQUIRED },
                      { "quant_type", INT, REQUIRED }, { "training_mode", INT, DEFAULT("0") },
                      { "transB", INT, DEFAULT("1") }),
       .types = TYPES({ "T1", T(SCALES_19) }, { "T2", T(BIT(UINT8)) }))

MS_ROW(MatMulFpQ4, .infer = onxi_rule_microsoft_matmul_fpq4, .flags = INFERS, ARITY(3, 3, 1, 1),
       .inputs = PORTS({ "A", "T1", 0 }, { "B", "T2", 0 }, { "B_shape", "T3", 0 }), .outputs = PORTS({ "Y", "T1", 0 }),
       .attrs = ATTRS({ "blk_quant_type", INT, DEFAULT("1") }),
       .types = TYPES({ "T1", T_FLOAT }, { "T2", T(BIT(UINT8)) }, { "T3", T_INT64 }))

MS_ROW(GatherBlockQuantized, .infer = onxi_rule_microsoft_gather_block_quantized, .flags = INFERS, ARITY(3, 4, 1, 1),
       .inputs = PORTS({ "data", "T1", 0 }, { "indices", "Tind", 0 }, { "scales", "T2", 0 }, { "zero_points", "T1", OPT }),
       .outputs = PORTS({ "output", "T2", 0 }),
       .attrs = ATTRS({ "bits", INT, DEFAULT("4") }, { "block_size", INT, DEFAULT("128") },
                      { "gather_axis", INT, DEFAULT("0") }, { "quantize_axis", INT, DEFAULT("1") }),
       .types = TYPES({ "T1", T(INTS_4 | BIT(UINT8) | FLOATS_8 | BIT(FLOAT4E2M1)) }, { "T2", T(SCALES_19) },
                      { "Tind", T(INDEX) }))

#define EXPERTS                                                                                                        \
    { "activation_alpha", FLOAT, DEFAULT("1") }, { "activation_beta", FLOAT, DEFAULT("0") },                           \
    { "activation_type", STRING, TEXT("relu") }
#define ROUTING                                                                                                        \
    { "k", INT, DEFAULT("1") }, { "normalize_routing_weights", INT, DEFAULT("0") }

#define SWIGLU                                                                                                         \
    { "swiglu_fusion", INT, DEFAULT("0") }, { "swiglu_limit", FLOAT, OPTIONAL },                                       \
    { "swiglu_limit_after_activation", INT, DEFAULT("0") }

MS_ROW(MoE, .infer = onxi_rule_unary, .flags = INFERS, ARITY(5, 8, 1, 1),
       .inputs = PORTS({ "input", "T", 0 }, { "router_probs", "T", 0 }, { "fc1_experts_weights", "T", 0 },
                       { "fc1_experts_bias", "T", OPT }, { "fc2_experts_weights", "T", 0 },
                       { "fc2_experts_bias", "T", OPT }, { "fc3_experts_weights", "T", OPT },
                       { "fc3_experts_bias", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS(EXPERTS, ROUTING, SWIGLU, { "use_sparse_mixer", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(SCALES_19) }))

MS_ROW(QMoE, .infer = onxi_rule_unary, .flags = INFERS, ARITY(6, 21, 1, 1),
       .inputs = PORTS({ "input", "T", 0 }, { "router_probs", "T", 0 }, { "fc1_experts_weights", "T1", 0 },
                       { "fc1_scales", "T2", OPT }, { "fc1_experts_bias", "T", OPT }, { "fc2_experts_weights", "T1", 0 },
                       { "fc2_scales", "T2", OPT }, { "fc2_experts_bias", "T", OPT }, { "fc3_experts_weights", "T1", OPT },
                       { "fc3_scales", "T2", OPT }, { "fc3_experts_bias", "T", OPT }, { "fc1_zero_points", "T1", OPT },
                       { "fc2_zero_points", "T1", OPT }, { "fc3_zero_points", "T1", OPT }, { "router_weights", "T", OPT },
                       { "fc1_global_scale", "T4", OPT }, { "fc2_global_scale", "T4", OPT }, { "fc1_act_scale", "T4", OPT },
                       { "fc2_act_scale", "T4", OPT }, { "fc1_act_block_scale", "T2", OPT },
                       { "fc2_act_block_scale", "T2", OPT }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "accuracy_level", INT, DEFAULT("0") }, EXPERTS, { "block_size", INT, DEFAULT("0") },
                      { "expert_weight_bits", INT, DEFAULT("4") }, { "fc1_expert_weight_bits", INT, OPTIONAL },
                      { "fc2_expert_weight_bits", INT, OPTIONAL }, { "fc3_expert_weight_bits", INT, OPTIONAL }, ROUTING, { "quant_type", STRING, TEXT("int") },
                      SWIGLU, { "use_sparse_mixer", INT, DEFAULT("0") }, { "weights_prepacked", INT, DEFAULT("-1") }),
       .types = TYPES({ "T", T(SCALES_19) }, { "T1", T(BIT(UINT8) | BIT(FLOAT8E4M3FN)) },
                      { "T2", T(SCALES_24 | BIT(FLOAT8E4M3FN)) }, { "T4", T_FLOAT }))

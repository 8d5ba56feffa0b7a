/* ordered.c - rows of com.microsoft: 8-bit matrices in the orders of a library for graphics processors, and
 * block floating point. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

MS_ROW(QuantizeWithOrder, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "input", "F", 0 }, { "scale_input", "S", 0 }),
       .outputs = PORTS({ "output", "Q", 0 }),
       .attrs = ATTRS({ "order_input", INT, REQUIRED }, { "order_output", INT, REQUIRED }),
       .types = TYPES({ "Q", T(BIT(INT8)) }, { "F", T_FLOAT16 }, { "S", T_FLOAT }))

MS_ROW(DequantizeWithOrder, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "input", "Q", 0 }, { "scale_input", "S", 0 }),
       .outputs = PORTS({ "output", "F", 0 }),
       .attrs = ATTRS({ "order_input", INT, REQUIRED }, { "order_output", INT, REQUIRED }, { "to", INT, REQUIRED }),
       .types = TYPES({ "Q", T(BIT(INT8)) }, { "F", T_FLOAT16 }, { "S", T_FLOAT }))

MS_ROW(QOrderedMatMul, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(5, 8, 1, 1),
       .inputs = PORTS({ "A", "Q", 0 }, { "scale_A", "S", 0 }, { "B", "Q", 0 }, { "scale_B", "S", 0 },
                       { "scale_Y", "S", 0 }, { "bias", "S", OPT }, { "C", "Q", OPT }, { "scale_C", "S", OPT }),
       .outputs = PORTS({ "Y", "Q", 0 }),
       .attrs = ATTRS({ "order_A", INT, REQUIRED }, { "order_B", INT, REQUIRED }, { "order_Y", INT, REQUIRED }),
       .types = TYPES({ "Q", T(BIT(INT8)) }, { "S", T_FLOAT }))

MS_ROW(QOrderedGelu, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(3, 3, 1, 1),
       .inputs = PORTS({ "X", "Q", 0 }, { "scale_X", "S", 0 }, { "scale_Y", "S", 0 }),
       .outputs = PORTS({ "Y", "Q", 0 }),
       .attrs = ATTRS({ "order_X", INT, OPTIONAL }, { "order_Y", INT, OPTIONAL }),
       .types = TYPES({ "Q", T(BIT(INT8)) }, { "S", T_FLOAT }))

MS_ROW(QOrderedLayerNormalization, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(5, 5, 1, 1),
       .inputs = PORTS({ "X", "Q", 0 }, { "scale_X", "S", 0 }, { "scale", "F", 0 }, { "B", "F", OPT },
                       { "scale_Y", "S", 0 }),
       .outputs = PORTS({ "Y", "Q", 0 }),
       .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }, { "epsilon", FLOAT, DEFAULT("1e-05") },
                      { "order_X", INT, DEFAULT("1") }, { "order_Y", INT, DEFAULT("1") }),
       .types = TYPES({ "F", T_FLOAT16 }, { "S", T_FLOAT }, { "Q", T(BIT(INT8)) }))

MS_ROW(QOrderedAttention, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(17, 20, 1, 1),
       .inputs = PORTS({ "input", "Q", 0 }, { "scale_input", "S", 0 }, { "scale_Q_gemm", "S", 0 },
                       { "scale_K_gemm", "S", 0 }, { "scale_V_gemm", "S", 0 }, { "Q_weight", "Q", 0 },
                       { "K_weight", "Q", 0 }, { "V_weight", "Q", 0 }, { "scale_Q_weight", "S", 0 },
                       { "scale_K_weight", "S", 0 }, { "scale_V_weight", "S", 0 }, { "Q_bias", "S", 0 },
                       { "K_bias", "S", 0 }, { "V_bias", "S", 0 }, { "scale_QKT_gemm", "S", OPT },
                       { "scale_QKT_softmax", "S", OPT }, { "scale_values_gemm", "S", 0 }, { "mask_index", "G", OPT },
                       { "past", "Q", OPT }, { "attention_bias", "S", OPT }),
       .outputs = PORTS({ "output", "Q", 0 }),
       .attrs = ATTRS({ "num_heads", INT, REQUIRED }, { "order_input", INT, REQUIRED },
                      { "order_output", INT, REQUIRED }, { "order_weight", INT, REQUIRED },
                      { "qkv_hidden_sizes", INTS, OPTIONAL }, { "unidirectional", INT, DEFAULT("0") }),
       .types = TYPES({ "Q", T(BIT(INT8)) }, { "S", T_FLOAT }, { "G", T_INT32 }))

MS_ROW(QOrderedLongformerAttention, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(14, 14, 1, 1),
       .inputs = PORTS({ "input", "Q", 0 }, { "scale_input", "S", 0 }, { "weight", "Q", 0 },
                       { "scale_weight", "S", 0 }, { "bias", "S", 0 }, { "scale_bias", "S", 0 },
                       { "scale_qkv_gemm", "S", 0 }, { "mask", "F", 0 }, { "global_weight", "Q", 0 },
                       { "scale_global_weight", "S", 0 }, { "global_bias", "S", 0 }, { "scale_global_gemm", "S", 0 },
                       { "global", "G", 0 }, { "scale_output", "S", 0 }),
       .outputs = PORTS({ "output", "Q", 0 }),
       .attrs = ATTRS({ "num_heads", INT, REQUIRED }, { "order_global_weight", INT, REQUIRED },
                      { "order_input", INT, REQUIRED }, { "order_output", INT, REQUIRED },
                      { "order_weight", INT, REQUIRED }, { "window", INT, REQUIRED }),
       .types = TYPES({ "Q", T(BIT(INT8)) }, { "S", T_FLOAT }, { "G", T_INT32 }, { "F", T(BIT(FLOAT16)) }))

MS_ROW(QuantizeBFP, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(1, 1, 3, 3),
       .inputs = PORTS({ "x", "T1", 0 }),
       .outputs = PORTS({ "y", "T2", 0 }, { "shape", "T3", 0 }, { "strides", "T3", 0 }),
       .attrs = ATTRS({ "bfp_type", INT, REQUIRED }, { "block_dim", INT, DEFAULT("-1") }),
       .types = TYPES({ "T1", T(SCALES_19) }, { "T2", T(BIT(UINT8)) }, { "T3", T_INT64 }))

MS_ROW(DequantizeBFP, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(3, 3, 1, 1),
       .inputs = PORTS({ "x", "T1", 0 }, { "shape", "T2", 0 }, { "strides", "T2", 0 }),
       .outputs = PORTS({ "y", "T3", 0 }),
       .attrs = ATTRS({ "bfp_type", INT, REQUIRED }, { "block_dim", INT, DEFAULT("-1") },
                      { "dtype", INT, DEFAULT("1") }),
       .types = TYPES({ "T1", T(BIT(UINT8)) }, { "T2", T_INT64 }, { "T3", T(SCALES_19) }))

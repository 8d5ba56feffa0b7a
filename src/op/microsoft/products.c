/* products.c - rows of com.microsoft: products with packed weights that do more than one step, and their kinds
 * with weights of 4 and 8 bits. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

WHEN(has_scale_a, MS_HAS(3))
WHEN(has_no_scale_a, !MS_HAS(3))
WHEN(has_scale_b, MS_HAS(4))
WHEN(has_no_scale_b, !MS_HAS(4))
WHEN(has_scale_y, MS_HAS(5))
WHEN(has_no_scale_y, !MS_HAS(5))
WHEN(adds, MS_HAS(2))
WHEN(adds_nothing, !MS_HAS(2))
WHEN(rectifies, onxi_ms_text_is(call, "activation", "RELU"))
WHEN(gates, onxi_ms_text_is(call, "activation", "GELU"))
WHEN(is_linear, !rectifies(call) && !gates(call))
MS_ROW(GemmFloat8, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(2, 6, 1, 1),
       .inputs = PORTS({ "A", "TA", 0 }, { "B", "TB", 0 }, { "C", "TC", OPT }, { "scaleA", "TS", OPT },
                       { "scaleB", "TS", OPT }, { "scaleY", "TS", OPT }),
       .outputs = PORTS({ "Y", "TR", 0 }),
       .attrs = ATTRS({ "activation", STRING, OPTIONAL }, { "alpha", FLOAT, DEFAULT("1") },
                      { "beta", FLOAT, DEFAULT("0") }, { "dtype", INT, DEFAULT("1") },
                      { "transA", INT, DEFAULT("0") }, { "transB", INT, DEFAULT("0") }),
       .types = TYPES({ "TA", T(SCALES_19 | BIT(FLOAT8E4M3FN) | BIT(FLOAT8E5M2)) },
                      { "TB", T(SCALES_19 | BIT(FLOAT8E4M3FN) | BIT(FLOAT8E5M2)) }, { "TC", T(SCALES_19) },
                      { "TR", T(SCALES_19 | BIT(FLOAT8E4M3FN) | BIT(FLOAT8E5M2)) }, { "TS", T_FLOAT }),
       BODY(20, { NULL, NODES(wide_a = Cast <to = 1> (A) wide_b = Cast <to = 1> (B)) },
            { has_scale_a, NODES(one_a = Squeeze (scaleA) left = Mul (wide_a, one_a)) },
            { has_no_scale_a, NODES(left = Identity (wide_a)) },
            { has_scale_b, NODES(one_b = Squeeze (scaleB) right = Mul (wide_b, one_b)) },
            { has_no_scale_b, NODES(right = Identity (wide_b)) },
            { adds, NODES(wide_c = Cast <to = 1> (C)
                          sum = Gemm <alpha: float = @alpha, beta: float = @beta, transA: int = @transA, transB: int = @transB>
                              (left, right, wide_c)) },
            { adds_nothing, NODES(sum = Gemm <alpha: float = @alpha, transA: int = @transA, transB: int = @transB> (left, right)) },
            { rectifies, NODES(active = Relu (sum)) },
            { gates, NODES(active = Gelu <approximate = "tanh"> (sum)) },
            { is_linear, NODES(active = Identity (sum)) },
            { has_scale_y, NODES(one_y = Squeeze (scaleY) scaled = Mul (active, one_y)) },
            { has_no_scale_y, NODES(scaled = Identity (active)) },
            { NULL, NODES(Y = Cast <to: int = @dtype> (scaled)) }))

MS_ROW(MatMulBlockQuantizedFp4Weight, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(4, 6, 1, 1),
       .inputs = PORTS({ "A", "T", 0 }, { "B", "T1", 0 }, { "weight_scale", "T2", 0 }, { "weight_scale_2", "T3", 0 },
                       { "input_scale", "T3", OPT }, { "bias", "T", OPT }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "block_size", INT, DEFAULT("16") }),
       .types = TYPES({ "T", T_HALVES }, { "T1", T(BIT(UINT8)) }, { "T2", T(BIT(UINT8)) }, { "T3", T_FLOAT }))

WHEN(rounds_a, MS_HAS(3))
WHEN(keeps_a, !MS_HAS(3))
WHEN(has_bias, MS_HAS(4))
WHEN(has_no_bias, !MS_HAS(4))
MS_ROW(MatMulBlockQuantizedFp8Weight, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(3, 5, 1, 1),
       .inputs = PORTS({ "A", "T", 0 }, { "B", "T1", 0 }, { "b_scale", "T2", 0 }, { "a_scale", "T2", OPT },
                       { "bias", "T", OPT }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "block_size", INT, DEFAULT("128") }),
       .types = TYPES({ "T", T_HALVES }, { "T1", T(BIT(FLOAT8E4M3FN)) }, { "T2", T_FLOAT }),
       BODY(21, { NULL, NODES(weights = DequantizeLinear <axis = 1, block_size: int = @block_size> (B, b_scale)
                          turned = Transpose <perm = [1, 0]> (weights)
                          wide = Cast <to = 1> (A)) },
            { rounds_a, NODES(unit = Squeeze (a_scale)
                              raised = Div (wide, unit)
                              codes = Cast <to = 17> (raised)
                              numbers = Cast <to = 1> (codes)
                              a = Mul (numbers, unit)) },
            { keeps_a, NODES(a = Identity (wide)) },
            { NULL, NODES(product = MatMul (a, turned)) },
            { has_bias, NODES(wide_bias = Cast <to = 1> (bias) sum = Add (product, wide_bias) Y = CastLike (sum, A)) },
            { has_no_bias, NODES(Y = CastLike (product, A)) }))

WHEN(is_relu, onxi_ms_text_is(call, "activation", "relu"))
WHEN(is_gelu, onxi_ms_text_is(call, "activation", "gelu"))
WHEN(is_silu, !is_relu(call) && !is_gelu(call)) /* dims.def lists the words */
WHEN(has_skip, MS_HAS(1))
WHEN(has_norm, !MS_HAS(1) && MS_HAS(2))
WHEN(has_no_norm, !MS_HAS(1) && !MS_HAS(2))
#define PRODUCT(y, weights, columns)                                                                                   \
    y " = com.microsoft.MatMulNBits <K: int = @K, N: int = @" columns ", accuracy_level: int = @accuracy_level,"       \
      " bits: int = @bits, block_size: int = @block_size> (x, " weights "_B, " weights "_scales, , , " weights "_bias) "

MS_ROW(MatMulNBitsMlp, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(8, 9, 1, 2),
       .inputs = PORTS({ "A", "T1", 0 }, { "skip", "T1", OPT }, { "norm_scale", "T1", OPT }, { "gate_B", "T2", 0 },
                       { "gate_scales", "T1", 0 }, { "gate_bias", "T1", OPT }, { "up_B", "T2", 0 },
                       { "up_scales", "T1", 0 }, { "up_bias", "T1", OPT }),
       .outputs = PORTS({ "Y", "T1", 0 }, { "input_skip_bias_sum", "T1", OPT }),
       .attrs = ATTRS({ "K", INT, REQUIRED }, { "N", INT, REQUIRED }, { "accuracy_level", INT, DEFAULT("0") },
                      { "activation", STRING, REQUIRED }, { "bits", INT, DEFAULT("4") },
                      { "block_size", INT, REQUIRED }, { "epsilon", FLOAT, DEFAULT("1e-05") }),
       .types = TYPES({ "T1", T(SCALES_19) }, { "T2", T(BIT(UINT8)) }),
       BODY(20, { has_no_norm, NODES(x = Identity (A) input_skip_bias_sum = Identity (A)) },
            { has_norm, NODES(input_skip_bias_sum = Identity (A)
                              x = SimplifiedLayerNormalization <axis = -1, epsilon: float = @epsilon> (A, norm_scale)) },
            { has_skip, NODES(x, , , input_skip_bias_sum = com.microsoft.SkipSimplifiedLayerNormalization
                                  <epsilon: float = @epsilon> (A, skip, norm_scale)) },
            { NULL, PRODUCT("g", "gate", "N") PRODUCT("u", "up", "N") },
            { is_silu, NODES(share = Sigmoid (g) a = Mul (g, share)) },
            { is_relu, NODES(a = Relu (g)) }, { is_gelu, NODES(a = Gelu (g)) },
            { NULL, NODES(Y = Mul (a, u)) }))

WHEN(has_only_norm, !MS_HAS(1))
MS_ROW(MatMulNBitsQkv, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(11, 12, 3, 4),
       .inputs = PORTS({ "A", "T1", 0 }, { "skip", "T1", OPT }, { "norm_scale", "T1", 0 }, { "q_B", "T2", 0 },
                       { "q_scales", "T1", 0 }, { "q_bias", "T1", OPT }, { "k_B", "T2", 0 }, { "k_scales", "T1", 0 },
                       { "k_bias", "T1", OPT }, { "v_B", "T2", 0 }, { "v_scales", "T1", 0 }, { "v_bias", "T1", OPT }),
       .outputs = PORTS({ "Q", "T1", 0 }, { "K", "T1", 0 }, { "V", "T1", 0 }, { "input_skip_bias_sum", "T1", OPT }),
       .attrs = ATTRS({ "K", INT, REQUIRED }, { "Nkv", INT, REQUIRED }, { "Nq", INT, REQUIRED },
                      { "accuracy_level", INT, DEFAULT("0") }, { "bits", INT, DEFAULT("4") },
                      { "block_size", INT, REQUIRED }, { "epsilon", FLOAT, DEFAULT("1e-06") }),
       .types = TYPES({ "T1", T(SCALES_19) }, { "T2", T(BIT(UINT8)) }),
       BODY(18, { has_only_norm, NODES(input_skip_bias_sum = Identity (A)
                              x = SimplifiedLayerNormalization <axis = -1, epsilon: float = @epsilon> (A, norm_scale)) },
            { has_skip, NODES(x, , , input_skip_bias_sum = com.microsoft.SkipSimplifiedLayerNormalization
                                  <epsilon: float = @epsilon> (A, skip, norm_scale)) },
            { NULL, PRODUCT("Q", "q", "Nq") PRODUCT("K", "k", "Nkv") PRODUCT("V", "v", "Nkv") }))

/* The adapters are made real first; both are narrow. Without lora_A there are zeros between, as many as it has scales;
 * without lora_B nothing is added. */
MS_ROW(MatMulNBitsQLoRA, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(7, 7, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "W", "TQ", 0 }, { "scales", "T", 0 }, { "lora_A", "TQ", 0 },
                       { "lora_A_scales", "T", 0 }, { "lora_B", "TQ", 0 }, { "lora_B_scales", "T", 0 }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "K", INT, REQUIRED }, { "N", INT, REQUIRED }, { "accuracy_level", INT, DEFAULT("0") },
                      { "bits", INT, DEFAULT("4") }, { "block_size", INT, DEFAULT("32") },
                      { "lora_bits", INT, DEFAULT("8") }, { "lora_block_size", INT, DEFAULT("32") }),
       .types = TYPES({ "T", T_FLOAT16 }, { "TQ", T(BIT(UINT8)) }),
       BODY(18, { NULL, NODES(base = com.microsoft.MatMulNBits <K: int = @K, N: int = @N, accuracy_level: int = @accuracy_level, bits: int = @bits,
                              block_size: int = @block_size> (X, W, scales)
                          nothing = Constant <value_int = 0> ()
                          step = Constant <value_int = 1> ()
                          front = Constant <value_ints = [0]> ()
                          second = Constant <value_ints = [1]> ()
                          any = Constant <value_ints = [-1]> ()
                          depth = Shape <start = -1> (X)
                          last = Constant <value_ints = [-1]> ()
                          down_rows = Shape <end = 1> (lora_A)
                          down_blocks = Shape <start = 1, end = 2> (lora_A)
                          down_block = Shape <start = 2> (lora_A)
                          down_size = Mul (down_blocks, down_block)
                          down_flat_shape = Concat <axis = 0> (down_rows, down_size)
                          down_bytes = Reshape <allowzero = 1> (lora_A, down_flat_shape)
                          down_scale_shape = Concat <axis = 0> (any, down_blocks)
                          down_every_scale = Reshape (lora_A_scales, down_scale_shape)
                          rank = Shape <end = 1> (down_every_scale)
                          down_scales = Slice (down_every_scale, front, down_rows, front)
                          down_number = Squeeze (down_rows)
                          down_all = Range (nothing, down_number, step)
                          down_wide = com.microsoft.GatherBlockQuantized <bits: int = @lora_bits, block_size: int = @lora_block_size>
                              (down_bytes, down_all, down_scales)
                          down_used = Slice (down_wide, front, depth, second)
                          missing = Sub (rank, down_rows)
                          zeros_shape = Concat <axis = 0> (missing, depth)
                          zeros = ConstantOfShape (zeros_shape)
                          no_rows = CastLike (zeros, down_used)
                          down_filled = Concat <axis = 0> (down_used, no_rows)
                          down = Transpose <perm = [1, 0]> (down_filled)
                          between = MatMul (X, down)
                          up_rows = Shape <end = 1> (lora_B)
                          up_blocks = Shape <start = 1, end = 2> (lora_B)
                          up_block = Shape <start = 2> (lora_B)
                          up_size = Mul (up_blocks, up_block)
                          up_flat_shape = Concat <axis = 0> (up_rows, up_size)
                          up_bytes = Reshape <allowzero = 1> (lora_B, up_flat_shape)
                          up_scale_shape = Concat <axis = 0> (up_rows, any)
                          up_every_scale = Reshape (lora_B_scales, up_scale_shape)
                          up_scales = Slice (up_every_scale, front, up_blocks, second)
                          up_number = Squeeze (up_rows)
                          up_all = Range (nothing, up_number, step)
                          up_wide = com.microsoft.GatherBlockQuantized <bits: int = @lora_bits, block_size: int = @lora_block_size>
                              (up_bytes, up_all, up_scales)
                          up_used = Slice (up_wide, front, rank, second)
                          up = Transpose <perm = [1, 0]> (up_used)
                          width = Shape <end = 1> (up)
                          between_used = Slice (between, front, width, last)
                          added = MatMul (between_used, up)
                          Y = Add (base, added)) }))

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

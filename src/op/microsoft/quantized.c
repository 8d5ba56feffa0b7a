/* quantized.c - rows of com.microsoft for quantized values. Their bodies dequantize to float, and matrix products
 * accumulate in int32. Scales and zero points are scalars or vectors of one element, which Squeeze makes equal. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

#define SCALE "tensor(float)"
static const onxi_type_constraint byte_types[] = { { "T", T_BYTES }, { 0 } };

WHEN(has_2, MS_HAS(2))
WHEN(has_no_2, !MS_HAS(2))
WHEN(has_4, MS_HAS(4))
WHEN(has_no_4, !MS_HAS(4))
WHEN(has_5, MS_HAS(5))
WHEN(has_no_5, !MS_HAS(5))
WHEN(has_1, MS_HAS(1))
WHEN(has_no_1, !MS_HAS(1))
WHEN(has_3, MS_HAS(3))
WHEN(has_no_3, !MS_HAS(3))
WHEN(has_6, MS_HAS(6))
WHEN(has_no_6, !MS_HAS(6))
WHEN(has_7, MS_HAS(7))
WHEN(has_no_7, !MS_HAS(7))

/* Dequantizes an operand, with or without a zero point. */
#define REAL(to, x, scale, zero)                                                                                       \
    NODES(to##_scale_ = Squeeze (scale) to##_zero_ = Squeeze (zero) to = DequantizeLinear (x, to##_scale_, to##_zero_))
#define REAL_0(to, x, scale) NODES(to##_scale_ = Squeeze (scale) to = DequantizeLinear (x, to##_scale_))
/* Quantizes the result; without a zero point the type is that of `like`. */
#define QUANTIZED(to, x, scale, zero)                                                                                  \
    NODES(to##_scale_ = Squeeze (scale) to##_zero_ = Squeeze (zero) to = QuantizeLinear (x, to##_scale_, to##_zero_))
#define QUANTIZED_0(to, x, scale, like)                                                                                \
    NODES(to##_scale_ = Squeeze (scale) to##_nothing_ = Constant <value_int = 0> ()                                    \
          to##_zero_ = CastLike (to##_nothing_, like) to = QuantizeLinear (x, to##_scale_, to##_zero_))

/* ---- element by element ---- */

static const onxi_port pair_inputs[] = {
    { "A", "T", 0 },
    { "A_scale", SCALE, 0 },
    { "A_zero_point", "T", OPT },
    { "B", "T", 0 },
    { "B_scale", SCALE, 0 },
    { "B_zero_point", "T", OPT },
    { "C_scale", SCALE, 0 },
    { "C_zero_point", "T", OPT },
    { 0 },
};

#define PAIR(nodes)                                                                                                    \
    BODY(18, { has_2, REAL(a, A, A_scale, A_zero_point) }, { has_no_2, REAL_0(a, A, A_scale) },                        \
         { has_5, REAL(b, B, B_scale, B_zero_point) }, { has_no_5, REAL_0(b, B, B_scale) }, { NULL, nodes },           \
         { has_7, QUANTIZED(C, c, C_scale, C_zero_point) }, { has_no_7, QUANTIZED_0(C, c, C_scale, A) })

MS_ROW(QLinearAdd, ARITY(7, 8, 1, 1), .inputs = pair_inputs, .outputs = PORTS({ "C", "T", 0 }), .types = byte_types,
       PAIR(NODES(c = Add (a, b))))
MS_ROW(QLinearMul, ARITY(7, 8, 1, 1), .inputs = pair_inputs, .outputs = PORTS({ "C", "T", 0 }), .types = byte_types,
       PAIR(NODES(c = Mul (a, b))))

#define UNARY_PORTS(x, y)                                                                                              \
    PORTS({ #x, "T", 0 }, { #x "_scale", SCALE, 0 }, { #x "_zero_point", "T", OPT }, { #y "_scale", SCALE, 0 },        \
          { #y "_zero_point", "T", OPT })
/* From `x` to `y`, both floating point. */
#define UNARY(X, Y, ...)                                                                                               \
    BODY(18, { has_2, REAL(x, X, X##_scale, X##_zero_point) }, { has_no_2, REAL_0(x, X, X##_scale) }, __VA_ARGS__,     \
         { has_4, QUANTIZED(Y, y, Y##_scale, Y##_zero_point) }, { has_no_4, QUANTIZED_0(Y, y, Y##_scale, X) })

MS_ROW(QLinearSigmoid, ARITY(4, 5, 1, 1), .inputs = UNARY_PORTS(X, Y), .outputs = PORTS({ "Y", "T", 0 }),
       .types = byte_types, UNARY(X, Y, { NULL, NODES(y = Sigmoid (x)) }))
MS_ROW(QLinearLeakyRelu, ARITY(4, 5, 1, 1), .inputs = UNARY_PORTS(X, Y), .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("0.01") }), .types = byte_types,
       UNARY(X, Y, { NULL, NODES(y = LeakyRelu <alpha: float = @alpha> (x)) }))
MS_ROW(QLinearReduceMean, ARITY(4, 5, 1, 1), .inputs = UNARY_PORTS(data, reduced),
       .outputs = PORTS({ "reduced", "T", 0 }),
       .attrs = ATTRS({ "axes", INTS, REQUIRED }, { "keepdims", INT, REQUIRED }), .types = byte_types,
       UNARY(data, reduced, { NULL, NODES(axes = Constant <value_ints: ints = @axes> ()
                                          y = ReduceMean <keepdims: int = @keepdims> (x, axes)) }))

/* Before version 13, Softmax treats all axes from `axis` on as one. */
WHEN(is_one_axis, onxi_call_int(call, "opset") >= 13)
WHEN(is_many_axes, onxi_call_int(call, "opset") < 13)
MS_ROW(QLinearSoftmax, ARITY(5, 5, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "X_scale", SCALE, 0 }, { "x_zero_point", "T", OPT },
                       { "y_scale", SCALE, 0 }, { "y_zero_point", "T", 0 }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }, { "opset", INT, REQUIRED }), .types = byte_types,
       BODY(18, { has_2, REAL(x, X, X_scale, x_zero_point) }, { has_no_2, REAL_0(x, X, X_scale) },
            { is_one_axis, NODES(y = Softmax <axis: int = @axis> (x)) },
            { is_many_axes, NODES(sizes = Shape (x) rows = Flatten <axis: int = @axis> (x)
                                  shares = Softmax <axis = 1> (rows)
                                  y = Reshape <allowzero = 1> (shares, sizes)) },
            { NULL, QUANTIZED(Y, y, y_scale, y_zero_point) }))

MS_ROW(QLinearWhere, ARITY(9, 9, 1, 1),
       .inputs = PORTS({ "condition", "B", 0 }, { "X", "T", 0 }, { "x_scale", "TF", 0 }, { "x_zero_point", "T", 0 },
                       { "Y", "T", 0 }, { "y_scale", "TF", 0 }, { "y_zero_point", "T", 0 }, { "z_scale", "TF", 0 },
                       { "z_zero_point", "T", 0 }),
       .outputs = PORTS({ "Z", "T", 0 }),
       .types = TYPES({ "B", T(BIT(BOOL)) }, { "TF", T_FLOAT }, { "T", T_BYTES }),
       BODY(18, { NULL, REAL(x, X, x_scale, x_zero_point) }, { NULL, REAL(y, Y, y_scale, y_zero_point) },
            { NULL, NODES(z = Where (condition, x, y)) }, { NULL, QUANTIZED(Z, z, z_scale, z_zero_point) }))

MS_ROW(MulInteger, ARITY(3, 4, 1, 1),
       .inputs = PORTS({ "A", "T", 0 }, { "A_zero_point", "T", OPT }, { "B", "T", 0 }, { "B_zero_point", "T", OPT }),
       .outputs = PORTS({ "C", "T1", 0 }), .types = TYPES({ "T", T_BYTES }, { "T1", T_INT32 }),
       BODY(18, { NULL, NODES(wide_a = Cast <to = 6> (A) wide_b = Cast <to = 6> (B)) },
            { has_1, NODES(zero_a = Cast <to = 6> (A_zero_point) a = Sub (wide_a, zero_a)) },
            { has_no_1, NODES(a = Identity (wide_a)) },
            { has_3, NODES(zero_b = Cast <to = 6> (B_zero_point) b = Sub (wide_b, zero_b)) },
            { has_no_3, NODES(b = Identity (wide_b)) }, { NULL, NODES(C = Mul (a, b)) }))

/* ---- quantize and dequantize ---- */

WHEN(has_axis, onxi_call_given(call, "axis"))
WHEN(has_no_axis, !onxi_call_given(call, "axis"))
WHEN(is_one_with_zero, !onxi_call_given(call, "axis") && MS_HAS(2))
WHEN(is_one_without_zero, !onxi_call_given(call, "axis") && !MS_HAS(2))

MS_ROW(QuantizeLinear, ARITY(2, 3, 1, 1),
       .inputs = PORTS({ "x", "T1", 0 }, { "y_scale", "T1", 0 }, { "y_zero_point", "T2", OPT }),
       .outputs = PORTS({ "y", "T2", 0 }), .attrs = ATTRS({ "axis", INT, OPTIONAL }),
       .types = TYPES({ "T1", T_FLOAT16 }, { "T2", T(INTS_8 | BIT(INT16) | BIT(UINT16) | INTS_4) }),
       BODY(21, { has_axis, NODES(y = QuantizeLinear <axis: int = @axis> (x, y_scale, y_zero_point)) },
            { has_no_axis, NODES(scale = Squeeze (y_scale)) },
            { is_one_with_zero, NODES(none = Constant <value_ints = [0]> ()
                                      shape = Slice (none, none, none)
                                      zero = Reshape (y_zero_point, shape)
                                      y = QuantizeLinear (x, scale, zero)) },
            { is_one_without_zero, NODES(y = QuantizeLinear (x, scale)) }))

MS_ROW(DequantizeLinear, ARITY(2, 3, 1, 1),
       .inputs = PORTS({ "x", "T1", 0 }, { "x_scale", "T2", 0 }, { "x_zero_point", "T1", OPT }),
       .outputs = PORTS({ "y", "T2", 0 }), .attrs = ATTRS({ "axis", INT, OPTIONAL }),
       .types = TYPES({ "T1", T(INTS_8 | BIT(INT16) | BIT(UINT16) | BIT(INT32) | INTS_4) }, { "T2", T_FLOAT16 }),
       BODY(21, { has_axis, NODES(y = DequantizeLinear <axis: int = @axis> (x, x_scale, x_zero_point)) },
            { has_no_axis, NODES(scale = Squeeze (x_scale)) },
            { is_one_with_zero, NODES(none = Constant <value_ints = [0]> ()
                                      shape = Slice (none, none, none)
                                      zero = Reshape (x_zero_point, shape)
                                      y = DequantizeLinear (x, scale, zero)) },
            { is_one_without_zero, NODES(y = DequantizeLinear (x, scale)) }))

/* ---- windows ---- */

WHEN(is_channels_last, MS_SET("channels_last"))
WHEN(is_channels_first, !MS_SET("channels_last"))
#define CHANNELS_SECOND(from, to)                                                                                      \
    { is_channels_last, NODES(to = Einsum <equation = "n...c->nc..."> (from)) },                                       \
    { is_channels_first, NODES(to = Identity (from)) }
#define CHANNELS_BACK(from, to)                                                                                        \
    { is_channels_last, NODES(to = Einsum <equation = "nc...->n...c"> (from)) },                                       \
    { is_channels_first, NODES(to = Identity (from)) }

MS_ROW(QLinearAveragePool, ARITY(4, 5, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "x_scale", SCALE, 0 }, { "x_zero_point", "T", OPT }, { "y_scale", SCALE, 0 },
                       { "y_zero_point", "T", OPT }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "auto_pad", STRING, TEXT("NOTSET") }, { "ceil_mode", INT, DEFAULT("0") },
                      { "channels_last", INT, DEFAULT("0") }, { "count_include_pad", INT, DEFAULT("0") },
                      { "kernel_shape", INTS, REQUIRED }, { "pads", INTS, OPTIONAL }, { "strides", INTS, OPTIONAL }),
       .types = byte_types,
       BODY(19, { has_2, REAL(x, X, x_scale, x_zero_point) }, { has_no_2, REAL_0(x, X, x_scale) },
            CHANNELS_SECOND(x, channels),
            { NULL, NODES(pooled = AveragePool <auto_pad: string = @auto_pad, ceil_mode: int = @ceil_mode,
                                                count_include_pad: int = @count_include_pad,
                                                kernel_shape: ints = @kernel_shape, pads: ints = @pads,
                                                strides: ints = @strides> (channels)) },
            CHANNELS_BACK(pooled, y), { has_4, QUANTIZED(Y, y, y_scale, y_zero_point) },
            { has_no_4, QUANTIZED_0(Y, y, y_scale, X) }))

MS_ROW(QLinearGlobalAveragePool, ARITY(5, 5, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "x_scale", SCALE, 0 }, { "x_zero_point", "T", 0 }, { "y_scale", SCALE, 0 },
                       { "y_zero_point", "T", 0 }),
       .outputs = PORTS({ "Y", "T", 0 }), .attrs = ATTRS({ "channels_last", INT, DEFAULT("0") }),
       .types = byte_types,
       BODY(18, { NULL, REAL(x, X, x_scale, x_zero_point) }, CHANNELS_SECOND(x, channels),
            { NULL, NODES(pooled = GlobalAveragePool (channels)) }, CHANNELS_BACK(pooled, y),
            { NULL, QUANTIZED(Y, y, y_scale, y_zero_point) }))

MS_ROW(NhwcMaxPool, ARITY(1, 1, 1, 1), .inputs = PORTS({ "x", "T", 0 }), .outputs = PORTS({ "y", "T", 0 }),
       .attrs = ATTRS({ "auto_pad", STRING, TEXT("NOTSET") }, { "ceil_mode", INT, DEFAULT("0") },
                      { "dilations", INTS, OPTIONAL }, { "kernel_shape", INTS, REQUIRED }, { "pads", INTS, OPTIONAL },
                      { "strides", INTS, OPTIONAL }),
       .types = byte_types,
       BODY(18, { NULL, NODES(channels = Einsum <equation = "n...c->nc..."> (x)
                              pooled = MaxPool <auto_pad: string = @auto_pad, ceil_mode: int = @ceil_mode,
                                                dilations: ints = @dilations, kernel_shape: ints = @kernel_shape,
                                                pads: ints = @pads, strides: ints = @strides> (channels)
                              y = Einsum <equation = "nc...->n...c"> (pooled)) }))

MS_ROW(QLinearConv, ARITY(8, 9, 1, 1),
       .inputs = PORTS({ "x", "T1", 0 }, { "x_scale", SCALE, 0 }, { "x_zero_point", "T1", 0 }, { "w", "T2", 0 },
                       { "w_scale", SCALE, 0 }, { "w_zero_point", "T2", 0 }, { "y_scale", SCALE, 0 },
                       { "y_zero_point", "T3", 0 }, { "B", "T4", OPT }),
       .outputs = PORTS({ "y", "T3", 0 }),
       .attrs = ATTRS({ "auto_pad", STRING, TEXT("NOTSET") }, { "channels_last", INT, DEFAULT("0") },
                      { "dilations", INTS, OPTIONAL }, { "group", INT, DEFAULT("1") },
                      { "kernel_shape", INTS, OPTIONAL }, { "pads", INTS, OPTIONAL }, { "strides", INTS, OPTIONAL }),
       .types = TYPES({ "T1", T_BYTES }, { "T2", T_BYTES }, { "T3", T_BYTES }, { "T4", T_INT32 }),
       BODY(18, CHANNELS_SECOND(x, channels),
            { NULL, NODES(convolved = QLinearConv <auto_pad: string = @auto_pad, dilations: ints = @dilations,
                                                   group: int = @group, kernel_shape: ints = @kernel_shape,
                                                   pads: ints = @pads, strides: ints = @strides>
                          (channels, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B)) },
            CHANNELS_BACK(convolved, y)))

/* ---- products ---- */

MS_ROW(MatMulIntegerToFloat, ARITY(4, 7, 1, 1),
       .inputs = PORTS({ "A", "T1", 0 }, { "B", "T2", 0 }, { "a_scale", "T3", 0 }, { "b_scale", "T3", 0 },
                       { "a_zero_point", "T1", OPT }, { "b_zero_point", "T2", OPT }, { "bias", "T3", OPT }),
       .outputs = PORTS({ "Y", "T3", 0 }), .types = TYPES({ "T1", T_BYTES }, { "T2", T_BYTES }, { "T3", T_FLOAT16 }),
       BODY(18, { NULL, NODES(sums = MatMulInteger (A, B, a_zero_point, b_zero_point)
                              numbers = Cast <to = 1> (sums)
                              wide_a = Cast <to = 1> (a_scale)
                              wide_b = Cast <to = 1> (b_scale)
                              scale = Mul (wide_a, wide_b)
                              real = Mul (numbers, scale)) },
            { has_6, NODES(wide_bias = Cast <to = 1> (bias) sum = Add (real, wide_bias)) },
            { has_no_6, NODES(sum = Identity (real)) }, { NULL, NODES(Y = CastLike (sum, a_scale)) }))

MS_ROW(DynamicQuantizeMatMul, ARITY(3, 5, 1, 1),
       .inputs = PORTS({ "A", "T1", 0 }, { "B", "T2", 0 }, { "b_scale", "T1", 0 }, { "b_zero_point", "T2", OPT },
                       { "bias", "T1", OPT }),
       .outputs = PORTS({ "Y", "T1", 0 }), .types = TYPES({ "T1", T_FLOAT }, { "T2", T_BYTES }),
       BODY(18, { NULL, NODES(bytes, a_scale, a_zero_point = DynamicQuantizeLinear (A)
                              sums = MatMulInteger (bytes, B, a_zero_point, b_zero_point)
                              numbers = Cast <to = 1> (sums)
                              scale = Mul (a_scale, b_scale)
                              real = Mul (numbers, scale)) },
            { has_4, NODES(Y = Add (real, bias)) }, { has_no_4, NODES(Y = Identity (real)) }))

WHEN(a_turned, MS_SET("transA"))
WHEN(a_kept, !MS_SET("transA"))
WHEN(b_turned, MS_SET("transB"))
WHEN(b_kept, !MS_SET("transB"))
WHEN(is_real, !MS_HAS(7))
WHEN(has_zero, MS_HAS(7) && MS_HAS(8))
WHEN(has_no_zero, MS_HAS(7) && !MS_HAS(8))

MS_ROW(QGemm, .infer = onxi_rule_microsoft_qgemm, .flags = INFERS, ARITY(6, 9, 1, 1),
       .inputs = PORTS({ "A", "TA", 0 }, { "a_scale", "T", 0 }, { "a_zero_point", "TA", 0 }, { "B", "TB", 0 },
                       { "b_scale", "T", 0 }, { "b_zero_point", "TB", 0 }, { "C", "TC", OPT }, { "y_scale", "T", OPT },
                       { "y_zero_point", "TYZ", OPT }),
       .outputs = PORTS({ "Y", "TY", 0 }),
       .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }, { "transA", INT, DEFAULT("0") }, { "transB", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T_FLOAT }, { "TA", T_BYTES }, { "TB", T_BYTES }, { "TC", T_INT32 }, { "TYZ", T_BYTES },
                      { "TY", T(BIT(FLOAT) | INTS_8) }),
       BODY(18, { a_turned, NODES(left = Transpose (A)) }, { a_kept, NODES(left = Identity (A)) },
            { b_turned, NODES(right = Transpose (B)) }, { b_kept, NODES(right = Identity (B)) },
            { NULL, NODES(left_zero = Squeeze (a_zero_point)
                          right_zero = Squeeze (b_zero_point)
                          product = MatMulInteger (left, right, left_zero, right_zero)) },
            { has_6, NODES(sums = Add (product, C)) }, { has_no_6, NODES(sums = Identity (product)) },
            { NULL, NODES(numbers = Cast <to = 1> (sums)
                          left_scale = Squeeze (a_scale)
                          factor = Constant <value_float: float = @alpha> ()
                          both = Mul (left_scale, b_scale)
                          scale = Mul (both, factor)
                          real = Mul (numbers, scale)) },
            { is_real, NODES(Y = Identity (real)) },
            { has_zero, QUANTIZED(Y, real, y_scale, y_zero_point) },
            { has_no_zero, QUANTIZED_0(Y, real, y_scale, A) }))

/* ONNX Runtime quantizes the input again for each use; here the weights are dequantized, and the input is dequantized
 * from its 8-bit values. */
#define REAL_WEIGHTS(real, x, scale, zero)                                                                               \
    NODES(real##_wide = Cast <to = 1> (x)                                                                                \
          real##_all = Constant <value_ints = [0, 1, -1]> ()                                                             \
          real##_zeros = Cast <to = 1> (zero)                                                                            \
          real##_zero = Reshape (real##_zeros, real##_all)                                                                   \
          real##_scale_ = Reshape (scale, real##_all)                                                                      \
          real##_centred = Sub (real##_wide, real##_zero)                                                                    \
          real##_real = Mul (real##_centred, real##_scale_)                                                                  \
          real = Transpose <perm = [0, 2, 1]> (real##_real))

MS_ROW(DynamicQuantizeLSTM, .infer = onxi_rule_microsoft_lstm, .flags = INFERS, ARITY(12, 12, 0, 3),
       .inputs = PORTS({ "X", "T", 0 }, { "W", "T2", 0 }, { "R", "T2", 0 }, { "B", "T", OPT },
                       { "sequence_lens", "T1", OPT }, { "initial_h", "T", OPT }, { "initial_c", "T", OPT },
                       { "P", "T", OPT }, { "W_scale", "T", 0 }, { "W_zero_point", "T2", 0 }, { "R_scale", "T", 0 },
                       { "R_zero_point", "T2", 0 }),
       .outputs = PORTS({ "Y", "T", OPT }, { "Y_h", "T", OPT }, { "Y_c", "T", OPT }),
       .attrs = ATTRS({ "activation_alpha", FLOATS, OPTIONAL }, { "activation_beta", FLOATS, OPTIONAL },
                      { "activations", STRINGS, OPTIONAL }, { "clip", FLOAT, OPTIONAL },
                      { "direction", STRING, TEXT("forward") }, { "hidden_size", INT, OPTIONAL },
                      { "input_forget", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T_FLOAT }, { "T1", T_INT32 }, { "T2", T_BYTES }),
       BODY(18, { NULL, NODES(bytes, scale, zero = DynamicQuantizeLinear (X)
                              real = DequantizeLinear (bytes, scale, zero)) },
            { NULL, REAL_WEIGHTS(w, W, W_scale, W_zero_point) }, { NULL, REAL_WEIGHTS(r, R, R_scale, R_zero_point) },
            { NULL, NODES(Y, Y_h, Y_c = LSTM <activation_alpha: floats = @activation_alpha,
                                              activation_beta: floats = @activation_beta,
                                              activations: strings = @activations, clip: float = @clip,
                                              direction: string = @direction, hidden_size: int = @hidden_size,
                                              input_forget: int = @input_forget>
                          (real, w, r, B, sequence_lens, initial_h, initial_c, P)) }))

/* ---- embeddings ---- */

WHEN(has_segments, MS_HAS(1) && MS_HAS(4))
WHEN(has_no_segments, !MS_HAS(1) || !MS_HAS(4))

MS_ROW(QEmbedLayerNormalization, ARITY(18, 18, 2, 2),
       .inputs = PORTS({ "input_ids", "T1", 0 }, { "segment_ids", "T1", OPT }, { "word_embedding_quant", "T2", 0 },
                       { "position_embedding_quant", "T2", 0 }, { "segment_embedding", "T2", OPT },
                       { "gamma_quant", "T2", 0 }, { "beta_quant", "T2", 0 }, { "mask", "T1", OPT },
                       { "word_embedding_scale", "T", 0 }, { "position_embedding_scale", "T", 0 },
                       { "segment_embedding_scale", "T", OPT }, { "gamma_scale", "T", 0 }, { "beta_scale", "T", 0 },
                       { "word_embedding_zero_point", "T2", 0 }, { "position_embedding_zero_point", "T2", 0 },
                       { "segment_embedding_zero_point", "T2", OPT }, { "gamma_zero_point", "T2", 0 },
                       { "beta_zero_point", "T2", 0 }),
       .outputs = PORTS({ "layernorm_out", "T", 0 }, { "mask_index_out", "T1", 0 }),
       .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-12") }),
       .types = TYPES({ "T1", T_INT32 }, { "T2", T_BYTES }, { "T", T_FLOAT }),
       BODY(18, { NULL, NODES(word_bytes = Gather (word_embedding_quant, input_ids)
                              length = Shape <start = 1, end = 2> (input_ids)
                              nowhere = Constant <value_ints = [0]> ()
                              place_bytes = Slice (position_embedding_quant, nowhere, length)) },
            { NULL, REAL(words, word_bytes, word_embedding_scale, word_embedding_zero_point) },
            { NULL, REAL(places, place_bytes, position_embedding_scale, position_embedding_zero_point) },
            { NULL, REAL(gamma, gamma_quant, gamma_scale, gamma_zero_point) },
            { NULL, REAL(beta, beta_quant, beta_scale, beta_zero_point) },
            { NULL, NODES(placed = Add (words, places)) },
            { has_segments, NODES(segment_bytes = Gather (segment_embedding, segment_ids)) },
            { has_segments, REAL(segments, segment_bytes, segment_embedding_scale, segment_embedding_zero_point) },
            { has_segments, NODES(sum = Add (placed, segments)) },
            { has_no_segments, NODES(sum = Identity (placed)) },
            { NULL, NODES(layernorm_out = LayerNormalization <epsilon: float = @epsilon> (sum, gamma, beta)) },
            { has_7, NODES(one = Constant <value_int = 1> ()
                           word = CastLike (one, mask)
                           marked = Equal (mask, word)
                           numbers = Cast <to = 6> (marked)
                           second = Constant <value_ints = [1]> ()
                           mask_index_out = ReduceSum <keepdims = 0> (numbers, second)) },
            { has_no_7, NODES(batch = Shape <start = 0, end = 1> (input_ids)
                              mask_index_out = ConstantOfShape <value = int32[1] {0}> (batch)) }))

/* ---- operators with their own kernels ---- */

MS_ROW(QLinearConcat, .infer = onxi_rule_microsoft_qlinear_concat, .flags = INFERS, ARITY(3, MANY, 1, 1),
       .inputs = PORTS({ "Y_scale", "TF", 0 }, { "Y_zero_point", "T8", 0 }, { "inputs", "TV", VARIADIC | HETEROGENEOUS }),
       .outputs = PORTS({ "Y", "T8", 0 }), .attrs = ATTRS({ "axis", INT, REQUIRED }),
       .types = TYPES({ "T8", T_BYTES }, { "TF", T_FLOAT }, { "TV", T(INTS_8 | BIT(FLOAT)) }))

MS_ROW(MatMulInteger16, .infer = onxi_rule_microsoft_matmul_integer16, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "A", "T1", 0 }, { "B", "T2", 0 }), .outputs = PORTS({ "Y", "T3", 0 }),
       .types = TYPES({ "T1", T(BIT(INT16) | BIT(UINT16)) }, { "T2", T(BIT(INT16) | BIT(UINT16)) },
                      { "T3", T(BIT(INT32) | BIT(UINT32)) }))

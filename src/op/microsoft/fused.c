/* fused.c - rows of com.microsoft: activations, products and normalizations that the optimizer of ONNX Runtime fuses
 * from several standard operators. Their bodies decompose them again. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

/* ---- activations ---- */

static const onxi_port x_ports[] = { { "X", "T", 0 }, { 0 } };
static const onxi_port y_ports[] = { { "Y", "T", 0 }, { 0 } };
static const onxi_type_constraint floating_types[] = { { "T", T(FLOATING_13) }, { 0 } };

MS_ROW(Gelu, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports, .types = floating_types,
       BODY(20, { NULL, NODES(Y = Gelu (X)) }))

MS_ROW(BiasGelu, ARITY(2, 2, 1, 1), .inputs = PORTS({ "A", "T", 0 }, { "B", "T", 0 }),
       .outputs = PORTS({ "C", "T", 0 }), .types = floating_types,
       BODY(20, { NULL, NODES(sum = Add (A, B) C = Gelu (sum)) }))

WHEN(has_1, MS_HAS(1))
WHEN(has_no_1, !MS_HAS(1))
MS_ROW(FastGelu, ARITY(1, 2, 1, 1), .inputs = PORTS({ "X", "T", 0 }, { "bias", "T", OPT }), .outputs = y_ports,
       .types = floating_types,
       BODY(20, { has_1, NODES(sum = Add (X, bias)) }, { has_no_1, NODES(sum = Identity (X)) },
            { NULL, NODES(Y = Gelu <approximate = "tanh"> (sum)) }))

MS_ROW(QuickGelu, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
       .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1.702") }), .types = floating_types,
       BODY(18, { NULL, NODES(number = Constant <value_float: float = @alpha> ()
                              factor = CastLike (number, X)
                              scaled = Mul (X, factor)
                              gate = Sigmoid (scaled)
                              Y = Mul (X, gate)) }))

MS_ROW(BiasSplitGelu, ARITY(2, 2, 1, 1), .inputs = PORTS({ "X", "T", 0 }, { "bias", "T", 0 }), .outputs = y_ports,
       .types = TYPES({ "T", T_FLOAT16 }),
       BODY(20, { NULL, NODES(sum = Add (X, bias)
                              left, right = Split <axis = -1, num_outputs = 2> (sum)
                              gate = Gelu (right)
                              Y = Mul (left, gate)) }))

MS_ROW(BiasAdd, ARITY(3, 3, 1, 1), .inputs = PORTS({ "X", "T", 0 }, { "bias", "T", 0 }, { "skip", "T", 0 }),
       .outputs = y_ports, .types = TYPES({ "T", T_FLOAT16 }),
       BODY(18, { NULL, NODES(sum = Add (X, bias) Y = Add (sum, skip)) }))

WHEN(has_2, MS_HAS(2))
WHEN(has_no_2, !MS_HAS(2))
WHEN(has_3, MS_HAS(3))
WHEN(has_no_3, !MS_HAS(3))
/* Dropout takes no ratio of bfloat16. */
MS_ROW(BiasDropout, .flags = NONDETERMINISTIC, ARITY(2, 5, 1, 2),
       .inputs = PORTS({ "data", "T", 0 }, { "bias", "T", 0 }, { "residual", "T", OPT }, { "ratio", "T1", OPT },
                       { "training_mode", "T2", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "mask", "T2", OPT }), .attrs = ATTRS({ "seed", INT, OPTIONAL }),
       .types = TYPES({ "T", T(FLOATING_13) }, { "T1", T(FLOATING_13) }, { "T2", T(BIT(BOOL)) }),
       BODY(18, { NULL, NODES(sum = Add (data, bias)) }, { has_3, NODES(part = Cast <to = 1> (ratio)) },
            { has_3, NODES(dropped, mask = Dropout <seed: int = @seed> (sum, part, training_mode)) },
            { has_no_3, NODES(dropped, mask = Dropout <seed: int = @seed> (sum, , training_mode)) },
            { has_2, NODES(output = Add (dropped, residual)) }, { has_no_2, NODES(output = Identity (dropped)) }))

/* With a weight, the gate is computed first; each step is rounded to the type of the operands. */
WHEN(has_gate, !MS_HAS(3))
WHEN(computes_gate, MS_HAS(3))
MS_ROW(GatedAdd, ARITY(3, 4, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "Y", "T", 0 }, { "gate", "T", 0 }, { "gate_weight", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }), .types = TYPES({ "T", T(SCALES_19) }),
       BODY(18, { has_gate, NODES(scaled = Mul (Y, gate)) },
            { computes_gate, NODES(wide = Cast <to = 1> (gate)
                                   wide_weight = Cast <to = 1> (gate_weight)
                                   wide_logit = MatMul (wide, wide_weight)
                                   logit = CastLike (wide_logit, X)
                                   wide_again = Cast <to = 1> (logit)
                                   wide_share = Sigmoid (wide_again)
                                   share = CastLike (wide_share, X)
                                   scaled = Mul (Y, share)) },
            { NULL, NODES(output = Add (X, scaled)) }))

/* ---- products ---- */

WHEN(a_kept, !MS_SET("transA") && !MS_SET("transBatchA"))
WHEN(a_turned, MS_SET("transA") && !MS_SET("transBatchA"))
WHEN(a_batch_turned, !MS_SET("transA") && MS_SET("transBatchA"))
WHEN(a_both_turned, MS_SET("transA") && MS_SET("transBatchA"))
WHEN(b_kept, !MS_SET("transB") && !MS_SET("transBatchB"))
WHEN(b_turned, MS_SET("transB") && !MS_SET("transBatchB"))
WHEN(b_batch_turned, !MS_SET("transB") && MS_SET("transBatchB"))
WHEN(b_both_turned, MS_SET("transB") && MS_SET("transBatchB"))
WHEN(is_scaled, onxi_call_float(call, "alpha") != 1)
WHEN(is_not_scaled, onxi_call_float(call, "alpha") == 1)

/* Operands of any rank are transposed as three axes: the first or second to last one, the last one, and the batch axes.
 * Einsum would be shorter, but does not support bfloat16. A vector is not transposed. */
#define TURNED_LAST(from, to)                                                                                          \
    NODES(from##_batch = Shape <end = -2> (from)                                                                       \
          from##_row = Shape <start = -2, end = -1> (from)                                                             \
          from##_column = Shape <start = -1> (from)                                                                    \
          from##_all = ReduceProd (from##_batch)                                                                       \
          from##_rows = ReduceProd (from##_row)                                                                        \
          from##_three = Concat <axis = 0> (from##_all, from##_rows, from##_column)                                    \
          from##_flat = Reshape <allowzero = 1> (from, from##_three)                                                   \
          from##_turned = Transpose <perm = [0, 2, 1]> (from##_flat)                                                   \
          from##_shape = Concat <axis = 0> (from##_batch, from##_column, from##_row)                                   \
          to = Reshape <allowzero = 1> (from##_turned, from##_shape))
#define TURNED_BATCH(from, to, turns, before, last)                                                                    \
    NODES(from##_batch = Shape <start = 1, end = -1> (from)                                                            \
          from##_row = Shape <end = 1> (from)                                                                          \
          from##_column = Shape <start = -1> (from)                                                                    \
          from##_all = ReduceProd (from##_batch)                                                                       \
          from##_three = Concat <axis = 0> (from##_row, from##_all, from##_column)                                     \
          from##_flat = Reshape <allowzero = 1> (from, from##_three)                                                   \
          from##_turned = Transpose <perm = turns> (from##_flat)                                                       \
          from##_shape = Concat <axis = 0> (from##_batch, from##_##before, from##_##last)                              \
          to = Reshape <allowzero = 1> (from##_turned, from##_shape))
#define ROW_AFTER_BATCH [1, 0, 2]
#define COLUMN_AFTER_BATCH [1, 2, 0]
#define TURNED_PRODUCT                                                                                                 \
    { a_kept, NODES(left = Identity (A)) }, { a_turned, TURNED_LAST(A, left) },                                        \
    { a_batch_turned, TURNED_BATCH(A, left, ROW_AFTER_BATCH, row, column) },                                           \
    { a_both_turned, TURNED_BATCH(A, left, COLUMN_AFTER_BATCH, column, row) },                                         \
    { b_kept, NODES(right = Identity (B)) }, { b_turned, TURNED_LAST(B, right) },                                      \
    { b_batch_turned, TURNED_BATCH(B, right, ROW_AFTER_BATCH, row, column) },                                          \
    { b_both_turned, TURNED_BATCH(B, right, COLUMN_AFTER_BATCH, column, row) },                                        \
    { NULL, NODES(product = MatMul (left, right)) },                                                                   \
    { is_scaled, NODES(number = Constant <value_float: float = @alpha> ()                                              \
                       factor = CastLike (number, product)                                                             \
                       scaled = Mul (product, factor)) },                                                              \
    { is_not_scaled, NODES(scaled = Identity (product)) }

static const onxi_port product_inputs[] = { { "A", "T", 0 }, { "B", "T", 0 }, { 0 } };

MS_ROW(FusedMatMul, ARITY(2, 2, 1, 1), .inputs = product_inputs, .outputs = y_ports,
       .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }, { "transA", INT, DEFAULT("0") },
                      { "transB", INT, DEFAULT("0") }, { "transBatchA", INT, DEFAULT("0") },
                      { "transBatchB", INT, DEFAULT("0") }),
       .types = floating_types, BODY(18, TURNED_PRODUCT, { NULL, NODES(Y = Identity (scaled)) }))

MS_ROW(TransposeMatMul, ARITY(2, 2, 1, 1), .inputs = product_inputs, .outputs = y_ports,
       .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }, { "transA", INT, DEFAULT("0") },
                      { "transB", INT, DEFAULT("0") }),
       .types = floating_types, BODY(18, TURNED_PRODUCT, { NULL, NODES(Y = Identity (scaled)) }))

MS_ROW(GemmFastGelu, ARITY(2, 3, 1, 1), .inputs = PORTS({ "X", "T", 0 }, { "W", "T", 0 }, { "bias", "T", OPT }),
       .outputs = y_ports, .types = TYPES({ "T", T(SCALES_19) }),
       BODY(20, { NULL, NODES(product = MatMul (X, W)) }, { has_2, NODES(sum = Add (product, bias)) },
            { has_no_2, NODES(sum = Identity (product)) },
            { NULL, NODES(Y = Gelu <approximate = "tanh"> (sum)) }))

WHEN(has_no_activation, onxi_ms_text_is(call, "activation", "") || !onxi_call_attr(call, "activation"))
MS_ACTIVATION(is, Relu)
MS_ACTIVATION(is, Tanh)
MS_ACTIVATION(is, Sigmoid)
MS_ACTIVATION(is, LeakyRelu)
MS_ACTIVATION(is, Clip)
MS_ACTIVATION(is, HardSigmoid)
MS_ACTIVATION(is, HardSwish)

/* From `sum` to Y; the parameters of an activation are named first and second. */
#define ACTIVATIONS                                                                                                    \
    { has_no_activation, NODES(Y = Identity (sum)) }, { is_Relu, NODES(Y = Relu (sum)) },                              \
    { is_Tanh, NODES(Y = Tanh (sum)) }, { is_Sigmoid, NODES(Y = Sigmoid (sum)) },                                      \
    { is_HardSwish, NODES(Y = HardSwish (sum)) },                                                                      \
    { is_LeakyRelu, NODES(slope = CastLike (first, sum) Y = PRelu (sum, slope)) },                                     \
    { is_Clip, NODES(low = CastLike (first, sum) high = CastLike (second, sum) Y = Clip (sum, low, high)) },           \
    { is_HardSigmoid, NODES(slope = CastLike (first, sum) shift = CastLike (second, sum)                               \
                            sloped = Mul (sum, slope) shifted = Add (sloped, shift)                                    \
                            nothing = Constant <value_float = 0.0> () low = CastLike (nothing, sum)                    \
                            everything = Constant <value_float = 1.0> () high = CastLike (everything, sum)             \
                            Y = Clip (shifted, low, high)) }

#define NUMBERS                                                                                                        \
    { is_LeakyRelu, NODES(first = Constant <value_float: float = @activation_alpha> ()) },                             \
    { is_Clip, NODES(first = Constant <value_float: float = @activation_alpha> ()                                      \
                     second = Constant <value_float: float = @activation_beta> ()) },                                  \
    { is_HardSigmoid, NODES(first = Constant <value_float: float = @activation_alpha> ()                               \
                            second = Constant <value_float: float = @activation_beta> ()) }

MS_ROW(FusedGemm, .infer = onxi_rule_microsoft_fused_gemm, .flags = INFERS, ARITY(2, 3, 1, 1),
       .inputs = PORTS({ "A", "T", 0 }, { "B", "T", 0 }, { "C", "T", OPT }), .outputs = y_ports,
       .attrs = ATTRS({ "activation", STRING, OPTIONAL }, { "activation_alpha", FLOAT, OPTIONAL },
                      { "activation_beta", FLOAT, OPTIONAL }, { "activation_gamma", FLOAT, OPTIONAL },
                      { "alpha", FLOAT, DEFAULT("1") }, { "beta", FLOAT, DEFAULT("1") },
                      { "transA", INT, DEFAULT("0") }, { "transB", INT, DEFAULT("0") }),
       .types = TYPES({ "T", T(FLOATING | INDEX) }),
       BODY(18, { NULL, NODES(sum = Gemm <alpha: float = @alpha, beta: float = @beta, transA: int = @transA,
                                          transB: int = @transB> (A, B, C)) },
            NUMBERS, ACTIVATIONS))

/* With the product, as FusedMatMul. */
MS_ROW(FusedMatMulActivation, ARITY(2, 2, 1, 1), .inputs = product_inputs, .outputs = y_ports,
       .attrs = ATTRS({ "activation", STRING, REQUIRED }, { "activation_alpha", FLOAT, OPTIONAL },
                      { "activation_axis", INT, OPTIONAL }, { "activation_beta", FLOAT, OPTIONAL },
                      { "activation_gamma", FLOAT, OPTIONAL }, { "alpha", FLOAT, DEFAULT("1") },
                      { "transA", INT, DEFAULT("0") }, { "transB", INT, DEFAULT("0") },
                      { "transBatchA", INT, DEFAULT("0") }, { "transBatchB", INT, DEFAULT("0") }),
       .types = floating_types, BODY(18, TURNED_PRODUCT, { NULL, NODES(sum = Identity (scaled)) }, NUMBERS, ACTIVATIONS))

WHEN(takes_numbers, is_LeakyRelu(call) || is_Clip(call) || is_HardSigmoid(call))
WHEN(takes_two_numbers, is_Clip(call) || is_HardSigmoid(call))
#define CONVOLUTION(x) CONVOLUTION_OF(x, W)
#define CONVOLUTION_OF(x, w)                                                                                           \
    NODES(convolved = Conv <auto_pad: string = @auto_pad, dilations: ints = @dilations, group: int = @group,           \
                            kernel_shape: ints = @kernel_shape, pads: ints = @pads, strides: ints = @strides>          \
          (x, w, B))
#define FUSED_TO_CONVOLUTION                                                                                           \
    { takes_numbers, NODES(numbers = Constant <value_floats: floats = @activation_params> ()                           \
                           zero = Constant <value_int = 0> ()                                                          \
                           first = Gather (numbers, zero)) },                                                          \
    { takes_two_numbers, NODES(one = Constant <value_int = 1> () second = Gather (numbers, one)) }, ACTIVATIONS

static const onxi_attr fused_conv_attrs[] = {
    { "activation", STRING, OPTIONAL },
    { "activation_params", FLOATS, OPTIONAL },
    { "auto_pad", STRING, TEXT("NOTSET") },
    { "dilations", INTS, OPTIONAL },
    { "group", INT, DEFAULT("1") },
    { "kernel_shape", INTS, OPTIONAL },
    { "pads", INTS, OPTIONAL },
    { "strides", INTS, OPTIONAL },
    { 0 },
};

MS_ROW(FusedConv, .infer = onxi_rule_microsoft_fused_conv, .flags = INFERS, ARITY(2, 4, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "W", "T", 0 }, { "B", "T", OPT }, { "Z", "T", OPT }), .outputs = y_ports,
       .attrs = fused_conv_attrs, .types = TYPES({ "T", T(FLOATING) }),
       BODY(18, { NULL, CONVOLUTION(X) }, { has_3, NODES(sum = Add (convolved, Z)) },
            { has_no_3, NODES(sum = Identity (convolved)) }, FUSED_TO_CONVOLUTION))

#define LAST_TO_SECOND(from, to) NODES(to = Einsum <equation = "n...c->nc..."> (from))
#define SECOND_TO_LAST(from, to) NODES(to = Einsum <equation = "nc...->n...c"> (from))

MS_ROW(NhwcFusedConv, ARITY(2, 4, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "W", "T", 0 }, { "B", "T", OPT }, { "Z", "T", OPT }), .outputs = y_ports,
       .attrs = fused_conv_attrs, .types = TYPES({ "T", T_FLOAT16 }),
       BODY(18, { NULL, LAST_TO_SECOND(X, channels) }, { NULL, CONVOLUTION(channels) },
            { NULL, SECOND_TO_LAST(convolved, back) }, { has_3, NODES(sum = Add (back, Z)) },
            { has_no_3, NODES(sum = Identity (back)) }, FUSED_TO_CONVOLUTION))

MS_ROW(NhwcConv, ARITY(2, 3, 1, 1), .inputs = PORTS({ "X", "T", 0 }, { "W", "T", 0 }, { "B", "T", OPT }),
       .outputs = y_ports,
       .attrs = ATTRS({ "auto_pad", STRING, TEXT("NOTSET") }, { "dilations", INTS, OPTIONAL },
                      { "group", INT, DEFAULT("1") }, { "kernel_shape", INTS, OPTIONAL }, { "pads", INTS, OPTIONAL },
                      { "strides", INTS, OPTIONAL }),
       .types = TYPES({ "T", T(FLOATING) }),
       BODY(18, { NULL, LAST_TO_SECOND(X, channels) }, { NULL, CONVOLUTION(channels) },
            { NULL, SECOND_TO_LAST(convolved, Y) }))

/* Computes all windows without pads, and then cuts the pads off. */
MS_ROW(ConvTransposeWithDynamicPads, ARITY(2, 4, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "W", "T", 0 }, { "Pads", "tensor(int64)", OPT }, { "B", "T", OPT }),
       .outputs = y_ports,
       .attrs = ATTRS({ "auto_pad", STRING, TEXT("NOTSET") }, { "dilations", INTS, OPTIONAL },
                      { "group", INT, DEFAULT("1") }, { "kernel_shape", INTS, OPTIONAL },
                      { "output_padding", INTS, OPTIONAL }, { "strides", INTS, OPTIONAL }),
       .types = TYPES({ "T", T(FLOATING) }),
       BODY(18, { NULL, NODES(whole = ConvTranspose <auto_pad: string = @auto_pad, dilations: ints = @dilations,
                                                     group: int = @group, kernel_shape: ints = @kernel_shape,
                                                     output_padding: ints = @output_padding,
                                                     strides: ints = @strides> (X, W, B)) },
            { has_no_2, NODES(Y = Identity (whole)) },
            { has_2, NODES(nothing = Constant <value_int = 0> ()
                           pads = Max (Pads, nothing)
                           halves = Constant <value_ints = [2, -1]> ()
                           pairs = Reshape (pads, halves)
                           starts = Gather (pairs, nothing)
                           second = Constant <value_int = 1> ()
                           cut = Gather (pairs, second)
                           sizes = Shape <start = 2> (whole)
                           ends = Sub (sizes, cut)
                           axes_0 = Constant <value_int = 2> ()
                           count = Size (starts)
                           one = Constant <value_int = 1> ()
                           limit = Add (count, axes_0)
                           axes = Range (axes_0, limit, one)
                           Y = Slice (whole, starts, ends, axes)) }))

/* ---- blocked channel layouts, which the optimizer selects for the CPU it runs on ---- */

/* Here, tensors between these operators have the usual layout: channels are only padded to whole blocks. Weights are
 * constants that were packed into blocks of output channels, and of input channels if there are enough: they are
 * unpacked. */
#define NCHWC_ROW(operator_, ...) MS_ROW_OF("com.microsoft.nchwc", nchwc_##operator_, operator_, __VA_ARGS__)

NCHWC_ROW(BlockSize, .infer = onxi_rule_microsoft_block_size, .flags = INFERS, ARITY(0, 0, 1, 1),
          .outputs = PORTS({ "Y", "tensor(int64)", 0 }))

#define UNBLOCKED                                                                                                      \
    NODES(sizes = Shape (W)                                                                                            \
          made = Shape <end = 1> (W)                                                                                   \
          read = Shape <start = 1, end = 2> (W)                                                                        \
          window = Shape <start = 2> (W)                                                                               \
          block = com.microsoft.nchwc.BlockSize ()                                                                     \
          alone = Constant <value_ints = [1]> ()                                                                       \
          few = Less (read, block)                                                                                     \
          read_block = Where (few, alone, block)                                                                       \
          made_blocks = Div (made, block)                                                                              \
          read_blocks = Div (read, read_block)                                                                         \
          cut = Concat <axis = 0> (made_blocks, read_blocks, window, read_block, block)                                \
          six = Reshape (W, cut)                                                                                       \
          turned = Transpose <perm = [0, 5, 1, 4, 2, 3]> (six)                                                         \
          weights = Reshape (turned, sizes))

NCHWC_ROW(Conv, .infer = onxi_rule_microsoft_fused_conv, .flags = INFERS, ARITY(2, 4, 1, 1),
          .inputs = PORTS({ "X", "T", 0 }, { "W", "T", 0 }, { "B", "T", OPT }, { "Sum", "T", OPT }), .outputs = y_ports,
          .attrs = fused_conv_attrs, .types = TYPES({ "T", T_FLOAT }),
          BODY(18, { NULL, UNBLOCKED }, { NULL, CONVOLUTION_OF(X, weights) },
               { has_3, NODES(sum = Add (convolved, Sum)) }, { has_no_3, NODES(sum = Identity (convolved)) },
               FUSED_TO_CONVOLUTION))

static bool has_channels(onxi_call *call, int64_t block, int64_t count)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const bool known = x && x->rank == 4 && onxi_dim_is_const(x->dims[1]);
    return known && (block ? x->dims[1] % block == 0 : x->dims[1] == count);
}

#define WIDEST_BLOCK 16
WHEN(is_last, MS_SET("channels_last"))
WHEN(is_second, !MS_SET("channels_last"))
WHEN(is_whole, is_second(call) && has_channels(call, WIDEST_BLOCK, 0))
WHEN(is_not_whole, !is_whole(call))
NCHWC_ROW(ReorderInput, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
          .attrs = ATTRS({ "channels_last", INT, DEFAULT("0") }), .types = TYPES({ "T", T_FLOAT }),
          BODY(18, { is_last, NODES(x = Transpose <perm = [0, 3, 1, 2]> (X)) }, { is_second, NODES(x = Identity (X)) },
               { is_whole, NODES(Y = Identity (x)) },
               { is_not_whole, NODES(count = Shape <start = 1, end = 2> (x)
                                     block = com.microsoft.nchwc.BlockSize ()
                                     below = Neg (count)
                                     missing = Mod (below, block)
                                     before = Constant <value_ints = [0, 0, 0, 0, 0]> ()
                                     after = Constant <value_ints = [0, 0]> ()
                                     pads = Concat <axis = 0> (before, missing, after)
                                     Y = Pad (x, pads)) }))

WHEN(is_all, has_channels(call, 0, onxi_call_int(call, "channels")))
WHEN(is_part, !is_all(call))
NCHWC_ROW(ReorderOutput, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
          .attrs = ATTRS({ "channels", INT, DEFAULT("0") }, { "channels_last", INT, DEFAULT("0") }),
          .types = TYPES({ "T", T_FLOAT }),
          BODY(18, { is_all, NODES(y = Identity (X)) },
               { is_part, NODES(start = Constant <value_ints = [0]> ()
                                count = Constant <value_int: int = @channels> ()
                                end = Unsqueeze (count, start)
                                axis = Constant <value_ints = [1]> ()
                                y = Slice (X, start, end, axis)) },
               { is_last, NODES(Y = Transpose <perm = [0, 2, 3, 1]> (y)) }, { is_second, NODES(Y = Identity (y)) }))

#define POOLED(...)                                                                                                    \
    ATTRS({ "auto_pad", STRING, TEXT("NOTSET") }, { "ceil_mode", INT, DEFAULT("0") }, __VA_ARGS__,                     \
          { "dilations", INTS, OPTIONAL }, { "kernel_shape", INTS, REQUIRED }, { "pads", INTS, OPTIONAL },             \
          { "strides", INTS, OPTIONAL })
NCHWC_ROW(MaxPool, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
          .attrs = POOLED({ "storage_order", INT, DEFAULT("0") }), .types = TYPES({ "T", T_FLOAT }),
          BODY(22, { NULL, NODES(Y = MaxPool <auto_pad: string = @auto_pad, ceil_mode: int = @ceil_mode,
                                              dilations: ints = @dilations, kernel_shape: ints = @kernel_shape,
                                              pads: ints = @pads, strides: ints = @strides> (X)) }))
NCHWC_ROW(AveragePool, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
          .attrs = POOLED({ "count_include_pad", INT, DEFAULT("0") }), .types = TYPES({ "T", T_FLOAT }),
          BODY(22, { NULL, NODES(Y = AveragePool <auto_pad: string = @auto_pad, ceil_mode: int = @ceil_mode,
                                                  count_include_pad: int = @count_include_pad,
                                                  dilations: ints = @dilations, kernel_shape: ints = @kernel_shape,
                                                  pads: ints = @pads, strides: ints = @strides> (X)) }))
NCHWC_ROW(GlobalMaxPool, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports, .types = TYPES({ "T", T_FLOAT }),
          BODY(22, { NULL, NODES(Y = GlobalMaxPool (X)) }))
NCHWC_ROW(GlobalAveragePool, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
          .types = TYPES({ "T", T_FLOAT }), BODY(22, { NULL, NODES(Y = GlobalAveragePool (X)) }))

NCHWC_ROW(Upsample, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
          .attrs = ATTRS({ "coordinate_transformation_mode", STRING, TEXT("asymmetric") },
                         { "mode", STRING, TEXT("nearest") }, { "scales", INTS, OPTIONAL }),
          .types = TYPES({ "T", T_FLOAT }),
          BODY(19, { NULL, NODES(numbers = Constant <value_ints: ints = @scales> ()
                                 factors = Cast <to = 1> (numbers)
                                 Y = Resize <coordinate_transformation_mode: string = @coordinate_transformation_mode,
                                             mode: string = @mode, nearest_mode = "floor"> (X, , factors)) }))

/* ---- normalizations ---- */

WHEN(has_4, MS_HAS(4))
WHEN(has_no_4, !MS_HAS(4))

/* Mean and deviation, one for each normalized row. */
MS_ROW(SkipLayerNormalization, ARITY(3, 5, 1, 4),
       .inputs = PORTS({ "input", "T", 0 }, { "skip", "T", 0 }, { "gamma", "T", 0 }, { "beta", "T", OPT },
                       { "bias", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "mean", "U", OPT }, { "inv_std_var", "U", OPT },
                        { "input_skip_bias_sum", "T", OPT }),
       .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-12") }),
       .types = TYPES({ "T", T(FLOATING_13) }, { "U", T_FLOAT }),
       BODY(17, { NULL, NODES(skipped = Add (input, skip)) },
            { has_4, NODES(input_skip_bias_sum = Add (skipped, bias)) },
            { has_no_4, NODES(input_skip_bias_sum = Identity (skipped)) },
            { NULL, NODES(output, mean, inv_std_var = LayerNormalization <epsilon: float = @epsilon>
                          (input_skip_bias_sum, gamma, beta)) }))

#define ROOT_OF_SQUARES(x)                                                                                             \
    NODES(wide = Cast <to = 1> (x)                                                                                     \
          squares = Mul (wide, wide)                                                                                   \
          last = Constant <value_ints = [-1]> ()                                                                       \
          mean = ReduceMean (squares, last)                                                                            \
          least = Constant <value_float: float = @epsilon> ()                                                          \
          raised = Add (mean, least)                                                                                   \
          root = Sqrt (raised)                                                                                         \
          inv_std_var = Reciprocal (root))

MS_ROW(SkipSimplifiedLayerNormalization, ARITY(3, 4, 1, 4),
       .inputs = PORTS({ "input", "T", 0 }, { "skip", "T", 0 }, { "gamma", "T", 0 }, { "bias", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "mean", "U", OPT }, { "inv_std_var", "U", OPT },
                        { "input_skip_bias_sum", "T", OPT }),
       .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-12") }),
       .types = TYPES({ "T", T(FLOATING_13) }, { "U", T_FLOAT }),
       BODY(23, { NULL, NODES(skipped = Add (input, skip)) },
            { has_3, NODES(input_skip_bias_sum = Add (skipped, bias)) },
            { has_no_3, NODES(input_skip_bias_sum = Identity (skipped)) },
            { NULL, NODES(output = RMSNormalization <epsilon: float = @epsilon> (input_skip_bias_sum, gamma)) },
            { NULL, ROOT_OF_SQUARES(input_skip_bias_sum) }))

/* An operator that ONNX Runtime adds to the default domain. */
const onxi_schema onxi_op_microsoft_SimplifiedLayerNormalization[] = {
    { .name = "SimplifiedLayerNormalization", .since = 1, ARITY(2, 2, 1, 2),
      .inputs = PORTS({ "X", "T", 0 }, { "scale", "V", 0 }),
      .outputs = PORTS({ "Y", "V", 0 }, { "inv_std_var", "U", OPT }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }, { "epsilon", FLOAT, DEFAULT("1e-05") },
                     { "stash_type", INT, DEFAULT("1") }),
      .types = TYPES({ "T", T(FLOATING_13) }, { "U", T(BIT(FLOAT) | BIT(DOUBLE) | BIT(BFLOAT16)) },
                     { "V", T(FLOATING_13) }),
      BODY(23, { NULL, NODES(Y = RMSNormalization <axis: int = @axis, epsilon: float = @epsilon,
                                                   stash_type: int = @stash_type> (X, scale)
                             wide = Cast <to: int = @stash_type> (X)
                             rows = Flatten <axis: int = @axis> (wide)
                             squares = Mul (rows, rows)
                             last = Constant <value_ints = [-1]> ()
                             mean = ReduceMean (squares, last)
                             number = Constant <value_float: float = @epsilon> ()
                             least = CastLike (number, mean)
                             raised = Add (mean, least)
                             root = Sqrt (raised)
                             inverse = Reciprocal (root)
                             before = Shape <end: int = @axis> (X)
                             behind = Shape <start: int = @axis> (X)
                             count = Shape (behind)
                             ones = ConstantOfShape <value = int64[1] {1}> (count)
                             sizes = Concat <axis = 0> (before, ones)
                             inv_std_var = Reshape <allowzero = 1> (inverse, sizes)) }) },
    { .name = NULL },
};

WHEN(has_segments, MS_HAS(1) && MS_HAS(4))
WHEN(has_no_segments, !MS_HAS(1) || !MS_HAS(4))
WHEN(has_mask, MS_HAS(7))
WHEN(has_no_mask, !MS_HAS(7))
WHEN(has_positions, MS_HAS(8))
WHEN(has_no_positions, !MS_HAS(8))

/* The number of ones in each row of the mask; zeros if there is no mask. */
#define COUNT_MASK(index)                                                                                                 \
    NODES(one = Constant <value_int = 1> ()                                                                            \
          word = CastLike (one, mask)                                                                                  \
          marked = Equal (mask, word)                                                                                  \
          numbers = Cast <to = 6> (marked)                                                                             \
          second = Constant <value_ints = [1]> ()                                                                      \
          index = ReduceSum <keepdims = 0> (numbers, second))
#define NO_MASK(index)                                                                                                    \
    NODES(batch = Shape <start = 0, end = 1> (input_ids)                                                               \
          index = ConstantOfShape <value = int32[1] {0}> (batch))

MS_ROW(EmbedLayerNormalization, ARITY(7, 9, 1, 3),
       .inputs = PORTS({ "input_ids", "T1", 0 }, { "segment_ids", "T1", OPT }, { "word_embedding", "T", 0 },
                       { "position_embedding", "T", 0 }, { "segment_embedding", "T", OPT }, { "gamma", "T", 0 },
                       { "beta", "T", 0 }, { "mask", "T1", OPT }, { "position_ids", "T1", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "mask_index", "T1", OPT }, { "embedding_sum", "T", OPT }),
       .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-12") }, { "mask_index_type", INT, DEFAULT("0") }),
       .types = TYPES({ "T1", T_INT32 }, { "T", T_FLOAT16 }),
       BODY(18, { NULL, NODES(words = Gather (word_embedding, input_ids)) },
            { has_positions, NODES(places = Gather (position_embedding, position_ids)) },
            { has_no_positions, NODES(length = Shape <start = 1, end = 2> (input_ids)
                                      nowhere = Constant <value_ints = [0]> ()
                                      places = Slice (position_embedding, nowhere, length)) },
            { NULL, NODES(placed = Add (words, places)) },
            { has_segments, NODES(segments = Gather (segment_embedding, segment_ids)
                                  embedding_sum = Add (placed, segments)) },
            { has_no_segments, NODES(embedding_sum = Identity (placed)) },
            { NULL, NODES(output = LayerNormalization <epsilon: float = @epsilon> (embedding_sum, gamma, beta)) },
            { has_mask, COUNT_MASK(mask_index) }, { has_no_mask, NO_MASK(mask_index) }))

WHEN(is_channels_last, MS_SET("channels_last"))
WHEN(is_channels_first, !MS_SET("channels_last"))
WHEN(has_bias_last, MS_HAS(4) && MS_SET("channels_last"))
WHEN(has_bias_first, MS_HAS(4) && !MS_SET("channels_last"))
WHEN(has_silu, onxi_call_int(call, "activation") == 1)
WHEN(has_no_silu, onxi_call_int(call, "activation") != 1)

/* From `x` to Y. */
#define GROUP_NORM                                                                                                     \
    { is_channels_last, LAST_TO_SECOND(x, second) }, { is_channels_first, NODES(second = Identity (x)) },              \
    { NULL, NODES(scale = CastLike (gamma, x)                                                                          \
                  shift = CastLike (beta, x)                                                                           \
                  normal = GroupNormalization <num_groups: int = @groups, epsilon: float = @epsilon>                   \
                  (second, scale, shift)) },                                                                           \
    { is_channels_last, SECOND_TO_LAST(normal, placed) }, { is_channels_first, NODES(placed = Identity (normal)) },    \
    { has_silu, NODES(gate = Sigmoid (placed) Y = Mul (placed, gate)) },                                               \
    { has_no_silu, NODES(Y = Identity (placed)) }

static const onxi_attr group_norm_attrs[] = {
    { "activation", INT, REQUIRED },
    { "channels_last", INT, DEFAULT("1") },
    { "epsilon", FLOAT, DEFAULT("1e-05") },
    { "groups", INT, REQUIRED },
    { 0 },
};

MS_ROW(GroupNorm, ARITY(3, 3, 1, 1), .inputs = PORTS({ "X", "T", 0 }, { "gamma", "M", 0 }, { "beta", "M", 0 }),
       .outputs = y_ports, .attrs = group_norm_attrs, .types = TYPES({ "T", T_FLOAT16 }, { "M", T_FLOAT16 }),
       BODY(21, { NULL, NODES(x = Identity (X)) }, GROUP_NORM))

/* The skip input may have one value per channel of an example. */
MS_ROW(SkipGroupNorm, ARITY(4, 5, 1, 2),
       .inputs = PORTS({ "X", "T", 0 }, { "gamma", "M", 0 }, { "beta", "M", 0 }, { "skip", "T", 0 },
                       { "bias", "T", OPT }),
       .outputs = PORTS({ "Y", "T", 0 }, { "S", "T", OPT }), .attrs = group_norm_attrs,
       .types = TYPES({ "T", T_FLOAT16 }, { "M", T_FLOAT16 }),
       BODY(21, { NULL, NODES(sizes = Shape (X)
                              examples = Shape <start = 0, end = 1> (X)
                              any = Constant <value_ints = [-1]> ()) },
            { is_channels_last, NODES(depth = Shape <start = -1> (X)
                                      flat = Concat <axis = 0> (examples, any, depth)) },
            { is_channels_first, NODES(depth = Shape <start = 1, end = 2> (X)
                                       flat = Concat <axis = 0> (examples, depth, any)) },
            { NULL, NODES(rows = Reshape (X, flat)
                          skips = Reshape (skip, flat)
                          skipped = Add (rows, skips)) },
            { has_no_4, NODES(sum = Identity (skipped)) },
            { has_bias_last, NODES(sum = Add (skipped, bias)) },
            { has_bias_first, NODES(upright = Constant <value_ints = [-1, 1]> ()
                                    column = Reshape (bias, upright)
                                    sum = Add (skipped, column)) },
            { NULL, NODES(S = Reshape <allowzero = 1> (sum, sizes) x = Identity (S)) }, GROUP_NORM))

WHEN(gates_by_silu, onxi_ms_text_is(call, "activation", "silu") || onxi_ms_text_is(call, "activation", "swish"))
WHEN(gates_by_sigmoid, onxi_ms_text_is(call, "activation", "sigmoid"))
MS_ROW(GatedRMSNorm, .infer = onxi_rule_microsoft_gated_norm, .flags = INFERS, ARITY(3, 3, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "scale", "T", 0 }, { "gate", "T", 0 }), .outputs = y_ports,
       .attrs = ATTRS({ "activation", STRING, TEXT("silu") }, { "epsilon", FLOAT, DEFAULT("1e-05") }),
       .types = TYPES({ "T", T(SCALES_19) }),
       BODY(23, { NULL, NODES(sizes = Shape (X)
                              width = Shape (scale)
                              any = Constant <value_ints = [-1]> ()
                              flat = Concat <axis = 0> (any, width)
                              wide = Cast <to = 1> (X)
                              rows = Reshape (wide, flat)
                              factors = Cast <to = 1> (scale)
                              normal = RMSNormalization <epsilon: float = @epsilon> (rows, factors)
                              placed = Reshape <allowzero = 1> (normal, sizes)
                              wide_gate = Cast <to = 1> (gate)
                              opened = Sigmoid (wide_gate)
                              silu = Mul (wide_gate, opened)) },
            { gates_by_silu, NODES(product = Mul (placed, silu)) },
            { gates_by_sigmoid, NODES(product = Mul (placed, opened)) }, { NULL, NODES(Y = CastLike (product, X)) }))

MS_ROW(BiasSoftmax, ARITY(2, 2, 1, 1), .inputs = PORTS({ "data", "T", 0 }, { "bias", "T", 0 }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "axis", INT, DEFAULT("1") }, { "is_inner_broadcast", INT, REQUIRED }),
       .types = TYPES({ "T", T(FLOATING) }),
       BODY(18, { NULL, NODES(sum = Add (data, bias)
                              sizes = Shape (data)
                              rows = Flatten <axis: int = @axis> (sum)
                              shares = Softmax <axis = 1> (rows)
                              output = Reshape <allowzero = 1> (shares, sizes)) }))

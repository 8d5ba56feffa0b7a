/* math_matrix.c - rows of the ONNX family "math": matrix products, signal processing, losses.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_attr matrix_attrs_17[] = {
    { "output_datatype", INT, DEFAULT("1") },
    { "periodic", INT, DEFAULT("1") },
    { 0 },
};

static const onxi_type_constraint matrix_types_17[] = {
    { "T1", T(INDEX) },
    { "T2", T(NUMERIC_13) },
    { 0 },
};

static const onxi_type_constraint matrix_types_20[] = {
    { "T1", T(FLOATING_13) },
    { "T2", T(INDEX) },
    { 0 },
};

static const onxi_attr matrix_attrs_22[] = {
    { "ignore_index", INT, OPTIONAL },
    { "reduction", STRING, TEXT("mean") },
    { 0 },
};

static const onxi_type_constraint matrix_types_22[] = {
    { "T", T(FLOATING_13) },
    { "Tind", T(INDEX) },
    { 0 },
};

static const onxi_type_constraint matrix_types_13[] = {
    { "T", T(FLOATING) },
    { "Tind", T(INDEX) },
    { 0 },
};

/* ---- windows: sums of cosines over one period, which a window that is not periodic lacks the last step of ---- */

static const char window_angle[] = NODES(
    whole = Cast <to = 7> (size)
    zero = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    index = Range (zero, whole, one)
    x = Cast <to = 11> (index)
    shorter = Sub (whole, one)
    periodic = Constant <value_int: int = @periodic> ()
    steps = Add (shorter, periodic)
    period = Cast <to = 11> (steps)
    turn = Constant <value = double {6.283185307179586}> ()
    turned = Mul (x, turn)
    angle = Div (turned, period)
    wave = Cos (angle)
);

static const char window_blackman[] = NODES(
    double_turned = Add (angle, angle)
    fast_wave = Cos (double_turned)
    a = Constant <value = double {0.42}> ()
    b = Constant <value = double {0.5}> ()
    c = Constant <value = double {0.08}> ()
    slow = Mul (b, wave)
    fast = Mul (c, fast_wave)
    lower = Sub (a, slow)
    sum = Add (lower, fast)
);

static const char window_hamming[] = NODES(
    part = Constant <value = double {25.0}> ()
    rest = Constant <value = double {21.0}> ()
    parts = Constant <value = double {46.0}> ()
    a = Div (part, parts)
    b = Div (rest, parts)
    slow = Mul (b, wave)
    sum = Sub (a, slow)
);

static const char window_hann[] = NODES(
    half = Constant <value = double {0.5}> ()
    slow = Mul (half, wave)
    sum = Sub (half, slow)
);

static const char window_output[] = NODES(
    output = Cast <to: int = @output_datatype> (sum)
);

/* ---- BlackmanWindow ---- */

const onxi_schema onxi_op_BlackmanWindow[] = {
    { .name = "BlackmanWindow", .since = 17, .infer = onxi_rule_window, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "17", .inputs = PORTS({ "size", "T1", NONDIFF }),
      .outputs = PORTS({ "output", "T2", NONDIFF }), .attrs = matrix_attrs_17, .types = matrix_types_17,
      BODY(17, { NULL, window_angle }, { NULL, window_blackman }, { NULL, window_output }) },
    { .name = NULL },
};

/* ---- DFT ---- */

const onxi_schema onxi_op_DFT[] = {
    { .name = "DFT", .since = 20, .infer = onxi_rule_dft, .flags = INFERS, ARITY(1, 3, 1, 1),
      .inputs = PORTS({ "input", "T1", NONDIFF }, { "dft_length", "T2", OPT | NONDIFF },
                      { "axis", "tensor(int64)", OPT | NONDIFF }),
      .outputs = PORTS({ "output", "T1", 0 }),
      .attrs = ATTRS({ "inverse", INT, DEFAULT("0") }, { "onesided", INT, DEFAULT("0") }), .types = matrix_types_20 },
    { .name = "DFT", .since = 17, .infer = onxi_rule_dft, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = PORTS({ "input", "T1", NONDIFF }, { "dft_length", "T2", OPT | NONDIFF }),
      .outputs = PORTS({ "output", "T1", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }, { "inverse", INT, DEFAULT("0") },
                     { "onesided", INT, DEFAULT("0") }),
      .types = matrix_types_20 },
    { .name = NULL },
};

/* ---- Det ---- */

const onxi_schema onxi_op_Det[] = {
    { .name = "Det", .since = 22, .infer = onxi_rule_det, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Det", .since = 11, .infer = onxi_rule_det, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Einsum ---- */

const onxi_schema onxi_op_Einsum[] = {
    { .name = "Einsum", .since = 28, .infer = onxi_rule_einsum, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "Inputs", "T", VARIADIC | DIFF }), .outputs = PORTS({ "Output", "T", DIFF }),
      .attrs = ATTRS({ "equation", STRING, REQUIRED }), .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Einsum", .since = 12, .infer = onxi_rule_einsum, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "Inputs", "T", VARIADIC | DIFF }), .outputs = PORTS({ "Output", "T", DIFF }),
      .attrs = ATTRS({ "equation", STRING, REQUIRED }), .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = NULL },
};

/* ---- Gemm ---- */

static const onxi_attr gemm_attrs_13[] = {
    { "alpha", FLOAT, DEFAULT("1") },
    { "beta", FLOAT, DEFAULT("1") },
    { "transA", INT, DEFAULT("0") },
    { "transB", INT, DEFAULT("0") },
    { 0 },
};

static const onxi_port gemm_inputs_9[] = {
    { "A", "T", 0 },
    { "B", "T", 0 },
    { "C", "T", 0 },
    { 0 },
};

static const onxi_attr gemm_attrs_6[] = {
    { "alpha", FLOAT, DEFAULT("1") },
    { "beta", FLOAT, DEFAULT("1") },
    { "broadcast", INT, DEFAULT("0") },
    { "transA", INT, DEFAULT("0") },
    { "transB", INT, DEFAULT("0") },
    { 0 },
};

/* Kernels multiply by floating-point weights and add a constant row. What else the operator can do runs as nodes of its
 * own, for which there are kernels of every type and which are fused into the product where that pays. Factors are
 * applied in float, so the type has to be known when the model is resolved. */
static bool gemm_adds_row(onxi_call *call)
{
    const onxi_type *c = onxi_call_ranked(call, 2), *b = onxi_call_ranked(call, 1);
    bool row = c && c->rank > 0;
    for (uint32_t i = 0; row && i + 1 < c->rank; i++)
        row = c->dims[i] == onxi_dim_of_int(1);
    return row && (!b || b->rank != 2 || c->dims[c->rank - 1] == b->dims[onxi_call_int(call, "transB") ? 0 : 1]);
}
static bool gemm_in_float(onxi_call *call)
{
    return onxi_call_dtype(call, 1) == ONX_FLOAT || onxi_call_dtype(call, 2) == ONX_FLOAT;
}
WHEN(gemm_has_c, onxi_call_has_input(call, 2))
WHEN(gemm_alpha, onxi_call_float(call, "alpha") != 1.0f)
WHEN(gemm_beta, gemm_has_c(call) && onxi_call_float(call, "beta") != 1.0f)
WHEN(gemm_apart, gemm_alpha(call) || gemm_beta(call) ? gemm_in_float(call) : gemm_has_c(call) && !gemm_adds_row(call))
WHEN(gemm_scales, gemm_apart(call) && gemm_alpha(call))
WHEN(gemm_scales_c, gemm_apart(call) && gemm_beta(call))
WHEN(gemm_only_scales, gemm_scales(call) && !gemm_has_c(call))
WHEN(gemm_sum, gemm_apart(call) && gemm_has_c(call) && !gemm_alpha(call) && !gemm_beta(call))
WHEN(gemm_sum_scaled, gemm_scales(call) && gemm_has_c(call) && !gemm_beta(call))
WHEN(gemm_sum_c, gemm_scales_c(call) && !gemm_alpha(call))
WHEN(gemm_sum_both, gemm_scales(call) && gemm_beta(call))
#define GEMM_APART                                                                                                     \
    BODY_FIRST(18, { gemm_apart, NODES(product = Gemm <transA: int = @transA, transB: int = @transB> (A, B)) },        \
               { gemm_scales, NODES(factor = Constant <value_float: float = @alpha> () scaled = Mul (product, factor)) }, \
               { gemm_scales_c, NODES(share = Constant <value_float: float = @beta> () part = Mul (C, share)) },       \
               { gemm_only_scales, NODES(Y = Identity (scaled)) },                                                     \
               { gemm_sum, NODES(Y = Add (product, C)) },                                                              \
               { gemm_sum_scaled, NODES(Y = Add (scaled, C)) },                                                        \
               { gemm_sum_c, NODES(Y = Add (product, part)) },                                                         \
               { gemm_sum_both, NODES(Y = Add (scaled, part)) })

const onxi_schema onxi_op_Gemm[] = {
    { .name = "Gemm", .since = 13, .infer = onxi_rule_gemm, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = PORTS({ "A", "T", DIFF }, { "B", "T", DIFF }, { "C", "T", OPT | DIFF }),
      .outputs = PORTS({ "Y", "T", DIFF }), .attrs = gemm_attrs_13, .types = TYPES({ "T", T(WIDE_NUMERIC_13) }),
      GEMM_APART },
    { .name = "Gemm", .since = 11, .infer = onxi_rule_gemm, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = PORTS({ "A", "T", 0 }, { "B", "T", 0 }, { "C", "T", OPT }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = gemm_attrs_13, .types = TYPES({ "T", T(WIDE_NUMERIC) }), GEMM_APART },
    { .name = "Gemm", .since = 9, .infer = onxi_rule_gemm, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = gemm_inputs_9, .outputs = PORTS({ "Y", "T", 0 }), .attrs = gemm_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }), GEMM_APART },
    { .name = "Gemm", .since = 7, .infer = onxi_rule_gemm, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = gemm_inputs_9, .outputs = PORTS({ "Y", "T", 0 }), .attrs = gemm_attrs_13,
      .types = TYPES({ "T", T(FLOATING) }), GEMM_APART },
    { .name = "Gemm", .since = 6, .infer = onxi_rule_gemm, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = gemm_inputs_9, .outputs = PORTS({ "Y", "T", 0 }), .attrs = gemm_attrs_6,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Gemm", .since = 1, .infer = onxi_rule_gemm, ARITY(3, 3, 1, 1),
      .inputs = gemm_inputs_9, .outputs = PORTS({ "Y", "T", 0 }), .attrs = gemm_attrs_6,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- HammingWindow ---- */

const onxi_schema onxi_op_HammingWindow[] = {
    { .name = "HammingWindow", .since = 17, .infer = onxi_rule_window, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "17", .inputs = PORTS({ "size", "T1", NONDIFF }),
      .outputs = PORTS({ "output", "T2", NONDIFF }), .attrs = matrix_attrs_17, .types = matrix_types_17,
      BODY(17, { NULL, window_angle }, { NULL, window_hamming }, { NULL, window_output }) },
    { .name = NULL },
};

/* ---- HannWindow ---- */

const onxi_schema onxi_op_HannWindow[] = {
    { .name = "HannWindow", .since = 17, .infer = onxi_rule_window, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "17", .inputs = PORTS({ "size", "T1", NONDIFF }),
      .outputs = PORTS({ "output", "T2", NONDIFF }), .attrs = matrix_attrs_17, .types = matrix_types_17,
      BODY(17, { NULL, window_angle }, { NULL, window_hann }, { NULL, window_output }) },
    { .name = NULL },
};

/* ---- MatMul ---- */

static const onxi_port mat_mul_inputs_9[] = {
    { "A", "T", 0 },
    { "B", "T", 0 },
    { 0 },
};

const onxi_schema onxi_op_MatMul[] = {
    { .name = "MatMul", .since = 13, .infer = onxi_rule_matmul, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "A", "T", DIFF }, { "B", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "MatMul", .since = 9, .infer = onxi_rule_matmul, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = mat_mul_inputs_9, .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "MatMul", .since = 1, .infer = onxi_rule_matmul, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = mat_mul_inputs_9, .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- MatMulInteger ---- */

const onxi_schema onxi_op_MatMulInteger[] = {
    { .name = "MatMulInteger", .since = 10, .infer = onxi_rule_matmul, .flags = INFERS, ARITY(2, 4, 1, 1),
      .inputs = PORTS({ "A", "T1", NONDIFF }, { "B", "T2", NONDIFF }, { "a_zero_point", "T1", OPT | NONDIFF },
                      { "b_zero_point", "T2", OPT | NONDIFF }),
      .outputs = PORTS({ "Y", "T3", NONDIFF }),
      .types = TYPES({ "T1", T(INTS_8) }, { "T2", T(INTS_8) }, { "T3", T(BIT(INT32)) }) },
    { .name = NULL },
};

/* ---- MelWeightMatrix ---- */

const onxi_schema onxi_op_MelWeightMatrix[] = {
    { .name = "MelWeightMatrix", .since = 17, .infer = onxi_rule_mel_weight_matrix, .flags = INFERS, ARITY(5, 5, 1, 1),
      .inputs = PORTS({ "num_mel_bins", "T1", NONDIFF }, { "dft_length", "T1", NONDIFF },
                      { "sample_rate", "T1", NONDIFF }, { "lower_edge_hertz", "T2", NONDIFF },
                      { "upper_edge_hertz", "T2", NONDIFF }),
      .outputs = PORTS({ "output", "T3", NONDIFF }), .attrs = ATTRS({ "output_datatype", INT, DEFAULT("1") }),
      .types = TYPES({ "T1", T(INDEX) }, { "T2", T(FLOATING_13) }, { "T3", T(NUMERIC_13) }) },
    { .name = NULL },
};

/* ---- NegativeLogLikelihoodLoss ---- */

static const onxi_port negative_log_likelihood_loss_inputs_22[] = {
    { "input", "T", DIFF },
    { "target", "Tind", NONDIFF },
    { "weight", "T", OPT | NONDIFF },
    { 0 },
};

WHEN(loss_ignores, onxi_call_given(call, "ignore_index"))
WHEN(loss_ignores_none, !onxi_call_given(call, "ignore_index"))
WHEN(loss_has_weights, onxi_call_has_input(call, 2))
WHEN(loss_ignores_unweighted, loss_ignores(call) && !loss_has_weights(call))
WHEN(loss_weighs, loss_ignores(call) || loss_has_weights(call))
WHEN(loss_weighs_none, !loss_weighs(call))
WHEN(loss_weighs_all, loss_has_weights(call) && !loss_ignores(call))
WHEN(loss_is_sum, onxi_call_text_is(call, "reduction", "sum"))
WHEN(loss_is_each, onxi_call_text_is(call, "reduction", "none"))
WHEN(loss_is_mean, onxi_call_text_is(call, "reduction", "mean") && loss_weighs_none(call))
WHEN(loss_is_weighed_mean, onxi_call_text_is(call, "reduction", "mean") && loss_weighs(call))

/* Ignored targets look up class 0 with weight 0; they contribute 0 even if the score there is not finite. */
static const char loss_labels_ignoring[] = NODES(
    all_labels = Cast <to = 7> (target)
    ignored_label = Constant <value_int: int = @ignore_index> ()
    is_ignored = Equal (all_labels, ignored_label)
    class_0 = Constant <value_int = 0> ()
    labels = Where (is_ignored, class_0, all_labels)
);

static const char loss_labels[] = NODES(
    labels = Cast <to = 7> (target)
);

static const char loss_picked[] = NODES(
    channel = Constant <value_ints = [1]> ()
    index = Unsqueeze (labels, channel)
    picked = GatherElements <axis = 1> (input, index)
    likelihood = Squeeze (picked, channel)
    negative = Neg (likelihood)
);

static const char loss_weights[] = NODES(
    all_weights = Gather (weight, labels)
);

static const char loss_ones[] = NODES(
    one = Constant <value_float = 1.0> ()
    one_weight = CastLike (one, input)
    label_shape = Shape (labels)
    all_weights = Expand (one_weight, label_shape)
);

static const char loss_weighed[] = NODES(
    all_losses = Mul (negative, all_weights)
);

static const char loss_unweighed[] = NODES(
    losses = Identity (negative)
);

static const char loss_without_ignored[] = NODES(
    nought = Constant <value_float = 0.0> ()
    nothing = CastLike (nought, input)
    weights = Where (is_ignored, nothing, all_weights)
    losses = Where (is_ignored, nothing, all_losses)
);

static const char loss_with_all[] = NODES(
    weights = Identity (all_weights)
    losses = Identity (all_losses)
);

static const char loss_each[] = NODES(
    loss = Identity (losses)
);

static const char loss_sum[] = NODES(
    loss = ReduceSum <keepdims = 0> (losses)
);

static const char loss_mean[] = NODES(
    loss = ReduceMean <keepdims = 0> (losses)
);

static const char loss_weighed_mean[] = NODES(
    sum = ReduceSum <keepdims = 0> (losses)
    total = ReduceSum <keepdims = 0> (weights)
    loss = Div (sum, total)
);

static const onxi_body_part loss_parts[] = {
    { loss_ignores, loss_labels_ignoring },
    { loss_ignores_none, loss_labels },
    { NULL, loss_picked },
    { loss_has_weights, loss_weights },
    { loss_ignores_unweighted, loss_ones },
    { loss_weighs, loss_weighed },
    { loss_weighs_none, loss_unweighed },
    { loss_ignores, loss_without_ignored },
    { loss_weighs_all, loss_with_all },
    { loss_is_each, loss_each },
    { loss_is_sum, loss_sum },
    { loss_is_mean, loss_mean },
    { loss_is_weighed_mean, loss_weighed_mean },
    { NULL, NULL },
};

const onxi_schema onxi_op_NegativeLogLikelihoodLoss[] = {
    { .name = "NegativeLogLikelihoodLoss", .since = 22, .infer = onxi_rule_nll_loss, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 3, 1, 1),
      .context_function_opsets = "22", .inputs = negative_log_likelihood_loss_inputs_22,
      .outputs = PORTS({ "loss", "T", DIFF }), .attrs = matrix_attrs_22, .types = matrix_types_22,
      .body_opset = 17, .body_parts = loss_parts },
    { .name = "NegativeLogLikelihoodLoss", .since = 13, .infer = onxi_rule_nll_loss, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 3, 1, 1),
      .context_function_opsets = "13", .inputs = negative_log_likelihood_loss_inputs_22,
      .outputs = PORTS({ "loss", "T", DIFF }), .attrs = matrix_attrs_22, .types = matrix_types_13,
      .body_opset = 17, .body_parts = loss_parts },
    { .name = "NegativeLogLikelihoodLoss", .since = 12, .infer = onxi_rule_nll_loss, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 3, 1, 1),
      .context_function_opsets = "12",
      .inputs = PORTS({ "input", "T", 0 }, { "target", "Tind", 0 }, { "weight", "T", OPT }),
      .outputs = PORTS({ "loss", "T", 0 }), .attrs = matrix_attrs_22, .types = matrix_types_13,
      .body_opset = 17, .body_parts = loss_parts },
    { .name = NULL },
};

/* ---- QLinearMatMul ---- */

const onxi_schema onxi_op_QLinearMatMul[] = {
    { .name = "QLinearMatMul", .since = 21, .infer = onxi_rule_qlinear_matmul, .flags = INFERS, ARITY(8, 8, 1, 1),
      .inputs = PORTS({ "a", "T1", NONDIFF }, { "a_scale", "TS", NONDIFF }, { "a_zero_point", "T1", NONDIFF },
                      { "b", "T2", NONDIFF }, { "b_scale", "TS", NONDIFF }, { "b_zero_point", "T2", NONDIFF },
                      { "y_scale", "TS", NONDIFF }, { "y_zero_point", "T3", NONDIFF }),
      .outputs = PORTS({ "y", "T3", NONDIFF }),
      .types = TYPES({ "TS", T(SCALES_19) }, { "T1", T(QUANT_OUT_19) }, { "T2", T(QUANT_OUT_19) },
                     { "T3", T(QUANT_OUT_19) }) },
    { .name = "QLinearMatMul", .since = 10, .infer = onxi_rule_qlinear_matmul, .flags = INFERS, ARITY(8, 8, 1, 1),
      .inputs = PORTS({ "a", "T1", NONDIFF }, { "a_scale", "tensor(float)", NONDIFF },
                      { "a_zero_point", "T1", NONDIFF }, { "b", "T2", NONDIFF },
                      { "b_scale", "tensor(float)", NONDIFF }, { "b_zero_point", "T2", NONDIFF },
                      { "y_scale", "tensor(float)", NONDIFF }, { "y_zero_point", "T3", NONDIFF }),
      .outputs = PORTS({ "y", "T3", NONDIFF }),
      .types = TYPES({ "T1", T(INTS_8) }, { "T2", T(INTS_8) }, { "T3", T(INTS_8) }) },
    { .name = NULL },
};

/* ---- STFT ---- */

const onxi_schema onxi_op_STFT[] = {
    { .name = "STFT", .since = 17, .infer = onxi_rule_stft, .flags = INFERS, ARITY(2, 4, 1, 1),
      .inputs = PORTS({ "signal", "T1", NONDIFF }, { "frame_step", "T2", NONDIFF },
                      { "window", "T1", OPT | NONDIFF }, { "frame_length", "T2", OPT | NONDIFF }),
      .outputs = PORTS({ "output", "T1", NONDIFF }), .attrs = ATTRS({ "onesided", INT, DEFAULT("1") }),
      .types = matrix_types_20 },
    { .name = NULL },
};

/* ---- SoftmaxCrossEntropyLoss ---- */

static const char cross_entropy[] = NODES(
    log_prob = LogSoftmax <axis = 1> (scores)
    output = NegativeLogLikelihoodLoss <reduction: string = @reduction, ignore_index: int = @ignore_index> (log_prob, labels, weights)
);

const onxi_schema onxi_op_SoftmaxCrossEntropyLoss[] = {
    { .name = "SoftmaxCrossEntropyLoss", .since = 13, .infer = onxi_rule_softmax_cross_entropy,
      .flags = CONTEXT_FUNCTION | INFERS, ARITY(2, 3, 1, 2),
      .context_function_opsets = "13",
      .inputs = PORTS({ "scores", "T", DIFF }, { "labels", "Tind", NONDIFF }, { "weights", "T", OPT | NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }, { "log_prob", "T", OPT | DIFF }), .attrs = matrix_attrs_22,
      .types = matrix_types_22,
      BODY(22, { NULL, cross_entropy }) },
    { .name = "SoftmaxCrossEntropyLoss", .since = 12, .infer = onxi_rule_softmax_cross_entropy,
      .flags = CONTEXT_FUNCTION | INFERS, ARITY(2, 3, 1, 2),
      .context_function_opsets = "12",
      .inputs = PORTS({ "scores", "T", 0 }, { "labels", "Tind", 0 }, { "weights", "T", OPT }),
      .outputs = PORTS({ "output", "T", 0 }, { "log_prob", "T", OPT }), .attrs = matrix_attrs_22,
      .types = matrix_types_13,
      BODY(22, { NULL, cross_entropy }) },
    { .name = NULL },
};

/* ---- TopK ---- */

static const onxi_port top_k_inputs_24[] = {
    { "X", "T", DIFF },
    { "K", "tensor(int64)", NONDIFF },
    { 0 },
};

static const onxi_port top_k_outputs_24[] = {
    { "Values", "T", DIFF },
    { "Indices", "I", NONDIFF },
    { 0 },
};

static const onxi_attr top_k_attrs_24[] = {
    { "axis", INT, DEFAULT("-1") },
    { "largest", INT, DEFAULT("1") },
    { "sorted", INT, DEFAULT("1") },
    { 0 },
};

static const onxi_port top_k_outputs_10[] = {
    { "Values", "T", 0 },
    { "Indices", "I", 0 },
    { 0 },
};

static const onxi_type_constraint top_k_types_10[] = {
    { "T", T(FLOATING) },
    { "I", T(BIT(INT64)) },
    { 0 },
};

const onxi_schema onxi_op_TopK[] = {
    { .name = "TopK", .since = 24, .infer = onxi_rule_top_k, .flags = INFERS, ARITY(2, 2, 2, 2),
      .inputs = top_k_inputs_24, .outputs = top_k_outputs_24, .attrs = top_k_attrs_24,
      .types = TYPES({ "T", T(NUMERIC_13) }, { "I", T(BIT(INT64)) }) },
    { .name = "TopK", .since = 11, .infer = onxi_rule_top_k, .flags = INFERS, ARITY(2, 2, 2, 2),
      .inputs = top_k_inputs_24, .outputs = top_k_outputs_24, .attrs = top_k_attrs_24,
      .types = TYPES({ "T", T(NUMERIC) }, { "I", T(BIT(INT64)) }) },
    { .name = "TopK", .since = 10, .infer = onxi_rule_top_k, .flags = INFERS, ARITY(2, 2, 2, 2),
      .inputs = PORTS({ "X", "T", 0 }, { "K", "tensor(int64)", 0 }), .outputs = top_k_outputs_10,
      .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }), .types = top_k_types_10 },
    { .name = "TopK", .since = 1, .infer = onxi_rule_top_k, .flags = INFERS, ARITY(1, 1, 2, 2),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = top_k_outputs_10,
      .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }, { "k", INT, REQUIRED }), .types = top_k_types_10 },
    { .name = NULL },
};

/* math_activation.c - rows of the ONNX family "math": activation functions.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- Celu ---- */

const onxi_schema onxi_op_Celu[] = {
    { .name = "Celu", .since = 28, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "28", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Celu", .since = 12, .infer = onxi_rule_unary, .flags = CONTEXT_FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .context_function_opsets = "12", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }), .types = TYPES({ "T", T(BIT(FLOAT)) }) },
    { .name = NULL },
};

/* ---- Elu ---- */

const onxi_schema onxi_op_Elu[] = {
    { .name = "Elu", .since = 22, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Elu", .since = 6, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Elu", .since = 1, .infer = onxi_rule_unary, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }, { "consumed_inputs", INTS, OPTIONAL }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Gelu ---- */

WHEN(gelu_is_exact, onxi_call_text_is(call, "approximate", "none"))
WHEN(gelu_is_tanh, onxi_call_text_is(call, "approximate", "tanh"))

static const char gelu_exact[] = NODES(
    root = Constant <value = double {0.70710678118654752}> ()
    factor = CastLike (root, X)
    scaled = Mul (X, factor)
    bend = Erf (scaled)
);

static const char gelu_tanh[] = NODES(
    three = Constant <value_float = 3.0> ()
    power = CastLike (three, X)
    cube = Pow (X, power)
    of_cube = Constant <value = double {0.044715}> ()
    weight = CastLike (of_cube, X)
    bent = Mul (weight, cube)
    sum = Add (X, bent)
    root = Constant <value = double {0.79788456080286536}> ()
    factor = CastLike (root, X)
    scaled = Mul (factor, sum)
    bend = Tanh (scaled)
);

static const char gelu_rest[] = NODES(
    one = Constant <value_float = 1.0> ()
    whole = CastLike (one, X)
    gate = Add (whole, bend)
    point_five = Constant <value_float = 0.5> ()
    half = CastLike (point_five, X)
    halved = Mul (half, X)
    Y = Mul (halved, gate)
);

const onxi_schema onxi_op_Gelu[] = {
    { .name = "Gelu", .since = 20, .infer = onxi_rule_unary, .flags = CONTEXT_FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .context_function_opsets = "20", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "approximate", STRING, TEXT("none") }), .types = TYPES({ "T", T(FLOATING_13) }),
      BODY(18, { gelu_is_exact, gelu_exact }, { gelu_is_tanh, gelu_tanh }, { NULL, gelu_rest }) },
    { .name = NULL },
};

/* ---- HardSigmoid ---- */

static const onxi_attr hard_sigmoid_attrs_22[] = {
    { "alpha", FLOAT, DEFAULT("0.2") },
    { "beta", FLOAT, DEFAULT("0.5") },
    { 0 },
};

const onxi_schema onxi_op_HardSigmoid[] = {
    { .name = "HardSigmoid", .since = 22, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = hard_sigmoid_attrs_22, .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "HardSigmoid", .since = 6, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = hard_sigmoid_attrs_22, .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "HardSigmoid", .since = 1, .infer = onxi_rule_unary, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("0.2") }, { "beta", FLOAT, DEFAULT("0.5") },
                     { "consumed_inputs", INTS, OPTIONAL }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- HardSwish ---- */

const onxi_schema onxi_op_HardSwish[] = {
    { .name = "HardSwish", .since = 22, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "22", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "HardSwish", .since = 14, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "14", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Hardmax ---- */

const onxi_schema onxi_op_Hardmax[] = {
    { .name = "Hardmax", .since = 13, .infer = onxi_rule_axis, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }), .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Hardmax", .since = 11, .infer = onxi_rule_axis, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Hardmax", .since = 1, .infer = onxi_rule_axis, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- LeakyRelu ---- */

const onxi_schema onxi_op_LeakyRelu[] = {
    { .name = "LeakyRelu", .since = 16, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "16", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("0.01") }), .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "LeakyRelu", .since = 6, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("0.01") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "LeakyRelu", .since = 1, .infer = onxi_rule_unary, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("0.01") }, { "consumed_inputs", INTS, OPTIONAL }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- LogSoftmax ---- */

const onxi_schema onxi_op_LogSoftmax[] = {
    { .name = "LogSoftmax", .since = 13, .infer = onxi_rule_axis, .flags = CONTEXT_FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .context_function_opsets = "13 18", .inputs = PORTS({ "input", "T", DIFF }),
      .outputs = PORTS({ "output", "T", DIFF }), .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "LogSoftmax", .since = 11, .infer = onxi_rule_axis, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "LogSoftmax", .since = 1, .infer = onxi_rule_axis, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Mish ---- */

const onxi_schema onxi_op_Mish[] = {
    { .name = "Mish", .since = 22, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "22", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Mish", .since = 18, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- PRelu ---- */

static const onxi_port p_relu_inputs_16[] = {
    { "X", "T", DIFF },
    { "slope", "T", DIFF },
    { 0 },
};

static const onxi_port p_relu_inputs_7[] = {
    { "X", "T", 0 },
    { "slope", "T", 0 },
    { 0 },
};

const onxi_schema onxi_op_PRelu[] = {
    { .name = "PRelu", .since = 16, .infer = onxi_rule_prelu, .flags = FUNCTION | INFERS, ARITY(2, 2, 1, 1),
      .function_opsets = "16", .inputs = p_relu_inputs_16, .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "PRelu", .since = 9, .infer = onxi_rule_prelu, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = p_relu_inputs_16, .outputs = PORTS({ "Y", "T", DIFF }), .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "PRelu", .since = 7, .infer = onxi_rule_prelu, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = p_relu_inputs_7, .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "PRelu", .since = 6, .infer = onxi_rule_prelu, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = p_relu_inputs_7, .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "PRelu", .since = 1, .infer = onxi_rule_prelu, ARITY(2, 2, 1, 1),
      .inputs = p_relu_inputs_7, .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Relu ---- */

const onxi_schema onxi_op_Relu[] = {
    { .name = "Relu", .since = 14, .infer = onxi_rule_relu, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(SIGNED_NUMERIC_13) }) },
    { .name = "Relu", .since = 13, .infer = onxi_rule_relu, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Relu", .since = 6, .infer = onxi_rule_relu, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Relu", .since = 1, .infer = onxi_rule_relu, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Selu ---- */

static const onxi_attr selu_attrs_22[] = {
    { "alpha", FLOAT, DEFAULT("1.6732632") },
    { "gamma", FLOAT, DEFAULT("1.050701") },
    { 0 },
};

const onxi_schema onxi_op_Selu[] = {
    { .name = "Selu", .since = 22, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = selu_attrs_22, .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Selu", .since = 6, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = selu_attrs_22, .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Selu", .since = 1, .infer = onxi_rule_unary, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1.6732") }, { "consumed_inputs", INTS, OPTIONAL },
                     { "gamma", FLOAT, DEFAULT("1.0507") }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Sigmoid ---- */

const onxi_schema onxi_op_Sigmoid[] = {
    { .name = "Sigmoid", .since = 13, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Sigmoid", .since = 6, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Sigmoid", .since = 1, .infer = onxi_rule_unary, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Softmax ---- */

const onxi_schema onxi_op_Softmax[] = {
    { .name = "Softmax", .since = 13, .infer = onxi_rule_axis, .flags = CONTEXT_FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .context_function_opsets = "13 18", .inputs = PORTS({ "input", "T", DIFF }),
      .outputs = PORTS({ "output", "T", DIFF }), .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Softmax", .since = 11, .infer = onxi_rule_axis, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Softmax", .since = 1, .infer = onxi_rule_axis, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Softplus ---- */

const onxi_schema onxi_op_Softplus[] = {
    { .name = "Softplus", .since = 22, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Softplus", .since = 1, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Softsign ---- */

static const char softsign[] = NODES(
    one = Constant <value_float = 1.0> ()
    whole = CastLike (one, input)
    size = Abs (input)
    sum = Add (whole, size)
    output = Div (input, sum)
);

const onxi_schema onxi_op_Softsign[] = {
    { .name = "Softsign", .since = 22, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }), BODY(18, { NULL, softsign }) },
    { .name = "Softsign", .since = 1, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }), BODY(18, { NULL, softsign }) },
    { .name = NULL },
};

/* ---- SwiGLU ---- */

static const char swiglu[] = NODES(
    factor = Constant <value_float: float = @alpha> ()
    scale = CastLike (factor, A)
    scaled = Mul (scale, A)
    gate = Sigmoid (scaled)
    gated = Mul (A, gate)
    Y = Mul (gated, B)
);

const onxi_schema onxi_op_SwiGLU[] = {
    { .name = "SwiGLU", .since = 28, .infer = onxi_rule_swiglu, .flags = FUNCTION | INFERS, ARITY(2, 2, 1, 1),
      .function_opsets = "28", .inputs = PORTS({ "A", "T", DIFF }, { "B", "T", DIFF }),
      .outputs = PORTS({ "Y", "T", DIFF }), .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }),
      .types = TYPES({ "T", T(FLOATING_13) }),
      BODY(18, { NULL, swiglu }) },
    { .name = NULL },
};

/* ---- Swish ---- */

static const char swish[] = NODES(
    factor = Constant <value_float: float = @alpha> ()
    scale = CastLike (factor, X)
    scaled = Mul (scale, X)
    gate = Sigmoid (scaled)
    Y = Mul (X, gate)
);

const onxi_schema onxi_op_Swish[] = {
    { .name = "Swish", .since = 24, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "24", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING_13) }),
      BODY(18, { NULL, swish }) },
    { .name = NULL },
};

/* ---- ThresholdedRelu ---- */

const onxi_schema onxi_op_ThresholdedRelu[] = {
    { .name = "ThresholdedRelu", .since = 22, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "ThresholdedRelu", .since = 10, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

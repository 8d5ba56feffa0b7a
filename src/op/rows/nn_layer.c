/* nn_layer.c - rows of the ONNX family "nn": normalisation and other layers.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_attr layer_attrs_17[] = {
    { "axis", INT, DEFAULT("-1") },
    { "epsilon", FLOAT, DEFAULT("1e-05") },
    { "stash_type", INT, DEFAULT("1") },
    { 0 },
};

/* ---- BatchNormalization ---- */

static const onxi_attr batch_normalization_attrs_15[] = {
    { "epsilon", FLOAT, DEFAULT("1e-05") },
    { "momentum", FLOAT, DEFAULT("0.9") },
    { "training_mode", INT, DEFAULT("0") },
    { 0 },
};

static const onxi_port batch_normalization_inputs_7[] = {
    { "X", "T", 0 },
    { "scale", "T", 0 },
    { "B", "T", 0 },
    { "mean", "T", 0 },
    { "var", "T", 0 },
    { 0 },
};

static const onxi_port batch_normalization_outputs_7[] = {
    { "Y", "T", 0 },
    { "mean", "T", OPT },
    { "var", "T", OPT },
    { "saved_mean", "T", OPT },
    { "saved_var", "T", OPT },
    { 0 },
};

const onxi_schema onxi_op_BatchNormalization[] = {
    { .name = "BatchNormalization", .since = 15, .infer = onxi_rule_batch_normalization, .flags = INFERS,
      ARITY(5, 5, 1, 3),
      .inputs = PORTS({ "X", "T", DIFF }, { "scale", "T1", DIFF }, { "B", "T1", DIFF },
                      { "input_mean", "T2", DIFF }, { "input_var", "T2", DIFF }),
      .outputs = PORTS({ "Y", "T", DIFF }, { "running_mean", "T2", OPT | NONDIFF },
                       { "running_var", "T2", OPT | NONDIFF }),
      .attrs = batch_normalization_attrs_15,
      .types = TYPES({ "T", T(FLOATING_13) }, { "T1", T(FLOATING_13) }, { "T2", T(FLOATING_13) }) },
    { .name = "BatchNormalization", .since = 14, .infer = onxi_rule_batch_normalization, .flags = INFERS,
      ARITY(5, 5, 1, 3),
      .inputs = PORTS({ "X", "T", DIFF }, { "scale", "T", DIFF }, { "B", "T", DIFF }, { "input_mean", "U", DIFF },
                      { "input_var", "U", DIFF }),
      .outputs = PORTS({ "Y", "T", DIFF }, { "running_mean", "U", OPT | NONDIFF },
                       { "running_var", "U", OPT | NONDIFF }),
      .attrs = batch_normalization_attrs_15, .types = TYPES({ "T", T(FLOATING_13) }, { "U", T(FLOATING_13) }) },
    { .name = "BatchNormalization", .since = 9, .infer = onxi_rule_batch_normalization, .flags = INFERS,
      ARITY(5, 5, 1, 5),
      .inputs = PORTS({ "X", "T", DIFF }, { "scale", "T", DIFF }, { "B", "T", DIFF }, { "mean", "T", DIFF },
                      { "var", "T", DIFF }),
      .outputs = PORTS({ "Y", "T", DIFF }, { "mean", "T", OPT | NONDIFF }, { "var", "T", OPT | NONDIFF },
                       { "saved_mean", "T", OPT | NONDIFF }, { "saved_var", "T", OPT | NONDIFF }),
      .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }, { "momentum", FLOAT, DEFAULT("0.9") }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "BatchNormalization", .since = 7, .infer = onxi_rule_batch_normalization, .flags = INFERS,
      ARITY(5, 5, 1, 5),
      .inputs = batch_normalization_inputs_7, .outputs = batch_normalization_outputs_7,
      .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }, { "momentum", FLOAT, DEFAULT("0.9") },
                     { "spatial", INT, DEFAULT("1") }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "BatchNormalization", .since = 6, .infer = onxi_rule_batch_normalization, .flags = INFERS,
      ARITY(5, 5, 1, 5),
      .inputs = batch_normalization_inputs_7, .outputs = batch_normalization_outputs_7,
      .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }, { "is_test", INT, DEFAULT("0") },
                     { "momentum", FLOAT, DEFAULT("0.9") }, { "spatial", INT, DEFAULT("1") }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "BatchNormalization", .since = 1, .infer = onxi_rule_batch_normalization, ARITY(5, 5, 1, 5),
      .inputs = batch_normalization_inputs_7, .outputs = batch_normalization_outputs_7,
      .attrs = ATTRS({ "consumed_inputs", INTS, REQUIRED }, { "epsilon", FLOAT, DEFAULT("1e-05") },
                     { "is_test", INT, DEFAULT("0") }, { "momentum", FLOAT, DEFAULT("0.9") },
                     { "spatial", INT, DEFAULT("1") }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Dropout ---- */

static const onxi_port dropout_inputs_22[] = {
    { "data", "T", DIFF },
    { "ratio", "T1", OPT | NONDIFF },
    { "training_mode", "T2", OPT | NONDIFF },
    { 0 },
};

static const onxi_port dropout_outputs_22[] = {
    { "output", "T", DIFF },
    { "mask", "T2", OPT | NONDIFF },
    { 0 },
};

static const onxi_port dropout_outputs_7[] = {
    { "output", "T", 0 },
    { "mask", "T", OPT },
    { 0 },
};

const onxi_schema onxi_op_Dropout[] = {
    { .name = "Dropout", .since = 22, .infer = onxi_rule_dropout, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 3, 1, 2),
      .inputs = dropout_inputs_22, .outputs = dropout_outputs_22, .attrs = ATTRS({ "seed", INT, OPTIONAL }),
      .types = TYPES({ "T", T(FLOATING_19) }, { "T1", T(FLOATING_19) }, { "T2", T(BIT(BOOL)) }) },
    { .name = "Dropout", .since = 13, .infer = onxi_rule_dropout, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 3, 1, 2),
      .inputs = dropout_inputs_22, .outputs = dropout_outputs_22, .attrs = ATTRS({ "seed", INT, OPTIONAL }),
      .types = TYPES({ "T", T(FLOATING_13) }, { "T1", T(FLOATING) }, { "T2", T(BIT(BOOL)) }) },
    { .name = "Dropout", .since = 12, .infer = onxi_rule_dropout, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 3, 1, 2),
      .inputs = PORTS({ "data", "T", 0 }, { "ratio", "T1", OPT }, { "training_mode", "T2", OPT }),
      .outputs = PORTS({ "output", "T", 0 }, { "mask", "T2", OPT }), .attrs = ATTRS({ "seed", INT, OPTIONAL }),
      .types = TYPES({ "T", T(FLOATING) }, { "T1", T(FLOATING) }, { "T2", T(BIT(BOOL)) }) },
    { .name = "Dropout", .since = 10, .infer = onxi_rule_dropout, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 2),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }, { "mask", "T1", OPT }),
      .attrs = ATTRS({ "ratio", FLOAT, DEFAULT("0.5") }),
      .types = TYPES({ "T", T(FLOATING) }, { "T1", T(BIT(BOOL)) }) },
    { .name = "Dropout", .since = 7, .infer = onxi_rule_dropout, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 2),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = dropout_outputs_7,
      .attrs = ATTRS({ "ratio", FLOAT, DEFAULT("0.5") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Dropout", .since = 6, .infer = onxi_rule_dropout, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 2),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = dropout_outputs_7,
      .attrs = ATTRS({ "is_test", INT, DEFAULT("0") }, { "ratio", FLOAT, DEFAULT("0.5") }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Dropout", .since = 1, .infer = onxi_rule_dropout, .flags = NONDETERMINISTIC, ARITY(1, 1, 1, 2),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = dropout_outputs_7,
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }, { "is_test", INT, DEFAULT("0") },
                     { "ratio", FLOAT, DEFAULT("0.5") }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Flatten ---- */

const onxi_schema onxi_op_Flatten[] = {
    { .name = "Flatten", .since = 25, .infer = onxi_rule_flatten, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(ALL_25) }) },
    { .name = "Flatten", .since = 24, .infer = onxi_rule_flatten, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(ALL_24) }) },
    { .name = "Flatten", .since = 23, .infer = onxi_rule_flatten, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(ALL_23) }) },
    { .name = "Flatten", .since = 21, .infer = onxi_rule_flatten, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(ALL_21) }) },
    { .name = "Flatten", .since = 13, .infer = onxi_rule_flatten, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Flatten", .since = 11, .infer = onxi_rule_flatten, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(ALL) }) },
    { .name = "Flatten", .since = 9, .infer = onxi_rule_flatten, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(ALL) }) },
    { .name = "Flatten", .since = 1, .infer = onxi_rule_flatten, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- GroupNormalization ---- */

static const onxi_port group_normalization_inputs_21[] = {
    { "X", "T", DIFF },
    { "scale", "T", DIFF },
    { "bias", "T", DIFF },
    { 0 },
};

/* Each group of channels is normalised separately: [N, groups, everything else]. Version 18 scales groups, version 21
 * scales channels, and may compute in another type. */
static const char group_shape[] = NODES(
    shape = Shape (X)
    list = Constant <value_ints = [1]> ()
    group_count = Constant <value_int: int = @num_groups> ()
    groups = Reshape (group_count, list)
    batch = Shape <start = 0, end = 1> (X)
    channels = Shape <start = 1, end = 2> (X)
    places = Shape <start = 2> (X)
    places_more = Concat <axis = 0> (list, places)
    place_count = ReduceProd (places_more)
    elements = Mul (channels, place_count)
    each = Div (elements, groups)
    by_group = Concat <axis = 0> (batch, groups, each)
    by_channel = Concat <axis = 0> (batch, channels, place_count)
    column = Constant <value_ints = [-1, 1]> ()
    factors = Reshape (scale, column)
    shifts = Reshape (bias, column)
);
static const char group_stash[] = NODES(
    stashed = Cast <to: int = @stash_type> (X)
);
static const char group_no_stash[] = NODES(
    stashed = Identity (X)
);
static const char group_normal[] = NODES(
    grouped = Reshape <allowzero = 1> (stashed, by_group)
    mean = ReduceMean <axes = [2]> (grouped)
    centred = Sub (grouped, mean)
    squares = Mul (centred, centred)
    variance = ReduceMean <axes = [2]> (squares)
    least = Constant <value_float: float = @epsilon> ()
    epsilon = CastLike (least, variance)
    raised = Add (variance, epsilon)
    root = Sqrt (raised)
    normal_stashed = Div (centred, root)
    normal_grouped = CastLike (normal_stashed, X)
);
static const char group_channels[] = NODES(
    normal = Reshape <allowzero = 1> (normal_grouped, by_channel)
);
static const char group_groups[] = NODES(
    normal = Identity (normal_grouped)
);
static const char group_scaled[] = NODES(
    scaled = Mul (normal, factors)
    shifted = Add (scaled, shifts)
    Y = Reshape <allowzero = 1> (shifted, shape)
);

const onxi_schema onxi_op_GroupNormalization[] = {
    { .name = "GroupNormalization", .since = 21, .infer = onxi_rule_group_normalization, .flags = CONTEXT_FUNCTION, ARITY(3, 3, 1, 1),
      .context_function_opsets = "21", .inputs = group_normalization_inputs_21,
      .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }, { "num_groups", INT, REQUIRED },
                     { "stash_type", INT, DEFAULT("1") }),
      .types = TYPES({ "T", T(FLOATING_13) }),
      BODY(17, { NULL, group_shape }, { NULL, group_stash }, { NULL, group_normal }, { NULL, group_channels },
           { NULL, group_scaled }) },
    { .name = "GroupNormalization", .since = 18, .infer = onxi_rule_group_normalization, .flags = DEPRECATED | CONTEXT_FUNCTION,
      ARITY(3, 3, 1, 1),
      .context_function_opsets = "18", .inputs = group_normalization_inputs_21,
      .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }, { "num_groups", INT, REQUIRED }),
      .types = TYPES({ "T", T(FLOATING_13) }),
      BODY(17, { NULL, group_shape }, { NULL, group_no_stash }, { NULL, group_normal }, { NULL, group_groups },
           { NULL, group_scaled }) },
    { .name = NULL },
};

/* ---- InstanceNormalization ---- */

static const onxi_port instance_normalization_inputs_22[] = {
    { "input", "T", DIFF },
    { "scale", "T", DIFF },
    { "B", "T", DIFF },
    { 0 },
};

const onxi_schema onxi_op_InstanceNormalization[] = {
    { .name = "InstanceNormalization", .since = 22, .infer = onxi_rule_instance_normalization, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = instance_normalization_inputs_22, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }), .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "InstanceNormalization", .since = 6, .infer = onxi_rule_instance_normalization, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = instance_normalization_inputs_22, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "epsilon", FLOAT, DEFAULT("1e-05") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "InstanceNormalization", .since = 1, .infer = onxi_rule_instance_normalization, ARITY(3, 3, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }, { "scale", "T", 0 }, { "B", "T", 0 }),
      .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }, { "epsilon", FLOAT, DEFAULT("1e-05") }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- LRN ---- */

static const onxi_attr lrn_attrs_13[] = {
    { "alpha", FLOAT, DEFAULT("0.0001") },
    { "beta", FLOAT, DEFAULT("0.75") },
    { "bias", FLOAT, DEFAULT("1") },
    { "size", INT, REQUIRED },
    { 0 },
};

const onxi_schema onxi_op_LRN[] = {
    { .name = "LRN", .since = 13, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }), .attrs = lrn_attrs_13,
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "LRN", .since = 1, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .attrs = lrn_attrs_13,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- LayerNormalization ---- */

WHEN(layer_has_b, onxi_call_has_input(call, 2))
WHEN(layer_has_no_b, !onxi_call_has_input(call, 2))

/* The dims before the axis form rows, the others columns; per-row statistics have the first dims, then ones. */
static const char layer_normal[] = NODES(
    shape = Shape (X)
    outer = Shape <end: int = @axis> (X)
    stashed = Cast <to: int = @stash_type> (X)
    rows = Flatten <axis: int = @axis> (stashed)
    mean = ReduceMean <axes = [1]> (rows)
    centred = Sub (rows, mean)
    squares = Mul (centred, centred)
    variance = ReduceMean <axes = [1]> (squares)
    least = Constant <value_float: float = @epsilon> ()
    epsilon = CastLike (least, variance)
    raised = Add (variance, epsilon)
    deviation = Sqrt (raised)
    inverse = Reciprocal (deviation)
    normal_rows = Mul (centred, inverse)
    normal_stashed = Reshape <allowzero = 1> (normal_rows, shape)
    normal = CastLike (normal_stashed, X)
    scaled = Mul (normal, Scale)
    rank = Size (shape)
    outer_rank = Size (outer)
    inner_rank = Sub (rank, outer_rank)
    list = Constant <value_ints = [1]> ()
    inner_ranks = Reshape (inner_rank, list)
    ones = ConstantOfShape <value = int64[1] {1}> (inner_ranks)
    kept = Concat <axis = 0> (outer, ones)
    Mean = Reshape <allowzero = 1> (mean, kept)
    InvStdDev = Reshape <allowzero = 1> (inverse, kept)
);

static const char layer_with_b[] = NODES(
    Y = Add (scaled, B)
);

static const char layer_without_b[] = NODES(
    Y = Identity (scaled)
);

const onxi_schema onxi_op_LayerNormalization[] = {
    { .name = "LayerNormalization", .since = 17, .infer = onxi_rule_layer_normalization,
      .flags = CONTEXT_FUNCTION | INFERS, ARITY(2, 3, 1, 3),
      .context_function_opsets = "17 18", .inputs = PORTS({ "X", "T", 0 }, { "Scale", "T", 0 }, { "B", "T", OPT }),
      .outputs = PORTS({ "Y", "T", 0 }, { "Mean", "U", OPT }, { "InvStdDev", "U", OPT }), .attrs = layer_attrs_17,
      .types = TYPES({ "T", T(FLOATING_13) }, { "U", T(BIT(BFLOAT16) | BIT(FLOAT)) }),
      BODY(17, { NULL, layer_normal }, { layer_has_b, layer_with_b }, { layer_has_no_b, layer_without_b }) },
    { .name = NULL },
};

/* ---- LpNormalization ---- */

static const onxi_attr lp_normalization_attrs_22[] = {
    { "axis", INT, DEFAULT("-1") },
    { "p", INT, DEFAULT("2") },
    { 0 },
};

const onxi_schema onxi_op_LpNormalization[] = {
    { .name = "LpNormalization", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = lp_normalization_attrs_22, .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "LpNormalization", .since = 1, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = lp_normalization_attrs_22, .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- MeanVarianceNormalization ---- */

/* 1e-9 makes constant channels 0. */
static const char mean_variance[] = NODES(
    mean = ReduceMean <axes: ints = @axes> (X)
    centred = Sub (X, mean)
    squares = Mul (centred, centred)
    variance = ReduceMean <axes: ints = @axes> (squares)
    deviation = Sqrt (variance)
    least = Constant <value_float = 1e-9> ()
    epsilon = CastLike (least, X)
    divisor = Add (deviation, epsilon)
    Y = Div (centred, divisor)
);

const onxi_schema onxi_op_MeanVarianceNormalization[] = {
    { .name = "MeanVarianceNormalization", .since = 13, .infer = onxi_rule_unary, .flags = FUNCTION, ARITY(1, 1, 1, 1),
      .function_opsets = "13 18", .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "axes", INTS, DEFAULT("[0, 2, 3]") }), .types = TYPES({ "T", T(FLOATING_13) }),
      BODY(17, { NULL, mean_variance }) },
    { .name = "MeanVarianceNormalization", .since = 9, .infer = onxi_rule_unary, .flags = FUNCTION, ARITY(1, 1, 1, 1),
      .function_opsets = "9", .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "axes", INTS, DEFAULT("[0, 2, 3]") }), .types = TYPES({ "T", T(FLOATING) }),
      BODY(17, { NULL, mean_variance }) },
    { .name = NULL },
};

/* ---- RMSNormalization ---- */

static const char rms_normal[] = NODES(
    shape = Shape (X)
    stashed = Cast <to: int = @stash_type> (X)
    rows = Flatten <axis: int = @axis> (stashed)
    squares = Mul (rows, rows)
    mean = ReduceMean <axes = [1]> (squares)
    least = Constant <value_float: float = @epsilon> ()
    epsilon = CastLike (least, mean)
    raised = Add (mean, epsilon)
    root = Sqrt (raised)
    normal_rows = Div (rows, root)
    normal_stashed = Reshape <allowzero = 1> (normal_rows, shape)
    normal = CastLike (normal_stashed, scale)
    Y = Mul (normal, scale)
);

const onxi_schema onxi_op_RMSNormalization[] = {
    { .name = "RMSNormalization", .since = 23, .infer = onxi_rule_rms_normalization, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 2, 1, 1),
      .context_function_opsets = "23", .inputs = PORTS({ "X", "T", 0 }, { "scale", "V", 0 }),
      .outputs = PORTS({ "Y", "V", 0 }), .attrs = layer_attrs_17,
      .types = TYPES({ "T", T(FLOATING_13) }, { "V", T(FLOATING_13) }),
      BODY(17, { NULL, rms_normal }) },
    { .name = NULL },
};

/* ---- Shrink ---- */

/* In double, so that neither bounds nor integers are truncated before they are compared. */
static const char shrink[] = NODES(
    x = Cast <to = 11> (input)
    lambd_float = Constant <value_float: float = @lambd> ()
    high = Cast <to = 11> (lambd_float)
    low = Neg (high)
    bias_float = Constant <value_float: float = @bias> ()
    bias = Cast <to = 11> (bias_float)
    zero = Constant <value = double {0.0}> ()
    is_below = Less (x, low)
    is_above = Greater (x, high)
    raised = Add (x, bias)
    lowered = Sub (x, bias)
    outer = Where (is_above, lowered, zero)
    shrunk = Where (is_below, raised, outer)
    output = CastLike (shrunk, input)
);

const onxi_schema onxi_op_Shrink[] = {
    { .name = "Shrink", .since = 9, .infer = onxi_rule_unary, .flags = FUNCTION | INFERS, ARITY(1, 1, 1, 1),
      .function_opsets = "18", .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "bias", FLOAT, DEFAULT("0") }, { "lambd", FLOAT, DEFAULT("0.5") }),
      .types = TYPES({ "T", T(NUMERIC) }),
      BODY(18, { NULL, shrink }) },
    { .name = NULL },
};

/* ---- TfIdfVectorizer ---- */

const onxi_schema onxi_op_TfIdfVectorizer[] = {
    { .name = "TfIdfVectorizer", .since = 9, .infer = onxi_rule_tf_idf, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", NONDIFF }), .outputs = PORTS({ "Y", "T1", NONDIFF }),
      .attrs = ATTRS({ "max_gram_length", INT, REQUIRED }, { "max_skip_count", INT, REQUIRED },
                     { "min_gram_length", INT, REQUIRED }, { "mode", STRING, REQUIRED },
                     { "ngram_counts", INTS, REQUIRED }, { "ngram_indexes", INTS, REQUIRED },
                     { "pool_int64s", INTS, OPTIONAL }, { "pool_strings", STRINGS, OPTIONAL },
                     { "weights", FLOATS, OPTIONAL }),
      .types = TYPES({ "T", T(BIT(INT32) | BIT(INT64) | BIT(STRING)) }, { "T1", T(BIT(FLOAT)) }) },
    { .name = NULL },
};

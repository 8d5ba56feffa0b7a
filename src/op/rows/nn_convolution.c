/* nn_convolution.c - rows of the ONNX family "nn": convolution and pooling.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_attr convolution_attrs_1[] = {
    { "auto_pad", STRING, TEXT("NOTSET") },
    { "kernel_shape", INTS, REQUIRED },
    { "pads", INTS, OPTIONAL },
    { "strides", INTS, OPTIONAL },
    { 0 },
};

static const onxi_port conv_inputs_22[] = {
    { "X", "T", DIFF },
    { "W", "T", DIFF },
    { "B", "T", OPT | DIFF },
    { 0 },
};

static const onxi_attr convolution_attrs_22[] = {
    { "auto_pad", STRING, TEXT("NOTSET") },
    { "dilations", INTS, OPTIONAL },
    { "group", INT, DEFAULT("1") },
    { "kernel_shape", INTS, OPTIONAL },
    { "pads", INTS, OPTIONAL },
    { "strides", INTS, OPTIONAL },
    { 0 },
};

static const onxi_port conv_inputs_1[] = {
    { "X", "T", 0 },
    { "W", "T", 0 },
    { "B", "T", OPT },
    { 0 },
};

/* ---- AveragePool ---- */

static const onxi_attr average_pool_attrs_22[] = {
    { "auto_pad", STRING, TEXT("NOTSET") },
    { "ceil_mode", INT, DEFAULT("0") },
    { "count_include_pad", INT, DEFAULT("0") },
    { "dilations", INTS, OPTIONAL },
    { "kernel_shape", INTS, REQUIRED },
    { "pads", INTS, OPTIONAL },
    { "strides", INTS, OPTIONAL },
    { 0 },
};

static const onxi_attr average_pool_attrs_11[] = {
    { "auto_pad", STRING, TEXT("NOTSET") },
    { "ceil_mode", INT, DEFAULT("0") },
    { "count_include_pad", INT, DEFAULT("0") },
    { "kernel_shape", INTS, REQUIRED },
    { "pads", INTS, OPTIONAL },
    { "strides", INTS, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_AveragePool[] = {
    { .name = "AveragePool", .since = 22, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }), .attrs = average_pool_attrs_22,
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "AveragePool", .since = 19, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }), .attrs = average_pool_attrs_22,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "AveragePool", .since = 11, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }), .attrs = average_pool_attrs_11,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "AveragePool", .since = 10, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .attrs = average_pool_attrs_11,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "AveragePool", .since = 7, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "auto_pad", STRING, TEXT("NOTSET") }, { "count_include_pad", INT, DEFAULT("0") },
                     { "kernel_shape", INTS, REQUIRED }, { "pads", INTS, OPTIONAL }, { "strides", INTS, OPTIONAL }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "AveragePool", .since = 1, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .attrs = convolution_attrs_1,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- CausalConvWithState ---- */

const onxi_schema onxi_op_CausalConvWithState[] = {
    { .name = "CausalConvWithState", .since = 27, .infer = onxi_rule_causal_conv,
      .flags = CONTEXT_FUNCTION | INFERS | DETERMINISM_UNKNOWN, ARITY(2, 4, 2, 2),
      .context_function_opsets = "27",
      .inputs = PORTS({ "input", "T", DIFF }, { "weight", "T", DIFF }, { "bias", "T", OPT | DIFF },
                      { "past_state", "T", OPT | NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }, { "present_state", "T", NONDIFF }),
      .attrs = ATTRS({ "activation", STRING, TEXT("none") }), .types = TYPES({ "T", T(SCALES_19) }) },
    { .name = NULL },
};

/* ---- Col2Im ---- */

const onxi_schema onxi_op_Col2Im[] = {
    { .name = "Col2Im", .since = 18, .infer = onxi_rule_col2im, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }, { "image_shape", "tensor(int64)", NONDIFF },
                      { "block_shape", "tensor(int64)", NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "dilations", INTS, OPTIONAL }, { "pads", INTS, OPTIONAL }, { "strides", INTS, OPTIONAL }),
      .types = TYPES({ "T", T(ALL_13) }) },
    { .name = NULL },
};

/* ---- Conv ---- */

const onxi_schema onxi_op_Conv[] = {
    { .name = "Conv", .since = 22, .infer = onxi_rule_conv, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = conv_inputs_22, .outputs = PORTS({ "Y", "T", DIFF }), .attrs = convolution_attrs_22,
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Conv", .since = 11, .infer = onxi_rule_conv, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = conv_inputs_22, .outputs = PORTS({ "Y", "T", DIFF }), .attrs = convolution_attrs_22,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Conv", .since = 1, .infer = onxi_rule_conv, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = conv_inputs_1, .outputs = PORTS({ "Y", "T", 0 }), .attrs = convolution_attrs_22,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- ConvInteger ---- */

const onxi_schema onxi_op_ConvInteger[] = {
    { .name = "ConvInteger", .since = 10, .infer = onxi_rule_conv_integer, .flags = INFERS, ARITY(2, 4, 1, 1),
      .inputs = PORTS({ "x", "T1", 0 }, { "w", "T2", 0 }, { "x_zero_point", "T1", OPT },
                      { "w_zero_point", "T2", OPT }),
      .outputs = PORTS({ "y", "T3", 0 }), .attrs = convolution_attrs_22,
      .types = TYPES({ "T1", T(INTS_8) }, { "T2", T(INTS_8) }, { "T3", T(BIT(INT32)) }) },
    { .name = NULL },
};

/* ---- ConvTranspose ---- */

static const onxi_attr conv_transpose_attrs_22[] = {
    { "auto_pad", STRING, TEXT("NOTSET") },
    { "dilations", INTS, OPTIONAL },
    { "group", INT, DEFAULT("1") },
    { "kernel_shape", INTS, OPTIONAL },
    { "output_padding", INTS, OPTIONAL },
    { "output_shape", INTS, OPTIONAL },
    { "pads", INTS, OPTIONAL },
    { "strides", INTS, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_ConvTranspose[] = {
    { .name = "ConvTranspose", .since = 22, .infer = onxi_rule_conv_transpose, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = conv_inputs_22, .outputs = PORTS({ "Y", "T", DIFF }), .attrs = conv_transpose_attrs_22,
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "ConvTranspose", .since = 11, .infer = onxi_rule_conv_transpose, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = conv_inputs_22, .outputs = PORTS({ "Y", "T", DIFF }), .attrs = conv_transpose_attrs_22,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "ConvTranspose", .since = 1, .infer = onxi_rule_conv_transpose, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = conv_inputs_1, .outputs = PORTS({ "Y", "T", 0 }), .attrs = conv_transpose_attrs_22,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- DeformConv ---- */

static const onxi_port deform_conv_inputs_22[] = {
    { "X", "T", 0 },
    { "W", "T", 0 },
    { "offset", "T", 0 },
    { "B", "T", OPT },
    { "mask", "T", OPT },
    { 0 },
};

static const onxi_attr deform_conv_attrs_22[] = {
    { "dilations", INTS, OPTIONAL },
    { "group", INT, DEFAULT("1") },
    { "kernel_shape", INTS, OPTIONAL },
    { "offset_group", INT, DEFAULT("1") },
    { "pads", INTS, OPTIONAL },
    { "strides", INTS, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_DeformConv[] = {
    { .name = "DeformConv", .since = 22, .infer = onxi_rule_deform_conv, .flags = INFERS, ARITY(3, 5, 1, 1),
      .inputs = deform_conv_inputs_22, .outputs = PORTS({ "Y", "T", 0 }), .attrs = deform_conv_attrs_22,
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "DeformConv", .since = 19, .infer = onxi_rule_deform_conv, .flags = INFERS, ARITY(3, 5, 1, 1),
      .inputs = deform_conv_inputs_22, .outputs = PORTS({ "Y", "T", 0 }), .attrs = deform_conv_attrs_22,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- GlobalAveragePool ---- */

const onxi_schema onxi_op_GlobalAveragePool[] = {
    { .name = "GlobalAveragePool", .since = 22, .infer = onxi_rule_global_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "GlobalAveragePool", .since = 1, .infer = onxi_rule_global_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- GlobalLpPool ---- */

const onxi_schema onxi_op_GlobalLpPool[] = {
    { .name = "GlobalLpPool", .since = 22, .infer = onxi_rule_global_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "p", INT, DEFAULT("2") }), .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "GlobalLpPool", .since = 2, .infer = onxi_rule_global_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .attrs = ATTRS({ "p", INT, DEFAULT("2") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "GlobalLpPool", .since = 1, .infer = onxi_rule_global_pool, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "p", FLOAT, DEFAULT("2") }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- GlobalMaxPool ---- */

const onxi_schema onxi_op_GlobalMaxPool[] = {
    { .name = "GlobalMaxPool", .since = 22, .infer = onxi_rule_global_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "GlobalMaxPool", .since = 1, .infer = onxi_rule_global_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- LpPool ---- */

static const onxi_attr lp_pool_attrs_22[] = {
    { "auto_pad", STRING, TEXT("NOTSET") },
    { "ceil_mode", INT, DEFAULT("0") },
    { "dilations", INTS, OPTIONAL },
    { "kernel_shape", INTS, REQUIRED },
    { "p", INT, DEFAULT("2") },
    { "pads", INTS, OPTIONAL },
    { "strides", INTS, OPTIONAL },
    { 0 },
};

static const onxi_attr lp_pool_attrs_11[] = {
    { "auto_pad", STRING, TEXT("NOTSET") },
    { "kernel_shape", INTS, REQUIRED },
    { "p", INT, DEFAULT("2") },
    { "pads", INTS, OPTIONAL },
    { "strides", INTS, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_LpPool[] = {
    { .name = "LpPool", .since = 22, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }), .attrs = lp_pool_attrs_22,
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "LpPool", .since = 18, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }), .attrs = lp_pool_attrs_22,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "LpPool", .since = 11, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }), .attrs = lp_pool_attrs_11,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "LpPool", .since = 2, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .attrs = lp_pool_attrs_11,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "LpPool", .since = 1, .infer = onxi_rule_pool, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "auto_pad", STRING, TEXT("NOTSET") }, { "kernel_shape", INTS, OPTIONAL },
                     { "p", FLOAT, DEFAULT("2") }, { "pads", INTS, OPTIONAL }, { "strides", INTS, OPTIONAL }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- MaxPool ---- */

static const onxi_port max_pool_outputs_22[] = {
    { "Y", "T", DIFF },
    { "Indices", "I", OPT | NONDIFF },
    { 0 },
};

static const onxi_attr max_pool_attrs_22[] = {
    { "auto_pad", STRING, TEXT("NOTSET") },
    { "ceil_mode", INT, DEFAULT("0") },
    { "dilations", INTS, OPTIONAL },
    { "kernel_shape", INTS, REQUIRED },
    { "pads", INTS, OPTIONAL },
    { "storage_order", INT, DEFAULT("0") },
    { "strides", INTS, OPTIONAL },
    { 0 },
};

static const onxi_port max_pool_outputs_11[] = {
    { "Y", "T", 0 },
    { "Indices", "I", OPT },
    { 0 },
};

static const onxi_type_constraint max_pool_types_11[] = {
    { "T", T(FLOATING) },
    { "I", T(BIT(INT64)) },
    { 0 },
};

const onxi_schema onxi_op_MaxPool[] = {
    { .name = "MaxPool", .since = 22, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 2),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = max_pool_outputs_22, .attrs = max_pool_attrs_22,
      .types = TYPES({ "T", T(POOL_22) }, { "I", T(BIT(INT64)) }) },
    { .name = "MaxPool", .since = 12, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 2),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = max_pool_outputs_22, .attrs = max_pool_attrs_22,
      .types = TYPES({ "T", T(POOL_12) }, { "I", T(BIT(INT64)) }) },
    { .name = "MaxPool", .since = 11, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 2),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = max_pool_outputs_11, .attrs = max_pool_attrs_22,
      .types = max_pool_types_11 },
    { .name = "MaxPool", .since = 10, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 2),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = max_pool_outputs_11, .attrs = max_pool_attrs_22,
      .types = max_pool_types_11 },
    { .name = "MaxPool", .since = 8, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 2),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = max_pool_outputs_11,
      .attrs = ATTRS({ "auto_pad", STRING, TEXT("NOTSET") }, { "kernel_shape", INTS, REQUIRED },
                     { "pads", INTS, OPTIONAL }, { "storage_order", INT, DEFAULT("0") },
                     { "strides", INTS, OPTIONAL }),
      .types = max_pool_types_11 },
    { .name = "MaxPool", .since = 1, .infer = onxi_rule_pool, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .attrs = convolution_attrs_1,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- MaxRoiPool ---- */

static const onxi_port max_roi_pool_inputs_22[] = {
    { "X", "T", DIFF },
    { "rois", "T", NONDIFF },
    { 0 },
};

static const onxi_attr max_roi_pool_attrs_22[] = {
    { "pooled_shape", INTS, REQUIRED },
    { "spatial_scale", FLOAT, DEFAULT("1") },
    { 0 },
};

const onxi_schema onxi_op_MaxRoiPool[] = {
    { .name = "MaxRoiPool", .since = 22, .infer = onxi_rule_max_roi_pool, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = max_roi_pool_inputs_22, .outputs = PORTS({ "Y", "T", DIFF }), .attrs = max_roi_pool_attrs_22,
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "MaxRoiPool", .since = 1, .infer = onxi_rule_max_roi_pool, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = max_roi_pool_inputs_22, .outputs = PORTS({ "Y", "T", DIFF }), .attrs = max_roi_pool_attrs_22,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- MaxUnpool ---- */

static const onxi_port max_unpool_inputs_22[] = {
    { "X", "T1", DIFF },
    { "I", "T2", NONDIFF },
    { "output_shape", "T2", OPT | NONDIFF },
    { 0 },
};

static const onxi_attr max_unpool_attrs_22[] = {
    { "kernel_shape", INTS, REQUIRED },
    { "pads", INTS, OPTIONAL },
    { "strides", INTS, OPTIONAL },
    { 0 },
};

static const onxi_type_constraint max_unpool_types_11[] = {
    { "T1", T(FLOATING) },
    { "T2", T(BIT(INT64)) },
    { 0 },
};

const onxi_schema onxi_op_MaxUnpool[] = {
    { .name = "MaxUnpool", .since = 22, .infer = onxi_rule_max_unpool, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = max_unpool_inputs_22, .outputs = PORTS({ "output", "T1", DIFF }), .attrs = max_unpool_attrs_22,
      .types = TYPES({ "T1", T(FLOATING_13) }, { "T2", T(BIT(INT64)) }) },
    { .name = "MaxUnpool", .since = 11, .infer = onxi_rule_max_unpool, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = max_unpool_inputs_22, .outputs = PORTS({ "output", "T1", DIFF }), .attrs = max_unpool_attrs_22,
      .types = max_unpool_types_11 },
    { .name = "MaxUnpool", .since = 9, .infer = onxi_rule_max_unpool, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = PORTS({ "X", "T1", 0 }, { "I", "T2", 0 }, { "output_shape", "T2", OPT }),
      .outputs = PORTS({ "output", "T1", 0 }), .attrs = max_unpool_attrs_22, .types = max_unpool_types_11 },
    { .name = NULL },
};

/* ---- QLinearConv ---- */

const onxi_schema onxi_op_QLinearConv[] = {
    { .name = "QLinearConv", .since = 10, .infer = onxi_rule_qlinear_conv, .flags = INFERS, ARITY(8, 9, 1, 1),
      .inputs = PORTS({ "x", "T1", 0 }, { "x_scale", "tensor(float)", 0 }, { "x_zero_point", "T1", 0 },
                      { "w", "T2", 0 }, { "w_scale", "tensor(float)", 0 }, { "w_zero_point", "T2", 0 },
                      { "y_scale", "tensor(float)", 0 }, { "y_zero_point", "T3", 0 }, { "B", "T4", OPT }),
      .outputs = PORTS({ "y", "T3", 0 }), .attrs = convolution_attrs_22,
      .types = TYPES({ "T1", T(INTS_8) }, { "T2", T(INTS_8) }, { "T3", T(INTS_8) }, { "T4", T(BIT(INT32)) }) },
    { .name = NULL },
};

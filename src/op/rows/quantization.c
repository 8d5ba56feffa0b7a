/* quantization.c - rows of the ONNX family "quantization": linear quantization.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- DequantizeLinear ---- */

static const onxi_port dequantize_linear_inputs_28[] = {
    { "x", "T1", 0 },
    { "x_scale", "T2", 0 },
    { "x_zero_point", "T1", OPT },
    { 0 },
};

static const onxi_attr dequantize_linear_attrs_28[] = {
    { "axis", INT, DEFAULT("1") },
    { "block_size", INT, DEFAULT("0") },
    { "output_dtype", INT, DEFAULT("0") },
    { 0 },
};

static const onxi_port dequantize_linear_inputs_13[] = {
    { "x", "T", 0 },
    { "x_scale", "tensor(float)", 0 },
    { "x_zero_point", "T", OPT },
    { 0 },
};

const onxi_schema onxi_op_DequantizeLinear[] = {
    { .name = "DequantizeLinear", .since = 28, .infer = onxi_rule_dequantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = dequantize_linear_inputs_28, .outputs = PORTS({ "y", "T3", 0 }),
      .attrs = dequantize_linear_attrs_28,
      .types = TYPES({ "T1", T(QUANT_28) }, { "T2", T(SCALES_24) }, { "T3", T(SCALES_19) }) },
    { .name = "DequantizeLinear", .since = 25, .infer = onxi_rule_dequantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = dequantize_linear_inputs_28, .outputs = PORTS({ "y", "T3", 0 }),
      .attrs = dequantize_linear_attrs_28,
      .types = TYPES({ "T1", T(QUANT_25) }, { "T2", T(SCALES_24) }, { "T3", T(SCALES_19) }) },
    { .name = "DequantizeLinear", .since = 24, .infer = onxi_rule_dequantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = dequantize_linear_inputs_28, .outputs = PORTS({ "y", "T3", 0 }),
      .attrs = dequantize_linear_attrs_28,
      .types = TYPES({ "T1", T(QUANT_23) }, { "T2", T(SCALES_24) }, { "T3", T(SCALES_19) }) },
    { .name = "DequantizeLinear", .since = 23, .infer = onxi_rule_dequantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = dequantize_linear_inputs_28, .outputs = PORTS({ "y", "T3", 0 }),
      .attrs = dequantize_linear_attrs_28,
      .types = TYPES({ "T1", T(QUANT_23) }, { "T2", T(SCALES_19) }, { "T3", T(SCALES_19) }) },
    { .name = "DequantizeLinear", .since = 21, .infer = onxi_rule_dequantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = dequantize_linear_inputs_28, .outputs = PORTS({ "y", "T2", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }, { "block_size", INT, DEFAULT("0") }),
      .types = TYPES({ "T1", T(QUANT_21) }, { "T2", T(SCALES_19) }) },
    { .name = "DequantizeLinear", .since = 19, .infer = onxi_rule_dequantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = dequantize_linear_inputs_28, .outputs = PORTS({ "y", "T2", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T1", T(QUANT_19) }, { "T2", T(SCALES_19) }) },
    { .name = "DequantizeLinear", .since = 13, .infer = onxi_rule_dequantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = dequantize_linear_inputs_13, .outputs = PORTS({ "y", "tensor(float)", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = TYPES({ "T", T(QUANT_10) }) },
    { .name = "DequantizeLinear", .since = 10, .infer = onxi_rule_dequantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = dequantize_linear_inputs_13, .outputs = PORTS({ "y", "tensor(float)", 0 }),
      .types = TYPES({ "T", T(QUANT_10) }) },
    { .name = NULL },
};

/* ---- DynamicQuantizeLinear ---- */

/* The range always includes 0, so that 0 is represented exactly. If all elements are 0, so is the scale, and the
 * division uses 1 instead. */
static const char dynamic_quantize[] = NODES(
    zero = Constant <value_float = 0.0> ()
    one = Constant <value_float = 1.0> ()
    highest = Constant <value_float = 255.0> ()
    x_least = ReduceMin <keepdims = 0> (x)
    x_most = ReduceMax <keepdims = 0> (x)
    least = Min (x_least, zero)
    most = Max (x_most, zero)
    span = Sub (most, least)
    y_scale = Div (span, highest)
    is_flat = Equal (y_scale, zero)
    divisor = Where (is_flat, one, y_scale)
    below = Neg (least)
    exact_point = Div (below, divisor)
    near_point = Clip (exact_point, zero, highest)
    point = Round (near_point)
    y_zero_point = Cast <to = 2> (point)
    steps = Div (x, divisor)
    whole_steps = Round (steps)
    shifted = Add (whole_steps, point)
    bounded = Clip (shifted, zero, highest)
    y = Cast <to = 2> (bounded)
);

const onxi_schema onxi_op_DynamicQuantizeLinear[] = {
    { .name = "DynamicQuantizeLinear", .since = 11, .infer = onxi_rule_dynamic_quantize_linear,
      .flags = FUNCTION | INFERS, ARITY(1, 1, 3, 3),
      .function_opsets = "11", .inputs = PORTS({ "x", "T1", 0 }),
      .outputs = PORTS({ "y", "T2", 0 }, { "y_scale", "tensor(float)", 0 }, { "y_zero_point", "T2", 0 }),
      .types = TYPES({ "T1", T(BIT(FLOAT)) }, { "T2", T(BIT(UINT8)) }),
      BODY(17, { NULL, dynamic_quantize }) },
    { .name = NULL },
};

/* ---- QuantizeLinear ---- */

static const onxi_port quantize_linear_inputs_28[] = {
    { "x", "T1", 0 },
    { "y_scale", "T2", 0 },
    { "y_zero_point", "T3", OPT },
    { 0 },
};

static const onxi_attr quantize_linear_attrs_28[] = {
    { "axis", INT, DEFAULT("1") },
    { "block_size", INT, DEFAULT("0") },
    { "output_dtype", INT, DEFAULT("0") },
    { "precision", INT, DEFAULT("0") },
    { "saturate", INT, DEFAULT("1") },
    { 0 },
};

static const onxi_port quantize_linear_inputs_21[] = {
    { "x", "T1", 0 },
    { "y_scale", "T1", 0 },
    { "y_zero_point", "T2", OPT },
    { 0 },
};

static const onxi_port quantize_linear_inputs_13[] = {
    { "x", "T1", 0 },
    { "y_scale", "tensor(float)", 0 },
    { "y_zero_point", "T2", OPT },
    { 0 },
};

static const onxi_type_constraint quantize_linear_types_13[] = {
    { "T1", T(BIT(FLOAT) | BIT(INT32)) },
    { "T2", T(INTS_8) },
    { 0 },
};

const onxi_schema onxi_op_QuantizeLinear[] = {
    { .name = "QuantizeLinear", .since = 28, .infer = onxi_rule_quantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = quantize_linear_inputs_28, .outputs = PORTS({ "y", "T3", 0 }), .attrs = quantize_linear_attrs_28,
      .types = TYPES({ "T1", T(BIT(BFLOAT16) | BIT(FLOAT) | BIT(FLOAT16) | BIT(INT32)) },
                     { "T2", T(BIT(BFLOAT16) | BIT(FLOAT) | BIT(FLOAT16) | BIT(FLOAT8E8M0) | BIT(INT32)) },
                     { "T3", T(QUANT_OUT_28) }) },
    { .name = "QuantizeLinear", .since = 25, .infer = onxi_rule_quantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = quantize_linear_inputs_28, .outputs = PORTS({ "y", "T3", 0 }), .attrs = quantize_linear_attrs_28,
      .types = TYPES({ "T1", T(BIT(BFLOAT16) | BIT(FLOAT) | BIT(FLOAT16) | BIT(INT32)) },
                     { "T2", T(BIT(BFLOAT16) | BIT(FLOAT) | BIT(FLOAT16) | BIT(FLOAT8E8M0) | BIT(INT32)) },
                     { "T3", T(QUANT_OUT_25) }) },
    { .name = "QuantizeLinear", .since = 24, .infer = onxi_rule_quantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = quantize_linear_inputs_28, .outputs = PORTS({ "y", "T3", 0 }), .attrs = quantize_linear_attrs_28,
      .types = TYPES({ "T1", T(BIT(BFLOAT16) | BIT(FLOAT) | BIT(FLOAT16) | BIT(INT32)) },
                     { "T2", T(BIT(BFLOAT16) | BIT(FLOAT) | BIT(FLOAT16) | BIT(FLOAT8E8M0) | BIT(INT32)) },
                     { "T3", T(QUANT_OUT_23) }) },
    { .name = "QuantizeLinear", .since = 23, .infer = onxi_rule_quantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = quantize_linear_inputs_28, .outputs = PORTS({ "y", "T3", 0 }), .attrs = quantize_linear_attrs_28,
      .types = TYPES({ "T1", T(BIT(BFLOAT16) | BIT(FLOAT) | BIT(FLOAT16) | BIT(INT32)) },
                     { "T2", T(BIT(BFLOAT16) | BIT(FLOAT) | BIT(FLOAT16) | BIT(INT32)) },
                     { "T3", T(QUANT_OUT_23) }) },
    { .name = "QuantizeLinear", .since = 21, .infer = onxi_rule_quantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = quantize_linear_inputs_21, .outputs = PORTS({ "y", "T2", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }, { "block_size", INT, DEFAULT("0") },
                     { "output_dtype", INT, DEFAULT("0") }, { "saturate", INT, DEFAULT("1") }),
      .types = TYPES({ "T1", T(BIT(BFLOAT16) | BIT(FLOAT) | BIT(FLOAT16) | BIT(INT32)) }, { "T2", T(QUANT_OUT_21) }) },
    { .name = "QuantizeLinear", .since = 19, .infer = onxi_rule_quantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = quantize_linear_inputs_21, .outputs = PORTS({ "y", "T2", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }, { "saturate", INT, DEFAULT("1") }),
      .types = TYPES({ "T1", T(BIT(BFLOAT16) | BIT(FLOAT) | BIT(FLOAT16) | BIT(INT32)) }, { "T2", T(QUANT_OUT_19) }) },
    { .name = "QuantizeLinear", .since = 13, .infer = onxi_rule_quantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = quantize_linear_inputs_13, .outputs = PORTS({ "y", "T2", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("1") }), .types = quantize_linear_types_13 },
    { .name = "QuantizeLinear", .since = 10, .infer = onxi_rule_quantize_linear, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = quantize_linear_inputs_13, .outputs = PORTS({ "y", "T2", 0 }), .types = quantize_linear_types_13 },
    { .name = NULL },
};

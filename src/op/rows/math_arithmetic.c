/* math_arithmetic.c - rows of the ONNX family "math": element-wise arithmetic: sums, products, roots, rounding.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_port binary_inputs_14[] = {
    { "A", "T", DIFF },
    { "B", "T", DIFF },
    { 0 },
};

static const onxi_port binary_inputs_7[] = {
    { "A", "T", 0 },
    { "B", "T", 0 },
    { 0 },
};

static const onxi_attr binary_attrs_6[] = {
    { "axis", INT, OPTIONAL },
    { "broadcast", INT, DEFAULT("0") },
    { 0 },
};

static const onxi_attr binary_attrs_1[] = {
    { "axis", INT, OPTIONAL },
    { "broadcast", INT, DEFAULT("0") },
    { "consumed_inputs", INTS, OPTIONAL },
    { 0 },
};

static const onxi_port cum_inputs_26[] = {
    { "x", "T", DIFF },
    { "axis", "T2", NONDIFF },
    { 0 },
};

static const onxi_attr cum_attrs_26[] = {
    { "exclusive", INT, DEFAULT("0") },
    { "reverse", INT, DEFAULT("0") },
    { 0 },
};

static const onxi_type_constraint cum_types_26[] = {
    { "T", T(WIDE_NUMERIC_13) },
    { "T2", T(INDEX) },
    { 0 },
};

/* ---- Abs ---- */

const onxi_schema onxi_op_Abs[] = {
    { .name = "Abs", .since = 13, .infer = onxi_rule_abs, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Abs", .since = 6, .infer = onxi_rule_abs, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = "Abs", .since = 1, .infer = onxi_rule_abs, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Add ---- */

const onxi_schema onxi_op_Add[] = {
    { .name = "Add", .since = 14, .infer = onxi_rule_add, .flags = INFERS | PROPAGATES, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_14, .outputs = PORTS({ "C", "T", DIFF }), .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Add", .since = 13, .infer = onxi_rule_add, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_14, .outputs = PORTS({ "C", "T", DIFF }), .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "Add", .since = 7, .infer = onxi_rule_add, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "Add", .since = 6, .infer = onxi_rule_add, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .attrs = binary_attrs_6,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "Add", .since = 1, .infer = onxi_rule_add, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .attrs = binary_attrs_1,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Ceil ---- */

const onxi_schema onxi_op_Ceil[] = {
    { .name = "Ceil", .since = 13, .infer = onxi_rule_round, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", NONDIFF }), .outputs = PORTS({ "Y", "T", NONDIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Ceil", .since = 6, .infer = onxi_rule_round, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Ceil", .since = 1, .infer = onxi_rule_round, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Clip ---- */

static const onxi_port clip_inputs_12[] = {
    { "input", "T", 0 },
    { "min", "T", OPT },
    { "max", "T", OPT },
    { 0 },
};

const onxi_schema onxi_op_Clip[] = {
    { .name = "Clip", .since = 13, .infer = onxi_rule_clip, .flags = CONTEXT_FUNCTION | INFERS, ARITY(1, 3, 1, 1),
      .context_function_opsets = "13",
      .inputs = PORTS({ "input", "T", DIFF }, { "min", "T", OPT | NONDIFF }, { "max", "T", OPT | NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }), .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Clip", .since = 12, .infer = onxi_rule_clip, .flags = INFERS, ARITY(1, 3, 1, 1),
      .inputs = clip_inputs_12, .outputs = PORTS({ "output", "T", 0 }), .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = "Clip", .since = 11, .infer = onxi_rule_clip, .flags = INFERS, ARITY(1, 3, 1, 1),
      .inputs = clip_inputs_12, .outputs = PORTS({ "output", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Clip", .since = 6, .infer = onxi_rule_clip, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "max", FLOAT, DEFAULT("3.4028235e+38") }, { "min", FLOAT, DEFAULT("-3.4028235e+38") }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Clip", .since = 1, .infer = onxi_rule_clip, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }, { "max", FLOAT, OPTIONAL }, { "min", FLOAT, OPTIONAL }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- CumProd ---- */

const onxi_schema onxi_op_CumProd[] = {
    { .name = "CumProd", .since = 26, .infer = onxi_rule_cumulate, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = cum_inputs_26, .outputs = PORTS({ "y", "T", DIFF }), .attrs = cum_attrs_26, .types = cum_types_26 },
    { .name = NULL },
};

/* ---- CumSum ---- */

const onxi_schema onxi_op_CumSum[] = {
    { .name = "CumSum", .since = 14, .infer = onxi_rule_cumulate, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = cum_inputs_26, .outputs = PORTS({ "y", "T", DIFF }), .attrs = cum_attrs_26, .types = cum_types_26 },
    { .name = "CumSum", .since = 11, .infer = onxi_rule_cumulate, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = cum_inputs_26, .outputs = PORTS({ "y", "T", DIFF }), .attrs = cum_attrs_26,
      .types = TYPES({ "T", T(BIT(DOUBLE) | BIT(FLOAT) | BIT(INT32) | BIT(INT64) | BIT(UINT32) | BIT(UINT64)) },
                     { "T2", T(INDEX) }) },
    { .name = NULL },
};

/* ---- Div ---- */

const onxi_schema onxi_op_Div[] = {
    { .name = "Div", .since = 14, .infer = onxi_rule_div, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_14, .outputs = PORTS({ "C", "T", DIFF }), .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Div", .since = 13, .infer = onxi_rule_div, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_14, .outputs = PORTS({ "C", "T", DIFF }), .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "Div", .since = 7, .infer = onxi_rule_div, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "Div", .since = 6, .infer = onxi_rule_div, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .attrs = binary_attrs_6,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "Div", .since = 1, .infer = onxi_rule_div, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .attrs = binary_attrs_1,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Erf ---- */

const onxi_schema onxi_op_Erf[] = {
    { .name = "Erf", .since = 13, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Erf", .since = 9, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = NULL },
};

/* ---- Exp ---- */

const onxi_schema onxi_op_Exp[] = {
    { .name = "Exp", .since = 13, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Exp", .since = 6, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Exp", .since = 1, .infer = onxi_rule_unary, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Expand ---- */

const onxi_schema onxi_op_Expand[] = {
    { .name = "Expand", .since = 13, .infer = onxi_rule_expand, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }, { "shape", "tensor(int64)", NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Expand", .since = 8, .infer = onxi_rule_expand, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }, { "shape", "tensor(int64)", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- Floor ---- */

const onxi_schema onxi_op_Floor[] = {
    { .name = "Floor", .since = 13, .infer = onxi_rule_floor, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", NONDIFF }), .outputs = PORTS({ "Y", "T", NONDIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Floor", .since = 6, .infer = onxi_rule_floor, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Floor", .since = 1, .infer = onxi_rule_floor, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Log ---- */

const onxi_schema onxi_op_Log[] = {
    { .name = "Log", .since = 13, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Log", .since = 6, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Log", .since = 1, .infer = onxi_rule_unary, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Max ---- */

const onxi_schema onxi_op_Max[] = {
    { .name = "Max", .since = 13, .infer = onxi_rule_max, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC | DIFF }), .outputs = PORTS({ "max", "T", DIFF }),
      .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Max", .since = 12, .infer = onxi_rule_max, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "max", "T", 0 }),
      .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = "Max", .since = 8, .infer = onxi_rule_max, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "max", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Max", .since = 6, .infer = onxi_rule_max, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "max", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Max", .since = 1, .infer = onxi_rule_max, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "max", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Mean ---- */

const onxi_schema onxi_op_Mean[] = {
    { .name = "Mean", .since = 13, .infer = onxi_rule_mean, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC | DIFF }), .outputs = PORTS({ "mean", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Mean", .since = 8, .infer = onxi_rule_mean, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "mean", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Mean", .since = 6, .infer = onxi_rule_mean, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "mean", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Mean", .since = 1, .infer = onxi_rule_mean, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "mean", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Min ---- */

const onxi_schema onxi_op_Min[] = {
    { .name = "Min", .since = 13, .infer = onxi_rule_min, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC | DIFF }), .outputs = PORTS({ "min", "T", DIFF }),
      .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Min", .since = 12, .infer = onxi_rule_min, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "min", "T", 0 }),
      .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = "Min", .since = 8, .infer = onxi_rule_min, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "min", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Min", .since = 6, .infer = onxi_rule_min, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "min", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Min", .since = 1, .infer = onxi_rule_min, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "min", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Mod ---- */

const onxi_schema onxi_op_Mod[] = {
    { .name = "Mod", .since = 28, .infer = onxi_rule_mod, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "A", "T", DIFF }, { "B", "T", NONDIFF }), .outputs = PORTS({ "C", "T", DIFF }),
      .attrs = ATTRS({ "fmod", INT, DEFAULT("0") }), .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Mod", .since = 13, .infer = onxi_rule_mod, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "A", "T", DIFF }, { "B", "T", NONDIFF }), .outputs = PORTS({ "C", "T", DIFF }),
      .attrs = ATTRS({ "fmod", INT, DEFAULT("0") }), .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Mod", .since = 10, .infer = onxi_rule_mod, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .attrs = ATTRS({ "fmod", INT, DEFAULT("0") }),
      .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = NULL },
};

/* ---- Mul ---- */

const onxi_schema onxi_op_Mul[] = {
    { .name = "Mul", .since = 14, .infer = onxi_rule_mul, .flags = INFERS | PROPAGATES, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_14, .outputs = PORTS({ "C", "T", DIFF }), .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Mul", .since = 13, .infer = onxi_rule_mul, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_14, .outputs = PORTS({ "C", "T", DIFF }), .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "Mul", .since = 7, .infer = onxi_rule_mul, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "Mul", .since = 6, .infer = onxi_rule_mul, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .attrs = binary_attrs_6,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "Mul", .since = 1, .infer = onxi_rule_mul, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .attrs = binary_attrs_1,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Neg ---- */

const onxi_schema onxi_op_Neg[] = {
    { .name = "Neg", .since = 13, .infer = onxi_rule_neg, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(SIGNED_NUMERIC_13) }) },
    { .name = "Neg", .since = 6, .infer = onxi_rule_neg, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .types = TYPES({ "T", T(SIGNED_NUMERIC) }) },
    { .name = "Neg", .since = 1, .infer = onxi_rule_neg, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Pow ---- */

static const onxi_port pow_inputs_15[] = {
    { "X", "T", DIFF },
    { "Y", "T1", DIFF },
    { 0 },
};

static const onxi_port pow_inputs_7[] = {
    { "X", "T", 0 },
    { "Y", "T", 0 },
    { 0 },
};

const onxi_schema onxi_op_Pow[] = {
    { .name = "Pow", .since = 15, .infer = onxi_rule_pow, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = pow_inputs_15, .outputs = PORTS({ "Z", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13 | BIT(INT32) | BIT(INT64)) }, { "T1", T(NUMERIC_13) }) },
    { .name = "Pow", .since = 13, .infer = onxi_rule_pow, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = pow_inputs_15, .outputs = PORTS({ "Z", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13 | BIT(INT32) | BIT(INT64)) }, { "T1", T(NUMERIC) }) },
    { .name = "Pow", .since = 12, .infer = onxi_rule_pow, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }, { "Y", "T1", 0 }), .outputs = PORTS({ "Z", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING | BIT(INT32) | BIT(INT64)) }, { "T1", T(NUMERIC) }) },
    { .name = "Pow", .since = 7, .infer = onxi_rule_pow, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = pow_inputs_7, .outputs = PORTS({ "Z", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Pow", .since = 1, .infer = onxi_rule_pow, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = pow_inputs_7, .outputs = PORTS({ "Z", "T", 0 }), .attrs = binary_attrs_6,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Reciprocal ---- */

const onxi_schema onxi_op_Reciprocal[] = {
    { .name = "Reciprocal", .since = 13, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Reciprocal", .since = 6, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Reciprocal", .since = 1, .infer = onxi_rule_unary, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Round ---- */

const onxi_schema onxi_op_Round[] = {
    { .name = "Round", .since = 22, .infer = onxi_rule_round, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", NONDIFF }), .outputs = PORTS({ "Y", "T", NONDIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Round", .since = 11, .infer = onxi_rule_round, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", NONDIFF }), .outputs = PORTS({ "Y", "T", NONDIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Sign ---- */

const onxi_schema onxi_op_Sign[] = {
    { .name = "Sign", .since = 13, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", NONDIFF }), .outputs = PORTS({ "output", "T", NONDIFF }),
      .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Sign", .since = 9, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = NULL },
};

/* ---- Sqrt ---- */

const onxi_schema onxi_op_Sqrt[] = {
    { .name = "Sqrt", .since = 13, .infer = onxi_rule_sqrt, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", DIFF }), .outputs = PORTS({ "Y", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Sqrt", .since = 6, .infer = onxi_rule_sqrt, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Sqrt", .since = 1, .infer = onxi_rule_sqrt, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Sub ---- */

const onxi_schema onxi_op_Sub[] = {
    { .name = "Sub", .since = 14, .infer = onxi_rule_sub, .flags = INFERS | PROPAGATES, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_14, .outputs = PORTS({ "C", "T", DIFF }), .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "Sub", .since = 13, .infer = onxi_rule_sub, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_14, .outputs = PORTS({ "C", "T", DIFF }), .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "Sub", .since = 7, .infer = onxi_rule_sub, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "Sub", .since = 6, .infer = onxi_rule_sub, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .attrs = binary_attrs_6,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "Sub", .since = 1, .infer = onxi_rule_sub, ARITY(2, 2, 1, 1),
      .inputs = binary_inputs_7, .outputs = PORTS({ "C", "T", 0 }), .attrs = binary_attrs_1,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Sum ---- */

const onxi_schema onxi_op_Sum[] = {
    { .name = "Sum", .since = 13, .infer = onxi_rule_sum, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC | DIFF }), .outputs = PORTS({ "sum", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Sum", .since = 8, .infer = onxi_rule_sum, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "sum", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Sum", .since = 6, .infer = onxi_rule_sum, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "sum", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Sum", .since = 1, .infer = onxi_rule_sum, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "data_0", "T", VARIADIC }), .outputs = PORTS({ "sum", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

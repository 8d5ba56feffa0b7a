/* generator.c - rows of the ONNX family "generator": constants and random tensors.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_type_constraint random_types_22[] = {
    { "T1", T(ALL_13) },
    { "T2", T(FLOATING_13) },
    { 0 },
};

static const onxi_type_constraint random_types_1[] = {
    { "T1", T(ALL) },
    { "T2", T(FLOATING) },
    { 0 },
};

/* ---- Bernoulli ---- */

static const onxi_attr bernoulli_attrs_22[] = {
    { "dtype", INT, OPTIONAL },
    { "seed", FLOAT, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_Bernoulli[] = {
    { .name = "Bernoulli", .since = 22, .infer = onxi_rule_random_like,
      .flags = CONTEXT_FUNCTION | INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 1),
      .context_function_opsets = "22", .inputs = PORTS({ "input", "T1", 0 }),
      .outputs = PORTS({ "output", "T2", 0 }), .attrs = bernoulli_attrs_22,
      .types = TYPES({ "T1", T(FLOATING_13) }, { "T2", T(FILL_13) }) },
    { .name = "Bernoulli", .since = 15, .infer = onxi_rule_random_like,
      .flags = CONTEXT_FUNCTION | INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 1),
      .context_function_opsets = "15", .inputs = PORTS({ "input", "T1", 0 }),
      .outputs = PORTS({ "output", "T2", 0 }), .attrs = bernoulli_attrs_22,
      .types = TYPES({ "T1", T(FLOATING) }, { "T2", T(FILL_13) }) },
    { .name = NULL },
};

/* ---- Constant ---- */

static const onxi_attr constant_attrs_25[] = {
    { "sparse_value", SPARSE_TENSOR, OPTIONAL },
    { "value", TENSOR, OPTIONAL },
    { "value_float", FLOAT, OPTIONAL },
    { "value_floats", FLOATS, OPTIONAL },
    { "value_int", INT, OPTIONAL },
    { "value_ints", INTS, OPTIONAL },
    { "value_string", STRING, OPTIONAL },
    { "value_strings", STRINGS, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_Constant[] = {
    { .name = "Constant", .since = 25, .infer = onxi_rule_constant, .flags = INFERS, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = constant_attrs_25, .types = TYPES({ "T", T(ALL_25) }) },
    { .name = "Constant", .since = 24, .infer = onxi_rule_constant, .flags = INFERS, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = constant_attrs_25, .types = TYPES({ "T", T(ALL_24) }) },
    { .name = "Constant", .since = 23, .infer = onxi_rule_constant, .flags = INFERS, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = constant_attrs_25, .types = TYPES({ "T", T(ALL_23) }) },
    { .name = "Constant", .since = 21, .infer = onxi_rule_constant, .flags = INFERS, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = constant_attrs_25, .types = TYPES({ "T", T(ALL_21) }) },
    { .name = "Constant", .since = 19, .infer = onxi_rule_constant, .flags = INFERS, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = constant_attrs_25, .types = TYPES({ "T", T(ALL_19) }) },
    { .name = "Constant", .since = 13, .infer = onxi_rule_constant, .flags = INFERS, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = constant_attrs_25, .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Constant", .since = 12, .infer = onxi_rule_constant, .flags = INFERS, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = constant_attrs_25, .types = TYPES({ "T", T(ALL) }) },
    { .name = "Constant", .since = 11, .infer = onxi_rule_constant, .flags = INFERS, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "sparse_value", SPARSE_TENSOR, OPTIONAL }, { "value", TENSOR, OPTIONAL }),
      .types = TYPES({ "T", T(ALL) }) },
    { .name = "Constant", .since = 9, .infer = onxi_rule_constant, .flags = INFERS, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = ATTRS({ "value", TENSOR, REQUIRED }),
      .types = TYPES({ "T", T(ALL) }) },
    { .name = "Constant", .since = 1, .infer = onxi_rule_constant, .flags = INFERS, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = ATTRS({ "value", TENSOR, REQUIRED }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- ConstantOfShape ---- */

const onxi_schema onxi_op_ConstantOfShape[] = {
    { .name = "ConstantOfShape", .since = 25, .infer = onxi_rule_constant_of_shape, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = ATTRS({ "value", TENSOR, OPTIONAL }), .types = TYPES({ "T1", T(BIT(INT64)) }, { "T2", T(FILL_25) }) },
    { .name = "ConstantOfShape", .since = 24, .infer = onxi_rule_constant_of_shape, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = ATTRS({ "value", TENSOR, OPTIONAL }), .types = TYPES({ "T1", T(BIT(INT64)) }, { "T2", T(FILL_24) }) },
    { .name = "ConstantOfShape", .since = 23, .infer = onxi_rule_constant_of_shape, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = ATTRS({ "value", TENSOR, OPTIONAL }), .types = TYPES({ "T1", T(BIT(INT64)) }, { "T2", T(FILL_23) }) },
    { .name = "ConstantOfShape", .since = 21, .infer = onxi_rule_constant_of_shape, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = ATTRS({ "value", TENSOR, OPTIONAL }), .types = TYPES({ "T1", T(BIT(INT64)) }, { "T2", T(FILL_21) }) },
    { .name = "ConstantOfShape", .since = 20, .infer = onxi_rule_constant_of_shape, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = ATTRS({ "value", TENSOR, OPTIONAL }), .types = TYPES({ "T1", T(BIT(INT64)) }, { "T2", T(FILL_20) }) },
    { .name = "ConstantOfShape", .since = 9, .infer = onxi_rule_constant_of_shape, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = ATTRS({ "value", TENSOR, OPTIONAL }), .types = TYPES({ "T1", T(BIT(INT64)) }, { "T2", T(BASIC) }) },
    { .name = NULL },
};

/* ---- EyeLike ---- */

static const onxi_attr eye_like_attrs_22[] = {
    { "dtype", INT, OPTIONAL },
    { "k", INT, DEFAULT("0") },
    { 0 },
};

const onxi_schema onxi_op_EyeLike[] = {
    { .name = "EyeLike", .since = 22, .infer = onxi_rule_eye_like, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }), .attrs = eye_like_attrs_22,
      .types = TYPES({ "T1", T(FILL_13) }, { "T2", T(FILL_13) }) },
    { .name = "EyeLike", .since = 9, .infer = onxi_rule_eye_like, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }), .attrs = eye_like_attrs_22,
      .types = TYPES({ "T1", T(BASIC) }, { "T2", T(BASIC) }) },
    { .name = NULL },
};

/* ---- Multinomial ---- */

static const onxi_attr multinomial_attrs_22[] = {
    { "dtype", INT, DEFAULT("6") },
    { "sample_size", INT, DEFAULT("1") },
    { "seed", FLOAT, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_Multinomial[] = {
    { .name = "Multinomial", .since = 22, .infer = onxi_rule_multinomial,
      .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }), .attrs = multinomial_attrs_22,
      .types = TYPES({ "T1", T(FLOATING_13) }, { "T2", T(INDEX) }) },
    { .name = "Multinomial", .since = 7, .infer = onxi_rule_multinomial,
      .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }), .attrs = multinomial_attrs_22,
      .types = TYPES({ "T1", T(FLOATING) }, { "T2", T(INDEX) }) },
    { .name = NULL },
};

/* ---- RandomNormal ---- */

static const onxi_attr random_normal_attrs_22[] = {
    { "dtype", INT, DEFAULT("1") },
    { "mean", FLOAT, DEFAULT("0") },
    { "scale", FLOAT, DEFAULT("1") },
    { "seed", FLOAT, OPTIONAL },
    { "shape", INTS, REQUIRED },
    { 0 },
};

const onxi_schema onxi_op_RandomNormal[] = {
    { .name = "RandomNormal", .since = 22, .infer = onxi_rule_random,
      .flags = INFERS | NONDETERMINISTIC, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = random_normal_attrs_22,
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "RandomNormal", .since = 1, .infer = onxi_rule_random,
      .flags = INFERS | NONDETERMINISTIC, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = random_normal_attrs_22, .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- RandomNormalLike ---- */

static const onxi_attr random_normal_like_attrs_22[] = {
    { "dtype", INT, OPTIONAL },
    { "mean", FLOAT, DEFAULT("0") },
    { "scale", FLOAT, DEFAULT("1") },
    { "seed", FLOAT, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_RandomNormalLike[] = {
    { .name = "RandomNormalLike", .since = 22, .infer = onxi_rule_random_like,
      .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = random_normal_like_attrs_22, .types = random_types_22 },
    { .name = "RandomNormalLike", .since = 1, .infer = onxi_rule_random_like,
      .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = random_normal_like_attrs_22, .types = random_types_1 },
    { .name = NULL },
};

/* ---- RandomUniform ---- */

static const onxi_attr random_uniform_attrs_22[] = {
    { "dtype", INT, DEFAULT("1") },
    { "high", FLOAT, DEFAULT("1") },
    { "low", FLOAT, DEFAULT("0") },
    { "seed", FLOAT, OPTIONAL },
    { "shape", INTS, REQUIRED },
    { 0 },
};

const onxi_schema onxi_op_RandomUniform[] = {
    { .name = "RandomUniform", .since = 22, .infer = onxi_rule_random,
      .flags = INFERS | NONDETERMINISTIC, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = random_uniform_attrs_22,
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "RandomUniform", .since = 1, .infer = onxi_rule_random,
      .flags = INFERS | NONDETERMINISTIC, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = random_uniform_attrs_22,
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- RandomUniformLike ---- */

static const onxi_attr random_uniform_like_attrs_22[] = {
    { "dtype", INT, OPTIONAL },
    { "high", FLOAT, DEFAULT("1") },
    { "low", FLOAT, DEFAULT("0") },
    { "seed", FLOAT, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_RandomUniformLike[] = {
    { .name = "RandomUniformLike", .since = 22, .infer = onxi_rule_random_like,
      .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = random_uniform_like_attrs_22, .types = random_types_22 },
    { .name = "RandomUniformLike", .since = 1, .infer = onxi_rule_random_like,
      .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = random_uniform_like_attrs_22, .types = random_types_1 },
    { .name = NULL },
};

/* ---- Range ---- */

static const onxi_port range_inputs_27[] = {
    { "start", "T", 0 },
    { "limit", "T", 0 },
    { "delta", "T", 0 },
    { 0 },
};

const onxi_schema onxi_op_Range[] = {
    { .name = "Range", .since = 27, .infer = onxi_rule_range, .flags = CONTEXT_FUNCTION | INFERS, ARITY(3, 3, 1, 1),
      .context_function_opsets = "27", .inputs = range_inputs_27, .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "stash_type", INT, DEFAULT("1") }),
      .types = TYPES({ "T", T(FLOATING_13 | BIT(INT16) | BIT(INT32) | BIT(INT64)) }) },
    { .name = "Range", .since = 11, .infer = onxi_rule_range, .flags = FUNCTION | INFERS, ARITY(3, 3, 1, 1),
      .function_opsets = "11", .inputs = range_inputs_27, .outputs = PORTS({ "output", "T", 0 }),
      .types = TYPES({ "T", T(BIT(DOUBLE) | BIT(FLOAT) | BIT(INT16) | BIT(INT32) | BIT(INT64)) }) },
    { .name = NULL },
};

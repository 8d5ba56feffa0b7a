/* logical.c - rows of the ONNX family "logical": comparisons, boolean and bitwise logic.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_port compare_inputs_7[] = {
    { "A", "T", NONDIFF },
    { "B", "T", NONDIFF },
    { 0 },
};

static const onxi_type_constraint compare_types_7[] = {
    { "T", T(BIT(BOOL)) },
    { "T1", T(BIT(BOOL)) },
    { 0 },
};

static const onxi_port compare_inputs_1[] = {
    { "A", "T", 0 },
    { "B", "T", 0 },
    { 0 },
};

static const onxi_attr compare_attrs_1[] = {
    { "axis", INT, OPTIONAL },
    { "broadcast", INT, DEFAULT("0") },
    { 0 },
};

static const onxi_type_constraint compare_types_13[] = {
    { "T", T(NUMERIC_13) },
    { "T1", T(BIT(BOOL)) },
    { 0 },
};

static const onxi_type_constraint compare_types_9[] = {
    { "T", T(NUMERIC) },
    { "T1", T(BIT(BOOL)) },
    { 0 },
};

static const onxi_type_constraint compare_types_7b[] = {
    { "T", T(FLOATING) },
    { "T1", T(BIT(BOOL)) },
    { 0 },
};

/* ---- And ---- */

const onxi_schema onxi_op_And[] = {
    { .name = "And", .since = 7, .infer = onxi_rule_and, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T1", NONDIFF }), .types = compare_types_7 },
    { .name = "And", .since = 1, .infer = onxi_rule_and, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }), .attrs = compare_attrs_1,
      .types = compare_types_7 },
    { .name = NULL },
};

/* ---- BitShift ---- */

const onxi_schema onxi_op_BitShift[] = {
    { .name = "BitShift", .since = 28, .infer = onxi_rule_pair, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "X", "T", NONDIFF }, { "Y", "T", NONDIFF }), .outputs = PORTS({ "Z", "T", NONDIFF }),
      .attrs = ATTRS({ "direction", STRING, REQUIRED }), .types = TYPES({ "T", T(INTEGERS) }) },
    { .name = "BitShift", .since = 11, .infer = onxi_rule_pair, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "X", "T", NONDIFF }, { "Y", "T", NONDIFF }), .outputs = PORTS({ "Z", "T", NONDIFF }),
      .attrs = ATTRS({ "direction", STRING, REQUIRED }),
      .types = TYPES({ "T", T(BIT(UINT16) | BIT(UINT32) | BIT(UINT64) | BIT(UINT8)) }) },
    { .name = NULL },
};

/* ---- BitwiseAnd ---- */

const onxi_schema onxi_op_BitwiseAnd[] = {
    { .name = "BitwiseAnd", .since = 18, .infer = onxi_rule_pair, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T", NONDIFF }), .types = TYPES({ "T", T(INTEGERS) }) },
    { .name = NULL },
};

/* ---- BitwiseNot ---- */

const onxi_schema onxi_op_BitwiseNot[] = {
    { .name = "BitwiseNot", .since = 18, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", NONDIFF }), .outputs = PORTS({ "Y", "T", NONDIFF }),
      .types = TYPES({ "T", T(INTEGERS) }) },
    { .name = NULL },
};

/* ---- BitwiseOr ---- */

const onxi_schema onxi_op_BitwiseOr[] = {
    { .name = "BitwiseOr", .since = 18, .infer = onxi_rule_pair, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T", NONDIFF }), .types = TYPES({ "T", T(INTEGERS) }) },
    { .name = NULL },
};

/* ---- BitwiseXor ---- */

const onxi_schema onxi_op_BitwiseXor[] = {
    { .name = "BitwiseXor", .since = 18, .infer = onxi_rule_pair, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T", NONDIFF }), .types = TYPES({ "T", T(INTEGERS) }) },
    { .name = NULL },
};

/* ---- Equal ---- */

static const onxi_type_constraint equal_types_7[] = {
    { "T", T(BIT(BOOL) | BIT(INT32) | BIT(INT64)) },
    { "T1", T(BIT(BOOL)) },
    { 0 },
};

const onxi_schema onxi_op_Equal[] = {
    { .name = "Equal", .since = 19, .infer = onxi_rule_equal, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T1", NONDIFF }),
      .types = TYPES({ "T", T(CAST_13) }, { "T1", T(BIT(BOOL)) }) },
    { .name = "Equal", .since = 13, .infer = onxi_rule_equal, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T1", NONDIFF }),
      .types = TYPES({ "T", T(FILL_13) }, { "T1", T(BIT(BOOL)) }) },
    { .name = "Equal", .since = 11, .infer = onxi_rule_equal, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }),
      .types = TYPES({ "T", T(BASIC) }, { "T1", T(BIT(BOOL)) }) },
    { .name = "Equal", .since = 7, .infer = onxi_rule_equal, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }), .types = equal_types_7 },
    { .name = "Equal", .since = 1, .infer = onxi_rule_equal, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }), .attrs = compare_attrs_1,
      .types = equal_types_7 },
    { .name = NULL },
};

/* ---- Greater ---- */

const onxi_schema onxi_op_Greater[] = {
    { .name = "Greater", .since = 13, .infer = onxi_rule_greater, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T1", NONDIFF }), .types = compare_types_13 },
    { .name = "Greater", .since = 9, .infer = onxi_rule_greater, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }), .types = compare_types_9 },
    { .name = "Greater", .since = 7, .infer = onxi_rule_greater, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }), .types = compare_types_7b },
    { .name = "Greater", .since = 1, .infer = onxi_rule_greater, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }), .attrs = compare_attrs_1,
      .types = compare_types_7b },
    { .name = NULL },
};

/* ---- GreaterOrEqual ---- */

const onxi_schema onxi_op_GreaterOrEqual[] = {
    { .name = "GreaterOrEqual", .since = 16, .infer = onxi_rule_greater_or_equal, .flags = FUNCTION | INFERS,
      ARITY(2, 2, 1, 1),
      .function_opsets = "16", .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T1", NONDIFF }),
      .types = compare_types_13 },
    { .name = "GreaterOrEqual", .since = 12, .infer = onxi_rule_greater_or_equal, .flags = FUNCTION, ARITY(2, 2, 1, 1),
      .function_opsets = "12", .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T1", NONDIFF }),
      .types = compare_types_9 },
    { .name = NULL },
};

/* ---- Less ---- */

const onxi_schema onxi_op_Less[] = {
    { .name = "Less", .since = 13, .infer = onxi_rule_less, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T1", NONDIFF }), .types = compare_types_13 },
    { .name = "Less", .since = 9, .infer = onxi_rule_less, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }), .types = compare_types_9 },
    { .name = "Less", .since = 7, .infer = onxi_rule_less, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }), .types = compare_types_7b },
    { .name = "Less", .since = 1, .infer = onxi_rule_less, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }), .attrs = compare_attrs_1,
      .types = compare_types_7b },
    { .name = NULL },
};

/* ---- LessOrEqual ---- */

const onxi_schema onxi_op_LessOrEqual[] = {
    { .name = "LessOrEqual", .since = 16, .infer = onxi_rule_less_or_equal, .flags = FUNCTION | INFERS,
      ARITY(2, 2, 1, 1),
      .function_opsets = "16", .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T1", NONDIFF }),
      .types = compare_types_13 },
    { .name = "LessOrEqual", .since = 12, .infer = onxi_rule_less_or_equal, .flags = FUNCTION, ARITY(2, 2, 1, 1),
      .function_opsets = "12", .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T1", NONDIFF }),
      .types = compare_types_9 },
    { .name = NULL },
};

/* ---- Not ---- */

const onxi_schema onxi_op_Not[] = {
    { .name = "Not", .since = 1, .infer = onxi_rule_not, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", NONDIFF }), .outputs = PORTS({ "Y", "T", NONDIFF }),
      .types = TYPES({ "T", T(BIT(BOOL)) }) },
    { .name = NULL },
};

/* ---- Or ---- */

const onxi_schema onxi_op_Or[] = {
    { .name = "Or", .since = 7, .infer = onxi_rule_or, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T1", NONDIFF }), .types = compare_types_7 },
    { .name = "Or", .since = 1, .infer = onxi_rule_or, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }), .attrs = compare_attrs_1,
      .types = compare_types_7 },
    { .name = NULL },
};

/* ---- Xor ---- */

const onxi_schema onxi_op_Xor[] = {
    { .name = "Xor", .since = 7, .infer = onxi_rule_xor, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_7, .outputs = PORTS({ "C", "T1", NONDIFF }), .types = compare_types_7 },
    { .name = "Xor", .since = 1, .infer = onxi_rule_xor, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = compare_inputs_1, .outputs = PORTS({ "C", "T1", 0 }), .attrs = compare_attrs_1,
      .types = compare_types_7 },
    { .name = NULL },
};

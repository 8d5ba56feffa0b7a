/* math_trigonometry.c - rows of the ONNX family "math": trigonometric and hyperbolic functions.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- Acos ---- */

const onxi_schema onxi_op_Acos[] = {
    { .name = "Acos", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Acos", .since = 7, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Acosh ---- */

const onxi_schema onxi_op_Acosh[] = {
    { .name = "Acosh", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Acosh", .since = 9, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Asin ---- */

const onxi_schema onxi_op_Asin[] = {
    { .name = "Asin", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Asin", .since = 7, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Asinh ---- */

const onxi_schema onxi_op_Asinh[] = {
    { .name = "Asinh", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Asinh", .since = 9, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Atan ---- */

const onxi_schema onxi_op_Atan[] = {
    { .name = "Atan", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Atan", .since = 7, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Atanh ---- */

const onxi_schema onxi_op_Atanh[] = {
    { .name = "Atanh", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Atanh", .since = 9, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Cos ---- */

const onxi_schema onxi_op_Cos[] = {
    { .name = "Cos", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Cos", .since = 7, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Cosh ---- */

const onxi_schema onxi_op_Cosh[] = {
    { .name = "Cosh", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Cosh", .since = 9, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Sin ---- */

const onxi_schema onxi_op_Sin[] = {
    { .name = "Sin", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Sin", .since = 7, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Sinh ---- */

const onxi_schema onxi_op_Sinh[] = {
    { .name = "Sinh", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Sinh", .since = 9, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Tan ---- */

const onxi_schema onxi_op_Tan[] = {
    { .name = "Tan", .since = 22, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Tan", .since = 7, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Tanh ---- */

const onxi_schema onxi_op_Tanh[] = {
    { .name = "Tanh", .since = 13, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(FLOATING_13) }) },
    { .name = "Tanh", .since = 6, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Tanh", .since = 1, .infer = onxi_rule_unary, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

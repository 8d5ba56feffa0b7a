/* training.c - rows of the ONNX family "training": gradients and optimizer steps.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_port optimizer_inputs_1[] = {
    { "R", "T1", 0 },
    { "T", "T2", 0 },
    { "inputs", "T3", VARIADIC | HETEROGENEOUS },
    { 0 },
};

static const onxi_type_constraint optimizer_types_1[] = {
    { "T1", T(BIT(DOUBLE) | BIT(FLOAT)) },
    { "T2", T(BIT(INT64)) },
    { "T3", T(BIT(DOUBLE) | BIT(FLOAT)) },
    { 0 },
};

/* ---- Adagrad ---- */

const onxi_schema onxi_op_Adagrad[] = {
    { .domain = "ai.onnx.preview.training", .name = "Adagrad", .since = 1, .infer = onxi_rule_optimizer_3,
      .flags = INFERS, ARITY(3, MANY, 1, MANY),
      .inputs = optimizer_inputs_1, .outputs = PORTS({ "outputs", "T3", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "decay_factor", FLOAT, DEFAULT("0") }, { "epsilon", FLOAT, DEFAULT("1e-06") },
                     { "norm_coefficient", FLOAT, DEFAULT("0") }),
      .types = optimizer_types_1 },
    { .name = NULL },
};

/* ---- Adam ---- */

const onxi_schema onxi_op_Adam[] = {
    { .domain = "ai.onnx.preview.training", .name = "Adam", .since = 1, .infer = onxi_rule_optimizer_4,
      .flags = INFERS, ARITY(3, MANY, 1, MANY),
      .inputs = optimizer_inputs_1, .outputs = PORTS({ "outputs", "T3", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("0.9") }, { "beta", FLOAT, DEFAULT("0.999") },
                     { "epsilon", FLOAT, DEFAULT("1e-06") }, { "norm_coefficient", FLOAT, DEFAULT("0") },
                     { "norm_coefficient_post", FLOAT, DEFAULT("0") }),
      .types = optimizer_types_1 },
    { .name = NULL },
};

/* ---- Gradient ---- */

const onxi_schema onxi_op_Gradient[] = {
    { .domain = "ai.onnx.preview.training", .name = "Gradient", .since = 1, .infer = onxi_rule_gradient,
      ARITY(1, MANY, 1, MANY),
      .inputs = PORTS({ "Inputs", "T1", VARIADIC | HETEROGENEOUS }),
      .outputs = PORTS({ "Outputs", "T2", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "xs", STRINGS, REQUIRED }, { "y", STRING, REQUIRED }, { "zs", STRINGS, OPTIONAL }),
      .types = TYPES({ "T1", T(ALL) }, { "T2", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Momentum ---- */

const onxi_schema onxi_op_Momentum[] = {
    { .domain = "ai.onnx.preview.training", .name = "Momentum", .since = 1, .infer = onxi_rule_optimizer_3,
      .flags = INFERS, ARITY(3, MANY, 1, MANY),
      .inputs = optimizer_inputs_1, .outputs = PORTS({ "outputs", "T3", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "alpha", FLOAT, REQUIRED }, { "beta", FLOAT, REQUIRED }, { "mode", STRING, REQUIRED },
                     { "norm_coefficient", FLOAT, REQUIRED }),
      .types = optimizer_types_1 },
    { .name = NULL },
};

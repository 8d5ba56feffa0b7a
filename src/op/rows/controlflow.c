/* controlflow.c - rows of the ONNX family "controlflow": branches and loops.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- If ---- */

static const onxi_attr if_attrs_25[] = {
    { "else_branch", GRAPH, REQUIRED },
    { "then_branch", GRAPH, REQUIRED },
    { 0 },
};

static const onxi_type_constraint if_types_11[] = {
    { "V", T(ALL) },
    { "B", T(BIT(BOOL)) },
    { 0 },
};

const onxi_schema onxi_op_If[] = {
    { .name = "If", .since = 25, .infer = onxi_rule_if, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, MANY),
      .inputs = PORTS({ "cond", "B", 0 }), .outputs = PORTS({ "outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = if_attrs_25,
      .types = TYPES({ "V", { .tensor = ALL_25, .seq = ALL_25, .optional = ALL_25, .optional_seq = ALL_13 } },
                     { "B", T(BIT(BOOL)) }) },
    { .name = "If", .since = 24, .infer = onxi_rule_if, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, MANY),
      .inputs = PORTS({ "cond", "B", 0 }), .outputs = PORTS({ "outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = if_attrs_25,
      .types = TYPES({ "V", { .tensor = ALL_24, .seq = ALL_24, .optional = ALL_24, .optional_seq = ALL_13 } },
                     { "B", T(BIT(BOOL)) }) },
    { .name = "If", .since = 23, .infer = onxi_rule_if, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, MANY),
      .inputs = PORTS({ "cond", "B", 0 }), .outputs = PORTS({ "outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = if_attrs_25,
      .types = TYPES({ "V", { .tensor = ALL_23, .seq = ALL_23, .optional = ALL_23, .optional_seq = ALL_13 } },
                     { "B", T(BIT(BOOL)) }) },
    { .name = "If", .since = 21, .infer = onxi_rule_if, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, MANY),
      .inputs = PORTS({ "cond", "B", 0 }), .outputs = PORTS({ "outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = if_attrs_25,
      .types = TYPES({ "V", { .tensor = ALL_21, .seq = ALL_21, .optional = ALL_21, .optional_seq = ALL_13 } },
                     { "B", T(BIT(BOOL)) }) },
    { .name = "If", .since = 19, .infer = onxi_rule_if, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, MANY),
      .inputs = PORTS({ "cond", "B", 0 }), .outputs = PORTS({ "outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = if_attrs_25,
      .types = TYPES({ "V", { .tensor = ALL_19, .seq = ALL_19, .optional = ALL_19, .optional_seq = ALL_13 } },
                     { "B", T(BIT(BOOL)) }) },
    { .name = "If", .since = 16, .infer = onxi_rule_if, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, MANY),
      .inputs = PORTS({ "cond", "B", 0 }), .outputs = PORTS({ "outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = if_attrs_25,
      .types = TYPES({ "V", { .tensor = ALL_13, .seq = ALL_13, .optional = ALL_13, .optional_seq = ALL_13 } },
                     { "B", T(BIT(BOOL)) }) },
    { .name = "If", .since = 13, .infer = onxi_rule_if, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, MANY),
      .inputs = PORTS({ "cond", "B", 0 }), .outputs = PORTS({ "outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = if_attrs_25, .types = TYPES({ "V", { .tensor = ALL, .seq = ALL } }, { "B", T(BIT(BOOL)) }) },
    { .name = "If", .since = 11, .infer = onxi_rule_if, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, MANY),
      .inputs = PORTS({ "cond", "B", 0 }), .outputs = PORTS({ "outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = if_attrs_25, .types = if_types_11 },
    { .name = "If", .since = 1, .infer = onxi_rule_if, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, MANY),
      .inputs = PORTS({ "cond", "B", 0 }), .outputs = PORTS({ "outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = if_attrs_25, .types = if_types_11 },
    { .name = NULL },
};

/* ---- Loop ---- */

static const onxi_port loop_inputs_25[] = {
    { "M", "I", OPT },
    { "cond", "B", OPT },
    { "v_initial", "V", VARIADIC | HETEROGENEOUS | ARITY_0 },
    { 0 },
};

static const onxi_type_constraint loop_types_11[] = {
    { "V", T(ALL) },
    { "I", T(BIT(INT64)) },
    { "B", T(BIT(BOOL)) },
    { 0 },
};

const onxi_schema onxi_op_Loop[] = {
    { .name = "Loop", .since = 25, .infer = onxi_rule_loop, .flags = INFERS | NONDETERMINISTIC, ARITY(2, MANY, 1, MANY),
      .inputs = loop_inputs_25, .outputs = PORTS({ "v_final_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "body", GRAPH, REQUIRED }),
      .types = TYPES({ "V", { .tensor = ALL_25, .seq = ALL_25, .optional = ALL_25, .optional_seq = ALL_13 } },
                     { "I", T(BIT(INT64)) }, { "B", T(BIT(BOOL)) }) },
    { .name = "Loop", .since = 24, .infer = onxi_rule_loop, .flags = INFERS | NONDETERMINISTIC, ARITY(2, MANY, 1, MANY),
      .inputs = loop_inputs_25, .outputs = PORTS({ "v_final_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "body", GRAPH, REQUIRED }),
      .types = TYPES({ "V", { .tensor = ALL_24, .seq = ALL_24, .optional = ALL_24, .optional_seq = ALL_13 } },
                     { "I", T(BIT(INT64)) }, { "B", T(BIT(BOOL)) }) },
    { .name = "Loop", .since = 23, .infer = onxi_rule_loop, .flags = INFERS | NONDETERMINISTIC, ARITY(2, MANY, 1, MANY),
      .inputs = loop_inputs_25, .outputs = PORTS({ "v_final_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "body", GRAPH, REQUIRED }),
      .types = TYPES({ "V", { .tensor = ALL_23, .seq = ALL_23, .optional = ALL_23, .optional_seq = ALL_13 } },
                     { "I", T(BIT(INT64)) }, { "B", T(BIT(BOOL)) }) },
    { .name = "Loop", .since = 21, .infer = onxi_rule_loop, .flags = INFERS | NONDETERMINISTIC, ARITY(2, MANY, 1, MANY),
      .inputs = loop_inputs_25, .outputs = PORTS({ "v_final_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "body", GRAPH, REQUIRED }),
      .types = TYPES({ "V", { .tensor = ALL_21, .seq = ALL_21, .optional = ALL_21, .optional_seq = ALL_13 } },
                     { "I", T(BIT(INT64)) }, { "B", T(BIT(BOOL)) }) },
    { .name = "Loop", .since = 19, .infer = onxi_rule_loop, .flags = INFERS | NONDETERMINISTIC, ARITY(2, MANY, 1, MANY),
      .inputs = loop_inputs_25, .outputs = PORTS({ "v_final_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "body", GRAPH, REQUIRED }),
      .types = TYPES({ "V", { .tensor = ALL_19, .seq = ALL_19, .optional = ALL_19, .optional_seq = ALL_13 } },
                     { "I", T(BIT(INT64)) }, { "B", T(BIT(BOOL)) }) },
    { .name = "Loop", .since = 16, .infer = onxi_rule_loop, .flags = INFERS | NONDETERMINISTIC, ARITY(2, MANY, 1, MANY),
      .inputs = loop_inputs_25, .outputs = PORTS({ "v_final_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "body", GRAPH, REQUIRED }),
      .types = TYPES({ "V", { .tensor = ALL_13, .seq = ALL_13, .optional = ALL_13, .optional_seq = ALL_13 } },
                     { "I", T(BIT(INT64)) }, { "B", T(BIT(BOOL)) }) },
    { .name = "Loop", .since = 13, .infer = onxi_rule_loop, .flags = INFERS | NONDETERMINISTIC, ARITY(2, MANY, 1, MANY),
      .inputs = loop_inputs_25, .outputs = PORTS({ "v_final_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "body", GRAPH, REQUIRED }),
      .types = TYPES({ "V", { .tensor = ALL, .seq = ALL } }, { "I", T(BIT(INT64)) }, { "B", T(BIT(BOOL)) }) },
    { .name = "Loop", .since = 11, .infer = onxi_rule_loop, .flags = INFERS | NONDETERMINISTIC, ARITY(2, MANY, 1, MANY),
      .inputs = loop_inputs_25, .outputs = PORTS({ "v_final_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "body", GRAPH, REQUIRED }), .types = loop_types_11 },
    { .name = "Loop", .since = 1, .infer = onxi_rule_loop, .flags = INFERS | NONDETERMINISTIC, ARITY(3, MANY, 1, MANY),
      .inputs = PORTS({ "M", "I", OPT }, { "cond", "B", OPT }, { "v_initial", "V", VARIADIC | HETEROGENEOUS }),
      .outputs = PORTS({ "v_final_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "body", GRAPH, REQUIRED }), .types = loop_types_11 },
    { .name = NULL },
};

/* ---- Scan ---- */

static const onxi_attr scan_attrs_25[] = {
    { "body", GRAPH, REQUIRED },
    { "num_scan_inputs", INT, REQUIRED },
    { "scan_input_axes", INTS, OPTIONAL },
    { "scan_input_directions", INTS, OPTIONAL },
    { "scan_output_axes", INTS, OPTIONAL },
    { "scan_output_directions", INTS, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_Scan[] = {
    { .name = "Scan", .since = 25, .infer = onxi_rule_scan, .flags = INFERS | NONDETERMINISTIC, ARITY(1, MANY, 1, MANY),
      .inputs = PORTS({ "initial_state_and_scan_inputs", "V", VARIADIC | HETEROGENEOUS }),
      .outputs = PORTS({ "final_state_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }), .attrs = scan_attrs_25,
      .types = TYPES({ "V", T(ALL_25) }) },
    { .name = "Scan", .since = 24, .infer = onxi_rule_scan, .flags = INFERS | NONDETERMINISTIC, ARITY(1, MANY, 1, MANY),
      .inputs = PORTS({ "initial_state_and_scan_inputs", "V", VARIADIC | HETEROGENEOUS }),
      .outputs = PORTS({ "final_state_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }), .attrs = scan_attrs_25,
      .types = TYPES({ "V", T(ALL_24) }) },
    { .name = "Scan", .since = 23, .infer = onxi_rule_scan, .flags = INFERS | NONDETERMINISTIC, ARITY(1, MANY, 1, MANY),
      .inputs = PORTS({ "initial_state_and_scan_inputs", "V", VARIADIC | HETEROGENEOUS }),
      .outputs = PORTS({ "final_state_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }), .attrs = scan_attrs_25,
      .types = TYPES({ "V", T(ALL_23) }) },
    { .name = "Scan", .since = 21, .infer = onxi_rule_scan, .flags = INFERS | NONDETERMINISTIC, ARITY(1, MANY, 1, MANY),
      .inputs = PORTS({ "initial_state_and_scan_inputs", "V", VARIADIC | HETEROGENEOUS }),
      .outputs = PORTS({ "final_state_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }), .attrs = scan_attrs_25,
      .types = TYPES({ "V", T(ALL_21) }) },
    { .name = "Scan", .since = 19, .infer = onxi_rule_scan, .flags = INFERS | NONDETERMINISTIC, ARITY(1, MANY, 1, MANY),
      .inputs = PORTS({ "initial_state_and_scan_inputs", "V", VARIADIC | HETEROGENEOUS }),
      .outputs = PORTS({ "final_state_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }), .attrs = scan_attrs_25,
      .types = TYPES({ "V", T(ALL_19) }) },
    { .name = "Scan", .since = 16, .infer = onxi_rule_scan, .flags = INFERS | NONDETERMINISTIC, ARITY(1, MANY, 1, MANY),
      .inputs = PORTS({ "initial_state_and_scan_inputs", "V", VARIADIC | HETEROGENEOUS }),
      .outputs = PORTS({ "final_state_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }), .attrs = scan_attrs_25,
      .types = TYPES({ "V", T(ALL_13) }) },
    { .name = "Scan", .since = 11, .infer = onxi_rule_scan, .flags = INFERS | NONDETERMINISTIC, ARITY(1, MANY, 1, MANY),
      .inputs = PORTS({ "initial_state_and_scan_inputs", "V", VARIADIC | HETEROGENEOUS }),
      .outputs = PORTS({ "final_state_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }), .attrs = scan_attrs_25,
      .types = TYPES({ "V", T(ALL) }) },
    { .name = "Scan", .since = 9, .infer = onxi_rule_scan, .flags = INFERS | NONDETERMINISTIC, ARITY(1, MANY, 1, MANY),
      .inputs = PORTS({ "initial_state_and_scan_inputs", "V", VARIADIC | HETEROGENEOUS }),
      .outputs = PORTS({ "final_state_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }), .attrs = scan_attrs_25,
      .types = TYPES({ "V", T(ALL) }) },
    { .name = "Scan", .since = 8, .infer = onxi_rule_scan, .flags = INFERS | NONDETERMINISTIC, ARITY(2, MANY, 1, MANY),
      .inputs = PORTS({ "sequence_lens", "I", OPT },
                      { "initial_state_and_scan_inputs", "V", VARIADIC | HETEROGENEOUS }),
      .outputs = PORTS({ "final_state_and_scan_outputs", "V", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "body", GRAPH, REQUIRED }, { "directions", INTS, OPTIONAL },
                     { "num_scan_inputs", INT, REQUIRED }),
      .types = TYPES({ "I", T(BIT(INT64)) }, { "V", T(ALL) }) },
    { .name = NULL },
};

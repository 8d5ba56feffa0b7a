/* sequence.c - rows of the ONNX family "sequence": sequences of tensors.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- ConcatFromSequence ---- */

const onxi_schema onxi_op_ConcatFromSequence[] = {
    { .name = "ConcatFromSequence", .since = 11, .infer = onxi_rule_concat_from_sequence,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input_sequence", "S", 0 }), .outputs = PORTS({ "concat_result", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, REQUIRED }, { "new_axis", INT, DEFAULT("0") }),
      .types = TYPES({ "S", { .seq = ALL } }, { "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- SequenceAt ---- */

const onxi_schema onxi_op_SequenceAt[] = {
    { .name = "SequenceAt", .since = 11, .infer = onxi_rule_sequence_at, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "input_sequence", "S", 0 }, { "position", "I", 0 }), .outputs = PORTS({ "tensor", "T", 0 }),
      .types = TYPES({ "S", { .seq = ALL } }, { "T", T(ALL) }, { "I", T(INDEX) }) },
    { .name = NULL },
};

/* ---- SequenceConstruct ---- */

const onxi_schema onxi_op_SequenceConstruct[] = {
    { .name = "SequenceConstruct", .since = 11, .infer = onxi_rule_sequence_construct,
      .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "inputs", "T", VARIADIC }), .outputs = PORTS({ "output_sequence", "S", 0 }),
      .types = TYPES({ "T", T(ALL) }, { "S", { .seq = ALL } }) },
    { .name = NULL },
};

/* ---- SequenceEmpty ---- */

const onxi_schema onxi_op_SequenceEmpty[] = {
    { .name = "SequenceEmpty", .since = 11, .infer = onxi_rule_sequence_empty, .flags = INFERS, ARITY(0, 0, 1, 1),
      .outputs = PORTS({ "output", "S", 0 }), .attrs = ATTRS({ "dtype", INT, OPTIONAL }),
      .types = TYPES({ "S", { .seq = ALL } }) },
    { .name = NULL },
};

/* ---- SequenceErase ---- */

const onxi_schema onxi_op_SequenceErase[] = {
    { .name = "SequenceErase", .since = 11, .infer = onxi_rule_sequence_erase, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = PORTS({ "input_sequence", "S", 0 }, { "position", "I", OPT }),
      .outputs = PORTS({ "output_sequence", "S", 0 }), .types = TYPES({ "S", { .seq = ALL } }, { "I", T(INDEX) }) },
    { .name = NULL },
};

/* ---- SequenceInsert ---- */

const onxi_schema onxi_op_SequenceInsert[] = {
    { .name = "SequenceInsert", .since = 11, .infer = onxi_rule_sequence_insert, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = PORTS({ "input_sequence", "S", 0 }, { "tensor", "T", 0 }, { "position", "I", OPT }),
      .outputs = PORTS({ "output_sequence", "S", 0 }),
      .types = TYPES({ "T", T(ALL) }, { "S", { .seq = ALL } }, { "I", T(INDEX) }) },
    { .name = NULL },
};

/* ---- SequenceLength ---- */

const onxi_schema onxi_op_SequenceLength[] = {
    { .name = "SequenceLength", .since = 11, .infer = onxi_rule_sequence_length, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input_sequence", "S", 0 }), .outputs = PORTS({ "length", "I", 0 }),
      .types = TYPES({ "S", { .seq = ALL } }, { "I", T(BIT(INT64)) }) },
    { .name = NULL },
};

/* ---- SequenceMap ---- */

const onxi_schema onxi_op_SequenceMap[] = {
    { .name = "SequenceMap", .since = 17, .infer = onxi_rule_sequence_map,
      .flags = CONTEXT_FUNCTION | INFERS | NONDETERMINISTIC,
      ARITY(1, MANY, 1, MANY),
      .context_function_opsets = "17",
      .inputs = PORTS({ "input_sequence", "S", 0 }, { "additional_inputs", "V", VARIADIC | HETEROGENEOUS | ARITY_0 }),
      .outputs = PORTS({ "out_sequence", "S", VARIADIC | HETEROGENEOUS }),
      .attrs = ATTRS({ "body", GRAPH, REQUIRED }),
      .types = TYPES({ "S", { .seq = ALL } }, { "V", { .tensor = ALL, .seq = ALL } }) },
    { .name = NULL },
};

/* ---- SplitToSequence ---- */

static const onxi_port split_to_sequence_inputs_24[] = {
    { "input", "T", 0 },
    { "split", "I", OPT },
    { 0 },
};

static const onxi_attr split_to_sequence_attrs_24[] = {
    { "axis", INT, DEFAULT("0") },
    { "keepdims", INT, DEFAULT("1") },
    { 0 },
};

const onxi_schema onxi_op_SplitToSequence[] = {
    { .name = "SplitToSequence", .since = 24, .infer = onxi_rule_split_to_sequence, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = split_to_sequence_inputs_24, .outputs = PORTS({ "output_sequence", "S", 0 }),
      .attrs = split_to_sequence_attrs_24,
      .types = TYPES({ "T", T(ALL_13) }, { "I", T(INDEX) }, { "S", { .seq = ALL_13 } }) },
    { .name = "SplitToSequence", .since = 11, .infer = onxi_rule_split_to_sequence, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = split_to_sequence_inputs_24, .outputs = PORTS({ "output_sequence", "S", 0 }),
      .attrs = split_to_sequence_attrs_24,
      .types = TYPES({ "T", T(ALL) }, { "I", T(INDEX) }, { "S", { .seq = ALL } }) },
    { .name = NULL },
};

/* tensor_index.c - rows of the ONNX family "tensor": elements picked, placed and compared.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_port gather_inputs_13[] = {
    { "data", "T", DIFF },
    { "indices", "Tind", NONDIFF },
    { 0 },
};

static const onxi_type_constraint index_types_13[] = {
    { "T", T(ALL_13) },
    { "Tind", T(INDEX) },
    { 0 },
};

static const onxi_port gather_inputs_11[] = {
    { "data", "T", 0 },
    { "indices", "Tind", 0 },
    { 0 },
};

static const onxi_type_constraint index_types_11[] = {
    { "T", T(ALL) },
    { "Tind", T(INDEX) },
    { 0 },
};

static const onxi_type_constraint index_types_20[] = {
    { "T1", T(FLOATING_19) },
    { "T2", T(BIT(BOOL)) },
    { 0 },
};

static const onxi_port scatter_inputs_11[] = {
    { "data", "T", DIFF },
    { "indices", "Tind", NONDIFF },
    { "updates", "T", DIFF },
    { 0 },
};

static const onxi_port scatter_inputs_9[] = {
    { "data", "T", 0 },
    { "indices", "Tind", 0 },
    { "updates", "T", 0 },
    { 0 },
};

/* ---- Compress ---- */

static const onxi_type_constraint compress_types_11[] = {
    { "T", T(ALL) },
    { "T1", T(BIT(BOOL)) },
    { 0 },
};

const onxi_schema onxi_op_Compress[] = {
    { .name = "Compress", .since = 28, .infer = onxi_rule_compress, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }, { "condition", "T1", NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }), .attrs = ATTRS({ "axis", INT, OPTIONAL }),
      .types = TYPES({ "T", T(ALL_13) }, { "T1", T(BIT(BOOL)) }) },
    { .name = "Compress", .since = 11, .infer = onxi_rule_compress, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }, { "condition", "T1", NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }), .attrs = ATTRS({ "axis", INT, OPTIONAL }),
      .types = compress_types_11 },
    { .name = "Compress", .since = 9, .infer = onxi_rule_compress, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }, { "condition", "T1", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, OPTIONAL }), .types = compress_types_11 },
    { .name = NULL },
};

/* ---- Gather ---- */

const onxi_schema onxi_op_Gather[] = {
    { .name = "Gather", .since = 13, .infer = onxi_rule_gather, .flags = INFERS | PROPAGATES, ARITY(2, 2, 1, 1),
      .inputs = gather_inputs_13, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("0") }), .types = index_types_13 },
    { .name = "Gather", .since = 11, .infer = onxi_rule_gather, .flags = INFERS | PROPAGATES, ARITY(2, 2, 1, 1),
      .inputs = gather_inputs_11, .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("0") }), .types = index_types_11 },
    { .name = "Gather", .since = 1, .infer = onxi_rule_gather, .flags = INFERS | PROPAGATES, ARITY(2, 2, 1, 1),
      .inputs = gather_inputs_11, .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("0") }), .types = index_types_11 },
    { .name = NULL },
};

/* ---- GatherElements ---- */

const onxi_schema onxi_op_GatherElements[] = {
    { .name = "GatherElements", .since = 13, .infer = onxi_rule_gather_elements, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = gather_inputs_13, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("0") }), .types = index_types_13 },
    { .name = "GatherElements", .since = 11, .infer = onxi_rule_gather_elements, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = gather_inputs_11, .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("0") }), .types = index_types_11 },
    { .name = NULL },
};

/* ---- GatherND ---- */

static const onxi_port gather_nd_inputs_12[] = {
    { "data", "T", 0 },
    { "indices", "tensor(int64)", 0 },
    { 0 },
};

const onxi_schema onxi_op_GatherND[] = {
    { .name = "GatherND", .since = 13, .infer = onxi_rule_gather_nd, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }, { "indices", "tensor(int64)", NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }), .attrs = ATTRS({ "batch_dims", INT, DEFAULT("0") }),
      .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "GatherND", .since = 12, .infer = onxi_rule_gather_nd, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = gather_nd_inputs_12, .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "batch_dims", INT, DEFAULT("0") }), .types = TYPES({ "T", T(ALL) }) },
    { .name = "GatherND", .since = 11, .infer = onxi_rule_gather_nd, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = gather_nd_inputs_12, .outputs = PORTS({ "output", "T", 0 }), .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- IsInf ---- */

static const onxi_attr is_inf_attrs_20[] = {
    { "detect_negative", INT, DEFAULT("1") },
    { "detect_positive", INT, DEFAULT("1") },
    { 0 },
};

const onxi_schema onxi_op_IsInf[] = {
    { .name = "IsInf", .since = 20, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", NONDIFF }), .outputs = PORTS({ "Y", "T2", NONDIFF }), .attrs = is_inf_attrs_20,
      .types = index_types_20 },
    { .name = "IsInf", .since = 10, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", NONDIFF }), .outputs = PORTS({ "Y", "T2", NONDIFF }), .attrs = is_inf_attrs_20,
      .types = TYPES({ "T1", T(BIT(DOUBLE) | BIT(FLOAT)) }, { "T2", T(BIT(BOOL)) }) },
    { .name = NULL },
};

/* ---- IsNaN ---- */

const onxi_schema onxi_op_IsNaN[] = {
    { .name = "IsNaN", .since = 20, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", NONDIFF }), .outputs = PORTS({ "Y", "T2", NONDIFF }), .types = index_types_20 },
    { .name = "IsNaN", .since = 13, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", NONDIFF }), .outputs = PORTS({ "Y", "T2", NONDIFF }),
      .types = TYPES({ "T1", T(FLOATING_13) }, { "T2", T(BIT(BOOL)) }) },
    { .name = "IsNaN", .since = 9, .infer = onxi_rule_unary, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = PORTS({ "Y", "T2", 0 }),
      .types = TYPES({ "T1", T(FLOATING) }, { "T2", T(BIT(BOOL)) }) },
    { .name = NULL },
};

/* ---- NonZero ---- */

const onxi_schema onxi_op_NonZero[] = {
    { .name = "NonZero", .since = 13, .infer = onxi_rule_non_zero, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", NONDIFF }), .outputs = PORTS({ "Y", "tensor(int64)", NONDIFF }),
      .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "NonZero", .since = 9, .infer = onxi_rule_non_zero, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "tensor(int64)", 0 }),
      .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- OneHot ---- */

static const onxi_type_constraint one_hot_types_11[] = {
    { "T1", T(NUMERIC) },
    { "T2", T(NUMERIC) },
    { "T3", T(ALL) },
    { 0 },
};

const onxi_schema onxi_op_OneHot[] = {
    { .name = "OneHot", .since = 28, .infer = onxi_rule_one_hot, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = PORTS({ "indices", "T1", NONDIFF }, { "depth", "T2", NONDIFF }, { "values", "T3", NONDIFF }),
      .outputs = PORTS({ "output", "T3", NONDIFF }), .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }),
      .types = TYPES({ "T1", T(NUMERIC) }, { "T2", T(NUMERIC) }, { "T3", T(ALL_13) }) },
    { .name = "OneHot", .since = 11, .infer = onxi_rule_one_hot, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = PORTS({ "indices", "T1", NONDIFF }, { "depth", "T2", NONDIFF }, { "values", "T3", NONDIFF }),
      .outputs = PORTS({ "output", "T3", NONDIFF }), .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }),
      .types = one_hot_types_11 },
    { .name = "OneHot", .since = 9, .infer = onxi_rule_one_hot, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = PORTS({ "indices", "T1", 0 }, { "depth", "T2", 0 }, { "values", "T3", 0 }),
      .outputs = PORTS({ "output", "T3", 0 }), .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }),
      .types = one_hot_types_11 },
    { .name = NULL },
};

/* ---- ReverseSequence ---- */

const onxi_schema onxi_op_ReverseSequence[] = {
    { .name = "ReverseSequence", .since = 28, .infer = onxi_rule_reverse_sequence, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }, { "sequence_lens", "tensor(int64)", 0 }),
      .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "batch_axis", INT, DEFAULT("1") }, { "time_axis", INT, DEFAULT("0") }),
      .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "ReverseSequence", .since = 10, .infer = onxi_rule_reverse_sequence, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }, { "sequence_lens", "tensor(int64)", 0 }),
      .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "batch_axis", INT, DEFAULT("1") }, { "time_axis", INT, DEFAULT("0") }),
      .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- Scatter ---- */

const onxi_schema onxi_op_Scatter[] = {
    { .name = "Scatter", .since = 11, .infer = onxi_rule_scatter, .flags = DEPRECATED | INFERS, ARITY(3, 3, 1, 1),
      .inputs = scatter_inputs_11, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("0") }), .types = index_types_11 },
    { .name = "Scatter", .since = 9, .infer = onxi_rule_scatter, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = scatter_inputs_9, .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("0") }), .types = index_types_11 },
    { .name = NULL },
};

/* ---- ScatterElements ---- */

static const onxi_attr scatter_elements_attrs_18[] = {
    { "axis", INT, DEFAULT("0") },
    { "reduction", STRING, TEXT("none") },
    { 0 },
};

const onxi_schema onxi_op_ScatterElements[] = {
    { .name = "ScatterElements", .since = 18, .infer = onxi_rule_scatter, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = scatter_inputs_11, .outputs = PORTS({ "output", "T", DIFF }), .attrs = scatter_elements_attrs_18,
      .types = index_types_13 },
    { .name = "ScatterElements", .since = 16, .infer = onxi_rule_scatter, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = scatter_inputs_11, .outputs = PORTS({ "output", "T", DIFF }), .attrs = scatter_elements_attrs_18,
      .types = index_types_13 },
    { .name = "ScatterElements", .since = 13, .infer = onxi_rule_scatter, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = scatter_inputs_11, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("0") }), .types = index_types_13 },
    { .name = "ScatterElements", .since = 11, .infer = onxi_rule_scatter, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = scatter_inputs_9, .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("0") }), .types = index_types_11 },
    { .name = NULL },
};

/* ---- ScatterND ---- */

static const onxi_port scatter_nd_inputs_18[] = {
    { "data", "T", DIFF },
    { "indices", "tensor(int64)", NONDIFF },
    { "updates", "T", DIFF },
    { 0 },
};

const onxi_schema onxi_op_ScatterND[] = {
    { .name = "ScatterND", .since = 18, .infer = onxi_rule_scatter_nd, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = scatter_nd_inputs_18, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "reduction", STRING, TEXT("none") }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "ScatterND", .since = 16, .infer = onxi_rule_scatter_nd, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = scatter_nd_inputs_18, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "reduction", STRING, TEXT("none") }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "ScatterND", .since = 13, .infer = onxi_rule_scatter_nd, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = scatter_nd_inputs_18, .outputs = PORTS({ "output", "T", DIFF }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "ScatterND", .since = 11, .infer = onxi_rule_scatter_nd, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }, { "indices", "tensor(int64)", 0 }, { "updates", "T", 0 }),
      .outputs = PORTS({ "output", "T", 0 }), .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- Slice ---- */

static const onxi_port slice_inputs_11[] = {
    { "data", "T", 0 },
    { "starts", "Tind", 0 },
    { "ends", "Tind", 0 },
    { "axes", "Tind", OPT },
    { "steps", "Tind", OPT },
    { 0 },
};

const onxi_schema onxi_op_Slice[] = {
    { .name = "Slice", .since = 13, .infer = onxi_rule_slice, .flags = INFERS | PROPAGATES, ARITY(3, 5, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }, { "starts", "Tind", NONDIFF }, { "ends", "Tind", NONDIFF },
                      { "axes", "Tind", OPT | NONDIFF }, { "steps", "Tind", OPT | NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }), .types = index_types_13 },
    { .name = "Slice", .since = 11, .infer = onxi_rule_slice, .flags = INFERS, ARITY(3, 5, 1, 1),
      .inputs = slice_inputs_11, .outputs = PORTS({ "output", "T", 0 }), .types = index_types_11 },
    { .name = "Slice", .since = 10, .infer = onxi_rule_slice, .flags = INFERS, ARITY(3, 5, 1, 1),
      .inputs = slice_inputs_11, .outputs = PORTS({ "output", "T", 0 }), .types = index_types_11 },
    { .name = "Slice", .since = 1, .infer = onxi_rule_slice, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "axes", INTS, OPTIONAL }, { "ends", INTS, REQUIRED }, { "starts", INTS, REQUIRED }),
      .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- TensorScatter ---- */

const onxi_schema onxi_op_TensorScatter[] = {
    { .name = "TensorScatter", .since = 24, .infer = onxi_rule_tensor_scatter, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = PORTS({ "past_cache", "T", DIFF }, { "update", "T", DIFF },
                      { "write_indices", "tensor(int64)", OPT | NONDIFF }),
      .outputs = PORTS({ "present_cache", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("-2") }, { "mode", STRING, TEXT("linear") }),
      .types = TYPES({ "T", T(ALL_24) }) },
    { .name = NULL },
};

/* ---- Unique ---- */

const onxi_schema onxi_op_Unique[] = {
    { .name = "Unique", .since = 28, .infer = onxi_rule_unique, .flags = INFERS, ARITY(1, 1, 1, 4),
      .inputs = PORTS({ "X", "T", NONDIFF }),
      .outputs = PORTS({ "Y", "T", NONDIFF }, { "indices", "tensor(int64)", OPT | NONDIFF },
                       { "inverse_indices", "tensor(int64)", OPT | NONDIFF },
                       { "counts", "tensor(int64)", OPT | NONDIFF }),
      .attrs = ATTRS({ "axis", INT, OPTIONAL }, { "sorted", INT, DEFAULT("1") }),
      .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Unique", .since = 11, .infer = onxi_rule_unique, .flags = INFERS, ARITY(1, 1, 1, 4),
      .inputs = PORTS({ "X", "T", NONDIFF }),
      .outputs = PORTS({ "Y", "T", NONDIFF }, { "indices", "tensor(int64)", OPT | NONDIFF },
                       { "inverse_indices", "tensor(int64)", OPT | NONDIFF },
                       { "counts", "tensor(int64)", OPT | NONDIFF }),
      .attrs = ATTRS({ "axis", INT, OPTIONAL }, { "sorted", INT, DEFAULT("1") }), .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- Where ---- */

static const onxi_port where_inputs_16[] = {
    { "condition", "B", NONDIFF },
    { "X", "T", DIFF },
    { "Y", "T", DIFF },
    { 0 },
};

const onxi_schema onxi_op_Where[] = {
    { .name = "Where", .since = 16, .infer = onxi_rule_where, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = where_inputs_16, .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "B", T(BIT(BOOL)) }, { "T", T(ALL_13) }) },
    { .name = "Where", .since = 9, .infer = onxi_rule_where, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = where_inputs_16, .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "B", T(BIT(BOOL)) }, { "T", T(ALL) }) },
    { .name = NULL },
};

/* reduction.c - rows of the ONNX family "reduction": reductions over axes.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_attr arg_attrs_13[] = {
    { "axis", INT, DEFAULT("0") },
    { "keepdims", INT, DEFAULT("1") },
    { "select_last_index", INT, DEFAULT("0") },
    { 0 },
};

static const onxi_attr arg_attrs_11[] = {
    { "axis", INT, DEFAULT("0") },
    { "keepdims", INT, DEFAULT("1") },
    { 0 },
};

static const onxi_port reduce_inputs_28[] = {
    { "data", "T", DIFF },
    { "axes", "tensor(int64)", OPT | NONDIFF },
    { 0 },
};

static const onxi_attr reduce_attrs_28[] = {
    { "keepdims", INT, DEFAULT("1") },
    { "noop_with_empty_axes", INT, DEFAULT("0") },
    { 0 },
};

static const onxi_attr reduce_attrs_13[] = {
    { "axes", INTS, OPTIONAL },
    { "keepdims", INT, DEFAULT("1") },
    { 0 },
};

/* ---- ArgMax ---- */

const onxi_schema onxi_op_ArgMax[] = {
    { .name = "ArgMax", .since = 13, .infer = onxi_rule_arg_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "reduced", "tensor(int64)", NONDIFF }),
      .attrs = arg_attrs_13, .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "ArgMax", .since = 12, .infer = onxi_rule_arg_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "tensor(int64)", 0 }),
      .attrs = arg_attrs_13, .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = "ArgMax", .since = 11, .infer = onxi_rule_arg_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "tensor(int64)", 0 }),
      .attrs = arg_attrs_11, .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = "ArgMax", .since = 1, .infer = onxi_rule_arg_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "tensor(int64)", 0 }),
      .attrs = arg_attrs_11, .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = NULL },
};

/* ---- ArgMin ---- */

const onxi_schema onxi_op_ArgMin[] = {
    { .name = "ArgMin", .since = 13, .infer = onxi_rule_arg_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "reduced", "tensor(int64)", NONDIFF }),
      .attrs = arg_attrs_13, .types = TYPES({ "T", T(NUMERIC_13) }) },
    { .name = "ArgMin", .since = 12, .infer = onxi_rule_arg_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "tensor(int64)", 0 }),
      .attrs = arg_attrs_13, .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = "ArgMin", .since = 11, .infer = onxi_rule_arg_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "tensor(int64)", 0 }),
      .attrs = arg_attrs_11, .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = "ArgMin", .since = 1, .infer = onxi_rule_arg_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "tensor(int64)", 0 }),
      .attrs = arg_attrs_11, .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = NULL },
};

/* ---- ReduceL1 ---- */

const onxi_schema onxi_op_ReduceL1[] = {
    { .name = "ReduceL1", .since = 18, .infer = onxi_rule_reduce, .flags = FUNCTION | INFERS, ARITY(1, 2, 1, 1),
      .function_opsets = "18", .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }),
      .attrs = reduce_attrs_28, .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceL1", .since = 13, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceL1", .since = 11, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "ReduceL1", .since = 1, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = NULL },
};

/* ---- ReduceL2 ---- */

const onxi_schema onxi_op_ReduceL2[] = {
    { .name = "ReduceL2", .since = 18, .infer = onxi_rule_reduce, .flags = FUNCTION | INFERS, ARITY(1, 2, 1, 1),
      .function_opsets = "18", .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }),
      .attrs = reduce_attrs_28, .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceL2", .since = 13, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceL2", .since = 11, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "ReduceL2", .since = 1, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = NULL },
};

/* ---- ReduceLogSum ---- */

static const char reduce_log_sum[] = NODES(
    sum = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (data, axes)
    reduced = Log (sum)
);

const onxi_schema onxi_op_ReduceLogSum[] = {
    { .name = "ReduceLogSum", .since = 28, .infer = onxi_rule_reduce, .flags = FUNCTION | INFERS, ARITY(1, 2, 1, 1),
      .function_opsets = "28", .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }),
      .attrs = reduce_attrs_28, .types = TYPES({ "T", T(FLOATING_13) }), BODY(18, { NULL, reduce_log_sum }) },
    { .name = "ReduceLogSum", .since = 18, .infer = onxi_rule_reduce, .flags = FUNCTION | INFERS, ARITY(1, 2, 1, 1),
      .function_opsets = "18", .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }),
      .attrs = reduce_attrs_28, .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceLogSum", .since = 13, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceLogSum", .since = 11, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "ReduceLogSum", .since = 1, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = NULL },
};

/* ---- ReduceLogSumExp ---- */

/* The largest exponent is subtracted before, so that the sum does not overflow, unless it is not finite. */
static const char reduce_log_sum_exp[] = NODES(
    wide = Cast <to = 11> (data)
    most = ReduceMax <keepdims = 1, noop_with_empty_axes: int = @noop_with_empty_axes> (wide, axes)
    none = Sub (most, most)
    finite = Equal (none, none)
    zero = Constant <value = double {0.0}> ()
    base = Where (finite, most, zero)
    below = Sub (wide, base)
    each = Exp (below)
    sum = ReduceSum <keepdims = 1, noop_with_empty_axes: int = @noop_with_empty_axes> (each, axes)
    log = Log (sum)
    all = Add (log, base)
    result = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (all, axes)
    reduced = CastLike (result, data)
);

const onxi_schema onxi_op_ReduceLogSumExp[] = {
    { .name = "ReduceLogSumExp", .since = 28, .infer = onxi_rule_reduce, .flags = FUNCTION | INFERS, ARITY(1, 2, 1, 1),
      .function_opsets = "28", .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }),
      .attrs = reduce_attrs_28, .types = TYPES({ "T", T(FLOATING_13) }), BODY(18, { NULL, reduce_log_sum_exp }) },
    { .name = "ReduceLogSumExp", .since = 18, .infer = onxi_rule_reduce, .flags = FUNCTION | INFERS, ARITY(1, 2, 1, 1),
      .function_opsets = "18", .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }),
      .attrs = reduce_attrs_28, .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceLogSumExp", .since = 13, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceLogSumExp", .since = 11, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "ReduceLogSumExp", .since = 1, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = NULL },
};

/* ---- ReduceMax ---- */

const onxi_schema onxi_op_ReduceMax[] = {
    { .name = "ReduceMax", .since = 20, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_28,
      .types = TYPES({ "T", T(EXTREMES_20) }) },
    { .name = "ReduceMax", .since = 18, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_28,
      .types = TYPES({ "T", T(EXTREMES_13) }) },
    { .name = "ReduceMax", .since = 13, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(EXTREMES_13) }) },
    { .name = "ReduceMax", .since = 12, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(EXTREMES_12) }) },
    { .name = "ReduceMax", .since = 11, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "ReduceMax", .since = 1, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = NULL },
};

/* ---- ReduceMean ---- */

const onxi_schema onxi_op_ReduceMean[] = {
    { .name = "ReduceMean", .since = 18, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_28,
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceMean", .since = 13, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceMean", .since = 11, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "ReduceMean", .since = 1, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = NULL },
};

/* ---- ReduceMin ---- */

const onxi_schema onxi_op_ReduceMin[] = {
    { .name = "ReduceMin", .since = 20, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_28,
      .types = TYPES({ "T", T(EXTREMES_20) }) },
    { .name = "ReduceMin", .since = 18, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_28,
      .types = TYPES({ "T", T(EXTREMES_13) }) },
    { .name = "ReduceMin", .since = 13, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(EXTREMES_13) }) },
    { .name = "ReduceMin", .since = 12, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(EXTREMES_12) }) },
    { .name = "ReduceMin", .since = 11, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "ReduceMin", .since = 1, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = NULL },
};

/* ---- ReduceProd ---- */

const onxi_schema onxi_op_ReduceProd[] = {
    { .name = "ReduceProd", .since = 18, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_28,
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceProd", .since = 13, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceProd", .since = 11, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "ReduceProd", .since = 1, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = NULL },
};

/* ---- ReduceSum ---- */

const onxi_schema onxi_op_ReduceSum[] = {
    { .name = "ReduceSum", .since = 13, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_28,
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceSum", .since = 11, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "ReduceSum", .since = 1, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = NULL },
};

/* ---- ReduceSumSquare ---- */

const onxi_schema onxi_op_ReduceSumSquare[] = {
    { .name = "ReduceSumSquare", .since = 18, .infer = onxi_rule_reduce, .flags = FUNCTION | INFERS, ARITY(1, 2, 1, 1),
      .function_opsets = "18", .inputs = reduce_inputs_28, .outputs = PORTS({ "reduced", "T", DIFF }),
      .attrs = reduce_attrs_28, .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceSumSquare", .since = 13, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "reduced", "T", DIFF }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC_13) }) },
    { .name = "ReduceSumSquare", .since = 11, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = "ReduceSumSquare", .since = 1, .infer = onxi_rule_reduce, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reduced", "T", 0 }), .attrs = reduce_attrs_13,
      .types = TYPES({ "T", T(WIDE_NUMERIC) }) },
    { .name = NULL },
};

/* tensor_shape.c - rows of the ONNX family "tensor": changes of shape and type.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_type_constraint cast_types_28[] = {
    { "T1", T(CAST_28) },
    { "T2", T(CAST_28) },
    { 0 },
};

static const onxi_type_constraint cast_types_25[] = {
    { "T1", T(CAST_25) },
    { "T2", T(CAST_25) },
    { 0 },
};

static const onxi_type_constraint cast_types_24[] = {
    { "T1", T(CAST_24) },
    { "T2", T(CAST_24) },
    { 0 },
};

static const onxi_type_constraint cast_types_23[] = {
    { "T1", T(CAST_23) },
    { "T2", T(CAST_23) },
    { 0 },
};

static const onxi_type_constraint cast_types_21[] = {
    { "T1", T(CAST_21) },
    { "T2", T(CAST_21) },
    { 0 },
};

static const onxi_type_constraint cast_types_19[] = {
    { "T1", T(CAST_19) },
    { "T2", T(CAST_19) },
    { 0 },
};

static const onxi_type_constraint cast_types_13[] = {
    { "T1", T(CAST_13) },
    { "T2", T(CAST_13) },
    { 0 },
};

static const onxi_type_constraint shape_types_25[] = {
    { "T", T(ALL_25) },
    { "T1", T(BIT(INT64)) },
    { 0 },
};

static const onxi_type_constraint shape_types_24[] = {
    { "T", T(ALL_24) },
    { "T1", T(BIT(INT64)) },
    { 0 },
};

static const onxi_type_constraint shape_types_23[] = {
    { "T", T(ALL_23) },
    { "T1", T(BIT(INT64)) },
    { 0 },
};

static const onxi_type_constraint shape_types_21[] = {
    { "T", T(ALL_21) },
    { "T1", T(BIT(INT64)) },
    { 0 },
};

static const onxi_type_constraint shape_types_19[] = {
    { "T", T(ALL_19) },
    { "T1", T(BIT(INT64)) },
    { 0 },
};

static const onxi_type_constraint shape_types_15[] = {
    { "T", T(ALL_13) },
    { "T1", T(BIT(INT64)) },
    { 0 },
};

static const onxi_type_constraint shape_types_1[] = {
    { "T", T(ALL) },
    { "T1", T(BIT(INT64)) },
    { 0 },
};

/* ---- BitCast ---- */

const onxi_schema onxi_op_BitCast[] = {
    { .name = "BitCast", .since = 26, .infer = onxi_rule_bit_cast, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", NONDIFF }), .outputs = PORTS({ "output", "T2", NONDIFF }),
      .attrs = ATTRS({ "to", INT, REQUIRED }), .types = TYPES({ "T1", T(BITWISE_26) }, { "T2", T(BITWISE_26) }) },
    { .name = NULL },
};

/* ---- Cast ---- */

static const onxi_attr cast_attrs_28[] = {
    { "round_mode", STRING, TEXT("up") },
    { "saturate", INT, DEFAULT("1") },
    { "to", INT, REQUIRED },
    { 0 },
};

static const onxi_attr cast_attrs_23[] = {
    { "saturate", INT, DEFAULT("1") },
    { "to", INT, REQUIRED },
    { 0 },
};

static const onxi_type_constraint cast_types_6[] = {
    { "T1", T(BASIC) },
    { "T2", T(BASIC) },
    { 0 },
};

const onxi_schema onxi_op_Cast[] = {
    { .name = "Cast", .since = 28, .infer = onxi_rule_cast, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", DIFF }), .outputs = PORTS({ "output", "T2", DIFF }), .attrs = cast_attrs_28,
      .types = cast_types_28 },
    { .name = "Cast", .since = 25, .infer = onxi_rule_cast, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", DIFF }), .outputs = PORTS({ "output", "T2", DIFF }), .attrs = cast_attrs_28,
      .types = cast_types_25 },
    { .name = "Cast", .since = 24, .infer = onxi_rule_cast, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", DIFF }), .outputs = PORTS({ "output", "T2", DIFF }), .attrs = cast_attrs_28,
      .types = cast_types_24 },
    { .name = "Cast", .since = 23, .infer = onxi_rule_cast, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", DIFF }), .outputs = PORTS({ "output", "T2", DIFF }), .attrs = cast_attrs_23,
      .types = cast_types_23 },
    { .name = "Cast", .since = 21, .infer = onxi_rule_cast, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", DIFF }), .outputs = PORTS({ "output", "T2", DIFF }), .attrs = cast_attrs_23,
      .types = cast_types_21 },
    { .name = "Cast", .since = 19, .infer = onxi_rule_cast, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", DIFF }), .outputs = PORTS({ "output", "T2", DIFF }), .attrs = cast_attrs_23,
      .types = cast_types_19 },
    { .name = "Cast", .since = 13, .infer = onxi_rule_cast, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", DIFF }), .outputs = PORTS({ "output", "T2", DIFF }),
      .attrs = ATTRS({ "to", INT, REQUIRED }), .types = cast_types_13 },
    { .name = "Cast", .since = 9, .infer = onxi_rule_cast, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = ATTRS({ "to", INT, REQUIRED }), .types = TYPES({ "T1", T(BASIC_9) }, { "T2", T(BASIC_9) }) },
    { .name = "Cast", .since = 6, .infer = onxi_rule_cast, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = ATTRS({ "to", INT, REQUIRED }), .types = cast_types_6 },
    { .name = "Cast", .since = 1, .infer = onxi_rule_cast, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T1", 0 }), .outputs = PORTS({ "output", "T2", 0 }),
      .attrs = ATTRS({ "to", STRING, REQUIRED }), .types = cast_types_6 },
    { .name = NULL },
};

/* ---- CastLike ---- */

static const onxi_port cast_like_inputs_25[] = {
    { "input", "T1", DIFF },
    { "target_type", "T2", NONDIFF },
    { 0 },
};

static const onxi_attr cast_like_attrs_25[] = {
    { "round_mode", STRING, TEXT("up") },
    { "saturate", INT, DEFAULT("1") },
    { 0 },
};

const onxi_schema onxi_op_CastLike[] = {
    { .name = "CastLike", .since = 25, .infer = onxi_rule_cast_like, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 2, 1, 1),
      .context_function_opsets = "25", .inputs = cast_like_inputs_25, .outputs = PORTS({ "output", "T2", DIFF }),
      .attrs = cast_like_attrs_25, .types = cast_types_25 },
    { .name = "CastLike", .since = 24, .infer = onxi_rule_cast_like, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 2, 1, 1),
      .context_function_opsets = "24", .inputs = cast_like_inputs_25, .outputs = PORTS({ "output", "T2", DIFF }),
      .attrs = cast_like_attrs_25, .types = cast_types_24 },
    { .name = "CastLike", .since = 23, .infer = onxi_rule_cast_like, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 2, 1, 1),
      .context_function_opsets = "23", .inputs = cast_like_inputs_25, .outputs = PORTS({ "output", "T2", DIFF }),
      .attrs = ATTRS({ "saturate", INT, DEFAULT("1") }), .types = cast_types_23 },
    { .name = "CastLike", .since = 21, .infer = onxi_rule_cast_like, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 2, 1, 1),
      .context_function_opsets = "21", .inputs = cast_like_inputs_25, .outputs = PORTS({ "output", "T2", DIFF }),
      .attrs = ATTRS({ "saturate", INT, DEFAULT("1") }), .types = cast_types_21 },
    { .name = "CastLike", .since = 19, .infer = onxi_rule_cast_like, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 2, 1, 1),
      .context_function_opsets = "19", .inputs = cast_like_inputs_25, .outputs = PORTS({ "output", "T2", DIFF }),
      .attrs = ATTRS({ "saturate", INT, DEFAULT("1") }), .types = cast_types_19 },
    { .name = "CastLike", .since = 15, .infer = onxi_rule_cast_like, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 2, 1, 1),
      .context_function_opsets = "15", .inputs = cast_like_inputs_25, .outputs = PORTS({ "output", "T2", DIFF }),
      .types = cast_types_13 },
    { .name = NULL },
};

/* ---- Concat ---- */

const onxi_schema onxi_op_Concat[] = {
    { .name = "Concat", .since = 13, .infer = onxi_rule_concat, .flags = INFERS | PROPAGATES, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "inputs", "T", VARIADIC | DIFF }), .outputs = PORTS({ "concat_result", "T", DIFF }),
      .attrs = ATTRS({ "axis", INT, REQUIRED }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Concat", .since = 11, .infer = onxi_rule_concat, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "inputs", "T", VARIADIC }), .outputs = PORTS({ "concat_result", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, REQUIRED }), .types = TYPES({ "T", T(ALL) }) },
    { .name = "Concat", .since = 4, .infer = onxi_rule_concat, .flags = INFERS, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "inputs", "T", VARIADIC }), .outputs = PORTS({ "concat_result", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, REQUIRED }), .types = TYPES({ "T", T(ALL) }) },
    { .name = "Concat", .since = 1, .infer = onxi_rule_concat, ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "inputs", "T", VARIADIC }), .outputs = PORTS({ "concat_result", "T", 0 }),
      .attrs = ATTRS({ "axis", INT, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- DepthToSpace ---- */

static const onxi_attr depth_to_space_attrs_28[] = {
    { "blocksize", INT, REQUIRED },
    { "mode", STRING, TEXT("DCR") },
    { 0 },
};

#define BLOCK_SIZES \
    NODES(number = Constant <value_int: int = @blocksize> () \
          flat = Constant <value_ints = [-1]> () \
          block = Reshape (number, flat) \
          area = Mul (block, block) \
          sizes = Shape (input) \
          n, c, h, w = Split (sizes))

WHEN(block_first, onxi_call_text_is(call, "mode", "DCR"))
WHEN(block_last, onxi_call_text_is(call, "mode", "CRD"))

static const onxi_body_part depth_to_space_parts[] = {
    { NULL, BLOCK_SIZES NODES(channels = Div (c, area)
                              height = Mul (h, block)
                              width = Mul (w, block)) },
    { block_first, NODES(apart = Concat <axis = 0> (n, block, block, channels, h, w)
                         x = Reshape <allowzero = 1> (input, apart)
                         y = Transpose <perm = [0, 3, 4, 1, 5, 2]> (x)) },
    { block_last, NODES(apart = Concat <axis = 0> (n, channels, block, block, h, w)
                        x = Reshape <allowzero = 1> (input, apart)
                        y = Transpose <perm = [0, 1, 4, 2, 5, 3]> (x)) },
    { NULL, NODES(together = Concat <axis = 0> (n, channels, height, width)
                  output = Reshape <allowzero = 1> (y, together)) },
    { 0 },
};

const onxi_schema onxi_op_DepthToSpace[] = {
    { .name = "DepthToSpace", .since = 28, .infer = onxi_rule_depth_to_space,
      .flags = CONTEXT_FUNCTION | INFERS | DETERMINISM_UNKNOWN, ARITY(1, 1, 1, 1),
      .context_function_opsets = "28",
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = depth_to_space_attrs_28, .types = TYPES({ "T", T(ALL_13) }),
      .body_opset = 17, .body_parts = depth_to_space_parts },
    { .name = "DepthToSpace", .since = 13, .infer = onxi_rule_depth_to_space, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = depth_to_space_attrs_28, .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "DepthToSpace", .since = 11, .infer = onxi_rule_depth_to_space, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = depth_to_space_attrs_28, .types = TYPES({ "T", T(ALL) }) },
    { .name = "DepthToSpace", .since = 1, .infer = onxi_rule_depth_to_space, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "blocksize", INT, REQUIRED }), .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- Identity ---- */

const onxi_schema onxi_op_Identity[] = {
    { .name = "Identity", .since = 25, .infer = onxi_rule_identity, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "V", DIFF }), .outputs = PORTS({ "output", "V", DIFF }),
      .types = TYPES({ "V", { .tensor = ALL_25, .seq = ALL, .optional = ALL, .optional_seq = ALL } }) },
    { .name = "Identity", .since = 24, .infer = onxi_rule_identity, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "V", DIFF }), .outputs = PORTS({ "output", "V", DIFF }),
      .types = TYPES({ "V", { .tensor = ALL_24, .seq = ALL, .optional = ALL, .optional_seq = ALL } }) },
    { .name = "Identity", .since = 23, .infer = onxi_rule_identity, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "V", DIFF }), .outputs = PORTS({ "output", "V", DIFF }),
      .types = TYPES({ "V", { .tensor = ALL_23, .seq = ALL, .optional = ALL, .optional_seq = ALL } }) },
    { .name = "Identity", .since = 21, .infer = onxi_rule_identity, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "V", DIFF }), .outputs = PORTS({ "output", "V", DIFF }),
      .types = TYPES({ "V", { .tensor = ALL_21, .seq = ALL, .optional = ALL, .optional_seq = ALL } }) },
    { .name = "Identity", .since = 19, .infer = onxi_rule_identity, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "V", DIFF }), .outputs = PORTS({ "output", "V", DIFF }),
      .types = TYPES({ "V", { .tensor = ALL_19, .seq = ALL, .optional = ALL, .optional_seq = ALL } }) },
    { .name = "Identity", .since = 16, .infer = onxi_rule_identity, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "V", DIFF }), .outputs = PORTS({ "output", "V", DIFF }),
      .types = TYPES({ "V", { .tensor = ALL_13, .seq = ALL, .optional = ALL, .optional_seq = ALL } }) },
    { .name = "Identity", .since = 14, .infer = onxi_rule_identity, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "V", DIFF }), .outputs = PORTS({ "output", "V", DIFF }),
      .types = TYPES({ "V", { .tensor = ALL_13, .seq = ALL } }) },
    { .name = "Identity", .since = 13, .infer = onxi_rule_identity, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Identity", .since = 1, .infer = onxi_rule_identity, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }), .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- Reshape ---- */

static const onxi_port reshape_inputs_25[] = {
    { "data", "T", DIFF },
    { "shape", "tensor(int64)", NONDIFF },
    { 0 },
};

const onxi_schema onxi_op_Reshape[] = {
    { .name = "Reshape", .since = 25, .infer = onxi_rule_reshape, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = reshape_inputs_25, .outputs = PORTS({ "reshaped", "T", DIFF }),
      .attrs = ATTRS({ "allowzero", INT, DEFAULT("0") }), .types = TYPES({ "T", T(ALL_25) }) },
    { .name = "Reshape", .since = 24, .infer = onxi_rule_reshape, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = reshape_inputs_25, .outputs = PORTS({ "reshaped", "T", DIFF }),
      .attrs = ATTRS({ "allowzero", INT, DEFAULT("0") }), .types = TYPES({ "T", T(ALL_24) }) },
    { .name = "Reshape", .since = 23, .infer = onxi_rule_reshape, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = reshape_inputs_25, .outputs = PORTS({ "reshaped", "T", DIFF }),
      .attrs = ATTRS({ "allowzero", INT, DEFAULT("0") }), .types = TYPES({ "T", T(ALL_23) }) },
    { .name = "Reshape", .since = 21, .infer = onxi_rule_reshape, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = reshape_inputs_25, .outputs = PORTS({ "reshaped", "T", DIFF }),
      .attrs = ATTRS({ "allowzero", INT, DEFAULT("0") }), .types = TYPES({ "T", T(ALL_21) }) },
    { .name = "Reshape", .since = 19, .infer = onxi_rule_reshape, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = reshape_inputs_25, .outputs = PORTS({ "reshaped", "T", DIFF }),
      .attrs = ATTRS({ "allowzero", INT, DEFAULT("0") }), .types = TYPES({ "T", T(ALL_19) }) },
    { .name = "Reshape", .since = 14, .infer = onxi_rule_reshape, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = reshape_inputs_25, .outputs = PORTS({ "reshaped", "T", DIFF }),
      .attrs = ATTRS({ "allowzero", INT, DEFAULT("0") }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Reshape", .since = 13, .infer = onxi_rule_reshape, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = reshape_inputs_25, .outputs = PORTS({ "reshaped", "T", DIFF }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Reshape", .since = 5, .infer = onxi_rule_reshape, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }, { "shape", "tensor(int64)", 0 }),
      .outputs = PORTS({ "reshaped", "T", 0 }), .types = TYPES({ "T", T(ALL) }) },
    { .name = "Reshape", .since = 1, .infer = onxi_rule_reshape, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "reshaped", "T", 0 }),
      .attrs = ATTRS({ "consumed_inputs", INTS, OPTIONAL }, { "shape", INTS, OPTIONAL }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Shape ---- */

static const onxi_attr shape_attrs_25[] = {
    { "end", INT, OPTIONAL },
    { "start", INT, DEFAULT("0") },
    { 0 },
};

const onxi_schema onxi_op_Shape[] = {
    { .name = "Shape", .since = 25, .infer = onxi_rule_shape, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "shape", "T1", NONDIFF }),
      .attrs = shape_attrs_25, .types = shape_types_25 },
    { .name = "Shape", .since = 24, .infer = onxi_rule_shape, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "shape", "T1", NONDIFF }),
      .attrs = shape_attrs_25, .types = shape_types_24 },
    { .name = "Shape", .since = 23, .infer = onxi_rule_shape, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "shape", "T1", NONDIFF }),
      .attrs = shape_attrs_25, .types = shape_types_23 },
    { .name = "Shape", .since = 21, .infer = onxi_rule_shape, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "shape", "T1", NONDIFF }),
      .attrs = shape_attrs_25, .types = shape_types_21 },
    { .name = "Shape", .since = 19, .infer = onxi_rule_shape, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "shape", "T1", NONDIFF }),
      .attrs = shape_attrs_25, .types = shape_types_19 },
    { .name = "Shape", .since = 15, .infer = onxi_rule_shape, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "shape", "T1", NONDIFF }),
      .attrs = shape_attrs_25, .types = shape_types_15 },
    { .name = "Shape", .since = 13, .infer = onxi_rule_shape, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "shape", "T1", NONDIFF }),
      .types = shape_types_15 },
    { .name = "Shape", .since = 1, .infer = onxi_rule_shape, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "shape", "T1", 0 }), .types = shape_types_1 },
    { .name = NULL },
};

/* ---- Size ---- */

const onxi_schema onxi_op_Size[] = {
    { .name = "Size", .since = 25, .infer = onxi_rule_size, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "size", "T1", NONDIFF }),
      .types = shape_types_25 },
    { .name = "Size", .since = 24, .infer = onxi_rule_size, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "size", "T1", NONDIFF }),
      .types = shape_types_24 },
    { .name = "Size", .since = 23, .infer = onxi_rule_size, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "size", "T1", NONDIFF }),
      .types = shape_types_23 },
    { .name = "Size", .since = 21, .infer = onxi_rule_size, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "size", "T1", NONDIFF }),
      .types = shape_types_21 },
    { .name = "Size", .since = 19, .infer = onxi_rule_size, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "size", "T1", NONDIFF }),
      .types = shape_types_19 },
    { .name = "Size", .since = 13, .infer = onxi_rule_size, .flags = INFERS | PROPAGATES, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", NONDIFF }), .outputs = PORTS({ "size", "T1", NONDIFF }),
      .types = shape_types_15 },
    { .name = "Size", .since = 1, .infer = onxi_rule_size, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "size", "T1", 0 }), .types = shape_types_1 },
    { .name = NULL },
};

/* ---- SpaceToDepth ---- */

static const onxi_body_part space_to_depth_parts[] = {
    { NULL, BLOCK_SIZES NODES(channels = Mul (c, area)
                              height = Div (h, block)
                              width = Div (w, block)
                              apart = Concat <axis = 0> (n, c, height, block, width, block)
                              x = Reshape <allowzero = 1> (input, apart)) },
    { block_first, NODES(y = Transpose <perm = [0, 3, 5, 1, 2, 4]> (x)) },
    { block_last, NODES(y = Transpose <perm = [0, 1, 3, 5, 2, 4]> (x)) },
    { NULL, NODES(together = Concat <axis = 0> (n, channels, height, width)
                  output = Reshape <allowzero = 1> (y, together)) },
    { 0 },
};

const onxi_schema onxi_op_SpaceToDepth[] = {
    { .name = "SpaceToDepth", .since = 28, .infer = onxi_rule_space_to_depth,
      .flags = CONTEXT_FUNCTION | INFERS | DETERMINISM_UNKNOWN, ARITY(1, 1, 1, 1),
      .context_function_opsets = "28",
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = depth_to_space_attrs_28, .types = TYPES({ "T", T(ALL_13) }),
      .body_opset = 17, .body_parts = space_to_depth_parts },
    { .name = "SpaceToDepth", .since = 13, .infer = onxi_rule_space_to_depth, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }), .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "blocksize", INT, REQUIRED }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "SpaceToDepth", .since = 1, .infer = onxi_rule_space_to_depth, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "blocksize", INT, REQUIRED }), .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- Split ---- */

static const onxi_port split_inputs_18[] = {
    { "input", "T", DIFF },
    { "split", "tensor(int64)", OPT | NONDIFF },
    { 0 },
};

static const onxi_attr split_attrs_11[] = {
    { "axis", INT, DEFAULT("0") },
    { "split", INTS, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_Split[] = {
    { .name = "Split", .since = 18, .infer = onxi_rule_split, .flags = INFERS, ARITY(1, 2, 1, MANY),
      .inputs = split_inputs_18, .outputs = PORTS({ "outputs", "T", VARIADIC | DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("0") }, { "num_outputs", INT, OPTIONAL }),
      .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Split", .since = 13, .infer = onxi_rule_split, .flags = INFERS, ARITY(1, 2, 1, MANY),
      .inputs = split_inputs_18, .outputs = PORTS({ "outputs", "T", VARIADIC | DIFF }),
      .attrs = ATTRS({ "axis", INT, DEFAULT("0") }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Split", .since = 11, .infer = onxi_rule_split, .flags = INFERS, ARITY(1, 1, 1, MANY),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "outputs", "T", VARIADIC }), .attrs = split_attrs_11,
      .types = TYPES({ "T", T(ALL) }) },
    { .name = "Split", .since = 2, .infer = onxi_rule_split, .flags = INFERS, ARITY(1, 1, 1, MANY),
      .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "outputs", "T", VARIADIC }), .attrs = split_attrs_11,
      .types = TYPES({ "T", T(ALL) }) },
    { .name = "Split", .since = 1, .infer = onxi_rule_split, ARITY(1, 2, 1, MANY),
      .inputs = PORTS({ "input", "T", 0 }, { "split", "T", OPT }),
      .outputs = PORTS({ "outputs...", "T", VARIADIC }),
      .attrs = ATTRS({ "axis", INT, OPTIONAL }, { "split", INTS, OPTIONAL }), .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Squeeze ---- */

static const onxi_port squeeze_inputs_25[] = {
    { "data", "T", DIFF },
    { "axes", "tensor(int64)", OPT | NONDIFF },
    { 0 },
};

const onxi_schema onxi_op_Squeeze[] = {
    { .name = "Squeeze", .since = 25, .infer = onxi_rule_squeeze, .flags = INFERS | PROPAGATES, ARITY(1, 2, 1, 1),
      .inputs = squeeze_inputs_25, .outputs = PORTS({ "squeezed", "T", DIFF }), .types = TYPES({ "T", T(ALL_25) }) },
    { .name = "Squeeze", .since = 24, .infer = onxi_rule_squeeze, .flags = INFERS | PROPAGATES, ARITY(1, 2, 1, 1),
      .inputs = squeeze_inputs_25, .outputs = PORTS({ "squeezed", "T", DIFF }), .types = TYPES({ "T", T(ALL_24) }) },
    { .name = "Squeeze", .since = 23, .infer = onxi_rule_squeeze, .flags = INFERS | PROPAGATES, ARITY(1, 2, 1, 1),
      .inputs = squeeze_inputs_25, .outputs = PORTS({ "squeezed", "T", DIFF }), .types = TYPES({ "T", T(ALL_23) }) },
    { .name = "Squeeze", .since = 21, .infer = onxi_rule_squeeze, .flags = INFERS | PROPAGATES, ARITY(1, 2, 1, 1),
      .inputs = squeeze_inputs_25, .outputs = PORTS({ "squeezed", "T", DIFF }), .types = TYPES({ "T", T(ALL_21) }) },
    { .name = "Squeeze", .since = 13, .infer = onxi_rule_squeeze, .flags = INFERS | PROPAGATES, ARITY(1, 2, 1, 1),
      .inputs = squeeze_inputs_25, .outputs = PORTS({ "squeezed", "T", DIFF }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Squeeze", .since = 11, .infer = onxi_rule_squeeze, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "squeezed", "T", 0 }),
      .attrs = ATTRS({ "axes", INTS, OPTIONAL }), .types = TYPES({ "T", T(ALL) }) },
    { .name = "Squeeze", .since = 1, .infer = onxi_rule_squeeze, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "squeezed", "T", 0 }),
      .attrs = ATTRS({ "axes", INTS, OPTIONAL }), .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- Tile ---- */

const onxi_schema onxi_op_Tile[] = {
    { .name = "Tile", .since = 13, .infer = onxi_rule_tile, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }, { "repeats", "T1", NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }), .types = shape_types_15 },
    { .name = "Tile", .since = 6, .infer = onxi_rule_tile, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }, { "repeats", "T1", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .types = shape_types_1 },
    { .name = "Tile", .since = 1, .infer = onxi_rule_tile, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = PORTS({ "input", "T", 0 }, { "tiles", "T", 0 }, { "axis", "T", 0 }),
      .outputs = PORTS({ "output", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }, { "T1", T(BIT(INT64)) }) },
    { .name = NULL },
};

/* ---- Transpose ---- */

const onxi_schema onxi_op_Transpose[] = {
    { .name = "Transpose", .since = 25, .infer = onxi_rule_transpose, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "transposed", "T", DIFF }),
      .attrs = ATTRS({ "perm", INTS, OPTIONAL }), .types = TYPES({ "T", T(ALL_25) }) },
    { .name = "Transpose", .since = 24, .infer = onxi_rule_transpose, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "transposed", "T", DIFF }),
      .attrs = ATTRS({ "perm", INTS, OPTIONAL }), .types = TYPES({ "T", T(ALL_24) }) },
    { .name = "Transpose", .since = 23, .infer = onxi_rule_transpose, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "transposed", "T", DIFF }),
      .attrs = ATTRS({ "perm", INTS, OPTIONAL }), .types = TYPES({ "T", T(ALL_23) }) },
    { .name = "Transpose", .since = 21, .infer = onxi_rule_transpose, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "transposed", "T", DIFF }),
      .attrs = ATTRS({ "perm", INTS, OPTIONAL }), .types = TYPES({ "T", T(ALL_21) }) },
    { .name = "Transpose", .since = 13, .infer = onxi_rule_transpose, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }), .outputs = PORTS({ "transposed", "T", DIFF }),
      .attrs = ATTRS({ "perm", INTS, OPTIONAL }), .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Transpose", .since = 1, .infer = onxi_rule_transpose, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "transposed", "T", 0 }),
      .attrs = ATTRS({ "perm", INTS, OPTIONAL }), .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- Trilu ---- */

const onxi_schema onxi_op_Trilu[] = {
    { .name = "Trilu", .since = 14, .infer = onxi_rule_trilu, .flags = INFERS, ARITY(1, 2, 1, 1),
      .inputs = PORTS({ "input", "T", DIFF }, { "k", "tensor(int64)", OPT | NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }), .attrs = ATTRS({ "upper", INT, DEFAULT("1") }),
      .types = TYPES({ "T", T(ALL_13) }) },
    { .name = NULL },
};

/* ---- Unsqueeze ---- */

static const onxi_port unsqueeze_inputs_25[] = {
    { "data", "T", DIFF },
    { "axes", "tensor(int64)", NONDIFF },
    { 0 },
};

const onxi_schema onxi_op_Unsqueeze[] = {
    { .name = "Unsqueeze", .since = 25, .infer = onxi_rule_unsqueeze, .flags = INFERS | PROPAGATES, ARITY(2, 2, 1, 1),
      .inputs = unsqueeze_inputs_25, .outputs = PORTS({ "expanded", "T", DIFF }),
      .types = TYPES({ "T", T(ALL_25) }) },
    { .name = "Unsqueeze", .since = 24, .infer = onxi_rule_unsqueeze, .flags = INFERS | PROPAGATES, ARITY(2, 2, 1, 1),
      .inputs = unsqueeze_inputs_25, .outputs = PORTS({ "expanded", "T", DIFF }),
      .types = TYPES({ "T", T(ALL_24) }) },
    { .name = "Unsqueeze", .since = 23, .infer = onxi_rule_unsqueeze, .flags = INFERS | PROPAGATES, ARITY(2, 2, 1, 1),
      .inputs = unsqueeze_inputs_25, .outputs = PORTS({ "expanded", "T", DIFF }),
      .types = TYPES({ "T", T(ALL_23) }) },
    { .name = "Unsqueeze", .since = 21, .infer = onxi_rule_unsqueeze, .flags = INFERS | PROPAGATES, ARITY(2, 2, 1, 1),
      .inputs = unsqueeze_inputs_25, .outputs = PORTS({ "expanded", "T", DIFF }),
      .types = TYPES({ "T", T(ALL_21) }) },
    { .name = "Unsqueeze", .since = 13, .infer = onxi_rule_unsqueeze, .flags = INFERS | PROPAGATES, ARITY(2, 2, 1, 1),
      .inputs = unsqueeze_inputs_25, .outputs = PORTS({ "expanded", "T", DIFF }),
      .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Unsqueeze", .since = 11, .infer = onxi_rule_unsqueeze, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "expanded", "T", 0 }),
      .attrs = ATTRS({ "axes", INTS, REQUIRED }), .types = TYPES({ "T", T(ALL) }) },
    { .name = "Unsqueeze", .since = 1, .infer = onxi_rule_unsqueeze, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "expanded", "T", 0 }),
      .attrs = ATTRS({ "axes", INTS, REQUIRED }), .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

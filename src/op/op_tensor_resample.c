/* op_tensor_resample.c - rows of the ONNX family "tensor": padding and resampling.
 * Newest version first; op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_type_constraint resample_types_18[] = {
    { "T", T(ALL_13) },
    { "Tind", T(INDEX) },
    { 0 },
};

static const onxi_type_constraint resample_types_20[] = {
    { "T1", T(ALL) },
    { "T2", T(FLOATING) },
    { 0 },
};

static const onxi_port resample_inputs_10[] = {
    { "X", "T", 0 },
    { "scales", "tensor(float)", 0 },
    { 0 },
};

/* ---- AffineGrid ---- */

const onxi_schema onxi_op_AffineGrid[] = {
    { .name = "AffineGrid", .since = 20, .infer = onxi_rule_affine_grid, .flags = FUNCTION | INFERS | NONDETERMINISTIC,
      ARITY(2, 2, 1, 1),
      .function_opsets = "20", .inputs = PORTS({ "theta", "T1", NONDIFF }, { "size", "T2", NONDIFF }),
      .outputs = PORTS({ "grid", "T1", DIFF }), .attrs = ATTRS({ "align_corners", INT, DEFAULT("0") }),
      .types = TYPES({ "T1", T(FLOATING_13) }, { "T2", T(BIT(INT64)) }) },
    { .name = NULL },
};

/* ---- CenterCropPad ---- */

const onxi_schema onxi_op_CenterCropPad[] = {
    { .name = "CenterCropPad", .since = 18, .infer = onxi_rule_center_crop_pad, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 2, 1, 1),
      .context_function_opsets = "18", .inputs = PORTS({ "input_data", "T", DIFF }, { "shape", "Tind", NONDIFF }),
      .outputs = PORTS({ "output_data", "T", DIFF }), .attrs = ATTRS({ "axes", INTS, OPTIONAL }),
      .types = resample_types_18 },
    { .name = NULL },
};

/* ---- GridSample ---- */

static const onxi_port grid_sample_inputs_22[] = {
    { "X", "T1", DIFF },
    { "grid", "T2", NONDIFF },
    { 0 },
};

static const onxi_attr grid_sample_attrs_22[] = {
    { "align_corners", INT, DEFAULT("0") },
    { "mode", STRING, TEXT("linear") },
    { "padding_mode", STRING, TEXT("zeros") },
    { 0 },
};

const onxi_schema onxi_op_GridSample[] = {
    { .name = "GridSample", .since = 22, .infer = onxi_rule_grid_sample, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = grid_sample_inputs_22, .outputs = PORTS({ "Y", "T1", DIFF }), .attrs = grid_sample_attrs_22,
      .types = TYPES({ "T1", T(ALL_13) }, { "T2", T(FLOATING_13) }) },
    { .name = "GridSample", .since = 20, .infer = onxi_rule_grid_sample, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = grid_sample_inputs_22, .outputs = PORTS({ "Y", "T1", DIFF }), .attrs = grid_sample_attrs_22,
      .types = resample_types_20 },
    { .name = "GridSample", .since = 16, .infer = onxi_rule_grid_sample, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = grid_sample_inputs_22, .outputs = PORTS({ "Y", "T1", DIFF }),
      .attrs = ATTRS({ "align_corners", INT, DEFAULT("0") }, { "mode", STRING, TEXT("bilinear") },
                     { "padding_mode", STRING, TEXT("zeros") }),
      .types = resample_types_20 },
    { .name = NULL },
};

/* ---- Pad ---- */

static const onxi_port pad_inputs_25[] = {
    { "data", "T", DIFF },
    { "pads", "tensor(int64)", NONDIFF },
    { "constant_value", "T", OPT | NONDIFF },
    { "axes", "Tind", OPT | NONDIFF },
    { 0 },
};

const onxi_schema onxi_op_Pad[] = {
    { .name = "Pad", .since = 25, .infer = onxi_rule_pad, .flags = INFERS, ARITY(2, 4, 1, 1),
      .inputs = pad_inputs_25, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "mode", STRING, TEXT("constant") }),
      .types = TYPES({ "T", T(ALL_25) }, { "Tind", T(INDEX) }) },
    { .name = "Pad", .since = 24, .infer = onxi_rule_pad, .flags = INFERS, ARITY(2, 4, 1, 1),
      .inputs = pad_inputs_25, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "mode", STRING, TEXT("constant") }),
      .types = TYPES({ "T", T(ALL_24) }, { "Tind", T(INDEX) }) },
    { .name = "Pad", .since = 23, .infer = onxi_rule_pad, .flags = INFERS, ARITY(2, 4, 1, 1),
      .inputs = pad_inputs_25, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "mode", STRING, TEXT("constant") }),
      .types = TYPES({ "T", T(ALL_23) }, { "Tind", T(INDEX) }) },
    { .name = "Pad", .since = 21, .infer = onxi_rule_pad, .flags = INFERS, ARITY(2, 4, 1, 1),
      .inputs = pad_inputs_25, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "mode", STRING, TEXT("constant") }),
      .types = TYPES({ "T", T(ALL_21) }, { "Tind", T(INDEX) }) },
    { .name = "Pad", .since = 19, .infer = onxi_rule_pad, .flags = INFERS, ARITY(2, 4, 1, 1),
      .inputs = pad_inputs_25, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "mode", STRING, TEXT("constant") }), .types = resample_types_18 },
    { .name = "Pad", .since = 18, .infer = onxi_rule_pad, .flags = INFERS, ARITY(2, 4, 1, 1),
      .inputs = pad_inputs_25, .outputs = PORTS({ "output", "T", DIFF }),
      .attrs = ATTRS({ "mode", STRING, TEXT("constant") }), .types = resample_types_18 },
    { .name = "Pad", .since = 13, .infer = onxi_rule_pad, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = PORTS({ "data", "T", DIFF }, { "pads", "tensor(int64)", NONDIFF },
                      { "constant_value", "T", OPT | NONDIFF }),
      .outputs = PORTS({ "output", "T", DIFF }), .attrs = ATTRS({ "mode", STRING, TEXT("constant") }),
      .types = TYPES({ "T", T(ALL_13) }) },
    { .name = "Pad", .since = 11, .infer = onxi_rule_pad, .flags = INFERS, ARITY(2, 3, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }, { "pads", "tensor(int64)", 0 }, { "constant_value", "T", OPT }),
      .outputs = PORTS({ "output", "T", 0 }), .attrs = ATTRS({ "mode", STRING, TEXT("constant") }),
      .types = TYPES({ "T", T(NUMERIC) }) },
    { .name = "Pad", .since = 2, .infer = onxi_rule_pad, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "mode", STRING, TEXT("constant") }, { "pads", INTS, REQUIRED },
                     { "value", FLOAT, DEFAULT("0") }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = "Pad", .since = 1, .infer = onxi_rule_pad, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "data", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
      .attrs = ATTRS({ "mode", STRING, TEXT("constant") }, { "paddings", INTS, REQUIRED },
                     { "value", FLOAT, DEFAULT("0") }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- Resize ---- */

static const onxi_port resize_inputs_19[] = {
    { "X", "T1", DIFF },
    { "roi", "T2", OPT | NONDIFF },
    { "scales", "tensor(float)", OPT | NONDIFF },
    { "sizes", "tensor(int64)", OPT | NONDIFF },
    { 0 },
};

static const onxi_attr resize_attrs_19[] = {
    { "antialias", INT, DEFAULT("0") },
    { "axes", INTS, OPTIONAL },
    { "coordinate_transformation_mode", STRING, TEXT("half_pixel") },
    { "cubic_coeff_a", FLOAT, DEFAULT("-0.75") },
    { "exclude_outside", INT, DEFAULT("0") },
    { "extrapolation_value", FLOAT, DEFAULT("0") },
    { "keep_aspect_ratio_policy", STRING, TEXT("stretch") },
    { "mode", STRING, TEXT("nearest") },
    { "nearest_mode", STRING, TEXT("round_prefer_floor") },
    { 0 },
};

static const onxi_type_constraint resize_types_19[] = {
    { "T1", T(ALL_13) },
    { "T2", T(FLOATING) },
    { 0 },
};

static const onxi_attr resize_attrs_13[] = {
    { "coordinate_transformation_mode", STRING, TEXT("half_pixel") },
    { "cubic_coeff_a", FLOAT, DEFAULT("-0.75") },
    { "exclude_outside", INT, DEFAULT("0") },
    { "extrapolation_value", FLOAT, DEFAULT("0") },
    { "mode", STRING, TEXT("nearest") },
    { "nearest_mode", STRING, TEXT("round_prefer_floor") },
    { 0 },
};

const onxi_schema onxi_op_Resize[] = {
    { .name = "Resize", .since = 19, .infer = onxi_rule_resize, .flags = INFERS, ARITY(1, 4, 1, 1),
      .inputs = resize_inputs_19, .outputs = PORTS({ "Y", "T1", DIFF }), .attrs = resize_attrs_19,
      .types = resize_types_19 },
    { .name = "Resize", .since = 18, .infer = onxi_rule_resize, .flags = INFERS, ARITY(1, 4, 1, 1),
      .inputs = resize_inputs_19, .outputs = PORTS({ "Y", "T1", DIFF }), .attrs = resize_attrs_19,
      .types = resize_types_19 },
    { .name = "Resize", .since = 13, .infer = onxi_rule_resize, .flags = INFERS, ARITY(1, 4, 1, 1),
      .inputs = resize_inputs_19, .outputs = PORTS({ "Y", "T1", DIFF }), .attrs = resize_attrs_13,
      .types = resize_types_19 },
    { .name = "Resize", .since = 11, .infer = onxi_rule_resize, .flags = INFERS, ARITY(3, 4, 1, 1),
      .inputs = PORTS({ "X", "T1", 0 }, { "roi", "T2", 0 }, { "scales", "tensor(float)", 0 },
                      { "sizes", "tensor(int64)", OPT }),
      .outputs = PORTS({ "Y", "T1", 0 }), .attrs = resize_attrs_13, .types = resample_types_20 },
    { .name = "Resize", .since = 10, .infer = onxi_rule_resize, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = resample_inputs_10, .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "mode", STRING, TEXT("nearest") }), .types = TYPES({ "T", T(ALL) }) },
    { .name = NULL },
};

/* ---- Upsample ---- */

const onxi_schema onxi_op_Upsample[] = {
    { .name = "Upsample", .since = 10, .infer = onxi_rule_upsample, .flags = DEPRECATED | INFERS, ARITY(2, 2, 1, 1),
      .inputs = resample_inputs_10, .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "mode", STRING, TEXT("nearest") }), .types = TYPES({ "T", T(ALL) }) },
    { .name = "Upsample", .since = 9, .infer = onxi_rule_upsample, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = resample_inputs_10, .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "mode", STRING, TEXT("nearest") }), .types = TYPES({ "T", T(ALL) }) },
    { .name = "Upsample", .since = 7, .infer = onxi_rule_upsample, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "mode", STRING, TEXT("nearest") }, { "scales", FLOATS, REQUIRED }),
      .types = TYPES({ "T", T(ALL) }) },
    { .name = "Upsample", .since = 1, .infer = onxi_rule_upsample, .flags = EXPERIMENTAL, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "height_scale", FLOAT, REQUIRED }, { "mode", STRING, TEXT("nearest") },
                     { "width_scale", FLOAT, REQUIRED }),
      .types = TYPES({ "T", T(FLOATING | BIT(BOOL) | BIT(INT32) | BIT(INT64)) }) },
    { .name = NULL },
};

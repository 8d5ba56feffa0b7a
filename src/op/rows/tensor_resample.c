/* tensor_resample.c - rows of the ONNX family "tensor": padding and resampling.
 * Newest version first; op/op_rows.h explains the words used here. */
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

/* Grid points from -1 to 1 along each axis, as (x, y, 1) or (x, y, z, 1), multiplied by theta. A 2-D grid is computed
 * as a 3-D grid of depth 1 without z. */
static const char affine_grid[] = NODES(
    no = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    two = Constant <value_int = 2> ()
    at_0 = Constant <value_ints = [0]> ()
    at_1 = Constant <value_ints = [1]> ()
    at_2 = Constant <value_ints = [2]> ()
    at_end = Constant <value_ints = [9223372036854775807]> ()
    align = Constant <value_int: int = @align_corners> ()
    batch = Slice (size, at_0, at_1)
    space = Slice (size, at_2, at_end)
    axes = Size (space)
    axis_list = Reshape (axes, at_1)
    full_axes = Constant <value_ints = [3]> ()
    missing = Sub (full_axes, axis_list)
    flat = ConstantOfShape <value = int64[1] {1}> (missing)
    volume = Concat <axis = 0> (flat, space)
    halves = Sub (one, align)
    numbers_z = Gather (volume, no)
    numbers_y = Gather (volume, one)
    numbers_x = Gather (volume, two)
    index_z = Range (no, numbers_z, one)
    index_y = Range (no, numbers_y, one)
    index_x = Range (no, numbers_x, one)
    twice_z = Add (index_z, index_z)
    twice_y = Add (index_y, index_y)
    twice_x = Add (index_x, index_x)
    odd_z = Add (twice_z, halves)
    odd_y = Add (twice_y, halves)
    odd_x = Add (twice_x, halves)
    less_z = Sub (numbers_z, align)
    less_y = Sub (numbers_y, align)
    less_x = Sub (numbers_x, align)
    steps_z = Max (less_z, one)
    steps_y = Max (less_y, one)
    steps_x = Max (less_x, one)
    float_odd_z = Cast <to = 11> (odd_z)
    float_odd_y = Cast <to = 11> (odd_y)
    float_odd_x = Cast <to = 11> (odd_x)
    float_steps_z = Cast <to = 11> (steps_z)
    float_steps_y = Cast <to = 11> (steps_y)
    float_steps_x = Cast <to = 11> (steps_x)
    share_z = Div (float_odd_z, float_steps_z)
    share_y = Div (float_odd_y, float_steps_y)
    share_x = Div (float_odd_x, float_steps_x)
    unit = Constant <value = double {1.0}> ()
    line_z = Sub (share_z, unit)
    line_y = Sub (share_y, unit)
    line_x = Sub (share_x, unit)
    along_z = Constant <value_ints = [-1, 1, 1]> ()
    along_y = Constant <value_ints = [-1, 1]> ()
    column_z = Reshape (line_z, along_z)
    column_y = Reshape (line_y, along_y)
    all_z = Expand (column_z, volume)
    all_y = Expand (column_y, volume)
    all_x = Expand (line_x, volume)
    all_1 = Expand (unit, volume)
    as_column = Constant <value_ints = [-1, 1]> ()
    z = Reshape (all_z, as_column)
    y = Reshape (all_y, as_column)
    x = Reshape (all_x, as_column)
    ones = Reshape (all_1, as_column)
    four = Concat <axis = 1> (x, y, z, ones)
    used = Range (no, axes, one)
    last = Constant <value_ints = [3]> ()
    taken = Concat <axis = 0> (used, last)
    double_points = Gather <axis = 1> (four, taken)
    points = CastLike (double_points, theta)
    turned = Transpose <perm = [0, 2, 1]> (theta)
    moved = MatMul (points, turned)
    grid_shape = Concat <axis = 0> (batch, space, axis_list)
    grid = Reshape <allowzero = 1> (moved, grid_shape)
);

const onxi_schema onxi_op_AffineGrid[] = {
    { .name = "AffineGrid", .since = 20, .infer = onxi_rule_affine_grid, .flags = FUNCTION | INFERS | NONDETERMINISTIC,
      ARITY(2, 2, 1, 1),
      .function_opsets = "20", .inputs = PORTS({ "theta", "T1", NONDIFF }, { "size", "T2", NONDIFF }),
      .outputs = PORTS({ "grid", "T1", DIFF }), .attrs = ATTRS({ "align_corners", INT, DEFAULT("0") }),
      .types = TYPES({ "T1", T(FLOATING_13) }, { "T2", T(BIT(INT64)) }),
      BODY(17, { NULL, affine_grid }) },
    { .name = NULL },
};

/* ---- CenterCropPad ---- */

WHEN(crop_has_axes, onxi_call_given(call, "axes"))
WHEN(crop_has_no_axes, !onxi_call_given(call, "axes"))

/* Pads axes that are too short, then crops those that are too long; of an odd difference the larger half is at the
 * end. */
static const char crop_some[] = NODES(
    axes = Constant <value_ints: ints = @axes> ()
);

static const char crop_all[] = NODES(
    rank = Size (all_sizes)
    first = Constant <value_int = 0> ()
    step = Constant <value_int = 1> ()
    axes = Range (first, rank, step)
);

static const char crop_sizes[] = NODES(
    all_sizes = Shape (input_data)
);

static const char crop_pad[] = NODES(
    sizes = Gather (all_sizes, axes)
    wanted = Cast <to = 7> (shape)
    two = Constant <value_int = 2> ()
    none = Constant <value_int = 0> ()
    more = Sub (wanted, sizes)
    pad = Max (more, none)
    pad_front = Div (pad, two)
    pad_end = Sub (pad, pad_front)
    pads = Concat <axis = 0> (pad_front, pad_end)
    padded = Pad (input_data, pads, , axes)
    fewer = Sub (sizes, wanted)
    cut = Max (fewer, none)
    start = Div (cut, two)
    end = Add (start, wanted)
    output_data = Slice (padded, start, end, axes)
);

const onxi_schema onxi_op_CenterCropPad[] = {
    { .name = "CenterCropPad", .since = 18, .infer = onxi_rule_center_crop_pad, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(2, 2, 1, 1),
      .context_function_opsets = "18", .inputs = PORTS({ "input_data", "T", DIFF }, { "shape", "Tind", NONDIFF }),
      .outputs = PORTS({ "output_data", "T", DIFF }), .attrs = ATTRS({ "axes", INTS, OPTIONAL }),
      .types = resample_types_18,
      BODY(18, { NULL, crop_sizes }, { crop_has_axes, crop_some }, { crop_has_no_axes, crop_all }, { NULL, crop_pad }) },
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

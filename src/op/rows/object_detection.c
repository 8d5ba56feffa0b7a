/* object_detection.c - rows of the ONNX family "object_detection": boxes and regions of interest.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- NonMaxSuppression ---- */

static const onxi_port non_max_suppression_inputs_11[] = {
    { "boxes", "tensor(float)", 0 },
    { "scores", "tensor(float)", 0 },
    { "max_output_boxes_per_class", "tensor(int64)", OPT },
    { "iou_threshold", "tensor(float)", OPT },
    { "score_threshold", "tensor(float)", OPT },
    { 0 },
};

const onxi_schema onxi_op_NonMaxSuppression[] = {
    { .name = "NonMaxSuppression", .since = 11, .infer = onxi_rule_non_max_suppression,
      .flags = INFERS, ARITY(2, 5, 1, 1),
      .inputs = non_max_suppression_inputs_11, .outputs = PORTS({ "selected_indices", "tensor(int64)", 0 }),
      .attrs = ATTRS({ "center_point_box", INT, DEFAULT("0") }) },
    { .name = "NonMaxSuppression", .since = 10, .infer = onxi_rule_non_max_suppression,
      .flags = INFERS, ARITY(2, 5, 1, 1),
      .inputs = non_max_suppression_inputs_11, .outputs = PORTS({ "selected_indices", "tensor(int64)", 0 }),
      .attrs = ATTRS({ "center_point_box", INT, DEFAULT("0") }) },
    { .name = NULL },
};

/* ---- RoiAlign ---- */

static const onxi_port roi_align_inputs_22[] = {
    { "X", "T1", 0 },
    { "rois", "T1", 0 },
    { "batch_indices", "T2", 0 },
    { 0 },
};

static const onxi_attr roi_align_attrs_22[] = {
    { "coordinate_transformation_mode", STRING, TEXT("half_pixel") },
    { "mode", STRING, TEXT("avg") },
    { "output_height", INT, DEFAULT("1") },
    { "output_width", INT, DEFAULT("1") },
    { "sampling_ratio", INT, DEFAULT("0") },
    { "spatial_scale", FLOAT, DEFAULT("1") },
    { 0 },
};

static const onxi_type_constraint roi_align_types_16[] = {
    { "T1", T(FLOATING) },
    { "T2", T(BIT(INT64)) },
    { 0 },
};

const onxi_schema onxi_op_RoiAlign[] = {
    { .name = "RoiAlign", .since = 22, .infer = onxi_rule_roi_align, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = roi_align_inputs_22, .outputs = PORTS({ "Y", "T1", 0 }), .attrs = roi_align_attrs_22,
      .types = TYPES({ "T1", T(FLOATING_13) }, { "T2", T(BIT(INT64)) }) },
    { .name = "RoiAlign", .since = 16, .infer = onxi_rule_roi_align, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = roi_align_inputs_22, .outputs = PORTS({ "Y", "T1", 0 }), .attrs = roi_align_attrs_22,
      .types = roi_align_types_16 },
    { .name = "RoiAlign", .since = 10, .infer = onxi_rule_roi_align, .flags = INFERS, ARITY(3, 3, 1, 1),
      .inputs = roi_align_inputs_22, .outputs = PORTS({ "Y", "T1", 0 }),
      .attrs = ATTRS({ "mode", STRING, TEXT("avg") }, { "output_height", INT, DEFAULT("1") },
                     { "output_width", INT, DEFAULT("1") }, { "sampling_ratio", INT, DEFAULT("0") },
                     { "spatial_scale", FLOAT, DEFAULT("1") }),
      .types = roi_align_types_16 },
    { .name = NULL },
};

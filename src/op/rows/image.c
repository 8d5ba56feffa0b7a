/* image.c - rows of the ONNX family "image": images.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- ImageDecoder ---- */

const onxi_schema onxi_op_ImageDecoder[] = {
    { .name = "ImageDecoder", .since = 20, .infer = onxi_rule_image_decoder, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "encoded_stream", "T1", NONDIFF }), .outputs = PORTS({ "image", "T2", NONDIFF }),
      .attrs = ATTRS({ "pixel_format", STRING, TEXT("RGB") }),
      .types = TYPES({ "T1", T(BIT(UINT8)) }, { "T2", T(BIT(UINT8)) }) },
    { .name = NULL },
};

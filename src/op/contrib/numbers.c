/* numbers.c - rows of ai.onnx.contrib on numbers: signs, segments, and images that are files. */
#include "op/contrib/contrib.h"

/* clang-format off */

static const onxi_type_constraint float_types[] = { { "T", T(BIT(FLOAT)) }, { 0 } };

CONTRIB_BODY(NegPos, ARITY(1, 1, 2, 2), .inputs = PORTS({ "X", "T", 0 }),
             .outputs = PORTS({ "negative", "T", 0 }, { "positive", "T", 0 }), .types = float_types,
             BODY(18, { NULL, NODES(zero = Constant <value_float = 0.0> ()
                                    above = Greater (X, zero)
                                    negative = Where (above, zero, X)
                                    positive = Where (above, X, zero)) }))

/* The last segment says how many there are. */
CONTRIB_BODY(SegmentSum, ARITY(2, 2, 1, 1), .inputs = PORTS({ "data", "T", 0 }, { "segment_ids", "tensor(int64)", 0 }),
             .outputs = PORTS({ "output", "T", 0 }), .types = float_types,
             BODY(18, { NULL, NODES(last = Constant <value_ints = [-1]> ()
                                    one = Constant <value_ints = [1]> ()
                                    greatest = Gather (segment_ids, last)
                                    rows = Add (greatest, one)
                                    rest = Shape <start = 1> (data)
                                    shape = Concat <axis = 0> (rows, rest)
                                    zeros = ConstantOfShape (shape)
                                    places = Unsqueeze (segment_ids, one)
                                    output = ScatterND <reduction = "add"> (zeros, places, data)) }))

CONTRIB_ROW(SegmentExtraction, .infer = onxi_rule_contrib_segments, ARITY(1, 1, 2, 2),
            .inputs = PORTS({ "input", "tensor(int64)", 0 }),
            .outputs = PORTS({ "position", "tensor(int64)", 0 }, { "value", "tensor(int64)", 0 }))

static bool has_colors(const onxi_call *call, const char *order)
{
    const onxi_attr_value *value = onxi_attrs_get(call->attrs, "color_space", ONX_ATTR_STRING);
    return value && onx_str_is(value->s, order);
}
WHEN(is_rgb, has_colors(call, "rgb"))
WHEN(is_bgr, has_colors(call, "bgr"))
CONTRIB_ROW(DecodeImage, .infer = onxi_rule_contrib_decode_image, ARITY(1, 1, 1, 1), .inputs = PORTS({ "input", "tensor(uint8)", 0 }),
            .outputs = PORTS({ "output", "tensor(uint8)", 0 }), .attrs = ATTRS({ "color_space", STRING, TEXT("bgr") }),
            BODY(20, { is_rgb, NODES(output = ImageDecoder <pixel_format = "RGB"> (input)) },
                 { is_bgr, NODES(output = ImageDecoder <pixel_format = "BGR"> (input)) }))

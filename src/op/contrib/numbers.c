/* numbers.c - rows of ai.onnx.contrib for numbers: signs, segments, audio, and encoded images. */
#include "op/contrib/contrib.h"

/* clang-format off */

static const onxi_type_constraint float_types[] = { { "T", T(BIT(FLOAT)) }, { 0 } };

CONTRIB_BODY(NegPos, ARITY(1, 1, 2, 2), .inputs = PORTS({ "X", "T", 0 }),
             .outputs = PORTS({ "negative", "T", 0 }, { "positive", "T", 0 }), .types = float_types,
             BODY(18, { NULL, NODES(zero = Constant <value_float = 0.0> ()
                                    above = Greater (X, zero)
                                    negative = Where (above, zero, X)
                                    positive = Where (above, X, zero)) }))

/* The last segment id determines the number of segments. */
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

CONTRIB_BODY(ImageDecoder, .infer = onxi_rule_contrib_decode_image, .flags = INFERS, ARITY(1, 1, 1, 1),
             .inputs = PORTS({ "input", "tensor(uint8)", 0 }), .outputs = PORTS({ "output", "tensor(uint8)", 0 }),
             BODY(20, { NULL, NODES(output = ImageDecoder <pixel_format = "BGR"> (input)) }))
CONTRIB_BODY(ImageReader, .infer = onxi_rule_contrib_read_image, .flags = INFERS | NONDETERMINISTIC, ARITY(1, 1, 1, 1),
             .inputs = PORTS({ "input", "tensor(string)", 0 }), .outputs = PORTS({ "output", "tensor(uint8)", 0 }))
CONTRIB_ROW(EncodeImage, .infer = onxi_rule_contrib_encode_image, ARITY(1, 1, 1, 1), .inputs = PORTS({ "input", "tensor(uint8)", 0 }),
            .outputs = PORTS({ "output", "tensor(uint8)", 0 }),
            .attrs = ATTRS({ "color_space", STRING, TEXT("bgr") }, { "format", STRING, TEXT("png") }))
CONTRIB_ROW(DrawBoundingBoxes, .infer = onxi_rule_contrib_draw_boxes, ARITY(2, 2, 1, 1),
            .inputs = PORTS({ "image", "tensor(uint8)", 0 }, { "boxes", "tensor(float)", 0 }),
            .outputs = PORTS({ "output", "tensor(uint8)", 0 }),
            .attrs = ATTRS({ "colour_by_classes", INT, DEFAULT("1") }, { "mode", STRING, TEXT("XYXY") },
                           { "num_classes", INT, DEFAULT("10") }, { "thickness", INT, DEFAULT("4") }))

CONTRIB_ROW(GaussianBlur, .infer = onxi_rule_contrib_blur, ARITY(3, 3, 1, 1),
            .inputs = PORTS({ "input", "tensor(float)", 0 }, { "ksize", "tensor(int64)", 0 }, { "sigma", "tensor(double)", 0 }),
            .outputs = PORTS({ "output", "tensor(float)", 0 }))

/* ---- sounds ---- */

CONTRIB_ROW(AudioDecoder, .infer = onxi_rule_contrib_audio, ARITY(1, 2, 1, 1),
            .inputs = PORTS({ "input", "tensor(uint8)", 0 }, { "format", "tensor(string)", OPT }),
            .outputs = PORTS({ "pcm", "tensor(float)", 0 }),
            .attrs = ATTRS({ "downsampling_rate", INT, DEFAULT("-1") }, { "stereo_to_mono", INT, DEFAULT("0") }))
CONTRIB_ROW(StftNorm, .infer = onxi_rule_contrib_stft_norm, ARITY(5, 5, 1, 1),
            .inputs = PORTS({ "pcm", "tensor(float)", 0 }, { "n_fft", "tensor(int64)", 0 }, { "hop_length", "tensor(int64)", 0 },
                            { "window", "tensor(float)", 0 }, { "frame_length", "tensor(int64)", 0 }),
            .outputs = PORTS({ "output", "tensor(float)", 0 }), .attrs = ATTRS({ "onesided", INT, DEFAULT("1") }))
CONTRIB_ROW(SplitSignalSegments, .infer = onxi_rule_contrib_signal_segments, ARITY(5, 5, 1, 1),
            .inputs = PORTS({ "audio", "tensor(float)", 0 }, { "sr", "tensor(int64)", 0 }, { "frame_ms", "tensor(int64)", 0 },
                            { "hop_ms", "tensor(int64)", 0 }, { "energy_threshold_db", "tensor(float)", 0 }),
            .outputs = PORTS({ "segments", "tensor(int64)", 0 }))
CONTRIB_ROW(MergeSignalSegments, .infer = onxi_rule_contrib_merge_segments, ARITY(2, 2, 1, 1),
            .inputs = PORTS({ "segments", "tensor(int64)", 0 }, { "merge_gap_ms", "tensor(int64)", 0 }),
            .outputs = PORTS({ "output", "tensor(int64)", 0 }))

CONTRIB_ROW(Inverse, .infer = onxi_rule_contrib_inverse, ARITY(1, 1, 1, 1), .inputs = PORTS({ "X", "T", 0 }),
            .outputs = PORTS({ "Y", "T", 0 }), .types = float_types)

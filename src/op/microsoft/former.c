/* former.c - operators that ONNX Runtime adds to the default domain: former experimental operators of ONNX, and
 * versions before the first one of the standard. From that version on, the standard's rows are in effect. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

#define FORMER_ROW(operator_, ...)                                                                                     \
    const onxi_schema onxi_op_microsoft_##operator_[] = {                                                              \
        { .name = #operator_, .since = 1, __VA_ARGS__ },                                                               \
        { .name = NULL },                                                                                              \
    };

static const onxi_port x_ports[] = { { "X", "T", 0 }, { 0 } };
static const onxi_port y_ports[] = { { "Y", "T", 0 }, { 0 } };
static const onxi_type_constraint floating[] = { { "T", T(FLOATING) }, { 0 } };

/* Two numbers of the row as scalars of the type of X. */
#define ALPHA_AND_BETA                                                                                                 \
    NODES(alpha_number = Constant <value_float: float = @alpha> ()                                                     \
          beta_number = Constant <value_float: float = @beta> ()                                                       \
          alpha_scalar = CastLike (alpha_number, X)                                                                    \
          beta_scalar = CastLike (beta_number, X))

/* ---- operators that later became standard ---- */

FORMER_ROW(LayerNormalization, ARITY(2, 3, 1, 3),
           .inputs = PORTS({ "X", "T", 0 }, { "Scale", "T", 0 }, { "B", "T", OPT }),
           .outputs = PORTS({ "Y", "T", 0 }, { "Mean", "U", OPT }, { "InvStdDev", "U", OPT }),
           .attrs = ATTRS({ "axis", INT, DEFAULT("-1") }, { "epsilon", FLOAT, DEFAULT("1e-05") },
                          { "stash_type", INT, DEFAULT("1") }),
           .types = TYPES({ "T", T(FLOATING_13) }, { "U", T(BIT(FLOAT) | BIT(BFLOAT16)) }),
           BODY(17, { NULL, NODES(Y, Mean, InvStdDev = LayerNormalization <axis: int = @axis, epsilon: float = @epsilon,
                                                                           stash_type: int = @stash_type>
                                  (X, Scale, B)) }))

WHEN(crosses_channels, MS_SET("across_channels"))
WHEN(keeps_channels, !MS_SET("across_channels"))
WHEN(scales, MS_SET("normalize_variance"))
WHEN(shifts_only, !MS_SET("normalize_variance"))
FORMER_ROW(MeanVarianceNormalization, ARITY(1, 1, 1, 1), .inputs = PORTS({ "X", "T", 0 }), .outputs = y_ports,
           .attrs = ATTRS({ "across_channels", INT, DEFAULT("0") }, { "normalize_variance", INT, DEFAULT("1") }),
           .types = floating,
           BODY(18, { crosses_channels, NODES(axes = Constant <value_ints = [0, 1, 2, 3]> ()) },
                { keeps_channels, NODES(axes = Constant <value_ints = [0, 2, 3]> ()) },
                { NULL, NODES(mean = ReduceMean (X, axes) centred = Sub (X, mean)) },
                { scales, NODES(squares = Mul (centred, centred)
                                variance = ReduceMean (squares, axes)
                                deviation = Sqrt (variance)
                                Y = Div (centred, deviation)) },
                { shifts_only, NODES(Y = Identity (centred)) }))

FORMER_ROW(ThresholdedRelu, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
           .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }), .types = floating,
           BODY(10, { NULL, NODES(Y = ThresholdedRelu <alpha: float = @alpha> (X)) }))

/* ---- experiments ---- */

FORMER_ROW(Affine, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
           .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }, { "beta", FLOAT, DEFAULT("0") }), .types = floating,
           BODY(18, { NULL, ALPHA_AND_BETA }, { NULL, NODES(scaled = Mul (X, alpha_scalar)
                                  Y = Add (scaled, beta_scalar)) }))

FORMER_ROW(Scale, ARITY(1, 1, 1, 1), .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
           .attrs = ATTRS({ "scale", FLOAT, DEFAULT("1") }), .types = floating,
           BODY(18, { NULL, NODES(number = Constant <value_float: float = @scale> ()
                                  factor = CastLike (number, input)
                                  output = Mul (input, factor)) }))

FORMER_ROW(ScaledTanh, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
           .attrs = ATTRS({ "alpha", FLOAT, REQUIRED }, { "beta", FLOAT, REQUIRED }), .types = floating,
           BODY(18, { NULL, ALPHA_AND_BETA }, { NULL, NODES(scaled = Mul (X, beta_scalar)
                                                            bent = Tanh (scaled)
                                                            Y = Mul (bent, alpha_scalar)) }))

FORMER_ROW(ParametricSoftplus, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
           .attrs = ATTRS({ "alpha", FLOAT, REQUIRED }, { "beta", FLOAT, REQUIRED }), .types = floating,
           BODY(18, { NULL, ALPHA_AND_BETA }, { NULL, NODES(scaled = Mul (X, beta_scalar)
                                  bent = Softplus (scaled)
                                  Y = Mul (bent, alpha_scalar)) }))

FORMER_ROW(ImageScaler, .infer = onxi_rule_microsoft_image_scaler, .flags = INFERS, ARITY(1, 1, 1, 1),
           .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
           .attrs = ATTRS({ "bias", FLOATS, REQUIRED }, { "scale", FLOAT, DEFAULT("1") }), .types = floating,
           BODY(18, { NULL, NODES(number = Constant <value_float: float = @scale> ()
                                  factor = CastLike (number, input)
                                  scaled = Mul (input, factor)
                                  numbers = Constant <value_floats: floats = @bias> ()
                                  row = CastLike (numbers, input)
                                  image = Constant <value_ints = [1, 2]> ()
                                  shift = Unsqueeze (row, image)
                                  output = Add (scaled, shift)) }))

/* border is left, top, right, bottom; scale is the height and width of the result and replaces right and bottom. */
WHEN(has_size, onxi_call_list_count(call, "scale") > 0)
WHEN(has_no_size, onxi_call_list_count(call, "scale") == 0)
FORMER_ROW(Crop, .infer = onxi_rule_microsoft_crop, .flags = INFERS, ARITY(1, 1, 1, 1),
           .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
           .attrs = ATTRS({ "border", INTS, REQUIRED }, { "scale", INTS, OPTIONAL }), .types = floating,
           BODY(18, { NULL, NODES(border = Constant <value_ints: ints = @border> ()
                                  top_left = Constant <value_ints = [1, 0]> ()
                                  from = Gather (border, top_left)) },
                { has_size, NODES(size = Constant <value_ints: ints = @scale> () to = Add (from, size)) },
                { has_no_size, NODES(bottom_right = Constant <value_ints = [3, 2]> ()
                                     less = Gather (border, bottom_right)
                                     whole = Shape <start = 2> (input)
                                     to = Sub (whole, less)) },
                { NULL, NODES(image = Constant <value_ints = [2, 3]> ()
                              output = Slice (input, from, to, image)) }))

WHEN(has_axes, MS_HAS(3))
WHEN(has_no_axes, !MS_HAS(3))
FORMER_ROW(DynamicSlice, ARITY(3, 4, 1, 1),
           .inputs = PORTS({ "data", "T", 0 }, { "starts", "Tind", 0 }, { "ends", "Tind", 0 }, { "axes", "Tind", OPT }),
           .outputs = PORTS({ "output", "T", 0 }), .types = TYPES({ "T", T(ALL) }, { "Tind", T(INDEX) }),
         BODY(13, { has_axes, NODES(output = Slice (data, starts, ends, axes)) },
                { has_no_axes, NODES(output = Slice (data, starts, ends)) }))

/* tensor.c - rows of com.microsoft that are composed of standard operators: predecessors of standard operators, and
 * small operators on shapes, signals and distances. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

#define ANYTHING (NUMERIC | BIT(BOOL) | BIT(STRING) | COMPLEX)
static const onxi_port x_ports[] = { { "X", "T", 0 }, { 0 } };
static const onxi_port y_ports[] = { { "Y", "T", 0 }, { 0 } };

WHEN(has_1, MS_HAS(1))
WHEN(has_no_1, !MS_HAS(1))
WHEN(has_2, MS_HAS(2))
WHEN(has_no_2, !MS_HAS(2))

MS_ROW(ExpandDims, ARITY(2, 2, 1, 1), .inputs = PORTS({ "X", "T", 0 }, { "axis", "tensor(int32)", 0 }),
       .outputs = y_ports, .types = TYPES({ "T", T(ANYTHING | BIT(BFLOAT16)) }),
       BODY(18, { NULL, NODES(wide = Cast <to = 7> (axis)
                              one = Constant <value_ints = [1]> ()
                              axes = Reshape (wide, one)
                              Y = Unsqueeze (X, axes)) }))

MS_ROW(GatherND, ARITY(2, 2, 1, 1), .inputs = PORTS({ "data", "T", 0 }, { "indices", "Tind", 0 }),
       .outputs = PORTS({ "output", "T", 0 }), .types = TYPES({ "T", T(ANYTHING | BIT(BFLOAT16)) }, { "Tind", T(INDEX) }),
       BODY(18, { NULL, NODES(wide = Cast <to = 7> (indices) output = GatherND (data, wide)) }))

MS_ROW(GridSample, ARITY(2, 2, 1, 1), .inputs = PORTS({ "X", "T1", 0 }, { "Grid", "T1", NONDIFF }),
       .outputs = PORTS({ "Y", "T2", 0 }),
       .attrs = ATTRS({ "align_corners", INT, DEFAULT("0") }, { "mode", STRING, TEXT("bilinear") },
                      { "padding_mode", STRING, TEXT("zeros") }),
       .types = TYPES({ "T1", T(FLOATING) }, { "T2", T(FLOATING) }),
       BODY(16, { NULL, NODES(Y = GridSample <align_corners: int = @align_corners, mode: string = @mode,
                                              padding_mode: string = @padding_mode> (X, Grid)) }))

MS_ROW(Pad, ARITY(2, 3, 1, 1), .inputs = PORTS({ "data", "T", 0 }, { "pads", "tensor(int64)", 0 }, { "value", "T", OPT }),
       .outputs = PORTS({ "output", "T", 0 }), .attrs = ATTRS({ "mode", STRING, TEXT("constant") }),
       .types = TYPES({ "T", T(FLOATING) }),
       BODY(18, { NULL, NODES(all = Constant <value_ints = [-1]> () flat = Reshape (pads, all)) },
            { has_2, NODES(number = Squeeze (value)
                           output = Pad <mode: string = @mode> (data, flat, number)) },
            { has_no_2, NODES(output = Pad <mode: string = @mode> (data, flat)) }))

MS_ROW(Range, ARITY(2, 3, 1, 1), .inputs = PORTS({ "start", "T", 0 }, { "limit", "T", 0 }, { "delta", "T", OPT }),
       .outputs = y_ports,
       .types = TYPES({ "T", T(BIT(FLOAT) | BIT(DOUBLE) | BIT(INT16) | BIT(INT32) | BIT(INT64)) }),
       BODY(18, { NULL, NODES(from = Squeeze (start) to = Squeeze (limit)) },
            { has_2, NODES(step = Squeeze (delta)) },
            { has_no_2, NODES(one = Constant <value_int = 1> () step = CastLike (one, from)) },
            { NULL, NODES(Y = Range (from, to, step)) }))

MS_ROW(Trilu, ARITY(1, 2, 1, 1), .inputs = PORTS({ "X", "T", 0 }, { "k", "tensor(int64)", OPT }), .outputs = y_ports,
       .attrs = ATTRS({ "upper", INT, DEFAULT("1") }), .types = TYPES({ "T", T(FILL_13) }),
       BODY(18, { has_1, NODES(diagonal = Squeeze (k) Y = Trilu <upper: int = @upper> (X, diagonal)) },
            { has_no_1, NODES(Y = Trilu <upper: int = @upper> (X)) }))

MS_ROW(Unique, ARITY(1, 1, 3, 3), .inputs = PORTS({ "x", "T", 0 }),
       .outputs = PORTS({ "y", "T", 0 }, { "idx", "tensor(int64)", 0 }, { "counts", "tensor(int64)", 0 }),
       .types = TYPES({ "T", T(ANYTHING) }),
       BODY(18, { NULL, NODES(y, first, idx, counts = Unique <sorted = 0> (x)) }))

MS_ROW(TorchEmbedding, ARITY(2, 4, 1, 1),
       .inputs = PORTS({ "weight", "T", 0 }, { "indices", "tensor(int64)", 0 }, { "padding_idx", "tensor(int64)", OPT },
                       { "scale_grad_by_freq", "tensor(bool)", OPT }),
       .outputs = y_ports, .types = TYPES({ "T", T(NUMERIC_13) }),
       BODY(18, { NULL, NODES(Y = Gather (weight, indices)) }))

MS_ROW(SampleOp, ARITY(1, 1, 1, 1), .inputs = x_ports, .outputs = y_ports,
       .types = TYPES({ "T", T(FLOATING | BIT(INT32) | BIT(INT64) | BIT(UINT32) | BIT(UINT64)) }),
       BODY(18, { NULL, NODES(Y = Identity (X)) }))

/* ---- distances ---- */

WHEN(has_root, onxi_ms_text_is(call, "metric", "euclidean"))
WHEN(has_no_root, !onxi_ms_text_is(call, "metric", "euclidean"))
MS_ROW(CDist, .infer = onxi_rule_microsoft_cdist, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "A", "T", 0 }, { "B", "T", 0 }), .outputs = PORTS({ "C", "T", 0 }),
       .attrs = ATTRS({ "metric", STRING, TEXT("sqeuclidean") }), .types = TYPES({ "T", T(BIT(FLOAT) | BIT(DOUBLE)) }),
       BODY(18, { NULL, NODES(second = Constant <value_ints = [1]> ()
                              a = Unsqueeze (A, second)
                              apart = Sub (a, B)
                              last = Constant <value_ints = [-1]> ()
                              squares = ReduceSumSquare <keepdims = 0> (apart, last)) },
            { has_root, NODES(C = Sqrt (squares)) }, { has_no_root, NODES(C = Identity (squares)) }))

/* ---- complex numbers as pairs, signals ---- */

#define PARTS(x)                                                                                                       \
    NODES(x##_real, x##_imaginary = Split <axis = -1, num_outputs = 2> (x))
#define PRODUCT(first_sign, second_sign)                                                                               \
    NODES(both_real = Mul (A_real, B_real) both_imaginary = Mul (A_imaginary, B_imaginary)                             \
          left = Mul (A_imaginary, B_real) right = Mul (A_real, B_imaginary)                                           \
          real = first_sign (both_real, both_imaginary) imaginary = second_sign (left, right)                          \
          C = Concat <axis = -1> (real, imaginary))

MS_ROW(ComplexMul, ARITY(2, 2, 1, 1), .inputs = PORTS({ "A", "T", 0 }, { "B", "T", 0 }),
       .outputs = PORTS({ "C", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }),
       BODY(18, { NULL, PARTS(A) }, { NULL, PARTS(B) }, { NULL, PRODUCT(Sub, Add) }))
MS_ROW(ComplexMulConj, ARITY(2, 2, 1, 1), .inputs = PORTS({ "A", "T", 0 }, { "B", "T", 0 }),
       .outputs = PORTS({ "C", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }),
       BODY(18, { NULL, PARTS(A) }, { NULL, PARTS(B) }, { NULL, PRODUCT(Add, Sub) }))

/* ---- linear attention ---- */

WHEN(has_beta, MS_HAS(3))
WHEN(has_no_beta, !MS_HAS(3))
MS_ROW(LinearAttentionGate, ARITY(3, 4, 1, 2),
       .inputs = PORTS({ "a", "T", 0 }, { "dt_bias", "TF", 0 }, { "decay_scale", "TF", 0 }, { "b", "T", OPT }),
       .outputs = PORTS({ "decay", "T", 0 }, { "beta", "T", OPT }),
       .types = TYPES({ "T", T(SCALES_19) }, { "TF", T_FLOAT }),
       BODY(18, { NULL, NODES(wide = Cast <to = 1> (a)
                              sum = Add (wide, dt_bias)
                              soft = Softplus (sum)
                              scaled = Mul (soft, decay_scale)
                              decay = CastLike (scaled, a)) },
            { has_beta, NODES(wide_b = Cast <to = 1> (b) gate = Sigmoid (wide_b) beta = CastLike (gate, b)) },
            { has_no_beta, NODES(beta = Identity (decay)) }))

MS_ROW(GemmaRotaryEmbedding, ARITY(5, 5, 2, 2),
       .inputs = PORTS({ "emb", "U", 0 }, { "q", "T", 0 }, { "q_rot", "T", 0 }, { "k", "T", 0 }, { "k_rot", "T", 0 }),
       .outputs = PORTS({ "output1", "T", 0 }, { "output2", "T", 0 }),
       .types = TYPES({ "T", T(BIT(FLOAT16)) }, { "U", T_FLOAT }),
       BODY(18, { NULL, NODES(sines = Sin (emb)
                              cosines = Cos (emb)
                              second = Constant <value_ints = [1]> ()
                              s_narrow = CastLike (sines, q)
                              c_narrow = CastLike (cosines, q)
                              s = Unsqueeze (s_narrow, second)
                              c = Unsqueeze (c_narrow, second)
                              q_c = Mul (q, c)
                              q_s = Mul (q_rot, s)
                              output1 = Add (q_c, q_s)
                              k_c = Mul (k, c)
                              k_s = Mul (k_rot, s)
                              output2 = Add (k_c, k_s)) }))

/* grad_texts.h - models whose gradients are tested in addition to those of recipes: subgraphs, functions, sequences,
 * shapes known only during a run, and attributes that recipes do not have. */
#ifndef ONXI_TEST_GRAD_TEXTS_H
#define ONXI_TEST_GRAD_TEXTS_H

#define HEAD_OF(version)                                                                                               \
    "<ir_version: 10, opset_import: [\"\" : " version                                                                  \
    ", \"f\" : 1, \"ai.onnx.preview\" : 1, \"ai.onnx.preview.training\" : 1, \"ai.onnx.ml\" : 3]>\n"
#define HEAD HEAD_OF("21")

/* Inputs are of double, N is 3, M is 2 and S is 1. */
#define PLACES                                                                                                         \
    "<float[2, 2, 3, 2] places = {-0.9, -0.7, 0.13, 0.41, 0.77, 0.93, -1.3, 0.2, 1.6, -1.2, 0.31, -2.9, "              \
    "0.0, 0.05, -0.45, 0.6, 0.9, -0.2, 3.1, 0.3, -0.6, -0.33, 0.2, 1.1}>"
#define BOXES                                                                                                          \
    "<int64[3] at = {0, 1, 0}, double[3, 4] boxes = {0.3, 0.4, 3.7, 4.9, -2.1, 1.2, 2.2, 9.3, 1.1, 2.2, 2.4, 6.7}>"
#define LINEAR(post)                                                                                                                                \
    "ai.onnx.ml.LinearRegressor <coefficients = [0.5, -0.2, 0.1, 0.3, 0.05, -0.25], intercepts = [0.4, 0.3], targets = 2, post_transform = \"" post \
    "\"> "
#define CLASSES "classlabels_ints = [7, 8], "
#define MACHINE(kernel)                                                                                                                                                                              \
    "ai.onnx.ml.SVMRegressor <n_supports = 2, support_vectors = [1.0, 0.1, 0.5, -1.0, 0.4, 0.3], coefficients = [1.0, -0.5], rho = [0.25], kernel_params = [0.4, 0.3, 3.0], kernel_type = \"" kernel \
    "\"> "
#define VOTER(more)                                                                                                                       \
    "ai.onnx.ml.SVMClassifier <support_vectors = [1.0, 0.1, 0.5, -1.0, 0.4, 0.3, 0.2, 0.9, -0.6], kernel_params = [0.4, 0.3, 3.0], " more \
    "> (x) "
/* clang-format off */
static const char
    *const texts[] = {
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y) { s = ReduceSum <keepdims = 0> (a) z = Constant <value = double {0.0}> () c = Less (s, z)"
        " y = If <then_branch = t () => (double[3] u) { u = Mul (a, b) }, else_branch = e () => (double[3] v) { w = Sin (a) v = Mul (w, w) }> (c) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y, double[4, 3] ys) { n = Constant <value_int = 4> () t = Constant <value = bool {1}> ()"
        " y, ys = Loop <body = l (int64 i, bool c, double[3] x) => (bool d, double[3] x2, double[3] o) { d = Identity (c) p = Mul (x, b) x2 = Sin (p) f = Cast <to = 11> (i) q = Add (f, x2) o = Mul (q, a) }> (n, t, a) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y) { n = Constant <value_int = 9> () t = Constant <value = bool {1}> () zero = Constant <value_int = 0> ()"
        " y, k = Loop <body = l (int64 i, bool c, double[3] x, int64 j) => (bool d, double[3] x2, int64 j2) { two = Constant <value_int = 2> () j2 = Add (j, two) six = Constant <value_int = 6> () d = Less (j2, six)"
        " e = Greater (j2, two) x2 = If <then_branch = t1 () => (double[3] u) { u = Mul (x, b) }, else_branch = e1 () => (double[3] v) { v = Tanh (x) }> (e) }> (n, t, a, zero)  }",
        HEAD
        "g (double[2] h, double[N, 2] x, double[2] w) => (double[2] y, double[N, 2] ys) {"
        " y, ys = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1], body = b (double[2] s, double[2] t) => (double[2] s2, double[2] o) { p = Mul (s, w) q = Add (p, t) s2 = Tanh (q) o = Mul (s2, t) }> (h, x) }",
        HEAD
        "g (double[2] h, double[2, N] x) => (double[2] y, double[2, N] ys) {"
        " y, ys = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], body = b (double[2] s, double[2] t) => (double[2] s2, double[2] o) { q = Mul (s, t) s2 = Cos (q) o = Identity (q) }> (h, x) }",
        HEAD "g (double[2] v) => (double[3, 4] y) <int64[3] i = {0, 3, 1}, int64 d = {4}> { y = OneHot (i, d, v) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[] y, double[2, 3] r) { s = SequenceConstruct (a, b) i = Constant <value_int = -1> () t = SequenceAt (s, i) c = ConcatFromSequence <axis = 0> (s)"
        " r = ConcatFromSequence <axis = 0, new_axis = 1> (s) p = Sin (c) u = Mul (t, b) v = ReduceSum <keepdims = 0> (u) w = ReduceMax <keepdims = 0> (p) y = Mul (v, w) }",
        HEAD
        "g (double[N, M] a, double[N, M] b) => (double[] y, double[5, M] z) { l = Constant <value_ints = [1, 2]> () s = SplitToSequence <axis = 0> (a, l) k = SplitToSequence <axis = -1, keepdims = 0> (b) o = Constant <value_int = 1> ()"
        " e = SequenceErase (s, o) f = SequenceInsert (e, b) h = SequenceInsert (f, a, o) m = Constant <value_int = -2> () n = SequenceErase (h, m) z0 = ConcatFromSequence <axis = 0> (h) q = Constant <value_ints = [0]> () t = Constant <value_ints = [5]> ()"
        " z1 = Slice (z0, q, t) z = Exp (z1) x = SequenceAt (k, o) w = SequenceAt (n, o) ww = Mul (w, w) y1 = ReduceSum <keepdims = 0> (x) y2 = ReduceSum <keepdims = 0> (ww) y = Mul (y1, y2) }",
        /* SequenceMap: over two sequences, beside a tensor and what the body captures; and over nothing. */
        HEAD
        "g (double[3] a, double[2] b, double[1] f, double[3] h) => (double[] y, double[5] z) { s = SequenceConstruct (a, b) t = SequenceConstruct (b, a) two = Constant <value = double {2.0}> ()"
        " u, w = SequenceMap <body = each (double[n] p, double[m] q, double[1] k) => (double[n] r, double[1] o) { sp = Sin (p) r1 = Mul (sp, k) r = Mul (r1, two) sq = ReduceSumSquare <keepdims = 0> (q) hs = ReduceSum <keepdims = 0> (h) ho = Mul (hs, sq) o = Add (ho, k) }> (s, t, f)"
        " z = ConcatFromSequence <axis = 0> (u) c = ConcatFromSequence <axis = 0, new_axis = 1> (w) c2 = Mul (c, c) y1 = ReduceSum <keepdims = 0> (c2) e = SequenceEmpty <dtype = 11> ()"
        " n = SequenceMap <body = none (double[i] v) => (double[i] x) { x = Mul (v, f) }> (e) m = SequenceInsert (n, b) zero = Constant <value_int = 0> () l = SequenceAt (m, zero) y2 = ReduceSumSquare <keepdims = 0> (l) y = Mul (y1, y2) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <mode = \"cubic\"> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <mode = \"linear\", padding_mode = \"border\"> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <padding_mode = \"reflection\"> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <padding_mode = \"reflection\", align_corners = 1> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <mode = \"cubic\", padding_mode = \"border\", align_corners = 1> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <mode = \"nearest\", padding_mode = \"reflection\"> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <align_corners = 1> (x, places) }",
        /* Places of Slice that are known at run time alone: from the end, outside, of no or all axes. */
        HEAD
        "g (double[N, 4] a, double[N, M] b) => (double[N, v] y, double[w, 4] z, double[p, q] u) { s = Shape <start = 0, end = 1> (a) t = Shape (a) o = Constant <value_ints = [1]> () m = Neg (s) e = Add (s, s)"
        " two = Sub (s, o) c = Sin (a) y1 = Slice (c, m, e, o, o) y = Mul (y1, y1) z1 = Slice (c, o, e) z = Exp (z1) from = Neg (t) to = Neg (two) i = Concat <axis = 0> (to, o) u1 = Slice (c, from, i) u = Mul (u1, u1) }",
        HEAD
        "g (double[N, 4] a) => (double[v, 4] y, double[N, w] z) { s = Shape (a) n = Shape <start = 0, end = 1> (a) f = Cast <to = 6> (n) g1 = Constant <value = int32[1] {1}> () d = Sub (f, g1) m = Constant <value = int32[1] {-1}> ()"
        " x = Sin (a) y1 = Slice (x, f, d) y2 = Slice (x, d, f) y = Concat <axis = 0> (y1, y2) z1 = Slice (x, d, f, m) z = Exp (z1) }",
        HEAD "g (double[3] a) => (double[3] y) { o = Optional (a) p = OptionalGetElement (o) y = Mul (p, a) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y) { y = f.F (a, b) }\n<domain: \"f\", opset_import: [\"\" : 21]> F (x, z) => (r) { s = Softmax (x) t = ReduceSum <keepdims = 1> (s) u = Sub (z, t) r = Mul (u, s) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y) { m = Mul (a, b) c = Mul (m, m) l = ReduceSum <keepdims = 0> (c) da = ai.onnx.preview.training.Gradient <xs = [\"a\"], zs = [\"b\"], y = \"l\"> (a, b) y = Sin (da) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y) { m = Exp (a) l = ReduceSum <keepdims = 0> (m) da = ai.onnx.preview.training.Gradient <xs = [\"a\"], y = \"l\"> (b) y = Mul (da, a) }",
        HEAD
        "g (double[N, M] a, double[M] b, double[N, S] c) => (double[N, M] y) { p = Add (a, b) q = Mul (p, c) one = Constant <value_ints = [1]> () r = MatMul (a, b) s = Unsqueeze (r, one) t = Mul (q, s) y = Div (t, c) }",
        HEAD
        "g (double[S, M, N, N] x, double[3, 2, 2, 2] w) => (double[S, 3, M, M] y, double[] m) { y = Conv (x, w) p, i = MaxPool <kernel_shape = [2, 2]> (x) q = AveragePool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1, pads = [1, 0, 0, 1]> (x) s = ReduceSum <keepdims = 0> (p) t = ReduceMean <keepdims = 0> (q) m = Mul (s, t) }",
        HEAD
        "g (double[M, N, N] x) => (double[M, N, N] y) { c = Einsum <equation = \"bij,bjk->bik\"> (x, x) d = Einsum <equation = \"bij->i\"> (x) e = Einsum <equation = \"...j,j->...j\"> (c, d) y = Add (e, x) }",
        HEAD
        "g (double[S, M, 4, 4] x) => (double[S, M, u, v] y) { f = Constant <value_floats = [1.0, 1.0, 1.5, 0.75]> () y = Resize <mode = \"cubic\"> (x, , f) }",
        HEAD
        "g (double[S, M, 4] x) => (double[S, M, v] y) { n = Constant <value_ints = [7]> () y = Resize <mode = \"linear\", axes = [2], coordinate_transformation_mode = \"align_corners\"> (x, , , n) }",
        HEAD
        "g (double[N, S, M] x, double[2, 4, 2] w, double[2, 4, 4] r, double[2, 8] b, double[2, S, 4] h) => (double[N, 2, S, 4] y, double[2, S, 4] z)"
        " { y, z = RNN <direction = \"bidirectional\", hidden_size = 4, activations = [\"Tanh\", \"Sigmoid\"]> (x, w, r, b, , h) }",
        /* Fourier transforms: filled up and cut, of one side, back, and back from one side; of real and complex
           numbers. */
        HEAD
        "g (double[N, 5, 2] x, double[N, 5, 1] r) => (double[] y) { five = Constant <value_int = 5> () eight = Constant <value_int = 8> () three = Constant <value_int = 3> () at = Constant <value_int = 1> ()"
        " a = DFT (x, eight) b = DFT <onesided = 1> (r, three, at) c = DFT <inverse = 1> (x, three) d = DFT <inverse = 1> (r, eight) e = DFT <onesided = 1> (r) f = DFT <inverse = 1, onesided = 1> (x)"
        " h = DFT <inverse = 1, onesided = 1> (x, three) i = DFT <inverse = 1, onesided = 1> (x, five, at) l = DFT (r, five, at)"
        " a1 = ReduceSumSquare <keepdims = 0> (a) b1 = ReduceSumSquare <keepdims = 0> (b) c1 = ReduceL2 <keepdims = 0> (c) d1 = ReduceL2 <keepdims = 0> (d) e1 = ReduceL2 <keepdims = 0> (e) f1 = ReduceSumSquare <keepdims = 0> (f)"
        " h1 = ReduceSumSquare <keepdims = 0> (h) i1 = ReduceL2 <keepdims = 0> (i) l1 = ReduceSumSquare <keepdims = 0> (l) y = Sum (a1, b1, c1, d1, e1, f1, h1, i1, l1) }",
        HEAD_OF(
            "17") "g (double[4, N, M, 2] x, double[4, N, M, 1] r) => (double[5, N, M, 2] y, double[4, 2, M, 2] z, double[4, N, M, 2] u, double[4, 4, M, 1] v) { five = Constant <value_int = 5> () y = DFT <axis = 0> (x, five) z = DFT <onesided = 1> (r)"
                  " u = DFT <axis = 2, inverse = 1> (x) v = DFT <inverse = 1, onesided = 1> (x) }",
        HEAD
        "g (double[M, 11, 1] x, double[M, 11] s, double[M, 11, 2] c, double[5] w) => (double[M, 4, 3, 2] y, double[M, 1, 11, 2] z, double[M, 3, 5, 2] u) { three = Constant <value_int = 3> () two = Constant <value_int = 2> () five = Constant <value_int = 5> ()"
        " y = STFT (x, two, w, five) z = STFT <onesided = 0> (s, two) u = STFT <onesided = 0> (c, three, w) }",
        HEAD_OF(
            "18") "g (double[M, 9, 1] x) => (double[M, 3, 3, 2] y) { two = Constant <value_int = 2> () four = Constant <value_int = 4> () y = STFT (x, two, , four) }",
        /* Regions: of an average and the largest, with as many points as said or as it takes, beyond the edges. */
        HEAD
        "g (double[M, 2, 6, 5] x, double[3, 4] moved) => (double[3, 2, 2, 3] y) " BOXES
        " { b = Add (boxes, moved) y = RoiAlign <output_height = 2, output_width = 3, spatial_scale = 0.7> (x, b, at) }",
        HEAD
        "g (double[M, 2, 6, 5] x, double[3, 4] moved) => (double[3, 2, 2, 3] y) " BOXES
        " { b = Add (boxes, moved) y = RoiAlign <output_height = 2, output_width = 3, sampling_ratio = 2, coordinate_transformation_mode = \"output_half_pixel\"> (x, b, at) }",
        HEAD "g (double[M, 2, 6, 5] x) => (double[3, 2, 2, 3] y) " BOXES
             " { y = RoiAlign <output_height = 2, output_width = 3, mode = \"max\"> (x, boxes, at) }",
        HEAD
        "g (double[M, 2, 6, 5] x) => (double[3, 2, 2, 3] y) " BOXES
        " { y = RoiAlign <output_height = 2, output_width = 3, mode = \"max\", sampling_ratio = 3> (x, boxes, at) }",
        HEAD_OF("10") "g (double[M, 2, 6, 5] x) => (double[3, 2, 2, 2] y) " BOXES
                      " { y = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 2> (x, boxes, at) }",
        HEAD
        "g (double[M, 4, 5, 6] x, double[6, 2, 2, 3] w, double[M, 24, 3, 1] o, double[M, 12, 3, 1] m, double[6] b) => (double[M, 6, 3, 1] y) { y = DeformConv <group = 2, offset_group = 2, strides = [2, 2], pads = [1, 0, 0, 0], dilations = [1, 2]> (x, w, o, b, m) }",
        HEAD
        "g (double[M, 2, 6] x, double[3, 2, 2] w, double[M, 2, 5] o) => (double[M, 3, 5] y) { y = DeformConv (x, w, o) }",
        HEAD
        "g (double[S, 2, 3, 3, 3] x, double[1, 1, 2, 2, 2] w, double[S, 24, 2, 2, 2] o) => (double[S, 2, 2, 2, 2] y) { ww = Concat <axis = 0> (w, w) y = DeformConv <group = 2> (x, ww, o) }",
        /* Scales of a tensor, of an axis, and of blocks of which the last is short. */
        HEAD
        "g (float[S] a, float[3] b, float[3, 3] c, float[2, 5] d) => (float[3, 5] y, float[3, 5] z, float[3, 5] u, float[3, 5] v)"
        " <int8[3, 5] x = {1, -2, 3, 4, -5, 6, 7, -8, 9, 1, 2, 3, -4, 5, 6}, int8 p = {3}, int8[3, 3] q = {1, 2, 0, -1, -2, 3, 1, 0, 2}>"
        " { y = DequantizeLinear (x, a, p) z = DequantizeLinear <axis = 0> (x, b) u = DequantizeLinear <axis = -1, block_size = 2> (x, c, q) v = DequantizeLinear <axis = 0, block_size = 2> (x, d) }",
        /* ai.onnx.ml: what scores become, kernels of support vectors, norms. */
        HEAD
        "g (double[N, 3] x) => (float[N, 2] y, float[N, 2] z, float[N, 2] u, float[N, 2] v) { c = Tanh (x) y = " LINEAR(
            "NONE") "(c) z = " LINEAR("SOFTMAX") "(c) u = " LINEAR("LOGISTIC") "(c) v = " LINEAR("SOFTMAX_ZERO") "(c) }",
        HEAD
        "g (float[N, 2] x) => (float[N, 2] y) { t = Constant <value = float {0.2}> () h = Constant <value = float {0.5}> () s = Sigmoid (x) p = Mul (s, t) q = Add (p, h)"
        " y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 0.0, 0.0, -1.0], intercepts = [-0.4, 1.0], targets = 2, post_transform = \"PROBIT\"> (q) }",
        HEAD
        "g (float[N, 3] x) => (float[N, 2] y, float[N, 2] z, float[N, 2] u) { l, y = ai.onnx.ml.LinearClassifier <" CLASSES
        "coefficients = [0.5, -0.2, 0.1]> (x)"
        " m, z = ai.onnx.ml.LinearClassifier <" CLASSES
        "coefficients = [0.5, -0.2, 0.1], intercepts = [0.2], post_transform = \"SOFTMAX\"> (x)"
        " n, u = ai.onnx.ml.LinearClassifier <classlabels_strings = [\"a\", \"b\"], coefficients = [0.5, -0.2, 0.1, 0.3, 0.7, -0.4], post_transform = \"LOGISTIC\"> (x) }",
        HEAD
        "g (float[N, 3] x) => (float[N, 1] y, float[N, 1] z, float[N, 1] u, float[N, 1] v, float[N, 1] w) { y = " MACHINE(
            "LINEAR") "(x) z = " MACHINE("POLY") "(x) u = " MACHINE("RBF") "(x) v = " MACHINE("SIGMOID") "(x)"
                                                                                                         " w = ai.onnx.ml.SVMRegressor <coefficients = [1.0, -0.5, 0.3], rho = [0.25], post_transform = \"LOGISTIC\"> (x) }",
        HEAD
        "g (float[N, 3] x) => (float[N, 3] y, float[N, 3] z, float[N, 3] u, float[N, 3] v, float[N, 3] w, float[N, 4] t) { y = ai.onnx.ml.Normalizer <norm = \"MAX\"> (x) z = ai.onnx.ml.Normalizer <norm = \"L1\"> (x) u = ai.onnx.ml.Normalizer <norm = \"L2\"> (x)"
        " v = ai.onnx.ml.Scaler <offset = [1.0]> (x) w = ai.onnx.ml.Imputer <imputed_value_floats = [1.0], replaced_value_float = nan> (x) t = ai.onnx.ml.FeatureVectorizer <inputdimensions = [4]> (x) }",
        HEAD
        "g (float[N, 3] x) => (float[N, 3] y, float[N, 2] z, float[N, 2] u) { l, y = " VOTER("classlabels_ints = [0, 1, 2], vectors_per_class = [1, 1, 1], coefficients = [1.0, -0.5, 0.3, 0.7, 0.2, -0.9], rho = [0.2, 0.1, -0.2], kernel_type = \"POLY\"") "m, z = " VOTER(
            "classlabels_ints = [4, 5], vectors_per_class = [1, 2], coefficients = [1.0, -0.5, 0.3], rho = [0.25], kernel_type = \"RBF\"") " n, u = ai.onnx.ml.SVMClassifier <classlabels_strings = [\"a\", \"b\"], coefficients = [0.5, -0.2, 0.1, 0.3, 0.7, -0.4], rho = [0.1], post_transform = \"LOGISTIC\"> (x) }",
        /* FlexAttention: queries that share keys, scores and probabilities that go through graphs, which read what is around
           them and have initializers; and none. */
        HEAD
        "g (double[M, 4, 3, 2] q, double[M, 2, N, 2] k, double[M, 2, N, 3] v, double[3, 3] b, double[3] c) => (double[M, 4, 3, 3] y, double[M, 2, N, 3] z) {"
        " y = ai.onnx.preview.FlexAttention <scale = 0.7, score_mod = m (double[i, h, l, n] s) => (double[i, h, l, n] t) <double w = {1.5}> { s1 = Mul (s, w) s2 = Tanh (s1) t = Add (s2, b) },"
        " prob_mod = o (double[i, h, l, n] s) => (double[i, h, l, n] t) { s1 = Mul (s, s) t = Mul (s1, c) }> (q, k, v)"
        " z = ai.onnx.preview.FlexAttention (k, k, v) }",
        HEAD
        "g (float[M, 2, 3, 2] q, float[M, 2, N, 2] k, float[M, 2, N, 3] v) => (float[M, 2, 3, 3] y) { y = ai.onnx.preview.FlexAttention <softmax_precision = 11, score_mod = m (double[i, h, l, n] s) => (double[i, h, l, n] t) { t = Sin (s) }> (q, k, v) }",
        /* Probabilities of classes: of three and of two, with each kernel. */
        HEAD
        "g (float[N, 3] x) => (float[N, 3] y, float[N, 3] z, float[N, 2] u, float[N, 2] v) { l, y = " VOTER("classlabels_ints = [0, 1, 2], vectors_per_class = [1, 1, 1], coefficients = [1.0, -0.5, 0.3, 0.7, 0.2, -0.9], rho = [0.2, 0.1, -0.2], kernel_type = \"POLY\", prob_a = [-1.2, -0.8, -1.5], prob_b = [0.1, -0.3, 0.2]")
        "k, z = " VOTER("classlabels_strings = [\"a\", \"b\", \"c\"], vectors_per_class = [1, 1, 1], coefficients = [1.0, -0.5, 0.3, 0.7, 0.2, -0.9], rho = [0.2, 0.1, -0.2], kernel_type = \"RBF\", prob_a = [-1.2, -0.8, -1.5], prob_b = [0.1, -0.3, 0.2], post_transform = \"SOFTMAX\"")
        "m, u = " VOTER("classlabels_ints = [4, 5], vectors_per_class = [1, 2], coefficients = [1.0, -0.5, 0.3], rho = [0.25], kernel_type = \"LINEAR\", prob_a = [-0.9], prob_b = [0.2]")
        "n, v = " VOTER("classlabels_ints = [4, 5], vectors_per_class = [1, 2], coefficients = [1.0, -0.5, 0.3], rho = [0.25], kernel_type = \"SIGMOID\", prob_a = [-0.9], prob_b = [0.2], post_transform = \"LOGISTIC\"") "}",
        HEAD_OF(
            "23") "g (float[M, N, 12] x, float[M, N, 2] c, float[M, N, 2] s, float[9, 1] d, float[9, 1] e) => (float[M, N, 12] y, float[M, N, 12] z) <int64[2, 3] at = {1, 0, 8, 1, 1, 3}> { y = RotaryEmbedding <num_heads = 3> (x, c, s)"
                  " z = RotaryEmbedding <num_heads = 3, rotary_embedding_dim = 2, interleaved = 1> (x, d, e, at) }",
        HEAD_OF(
            "27") "g (float[M, 3, 5] x, float[3, 1, 3] w, float[3] b, float[M, 3, 2] p) => (float[M, 3, 5] y, float[M, 3, 2] s, float[M, 3, 5] z) { y, s = CausalConvWithState <activation = \"silu\"> (x, w, b, p) z, t = CausalConvWithState (x, w) }",
        HEAD_OF(
            "27") "g (float[S, 3, 8] q, float[S, 3, 4] k, float[S, 3, 6] v, float[S, 3, 4] d, float[S, 3, S] b) => (float[S, 3, 12] y, float[S, 2, 2, 3] s) { y, s = LinearAttention <q_num_heads = 4, kv_num_heads = 2, scale = 0.7> (q, k, v, , d, b) }",
        HEAD_OF(
            "20") "g (double[M, 3, 4] t) => (double[M, 2, 3, 2, 3] y) { n = Constant <value_ints = [2, 3, 2, 3, 2]> () y = AffineGrid <align_corners = 1> (t, n) }",
        HEAD
        "g (double[N, M, 2] x, double[1, 12, 2] w, double[1, 12, 4] r, double[1, 24] b) => (double[N, 1, M, 4] y) <int32[2] n = {3, 2}>"
        " { y = GRU <direction = \"reverse\", hidden_size = 4, linear_before_reset = 1, clip = 0.7> (x, w, r, b, n) }",
        HEAD
        "g (double[M, N, 2] x, double[1, 16, 2] w, double[1, 16, 4] r, double[1, 32] b, double[1, 12] p) => (double[M, N, 1, 4] y, double[M, 1, 4] z, double[M, 1, 4] c) <int32[2] n = {3, 2}>"
        " { y, z, c = LSTM <hidden_size = 4, layout = 1> (x, w, r, b, n, , , p) }",
    };
/* clang-format on */

#endif

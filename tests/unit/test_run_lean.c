/* test_run_lean.c - sessions with lean memory (onx_session_options.lean_memory): they keep next to nothing of the
 * weights, and give the same results as others, with every kernel that packs weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/text.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "counts.h"
#include "folder.h"

/* What a session may keep; products before what is tested use it up. */
#define KEPT (16ll << 20)

/* ---- models: initializers without contents in the text get some here ---- */

typedef struct weights {
    void *base[64];
    uint32_t count;
} weights;

/* Every initializer of more than one element that the text has as "= {0}" with dims, `shift` bytes behind an address
 * that 64 divides. */
static void fill(onx_doc *doc, weights *all, size_t shift)
{
    const onx_graph *g = onx_doc_model(doc)->graph;
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        onx_tensor *t = g->initializer[i];
        uint64_t count = 1, size;
        for (uint32_t d = 0; d < t->dims_count; d++)
            count *= (uint64_t)t->dims[d];
        if (count < 2 || !onx_dtype_size(t->data_type, count, &size) || onx_view(t->name).ptr[0] != 'w')
            continue;
        char *base = all->base[all->count++] = aligned_alloc(64, (size_t)(size + 127) / 64 * 64);
        assert_non_null(base);
        uint32_t state = 12345 + i;
        for (uint64_t k = 0; k < size; k++) {
            state = state * 1664525u + 1013904223u;
            base[shift + k] = (char)(state >> 24);
        }
        for (uint64_t k = 0; t->data_type == ONX_FLOAT && k < count; k++) {
            state = state * 1664525u + 1013904223u;
            const float x = ((float)(state >> 16) / 65536.0f - 0.5f) / 8;
            memcpy(base + shift + k * sizeof x, &x, sizeof x);
        }
        t->float_data_count = t->int32_data_count = 0;
        assert_int_equal(onx_arena_refer(onx_doc_arena(doc), onx_str_make(base + shift, (size_t)size), &t->raw_data),
                         ONX_OK);
        t->has |= onx_tensor_has_raw_data;
    }
}

static void release(weights *all)
{
    while (all->count)
        free(all->base[--all->count]);
}

/* The text format wants as many numbers as there are elements; this is about their bytes. */
static onx_doc *parse(onx_ctx *cx, const char *text, weights *all, size_t shift)
{
    onx_doc *doc;
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    onx_graph *g = onx_doc_model(doc)->graph;
    for (uint32_t i = 0; i < g->initializer_count; i++) { /* "w1_64_8": a weight of 64 x 8 */
        onx_tensor *t = g->initializer[i];
        const onx_str name = onx_view(t->name);
        uint32_t rank = 0;
        int64_t dims[4];
        if (!name.len || name.ptr[0] != 'w')
            continue;
        for (size_t at = 0; at < name.len; at++)
            if (name.ptr[at] == '_' && rank < 4)
                dims[rank++] = strtol(name.ptr + at + 1, NULL, 10);
        t->dims = onx_arena_alloc(onx_doc_arena(doc), (rank + 1) * sizeof *dims);
        assert_non_null(t->dims);
        memcpy(t->dims, dims, rank * sizeof *dims);
        t->dims_count = rank;
    }
    fill(doc, all, shift);
    return doc;
}

static onx_value *numbers(onx_ctx *cx, const onx_session *s, uint32_t input)
{
    const onx_type_tensor *t = onx_session_input(s, input).type->tensor_type;
    int64_t dims[8];
    onx_value *v;
    for (uint32_t i = 0; i < t->shape->dim_count; i++)
        dims[i] = t->shape->dim[i]->dim_value;
    assert_int_equal(onx_value_new_tensor(cx, (onx_dtype)t->elem_type, t->shape->dim_count, dims, &v), ONX_OK);
    for (uint64_t i = 0; i < v->count; i++)
        if (v->dtype == ONX_FLOAT)
            ((float *)v->data)[i] = sinf((float)i * 0.37f);
        else if (v->dtype == ONX_BOOL)
            ((char *)v->data)[i] = i % 3 != 1;
        else
            ((uint8_t *)v->data)[i] = (uint8_t)(i * 37);
    return v;
}

static onx_session *session_of(onx_ctx *cx, onx_doc *doc, const onx_session_options *options)
{
    onx_session *s;
    if (onx_session_new(cx, doc, options, &s) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    return s;
}

/* ---- the same results ---- */

/* Nearly 16 MB, which is all that a session keeps, so that nothing of what follows is. */
#define FULL  "  full = MatMul (start, w0_2047_2048)"
#define FIRST "float[1] w0_2047_2048 = {0}"
#define HEAD(inputs, outputs, others)                                                                                  \
    "<ir_version: 10, opset_import: [\"\" : 21]> g (float[1,2047] start, " inputs ") => (float[1,2048] full, " outputs \
    ")\n<" FIRST ", " others "> {\n" FULL " "

typedef struct sample {
    const char *name, *text;
    bool exact; /* every kernel of it is the same one, on the same numbers in one order */
} sample;

static const sample samples[] = {
    { "products of many rows",
      HEAD("float[2,150,300] x", "float[2,150,70] y", "float[1] w1_300_70 = {0}") "y = MatMul (x, w1_300_70) }", true },
    { "products of one row and of some",
      HEAD(
          "float[1,1001] x, float[5,1001] z", "float[1,333] y, float[5,333] u",
          "float[1] w1_1001_333 = {0}, float[1] w2_333 = {0}") "p = MatMul (x, w1_1001_333) q = Add (p, w2_333) y = Relu (q) m = MatMul (z, w1_1001_333) u = Tanh (m) }",
      true },
    { "turned ones with what follows",
      HEAD(
          "float[7,450] x, float[1,450] z", "float[7,99] y, float[1,99] u",
          "float[1] w1_99_450 = {0}, float[1] w2_99 = {0}") "g = Gemm <transB = 1> (x, w1_99_450, w2_99) y = Gelu (g) u = Gemm <transB = 1> (z, w1_99_450, w2_99) }",
      true },
    { "of a left side that is turned",
      HEAD("float[64,40] x", "float[40,96] y",
           "float[1] w1_64_96 = {0}, float[1] w2_96 = {0}") "y = Gemm <transA = 1, alpha = 0.5> (x, w1_64_96, w2_96) }",
      true },
    { "a column at the end",
      HEAD("float[3,40,2048] x", "float[3,40,1] y", "float[1] w1_2048_1 = {0}") "y = MatMul (x, w1_2048_1) }", true },
    { "convolutions of 3x3", /* by another kernel */
      HEAD("float[1,64,20,20] x", "float[1,64,20,20] y",
           "float[1] w1_64_64_3_3 = {0}") "c = Conv <pads = [1,1,1,1]> (x, w1_64_64_3_3) y = Relu (c) }",
      false },
    { "convolutions of one pixel, in groups, of single channels",
      HEAD(
          "float[2,64,14,14] x", "float[2,64,14,14] y",
          "float[1] w1_64_64_1_1 = {0}, float[1] w2_64_16_3_3 = {0}, float[1] w3_64_1_5_5 = {0}") "a = Conv (x, w1_64_64_1_1) b = Conv <group = 4, pads = [1,1,1,1]> (a, w2_64_16_3_3) d = Add (b, x) "
                                                                                                  "y = Conv <group = 64, pads = [2,2,2,2]> (d, w3_64_1_5_5) }",
      true },
    { "convolutions with gaps, steps, and the other way round",
      HEAD(
          "float[1,32,17,17] x", "float[1,32,35,35] y",
          "float[1] w1_32_32_3_3 = {0}, float[1] w2_32_32_4_4 = {0}, float[1] w3_32_32_5_5 = {0}") "a = Conv <dilations = [3,3], pads = [3,3,3,3]> (x, w1_32_32_3_3) "
                                                                                                   "b = ConvTranspose <strides = [2,2], pads = [1,1,1,1], output_padding = [1,1]> (a, w2_32_32_4_4) "
                                                                                                   "y = Conv <pads = [2,2,2,2]> (b, w3_32_32_5_5) }",
      true },
    { "images of one pixel, normalized weights",
      HEAD(
          "float[3,256,1,1] x, float[1,32,9,9] z", "float[3,128,1,1] y, float[1,48,5,5] u",
          "float[1] w1_128_256_1_1 = {0}, float[1] w2_48_32_3_3 = {0}, float[1] w3_48 = {0}, float[1] w4_48 = {0}") "y = Conv (x, w1_128_256_1_1) v = Mul (w3_48, w3_48) c = Conv <strides = [2,2], pads = [1,1,1,1]> (z, w2_48_32_3_3) "
                                                                                                                    "u = BatchNormalization (c, w3_48, w4_48, w4_48, v) }",
      true },
    { "recurrent layers",
      HEAD(
          "float[9,3,40] x", "float[9,2,3,50] y, float[9,1,3,33] u, float[9,1,3,20] v",
          "float[1] w1_2_200_40 = {0}, float[1] w2_2_200_50 = {0}, float[1] w3_1_99_40 = {0}, "
          "float[1] w4_1_99_33 = {0}, float[1] w5_1_20_40 = {0}, float[1] w6_1_20_20 = {0}") "y = LSTM <hidden_size = 50, direction = \"bidirectional\"> (x, w1_2_200_40, w2_2_200_50) "
                                                                                             "u = GRU <hidden_size = 33> (x, w3_1_99_40, w4_1_99_33) v = RNN <hidden_size = 20> (x, w5_1_20_40, w6_1_20_20) }",
      true },
    { "integers",
      HEAD(
          "uint8[5,200] x, uint8[1,16,9,9] z", "int32[5,64] y, int32[1,24,9,9] u, uint8[5,64] v",
          "int8[1] w1_200_64 = {0}, int8[1] w2_24_16_3_3 = {0}, float s = {0.02}, uint8 o = {7}, int8 n = {0}") "y = MatMulInteger (x, w1_200_64, o) u = ConvInteger <pads = [1,1,1,1]> (z, w2_24_16_3_3, o) "
                                                                                                                "v = QLinearMatMul (x, s, o, w1_200_64, s, n, s, o) }",
      true },
    { "weights of bytes between QuantizeLinear and DequantizeLinear",
      HEAD(
          "float[20,300] x, float[1,32,12,12] z", "float[20,90] y, float[1,64,12,12] u",
          "int8[1] w1_300_90 = {0}, float[1] w2_90 = {0}, int8[1] w3_64_32_3_3 = {0}, float s = {0.02}, "
          "uint8 o = {128}, int8 n = {0}") "sw = Abs (w2_90) q = QuantizeLinear (x, s, o) f = DequantizeLinear (q, s, o) "
                                           "w = DequantizeLinear (w1_300_90, sw) y = MatMul (f, w) "
                                           "p = QuantizeLinear (z, s, o) g = DequantizeLinear (p, s, o) k = DequantizeLinear (w3_64_32_3_3, s, n) "
                                           "u = Conv <pads = [1,1,1,1]> (g, k) }",
      false },
    { "weights of bytes alone",
      HEAD(
          "float[20,300] x, float[1,64,12,12] z, float[1,300] h",
          "float[20,90] y, float[1,128,12,12] u, float[1,90] v, float[20,400] t",
          "int8[1] w1_300_90 = {0}, float[1] w2_90 = {0}, uint8[1] w3_128_64_3_3 = {0}, float[1] w4_400_10 = {0}, "
          "float s = {0.02}, uint8 n = {131}, int4[1] w5_400_300 = {0}") "sw = Abs (w2_90) w = DequantizeLinear <axis = 1> (w1_300_90, sw) y = MatMul (x, w) v = MatMul (h, w) "
                                                                         "k = DequantizeLinear (w3_128_64_3_3, s, n) u = Conv <pads = [1,1,1,1]> (z, k) "
                                                                         "f = DequantizeLinear <axis = 1, block_size = 30> (w5_400_300, w4_400_10) t = Gemm <transB = 1> (x, f) }",
      false },
    { "where a run tells shapes, and in a branch",
      HEAD(
          "float[12,300] x, bool[12] keep, bool[1] c", "float[N,80] y, float[12,80] u",
          "float[1] w1_300_80 = {0}, float[1] w2_300_80 = {0}") "some = Compress <axis = 0> (x, keep) m = MatMul (some, w1_300_80) y = Relu (m) one = Squeeze (c) "
                                                                "u = If (one) <then_branch = a () => (float[12,80] a1) { a1 = MatMul (x, w2_300_80) }, "
                                                                "else_branch = b () => (float[12,80] b1) { b1 = MatMul (x, w1_300_80) }> }",
      true },
    { "constants that nodes compute",
      HEAD(
          "float[4,1500] x", "float[4,3000] y",
          "float[1] w1_3000_1500 = {0}") "t = Transpose <perm = [1, 0]> (w1_3000_1500) d = Add (t, t) y = MatMul (x, d) }",
      false },
};

static void compare(const sample *of, const onx_value *a, const onx_value *b)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->size, b->size);
    if (of->exact || a->dtype != ONX_FLOAT) {
        if (memcmp(a->data, b->data, a->size) != 0)
            fail_msg("%s: the bits differ", of->name);
        return;
    }
    double most = 0, apart = 0;
    for (uint64_t i = 0; i < a->count; i++) {
        most = fmax(most, fabs((double)((const float *)b->data)[i]));
        apart = fmax(apart, fabs((double)((const float *)a->data)[i] - (double)((const float *)b->data)[i]));
    }
    if (!(apart <= 2e-5 * most))
        fail_msg("%s: %g apart of %g", of->name, apart, most);
}

/* A session, and one that keeps little with options of its own. */
static void run_both(const sample *of, const onx_session_options *options, const onx_session_options *others,
                     size_t shift)
{
    weights all = { .count = 0 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, of->text, &all, shift);
    onx_session_options lean = *others;
    lean.lean_memory = true;
    onx_session *s[] = { session_of(cx, doc, options), session_of(cx, doc, &lean) };
    const uint32_t ins = onx_session_input_count(s[0]), outs = onx_session_output_count(s[0]);
    onx_value *in[4] = { NULL }, *out[2][6] = { { NULL } };
    assert_true(ins <= 4 && outs <= 6);
    for (uint32_t i = 0; i < ins; i++)
        in[i] = numbers(cx, s[0], i);
    for (int turn = 0; turn < 2; turn++) /* what passes is made again */
        for (int k = 0; k < 2; k++)
            if (onx_session_run(s[k], cx, (const onx_value *const *)in, out[k]) != ONX_OK)
                fail_msg("%s: %.*s", of->name, ONX_ARG(onx_diag_get(cx, 0)->message));
    for (uint32_t i = 0; i < outs; i++) {
        compare(of, out[1][i], out[0][i]);
        onx_value_free(out[0][i]);
        onx_value_free(out[1][i]);
    }
    for (uint32_t i = 0; i < ins; i++)
        onx_value_free(in[i]);
    onx_session_free(s[0]);
    onx_session_free(s[1]);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    release(&all);
}

static void run_sample(const sample *of, const onx_session_options *options, size_t shift)
{
    run_both(of, options, options, shift);
}

static void test_run_lean__every_kernel_that_packs(void **state)
{
    (void)state;
    static const unsigned isas[] = { ONX_ISA_BASE, ONX_ISA_V3, ONX_ISA_V4, ONX_ISA_ANY };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        for (size_t k = 0; k < sizeof isas / sizeof *isas; k++)
            run_sample(&samples[i], &(onx_session_options){ .threads = k % 2 ? 3 : 1, .isa = isas[k] }, k % 2);
        run_sample(&samples[i], &(onx_session_options){ .threads = 1, .plain = true }, 1);
    }
}

/* Weights in fewer bits are made anew, too. */
static void test_run_lean__in_fewer_bits(void **state)
{
    (void)state;
    for (unsigned p = ONX_PRECISION_FULL; p < ONX_PRECISION_END; p++)
        for (int i = 0; i < 3; i++)
            run_sample(&samples[i], &(onx_session_options){ .threads = 2, .precision = p }, 1);
}

/* ---- memory ---- */

enum { LAYERS = 8 };

static const char *const wholes[] = {
    "<ir_version: 10, opset_import: [\"\" : 21]> g (float[4,1448] start) => (float[4,1448] z)\n"
    "<float[1] w1_1448_1448 = {0}, float[1] w2_1448_1448 = {0}, float[1] w3_1448_1448 = {0}, float[1] w4_1448_1448 = {0},"
    " float[1] w5_1448_1448 = {0}, float[1] w6_1448_1448 = {0}, float[1] w7_1448_1448 = {0}, float[1] w8_1448_1448 = {0}>"
    "{ a = MatMul (start, w1_1448_1448) b = Gemm <transB = 1> (a, w2_1448_1448) c = MatMul (b, w3_1448_1448)"
    "  d = Gemm <transB = 1> (c, w4_1448_1448) e = MatMul (d, w5_1448_1448) f = Gemm <transB = 1> (e, w6_1448_1448)"
    "  h = MatMul (f, w7_1448_1448) z = Gemm <transB = 1> (h, w8_1448_1448) }",
    "<ir_version: 10, opset_import: [\"\" : 21]> g (float[4,1448] start) => (float[4,1448] z)\n"
    "<int8[1] w1_1448_1448 = {0}, int8[1] w2_1448_1448 = {0}, int4[1] w3_1448_1448 = {0}, uint8[1] w4_1448_1448 = {0},"
    " int8[1] w5_1448_1448 = {0}, int8[1] w6_1448_1448 = {0}, int8[1] w7_1448_1448 = {0}, int8[1] w8_1448_1448 = {0},"
    " float s = {0.01}> { d1 = DequantizeLinear (w1_1448_1448, s) d2 = DequantizeLinear (w2_1448_1448, s)"
    "  d3 = DequantizeLinear (w3_1448_1448, s) d4 = DequantizeLinear (w4_1448_1448, s)"
    "  d5 = DequantizeLinear (w5_1448_1448, s) d6 = DequantizeLinear (w6_1448_1448, s)"
    "  d7 = DequantizeLinear (w7_1448_1448, s) d8 = DequantizeLinear (w8_1448_1448, s)"
    "  a = MatMul (start, d1) b = Gemm <transB = 1> (a, d2) c = MatMul (b, d3) d = Gemm <transB = 1> (c, d4)"
    "  e = MatMul (d, d5) f = Gemm <transB = 1> (e, d6) h = MatMul (f, d7) z = Gemm <transB = 1> (h, d8) }",
    "<ir_version: 10, opset_import: [\"\" : 21]> g (float[1,384,4,4] start) => (float[1,384,4,4] z)\n"
    "<float[1] w1_384_384_3_3 = {0}, float[1] w2_384_384_3_3 = {0}, float[1] w3_384_384_3_3 = {0},"
    " float[1] w4_384_384_3_3 = {0}, float[1] w5_384_384_3_3 = {0}, float[1] w6_384_384_3_3 = {0},"
    " float[1] w7_384_384_3_3 = {0}, float[1] w8_384_384_3_3 = {0}, float[1] w9_384_384_3_3 = {0},"
    " float[1] w10_384_384_3_3 = {0}, float[1] w11_384_384_3_3 = {0}, float[1] w12_384_384_3_3 = {0}> {"
    "  a = Conv <pads = [1,1,1,1]> (start, w1_384_384_3_3) b = Conv <pads = [1,1,1,1]> (a, w2_384_384_3_3)"
    "  c = Conv <pads = [1,1,1,1]> (b, w3_384_384_3_3) d = Conv <pads = [1,1,1,1]> (c, w4_384_384_3_3)"
    "  e = Conv <pads = [1,1,1,1]> (d, w5_384_384_3_3) f = Conv <pads = [1,1,1,1]> (e, w6_384_384_3_3)"
    "  h = Conv <pads = [1,1,1,1]> (f, w7_384_384_3_3) i = Conv <pads = [1,1,1,1]> (h, w8_384_384_3_3)"
    "  j = Conv <pads = [1,1,1,1]> (i, w9_384_384_3_3) k = Conv <pads = [1,1,1,1]> (j, w10_384_384_3_3)"
    "  l = Conv <pads = [1,1,1,1]> (k, w11_384_384_3_3) z = Conv <pads = [1,1,1,1]> (l, w12_384_384_3_3) }",
};

/* The most that a session and its runs have taken at a time. */
static long long most_of(const char *text, size_t shift, bool lean)
{
    counts c = { 0 };
    weights all = { .count = 0 };
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ counted_resize, &c });
    onx_doc *doc = parse(cx, text, &all, shift);
    const long long before = atomic_load(&c.now);
    atomic_store(&c.most, before);
    onx_session *s = session_of(cx, doc, &(onx_session_options){ .threads = 1, .lean_memory = lean });
    onx_value *x = numbers(cx, s, 0), *y = NULL;
    for (int i = 0; i < 2; i++)
        assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    const long long most = atomic_load(&c.most) - before;
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    assert_int_equal(atomic_load(&c.now), 0);
    release(&all);
    return most;
}

/* 64 MB of weights of floats, whatever they are made of. */
static void test_run_lean__holds_next_to_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
        for (size_t shift = 0; shift <= 1; shift++) {
            const long long most = most_of(wholes[i], shift, true), other = most_of(wholes[i], shift, false);
            if (most > KEPT + (12ll << 20)) /* the largest weight, twice where it is not aligned */
                fail_msg("model %zu: %lld bytes, others %lld", i, most, other);
        }
    assert_true(most_of(wholes[1], 0, false) > 60ll << 20); /* which is no matter of course */
}

/* What does not pass is as without: a model that is small enough costs no run anything. */
static void test_run_lean__small_models_keep_what_is_packed(void **state)
{
    (void)state;
    counts c = { 0 };
    weights all = { .count = 0 };
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ counted_resize, &c });
    onx_doc *doc = parse(cx,
                         "<ir_version: 10, opset_import: [\"\" : 21]> g (float[4,500] x) => (float[4,500] y)\n"
                         "<float[1] w1_500_500 = {0}, float[1] w2_500_500 = {0}> {\n"
                         "  h = MatMul (x, w1_500_500) y = Gemm <transB = 1> (h, w2_500_500) }",
                         &all, 0);
    onx_session *s = session_of(cx, doc, &(onx_session_options){ .threads = 1, .lean_memory = true });
    onx_value *x = numbers(cx, s, 0), *y = NULL;
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    const unsigned long long calls = atomic_load(&c.calls);
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    assert_int_equal(atomic_load(&c.calls), calls);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    release(&all);
}

/* The memory limit holds for what passes, too. */
static void test_run_lean__within_the_limit(void **state)
{
    (void)state;
    weights all = { .count = 0 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, samples[9].text, &all, 0);
    onx_session *s;
    onx_status status = ONX_OK;
    for (uint64_t memory = 1 << 14; memory < 40u << 20; memory += memory / 2) {
        status =
            onx_session_new(cx, doc, &(onx_session_options){ .threads = 1, .memory = memory, .lean_memory = true }, &s);
        if (status == ONX_OK) {
            onx_value *x[] = { numbers(cx, s, 0), numbers(cx, s, 1) }, *y[4] = { NULL };
            status = onx_session_run(s, cx, (const onx_value *const *)x, y);
            for (int i = 0; i < 4; i++)
                onx_value_free(y[i]);
            onx_value_free(x[0]);
            onx_value_free(x[1]);
            onx_session_free(s);
        }
        if (status != ONX_OK && status != ONX_E_LIMIT && status != ONX_E_MEMORY)
            fail_msg("%d: %.*s", (int)status, ONX_ARG(onx_diag_get(cx, 0)->message));
        onx_diag_clear(cx);
    }
    assert_int_equal(status, ONX_OK);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    release(&all);
}

/* With a folder for packed weights they are mapped from there, and nothing passes. */
static void test_run_lean__with_a_folder(void **state)
{
    (void)state;
    char dir[FOLDER_ROOM];
    assert_true(folder_make(dir));
    for (size_t i = 0; i < 10; i += 3)
        for (int turn = 0; turn < 2; turn++)
            run_sample(&samples[i], &(onx_session_options){ .threads = 1, .cache = dir }, 1);
    assert_int_equal(folder_remove(dir), 0);
}

/* Weights that are made of others, and too large to be made at once: some of them are, packed, and so on. Neither the
 * rows nor the columns fill up the last piece. */
static void test_run_lean__some_elements_at_a_time(void **state)
{
    (void)state;
    static const sample large = {
        "large products of bytes",
        HEAD(
            "float[3,1203] x", "float[3,1203] y",
            "int8[1] w1_1203_1101 = {0}, int8[1] w2_1203_1101 = {0}, float s = {0.01}") "d = DequantizeLinear (w1_1203_1101, s)"
                                                                                        " e = DequantizeLinear (w2_1203_1101, s) a = MatMul (x, d) y = Gemm <transB = 1> (a, e) }",
        true
    };
    for (unsigned threads = 1; threads <= 2; threads++) {
        char dir[FOLDER_ROOM];
        assert_true(folder_make(dir));
        run_both(&large, &(onx_session_options){ .threads = threads },
                 &(onx_session_options){ .threads = threads, .cache = dir }, 1);
        assert_int_equal(folder_remove(dir), 0);
    }
}

/* ---- runs at the same time, also while others plan ---- */

typedef struct runner {
    onx_session *s;
    const onx_value *const *in;
    onx_value *const *expected;
    uint32_t outs;
} runner;

static void *run_often(void *user)
{
    const runner *r = user;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *out[6] = { NULL };
    for (int i = 0; i < 4; i++) {
        if (onx_session_run(r->s, cx, r->in, out) != ONX_OK)
            abort();
        for (uint32_t k = 0; k < r->outs; k++)
            if (memcmp(out[k]->data, r->expected[k]->data, out[k]->size) != 0)
                abort();
    }
    for (uint32_t k = 0; k < r->outs; k++)
        onx_value_free(out[k]);
    onx_ctx_free(cx);
    return NULL;
}

static void test_run_lean__many_runs_at_once(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    for (size_t i = 5; i < sizeof samples / sizeof *samples; i++) {
        weights all = { .count = 0 };
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc = parse(cx, samples[i].text, &all, 1);
        onx_session *one = session_of(cx, doc, &(onx_session_options){ .threads = 1, .lean_memory = true });
        onx_session *s = session_of(cx, doc, &(onx_session_options){ .threads = 2, .lean_memory = true });
        const uint32_t ins = onx_session_input_count(s), outs = onx_session_output_count(s);
        onx_value *in[4] = { NULL }, *out[6] = { NULL };
        pthread_t threads[THREADS];
        for (uint32_t k = 0; k < ins; k++)
            in[k] = numbers(cx, s, k);
        assert_int_equal(onx_session_run(one, cx, (const onx_value *const *)in, out), ONX_OK);
        runner r = { s, (const onx_value *const *)in, out, outs };
        for (int k = 0; k < THREADS; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, run_often, &r), 0);
        for (int k = 0; k < THREADS; k++)
            pthread_join(threads[k], NULL);
        for (uint32_t k = 0; k < ins; k++)
            onx_value_free(in[k]);
        for (uint32_t k = 0; k < outs; k++)
            onx_value_free(out[k]);
        onx_session_free(one);
        onx_session_free(s);
        onx_doc_free(doc);
        onx_ctx_free(cx);
        release(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_lean__every_kernel_that_packs),
        cmocka_unit_test(test_run_lean__in_fewer_bits),
        cmocka_unit_test(test_run_lean__holds_next_to_nothing),
        cmocka_unit_test(test_run_lean__small_models_keep_what_is_packed),
        cmocka_unit_test(test_run_lean__within_the_limit),
        cmocka_unit_test(test_run_lean__with_a_folder),
        cmocka_unit_test(test_run_lean__some_elements_at_a_time),
        cmocka_unit_test(test_run_lean__many_runs_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

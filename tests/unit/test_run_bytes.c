/* test_run_bytes.c - nodes between DequantizeLinear and QuantizeLinear: with integer kernels, if the CPU has them,
 * results differ from those of the nodes by at most one quantization step, and nodes that the kernels cannot handle are
 * kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "unit/variants.h"

/* What a model is made of: `body` makes y of x, an input of floats; the weights are a constant w with a scale and a
 * zero point for each column or for all. */
typedef struct model {
    const char *name;
    const char *weights; /* type and dims */
    uint32_t columns, count, rank;
    int64_t dims[4];
    const char *body;
    const char *result; /* operator that is to run in place of the nodes; NULL: none */
    const char *output; /* type of y; NULL: floats */
} model;

#define X_Q        "q = QuantizeLinear (x, sx, zx) xf = DequantizeLinear (q, sx, zx) "
#define Y_Q(value) "r = QuantizeLinear (" value ", sy, zy) y = DequantizeLinear (r, sy, zy)"
static const model models[] = {
    { "conv",
      "int8[12, 5, 3, 3]",
      12,
      540,
      4,
      { 2, 5, 9, 11 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw, zw) y = Conv <pads = [1, 1, 1, 1]> (xf, wf, b)",
      "QConv",
      NULL },
    { "conv to bytes",
      "int8[12, 5, 3, 3]",
      12,
      540,
      4,
      { 2, 5, 9, 11 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw, zw) c = Conv <strides = [2, 1]> (xf, wf, b) " Y_Q("c"),
      "QConv",
      NULL },
    { "conv, relu",
      "uint8[12, 5, 3, 3]",
      12,
      540,
      4,
      { 1, 5, 9, 11 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw, zw) c = Conv (xf, wf) f = Relu (c) " Y_Q("f"),
      "QConv",
      NULL },
    { "conv, hard swish",
      "int8[12, 5, 1, 1]",
      12,
      60,
      4,
      { 1, 5, 9, 11 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw) c = Conv (xf, wf, b) f = HardSwish (c) " Y_Q("f"),
      "QConv",
      NULL },
    { "conv, sum, relu",
      "int8[12, 12, 3, 3]",
      12,
      1296,
      4,
      { 1, 12, 8, 7 },
      X_Q
      "wf = DequantizeLinear <axis = 0> (w, sw, zw) c = Conv <pads = [1, 1, 1, 1]> (xf, wf, b) d = Add (c, xf) f = Relu (d) " Y_Q(
          "f"),
      "QConv",
      NULL },
    { "two convs of one value",
      "int8[12, 12, 3, 3]",
      12,
      1296,
      4,
      { 1, 12, 8, 7 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw, zw) c = Conv <pads = [1, 1, 1, 1]> (xf, wf, b) "
          "d = Conv <pads = [1, 1, 1, 1]> (xf, wf) y = Add (c, d)",
      "QConv",
      NULL },
    { "conv in one dimension",
      "int8[9, 5, 3]",
      9,
      135,
      3,
      { 2, 5, 30, 0 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw, zw) c = Conv <dilations = [2]> (xf, wf) " Y_Q("c"),
      "QConv",
      NULL },
    { "conv of groups",
      "int8[16, 8, 3, 3]",
      16,
      1152,
      4,
      { 1, 16, 6, 6 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw, zw) y = Conv <group = 2> (xf, wf, b)",
      "QConv",
      NULL },
    { "conv, bounds",
      "int8[12, 5, 3, 3]",
      12,
      540,
      4,
      { 1, 5, 9, 11 },
      X_Q "low = Constant <value_float = -0.3> () high = Constant <value_float = 0.4> () "
          "wf = DequantizeLinear <axis = 0> (w, sw, zw) c = Conv (xf, wf, b) f = Clip (c, low, high) " Y_Q("f"),
      "QConv",
      NULL },
    { "conv, one bound",
      "int8[12, 5, 3, 3]",
      12,
      540,
      4,
      { 1, 5, 9, 11 },
      X_Q "high = Constant <value_float = 0.1> () wf = DequantizeLinear <axis = 0> (w, sw, zw) "
          "c = Conv (xf, wf, b) f = Clip (c, , high) " Y_Q("f"),
      "QConv",
      NULL },
    { "channels alone",
      "int8[70, 1, 3, 3]",
      70,
      630,
      4,
      { 2, 70, 9, 11 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw) y = Conv <group = 70, pads = [1, 1, 1, 1]> (xf, wf, b)",
      "QConv",
      NULL },
    { "channels alone, relu and more",
      "int8[24, 1, 5, 5]",
      24,
      600,
      4,
      { 1, 24, 9, 11 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw) c = Conv <group = 24, strides = [2, 2]> (xf, wf) f = Relu (c) "
          "y = Tanh (f)",
      "QConv",
      NULL },
    { "channels alone to bytes",
      "int8[96, 1, 3, 3]",
      96,
      864,
      4,
      { 1, 96, 7, 11 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw) c = Conv <group = 96, pads = [1, 1, 1, 1]> (xf, wf, b) " Y_Q("c"),
      "QConv",
      NULL },
    { "channels alone, bounds",
      "int8[64, 1, 3, 3]",
      64,
      576,
      4,
      { 1, 64, 7, 11 },
      X_Q "low = Constant <value_float = -0.3> () high = Constant <value_float = 0.4> () "
          "wf = DequantizeLinear <axis = 0> (w, sw) c = Conv <group = 64, strides = [2, 2], pads = [1, 1, 1, 1]> "
          "(xf, wf, b) f = Clip (c, low, high) " Y_Q("f"),
      "QConv",
      NULL },
    { "channels alone in one dimension, hard swish",
      "int8[40, 1, 3]",
      40,
      120,
      3,
      { 2, 40, 30, 0 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw) c = Conv <group = 40, dilations = [2]> (xf, wf, b) "
          "f = HardSwish (c) " Y_Q("f"),
      "QConv",
      NULL },
    { "more results than channels alone",
      "int8[20, 1, 3, 3]",
      20,
      180,
      4,
      { 1, 10, 9, 11 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw) y = Conv <group = 10> (xf, wf, b)",
      NULL,
      NULL },
    { "bytes come out",
      "int8[12, 5, 3, 3]",
      12,
      540,
      4,
      { 1, 5, 9, 11 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw, zw) c = Conv (xf, wf, b) y = QuantizeLinear (c, sy, zy)",
      "QConv",
      "uint8" },
    { "scales of another axis",
      "int8[12, 12, 1, 1]",
      12,
      144,
      4,
      { 1, 12, 8, 7 },
      X_Q "wf = DequantizeLinear <axis = 1> (w, sw, zw) y = Conv (xf, wf)",
      NULL,
      NULL },
    { "pads that are the same",
      "int8[12, 5, 3, 3]",
      12,
      540,
      4,
      { 1, 5, 9, 11 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw, zw) y = Conv <auto_pad = \"SAME_UPPER\"> (xf, wf, b)",
      NULL,
      NULL },
    { "weights that are computed",
      "int8[12, 5, 3, 3]",
      12,
      540,
      4,
      { 1, 5, 9, 11 },
      X_Q "n = Shape (x) m = ReduceProd <keepdims = 0> (n) o = Cast <to = 3> (m) v = BitwiseOr (w, o) "
          "wf = DequantizeLinear <axis = 0> (v, sw, zw) y = Conv (xf, wf, b)",
      NULL,
      NULL },
    { "zero points of 16 bits come out",
      "int8[12, 5, 3, 3]",
      12,
      540,
      4,
      { 1, 5, 9, 11 },
      X_Q
      "wf = DequantizeLinear <axis = 0> (w, sw, zw) c = Conv (xf, wf, b) r = QuantizeLinear (c, sy, zs) y = DequantizeLinear (r, sy, zs)",
      "QConv",
      NULL },
    { "product",
      "int8[30, 12]",
      12,
      360,
      3,
      { 2, 7, 30, 0 },
      X_Q "wf = DequantizeLinear <axis = 1> (w, sw, zw) y = MatMul (xf, wf)",
      "QProduct",
      NULL },
    { "product and bias",
      "uint8[30, 12]",
      12,
      360,
      3,
      { 2, 7, 30, 0 },
      X_Q "wf = DequantizeLinear <axis = -1> (w, sw, zw) m = MatMul (xf, wf) a = Add (b, m) y = Gelu (a)",
      "QProduct",
      NULL },
    { "product to bytes",
      "int8[30, 12]",
      12,
      360,
      3,
      { 2, 7, 30, 0 },
      X_Q "wf = DequantizeLinear <axis = 1> (w, sw, zw) m = MatMul (xf, wf) a = Add (m, b) f = Relu (a) " Y_Q("f"),
      "QProduct",
      NULL },
    { "product without a bias to bytes",
      "int8[30, 12]",
      12,
      360,
      2,
      { 7, 30, 0, 0 },
      X_Q "wf = DequantizeLinear <axis = 1> (w, sw, zw) m = MatMul (xf, wf) " Y_Q("m"),
      "QProduct",
      NULL },
    { "product and a sum to bytes",
      "int8[12, 12]",
      12,
      144,
      2,
      { 7, 12, 0, 0 },
      X_Q "wf = DequantizeLinear <axis = 1> (w, sw, zw) m = MatMul (xf, wf) a = Add (m, xf) " Y_Q("a"),
      "QProduct",
      NULL },
    { "gemm",
      "int8[12, 30]",
      12,
      360,
      2,
      { 7, 30, 0, 0 },
      X_Q "wf = DequantizeLinear <axis = 0> (w, sw, zw) g = Gemm <transB = 1> (xf, wf, b) " Y_Q("g"),
      "QProduct",
      NULL },
    { "gemm without a bias",
      "int8[30, 12]",
      12,
      360,
      2,
      { 7, 30, 0, 0 },
      X_Q "wf = DequantizeLinear <axis = 1> (w, sw, zw) y = Gemm (xf, wf)",
      "QProduct",
      NULL },
    { "gemm with a factor",
      "int8[30, 12]",
      12,
      360,
      2,
      { 7, 30, 0, 0 },
      X_Q "wf = DequantizeLinear <axis = 1> (w, sw, zw) y = Gemm <alpha = 0.5> (xf, wf)",
      NULL,
      NULL },
};

enum { MODELS = sizeof models / sizeof *models };

static void write_model(const model *m, source *s, bool per_column, bool is_signed, float scale, writer *w)
{
    const bool bytes = *m->weights == 'u';
    const char *x = is_signed ? "int8" : "uint8", *type = bytes ? "uint8" : "int8";
    static const char *const dims[] = { "", "[A]", "[A, B]", "[A, B, C]", "[A, B, C, D]" };
    w->len = 0;
    add(w,
        "<ir_version: 10, opset_import: [\"\" : 20]>\ng (float%s x) => (%s[] y) <float sx = {0.02}, %s zx = {%d}, "
        "float sy = {%g}, uint8 zy = {100}, int8 zs = {-20}, %s w = {",
        dims[m->rank], m->output ? m->output : "float", x, is_signed ? -3 : 120, (double)scale, m->weights);
    for (uint32_t i = 0; i < m->count; i++)
        add(w, "%s%d", i ? ", " : "", (int)below(s, 255) - (bytes ? 0 : 127));
    add(w, "}, float[%u] sw = {", per_column ? m->columns : 1);
    for (uint32_t i = 0; i < (per_column ? m->columns : 1); i++)
        add(w, "%s%.5f", i ? ", " : "", (double)between(s, 0.002f, 0.01f));
    add(w, "}, %s[%u] zw = {", type, per_column ? m->columns : 1);
    for (uint32_t i = 0; i < (per_column ? m->columns : 1); i++)
        add(w, "%s%d", i ? ", " : "", bytes ? 120 + (int)below(s, 16) : (int)below(s, 3) - 1);
    add(w, "}, float[%u] b = {", m->columns);
    for (uint32_t i = 0; i < m->columns; i++)
        add(w, "%s%.3f", i ? ", " : "", (double)between(s, -1, 1));
    add(w, "}> { %s }\n", m->body);
}

/* `step`: what results may differ by beyond rounding. */
static void compare_results(const model *m, const onx_value *a, const onx_value *b, double step)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->count, b->count);
    for (uint64_t i = 0; i < a->count; i++) {
        const double x = onxi_value_number(a, i), y = onxi_value_number(b, i);
        if (x != y && !(isfinite(y) && fabs(x - y) <= (a->dtype == ONX_FLOAT ? step : 1) * 1.001 + 2e-5 * fabs(y)) &&
            !(isnan(x) && isnan(y)))
            fail_msg("%s: element %llu is %g, expected %g", m->name, (unsigned long long)i, x, y);
    }
}

static void try_model(const model *m, writer *w, const onx_value *x, float scale)
{
    onx_doc *doc = NULL;
    onx_value *nodes[1] = { NULL };
    const onx_value *const in[] = { x };
    const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w->text, w->len), 0, &doc);
    say_all();
    assert_int_equal(status, ONX_OK);
    run(doc, "", &(onx_session_options){ .verify = true, .threads = 1, .no_optimize = true }, in, nodes);
    for (unsigned isa = (unsigned)ONX_ISA_BASE; isa < (unsigned)ONX_ISA_END; isa++) {
        onx_value *one[1] = { NULL }, *two[1] = { NULL };
        const onx_session_options options = { .verify = true, .threads = 1, .isa = isa },
                                  threads = { .threads = 2, .isa = isa };
        const char *variant = run(doc, m->result ? m->result : "QConv", &options, in, one);
        run(doc, "", &threads, in, two);
        compare_results(m, one[0], nodes[0], strstr(m->body, "y = Deq") ? (double)scale : 1e-3);
        assert_true(near_enough(one[0], two[0], 0));
        const bool runs = strcmp(variant, "none") != 0;
        const bool can = m->result && isa >= (unsigned)ONX_ISA_VNNI && onxi_isa_best() >= (unsigned)ONX_ISA_VNNI;
        if (runs != can)
            fail_msg("%s: with instruction set %u, %s runs as %s", m->name, isa, m->result, variant);
        onx_value_free(one[0]);
        onx_value_free(two[0]);
    }
    onx_value_free(nodes[0]);
    onx_doc_free(doc);
}

static void test_run_bytes__results_are_those_of_the_nodes(void **state)
{
    static writer w;
    source s = { 31 };
    (void)state;
    for (unsigned i = 0; i < MODELS; i++)
        for (unsigned turn = 0; turn < 4; turn++) {
            const model *m = &models[i];
            const bool other_axis = strstr(m->name, "another axis") != NULL;
            onx_value *x = floats(&s, m->rank, m->dims);
            for (uint64_t k = 0; k < x->count; k++)
                ((float *)x->data)[k] *= 3;
            write_model(m, &s, turn % 2 == 0 || other_axis, turn / 2, 0.05f, &w);
            try_model(m, &w, x, 0.05f);
            onx_value_free(x);
        }
}

/* NaN becomes the least number before anything is multiplied; infinities the ends. */
static void test_run_bytes__numbers_that_are_not_finite(void **state)
{
    static writer w;
    static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f, -0.0f, 1e-45f };
    source s = { 32 };
    (void)state;
    for (unsigned i = 0; i < MODELS; i++) {
        const model *m = &models[i];
        onx_value *x = floats(&s, m->rank, m->dims);
        for (uint64_t k = 0; k < x->count; k += 7)
            ((float *)x->data)[k] = odd[k % 6];
        write_model(m, &s, true, i % 2, 0.05f, &w);
        try_model(m, &w, x, 0.05f);
        onx_value_free(x);
    }
}

/* A bias of whole numbers, and bounds before results are quantized, which are those of sums: bit by bit what the
 * QLinear operator has. With a scale of 0.1 many sums are halves. */
typedef struct quantized_model {
    const char *x, *w, *shape;
    uint32_t count, columns; /* weights; numbers of the bias */
    const char *how, *bounds;
    int32_t y_zero;
} quantized_model;

static const quantized_model quantized_models[] = {
    { "uint8", "int8", "[20, 16, 3, 3]", 2880, 20, "pads = [1, 1, 1, 1]", "f = Relu (c)", 0 },
    { "int8", "int8", "[35, 16, 1, 1]", 560, 35, "strides = [1, 2]", "f = Identity (c)", 3 },
    { "uint8", "uint8", "[16, 1, 3, 3]", 144, 16, "group = 16, pads = [1, 1, 1, 1]", "f = Relu (c)", 0 },
    { "int8", "int8", "[16, 1, 5, 3]", 240, 16, "group = 16",
      "low = Constant <value_float = -128.4> () f = Clip (c, low)", 0 },
    { "uint8", "int8", "[24, 8, 2, 2]", 768, 24, "group = 2",
      "low = Constant <value_float = -200.0> () high = Constant <value_float = 60.2> () f = Clip (c, low, high)", 195 },
};

static void write_quantized(const quantized_model *m, source *s, writer *w)
{
    w->len = 0;
    add(w,
        "<ir_version: 10, opset_import: [\"\" : 21]>\ng (%s[2, 16, 9, 11] x) => (%s[] y, %s[] z) <float sx = {0.03125}, "
        "%s zx = {7}, float sw = {3.2}, %s zw = {1}, float sb = {0.1}, float sy = {1}, %s zy = {%d}, int32[%u] b = {",
        m->x, m->x, m->x, m->x, m->w, m->x, (int)m->y_zero, m->columns);
    for (uint32_t i = 0; i < m->columns; i++)
        add(w, "%s%d", i ? ", " : "", (int)below(s, 2000) - 1000);
    add(w, "}, %s%s w = {", m->w, m->shape);
    for (uint32_t i = 0; i < m->count; i++)
        add(w, "%s%d", i ? ", " : "", (int)below(s, 4));
    add(w,
        "}> {\n xf = DequantizeLinear (x, sx, zx) wf = DequantizeLinear (w, sw, zw) bf = DequantizeLinear (b, sb)\n"
        " c = Conv <%s> (xf, wf, bf) %s y = QuantizeLinear (f, sy, zy)\n"
        " z = QLinearConv <%s> (x, sx, zx, w, sw, zw, sy, zy, b)\n}\n",
        m->how, m->bounds, m->how);
}

static void test_run_bytes__whole_biases_are_added_to_sums(void **state)
{
    static writer w;
    source s = { 33 };
    (void)state;
    if (onxi_isa_best() < (unsigned)ONX_ISA_VNNI)
        skip();
    for (unsigned i = 0; i < sizeof quantized_models / sizeof *quantized_models; i++) {
        const quantized_model *m = &quantized_models[i];
        onx_doc *doc = NULL;
        onx_value *out[2] = { NULL },
                  *x = tensor(m->x[0] == 'u' ? ONX_UINT8 : ONX_INT8, 4, (int64_t[]){ 2, 16, 9, 11 });
        for (uint64_t k = 0; k < x->count; k++)
            ((uint8_t *)x->data)[k] = (uint8_t)below(&s, 256);
        write_quantized(m, &s, &w);
        const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc);
        say_all();
        assert_int_equal(status, ONX_OK);
        assert_string_not_equal(run(doc, "QConv", &(onx_session_options){ .verify = true, .threads = 1 },
                                    (const onx_value *const[]){ x }, out),
                                "none");
        assert_true(near_enough(out[0], out[1], 0));
        for (unsigned k = 0; k < 2; k++)
            onx_value_free(out[k]);
        onx_value_free(x);
        onx_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_bytes__results_are_those_of_the_nodes),
        cmocka_unit_test(test_run_bytes__numbers_that_are_not_finite),
        cmocka_unit_test(test_run_bytes__whole_biases_are_added_to_sums),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

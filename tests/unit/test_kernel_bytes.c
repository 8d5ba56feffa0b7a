/* test_kernel_bytes.c - 8-bit products and convolutions, by the plain rows and by those of every
 * instruction set that the CPU has: all signs and zero points, sizes around those of tiles, bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "unit/variants.h"

static const struct {
    const char *name;
    onx_dtype dtype;
    int32_t low;
} types[] = { { "int8", ONX_INT8, -128 }, { "uint8", ONX_UINT8, 0 } };

/* Numbers that are often the ends of the type: what would overflow 16 bits. */
static int32_t number(source *s, uint32_t type)
{
    const uint32_t what = below(s, 4);
    return types[type].low + (what == 0 ? 0 : what == 1 ? 255 : (int32_t)below(s, 256));
}

static onx_value *numbers(source *s, uint32_t type, uint32_t rank, const int64_t *dims)
{
    onx_value *v = tensor(types[type].dtype, rank, dims);
    for (uint64_t i = 0; i < v->count; i++)
        ((uint8_t *)v->data)[i] = (uint8_t)number(s, type);
    return v;
}

/* A constant of the model: `count` numbers of a type; `shape` as ONNX text has it. */
static void constant(writer *w, source *s, uint32_t type, const char *shape, const char *name, uint64_t count)
{
    add(w, ", %s%s %s = {", types[type].name, shape, name);
    for (uint64_t i = 0; i < count; i++)
        add(w, "%s%d", i ? ", " : "", (int)number(s, type));
    add(w, "}");
}

/* Of the left operand is 2^-5: with 3.2 and a result of scale 1, every tenth product with a sum is a half when it is
 * one of floats, and next to it when it is one of doubles. */
static void scales(writer *w, source *s, const char *shape, const char *name, uint64_t count)
{
    const bool halves = below(s, 3) == 0;
    add(w, ", float%s %s = {", shape, name);
    for (uint64_t i = 0; i < count; i++)
        add(w, "%s%.6f", i ? ", " : "", halves ? 3.2 : (double)between(s, 0.0005f, 0.02f));
    add(w, "}");
}

/* Of a result; `usual` as text. */
static const char *result_scale(source *s, const char *usual)
{
    return below(s, 2) ? "1" : usual;
}

static bool is_fast(const char *variant)
{
    return strcmp(variant, "amx") == 0 || strcmp(variant, "vnni") == 0;
}

static void test_kernel_bytes__products_are_the_same(void **state)
{
    static writer w;
    source s = { 21 };
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        static const uint32_t ks[] = { 1, 3, 4, 63, 64, 65, 128, 200 }, ns[] = { 1, 15, 16, 17, 32, 33, 70 };
        const uint32_t k = ks[below(&s, 8)], n = ns[below(&s, 7)], m = 1 + below(&s, turn % 3 ? 40 : 600);
        const uint32_t ta = turn % 2, tb = turn / 2 % 2;
        const bool per_column = below(&s, 2), zeros = below(&s, 3) != 0;
        onx_value *a = numbers(&s, ta, 3, (int64_t[]){ 1, m, k }), *za = numbers(&s, ta, 0, NULL);
        char shape[24], line[24] = "";
        snprintf(shape, sizeof shape, "[%u, %u]", k, n);
        if (per_column)
            snprintf(line, sizeof line, "[%u]", n);
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\n"
            "g (%s[B, M, K] a, %s za) => (int32[B, M, N] s, %s[B, M, N] y) <float sa = {0.03125}, float sy = {%s}, %s zy = {7}",
            types[ta].name, types[ta].name, types[ta].name, result_scale(&s, "0.9"), types[ta].name);
        constant(&w, &s, tb, shape, "b", (uint64_t)k * n);
        constant(&w, &s, tb, line, "zb", per_column ? n : 1);
        scales(&w, &s, line, "sb", per_column ? n : 1);
        add(&w, "> {\n s = MatMulInteger (a, b%s)\n y = QLinearMatMul (a, sa, za, b, sb, zb, sy, zy)\n}\n",
            zeros ? ", za, zb" : "");
        compare_any(&w, turn % 4 < 2 ? "QLinearMatMul" : "MatMulInteger", (const onx_value *const[]){ a, za }, 0);
        onx_value_free(a);
        onx_value_free(za);
    }
}

/* Zero points or scales: one, one per line of a matrix, or one per line of all matrices. */
static onx_value *vector(source *s, uint32_t type, uint32_t lines, uint32_t matrices)
{
    const uint32_t form = below(s, 3);
    const int64_t dims[] = { form == 2 ? lines * matrices : lines };
    onx_value *v = tensor(type < 2 ? types[type].dtype : ONX_FLOAT, form > 0, dims);
    for (uint64_t i = 0; i < v->count; i++)
        if (type < 2)
            ((uint8_t *)v->data)[i] = (uint8_t)number(s, type);
        else
            ((float *)v->data)[i] = below(s, 3) ? between(s, 0.0005f, 0.02f) : 0x1p-5f;
    return v;
}

/* Both operands, their zero points and scales come with a run. The right matrix of a large one is packed in parts, and
 * so is the left one. */
static void two(source *s, writer *w, unsigned turn, bool large)
{
    static const uint32_t ks[] = { 1, 3, 4, 8, 9, 63, 64, 65, 68, 128, 200 },
                          ns[] = { 1, 7, 15, 16, 17, 31, 32, 33, 70 };
    const uint32_t k = large ? 2002 : ks[below(s, 11)], n = large ? 140 : ns[below(s, 9)];
    const uint32_t m = large ? 270 : 1 + below(s, turn % 5 ? 40 : 600);
    const uint32_t ta = turn % 2, tb = turn / 2 % 2, many = 1 + below(s, 3), ty = below(s, 2);
    const bool a_has = !large && below(s, 3) != 0, b_has = !large && (!a_has || below(s, 2)), a_flat = below(s, 8) == 0,
               zeros = below(s, 3) != 0;
    const uint32_t as = a_has ? many : 1, bs = b_has ? many : 1, rows = a_flat ? 1 : m;
    const uint32_t a_rank = a_flat ? 1 : a_has ? 4 : 2, b_rank = below(s, 8) == 0 ? 1 : b_has ? 3 : 2;
    const uint32_t columns = b_rank == 1 ? 1 : n, a_all = a_flat ? 1 : as, b_all = b_rank == 1 ? 1 : bs;
    onx_value *in[] = {
        numbers(s, ta, a_rank,
                a_flat  ? (int64_t[]){ k }
                : a_has ? (int64_t[]){ 1, as, m, k }
                        : (int64_t[]){ m, k }),
        vector(s, 2, rows, a_all),
        vector(s, ta, rows, a_all),
        numbers(s, tb, b_rank,
                b_rank == 1 ? (int64_t[]){ k }
                : b_has     ? (int64_t[]){ bs, k, n }
                            : (int64_t[]){ k, n }),
        vector(s, 2, columns, b_all),
        vector(s, tb, columns, b_all),
    };
    w->len = 0;
    add(w,
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (%s[] a, float[] sa, %s[] za, %s[] b, float[] sb, %s[] zb) => (int32[] s, %s[] y) <float sy = {%s}, %s zy = {7}> {\n"
        " s = MatMulInteger (a, b%s)\n y = QLinearMatMul (a, sa, za, b, sb, zb, sy, zy)\n}\n",
        types[ta].name, types[ta].name, types[tb].name, types[tb].name, types[ty].name, result_scale(s, "0.9"),
        types[ty].name, zeros ? ", za, zb" : "");
    compare_any(w, turn % 4 < 2 ? "QLinearMatMul" : "MatMulInteger", (const onx_value *const *)in, 0);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        onx_value_free(in[i]);
}

static void test_kernel_bytes__products_of_two_are_the_same(void **state)
{
    static writer w;
    source s = { 26 };
    (void)state;
    for (unsigned turn = 0; turn < 160; turn++)
        two(&s, &w, turn, turn % 40 == 39);
}

static void convolution(source *s, writer *w, unsigned turn)
{
    static const uint32_t channels[] = { 1, 3, 8, 17, 33, 64 };
    const uint32_t groups = below(s, 3) ? 1 : 2, c = groups * channels[below(s, 6)], m = groups * channels[below(s, 6)];
    const uint32_t tx = turn % 2, tw = turn / 2 % 2, kh = 1 + below(s, 3), kw = 1 + below(s, 3);
    const uint32_t h = 5 + below(s, 12), wide = 5 + below(s, 40), n = 1 + below(s, 2);
    const bool per_channel = below(s, 2), flat = below(s, 5) == 0;
    char shape[48], line[24] = "", how[160];
    onx_value *x = numbers(s, tx, flat ? 3 : 4, flat ? (int64_t[]){ n, c, wide } : (int64_t[]){ n, c, h, wide });
    onx_value *zx = numbers(s, tx, 0, NULL);
    if (flat) {
        snprintf(shape, sizeof shape, "[%u, %u, %u]", m, c / groups, kw);
        snprintf(how, sizeof how, "<group = %u, pads = [%u, %u], strides = [%u], dilations = [%u]>", groups,
                 below(s, 3), below(s, 3), 1 + below(s, 2), 1 + below(s, 2));
    } else {
        snprintf(shape, sizeof shape, "[%u, %u, %u, %u]", m, c / groups, kh, kw);
        snprintf(how, sizeof how, "<group = %u, pads = [%u, %u, %u, %u], strides = [%u, %u], dilations = [%u, %u]>",
                 groups, below(s, 3), below(s, 3), below(s, 3), below(s, 3), 1 + below(s, 2), 1 + below(s, 2),
                 1 + below(s, 2), 1 + below(s, 2));
    }
    if (per_channel)
        snprintf(line, sizeof line, "[%u]", m);
    const char *dims = flat ? "[N, C, W]" : "[N, C, H, W]", *out = flat ? "[N, M, O]" : "[N, M, O, P]";
    w->len = 0;
    add(w,
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (%s%s x, %s zx) => (int32%s s, %s%s y) <float sx = {0.03125}, float sy = {%s}, %s zy = {3}",
        types[tx].name, dims, types[tx].name, out, types[tx].name, out, result_scale(s, "0.11"), types[tx].name);
    constant(w, s, tw, shape, "w", (uint64_t)m * (c / groups) * (flat ? 1 : kh) * kw);
    constant(w, s, tw, line, "zw", per_channel ? m : 1);
    scales(w, s, line, "sw", per_channel ? m : 1);
    add(w, ", int32[%u] b = {", m);
    for (uint32_t i = 0; i < m; i++)
        add(w, "%s%d", i ? ", " : "", (int)below(s, 4000) - 2000);
    add(w, "}> {\n s = ConvInteger %s (x, w%s)\n y = QLinearConv %s (x, sx, zx, w, sw, zw, sy, zy%s)\n}\n", how,
        turn % 3 ? ", zx, zw" : "", how, turn % 5 ? ", b" : "");
    compare_any(w, turn % 4 < 2 ? "QLinearConv" : "ConvInteger", (const onx_value *const[]){ x, zx }, 0);
    onx_value_free(x);
    onx_value_free(zx);
}

static void test_kernel_bytes__convolutions_are_the_same(void **state)
{
    static writer w;
    source s = { 22 };
    (void)state;
    for (unsigned turn = 0; turn < 90; turn++)
        convolution(&s, &w, turn);
}

/* Channels that are groups of their own, with zero points that the model has; that of the input of
 * ConvInteger comes with a run. */
static void test_kernel_bytes__channels_alone_are_the_same(void **state)
{
    static writer w;
    source s = { 25 };
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        const uint32_t c = 2 + below(&s, 90), tx = turn % 2, tw = turn / 2 % 2, kh = 1 + below(&s, 5);
        const uint32_t kw = 1 + below(&s, 5);
        const bool per_channel = below(&s, 2), flat = below(&s, 5) == 0;
        const int64_t dims[] = { 1 + below(&s, 2), c, 9 + below(&s, 12), 9 + below(&s, 30) };
        char shape[48], line[24] = "", how[160];
        onx_value *x = numbers(&s, tx, flat ? 3 : 4, dims), *z = numbers(&s, tx, 0, NULL);
        snprintf(shape, sizeof shape, flat ? "[%u, 1, %u]" : "[%u, 1, %u, %u]", c, kh, kw);
        if (per_channel)
            snprintf(line, sizeof line, "[%u]", c);
        const char *form = flat ? "[N, C, W]" : "[N, C, H, W]";
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\n"
            "g (%s%s x, %s z) => (%s%s y, int32%s s) <float sx = {0.03125}, float sy = {%s}, %s zx = {%u}, %s zy = {3}",
            types[tx].name, form, types[tx].name, types[tx].name, form, form, result_scale(&s, "0.6"), types[tx].name,
            below(&s, 120), types[tx].name);
        constant(&w, &s, tw, shape, "w", (uint64_t)c * kh * (flat ? 1 : kw));
        constant(&w, &s, tw, line, "zw", per_channel ? c : 1);
        scales(&w, &s, line, "sw", per_channel ? c : 1);
        add(&w, ", int32[%u] b = {", c);
        for (uint32_t i = 0; i < c; i++)
            add(&w, "%s%d", i ? ", " : "", (int)below(&s, 4000) - 2000);
        if (flat)
            snprintf(how, sizeof how, "<group = %u, pads = [%u, %u], strides = [%u], dilations = [%u]>", c,
                     below(&s, 4), below(&s, 4), 1 + below(&s, 3), 1 + below(&s, 2));
        else
            snprintf(how, sizeof how, "<group = %u, pads = [%u, %u, %u, %u], strides = [%u, %u], dilations = [%u, %u]>",
                     c, below(&s, 4), below(&s, 4), below(&s, 4), below(&s, 4), 1 + below(&s, 3), 1 + below(&s, 3),
                     1 + below(&s, 2), 1 + below(&s, 2));
        add(&w, "}> {\n y = QLinearConv %s (x, sx, zx, w, sw, zw, sy, zy%s)\n", how, turn % 5 ? ", b" : "");
        add(&w, " s = ConvInteger %s (x, w%s)\n}\n", how, turn % 3 == 0 ? "" : turn % 3 == 1 ? ", z" : ", z, zw");
        const char *variant =
            compare_any(&w, turn % 8 < 4 ? "QLinearConv" : "ConvInteger", (const onx_value *const[]){ x, z }, 0);
        assert_string_not_equal(variant, "plain");
        onx_value_free(x);
        onx_value_free(z);
    }
}

/* Convolutions behind each other keep their channels last; a pool and a sum in between do not care. */
static void test_kernel_bytes__layouts_are_the_same(void **state)
{
    static writer w;
    source s = { 23 };
    (void)state;
    for (unsigned turn = 0; turn < 8; turn++) {
        const uint32_t type = turn % 2;
        onx_value *x = floats(&s, 4, (int64_t[]){ 1, 3, 20, 23 });
        const char *t = types[type].name;
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\n"
            "g (float[N, C, H, W] x) => (float[N, M, O, P] y) <float sx = {0.02}, float sy = {0.3}, %s zy = {11}, int8 zw = {0}",
            t);
        constant(&w, &s, 0, "[20, 3, 3, 3]", "w1", 20 * 27);
        constant(&w, &s, 0, "[33, 20, 1, 1]", "w2", 33 * 20);
        scales(&w, &s, "[20]", "s1", 20);
        scales(&w, &s, "", "s2", 1);
        add(&w, "> {\n q = QuantizeLinear (x, sx, zy)\n"
                " a = QLinearConv <pads = [1, 1, 1, 1]> (q, sx, zy, w1, s1, zw, sy, zy)\n"
                " d = DequantizeLinear (a, sy, zy)\n r = Relu (d)\n e = QuantizeLinear (r, sy, zy)\n"
                " b = QLinearConv (e, sy, zy, w2, s2, zw, sy, zy)\n y = DequantizeLinear (b, sy, zy)\n}\n");
        compare_any(&w, turn % 4 < 2 ? "QLinearConv" : "DequantizeLinear", (const onx_value *const[]){ x }, 0);
        onx_value_free(x);
    }
}

/* Quotients of 16 bits are so large that a product with the reciprocal is further from them. */
static void test_kernel_bytes__quotients_round_to_the_same(void **state)
{
    static writer w;
    source s = { 26 };
    (void)state;
    for (unsigned turn = 0; turn < 8; turn++) {
        static const char *const made[] = { "int16", "uint16", "int8", "uint8" };
        static const char *const zeros[] = { "-3", "32768", "5", "128" };
        const float most = turn % 4 < 2 ? 32768 : 128;
        onx_value *x = floats(&s, 2, (int64_t[]){ 7, 10007 });
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\n"
            "g (float[N, M] x) => (%s[N, M] y) <float scale = {%.9g}, %s zero = {%s}> {\n"
            " y = QuantizeLinear (x, scale, zero)\n}\n",
            made[turn % 4], (double)(between(&s, 0.9f, 1.1f) / most), made[turn % 4], zeros[turn % 4]);
        compare_any(&w, "QuantizeLinear", (const onx_value *const[]){ x }, 0);
        onx_value_free(x);
    }
}

/* The rows that this is about do run where the processor has them. */
static void test_kernel_bytes__fast_rows_run(void **state)
{
    static writer w;
    source s = { 24 };
    onx_doc *doc = NULL;
    onx_value *out[1] = { NULL };
    (void)state;
    if (onxi_isa_best() < (unsigned)ONX_ISA_VNNI)
        skip();
    for (unsigned turn = 0; turn < 2 * (onxi_isa_best() - (unsigned)ONX_ISA_VNNI + 1); turn++) {
        onx_value *in[] = { numbers(&s, 1, 2, (int64_t[]){ 5, 64 }), numbers(&s, 0, 2, (int64_t[]){ 64, 40 }) };
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\ng (uint8[M, K] a%s) => (int32[M, N] y) <int64[1] unused = {0}",
            turn % 2 ? ", int8[K, N] b" : "");
        if (turn % 2 == 0)
            constant(&w, &s, 0, "[64, 40]", "b", 64 * 40);
        add(&w, "> {\n y = MatMulInteger (a, b)\n}\n");
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc), ONX_OK);
        const onx_session_options options = { .threads = 1, .isa = (unsigned)ONX_ISA_VNNI + turn / 2 };
        assert_true(is_fast(run(doc, "MatMulInteger", &options, (const onx_value *const *)in, out)));
        onx_value_free(out[0]);
        out[0] = NULL;
        onx_value_free(in[0]);
        onx_value_free(in[1]);
        onx_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_bytes__products_are_the_same),
        cmocka_unit_test(test_kernel_bytes__products_of_two_are_the_same),
        cmocka_unit_test(test_kernel_bytes__convolutions_are_the_same),
        cmocka_unit_test(test_kernel_bytes__channels_alone_are_the_same),
        cmocka_unit_test(test_kernel_bytes__layouts_are_the_same),
        cmocka_unit_test(test_kernel_bytes__quotients_round_to_the_same),
        cmocka_unit_test(test_kernel_bytes__fast_rows_run),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

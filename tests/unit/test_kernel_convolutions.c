/* test_kernel_convolutions.c - convolutions and the nodes between them, large enough for fast rows, in the layouts that
 * these choose: by the plain rows and by others, with one thread and with two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "unit/variants.h"

/* The nodes that may be done in passing, of a value like x1. */
static const char *const behind_conv[] = {
    "%s = Add (%s, x1)",   "%s = Relu (%s)",    "%s = LeakyRelu (%s)",       "%s = Swish (%s)",
    "%s = HardSwish (%s)", "%s = Sigmoid (%s)", "%s = Clip (%s, low, high)",
};

/* Nodes in passing, from t0 on; the last one gives y. */
static void add_posts(writer *w, source *s, unsigned posts)
{
    for (uint32_t i = 0; i < posts; i++) {
        char from[16], to[16];
        snprintf(from, sizeof from, "t%u", i);
        snprintf(to, sizeof to, i + 1 == posts ? "y" : "t%u", i + 1);
        add(w, " ");
        add(w, behind_conv[below(s, sizeof behind_conv / sizeof *behind_conv)], to, from);
        add(w, "\n");
    }
}

/* Channels in whole blocks and not, images whose tiles are whole and not, all pads, gaps; with numbers that are not
 * finite in some of them, which stay where they belong. */
static void test_kernel_convolutions__convolutions_are_the_same(void **state)
{
    static const uint32_t channels[] = { 24, 32, 64, 80 };
    static writer w;
    source s = { 9 };
    unsigned fast[2] = { 0, 0 }; /* without gaps, with some */
    (void)state;
    for (unsigned turn = 0; turn < 48; turn++) {
        const uint32_t c = channels[below(&s, 4)], m = channels[below(&s, 4)], posts = below(&s, 4);
        const uint32_t h = 13 + below(&s, 16), wide = 13 + below(&s, 30), n = 1 + below(&s, 2);
        const uint32_t gap[2] = { turn < 24 ? 1 : 1 + below(&s, 5), turn < 24 ? 1 : 1 + below(&s, 5) };
        uint32_t pad[4];
        for (int i = 0; i < 4; i++)
            pad[i] = below(&s, 2 * gap[i % 2] + 1);
        const int64_t xd[] = { n, c, h, wide };
        const int64_t yd[] = { n, m, h + pad[0] + pad[2] - 2 * gap[0], wide + pad[1] + pad[3] - 2 * gap[1] };
        onx_value *x = floats(&s, 4, xd), *residual = floats(&s, 4, yd);
        if (turn % 6 == 5) {
            static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f };
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = odd[turn / 6 % 4];
        }
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]>\n"
            "g (float[N, C, H, W] x0, float[N, M, P, Q] x1) => (float[N, M, P, Q] y) <float low = {-0.5}, float high = {1.25}, ");
        add(&w, "float[%u, %u, 3, 3] w = {", m, c);
        for (uint32_t i = 0; i < m * c * 9; i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
        add(&w, "}, float[%u] b = {", m);
        for (uint32_t i = 0; i < m; i++)
            add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}> {\n %s = Conv <dilations = [%u, %u], pads = [%u, %u, %u, %u]> (x0, w%s)\n", posts ? "t0" : "y",
            gap[0], gap[1], pad[0], pad[1], pad[2], pad[3], turn % 2 ? ", b" : "");
        add_posts(&w, &s, posts);
        add(&w, "}\n");
        fast[turn / 24] +=
            strcmp(compare_any(&w, "Conv", (const onx_value *const[]){ x, residual }, 150), "winograd") == 0;
        onx_value_free(x);
        onx_value_free(residual);
    }
    assert_in_range(fast[0], 11, 24);
    assert_in_range(fast[1], 6, 24);
}

/* Windows of a convolution, by axis. */
typedef struct windows {
    uint32_t kernel[2], stride[2], dilation[2], pad[4];
} windows;

/* Those of one axis, and how far they reach. */
static uint32_t draw_window(source *s, windows *q, uint32_t i, uint32_t kernels, uint32_t strides)
{
    q->kernel[i] = 1 + below(s, kernels);
    q->stride[i] = 1 + below(s, strides);
    q->dilation[i] = 1 + below(s, 2);
    return (q->kernel[i] - 1) * q->dilation[i] + 1;
}

/* The head of a model of one convolution, up to the numbers of its weights. */
static void begin_model(writer *w, uint32_t m, uint32_t c, const windows *q)
{
    w->len = 0;
    add(w,
        "<ir_version: 10, opset_import: [\"\" : 24]>\n"
        "g (float[N, C, H, W] x0, float[N, M, P, Q] x1) => (float[N, M, P, Q] y) <float[%u, %u, %u, %u] w = {",
        m, c, q->kernel[0], q->kernel[1]);
}

/* Its nodes: with or without the bias, a sum and an activation behind it. */
static void end_model(writer *w, const char *op, uint32_t group, const windows *q, bool bias, const char *activation)
{
    add(w,
        "> {\n t = %s <group = %u, strides = [%u, %u], dilations = [%u, %u], pads = [%u, %u, %u, %u]> (x0, w%s)\n"
        " u = Add (t, x1)\n y = %s (u)\n}\n",
        op, group, q->stride[0], q->stride[1], q->dilation[0], q->dilation[1], q->pad[0], q->pad[1], q->pad[2],
        q->pad[3], bias ? ", b" : "", activation);
}

/* All windows, steps, gaps and pads, of channels that are groups of their own and not: those of the vectors on channels
 * that lie last, where oneDNN does not take them, and those of few pixels, which come before it. */
static void test_kernel_convolutions__windows_are_the_same(void **state)
{
    static writer w;
    source s = { 23 };
    (void)state;
    for (unsigned turn = 0; turn < 48; turn++) {
        const bool depthwise = turn % 3 == 0, few = turn % 3 == 2 && turn % 2;
        const uint32_t kernels = few && turn % 4 == 1 ? 9 : 4; /* more taps than are gathered at once */
        const uint32_t c = depthwise || few                 ? 16 * (1 + below(&s, kernels == 4 ? 4 : 2))
                           : turn % 3 == 1 && turn % 4 == 1 ? 1
                                                            : 1 + below(&s, 40);
        const uint32_t m = depthwise ? c : few ? 64 + 16 * below(&s, 6) : 8 * (1 + below(&s, 6));
        const uint32_t group = depthwise ? c : 1, n = few ? 1 : 1 + below(&s, 2);
        windows q;
        uint32_t size[2], made[2];
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t reach = draw_window(&s, &q, i, kernels, 3);
            q.pad[i] = below(&s, kernels == 4 ? reach + 1 : 3);
            q.pad[2 + i] = below(&s, kernels == 4 ? reach + 1 : 3);
            size[i] = reach + below(&s, few ? 5 : 20);
            made[i] = (size[i] + q.pad[i] + q.pad[2 + i] - reach) / q.stride[i] + 1;
        }
        onx_value *x = floats(&s, 4, (int64_t[]){ n, c, size[0], size[1] });
        onx_value *residual = floats(&s, 4, (int64_t[]){ n, m, made[0], made[1] });
        if (turn % 8 == 7)
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = turn % 16 == 7 ? NAN : INFINITY;
        begin_model(&w, m, c / group, &q);
        for (uint32_t i = 0; i < m * (c / group) * q.kernel[0] * q.kernel[1]; i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
        add(&w, "}, float[%u] b = {", m);
        for (uint32_t i = 0; i < m; i++)
            add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}");
        end_model(&w, "Conv", group, &q, turn % 4, turn % 2 ? "Relu" : "Sigmoid");
        const char *variant = compare_any(&w, "Conv", (const onx_value *const[]){ x, residual }, 150);
        assert_true(strcmp(variant, "plain") != 0);
        onx_value_free(x);
        onx_value_free(residual);
    }
}

/* Convolutions and transposed ones of windows of all kinds, of `channels` and more in a group; of numbers that
 * `precision` holds. */
static void compare_windows(source *s, uint32_t channels, unsigned turns)
{
    static writer w;
    const bool is_short = precision != ONX_PRECISION_FULL;
    for (unsigned turn = 0; turn < turns; turn++) {
        const bool transposed = turn % 3 == 2;
        const uint32_t group = 1 + below(s, 2), c = channels + 16 * below(s, 4), m = channels + 16 * below(s, 4);
        const char *op = transposed ? "ConvTranspose" : "Conv";
        windows q;
        uint32_t size[2], made[2];
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t reach = draw_window(s, &q, i, 3, 2);
            q.pad[i] = q.pad[2 + i] = below(s, reach);
            size[i] = 2 * reach + below(s, 12);
            made[i] = transposed ? (size[i] - 1) * q.stride[i] + reach - 2 * q.pad[i]
                                 : (size[i] + 2 * q.pad[i] - reach) / q.stride[i] + 1;
        }
        onx_value *x = floats(s, 4, (int64_t[]){ 1 + below(s, 2), group * c, size[0], size[1] });
        onx_value *residual = floats(s, 4, (int64_t[]){ x->dims[0], group * m, made[0], made[1] });
        if (is_short)
            shorten(x);
        if (turn % 8 == 7)
            ((float *)x->data)[below(s, (uint32_t)x->count)] = turn % 16 == 7 ? NAN : INFINITY;
        begin_model(&w, group * (transposed ? c : m), transposed ? m : c, &q);
        const uint32_t counts[] = { group * c * m * q.kernel[0] * q.kernel[1], group * m };
        for (int i = 0; i < 2; i++) {
            if (i)
                add(&w, ", float[%u] b = {", group * m);
            for (uint32_t k = 0; !is_short && k < counts[i]; k++)
                add(&w, "%s%.5f", k ? ", " : "", (double)between(s, -0.2f, 0.2f));
            if (is_short)
                add_short_numbers(&w, s, counts[i]);
            else
                add(&w, "}");
        }
        end_model(&w, op, group, &q, turn % 4, turn % 2 ? "Relu" : "Sigmoid");
        (void)compare_any(&w, op, (const onx_value *const[]){ x, residual }, 150);
        onx_value_free(x);
        onx_value_free(residual);
    }
}

/* Sums are floats all the same, so are NaN and infinities. */
static void test_kernel_convolutions__in_fewer_bits_they_are_the_same(void **state)
{
    (void)state;
    precision = ONX_PRECISION_BF16;
    compare_windows(&(source){ 31 }, 16, 48);
    precision = ONX_PRECISION_FULL;
}

/* Of channels enough for tiles of AMX. */
static void test_kernel_convolutions__in_parts_they_are_the_same(void **state)
{
    (void)state;
    compare_windows(&(source){ 41 }, 64, 18);
}

/* Those rows run where there are tiles, and for nothing else: not where a group of pixels, channels or sums are too few
 * for them. */
static void test_kernel_convolutions__rows_of_tiles_run(void **state)
{
    static const struct {
        uint32_t m, c, kernel, size;
        bool is_taken;
    } cases[] = { { 64, 128, 1, 10, true },  { 96, 32, 2, 12, true },  { 64, 128, 1, 4, false },
                  { 48, 128, 1, 10, false }, { 64, 64, 1, 10, false }, { 64, 16, 4, 12, false } };
    static writer w;
    source s = { 43 };
    (void)state;
    if (onxi_isa_best() < (unsigned)ONX_ISA_AMX)
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned asked = 0; asked < ONX_PRECISION_END; asked++) {
            onx_doc *doc = NULL;
            onx_value *x = floats(&s, 4, (int64_t[]){ 1, cases[i].c, cases[i].size, cases[i].size }), *y = NULL;
            w.len = 0;
            add(&w, "<ir_version: 10, opset_import: [\"\" : 24]>\ng (float[N, C, H, W] x) => (float[N, M, P, Q] y) <");
            add_windows(&w, &s, "w", cases[i].m, cases[i].c, cases[i].kernel);
            add(&w, "> { y = Conv (x, w) }\n");
            assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc), ONX_OK);
            const onx_session_options options = { .threads = 1, .precision = asked, .isa = ONX_ISA_AMX };
            const char *variant = run(doc, "Conv", &options, (const onx_value *const[]){ x }, &y);
            if ((strcmp(variant, "amx") == 0) != (cases[i].is_taken && asked == ONX_PRECISION_FULL))
                fail_msg("case %zu with precision %u runs as %s", i, asked, variant);
            onx_value_free(x);
            onx_value_free(y);
            onx_doc_free(doc);
        }
}

/* The rows for that run where the processor has them, and nothing but that precision asks for them. */
static void test_kernel_convolutions__rows_of_fewer_bits_run(void **state)
{
    static const char *const ops[] = { "Conv <strides = [2, 2], kernel_shape = [3, 3]>", "Conv <kernel_shape = [3, 3]>",
                                       "ConvTranspose <strides = [2, 2], kernel_shape = [3, 3]>" };
    static writer w;
    source s = { 37 };
    (void)state;
    if (onxi_isa_best() < (unsigned)ONX_ISA_BF16)
        skip();
    for (int i = 0; i < 3; i++) {
        onx_doc *doc = NULL;
        onx_value *x = floats(&s, 4, (int64_t[]){ 1, 48, 30, 30 });
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 24]>\n"
                "g (float[N, C, H, W] x) => (float[N, M, P, Q] y) <float[48, 48, 3, 3] w = {");
        add_short_numbers(&w, &s, 48 * 48 * 9);
        add(&w, "> { y = %s (x, w) }\n", ops[i]);
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc), ONX_OK);
        for (unsigned asked = 0; asked < ONX_PRECISION_END; asked++) {
            onx_value *y = NULL;
            const onx_session_options options = { .threads = 1, .precision = asked };
            const char *variant =
                run(doc, i == 2 ? "ConvTranspose" : "Conv", &options, (const onx_value *const[]){ x }, &y);
            /* Winograd's way has a quarter of the products, and all bits */
            if ((strcmp(variant, "bf16") == 0) != (asked == ONX_PRECISION_BF16 && i != 1))
                fail_msg("%s runs as %s", ops[i], variant);
            onx_value_free(y);
        }
        onx_value_free(x);
        onx_doc_free(doc);
    }
}

/* A product that is added to what it was made of: that may not be overwritten while it is read. */
static void test_kernel_convolutions__what_is_added_is_read_to_the_end(void **state)
{
    enum { CHANNELS = 32 };
    static writer w;
    source s = { 11 };
    (void)state;
    for (uint32_t size = 1; size <= 5; size += 2) {
        onx_value *x = floats(&s, 4, (int64_t[]){ 1, CHANNELS, 14, 14 });
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]>\n"
            "g (float[N, C, H, W] x) => (float[N, C, P, Q] y) <float[%u, %u, %u, %u] w = {",
            CHANNELS, CHANNELS, size, size);
        for (uint32_t i = 0; i < CHANNELS * CHANNELS * size * size; i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
        add(&w, "}> {\n b = MaxPool <kernel_shape = [1, 1]> (x)\n c = Conv <pads = [%u, %u, %u, %u]> (b, w)\n",
            size / 2, size / 2, size / 2, size / 2);
        add(&w, " y = Add (c, b)\n}\n");
        compare_any(&w, "Conv", (const onx_value *const[]){ x }, 300);
        onx_value_free(x);
    }
    onx_value *x = floats(&s, 2, (int64_t[]){ 40, CHANNELS });
    w.len = 0;
    add(&w,
        "<ir_version: 10, opset_import: [\"\" : 24]>\n"
        "g (float[M, K] x) => (float[M, K] y) <float[%u, %u] w = {",
        CHANNELS, CHANNELS);
    for (uint32_t i = 0; i < CHANNELS * CHANNELS; i++)
        add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
    add(&w, "}> {\n b = Exp (x)\n c = MatMul (b, w)\n y = Add (c, b)\n}\n");
    compare_any(&w, "MatMul", (const onx_value *const[]){ x }, 300);
    onx_value_free(x);
}

/* Convolutions in whatever layout they like, and between them what is broadcast to images: a number per channel, per
 * pixel, one, and what is not all of these; sums of values that something else needs, too; channels put together of
 * images that are laid out in several ways. */
static void test_kernel_convolutions__layouts_are_the_same(void **state)
{
    static const uint32_t channels[] = { 3, 8, 16, 20, 24, 32, 48, 64 };
    static const char *const ops[] = { "Mul", "Add", "Sub", "Div", "PRelu" };
    static const char *const pools[] = { "MaxPool <kernel_shape = [1, 1]>", "Relu", "Identity" };
    static writer w;
    source s = { 12 };
    (void)state;
    for (unsigned turn = 0; turn < 80; turn++) {
        const uint32_t c = channels[below(&s, 8)], m = channels[below(&s, 8)], size = 1 + turn % 2 * 2;
        const uint32_t n = 1 + below(&s, 2), h = 1 + below(&s, 20), wide = 1 + below(&s, 20), op = below(&s, 5);
        const int64_t xd[] = { n, c, h, wide };
        const int64_t kinds[][4] = { { 1, m, 1, 1 }, { n, m, 1, 1 }, { 1, 1, 1, 1 },    { n, 1, h, wide },
                                     { n, 1, 1, 1 }, { 1, m, h, 1 }, { 1, 1, h, wide }, { 1, 1, 1, wide } };
        const uint32_t kind = below(&s, 8), rank = kinds[kind][0] == 1 && kinds[kind][1] == m ? 3 + below(&s, 2) : 4;
        const bool turned = op < 4 && below(&s, 3) == 0;
        onx_value *x = floats(&s, 4, xd), *y = floats(&s, rank, kinds[kind] + 4 - rank);
        for (uint64_t i = 0; i < y->count; i++)
            ((float *)y->data)[i] = fabsf(((float *)y->data)[i]) + 0.5f;
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]> g (float[N, C, H, W] x, float[%s] o) =>"
            " (float[N, M, P, Q] y, float[N, M, P, Q] z) <",
            rank == 3 ? "A, E, F" : "A, B, E, F");
        add_windows(&w, &s, "u", m, c, size);
        add(&w, ", ");
        add_windows(&w, &s, "v", m, m, 1);
        add(&w, ", ");
        add_windows(&w, &s, "t", m, c + 2 * m, 1);
        for (int i = 0; i < 4; i++) {
            add(&w, ", float[%u] n%d = {", c + 2 * m, i);
            for (uint32_t k = 0; k < c + 2 * m; k++)
                add(&w, "%s%.2f", k ? ", " : "", (double)between(&s, 0.5f, 1));
            add(&w, "}");
        }
        add(&w, "> {\n a = Conv <pads = [%u, %u, %u, %u]> (x, u)\n b = %s (a)\n", size / 2, size / 2, size / 2,
            size / 2, pools[below(&s, 3)]);
        add(&w, turned ? " d = %s (o, b)\n" : " d = %s (b, o)\n", turned && op == 3 ? "Add" : ops[op]);
        add(&w, " e = Conv (d, v)\n f = Add (e, d)\n y = Conv (f, v)\n");
        add(&w, " k = Concat <axis = 1> (%s)\n", turn % 4 < 2 ? "f, x, y" : "x, f, y");
        add(&w, " l = BatchNormalization (k, n0, n1, n2, n3)\n q = %s (l)\n r = Conv (q, t)\n z = Add (r, e)\n}\n",
            pools[1 + below(&s, 2)]);
        compare_any(&w, "Conv", (const onx_value *const[]){ x, y }, 600);
        onx_value_free(x);
        onx_value_free(y);
    }
}

/* Convolutions that are large enough for two threads, whatever they are cut by: windows of all heights, steps, gaps and
 * pads that differ on each side, groups. */
static void test_kernel_convolutions__convolutions_are_cut(void **state)
{
    static const uint32_t channels[] = { 16, 32, 48 };
    static writer w;
    source s = { 13 };
    (void)state;
    for (unsigned turn = 0; turn < 48; turn++) {
        const uint32_t c = channels[below(&s, 3)], high = 1 + below(&s, 5), wide = 1 + below(&s, 3);
        const uint32_t group = turn % 3 == 0 ? c : turn % 3 == 1 ? 1 : 2, m = group == c ? c : channels[below(&s, 3)];
        const uint32_t stride = 1 + below(&s, 3), gap = 1 + below(&s, 2);
        onx_value *x = floats(&s, 4, (int64_t[]){ 1, c, 23 + below(&s, 40), 40 + below(&s, 20) });
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]>"
            " g (float[N, C, H, W] x) => (float[N, M, P, Q] z) <float[%u, %u, %u, %u] w = {",
            m, c / group, high, wide);
        for (uint32_t i = 0; i < m * (c / group) * high * wide; i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
        add(&w, "}, ");
        add_windows(&w, &s, "v", m, m, 1);
        add(&w, "> {\n y = Conv <group = %u, strides = [%u, 1], dilations = [%u, 1], pads = [%u, %u, %u, %u]> (x, w)\n",
            group, stride, gap, below(&s, high), below(&s, wide), below(&s, high), below(&s, wide));
        add(&w, " r = Relu (y)\n a = Conv (r, v)\n z = Add (a, r)\n}\n");
        compare_any(&w, "Conv", (const onx_value *const[]){ x }, 600);
        onx_value_free(x);
    }
}

/* Lines in groups: channels, taps and distances that are whole vectors and blocks, and not; with pads and numbers that
 * are not finite. */
static void test_kernel_convolutions__lines_in_groups_are_the_same(void **state)
{
    static const uint32_t each[] = { 1, 1, 2, 3, 5, 16 }, lengths[] = { 1, 7, 63, 64, 65, 200 },
                          taps[] = { 1, 2, 3, 8, 31 };
    static writer w;
    source s = { 21 };
    unsigned fast = 0;
    (void)state;
    for (unsigned turn = 0; turn < 90; turn++) {
        const uint32_t group = 2 + below(&s, 6), in = each[below(&s, 6)], out = each[below(&s, 6)],
                       k = taps[below(&s, 5)];
        const uint32_t length = lengths[below(&s, 6)], dilation = 1 + below(&s, 2) * below(&s, 9);
        uint32_t pad[2] = { below(&s, 3) * below(&s, 20), 0 };
        const uint32_t reach = (k - 1) * dilation + 1, posts = below(&s, 3);
        while (length + pad[0] + pad[1] < reach || below(&s, 2))
            pad[1]++;
        onx_value *x = floats(&s, 3, (int64_t[]){ 1 + below(&s, 2), group * in, length });
        onx_value *residual =
            floats(&s, 3, (int64_t[]){ x->dims[0], group * out, length + pad[0] + pad[1] - reach + 1 });
        if (turn % 8 == 7) {
            static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f };
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = odd[turn / 8 % 4];
        }
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]>\n"
            "g (float[N, C, W] x0, float[N, M, P] x1) => (float[N, M, P] y) <float low = {-0.5}, float high = {1.25}, ");
        add(&w, "float[%u, %u, %u] w = {", group * out, in, k);
        for (uint32_t i = 0; i < group * out * in * k; i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
        add(&w, "}, float[%u] b = {", group * out);
        for (uint32_t i = 0; i < group * out; i++)
            add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}> {\n %s = Conv <group = %u, pads = [%u, %u], dilations = [%u]> (x0, w%s)\n", posts ? "t0" : "y",
            group, pad[0], pad[1], dilation, turn % 2 ? ", b" : "");
        add_posts(&w, &s, posts);
        add(&w, "}\n");
        fast += strcmp(compare_any(&w, "Conv", (const onx_value *const[]){ x, residual }, 150), "simd") == 0;
        onx_value_free(x);
        onx_value_free(residual);
    }
    assert_int_equal(fast, 90);
}

/* Lines of one dim, and of two where the other one is 1: channels that are whole vectors and not, fewer than a vector
 * and of several panels; steps, gaps, and sums that are cut; images of a few pixels, several of which are one piece of
 * work; pads up to windows of nothing else, and numbers that are not finite. */
static void test_kernel_convolutions__lines_are_the_same(void **state)
{
    static const uint32_t channels[] = { 1, 2, 3, 8, 12, 16, 24, 37, 64, 100 }, taps[] = { 1, 2, 3, 7, 16 },
                          gaps[] = { 1, 1, 2, 9, 27 };
    static const char *const dims[] = { "W", "1, W", "W, 1" }, *const results[] = { "P", "1, P", "P, 1" };
    static writer w;
    source s = { 61 };
    unsigned fast = 0;
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        const uint32_t c = channels[below(&s, 10)], m = channels[below(&s, 10)], k = taps[below(&s, 5)];
        const uint32_t gap = gaps[below(&s, 5)], stride = 1 + below(&s, 2) * below(&s, 9), reach = (k - 1) * gap + 1;
        const uint32_t posts = below(&s, 4), kind = turn % 3, pad[2] = { below(&s, reach), below(&s, reach + 1) };
        const uint32_t length = reach + (turn % 4 ? below(&s, 200) : below(&s, 12));
        const int64_t n = 1 + below(&s, 4), made = (length + pad[0] + pad[1] - reach) / stride + 1;
        const int64_t from[][4] = { { n, c, length }, { n, c, 1, length }, { n, c, length, 1 } };
        const int64_t to[][4] = { { n, m, made }, { n, m, 1, made }, { n, m, made, 1 } };
        onx_value *x = floats(&s, kind ? 4 : 3, from[kind]), *residual = floats(&s, kind ? 4 : 3, to[kind]);
        if (turn % 8 == 7)
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = turn % 16 == 7 ? NAN : INFINITY;
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]>\n g (float[N, C, %s] x0, float[N, M, %s] x1) => "
            "(float[N, M, %s] y) <float low = {-0.5}, float high = {1.25}, float[%u, %u, %s%u%s] w = {",
            dims[kind], results[kind], results[kind], m, c, kind == 1 ? "1, " : "", k, kind == 2 ? ", 1" : "");
        for (uint32_t i = 0; i < m * c * k; i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
        add(&w, "}, float[%u] b = {", m);
        for (uint32_t i = 0; i < m; i++)
            add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}> {\n %s = Conv <", posts ? "t0" : "y");
        if (kind == 0)
            add(&w, "strides = [%u], dilations = [%u], pads = [%u, %u]", stride, gap, pad[0], pad[1]);
        else if (kind == 1)
            add(&w, "strides = [1, %u], dilations = [1, %u], pads = [0, %u, 0, %u]", stride, gap, pad[0], pad[1]);
        else
            add(&w, "strides = [%u, 1], dilations = [%u, 1], pads = [%u, 0, %u, 0]", stride, gap, pad[0], pad[1]);
        add(&w, "> (x0, w%s)\n", turn % 2 ? ", b" : "");
        add_posts(&w, &s, posts);
        add(&w, "}\n");
        fast += strcmp(compare_any(&w, "Conv", (const onx_value *const[]){ x, residual }, 150), "simd") == 0;
        onx_value_free(x);
        onx_value_free(residual);
    }
    assert_in_range(fast, 110, 120);
}

/* Images of one pixel, whose convolutions are products. */
static void test_kernel_convolutions__single_pixels_are_the_same(void **state)
{
    static writer w;
    source s = { 51 };
    (void)state;
    for (unsigned turn = 0; turn < 24; turn++) {
        const uint32_t c = 1 + below(&s, turn % 2 ? 40 : 500), m = 2 + below(&s, 80), posts = below(&s, 3);
        const int64_t n = 1 + below(&s, 3);
        onx_value *x = floats(&s, 4, (int64_t[]){ n, c, 1, 1 }), *residual = floats(&s, 4, (int64_t[]){ n, m, 1, 1 });
        if (turn % 8 == 7)
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = turn % 16 == 7 ? NAN : INFINITY;
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 24]>\n"
                "g (float[N, C, H, W] x0, float[N, M, P, Q] x1) => (float[N, M, P, Q] y) <float low = {-0.5}, "
                "float high = {1.25}, ");
        add(&w, "float[%u, %u, 1, 1] w = {", m, c);
        for (uint32_t i = 0; i < m * c; i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
        add(&w, "}, float[%u] b = {", m);
        for (uint32_t i = 0; i < m; i++)
            add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}> {\n %s = Conv <strides = [%u, 1]> (x0, w%s)\n", posts ? "t0" : "y", 1 + below(&s, 2),
            turn % 3 ? ", b" : "");
        add_posts(&w, &s, posts);
        add(&w, "}\n");
        assert_string_equal(compare_any(&w, "Conv", (const onx_value *const[]){ x, residual }, 150), "simd");
        onx_value_free(x);
        onx_value_free(residual);
    }
}

/* Planes, as the graph's input is: channels that are groups of their own, and windows of one pixel in groups;
 * planes of whole vectors and not, sums longer than a stretch, with numbers that are not finite. */
static void test_kernel_convolutions__planes_are_the_same(void **state)
{
    static const uint32_t sizes[] = { 1, 4, 7, 8, 14, 16, 33 }, each[] = { 1, 6, 17, 68, 300 };
    static writer w;
    source s = { 33 };
    unsigned fast = 0;
    (void)state;
    for (unsigned turn = 0; turn < 90; turn++) {
        const bool alone = turn % 2;
        const uint32_t in = alone ? 1 : each[below(&s, 5)], out = alone ? 1 : 6 + below(&s, 30), posts = below(&s, 3);
        const uint32_t group = 2 + below(&s, alone ? 20 : 2);
        const bool three = turn % 4 == 1; /* which has a row of its own */
        const uint32_t kernel = three ? 3 : alone ? 1 + below(&s, 5) : 1;
        const uint32_t stride = alone && !three ? 1 + below(&s, 3) : 1;
        const uint32_t dilation = three ? 1 : 1 + below(&s, 2), reach = (kernel - 1) * dilation + 1;
        const int64_t h = sizes[below(&s, 7)], wide = sizes[below(&s, 7)], n = 1 + below(&s, 2);
        uint32_t pad[4] = { 0 };
        for (int i = 0; alone && i < 4; i++)
            pad[i] = below(&s, 4);
        while (alone && (h + pad[0] + pad[2] < reach || wide + pad[1] + pad[3] < reach))
            pad[2]++, pad[3]++;
        const int64_t oh = (h + pad[0] + pad[2] - reach) / stride + 1,
                      ow = (wide + pad[1] + pad[3] - reach) / stride + 1;
        onx_value *x = floats(&s, 4, (int64_t[]){ n, group * in, h, wide });
        onx_value *residual = floats(&s, 4, (int64_t[]){ n, group * out, oh, ow });
        if (turn % 8 > 5) {
            static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f };
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = odd[turn / 8 % 4];
        }
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]>\n"
            "g (float[N, C, H, W] x0, float[N, M, P, Q] x1) => (float[N, M, P, Q] y) <float low = {-0.5}, float high = {1.25}, ");
        add(&w, "float[%u, %u, %u, %u] w = {", group * out, in, kernel, kernel);
        for (uint32_t i = 0; i < group * out * in * kernel * kernel; i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
        add(&w, "}, float[%u] b = {", group * out);
        for (uint32_t i = 0; i < group * out; i++)
            add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w,
            "}> {\n %s = Conv <group = %u, pads = [%u, %u, %u, %u], strides = [%u, %u], dilations = [%u, %u]>"
            " (x0, w%s)\n",
            posts ? "t0" : "y", group, pad[0], pad[1], pad[2], pad[3], stride, stride, dilation, dilation,
            turn % 4 < 2 ? ", b" : "");
        add_posts(&w, &s, posts);
        add(&w, "}\n");
        fast += strcmp(compare_any(&w, "Conv", (const onx_value *const[]){ x, residual }, 150), "simd") == 0;
        onx_value_free(x);
        onx_value_free(residual);
    }
    assert_int_equal(fast, 90);
}

/* Windows of one pixel from planes to a few channels: of any number of channels, pixels of several pieces and of no
 * whole vectors, numbers that are not finite. */
static void test_kernel_convolutions__few_channels_of_planes_are_the_same(void **state)
{
    static const uint32_t sizes[] = { 4, 5, 7, 16, 33, 50 };
    static writer w;
    source s = { 51 };
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        const uint32_t c = 1 + below(&s, turn % 3 ? 12 : 150), m = 1 + below(&s, turn % 4 ? 4 : 12);
        const int64_t n = 1 + below(&s, 2), h = sizes[below(&s, 6)], wide = sizes[below(&s, 6)];
        const uint32_t posts = below(&s, 3);
        onx_value *x = floats(&s, 4, (int64_t[]){ n, c, h, wide }),
                  *residual = floats(&s, 4, (int64_t[]){ n, m, h, wide });
        if (turn % 8 == 7)
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = turn % 16 == 7 ? NAN : INFINITY;
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]>\n"
            "g (float[N, C, H, W] x0, float[N, M, P, Q] x1) => (float[N, M, P, Q] y) <float low = {-0.5}, float high = {1.25}, ");
        add_windows(&w, &s, "w", m, c, 1);
        add(&w, ", float[%u] b = {", m);
        for (uint32_t i = 0; i < m; i++)
            add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}> {\n %s = Conv (x0, w%s)\n", posts ? "t0" : "y", turn % 2 ? ", b" : "");
        add_posts(&w, &s, posts);
        add(&w, "}\n");
        const char *variant = compare_any(&w, "Conv", (const onx_value *const[]){ x, residual }, 150);
        if (m <= 4)
            assert_string_equal(variant, "simd");
        onx_value_free(x);
        onx_value_free(residual);
    }
}

/* A convolution of one to three dims, or a transposed one, of channels in whole blocks, or in groups of a few: steps,
 * gaps that reach far into the padding, groups, pads that differ on each side, and what is done in passing. The input
 * comes from a convolution of its own, so that it may lie as it likes. */
static void test_kernel_convolutions__windows_of_all_kinds_are_the_same(void **state)
{
    enum { DIMS = 3 };
    static const char *const dims_in[] = { "A", "A, B", "A, B, D" }, *const dims_out[] = { "E", "E, F", "E, F, G" };
    static writer w;
    source s = { 41 };
    unsigned fast = 0;
    (void)state;
    for (unsigned turn = 0; turn < 140; turn++) {
        const bool transposed = turn % 2, few = turn % 4 == 2;
        const uint32_t dims = 1 + below(&s, DIMS), group = few ? 2 + below(&s, 4) : 1 + below(&s, 2);
        const uint32_t c = few ? 1 + below(&s, 7) : 16 * (1 + below(&s, 2));
        const uint32_t m = few ? 1 + below(&s, 9) : 16 * (1 + below(&s, 3)), posts = below(&s, 3);
        uint32_t kernel[DIMS], stride[DIMS], dilation[DIMS], pads[2 * DIMS], extra[DIMS], taps = 1;
        int64_t size[2 + DIMS] = { 1 + below(&s, 2), c * group };
        for (uint32_t i = 0; i < dims; i++) {
            kernel[i] = 1 + below(&s, dims == 1 ? 7 : 3);
            stride[i] = 1 + below(&s, 3);
            dilation[i] = 1 + below(&s, turn % 8 < 2 ? 9 : 2);
            extra[i] = below(&s, stride[i]);
            taps *= kernel[i];
            const uint32_t reach = (kernel[i] - 1) * dilation[i];
            pads[i] = transposed ? below(&s, reach / 2 + 1) : below(&s, reach + 1);
            pads[dims + i] = transposed ? below(&s, reach / 2 + 1) : reach - pads[i];
            size[2 + i] = 1 + below(&s, dims == 1 ? 150 : 12);
            if (transposed && reach + 1 < pads[i] + pads[dims + i] + 1)
                pads[i] = pads[dims + i] = 0;
        }
        onx_value *x = floats(&s, 2 + dims, size);
        if (turn % 10 == 9) {
            static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f };
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = odd[turn / 10 % 4];
        }
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]> g (float[N, C, %s] x) => (float[N, M, %s] y) <"
            "float low = {-0.5}, float high = {1.25}, float[%u, %u",
            dims_in[dims - 1], dims_out[dims - 1], transposed ? c * group : m * group, transposed ? m : c);
        for (uint32_t i = 0; i < dims; i++)
            add(&w, ", %u", kernel[i]);
        add(&w, "] w = {");
        for (uint32_t i = 0; i < group * m * c * taps; i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
        add(&w, "}, float[%u] b = {", m * group);
        for (uint32_t i = 0; i < m * group; i++)
            add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}> {\n x1 = %s <group = %u", transposed ? "ConvTranspose" : "Conv", group);
        add_list(&w, "strides", stride, dims);
        add_list(&w, "dilations", dilation, dims);
        add_list(&w, "pads", pads, 2 * dims);
        if (transposed)
            add_list(&w, "output_padding", extra, dims);
        add(&w, "> (x, w%s)\n t0 = Relu (x1)\n", turn % 3 ? ", b" : "");
        for (uint32_t i = 0; i < posts; i++) {
            char from[16], to[16];
            snprintf(from, sizeof from, "t%u", i);
            snprintf(to, sizeof to, "t%u", i + 1);
            add(&w, " ");
            add(&w, behind_conv[below(&s, sizeof behind_conv / sizeof *behind_conv)], to, from);
            add(&w, "\n");
        }
        add(&w, " y = Neg (t%u)\n}\n", posts);
        const char *op = transposed ? "ConvTranspose" : "Conv";
        fast += strcmp(compare_any(&w, op, (const onx_value *const[]){ x }, 150), "simd") == 0;
        onx_value_free(x);
    }
    assert_in_range(fast, 70, 140); /* the transposed ones, and what oneDNN has no kernel for */
}

/* Transposed ones to a few channels, which are no blocks: of windows whose places within a step have the same taps and
 * others, of images that are cut into stripes, and of lines. */
static void test_kernel_convolutions__few_channels_are_spread(void **state)
{
    static writer w;
    source s = { 47 };
    (void)state;
    for (unsigned turn = 0; turn < 90; turn++) {
        const uint32_t axes = turn < 60 ? 2 : 1;
        const uint32_t c = 1 + below(&s, turn % 4 ? 24 : 90), m = 1 + below(&s, 9);
        windows q;
        uint32_t size[2];
        for (uint32_t i = 0; i < axes; i++) {
            const uint32_t reach = draw_window(&s, &q, i, 9, 5);
            q.pad[i] = below(&s, reach / 2 + 1);
            q.pad[axes + i] = below(&s, reach / 2 + 1);
            size[i] = 2 + below(&s, turn % 5 ? 12 : 60);
            while ((size[i] - 1) * q.stride[i] + reach <= q.pad[i] + q.pad[axes + i])
                size[i]++;
        }
        onx_value *x = floats(&s, 2 + axes, (int64_t[]){ 1 + below(&s, 2), c, size[0], size[1] });
        if (turn % 8 == 7)
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = turn % 16 == 7 ? NAN : INFINITY;
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]> g (float[N, C, %s] x) => (float[N, M, %s] y) <float[%u, %u, %u",
            axes == 2 ? "H, W" : "W", axes == 2 ? "P, Q" : "P", c, m, q.kernel[0]);
        if (axes == 2)
            add(&w, ", %u", q.kernel[1]);
        add(&w, "] w = {");
        for (uint32_t i = 0; i < m * c * q.kernel[0] * (axes == 2 ? q.kernel[1] : 1); i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
        add(&w, "}, float[%u] b = {", m);
        for (uint32_t i = 0; i < m; i++)
            add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}> {\n t = ConvTranspose <group = 1");
        add_list(&w, "strides", q.stride, axes);
        add_list(&w, "dilations", q.dilation, axes);
        add_list(&w, "pads", q.pad, 2 * axes);
        add(&w, "> (x, w%s)\n", turn % 2 ? ", b" : "");
        add(&w, " y = %s (t)\n}\n", turn % 3 ? "Tanh" : "Relu");
        const char *variant = compare_any(&w, "ConvTranspose", (const onx_value *const[]){ x }, 300);
        assert_string_equal(variant, "simd");
        onx_value_free(x);
    }
}

/* Sums of all lengths in whole blocks of channels: wherever a stretch of them ends, it ends between two blocks. The
 * transposed ones have a bias, which oneDNN leaves to our own rows. */
static void test_kernel_convolutions__sums_of_all_lengths_are_the_same(void **state)
{
    enum { TAPS = 3, OUT = 32 };
    static writer w;
    source s = { 43 };
    unsigned fast = 0;
    (void)state;
    for (uint32_t turn = 0; turn < 80; turn++) {
        const bool transposed = turn % 2;
        const uint32_t c = 16 * (1 + turn / 4), group = turn / 2 % 2 ? 2 : 1;
        onx_value *x = floats(&s, 4, (int64_t[]){ 1, c * group, 3, 20 });
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 24]> g (float[N, C, H, W] x) => (float[N, M, P, Q] y) <");
        add(&w, "float[%u, %u, 1, %u] w = {", transposed ? c * group : OUT * group, transposed ? OUT : c, TAPS);
        for (uint32_t i = 0; i < c * group * OUT * TAPS; i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -0.2f, 0.2f));
        add(&w, "}, float[%u] b = {", OUT * group);
        for (uint32_t i = 0; i < OUT * group; i++)
            add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}> {\n y = %s <group = %u, dilations = [1, 2]> (x, w, b)\n}\n", transposed ? "ConvTranspose" : "Conv",
            group);
        fast += strcmp(compare_any(&w, transposed ? "ConvTranspose" : "Conv", (const onx_value *const[]){ x }, 300),
                       "simd") == 0;
        onx_value_free(x);
    }
    assert_in_range(fast, 40, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_convolutions__single_pixels_are_the_same),
        cmocka_unit_test(test_kernel_convolutions__planes_are_the_same),
        cmocka_unit_test(test_kernel_convolutions__few_channels_of_planes_are_the_same),
        cmocka_unit_test(test_kernel_convolutions__lines_are_the_same),
        cmocka_unit_test(test_kernel_convolutions__lines_in_groups_are_the_same),
        cmocka_unit_test(test_kernel_convolutions__windows_of_all_kinds_are_the_same),
        cmocka_unit_test(test_kernel_convolutions__convolutions_are_the_same),
        cmocka_unit_test(test_kernel_convolutions__windows_are_the_same),
        cmocka_unit_test(test_kernel_convolutions__in_fewer_bits_they_are_the_same),
        cmocka_unit_test(test_kernel_convolutions__in_parts_they_are_the_same),
        cmocka_unit_test(test_kernel_convolutions__rows_of_fewer_bits_run),
        cmocka_unit_test(test_kernel_convolutions__rows_of_tiles_run),
        cmocka_unit_test(test_kernel_convolutions__what_is_added_is_read_to_the_end),
        cmocka_unit_test(test_kernel_convolutions__layouts_are_the_same),
        cmocka_unit_test(test_kernel_convolutions__convolutions_are_cut),
        cmocka_unit_test(test_kernel_convolutions__few_channels_are_spread),
        cmocka_unit_test(test_kernel_convolutions__sums_of_all_lengths_are_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* test_kernel_pools.c - pooling and LRN on planar channels, large enough for vectors: by the plain rows and by others,
 * with one thread and with two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

#include <math.h>

enum { DIMS = 3 };

/* A few numbers that vectors have to leave where they are. */
static void spoil(source *s, onx_value *x, unsigned turn)
{
    static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f };
    if (turn % 4 == 3)
        ((float *)x->data)[below(s, (uint32_t)x->count)] = odd[turn / 4 % 4];
}

/* A pool of one to three axes. */
typedef struct pool {
    uint32_t axes, kernel[DIMS], stride[DIMS], dilation[DIMS], pads[2 * DIMS];
    bool average, where; /* where: it outputs indices, too */
    int64_t size[2 + DIMS];
    const char *type; /* NULL: float */
} pool;

static void draw_axis(source *s, pool *q, uint32_t i, uint32_t kernel, uint32_t stride, bool dilated)
{
    q->kernel[i] = 1 + below(s, kernel);
    q->stride[i] = 1 + below(s, stride);
    q->dilation[i] = dilated ? 1 + below(s, 2) : 1;
    q->pads[i] = below(s, q->kernel[i]);
    q->pads[q->axes + i] = below(s, q->kernel[i]);
    q->size[2 + i] = (q->kernel[i] - 1) * q->dilation[i] + 1 + below(s, i + 1 == q->axes ? 50 : 9);
}

/* maker: see add_maker; NULL: none. */
static void write_pool(writer *w, source *s, const pool *q, const char *maker, unsigned version)
{
    static const char *const in[] = { "A", "A, B", "A, B, D" }, *const out[] = { "E", "E, F", "E, F, G" };
    const char *dims = out[q->axes - 1], *type = q->type ? q->type : "float";
    w->len = 0;
    add(w, "<ir_version: 10, opset_import: [\"\" : %u]> g (%s[N, C, %s] x) => (%s[N, M, %s] y%s%s%s)", version, type,
        in[q->axes - 1], type, dims, q->where ? ", int64[N, M, " : "", q->where ? dims : "", q->where ? "] at" : "");
    if (maker) {
        add(w, " <");
        add_maker(w, s, maker, q->axes, (uint32_t)q->size[1]);
        add(w, "> {\n a = %s (x, v)\n", maker);
    } else {
        add(w, " {\n");
    }
    add(w, " y%s = %s <ceil_mode = %u", q->where ? ", at" : "", q->average ? "AveragePool" : "MaxPool", below(s, 2));
    add_list(w, "kernel_shape", q->kernel, q->axes);
    add_list(w, "strides", q->stride, q->axes);
    add_list(w, "dilations", q->dilation, q->axes);
    add_list(w, "pads", q->pads, 2 * q->axes);
    if (q->average)
        add(w, ", count_include_pad = %u", below(s, 2));
    add(w, "> (%s)\n}\n", maker ? "a" : "x");
}

/* Windows of one to three dims with pads, steps and gaps, wider than a vector and not, whose last ones reach beyond the
 * input, of channels that are no whole blocks. */
static void test_kernel_pools__windows_are_the_same(void **state)
{
    static writer w;
    source s = { 31 };
    unsigned fast = 0;
    (void)state;
    for (unsigned turn = 0; turn < 160; turn++) {
        const bool dilated = turn % 2 == 0 || turn % 4 == 1;
        pool q = { .axes = 1 + below(&s, DIMS), .average = turn % 2, .where = turn % 4 == 2 };
        q.size[0] = 1 + below(&s, 2);
        q.size[1] = 1 + below(&s, 5);
        for (uint32_t i = 0; i < q.axes; i++)
            draw_axis(&s, &q, i, i + 1 == q.axes && turn % 8 == 0 ? 40 : 4, turn % 16 == 1 ? 24 : 3, dilated);
        onx_value *x = floats(&s, 2 + q.axes, q.size);
        for (uint64_t i = 0; q.where && i < x->count; i++) /* many that are equal, of which the first counts */
            ((float *)x->data)[i] = floorf(((float *)x->data)[i] * 2);
        spoil(&s, x, q.where ? turn / 4 : turn);
        write_pool(&w, &s, &q, NULL, turn % 3 ? 22 : 19);
        const char *name = q.average ? "AveragePool" : "MaxPool";
        fast += strcmp(compare_any(&w, name, (const onx_value *const[]){ x }, 20), "simd") == 0;
        onx_value_free(x);
    }
    assert_int_equal(fast, 160);
}

/* The same of images with channels last or in blocks: whole vectors of them and not, windows that have code of their
 * own along a line and others, of lines that are shorter than a strip and longer. */
static void test_kernel_pools__channels_are_the_same(void **state)
{
    static const uint32_t channels[] = { 3, 8, 15, 16, 17, 24, 32, 72, 130 };
    static const uint32_t kinds[][2] = { { 2, 2 }, { 3, 1 }, { 3, 2 } }; /* taps, step */
    static writer w;
    source s = { 36 };
    (void)state;
    for (unsigned turn = 0; turn < 160; turn++) {
        pool q = { .axes = 1 + turn % 7 % DIMS, .average = turn % 2 };
        for (uint32_t i = 0; i < q.axes; i++) {
            draw_axis(&s, &q, i, 4, 3, turn % 4 < 2);
            if (turn % 8 > 1 && i + 2 >= q.axes) {
                const uint32_t *kind = kinds[turn / 8 % 3];
                q.kernel[i] = kind[0];
                q.stride[i] = kind[1];
                q.dilation[i] = turn % 16 == 2 ? 2 : 1;
                q.pads[i] = below(&s, kind[0]);
                q.pads[q.axes + i] = below(&s, kind[0]);
                q.size[2 + i] = 5 + below(&s, i + 1 == q.axes ? 40 : 10);
            }
        }
        q.size[0] = 1 + below(&s, 2);
        q.size[1] = MADE_OF;
        onx_value *x = floats(&s, 2 + q.axes, q.size);
        spoil(&s, x, turn / 2);
        q.size[1] = channels[below(&s, sizeof channels / sizeof *channels)];
        write_pool(&w, &s, &q, turn % 3 ? "Conv" : "ConvTranspose", turn % 5 ? 22 : 19);
        compare_any(&w, q.average ? "AveragePool" : "MaxPool", (const onx_value *const[]){ x }, 60);
        onx_value_free(x);
    }
}

/* Operators that reduce all pixels of an image, and what they need for that. */
static void write_whole(writer *w, source *s, unsigned turn, const int64_t *size, const char *maker)
{
    static const char *const dims[] = { "A", "A, B", "A, B, D" };
    const uint32_t axes = 1 + turn % 3, pads[6] = { below(s, 2), below(s, 2), below(s, 2), 1, 0, 1 };
    const bool keeps = turn % 2;
    uint32_t kernel[3], stride[3], list[3];
    w->len = 0;
    for (uint32_t i = 0; i < axes; i++) {
        kernel[i] = (uint32_t)size[2 + i] + pads[i] + below(s, 2);
        stride[i] = kernel[i] + 3;
        if (turn % 8 == 1 && size[2 + i] > 1) /* the only window does not cover the image */
            kernel[i] = (uint32_t)size[2 + i] - 1;
        list[i] = 2 + i;
    }
    add(w, "<ir_version: 10, opset_import: [\"\" : 17]> g (float[N, C, %s] x) => (float[N, M%s] y) <", dims[axes - 1],
        turn % 7 > 3 && !keeps ? "" : &", 1, 1, 1"[3 * (3 - axes)]);
    add_maker(w, s, maker, axes, (uint32_t)size[1]);
    add(w, ", int64[%u] axes = {", axes);
    for (uint32_t i = 0; i < axes; i++)
        add(w, "%s%u", i ? ", " : "", list[i]);
    add(w, "}> {\n a = %s (x, v)\n y = ", maker);
    switch (turn % 7) {
    case 0:
    case 1:
        add(w, "%s (a)\n}\n", turn % 7 ? "GlobalAveragePool" : "GlobalMaxPool");
        break;
    case 2:
    case 3:
        add(w, "%s <ceil_mode = 0", turn % 7 == 2 ? "AveragePool" : "MaxPool");
        add_list(w, "kernel_shape", kernel, axes);
        add_list(w, "strides", stride, axes);
        add_list(w, "pads", pads, 2 * axes);
        if (turn % 7 == 2)
            add(w, ", count_include_pad = %u", below(s, 2));
        add(w, "> (a)\n}\n");
        break;
    case 4:
        add(w, "ReduceSum <keepdims = %u> (a, axes)\n}\n", keeps);
        break;
    default:
        add(w, "%s <keepdims = %u", turn % 7 == 5 ? "ReduceMean" : "ReduceMax", keeps);
        add_list(w, "axes", list, axes);
        add(w, "> (a)\n}\n");
    }
}

/* Images with channels last or in blocks: fewer pixels than are summed in float and more, several units of channels,
 * sums that leave the range of float. */
static void test_kernel_pools__whole_images_are_the_same(void **state)
{
    static const char *const names[] = { "GlobalMaxPool", "GlobalAveragePool", "AveragePool", "MaxPool",
                                         "ReduceSum",     "ReduceMean",        "ReduceMax" };
    static const uint32_t channels[] = { 8, 15, 16, 24, 32, 72, 130, 320, 600 };
    static writer w;
    source s = { 37 };
    (void)state;
    for (unsigned turn = 0; turn < 168; turn++) {
        const uint32_t axes = 1 + turn % 3;
        int64_t size[5] = { 1 + below(&s, 2), MADE_OF };
        for (uint32_t i = 0; i < axes; i++)
            size[2 + i] = 1 + below(&s, axes == 1 ? 700 : axes == 2 ? 26 : 9);
        onx_value *x = floats(&s, 2 + axes, size);
        spoil(&s, x, turn);
        const uint64_t each = x->count / (uint64_t)(size[0] * size[1]);
        for (uint64_t i = 0; turn % 7 == 5 && turn % 8 < 3 && i < x->count; i++)
            ((float *)x->data)[i] = i / each % MADE_OF ? 0 : 1e38f;
        size[1] = channels[below(&s, sizeof channels / sizeof *channels)];
        write_whole(&w, &s, turn, size, turn % 5 ? "Conv" : "ConvTranspose");
        compare_any(&w, names[turn % 7], (const onx_value *const[]){ x }, 100);
        onx_value_free(x);
    }
}

static void test_kernel_pools__planes_are_the_same(void **state)
{
    static const char *const names[] = { "GlobalMaxPool", "GlobalAveragePool" };
    static writer w;
    source s = { 32 };
    (void)state;
    for (unsigned turn = 0; turn < 24; turn++) {
        onx_value *x =
            floats(&s, 4, (int64_t[]){ 1 + below(&s, 2), 1 + below(&s, 9), 1 + below(&s, 30), 1 + below(&s, 30) });
        spoil(&s, x, turn);
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 22]> g (float[N, C, A, B] x) => (float[N, C, E, F] y) {\n"
            " y = %s (x)\n}\n",
            names[turn % 2]);
        compare_any(&w, names[turn % 2], (const onx_value *const[]){ x }, 60);
        onx_value_free(x);
    }
}

/* Behind a convolution channels are last, or in blocks: images that are worth two threads, which share rows of them. */
static void test_kernel_pools__parts_are_the_same(void **state)
{
    static const char *const names[] = { "MaxPool", "AveragePool" };
    static writer w;
    source s = { 34 };
    (void)state;
    for (unsigned turn = 0; turn < 24; turn++) {
        const uint32_t kernel[] = { 1 + below(&s, 4), 1 + below(&s, 4) };
        const uint32_t stride[] = { 1 + below(&s, 3), 1 + below(&s, 3) };
        const uint32_t pads[] = { below(&s, kernel[0]), below(&s, kernel[1]), below(&s, kernel[0]),
                                  below(&s, kernel[1]) };
        const int64_t channels = 16 * (4 + below(&s, 3)) + (turn % 4 ? 0 : 8);
        onx_value *x = floats(&s, 4, (int64_t[]){ turn % 6 ? 1 : 2, 3, 40 + below(&s, 30), 60 + below(&s, 30) });
        onx_value *k = floats(&s, 4, (int64_t[]){ channels, 3, 1, 1 });
        spoil(&s, x, turn);
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 22]> g (float[N, C, A, B] x, float[M, C, 1, 1] k) => "
            "(float[N, M, E, F] y) {\n c = Conv (x, k)\n y = %s <ceil_mode = %u",
            names[turn % 2], below(&s, 2));
        add_list(&w, "kernel_shape", kernel, 2);
        add_list(&w, "strides", stride, 2);
        add_list(&w, "pads", pads, 4);
        if (turn % 2)
            add(&w, ", count_include_pad = %u", below(&s, 2));
        add(&w, "> (c)\n}\n");
        compare_any(&w, names[turn % 2], (const onx_value *const[]){ x, k }, 100);
        onx_value_free(x);
        onx_value_free(k);
    }
}

/* Neighbours at both ends of the channels, more of them than there are channels, and every power. */
static void test_kernel_pools__neighbouring_channels_are_the_same(void **state)
{
    static const char *const betas[] = { "0.75", "0.5", "1.5" };
    static writer w;
    source s = { 33 };
    (void)state;
    for (unsigned turn = 0; turn < 40; turn++) {
        onx_value *x =
            floats(&s, 4, (int64_t[]){ 1 + below(&s, 2), 1 + below(&s, 12), 1 + below(&s, 9), 1 + below(&s, 30) });
        spoil(&s, x, turn);
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 13]> g (float[N, C, A, B] x) => (float[N, C, A, B] y) {\n"
            " y = LRN <size = %u, alpha = 0.3, beta = %s, bias = 1.5> (x)\n}\n",
            1 + below(&s, 16), betas[below(&s, 3)]);
        assert_string_equal(compare_any(&w, "LRN", (const onx_value *const[]){ x }, 20), "simd");
        onx_value_free(x);
    }
}

/* MaxPool of bytes, channels in front or last, where it comes between two changes of the order of axes. */
static void test_kernel_pools__bytes_are_the_same(void **state)
{
    static writer w;
    source s = { 35 };
    (void)state;
    for (unsigned turn = 0; turn < 48; turn++) {
        const bool is_signed = turn % 2, last = turn % 4 > 1;
        const uint32_t kernel[] = { 1 + below(&s, 4), 1 + below(&s, 4) };
        const uint32_t stride[] = { 1 + below(&s, 3), 1 + below(&s, 3) };
        const uint32_t dilation[] = { 1 + below(&s, 2), 1 + below(&s, 2) };
        const uint32_t pads[] = { below(&s, kernel[0]), below(&s, kernel[1]), below(&s, kernel[0]),
                                  below(&s, kernel[1]) };
        const int64_t n = 1 + below(&s, 2), c = 1 + below(&s, 140), h = 8 + below(&s, 20), wide = 8 + below(&s, 20);
        const int64_t first[] = { n, c, h, wide }, behind[] = { n, h, wide, c };
        onx_value *x = tensor(is_signed ? ONX_INT8 : ONX_UINT8, 4, last ? behind : first);
        for (uint64_t i = 0; i < x->count; i++)
            ((uint8_t *)x->data)[i] = (uint8_t)below(&s, 256);
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 22]> g (%s[N, A, B, C] x) => (%s[N, D, E, F] y) {\n",
            is_signed ? "int8" : "uint8", is_signed ? "int8" : "uint8");
        add(&w,
            last ? " t = Transpose <perm = [0, 3, 1, 2]> (x)\n p = MaxPool <ceil_mode = %u"
                 : " y = MaxPool <ceil_mode = %u",
            below(&s, 2));
        add_list(&w, "kernel_shape", kernel, 2);
        add_list(&w, "strides", stride, 2);
        add_list(&w, "dilations", dilation, 2);
        add_list(&w, "pads", pads, 4);
        add(&w, last ? "> (t)\n y = Transpose <perm = [0, 2, 3, 1]> (p)\n}\n" : "> (x)\n}\n");
        assert_string_equal(compare_any(&w, "MaxPool", (const onx_value *const[]){ x }, 0), "simd");
        onx_value_free(x);
    }
}

/* MaxPool of doubles and bytes on planes, with the indices of the maxima and without: lines that are shorter than parts
 * of a vector and longer than vectors, more lines than are reduced at once, elements that are equal, NaN. */
static void test_kernel_pools__types_are_the_same(void **state)
{
    static const struct {
        onx_dtype dtype;
        const char *name;
    } types[] = { { ONX_DOUBLE, "double" }, { ONX_INT8, "int8" }, { ONX_UINT8, "uint8" } };
    static writer w;
    source s = { 37 };
    (void)state;
    for (unsigned turn = 0; turn < 180; turn++) {
        const unsigned type = turn % 3;
        pool q = { .axes = 1 + below(&s, DIMS), .where = turn / 3 % 2, .type = types[type].name };
        q.size[0] = 1 + below(&s, 2);
        q.size[1] = 1 + below(&s, 4);
        for (uint32_t i = 0; i < q.axes; i++) {
            draw_axis(&s, &q, i, turn % 8 == 0 ? 9 : 4, turn % 16 == 1 ? 24 : 3, turn % 4 == 0);
            q.size[2 + i] += i + 1 == q.axes && turn % 2 ? below(&s, 140) : 0;
        }
        onx_value *x = tensor(types[type].dtype, 2 + q.axes, q.size);
        for (uint64_t i = 0; i < x->count; i++)
            if (type > 0)
                ((uint8_t *)x->data)[i] = (uint8_t)below(&s, turn % 5 ? 256 : 3);
            else
                ((double *)x->data)[i] = below(&s, 200) == 0   ? (double)NAN
                                         : below(&s, 200) == 0 ? (double)-INFINITY
                                                               : (double)below(&s, turn % 5 ? 100000 : 4) - 2;
        write_pool(&w, &s, &q, NULL, 22);
        assert_string_equal(compare_any(&w, "MaxPool", (const onx_value *const[]){ x }, 0), "simd");
        onx_value_free(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_pools__windows_are_the_same),
        cmocka_unit_test(test_kernel_pools__channels_are_the_same),
        cmocka_unit_test(test_kernel_pools__whole_images_are_the_same),
        cmocka_unit_test(test_kernel_pools__planes_are_the_same),
        cmocka_unit_test(test_kernel_pools__parts_are_the_same),
        cmocka_unit_test(test_kernel_pools__neighbouring_channels_are_the_same),
        cmocka_unit_test(test_kernel_pools__bytes_are_the_same),
        cmocka_unit_test(test_kernel_pools__types_are_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

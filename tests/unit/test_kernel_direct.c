/* test_kernel_direct.c - convolutions that read images in place: sizes below and above those of tiles, panels,
 * stretches and units of work, by the plain rows and by others, with one thread and with two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "unit/variants.h"

/* The nodes that may be done in passing, of a value like x1: by tiles, and after them. */
static const char *const behind[] = {
    "%s = Add (%s, x1)",   "%s = Relu (%s)",  "%s = Clip (%s, low, high)",
    "%s = HardSwish (%s)", "%s = Swish (%s)", "%s = Gelu (%s)",
};

/* Nodes in passing, from t0 on; the last one gives y. */
static void add_behind(writer *w, source *s, unsigned posts)
{
    for (uint32_t i = 0; i < posts; i++) {
        char from[16], to[16];
        snprintf(from, sizeof from, "t%u", i);
        snprintf(to, sizeof to, i + 1 == posts ? "y" : "t%u", i + 1);
        add(w, " ");
        add(w, behind[below(s, sizeof behind / sizeof *behind)], to, from);
        add(w, "\n");
    }
}

typedef struct images {
    uint32_t rank, c, m, group, kernel[3], stride[3], dilation[3], pad[6];
    int64_t in[5], out[5];
} images;

/* Draws padding and sizes of an axis, of at least `least`; where a window does not fit, there is padding at the end. */
static void draw_size(source *s, images *q, uint32_t i, uint32_t least)
{
    const uint32_t reach = (q->kernel[i] - 1) * q->dilation[i] + 1, size = least + below(s, q->rank > 2 ? 8 : 30);
    uint32_t *begin = &q->pad[i], *end = &q->pad[i + q->rank];
    *begin = below(s, 2) * below(s, reach);
    *end = below(s, 2) * below(s, reach);
    if (size + *begin + *end < reach)
        *end = reach - size;
    q->in[i + 2] = size;
    q->out[i + 2] = (size + *begin + *end - reach) / q->stride[i] + 1;
}

/* Draws a convolution, with groups now and then. */
static images draw(source *s, unsigned turn)
{
    static const uint32_t channels[] = { 1, 2, 3, 4, 5, 16, 24, 40, 64, 130 };
    static const uint32_t outputs[] = { 8, 15, 16, 17, 31, 32, 33, 48, 72, 96 };
    images q = { .rank = turn % 5 == 4 ? 3 : 2, .c = channels[below(s, 10)], .m = outputs[below(s, 10)], .group = 1 };
    if (turn % 6 == 5) {
        q.group = 1 + below(s, 3);
        q.c = 16 * q.group * (1 + below(s, 2));
        q.m = 16 * q.group * (1 + below(s, 4));
    }
    q.in[0] = q.out[0] = 1 + below(s, 2);
    q.in[1] = q.c;
    q.out[1] = q.m;
    for (uint32_t i = 0; i < q.rank; i++) {
        q.kernel[i] = 1 + below(s, turn % 4 ? 4 : 1);
        q.stride[i] = 1 + below(s, 3) % 2 * below(s, 3);
        q.dilation[i] = 1 + below(s, 4) / 3;
        draw_size(s, &q, i, 2);
    }
    return q;
}

/* The same with one to eight channels per group: whole vectors and not, fewer than a vector, several sets; windows that
 * have code of their own along a line, and others. */
static images draw_groups(source *s, unsigned turn)
{
    static const uint32_t channels[] = { 3, 8, 15, 16, 17, 24, 40, 64, 130, 200 }, each[] = { 1, 1, 1, 2, 4, 8, 3 };
    static const uint32_t kinds[][3] = { { 3, 1, 1 }, { 3, 2, 1 }, { 5, 1, 1 }, { 5, 2, 1 },
                                         { 7, 1, 1 }, { 3, 1, 2 }, { 5, 1, 2 } };
    const uint32_t m = each[turn % 7], c = (channels[below(s, 10)] + m - 1) / m * m;
    images q = { .rank = 1 + (turn + 1) % 5 % 3, .c = c, .m = c, .group = c / m };
    q.in[0] = q.out[0] = 1 + below(s, 2);
    q.in[1] = q.out[1] = c;
    for (uint32_t i = 0; i < q.rank; i++) {
        const uint32_t *kind = kinds[below(s, sizeof kinds / sizeof *kinds)];
        const bool has_code = i + 1 == q.rank && turn % 4;
        q.kernel[i] = has_code ? kind[0] : 1 + below(s, q.rank > 2 ? 3 : 9);
        q.stride[i] = has_code ? kind[1] : 1 + below(s, 3);
        q.dilation[i] = has_code ? kind[2] : 1 + below(s, 4) / 2;
        draw_size(s, &q, i, 2);
    }
    return q;
}

/* Groups of one of so many channels that sets of them leave less than a vector at first, of each width. */
static images draw_sets(source *s, unsigned turn)
{
    static const uint32_t channels[] = { 481, 488, 495, 721, 970, 1226, 1444 };
    images q = { .rank = 2, .c = channels[turn % 7] };
    q.m = q.group = q.c;
    q.in[0] = q.out[0] = 1 + below(s, 2);
    q.in[1] = q.out[1] = q.c;
    for (uint32_t i = 0; i < q.rank; i++) {
        q.kernel[i] = 3;
        q.stride[i] = q.dilation[i] = 1;
        q.pad[i] = q.pad[i + q.rank] = 1;
        q.in[i + 2] = q.out[i + 2] = 2 + below(s, 9);
    }
    return q;
}

/* Windows that reach far into the padding of an image with many channels, whose copy would be large: in groups or not,
 * sums of one stretch and of several, of whole panels and not. */
static images draw_apart(source *s, unsigned turn)
{
    static const uint32_t channels[] = { 64, 72, 130, 200, 272 }, outputs[] = { 8, 16, 31, 48, 80 };
    images q = { .rank = turn % 6 == 5 ? 3 : 2, .group = turn % 5 == 4 ? 2 : 1 };
    q.c = q.group > 1 ? 96 : channels[below(s, 5)];
    q.m = q.group > 1 ? 64 : outputs[below(s, 5)];
    q.in[0] = q.out[0] = 1 + below(s, 2);
    q.in[1] = q.c;
    q.out[1] = q.m;
    for (uint32_t i = 0; i < q.rank; i++) {
        const bool depth = i + 2 < q.rank;
        q.kernel[i] = depth ? 1 + below(s, 2) : 2 + below(s, 2);
        q.stride[i] = 1 + below(s, 4) / 3;
        q.dilation[i] = depth ? 1 + below(s, 2) : (turn % 3 ? 13 : 20) / (q.kernel[i] - 1) + below(s, 9);
        draw_size(s, &q, i, depth ? 2 : 4);
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t *pad = &q.pad[i + k * q.rank], more = below(s, q.dilation[i]);
            *pad += more;
            q.out[i + 2] =
                (q.in[i + 2] + q.pad[i] + q.pad[i + q.rank] - (q.kernel[i] - 1) * q.dilation[i] - 1) / q.stride[i] + 1;
        }
    }
    return q;
}

/* Volumes, much of whose windows are padding: slices and lines of windows, which several stretches of the sum divide.
 */
static images draw_deep(source *s, unsigned turn)
{
    static const uint32_t channels[] = { 8, 20, 64, 130, 17 }, outputs[] = { 16, 20, 33, 48, 64 };
    images q = { .rank = 3, .c = channels[turn % 5], .m = outputs[below(s, 5)], .group = 1 };
    q.in[0] = q.out[0] = 1 + below(s, 2);
    q.in[1] = q.c;
    q.out[1] = q.m;
    for (uint32_t i = 0; i < q.rank; i++) {
        q.kernel[i] = 3 + below(s, 2);
        q.stride[i] = 1 + below(s, 4) / 3;
        q.dilation[i] = 1 + below(s, 4) / 3;
        const uint32_t reach = (q.kernel[i] - 1) * q.dilation[i] + 1;
        q.in[i + 2] = 2 + below(s, 4);
        q.pad[i] = 1 + below(s, reach); /* a window in front of the image in the last case */
        q.pad[i + q.rank] = reach - 1 + below(s, 2);
        q.out[i + 2] = (q.in[i + 2] + q.pad[i] + q.pad[i + q.rank] - reach) / q.stride[i] + 1;
    }
    return q;
}

/* The same to a few output channels: strips of pixels in the image, at its edges and wider than it, several pieces of a
 * line; inputs that are whole vectors and not. */
static images draw_few(source *s, unsigned turn)
{
    static const uint32_t channels[] = { 8, 12, 15, 16, 17, 24, 32, 48, 64, 130 };
    images q = { .rank = 1 + (turn + 1) % 5 % 3, .c = channels[below(s, 10)], .m = 1 + turn % 12, .group = 1 };
    q.in[0] = q.out[0] = 1 + below(s, 2);
    q.in[1] = q.c;
    q.out[1] = q.m;
    for (uint32_t i = 0; i < q.rank; i++) {
        const bool last = i + 1 == q.rank;
        q.kernel[i] = 1 + below(s, last && q.rank < 3 ? 9 : 4);
        q.stride[i] = 1 + below(s, 4) / 3 * below(s, 3);
        q.dilation[i] = 1 + below(s, 4) / 3 * below(s, 3);
        draw_size(s, &q, i, last && turn % 11 == 0 ? 290 : 2); /* longer than a piece */
    }
    if (q.rank == 2 && turn % 4 == 1) { /* a vertical line */
        q.in[3] = q.out[3] = 1;
        q.kernel[1] = q.stride[1] = q.dilation[1] = 1;
        q.pad[1] = q.pad[3] = 0;
    }
    return q;
}

static void write_model(writer *w, source *s, const images *q, const char *maker, unsigned posts, bool bias)
{
    static const char *const dims[] = { "W", "H, W", "D, H, W" }, *const results[] = { "Q", "P, Q", "O, P, Q" };
    uint32_t count = q->m * (q->c / q->group);
    w->len = 0;
    add(w,
        "<ir_version: 10, opset_import: [\"\" : 24]>\n g (float[N, C, %s] x0, float[N, M, %s] x1) => "
        "(float[N, M, %s] y) <float low = {-0.5}, float high = {1.25}, float[%u, %u",
        dims[q->rank - 1], results[q->rank - 1], results[q->rank - 1], q->m, q->c / q->group);
    for (uint32_t i = 0; i < q->rank; i++) {
        add(w, ", %u", q->kernel[i]);
        count *= q->kernel[i];
    }
    add(w, "] w = {");
    for (uint32_t i = 0; i < count; i++)
        add(w, "%s%.2f", i ? ", " : "", (double)between(s, -0.2f, 0.2f));
    add(w, "}, float[%u] b = {", q->m);
    for (uint32_t i = 0; i < q->m; i++)
        add(w, "%s%.3f", i ? ", " : "", (double)between(s, -1, 1));
    add(w, "}");
    if (maker) {
        add(w, ", ");
        add_maker(w, s, maker, q->rank, q->c);
    }
    add(w, "> {\n");
    if (maker)
        add(w, " a = %s (x0, v)\n", maker);
    add(w, " %s = Conv <group = %u", posts ? "t0" : "y", q->group);
    add_list(w, "strides", q->stride, q->rank);
    add_list(w, "dilations", q->dilation, q->rank);
    add_list(w, "pads", q->pad, 2 * q->rank);
    add(w, "> (%s, w%s)\n", maker ? "a" : "x0", bias ? ", b" : "");
    add_behind(w, s, posts);
    add(w, "}\n");
}

static void test_kernel_direct__images_are_the_same(void **state)
{
    static writer w;
    source s = { 77 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        const images q = draw(&s, turn);
        onx_value *x = floats(&s, q.rank + 2, q.in), *residual = floats(&s, q.rank + 2, q.out);
        if (turn % 8 == 7) {
            static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f };
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = odd[turn / 8 % 4];
        }
        write_model(&w, &s, &q, NULL, below(&s, 4), turn % 2);
        const char *variant = compare_any(&w, "Conv", (const onx_value *const[]){ x, residual }, 300);
        assert_true(strcmp(variant, "plain") != 0);
        onx_value_free(x);
        onx_value_free(residual);
    }
}

/* Compares convolutions that `draw` draws. The input lies in planes, with channels last, or in blocks of channels. */
static void compare_drawn(uint64_t seed, unsigned turns, images draw_one(source *s, unsigned turn), bool all_are_fast)
{
    static const char *const makers[] = { NULL, "Conv", "ConvTranspose" };
    static writer w;
    source s = { seed };
    for (unsigned turn = 0; turn < turns; turn++) {
        const images q = draw_one(&s, turn);
        const char *maker = makers[turn % 3];
        int64_t in[5];
        memcpy(in, q.in, sizeof in);
        if (maker)
            in[1] = MADE_OF;
        onx_value *x = floats(&s, q.rank + 2, in), *residual = floats(&s, q.rank + 2, q.out);
        if (turn % 8 == 7) {
            static const float odd[] = { NAN, INFINITY, -INFINITY }; /* large sums would nearly cancel out */
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = odd[turn / 8 % 3];
        }
        write_model(&w, &s, &q, maker, below(&s, 4), turn % 2);
        const char *variant = compare_any(&w, "Conv", (const onx_value *const[]){ x, residual }, 600);
        if (all_are_fast)
            assert_true(strcmp(variant, "plain") != 0);
        onx_value_free(x);
        onx_value_free(residual);
    }
}

static void test_kernel_direct__small_groups_are_the_same(void **state)
{
    (void)state;
    compare_drawn(79, 252, draw_groups, false);
}

static void test_kernel_direct__sets_of_channels_are_the_same(void **state)
{
    (void)state;
    compare_drawn(80, 21, draw_sets, true);
}

static void test_kernel_direct__taps_apart_are_the_same(void **state)
{
    (void)state;
    compare_drawn(82, 48, draw_apart, true);
}

static void test_kernel_direct__images_as_they_lie_are_the_same(void **state)
{
    (void)state;
    compare_drawn(84, 90, draw, true);
}

static void test_kernel_direct__padded_volumes_are_the_same(void **state)
{
    (void)state;
    compare_drawn(83, 40, draw_deep, false);
}

static void test_kernel_direct__few_outputs_are_the_same(void **state)
{
    (void)state;
    compare_drawn(81, 180, draw_few, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_direct__images_are_the_same),
        cmocka_unit_test(test_kernel_direct__small_groups_are_the_same),
        cmocka_unit_test(test_kernel_direct__sets_of_channels_are_the_same),
        cmocka_unit_test(test_kernel_direct__taps_apart_are_the_same),
        cmocka_unit_test(test_kernel_direct__images_as_they_lie_are_the_same),
        cmocka_unit_test(test_kernel_direct__padded_volumes_are_the_same),
        cmocka_unit_test(test_kernel_direct__few_outputs_are_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* test_kernel_laid_out.c - nodes between convolutions, whose fast rows leave images in layouts of their own: Pad,
 * Slice, Split, Resize, normalizations and elementwise nodes take them as they lie. By the plain rows and by others,
 * with one thread and with two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "unit/variants.h"

enum { DIMS = 5 };

/* An image that the node gets: from a Conv that leaves channels last, or a ConvTranspose that leaves blocks. */
typedef struct image {
    uint32_t rank, c;
    int64_t dims[DIMS];
} image;

static image draw(source *s)
{
    static const uint32_t channels[] = { 16, 17, 32, 48, 40, 64 };
    image q = { .rank = 3 + below(s, 3), .c = channels[below(s, 6)] };
    q.dims[0] = 1 + below(s, 2);
    q.dims[1] = q.c;
    for (uint32_t d = 2; d < q.rank; d++)
        q.dims[d] = 2 + below(s, q.rank == 5 ? 4 : 9);
    return q;
}

static void begin_model_to(writer *w, source *s, const image *q, uint32_t rank)
{
    const char *maker = below(s, 2) ? "ConvTranspose" : "Conv";
    w->len = 0;
    add(w, "<ir_version: 10, opset_import: [\"\" : 21]>\n g (float[");
    for (uint32_t d = 0; d < q->rank; d++)
        add(w, "%s%lld", d ? ", " : "", (long long)(d == 1 ? MADE_OF : q->dims[d]));
    add(w, "] x) => (float[%.*s] y) <", 3 * (int)rank - 2, "N, M, P, Q, R");
    add_maker(w, s, maker, q->rank - 2, q->c);
    add(w, "> {\n a = %s (x, v)\n", maker);
}

static void begin_model(writer *w, source *s, const image *q)
{
    begin_model_to(w, s, q, q->rank);
}

static void add_numbers(writer *w, const char *name, const int64_t *of, uint32_t count)
{
    add(w, " %s = Constant <value = int64[%u] {", name, count);
    for (uint32_t i = 0; i < count; i++)
        add(w, "%s%lld", i ? ", " : "", (long long)of[i]);
    add(w, "}> ()\n");
}

/* Runs the model, whose last node reads b, in any layout. */
static void compare(writer *w, source *s, const image *q, const char *op)
{
    int64_t in[DIMS];
    memcpy(in, q->dims, sizeof in);
    in[1] = MADE_OF;
    onx_value *x = floats(s, q->rank, in);
    add(w, " y = Concat <axis = 0> (b, b)\n}\n");
    compare_any(w, op, (const onx_value *const[]){ x }, 100);
    onx_value_free(x);
}

static void test_kernel_laid_out__pads_are_the_same(void **state)
{
    static const char *const modes[] = { "constant", "reflect", "edge", "wrap" };
    static writer w;
    source s = { 5 };
    (void)state;
    for (unsigned turn = 0; turn < 100; turn++) {
        const image q = draw(&s);
        const bool channels = turn % 5 == 4;
        int64_t pads[2 * DIMS] = { 0 };
        for (uint32_t i = 0; i < 2 * q.rank; i++)
            if (i % q.rank > 1 || (channels && i % q.rank == 1))
                pads[i] = (int64_t)below(&s, 3) - (turn % 3 == 0) * (int64_t)below(&s, 2);
        begin_model(&w, &s, &q);
        add_numbers(&w, "p", pads, 2 * q.rank);
        add(&w, " z = Constant <value = float {0.75}> ()\n b = Pad <mode = \"%s\"> (a, p, z)\n", modes[below(&s, 4)]);
        compare(&w, &s, &q, "Pad");
    }
}

static void test_kernel_laid_out__slices_are_the_same(void **state)
{
    static writer w;
    source s = { 6 };
    (void)state;
    for (unsigned turn = 0; turn < 100; turn++) {
        const image q = draw(&s);
        int64_t start[DIMS], end[DIMS], step[DIMS];
        for (uint32_t d = 0; d < q.rank; d++) {
            const bool blocks = d == 1 && turn % 2;
            const uint32_t unit = blocks ? MADE_OF : 1, size = (uint32_t)q.dims[d] / unit, from = below(&s, size);
            const bool back = !blocks && turn % 7 == 3 && below(&s, 2);
            start[d] = back ? from + below(&s, size - from) : from * unit;
            end[d] = back ? (int64_t)from - 1 - q.dims[d] : (from + 1 + below(&s, size - from)) * unit;
            step[d] = back ? -1 : blocks ? 1 : 1 + (int64_t)below(&s, 5) / 4;
        }
        begin_model(&w, &s, &q);
        add_numbers(&w, "f", start, q.rank);
        add_numbers(&w, "t", end, q.rank);
        add_numbers(&w, "i", (const int64_t[]){ 0, 1, 2, 3, 4 }, q.rank);
        add_numbers(&w, "n", step, q.rank);
        add(&w, " b = Slice (a, f, t, i, n)\n");
        compare(&w, &s, &q, "Slice");
    }
}

/* Into up to three parts, of channels or along another axis; parts of channels are whole blocks or not. */
static void test_kernel_laid_out__parts_are_the_same(void **state)
{
    static writer w;
    source s = { 9 };
    (void)state;
    for (unsigned turn = 0; turn < 100; turn++) {
        const image q = draw(&s);
        const uint32_t axis = turn % 2 ? 1 : below(&s, q.rank), unit = axis == 1 && turn % 4 == 1 ? MADE_OF : 1;
        int64_t sizes[3], left = q.dims[axis];
        uint32_t count = 0;
        while (count < 2 && left > (int64_t)unit)
            left -= sizes[count++] = unit * (1 + below(&s, (uint32_t)(left - 1) / unit));
        sizes[count++] = left;
        begin_model(&w, &s, &q);
        add_numbers(&w, "n", sizes, count);
        add(&w, " t0%s%s = Split <axis = %u> (a, n)\n", count > 1 ? ", t1" : "", count > 2 ? ", t2" : "", axis);
        add(&w, " s = Sigmoid (t0)\n b = Concat <axis = %u> (s%s%s)\n", axis, count > 1 ? ", t1" : "",
            count > 2 ? ", t2" : "");
        compare(&w, &s, &q, "Split");
    }
}

/* Spatial axes of other sizes, images that become channels or channels images, and axes of size 1. */
static void test_kernel_laid_out__views_are_the_same(void **state)
{
    static writer w;
    source s = { 16 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        image q = draw(&s);
        q.dims[0] = 2;
        int64_t dims[DIMS] = { 2, q.c, -1 };
        uint32_t rank = 3;
        if (turn % 3 == 1) { /* pixels that are those of the image, or not */
            dims[0] = q.c % 2 || turn % 2 ? 1 : 4;
            dims[1] = 2 * q.c / dims[0];
        }
        if (turn % 3 == 2) {
            dims[2] = turn % 2 ? 1 : q.dims[2];
            dims[rank++] = -1;
        }
        begin_model_to(&w, &s, &q, rank);
        add_numbers(&w, "n", dims, rank);
        add_numbers(&w, "i", (const int64_t[]){ 2, 3 }, 1 + turn % 2);
        add(&w, turn % 5 ? " t = Reshape (a, n)" : " r = Unsqueeze (a, i) u = Tanh (r) t = Reshape (u, n)");
        add(&w, " b = Sigmoid (t)\n");
        compare(&w, &s, &q, "Sigmoid");
    }
}

/* Squares of two to four pixels; channels that are whole blocks in both images, in one, or in none. */
static void test_kernel_laid_out__squares_are_the_same(void **state)
{
    static const char *const nodes[] = { "DepthToSpace", "DepthToSpace <mode = \"CRD\",", "SpaceToDepth" };
    static const uint32_t channels[] = { 1, 2, 3, 4, 5, 8, 12, 16, 24, 32 };
    static writer w;
    source s = { 15 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        const uint32_t side = 2 + below(&s, 3), d = channels[below(&s, sizeof channels / sizeof *channels)];
        const char *node = nodes[turn % 3];
        const bool to_depth = turn % 3 == 2;
        image q = { .rank = 4, .c = to_depth ? 4 * d : d * side * side };
        q.dims[0] = 1 + below(&s, 2);
        q.dims[1] = q.c;
        for (uint32_t i = 2; i < 4; i++)
            q.dims[i] = (1 + below(&s, i == 3 ? 20 : 4)) * (to_depth ? side : 1);
        begin_model(&w, &s, &q);
        add(&w, " b = %s%s blocksize = %u> (a)\n", node, turn % 3 == 1 ? "" : " <", side);
        compare(&w, &s, &q, "DepthToSpace");
    }
}

/* Of up to three axes, larger and smaller, in all ways to read pixels. */
static void test_kernel_laid_out__resized_images_are_the_same(void **state)
{
    static const char *const modes[] = { "nearest", "linear", "cubic" };
    static const char *const places[] = { "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                                          "tf_crop_and_resize" };
    static writer w;
    source s = { 10 };
    (void)state;
    for (unsigned turn = 0; turn < 150; turn++) {
        const image q = draw(&s);
        const char *mode = modes[below(&s, 3)];
        const bool cubic = mode == modes[2], smooth = mode != modes[0] && turn % 4 == 3;
        int64_t sizes[DIMS];
        memcpy(sizes, q.dims, sizeof sizes);
        for (uint32_t d = 2; d < q.rank && (!cubic || d < 4); d++)
            sizes[d] = turn % 3 ? 1 + below(&s, 20) : q.dims[d] * (1 + below(&s, 3));
        begin_model(&w, &s, &q);
        add_numbers(&w, "n", sizes, q.rank);
        add(&w, " r = Constant <value = float[%u] {", 2 * q.rank);
        for (uint32_t d = 0; d < 2 * q.rank; d++)
            add(&w, "%s%g", d ? ", " : "", d % q.rank < 2 ? d >= q.rank : d < q.rank ? -0.1 : 0.9);
        add(&w, "}> ()\n e = Constant <value = float[0] {}> ()\n");
        add(&w, " b = Resize <mode = \"%s\", antialias = %d, coordinate_transformation_mode = \"%s\"> (a, r, e, n)\n",
            mode, smooth, places[below(&s, 5)]);
        compare(&w, &s, &q, "Resize");
    }
}

/* One axis grows as far as another one shrinks: no intermediate result has both sizes, which would take 100 GB. */
static void test_kernel_laid_out__resizing_both_ways_takes_little(void **state)
{
    static writer w;
    source s = { 15 };
    const image q = { .rank = 5, .c = MADE_OF, .dims = { 1, MADE_OF, 1, 1, 40000 } };
    (void)state;
    for (unsigned turn = 0; turn < 4; turn++) {
        begin_model(&w, &s, &q);
        add_numbers(&w, "n", (const int64_t[]){ 1, MADE_OF, 1 + turn % 2, 40000, 1 }, 5);
        add(&w, " b = Resize <mode = \"linear\"> (a, \"\", \"\", n)\n");
        compare(&w, &s, &q, "Resize");
    }
}

/* Adds a channel shuffle of a, which a rule finds; the names of the shapes are `apart` and `back`. */
static void add_shuffle(writer *w, const int64_t *dims, uint32_t rank, int64_t groups)
{
    int64_t shape[DIMS + 1] = { dims[0], groups, dims[1] / groups };
    for (uint32_t d = 2; d < rank && d < DIMS; d++)
        shape[d + 1] = dims[d];
    add_numbers(w, "apart", shape, rank + 1);
    add_numbers(w, "back", dims, rank);
    add(w, " split = Reshape (a, apart) turned = Transpose <perm = [0, 2, 1");
    for (uint32_t d = 3; d <= rank; d++)
        add(w, ", %u", d);
    add(w, "]> (split) b = Reshape (turned, back)\n");
}

static void test_kernel_laid_out__shuffles_are_the_same(void **state)
{
    static writer w;
    source s = { 11 };
    (void)state;
    for (unsigned turn = 0; turn < 40; turn++) {
        const image q = draw(&s);
        int64_t groups = 1 + below(&s, q.c);
        while (q.c % groups)
            groups--;
        begin_model(&w, &s, &q);
        add_shuffle(&w, q.dims, q.rank, groups);
        compare(&w, &s, &q, "ChannelShuffle");
    }
}

/* Of images some of whose axes have one element. */
static void test_kernel_laid_out__expansions_are_the_same(void **state)
{
    static writer w;
    source s = { 14 };
    (void)state;
    for (unsigned turn = 0; turn < 80; turn++) {
        image q = draw(&s);
        int64_t to[DIMS] = { 0 };
        for (uint32_t d = 0; d < q.rank; d++) {
            if (d != 1 && below(&s, 2))
                q.dims[d] = 1;
            to[d] = q.dims[d] > 1 ? below(&s, 2) ? 1 : q.dims[d] : 1 + below(&s, 5);
        }
        begin_model(&w, &s, &q);
        add_numbers(&w, "t", to, q.rank);
        add(&w, " b = Expand (a, t)\n");
        compare(&w, &s, &q, "Expand");
    }
}

static void test_kernel_laid_out__transposes_are_the_same(void **state)
{
    static writer w;
    source s = { 16 };
    (void)state;
    for (unsigned turn = 0; turn < 80; turn++) {
        const image q = draw(&s);
        uint32_t perm[DIMS] = { 0, 1, 2, 3, 4 };
        for (uint32_t d = q.rank - 1; d > 0; d--) {
            const uint32_t other = below(&s, d + 1), axis = perm[d];
            perm[d] = perm[other];
            perm[other] = axis;
        }
        begin_model(&w, &s, &q);
        add(&w, " b = Transpose <perm = [");
        for (uint32_t d = 0; d < q.rank; d++)
            add(&w, "%s%u", d ? ", " : "", perm[d]);
        add(&w, "]> (a)\n");
        compare(&w, &s, &q, "Transpose");
    }
}

/* Elementwise nodes of a: of which zero is no zero, with single elements, and of other types. */
#define HALF " half = Constant <value = float {0.5}> () "
static const char *const elementwise[] = { "b = Sigmoid (a)",
                                           "b = Exp (a)",
                                           "t = Cos (a) b = Div (a, t)",
                                           "t = Exp (a) u = Sigmoid (a) b = Mul (t, u)",
                                           "b = Softplus (a)",
                                           "t = Abs (a) u = Exp (t) b = Log (u)",
                                           HALF "t = Abs (a) b = Pow (t, half)",
                                           HALF "t = Less (a, half) b = Cast <to = 1> (t)",
                                           HALF "t = Greater (half, a) u = Not (t) b = Where (u, a, half)",
                                           HALF
                                           "t = Greater (half, a) u = Less (a, a) r = Xor (t, u) b = Cast <to = 1> (r)",
                                           HALF "b = Min (half, a)",
                                           HALF "b = Mean (a, half, a)",
                                           HALF "b = Sub (half, a)",
                                           HALF "b = Mod <fmod = 1> (a, half)",
                                           HALF "b = Clip (a, , half)",
                                           HALF "t = Cast <to = 6> (a) u = Cast <to = 1> (t) b = Mul (u, half)",
                                           "t = IsNaN (a) b = Cast <to = 1> (t)" };
enum { ELEMENTWISE = sizeof elementwise / sizeof *elementwise };

static void test_kernel_laid_out__elements_are_the_same(void **state)
{
    static writer w;
    source s = { 7 };
    (void)state;
    for (unsigned turn = 0; turn < 8 * ELEMENTWISE; turn++) {
        const image q = draw(&s);
        begin_model(&w, &s, &q);
        add(&w, " %s\n", elementwise[turn % ELEMENTWISE]);
        compare(&w, &s, &q, "Concat");
    }
}

/* An image of channels around the widths of vectors and blocks, of more pixels than one sum in float has. */
static image draw_channels(source *s)
{
    static const uint32_t channels[] = { 8, 12, 16, 17, 24, 32, 40, 48, 64, 72, 80, 136 };
    image q = draw(s);
    q.c = channels[below(s, sizeof channels / sizeof *channels)];
    q.dims[1] = q.c;
    for (uint32_t d = 2; d < q.rank; d++)
        q.dims[d] = 1 + below(s, q.rank == 3 ? 700 : q.rank == 4 ? 24 : 9);
    return q;
}

static uint32_t divisor(source *s, uint32_t n)
{
    uint32_t d;
    do
        d = 1 + below(s, n);
    while (n % d);
    return d;
}

static void add_filled(writer *w, source *s, const char *name, const char *dims, uint32_t count)
{
    add(w, " %s = Constant <value = float[%s] {", name, dims);
    for (uint32_t i = 0; i < count; i++)
        add(w, "%s%.3f", i ? ", " : "", (double)between(s, -2, 2));
    add(w, "}> ()\n");
}

/* A constant with a number per channel. */
static void add_channels(writer *w, source *s, const char *name, uint32_t c)
{
    char dims[16];
    snprintf(dims, sizeof dims, "%u", c);
    add_filled(w, s, name, dims, c);
}

/* Adds a normalization of t, and functions of its result that a row may apply itself. */
static void add_norm(writer *w, source *s, uint32_t c)
{
    static const char *const behind[] = { "b = Neg (n)", "b = Relu (n)", "u = Sigmoid (n) b = Mul (n, u)",
                                          "u = LeakyRelu <alpha = 0.1> (n) b = Relu (u)",
                                          "u = Abs (n) b = Add (u, n)" };
    add_channels(w, s, "e", c);
    add_channels(w, s, "f", c);
    if (below(s, 3))
        add(w, " n = GroupNormalization <num_groups = %u> (t, e, f)\n", divisor(s, c));
    else
        add(w, " n = InstanceNormalization <epsilon = %.1e> (t, e, f)\n", below(s, 2) ? 1e-5 : 1e-30);
    add(w, " %s\n", behind[below(s, sizeof behind / sizeof *behind)]);
}

/* Means that are not zero, channels that are constant, and numbers whose squares leave the range of float or that are
 * not finite, too: what the factors m and the summands k of the channels make of the image. */
static void test_kernel_laid_out__normalizations_are_the_same(void **state)
{
    static writer w;
    source s = { 9 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        const image q = draw_channels(&s);
        const bool far = turn % 4 == 3;
        begin_model(&w, &s, &q);
        for (int k = 0; k < 2; k++) {
            add(&w, " %s = Constant <value = float[%u%s] {", k ? "k" : "m", q.c, &", 1, 1, 1"[3 * (5 - q.rank)]);
            for (uint32_t i = 0; i < q.c; i++) {
                const uint32_t any = far ? below(&s, 40) : 10;
                add(&w, "%s%g", i ? ", " : "",
                    k          ? (double)between(&s, -8, 8)
                    : any == 0 ? 0
                    : any == 1 ? 1e30
                    : any == 2 ? 1e-30
                               : 1.0);
            }
            add(&w, "}> ()\n");
        }
        add(&w, " o = Mul (a, m) r = Mul (o, %s) t = Add (r, k)\n", turn % 8 == 7 ? "m" : "k");
        add_norm(&w, &s, q.c);
        compare(&w, &s, &q, "Neg");
    }
}

/* Of each pixel over its channels, as LayerNorm2d is exported; of one pixel, of some NaN, and of a mean that is not
 * zero, too. */
static void test_kernel_laid_out__pixels_are_normalized_alike(void **state)
{
    static const char *const before[] = { "t = Identity (a)", "h = Mul (a, three) o = Add (h, three) t = Sqrt (o)",
                                          "t = Add (a, half)" };
    static const char *const behind[] = { "b = Div (d, r)", "n = Div (d, r) b = Mul (n, e)",
                                          "n = Div (d, r) k = Mul (n, e) b = Add (k, f)",
                                          "n = Div (d, r) k = Mul (n, e) u = Add (k, f) b = Relu (u)" };
    static writer w;
    source s = { 14 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        image q = draw_channels(&s);
        char dims[32];
        for (uint32_t d = 2; d < q.rank && turn % 9 == 4; d++)
            q.dims[d] = 1;
        snprintf(dims, sizeof dims, "%u%s", q.c, &", 1, 1, 1"[3 * (5 - q.rank)]);
        begin_model(&w, &s, &q);
        add_filled(&w, &s, "e", dims, q.c);
        add_filled(&w, &s, "f", dims, q.c);
        add(&w,
            " one = Constant <value = int64[1] {1}> () three = Constant <value = float {3}> () half = Constant <value = float {0.5}> ()"
            " two = Constant <value = float {2}> () small = Constant <value = float {1e-5}> ()\n");
        add(&w, " %s m = ReduceMean (t, one) d = Sub (t, m) %s vs = ReduceMean (p, one)\n", before[turn % 4 % 3],
            turn % 2 ? "p = Mul (d, d)" : "p = Pow (d, two)");
        add(&w, " vse = Add (vs, small) r = Sqrt (vse) %s\n", behind[below(&s, 4)]);
        compare(&w, &s, &q, "ChannelNorm");
    }
}

static void test_kernel_laid_out__lrn_is_the_same(void **state)
{
    static writer w;
    source s = { 10 };
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        const image q = draw_channels(&s);
        const uint32_t size = turn % 10 == 9 ? 1u << 31 : 1 + below(&s, turn % 3 ? 8 : 2 * q.c + 2);
        begin_model(&w, &s, &q);
        add(&w, " b = LRN <size = %u, alpha = %f, beta = %f, bias = %f> (a)\n", size, (double)between(&s, 0, 2),
            turn % 2 ? 0.75 : (double)between(&s, 0, 2), 1.0 + below(&s, 3));
        compare(&w, &s, &q, "LRN");
    }
}

/* Over any axes, so that the result has channels next to each other, or none, or fewer axes. */
static void test_kernel_laid_out__reductions_are_the_same(void **state)
{
    static const char *const ops[] = { "ReduceMean", "ReduceMax", "ReduceSum",  "ReduceMin",       "ReduceL1",
                                       "ReduceL2",   "ReduceMax", "ReduceProd", "ReduceLogSumExp", "ReduceSumSquare" };
    static writer w;
    source s = { 13 };
    (void)state;
    for (unsigned turn = 0; turn < 200; turn++) {
        const image q = draw_channels(&s);
        const char *op = ops[turn % (sizeof ops / sizeof *ops)];
        const bool keep = below(&s, 2);
        int64_t axes[DIMS];
        uint32_t count = 0;
        for (uint32_t d = 0; d < q.rank; d++)
            if (below(&s, 3) == 0 && count + 1 < q.rank)
                axes[count++] = d;
        if (!count)
            axes[count++] = q.rank - 1;
        begin_model_to(&w, &s, &q, keep ? q.rank : q.rank - count);
        add_numbers(&w, "s", axes, count);
        add(&w, " m = Constant <value = float[%u%s] {", q.c, &", 1, 1, 1"[3 * (5 - q.rank)]);
        for (uint32_t i = 0; i < q.c; i++)
            add(&w, "%s%s", i ? ", " : "", turn % 7 == 6 && below(&s, 10) == 0 ? "1e30" : "1.0");
        add(&w, "}> ()\n o = Mul (a, m) l = Mul (o, m)\n"); /* some channels are infinite */
        add(&w, " b = %s <keepdims = %u> (l, s)\n", op, keep ? 1u : 0u);
        compare(&w, &s, &q, op);
    }
}

/* Few pixels, so that no two channels are as large as each other but for rounding. */
static void test_kernel_laid_out__indices_are_the_same(void **state)
{
    static writer w;
    source s = { 15 };
    (void)state;
    for (unsigned turn = 0; turn < 30; turn++) {
        const image q = draw(&s);
        const bool keep = below(&s, 2);
        begin_model_to(&w, &s, &q, keep ? q.rank : q.rank - 1);
        add(&w, " m = Arg%s <axis = %u, keepdims = %u> (a)\n b = Cast <to = 1> (m)\n", below(&s, 2) ? "Max" : "Min",
            turn % 3 ? 1 : below(&s, q.rank), keep ? 1u : 0u);
        compare(&w, &s, &q, "Cast");
    }
}

static void count_reorders(void *user, const onx_run_event *event)
{
    *(unsigned *)user += onx_str_is(event->op_type, "Reorder");
}

/* Runs a model and counts the changes of layout: none but those of the graph's input and output. */
static void expect_no_changes(const writer *w, const char *what, uint32_t rank, const int64_t *dims)
{
    onx_doc *doc = NULL;
    onx_session *session = NULL;
    unsigned reorders = 0;
    const onx_run_options watch = { .event = count_reorders, .user = &reorders };
    source s = { 11 };
    onx_value *x = floats(&s, rank, dims), *y = NULL;
    const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w->text, w->len), 0, &doc);
    say_all();
    assert_int_equal(status, ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .threads = 1 }, &session), ONX_OK);
    assert_int_equal(onx_session_run_with(session, cx, (const onx_value *const[]){ x }, &y, &watch), ONX_OK);
    if (reorders != 2)
        fail_msg("%s: the layout changes %u times", what, reorders);
    onx_session_free(session);
    onx_value_free(x);
    onx_value_free(y);
    onx_doc_free(doc);
}

/* After a convolution no image goes through row-major values on its way to another one. */
static void test_kernel_laid_out__layouts_stay(void **state)
{
    static const char *const others[] = {
        "b = Pad <mode = \"reflect\"> (a, p)",
        "b = Slice (a, f, e, i)",
        "b = Resize <mode = \"linear\"> (a, e0, q)",
        "b = Resize (a, e0, q)",
        "t, u = Split <axis = 1> (a, o) v = Sigmoid (t) b = Concat <axis = 1> (v, u)",
        "t, u = Split <axis = 1> (a, g) v = Sigmoid (t) b = Concat <axis = 1> (v, u)",
        "t, u = Split <axis = 3, num_outputs = 2> (a) b = Concat <axis = 2> (t, u)",
        "c3 = Reshape (a, m) d3 = Transpose <perm = [0, 2, 1, 3, 4]> (c3) b = Reshape (d3, l)",
        "b = InstanceNormalization (a, h, h)",
        "b = GroupNormalization <num_groups = 8> (a, h, h)",
        "b = LRN <size = 5> (a)",
        "t = Reshape (a, j) u = Tanh (t) b = Reshape (u, l)",
        "t = Unsqueeze (a, i) u = Tanh (t) b = Squeeze (u, i)",
        "t = DepthToSpace <blocksize = 2, mode = \"CRD\"> (a) b = SpaceToDepth <blocksize = 2> (t)",
        "b = ReduceMax (a, i)",
        "t = ReduceMax (a, i) b = Expand (t, k)"
    };
    static writer w;
    source s = { 8 };
    (void)state;
    if (onxi_isa_best() < (unsigned)ONX_ISA_V4)
        skip();
    for (size_t n = 0; n < ELEMENTWISE + sizeof others / sizeof *others; n++) {
        const char *node = n < ELEMENTWISE ? elementwise[n] : others[n - ELEMENTWISE];
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 21]>\n g (float[1, 32, 20, 20] x) => (float[N, M, P, Q] y) <");
        add_windows(&w, &s, "w", 32, 32, 1);
        add(&w, "> {\n c = Conv (x, w)\n a = Relu (c)\n");
        add_numbers(&w, "p", (const int64_t[]){ 0, 0, 1, 1, 0, 0, 1, 1 }, 8);
        add_numbers(&w, "f", (const int64_t[]){ 1 }, 1);
        add_numbers(&w, "e", (const int64_t[]){ 5 }, 1);
        add_numbers(&w, "i", (const int64_t[]){ 2 }, 1);
        add_numbers(&w, "o", (const int64_t[]){ 5, 27 }, 2);
        add_numbers(&w, "m", (const int64_t[]){ 1, 2, 16, 20, 20 }, 5);
        add_numbers(&w, "l", (const int64_t[]){ 1, 32, 20, 20 }, 4);
        add_numbers(&w, "j", (const int64_t[]){ 1, 32, 400 }, 3);
        add_numbers(&w, "k", (const int64_t[]){ 1, 1, 20, 1 }, 4);
        add_channels(&w, &s, "h", 32);
        add_numbers(&w, "g", (const int64_t[]){ 16, 16 }, 2);
        add(&w,
            " e0 = Constant <value = float[0] {}> () q = Constant <value = float[4] {1, 1, 2, 1.5}> ()\n %s\n y = Conv (b, w)\n}\n",
            node);
        expect_no_changes(&w, node, 4, (const int64_t[]){ 1, 32, 20, 20 });
    }
}

/* Nor does a signal, whose depthwise convolutions have a row for planes as well. */
static void test_kernel_laid_out__layouts_of_signals_stay(void **state)
{
    static const char *const nodes[] = { "b = Conv <group = 48, pads = [4, 4], dilations = [4]> (a, d)",
                                         "b = InstanceNormalization (a, h, h)" };
    static writer w;
    source s = { 12 };
    (void)state;
    if (onxi_isa_best() < (unsigned)ONX_ISA_V4)
        skip();
    for (size_t n = 0; n < sizeof nodes / sizeof *nodes; n++) {
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 21]>\n g (float[1, 48, 500] x) => (float[N, M, P] y) {\n");
        add_filled(&w, &s, "w", "48, 48, 1", 48 * 48);
        add_filled(&w, &s, "d", "48, 1, 3", 48 * 3);
        add_channels(&w, &s, "h", 48);
        add(&w, " c = Conv (x, w) a = Relu (c)\n %s\n y = Conv (b, w)\n}\n", nodes[n]);
        expect_no_changes(&w, nodes[n], 3, (const int64_t[]){ 1, 48, 500 });
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_laid_out__pads_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__slices_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__parts_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__views_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__squares_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__resized_images_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__resizing_both_ways_takes_little),
        cmocka_unit_test(test_kernel_laid_out__shuffles_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__expansions_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__transposes_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__elements_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__normalizations_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__pixels_are_normalized_alike),
        cmocka_unit_test(test_kernel_laid_out__lrn_is_the_same),
        cmocka_unit_test(test_kernel_laid_out__reductions_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__indices_are_the_same),
        cmocka_unit_test(test_kernel_laid_out__layouts_stay),
        cmocka_unit_test(test_kernel_laid_out__layouts_of_signals_stay),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

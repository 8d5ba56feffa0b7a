/* test_kernel_train.c - nodes around convolutions in training, in the layouts that these choose: by the plain rows and
 * by others, with one thread and with two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

/* Gradients of weights as a graph has them: a convolution of images over images, with batch and channels exchanged
 * before and after, of values in whatever layout and row-major ones. */
static void test_kernel_train__gradients_of_weights_are_the_same(void **state)
{
    static const uint32_t channels[] = { 3, 8, 16, 24, 32 };
    static const char *const between_[] = { "Relu", "Identity", "MaxPool <kernel_shape = [1, 1]>" };
    static writer w;
    source s = { 44 };
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        const uint32_t c = channels[below(&s, 5)], m = channels[below(&s, 5)], size = 1 + 2 * below(&s, 2);
        const uint32_t n = 1 + below(&s, 5), h = 7 + below(&s, 12), wide = 7 + below(&s, 12), pad = size / 2;
        onx_value *x = floats(&s, 4, (int64_t[]){ n, c, h, wide }), *g = floats(&s, 4, (int64_t[]){ n, m, h, wide });
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 24]> g (float[N, C, H, W] x, float[N, M, H, W] g) =>"
                " (float[M, C, P, Q] y, float[N, A, E, F] z) <");
        add_windows(&w, &s, "u", c, c, 1);
        add(&w, ", ");
        add_windows(&w, &s, "v", m, m, 1);
        add(&w, "> {\n a = %s\n b = %s (a)\n d = %s\n", turn % 4 ? "Conv (x, u)" : "Exp (x)", between_[below(&s, 3)],
            turn % 5 ? "Conv (g, v)" : "Neg (g)");
        add(&w, " s = Transpose <perm = [1, 0, 2, 3]> (b)\n t = Transpose <perm = [1, 0, 2, 3]> (d)\n");
        add(&w, " e = Conv <pads = [%u, %u, %u, %u]> (s, t)\n y = Transpose <perm = [1, 0, 2, 3]> (e)\n", pad, pad, pad,
            pad);
        add(&w, " f = Transpose <perm = [1, 0, 2, 3]> (s)\n z = Add (f, b)\n}\n");
        compare_any(&w, "Conv", (const onx_value *const[]){ x, g }, 600);
        onx_value_free(x);
        onx_value_free(g);
    }
}

/* What training has between convolutions: mean and variance of the batch, sums over all but channels, choices between
 * images, of images in whatever layout; with numbers that are far from zero, or not finite, in some channels. */
static void test_kernel_train__training_is_the_same(void **state)
{
    static const uint32_t channels[] = { 3, 8, 16, 20, 24, 48, 80, 144 };
    static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f, 1e30f };
    static writer w;
    source s = { 45 };
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        const uint32_t c = channels[below(&s, 8)], n = 1 + below(&s, 3), since = turn % 5 ? 18 : 9, kept = below(&s, 2);
        /* the greater of two: rounding changes what is chosen, but not what comes of it */
        const char *chosen = turn % 3 == 0 ? "a, zero" : turn % 3 == 1 ? "a, x" : "x, a";
        const int64_t dims[] = { n, c, 1 + below(&s, 30), 2 + below(&s, 30) };
        onx_value *x = floats(&s, 4, dims), *o = floats(&s, 4, dims);
        for (uint64_t i = 0; turn % 4 == 1 && i < o->count; i++)
            ((float *)o->data)[i] += 300;
        if (turn % 6 == 5)
            ((float *)o->data)[below(&s, (uint32_t)o->count)] = odd[below(&s, 5)];
        w.len = 0;
        add(&w,
            "<ir_version: 8, opset_import: [\"\" : %u]> g (float[N, C, H, W] x, float[N, C, H, W] o) =>"
            " (float[N, C, H, W] y, float[E] v, float[A, B, P, Q] r, float[N, C, H, W] z) <",
            since);
        add_windows(&w, &s, "u", c, c, 1);
        for (int i = 0; i < 4; i++) {
            add(&w, ", float[%u] n%d = {", c, i);
            for (uint32_t k = 0; k < c; k++)
                add(&w, "%s%.2f", k ? ", " : "", (double)between(&s, 0.5f, 1));
            add(&w, "}");
        }
        add(&w, ", float zero = {0}, int64[3] axes = {0, 2, 3}> {\n a = Conv (x, u)\n b = Add (a, o)\n");
        if (since == 9)
            add(&w, " y, v, e2, e3, e4 = BatchNormalization <momentum = 0.8> (b, n0, n1, n2, n3)\n"
                    " r0 = ReduceMean <axes = [0, 2, 3]> (a)\n r = Neg (r0)\n z = Conv (y, u)\n}\n");
        else
            add(&w,
                " y, m, v = BatchNormalization <training_mode = 1> (b, n0, n1, n2, n3)\n"
                " r1 = ReduceSum (y, axes)\n r2 = ReduceMean (a, axes)\n r3 = ReduceSumSquare <keepdims = %u> (y, axes)\n"
                " %s r5 = Add (r1, r2)\n r = Add (r5, %s)\n"
                " t = Greater (%s)\n d = Where (t, %s)\n f = Sub (a, d)\n z = Conv (f, u)\n}\n",
                kept, kept ? "" : "r4 = Unsqueeze (r3, axes)\n ", kept ? "r3" : "r4", chosen, chosen);
        compare_any(&w, "BatchNormalization", (const onx_value *const[]){ x, o }, 3000);
        onx_value_free(x);
        onx_value_free(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_train__gradients_of_weights_are_the_same),
        cmocka_unit_test(test_kernel_train__training_is_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* test_run_open_shapes.c - nodes whose shapes are known only during a run: rows that need layouts of their own can run
 * them, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "value/value.h"

#include "unit/variants.h"

static void add_weights(writer *w, source *s, const char *name, uint32_t count)
{
    add(w, "%s = {", name);
    for (uint32_t i = 0; i < count; i++)
        add(w, "%s%.3f", i ? ", " : "", (double)between(s, -0.1f, 0.1f));
    add(w, "}");
}

/* y = `op` of the first rows of x, as many as an input says. Returns the variant that ran it. */
static const char *run_open(source *s, const char *op, const int64_t dims[4], int64_t rows, uint32_t made,
                            uint32_t size, uint32_t group, const char *how)
{
    static writer w;
    const bool transposed = strcmp(op, "ConvTranspose") == 0;
    const uint32_t channels = (uint32_t)dims[1], across = transposed ? made / group : channels / group;
    const uint32_t along = transposed ? channels : made;
    const int64_t one[] = { 1 };
    onx_value *x = floats(s, 4, dims), *n = tensor(ONX_INT64, 1, one);
    memcpy(n->data, &rows, sizeof rows);
    w.len = 0;
    add(&w,
        "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[A, %u, H, W] x, int64[1] n) => (float[B, C, D, E] y) "
        "<float[%u, %u, %u, %u] ",
        channels, along, across, size, size);
    add_weights(&w, s, "w", along * across * size * size);
    add(&w, ", float[%u] ", made);
    add_weights(&w, s, "b", made);
    add(&w,
        "> {\n z = Constant <value_ints = [0]> ()\n a = Constant <value_ints = [2]> ()\n part = Slice (x, z, n, a)\n"
        " y = %s <group = %u%s> (part, w, b)\n}\n",
        op, group, how);
    const char *variant = compare_any(&w, op, (const onx_value *const[]){ x, n }, 200);
    onx_value_free(x);
    onx_value_free(n);
    return variant;
}

static void test_run_open_shapes__convolutions(void **state)
{
    static const struct {
        const char *op, *how;
        int64_t dims[4], rows;
        uint32_t made, size, group;
        bool fast; /* where images are large enough for changes of layout */
    } cases[] = {
        { "Conv", ", pads = [1, 1, 1, 1]", { 2, 32, 30, 21 }, 23, 32, 3, 1, true },
        { "Conv", ", pads = [1, 1, 1, 1]", { 1, 32, 30, 21 }, 3, 32, 3, 1, false },
        { "Conv", ", strides = [2, 2]", { 1, 32, 40, 29 }, 39, 48, 3, 1, true },
        { "Conv", "", { 3, 64, 24, 17 }, 20, 32, 1, 1, true },
        { "Conv", "", { 1, 20, 64, 33 }, 64, 5, 1, 1, false }, /* channels that are no blocks: any row */
        { "Conv", ", pads = [1, 1, 1, 1]", { 1, 32, 40, 30 }, 40, 32, 3, 32, true },
        { "ConvTranspose", ", strides = [2, 2]", { 1, 32, 30, 21 }, 28, 32, 2, 1, true },
    };
    source s = { 21 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *variant = run_open(&s, cases[i].op, cases[i].dims, cases[i].rows, cases[i].made, cases[i].size,
                                       cases[i].group, cases[i].how);
        if (cases[i].fast)
            assert_string_not_equal(variant, "plain");
    }
}

/* Images that are not finite, and weights that are not, give what the plain row gives. */
static void test_run_open_shapes__infinities(void **state)
{
    static writer w;
    source s = { 22 };
    (void)state;
    const int64_t dims[] = { 1, 32, 30, 30 }, one[] = { 1 }, rows = 29, weights[] = { 32, 32, 3, 3 };
    for (int turn = 0; turn < 2; turn++) {
        onx_value *x = floats(&s, 4, dims), *n = tensor(ONX_INT64, 1, one), *k = floats(&s, 4, weights);
        memcpy(n->data, &rows, sizeof rows);
        ((float *)x->data)[1000] = turn ? 1.0f : INFINITY;
        ((float *)x->data)[2000] = turn ? 1.0f : NAN;
        ((float *)k->data)[70] = turn ? INFINITY : 1.0f;
        w.len = 0;
        add(&w, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                "g (float[A, 32, H, W] x, int64[1] n, float[32, 32, 3, 3] k) => (float[B, C, D, E] y) {\n"
                " z = Constant <value_ints = [0]> ()\n a = Constant <value_ints = [2]> ()\n"
                " part = Slice (x, z, n, a)\n y = Conv <pads = [1, 1, 1, 1]> (part, k)\n}\n");
        compare_any(&w, "Conv", (const onx_value *const[]){ x, n, k }, 200);
        onx_value_free(x);
        onx_value_free(n);
        onx_value_free(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_open_shapes__convolutions),
        cmocka_unit_test(test_run_open_shapes__infinities),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

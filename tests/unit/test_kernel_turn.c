/* test_kernel_turn.c - Transpose in every order, and Reshape, directly before and after convolutions, whose fast rows
 * leave images in layouts of their own: orders that leave elements where they are in such a layout are views. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/text.h>

#include <stdio.h>
#include <string.h>

#include "context.h"

enum { MOST = 5, TEXT = 2000 };

typedef struct image {
    uint32_t rank;
    int64_t dims[MOST];
} image;

/* What convolutions read. One of the sizes may be 1, so that orders differ that move the same elements. */
static const image images[] = {
    { 3, { 2, 16, 5 } },       { 3, { 1, 32, 1 } },       { 4, { 2, 16, 3, 4 } }, { 4, { 1, 32, 5, 1 } },
    { 4, { 2, 17, 1, 3 } },    { 4, { 1, 1, 3, 4 } },     { 4, { 3, 48, 1, 1 } }, { 5, { 2, 16, 1, 3, 2 } },
    { 5, { 1, 16, 3, 1, 2 } }, { 5, { 2, 16, 2, 3, 1 } },
};

static const char *list_of(const image *shape, char *text)
{
    size_t at = 0;
    for (uint32_t i = 0; i < shape->rank; i++)
        at += (size_t)snprintf(text + at, 20, "%s%lld", i ? ", " : "", (long long)shape->dims[i]);
    return text;
}

static onx_value *input_of(const image *shape)
{
    onx_value *v;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, shape->rank, shape->dims, &v), ONX_OK);
    for (uint64_t i = 0; i < v->count; i++)
        ((float *)v->data)[i] = (float)(i * 7 % 31) / 8 - 1.5F;
    return v;
}

static onx_value *run(const char *text, const image *x, const image *w, bool plain)
{
    const onx_session_options options = { .plain = plain, .no_optimize = plain };
    onx_value *in[] = { input_of(x), input_of(w) }, *y = NULL;
    onx_session *session;
    onx_doc *doc;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, &options, &session), ONX_OK);
    assert_int_equal(onx_session_run(session, cx, (const onx_value *const *)in, &y), ONX_OK);
    onx_session_free(session);
    onx_value_free(in[0]);
    onx_value_free(in[1]);
    onx_doc_free(doc);
    return y;
}

static void same_results(const char *nodes, const image *x, const image *w)
{
    char text[TEXT], x_dims[100], w_dims[100];
    onx_value_difference d;
    snprintf(text, sizeof text,
             "<ir_version: 10, opset_import: [\"\": 21]>\ng (float[%s] x, float[%s] w) => (y) { %s }",
             list_of(x, x_dims), list_of(w, w_dims), nodes);
    onx_value *got = run(text, x, w, false), *want = run(text, x, w, true);
    if (!onx_value_close(want, got, 1e-5, 1e-5, &d))
        fail_msg("%s: %s %s", text, d.what, d.text);
    onx_value_free(got);
    onx_value_free(want);
}

/* The next order of axes in lexicographic order; false: this was the last one. */
static bool next_order(int64_t *perm, uint32_t rank)
{
    uint32_t i = rank - 1, j = rank - 1;
    while (i && perm[i - 1] >= perm[i])
        i--;
    if (!i)
        return false;
    while (perm[j] <= perm[i - 1])
        j--;
    const int64_t t = perm[i - 1];
    perm[i - 1] = perm[j];
    perm[j] = t;
    for (uint32_t a = i, b = rank - 1; a < b; a++, b--) {
        const int64_t u = perm[a];
        perm[a] = perm[b];
        perm[b] = u;
    }
    return true;
}

static image weights_of(const image *shape, int64_t channels, int64_t outputs)
{
    image w = { shape->rank, { outputs, channels, 1, 1, 1 } };
    return w;
}

/* Behind a convolution; the second time with another reader of what the convolution gives. */
static void test_kernel_turn__after_convolutions(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof images / sizeof *images; s++) {
        const image *x = &images[s], w = weights_of(x, x->dims[1], x->dims[1]);
        image perm = { x->rank, { 0, 1, 2, 3, 4 } };
        do {
            char list[100], nodes[TEXT];
            list_of(&perm, list);
            snprintf(nodes, sizeof nodes, "c = Conv(x, w) t = Transpose<perm = [%s]>(c) y = Exp(t)", list);
            same_results(nodes, x, &w);
            snprintf(nodes, sizeof nodes,
                     "c = Conv(x, w) t = Transpose<perm = [%s]>(c) e = Exp(t) s = ReduceMean(c) y = Add(e, s)", list);
            same_results(nodes, x, &w);
        } while (next_order(perm.dims, x->rank));
    }
}

/* Before a convolution, from an input and from what is computed. */
static void test_kernel_turn__before_convolutions(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof images / sizeof *images; s++) {
        const image *x = &images[s];
        image perm = { x->rank, { 0, 1, 2, 3, 4 } };
        do {
            char list[100], nodes[TEXT];
            const image w = weights_of(x, x->dims[perm.dims[1]], 16);
            list_of(&perm, list);
            snprintf(nodes, sizeof nodes, "t = Transpose<perm = [%s]>(x) y = Conv(t, w)", list);
            same_results(nodes, x, &w);
            snprintf(nodes, sizeof nodes,
                     "e = Exp(x) t = Transpose<perm = [%s]>(e) c = Conv(t, w) s = ReduceMax(t) y = Add(c, s)", list);
            same_results(nodes, x, &w);
        } while (next_order(perm.dims, x->rank));
    }
}

/* Pixels that get other dims keep their layout; channels and images that do are moved. */
static void test_kernel_turn__reshaped(void **state)
{
    static const char *const nodes[] = {
        "f = Constant<value_ints = [2, 32, 12]>() r = Reshape(c, f) y = Transpose<perm = [0, 2, 1]>(r)",
        "f = Constant<value_ints = [0, 0, 2, 6]>() r = Reshape(c, f) y = Conv(r, w)",
        "f = Constant<value_ints = [2, 32, 3, 2, 2]>() r = Reshape(c, f) y = Transpose<perm = [0, 2, 3, 4, 1]>(r)",
        "f = Constant<value_ints = [2, 2, 16, 3, 4]>() r = Reshape(c, f) y = Transpose<perm = [0, 2, 1, 3, 4]>(r)",
        "f = Constant<value_ints = [1, 64, 3, 4]>() r = Reshape(c, f) y = Exp(r)",
        "f = Constant<value_ints = [2, 32, 12]>() r = Reshape(c, f) m = Softmax<axis = 2>(r) y = Add(m, r)",
        "f = Constant<value_ints = [3]>() r = Unsqueeze(c, f) y = Transpose<perm = [0, 2, 4, 3, 1]>(r)",
        "f = Constant<value_ints = [3]>() r = Unsqueeze(c, f) e = Neg(r) z = Squeeze(e, f) y = Conv(z, w)",
        "r = Flatten(c) y = Exp(r)",
    };
    const image x = { 4, { 2, 32, 3, 4 } }, w = weights_of(&x, 32, 32);
    (void)state;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        char text[TEXT];
        snprintf(text, sizeof text, "c = Conv(x, w) %s", nodes[i]);
        same_results(text, &x, &w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_turn__after_convolutions),
        cmocka_unit_test(test_kernel_turn__before_convolutions),
        cmocka_unit_test(test_kernel_turn__reshaped),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

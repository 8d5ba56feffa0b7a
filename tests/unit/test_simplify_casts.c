/* test_simplify_casts.c - two Casts in a row, of every triple of element types: simplify and sessions give what both
 * nodes give, element by element and bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/tensor.h>
#include <onx/text.h>
#include <onx/transform.h>

#include "base/base.h"

#include <math.h>

enum { OPSET = 25, COUNT = 64, TYPES = ONX_DTYPE_COUNT, TEXT = 1 << 20 };

/* The attributes of the first and of the second Cast. */
static const char *const attributes[][2] = { { "", "" },
                                             { ", saturate = 0", "" },
                                             { "", ", saturate = 0" },
                                             { ", round_mode = \"down\"", ", round_mode = \"nearest\"" } };

static const double numbers[] = { 0,       -0.0,  1,     -1,         0.5,           1.5,          2.5,    -0.75,
                                  127.5,   255,   256,   -129,       65504,         65520,        70000,  3.4e38,
                                  -3.4e38, 1e-40, 1e300, 2147483647, -2147483648.0, 4294967295.0, 9.2e18, 448,
                                  464,     57344, 240,   1e-8,       INFINITY,      -INFINITY,    NAN,    16777217,
                                  6,       7,     8,     -8 };

/* Special numbers of the type, and then any bits. */
static void fill(onx_value *v)
{
    uint32_t state = 1;
    const unsigned bits = onx_dtype_bits(v->dtype);
    if (v->dtype == ONX_STRING)
        return;
    for (uint64_t i = 0; i < v->size; i++) {
        state = state * UINT32_C(1664525) + UINT32_C(1013904223);
        ((uint8_t *)v->data)[i] = (uint8_t)(v->dtype == ONX_BOOL ? state >> 31 : state >> 24);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && bits >= 8 && v->dtype != ONX_BOOL; i++)
        onx_convert((onx_dtype)v->dtype, (char *)v->data + i * bits / 8, ONX_DOUBLE, &numbers[i], 1, true);
}

typedef struct result {
    onx_value *outputs[TYPES * TYPES];
    uint32_t count;
} result;

static bool run(onx_ctx *cx, onx_doc *doc, const onx_value *x, bool optimize, result *out)
{
    const onx_session_options options = { .threads = 1, .plain = !optimize, .no_optimize = !optimize };
    onx_session *session = NULL;
    memset(out, 0, sizeof *out);
    const bool done = onx_session_new(cx, doc, &options, &session) == ONX_OK &&
                      onx_session_run(session, cx, &x, out->outputs) == ONX_OK;
    out->count = done ? onx_session_output_count(session) : 0;
    onx_session_free(session);
    return done;
}

static void drop(result *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        onx_value_free(r->outputs[i]);
}

static onx_doc *parse(onx_ctx *cx, const char *text)
{
    onx_doc *doc = NULL;
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK) {
        char why[400];
        onx_diag_format(onx_diag_get(cx, 0), why, sizeof why);
        fail_msg("%s\n%.2000s", why, text);
    }
    return doc;
}

/* Is there a Cast from one type to the other? */
static bool casts[TYPES][TYPES];
static void find_casts(onx_ctx *cx)
{
    char text[300];
    for (int from = 1; from < TYPES; from++)
        for (int to = 1; to < TYPES; to++) {
            const int64_t dims[1] = { COUNT };
            onx_value *x = NULL;
            result r;
            if (from == ONX_STRING || to == ONX_STRING ||
                onx_value_new_tensor(cx, (onx_dtype)from, 1, dims, &x) != ONX_OK)
                continue;
            fill(x);
            snprintf(text, sizeof text,
                     "<ir_version: 13, opset_import: [\"\" : %d]> g (%s[N] x) => (%s[N] y) { y = Cast <to = %d> (x) }",
                     OPSET, onx_dtype_name(from), onx_dtype_name(to), to);
            onx_doc *doc = parse(cx, text);
            casts[from][to] = run(cx, doc, x, false, &r);
            drop(&r);
            onx_doc_free(doc);
            onx_value_free(x);
            onx_diag_clear(cx);
        }
}

/* A number that is not NaN, or NaN; for types below a byte, bits. */
static bool same_element(const onx_value *a, const onx_value *b, uint64_t i)
{
    const unsigned bits = onx_dtype_bits(a->dtype);
    double x = 0, y = 0;
    if (bits < 8)
        return true;
    if (memcmp((const char *)a->data + i * bits / 8, (const char *)b->data + i * bits / 8, bits / 8) == 0)
        return true;
    if (onx_dtype_class_of(a->dtype) != ONX_CLASS_FLOATING)
        return false;
    onx_convert(ONX_DOUBLE, &x, (onx_dtype)a->dtype, (const char *)a->data + i * bits / 8, 1, false);
    onx_convert(ONX_DOUBLE, &y, (onx_dtype)b->dtype, (const char *)b->data + i * bits / 8, 1, false);
    return isnan(x) && isnan(y);
}

/* Compares all outputs; output k is of the types `of[k]`. */
static void compare(const result *a, const result *b, int from, const int (*of)[2], const char *how, bool exact)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t k = 0; k < a->count; k++) {
        const onx_value *x = a->outputs[k], *y = b->outputs[k];
        assert_int_equal(x->dtype, y->dtype);
        assert_int_equal(x->count, y->count);
        /* a float out of the range of integers is undefined, and kernels differ */
        const onx_dtype_class between = onx_dtype_class_of(of[k][0]), to = onx_dtype_class_of(of[k][1]);
        const bool open = (onx_dtype_class_of(from) == ONX_CLASS_FLOATING && between != ONX_CLASS_FLOATING) ||
                          (between == ONX_CLASS_FLOATING && to != ONX_CLASS_FLOATING);
        if (!exact && open)
            continue;
        if (onx_dtype_bits(x->dtype) < 8 && x->dtype != ONX_STRING)
            assert_memory_equal(x->data, y->data, x->size);
        for (uint64_t i = 0; i < x->count; i++)
            if (!same_element(x, y, i))
                fail_msg("%s: element %u of %s -> %s -> %s differs", how, (unsigned)i, onx_dtype_name(from),
                         onx_dtype_name(of[k][0]), onx_dtype_name(of[k][1]));
    }
}

static void test_simplify_casts__every_triple(void **state)
{
    (void)state;
    static int of[TYPES * TYPES][2];
    char *text = malloc(TEXT);
    assert_non_null(text);
    onx_ctx *cx = onx_ctx_new(NULL);
    uint32_t triples = 0;
    find_casts(cx);
    for (int from = 1; from < TYPES; from++)
        for (size_t a = 0; a < sizeof attributes / sizeof *attributes; a++) {
            const int64_t dims[1] = { COUNT };
            onx_value *x = NULL;
            uint32_t count = 0;
            size_t n = 0;
            for (int between = 1; between < TYPES; between++)
                for (int to = 1; to < TYPES; to++)
                    if (casts[from][between] && casts[between][to]) {
                        of[count][0] = between;
                        of[count++][1] = to;
                    }
            if (!count)
                continue;
            assert_int_equal(onx_value_new_tensor(cx, (onx_dtype)from, 1, dims, &x), ONX_OK);
            fill(x);
            n += (size_t)snprintf(text + n, TEXT - n, "<ir_version: 13, opset_import: [\"\" : %d]> g (%s[%d] x) => (",
                                  OPSET, onx_dtype_name(from), COUNT);
            for (uint32_t k = 0; k < count; k++)
                n += (size_t)snprintf(text + n, TEXT - n, "%s%s[%d] y%u", k ? ", " : "", onx_dtype_name(of[k][1]),
                                      COUNT, (unsigned)k);
            n += (size_t)snprintf(text + n, TEXT - n, ") {\n");
            for (uint32_t k = 0; k < count; k++)
                n += (size_t)snprintf(text + n, TEXT - n, " b%u = Cast <to = %d%s> (x)  y%u = Cast <to = %d%s> (b%u)\n",
                                      (unsigned)k, of[k][0], attributes[a][0], (unsigned)k, of[k][1], attributes[a][1],
                                      (unsigned)k);
            assert_true(n + 3 < TEXT);
            strcpy(text + n, "}");
            onx_doc *doc = parse(cx, text), *simple = parse(cx, text);
            result nodes, fewer, fast;
            if (onx_simplify(cx, simple, NULL) != ONX_OK || !run(cx, doc, x, false, &nodes) ||
                !run(cx, simple, x, false, &fewer) || !run(cx, doc, x, true, &fast)) {
                char why[400];
                onx_diag_format(onx_diag_get(cx, 0), why, sizeof why);
                fail_msg("%s: %s", onx_dtype_name(from), why);
            }
            compare(&fewer, &nodes, from, (const int(*)[2])of, "simplify", true);
            compare(&fast, &nodes, from, (const int(*)[2])of, "session", false);
            triples += count;
            drop(&nodes);
            drop(&fewer);
            drop(&fast);
            onx_doc_free(doc);
            onx_doc_free(simple);
            onx_value_free(x);
            onx_diag_clear(cx);
        }
    onx_ctx_free(cx);
    free(text);
    assert_true(triples > 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_simplify_casts__every_triple) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_run_fuse.c - scaling and shifting of channels is folded into constants: same results, fewer nodes; and only if
 * the shapes show that the operands are per channel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/text.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "context.h"

static uint32_t seed = 1;
static uint32_t below(uint32_t end)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(seed >> 8) * end >> 24);
}
static double number(void)
{
    return ((double)below(3000) + 500) / 1000 * (below(2) ? 1 : -1);
}

typedef struct model {
    char head[6000], body[2000];
    size_t head_len, body_len;
    uint32_t rank, channels, nodes, names;
    int64_t x[5];
} model;

static void ONX_PRINTF(3, 4) add(char *text, size_t *len, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *len += (size_t)vsnprintf(text + *len, 2000, format, args);
    va_end(args);
}
#define HEAD(...) add(m->head, &m->head_len, __VA_ARGS__)
#define BODY(...) add(m->body, &m->body_len, __VA_ARGS__)

/* A constant of such dims; "c0" or so is its name. */
static uint32_t constant(model *m, uint32_t rank, const int64_t *dims, bool positive)
{
    int64_t count = 1;
    HEAD(", float");
    for (uint32_t i = 0; i < rank; count *= dims[i++])
        HEAD("%s%lld%s", i ? ", " : "[", (long long)dims[i], i + 1 == rank ? "]" : "");
    HEAD(" c%u = {", m->names);
    for (int64_t i = 0; i < count; i++)
        HEAD("%s%.3f", i ? ", " : "", positive ? fabs(number()) : number());
    HEAD("}");
    return m->names++;
}

/* Another node behind t<n>; true: it can be taken in. */
static bool follow(model *m, uint32_t n)
{
    static const char *const ops[] = { "Add", "Mul", "Sub", "Div" };
    const uint32_t c = m->channels, r = m->rank, kind = below(8), op = below(4);
    const bool turned = op < 3 && below(2) != 0; /* a quotient by what is near zero tells nothing */
    int64_t dims[5] = { 1, 1, 1, 1, 1 };
    m->nodes++;
    if (kind == 0) {
        uint32_t of[4];
        for (int i = 0; i < 4; i++)
            of[i] = constant(m, 1, (int64_t[]){ c }, i == 3);
        BODY(" t%u = BatchNormalization (t%u, c%u, c%u, c%u, c%u)\n", n + 1, n, of[0], of[1], of[2], of[3]);
        return true;
    }
    uint32_t rank = r - 1 + below(2);
    if (kind == 1) /* one number */
        rank = below(r + 1);
    else if (kind == 2) /* of the last dim, which may be as long as there are channels */
        dims[0] = m->x[r - 1], rank = 1;
    else
        dims[rank - r + 1] = c;
    const uint32_t k = constant(m, rank, dims, false);
    if (turned)
        BODY(" t%u = %s (c%u, t%u)\n", n + 1, ops[op], k, n);
    else
        BODY(" t%u = %s (t%u, c%u)\n", n + 1, ops[op], n, k);
    return (kind != 2 || dims[0] == 1) && !(turned && op > 1);
}

static void count(void *user, const onx_run_event *event)
{
    if (!onx_str_is(event->op_type, "Reorder"))
        ++*(uint32_t *)user;
}

static uint32_t run(const model *m, bool as_it_is, onx_value **out)
{
    static char text[10000];
    onx_doc *doc;
    onx_session *s;
    onx_value *x;
    uint32_t nodes = 0;
    snprintf(text, sizeof text, "%s> {\n%s}\n", m->head, m->body);
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK ||
        onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .no_optimize = as_it_is }, &s) !=
            ONX_OK)
        fail_msg("%.*s\n%s", ONX_ARG(onx_diag_get(cx, 0)->message), text);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, m->rank, m->x, &x), ONX_OK);
    for (uint64_t i = 0; i < x->count; i++)
        ((float *)x->data)[i] = (float)((i * 37) % 19) / 8.0f - 1;
    const onx_run_options watch = { .event = count, .user = &nodes };
    assert_int_equal(onx_session_run_with(s, cx, (const onx_value *const[]){ x }, out, &watch), ONX_OK);
    onx_value_free(x);
    onx_session_free(s);
    onx_doc_free(doc);
    return nodes;
}

/* A Conv or a BatchNormalization, and what follows it. Returns how many nodes of those that follow can be taken in. */
static uint32_t make(model *m, bool *seen)
{
    static const int64_t channels[] = { 1, 3, 4 };
    const bool conv = below(3) != 0;
    uint32_t taken = 0, length = 1 + below(4);
    bool all = true;
    *m = (model){ .rank = 3 + below(3), .channels = (uint32_t)channels[below(3)] };
    *seen = below(4) == 0;
    m->x[0] = 1 + below(2);
    for (uint32_t i = 1; i < m->rank; i++)
        m->x[i] = i == 1 ? m->channels : 1 + below(4);
    HEAD("<ir_version: 10, opset_import: [\"\" : 15]> g (float[");
    for (uint32_t i = 0; i < m->rank; i++)
        HEAD("%s%lld", i ? ", " : "", (long long)m->x[i]);
    static const char *const any[] = { "A, B, C", "A, B, C, D", "A, B, C, D, E" };
    HEAD("] x) => (float[%s] y", any[m->rank - 3]);
    if (*seen)
        HEAD(", float[%s] t0", any[m->rank - 3]);
    HEAD(") <float zero = {0}");
    const int64_t square[5] = { m->channels, m->channels, 1, 1, 1 };
    const uint32_t w = constant(m, m->rank, square, false), b = constant(m, 1, square, false);
    if (conv) {
        if (below(2))
            BODY(" t0 = Conv (x, c%u)\n", w);
        else
            BODY(" t0 = Conv (x, c%u, c%u)\n", w, b);
    } else {
        const uint32_t v = constant(m, 1, square, true);
        BODY(" s = Conv (x, c%u)\n t0 = BatchNormalization (s, c%u, c%u, c%u, c%u)\n", w, b, b, b, v);
        BODY(" u = Relu (s)\n");
    }
    for (uint32_t i = 0; i < length; i++) {
        const bool can = follow(m, i);
        all &= can;
        taken += all;
    }
    BODY(" y%s = Relu (t%u)\n", conv ? "" : "0", length);
    if (!conv)
        BODY(" y = Add (y0, u)\n");
    return *seen ? 0 : taken;
}

static void test_run_fuse__channels_go_into_constants(void **state)
{
    (void)state;
    uint32_t taken = 0;
    for (int turn = 0; turn < 400; turn++) {
        static model m;
        bool seen;
        onx_value *out[2][2] = { { NULL } };
        const uint32_t can = make(&m, &seen), all = run(&m, true, out[0]), left = run(&m, false, out[1]);
        for (int o = 0; o <= seen; o++) {
            assert_int_equal(out[0][o]->count, out[1][o]->count);
            for (uint64_t i = 0; i < out[0][o]->count; i++) {
                const double a = (double)((float *)out[0][o]->data)[i], b = (double)((float *)out[1][o]->data)[i];
                if (!(isfinite(a) && fabs(a - b) <= 1e-4 * (1 + fabs(a))))
                    fail_msg("%g is %g\n%s\n%s", a, b, m.head, m.body);
            }
            onx_value_free(out[0][o]);
            onx_value_free(out[1][o]);
        }
        if (left + can > all) /* Relu may be done in passing, too */
            fail_msg("%u nodes of %u are left, %u could be taken in\n%s\n%s", left, all, can, m.head, m.body);
        taken += can;
    }
    assert_true(taken > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_fuse__channels_go_into_constants),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

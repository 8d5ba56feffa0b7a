/* test_run_repeats.c - nodes that compute the same run once: which do, which do not, and that results stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/text.h>

#include <stdio.h>
#include <string.h>

#include "context.h"

typedef struct seen {
    const char *op;
    unsigned count;
} seen;

static void count(void *user, const onx_run_event *event)
{
    seen *s = user;
    s->count += onx_str_is(event->op_type, s->op);
}

enum { OUTPUTS = 4 };

static unsigned run(const char *text, const char *op, bool no_optimize, onx_value **out)
{
    onx_session *session;
    onx_doc *doc;
    onx_value *x;
    seen s = { .op = op };
    const onx_run_options watch = { .event = count, .user = &s };
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, (const int64_t[]){ 2, 3 }, &x), ONX_OK);
    for (int i = 0; i < 6; i++)
        ((float *)x->data)[i] = (float)(i % 4) - 1;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .no_optimize = no_optimize }, &session), ONX_OK);
    assert_int_equal(onx_session_run_with(session, cx, (const onx_value *const[]){ x }, out, &watch), ONX_OK);
    onx_session_free(session);
    onx_value_free(x);
    onx_doc_free(doc);
    return s.count;
}

/* How often `op` runs, and the results are those of a session that leaves the nodes as they are. */
static unsigned times(const char *op, const char *text)
{
    onx_value *out[2][OUTPUTS] = { { NULL } };
    char model[4000];
    snprintf(model, sizeof model, "<ir_version: 10, opset_import: [\"\": 21]>\ng (float[2, 3] x) => (%s", text);
    const unsigned n = run(model, op, false, out[0]);
    run(model, op, true, out[1]);
    for (int i = 0; i < OUTPUTS; i++) {
        onx_value_difference d;
        if (out[0][i] && !onx_value_close(out[0][i], out[1][i], 1e-6, 1e-6, &d))
            fail_msg("output %d of %s: %s %s", i, text, d.what, d.text);
        onx_value_free(out[0][i]);
        onx_value_free(out[1][i]);
    }
    return n;
}

static void test_run_repeats__run_once(void **state)
{
    (void)state;
    assert_int_equal(times("NonZero", "int64[2, n] y) { a = NonZero(x) b = NonZero(x) y = Add(a, b) }"), 1);
    /* and what is made of them */
    assert_int_equal(times("Transpose", "int64[n, 2] y) { a = NonZero(x) b = NonZero(x) c = Transpose(a)"
                                        " d = Transpose(b) y = Add(c, d) }"),
                     1);
    assert_int_equal(times("TopK",
                           "float[2, 2] y, int64[2, 2] z) { k = Constant<value = int64[1] {2}>() a, b = TopK(x, k)"
                           " c, d = TopK(x, k) y = Sub(a, c) z = Add(b, d) }"),
                     1);
    /* read by a subgraph */
    assert_int_equal(times("NonZero", "int64[2, n] y) { t = Constant<value = bool {1}>() s = ReduceMax<keepdims = 0>(x)"
                                      " z = Sub(s, s) c = Equal(s, z) a = NonZero(x) d = Neg(a) b = NonZero(x)"
                                      " y = If(c)<then_branch = f () => (int64[2, n] u) { u = Add(b, d) },"
                                      " else_branch = e () => (int64[2, n] v) { v = Mul(b, b) }> }"),
                     1);
    /* in a subgraph, whose nodes are not reported: that results stay */
    (void)times("NonZero", "int64[2, n] y) { s = ReduceMax<keepdims = 0>(x) z = Sub(s, s) c = Less(z, s)"
                           " y = If(c)<then_branch = f () => (int64[2, n] u) { a = NonZero(x) b = NonZero(x)"
                           " u = Add(a, b) }, else_branch = e () => (int64[2, n] v) { v = NonZero(x) }> }");
}

/* Other attributes, operands or outputs; random numbers. */
static void test_run_repeats__differ(void **state)
{
    (void)state;
    assert_int_equal(times("ReduceSum", "float[1, 1] y) { a = ReduceSum<keepdims = 1>(x) b = ReduceSum<keepdims = 0>(x)"
                                        " y = Add(a, b) }"),
                     2);
    assert_int_equal(times("Gather",
                           "float[2, 1] y) { i = Constant<value = int64[1] {0}>() j = Constant<value = int64[1]"
                           " {1}>() a = Gather<axis = 1>(x, i) b = Gather<axis = 1>(x, j) y = Sub(a, b) }"),
                     2);
    assert_int_equal(times("Bernoulli", "float[2, 3] y) { h = Abs(x) o = Clip(h, l, m) a = Bernoulli<seed = 1.0>(o)"
                                        " l = Constant<value = float {0}>() m = Constant<value = float {0}>()"
                                        " b = Bernoulli<seed = 1.0>(o) y = Sub(a, b) }"),
                     2);
}

/* Outputs of the graph are values of their own. */
static void test_run_repeats__outputs(void **state)
{
    (void)state;
    assert_int_equal(times("NonZero", "int64[2, n] y, int64[2, n] z) { y = NonZero(x) z = NonZero(x) }"), 2);
    assert_int_equal(times("NonZero", "int64[2, n] y, int64[2, n] z) { y = NonZero(x) a = NonZero(x) z = Add(a, y) }"),
                     1);
}

/* What nobody has read for long is computed again, so that it need not be kept. */
static void test_run_repeats__far_apart(void **state)
{
    char text[2000];
    (void)state;
    for (int between = 0; between < 40; between += 3) {
        size_t len = (size_t)snprintf(text, sizeof text, "int64[2, n] y) { a = NonZero(x) b = Sign(a) t0 = NonZero(b)");
        for (int i = 0; i < between; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, " t%d = Reshape(t%d, s)", i + 1, i);
        snprintf(text + len, sizeof text - len,
                 " s = Constant<value = int64[2] {2, -1}>() c = NonZero(x) d = Sign(c)"
                 " u = ReduceMax<keepdims = 0>(t%d) e = Add(d, u) y = Mul(e, c) }",
                 between);
        const unsigned n = times("NonZero", text);
        if (between < 6)
            assert_int_equal(n, 2);
        if (between > 10)
            assert_int_equal(n, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_repeats__run_once),
        cmocka_unit_test(test_run_repeats__differ),
        cmocka_unit_test(test_run_repeats__outputs),
        cmocka_unit_test(test_run_repeats__far_apart),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

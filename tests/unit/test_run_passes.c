/* test_run_passes.c - passes over the graph of a session: nodes that compute the same run once, chains of Transpose are
 * one, and loops and sequences that are known beforehand are none,
 * and Transposes around nodes meet. Which nodes do, which do not, and that results stay.
 */
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
    if (onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .no_optimize = no_optimize }, &session) !=
            ONX_OK ||
        onx_session_run_with(session, cx, (const onx_value *const[]){ x }, out, &watch) != ONX_OK)
        fail_msg("%s: %.*s", text, ONX_ARG(onx_diag_get(cx, onx_diag_count(cx) - 1)->message));
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

static void test_run_passes__repeats_run_once(void **state)
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
static void test_run_passes__other_nodes_stay(void **state)
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
static void test_run_passes__repeated_outputs(void **state)
{
    (void)state;
    assert_int_equal(times("NonZero", "int64[2, n] y, int64[2, n] z) { y = NonZero(x) z = NonZero(x) }"), 2);
    assert_int_equal(times("NonZero", "int64[2, n] y, int64[2, n] z) { y = NonZero(x) a = NonZero(x) z = Add(a, y) }"),
                     1);
}

/* What nobody has read for long is computed again, so that it need not be kept. */
static void test_run_passes__repeats_far_apart(void **state)
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

static void test_run_passes__transposes(void **state)
{
    (void)state;
    assert_int_equal(times("Transpose",
                           "float[2, 3] y) { a = Transpose<perm = [1, 0]>(x) b = Transpose<perm = [1, 0]>(a)"
                           " y = Softmax(b) }"),
                     0);
    assert_int_equal(
        times("Transpose", "float[2, 3] y) { a = Transpose<perm = [1, 0]>(x) y = Transpose<perm = [1, 0]>(a) }"), 0);
    static const char deep[] = "float[n, m, k] y) { s = Constant<value = int64[3] {1, 3, 2}>() r = Reshape(x, s)"
                               " e = Exp(r) a = Transpose<perm = [2, 0, 1]>(e) b = Transpose<perm = [0, 2, 1]>(a)"
                               " c = Transpose<perm = [0, 2, 1]>(b) y = Softmax(c) }";
    assert_int_equal(times("Transpose", deep), 1);
    /* others read the first one, or its shape */
    assert_int_equal(times("Transpose", "float[2, 3] y, float[3, 2] z) { a = Transpose<perm = [1, 0]>(x)"
                                        " b = Transpose<perm = [1, 0]>(a) y = Softmax(b) z = Softmax(a) }"),
                     1);
    assert_int_equal(times("Transpose", "float[2, 3] y, float[3, 2] z) { z = Transpose<perm = [1, 0]>(x)"
                                        " b = Transpose<perm = [1, 0]>(z) y = Softmax(b) }"),
                     1);
    /* the permutation is that of the rank */
    assert_int_equal(times("Transpose", "float[2, 3] y) { a = Transpose(x) b = Transpose(a) y = Softmax(b) }"), 2);
    /* only axes of size 1 move */
    assert_int_equal(times("Transpose", "float[n, m, k, l] y) { s = Constant<value = int64[4] {1, 3, 1, 2}>()"
                                        " e = Exp(x) r = Reshape(e, s) a = Transpose<perm = [0, 2, 1, 3]>(r)"
                                        " y = Softmax(a) }"),
                     0);
    /* equal ones are one */
    assert_int_equal(times("Transpose",
                           "float[3, 3] y) { a = Transpose<perm = [1, 0]>(x) b = Transpose<perm = [1, 0]>(x)"
                           " c = Exp(b) d = Transpose<perm = [1, 0]>(c) y = MatMul(a, d) }"),
                     2);
}

/* Two wrong permutations make none that is right, next to each other or around a node. */
static void test_run_passes__wrong_transposes(void **state)
{
    static const struct {
        const char *there, *back;
    } perms[] = { { "[0]", "[0]" },
                  { "[1, 0, 2]", "[1, 0, 2]" },
                  { "[1, 1]", "[1, 1]" },
                  { "[0, 2]", "[0, 2]" },
                  { "[-1, 0]", "[-1, 0]" },
                  { "[1]", "[1]" },
                  { "[0, 2, 1]", "[0, 2, 1]" },
                  { "[0, 2, 3, 1]", "[0, 3, 1, 2]" },
                  { "[0, 3, 1, 2]", "[0, 2, 3, 1]" } };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof perms / sizeof *perms; i++) {
        const char *there = perms[i / 2].there, *back = perms[i / 2].back;
        char text[400];
        onx_doc *doc;
        onx_session *session = NULL;
        onx_value *x, *y = NULL;
        snprintf(text, sizeof text,
                 "<ir_version: 10, opset_import: [\"\": 21]>\ng (float[n, m] x) => (float[n, m] y) {"
                 " a = Transpose<perm = %s>(x) %s b = Transpose<perm = %s>(%s) y = Softmax(b) }",
                 there, i % 2 ? "e = Relu(a)" : "", back, i % 2 ? "e" : "a");
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
        assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, (const int64_t[]){ 2, 3 }, &x), ONX_OK);
        memset(x->data, 0, x->size);
        onx_status status = onx_session_new(cx, doc, NULL, &session);
        if (status == ONX_OK)
            status = onx_session_run_with(session, cx, (const onx_value *const[]){ x }, &y, NULL);
        if (status != ONX_E_INVALID)
            fail_msg("perm = %s: %s", there, onx_status_text(status));
        onx_diag_clear(cx);
        onx_session_free(session);
        onx_value_free(x);
        onx_value_free(y);
        onx_doc_free(doc);
    }
}

#define BODY "bool on, float[n, m] b) { on = Identity(go) "
#define LOOP(trips, body)                                                                                              \
    "float[n, m] y) { trips = Constant<value = " trips                                                                 \
    ">() yes = Constant<value = bool {1}>() y = Loop(trips, yes, x)"                                                   \
    "<body = turn (int64 i, bool go, float[n, m] a) => (" body "}> }"

/* A Loop of a constant number of turns is its turns. */
static void test_run_passes__loops(void **state)
{
    (void)state;
    assert_int_equal(times("Loop", LOOP("int64 {3}", BODY "b = Add(a, x)")), 0);
    assert_int_equal(times("CumSum", LOOP("int64[1] {3}", BODY "o = Sub(i, i) b = CumSum(a, o)")), 3);
    assert_int_equal(times("Loop", LOOP("int64 {0}", BODY "b = Add(a, x)")), 0);
    assert_int_equal(times("Loop", LOOP("int64 {-1}", BODY "b = Add(a, x)")), 0);
    assert_int_equal(times("Loop", LOOP("int64 {16}", BODY "b = Add(a, x)")), 0);
    assert_int_equal(times("Loop", LOOP("int64 {17}", BODY "b = Add(a, x)")), 1);
    /* the turn counts, and a constant of the body is one */
    assert_int_equal(times("Loop", LOOP("int64 {4}", BODY "f = Cast<to = 1>(i) c = Constant<value = float {0.5}>()"
                                                          " d = Mul(f, c) e = Sin(a) b = Add(e, d)")),
                     0);
    /* ends by its condition, after the turn of 2 */
    assert_int_equal(times("CumSum",
                           "float[n, m] y) { yes = Constant<value = bool {1}>() two = Constant<value = int64 {2}>()"
                           " y = Loop(, yes, x)<body = turn (int64 i, bool go, float[n, m] a) =>"
                           " (bool on, float[n, m] b) { on = Less(i, two) o = Sub(i, i)"
                           " b = CumSum(a, o) }> }"),
                     3);
    /* its condition depends on data, or only on the data of the last turn */
    assert_int_equal(times("Loop", LOOP("int64 {3}", "bool on, float[n, m] b) { s = ReduceSum<keepdims = 0>(a)"
                                                     " z = Sub(s, s) on = Equal(s, z) b = Exp(a)")),
                     1);
    assert_int_equal(times("Loop", LOOP("int64 {1}", "bool on, float[n, m] b) { s = ReduceSum<keepdims = 0>(a)"
                                                     " z = Sub(s, s) on = Equal(s, z) b = Exp(a)")),
                     0);
    /* without a condition, what the body says of it does not matter */
    assert_int_equal(times("Loop", "float[n, m] y) { two = Constant<value = int64 {2}>() y = Loop(two, , x)<body = turn"
                                   " (int64 i, bool go, float[n, m] a) => (bool on, float[n, m] b) { on = Not(go)"
                                   " b = Exp(a) }> }"),
                     0);
    /* what is carried changes places; it is an output at the same time */
    assert_int_equal(times("Loop", "float[n, m] y, float[n, m] z, float[n, m] w) { two = Constant<value = int64 {3}>()"
                                   " w = Neg(x) y, z = Loop(two, , x, w)<body = turn (int64 i, bool go, float[n, m] a,"
                                   " float[n, m] b) => (bool go, float[n, m] b, float[n, m] c) { c = Add(a, b) }> }"),
                     0);
}

static void test_run_passes__loops_in_subgraphs(void **state)
{
    (void)state;
    /* two with the same names, one in the other, and a branch that is always taken */
    assert_int_equal(times("CumSum",
                           "float[n, m] y, float[n, m] z) { two = Constant<value = int64 {2}>()"
                           " y = Loop(two, , x)<body = turn (int64 i, bool go, float[n, m] a) => (bool go,"
                           " float[n, m] b) { o = Sub(i, i) b = CumSum(a, o) }>"
                           " z = Loop(two, , y)<body = turn (int64 i, bool go, float[n, m] a) => (bool go,"
                           " float[n, m] b) { c = Add(y, a) k = Loop(two, , c)<body = inner (int64 j, bool on,"
                           " float[n, m] e) => (bool on, float[n, m] f) { g = Equal(i, j) f = If(g)<then_branch ="
                           " t () => (float[n, m] u) { u = CumSum(e, i) }, else_branch = e () => (float[n, m] v)"
                           " { w = CumSum(e, i) v = Sub(w, x) }> }> b = Sin(k) }> }"),
                     2 + 2 * 2);
    /* in a branch that depends on data */
    (void)times("Loop",
                "float[n, m] y) { two = Constant<value = int64 {2}>() s = ReduceSum<keepdims = 0>(x)"
                " z = Sub(s, s) c = Less(z, s) y = If(c)<then_branch = t () => (float[n, m] u) {"
                " u = Loop(two, , x)<body = turn (int64 i, bool go, float[n, m] a) => (bool go, float[n, m] b) {"
                " b = Add(a, x) }> }, else_branch = e () => (float[n, m] v) { v = Neg(x) }> }");
    /* branches that only hand on */
    assert_int_equal(
        times("If", "float[n, m] y) { no = Constant<value = bool {0}>() y = If(no)<then_branch = t () =>"
                    " (float[n, m] u) { u = Neg(x) }, else_branch = e () => (float[n, m] v) { v = Identity(x) }> }"),
        0);
    /* random numbers are drawn in the loop */
    assert_int_equal(times("Loop", LOOP("int64 {3}", BODY "z = Sub(a, a) r = Bernoulli(z) b = Add(r, a)")), 1);
}

/* Sequences whose tensors are known need not be there. */
static void test_run_passes__sequences(void **state)
{
    (void)state;
#define SPLIT                                                                                                                        \
    "at = Constant<value = int64[3] {0, 1, 2}>() two = Constant<value = int64 {2}>() yes = Constant<value = bool {1}>()"             \
    " ax = Constant<value = int64[1] {1}>() l = SequenceEmpty() p = Loop(two, yes, l)<body = turn (int64[1] i, bool go,"             \
    " seq(float[n, m]) a) => (bool on, seq(float[n, m]) b) { on = Identity(yes) k = Constant<value = int64 {1}>() f = Gather(at, i)" \
    " j = Add(i, k) t = Gather(at, j) s = Slice(x, f, t, ax) b = SequenceInsert(a, s) }> "
    static const char *const ops[] = { "Loop", "SequenceInsert", "SequenceAt", "ConcatFromSequence", "SequenceLength" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        assert_int_equal(times(ops[i], "float[n, m] y, float[n, m] z) { " SPLIT " o = Constant<value = int64 {-1}>()"
                                       " y = SequenceAt(p, o) e = ReduceSum<keepdims = 1>(y) q = SequenceInsert(p, e)"
                                       " z = SequenceAt(q, two) }"),
                         0);
        assert_int_equal(times(ops[i], "float[n, m] y, int64 z, float[n, m, k] w) { " SPLIT
                                       " y = ConcatFromSequence<axis = -1>(p) z = SequenceLength(p)"
                                       " w = ConcatFromSequence<axis = -2, new_axis = 1>(p) }"),
                         0);
        assert_int_equal(times(ops[i],
                               "float[n, m] y, float[n, m] z) { c = Neg(x) d = Exp(x) l = SequenceConstruct(x, c)"
                               " a = Constant<value = int32 {-2}>() o = Constant<value = int64 {1}>()"
                               " m = SequenceInsert(l, d, a) u = SequenceErase(m) v = SequenceErase(m, o)"
                               " y = ConcatFromSequence<axis = 0>(u) z = ConcatFromSequence<axis = 0>(v) }"),
                         0);
    }
    /* a sequence that is an output, is read at an unknown place, or is not known */
    assert_int_equal(times("SequenceInsert",
                           "seq(float[n, m]) y, float[n, m] z) { " SPLIT
                           " y = Identity(p) o = Constant<value = int64 {0}>() z = SequenceAt(p, o) }"),
                     2);
    assert_int_equal(times("SequenceAt", "float[n, m] y) { c = Neg(x) l = SequenceConstruct(x, c) s = Size(x)"
                                         " q = Div(s, s) y = SequenceAt(l, q) }"),
                     1);
    assert_int_equal(times("SequenceAt", "float[n, m] y) { l = SplitToSequence(x) o = Constant<value = int64 {1}>()"
                                         " y = SequenceAt(l, o) }"),
                     1);
}

/* Each operator that makes a sequence would copy a long list of its tensors: such a list is not kept. */
static void test_run_passes__long_sequences(void **state)
{
    static const unsigned lengths[] = { 64, 65 };
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        char text[1000];
        size_t at = (size_t)snprintf(text, sizeof text, "float[n, m] y, int64 z) { l = SequenceConstruct(x");
        for (unsigned i = 1; i < lengths[n]; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, ", x");
        snprintf(
            text + at, sizeof text - at,
            ") m = SequenceErase(l) z = SequenceLength(m) o = Constant<value = int64 {1}>() y = SequenceAt(m, o) }");
        assert_int_equal(times("SequenceErase", text), n);
        assert_int_equal(times("SequenceAt", text), n);
    }
}

/* Transposes that turn images, and back, around nodes: those for `before` other than 2 x 3. */
#define IMAGE                                                                                                          \
    "o = Constant<value = int64[4] {1, 3, 2, 1}>() r = Reshape(x, o) e = MaxPool<kernel_shape = [1, 1]>(r)"            \
    " a = Transpose<perm = [0, 2, 3, 1]>(e) "
#define BACK " t = Transpose<perm = [0, 3, 1, 2]>(z) y = MaxPool<kernel_shape = [2, 1]>(t) }"

static void test_run_passes__transposes_meet(void **state)
{
    (void)state;
    static const char *const between[] = {
        "z = Relu(a)",
        "c = Constant<value = float[3] {1, 2, 3}>() b = Add(a, c) d = Exp(a) z = Mul(d, b)",
        "c = Constant<value = float[2, 1, 1] {1, 2}>() k = Constant<value = float {2}>() b = Sub(c, a) z = Min(b, k)",
        "c = Constant<value = float[1, 1, 1] {4}>() k = Constant<value = float[1, 2, 1, 1] {2, 3}>() b = Pow(a, c) z = Div(b, k)",
        "b = Neg(a) c = Concat<axis = -1>(a, b) d = Concat<axis = 1>(c, c) z = Clip(d)",
        "c = Constant<value = int64[8] {0, 1, 0, 2, 0, 0, 3, 0}>() k = Constant<value = float {7}>() z = Pad(a, c, k)",
        "i = Constant<value = int64[2] {1, -2}>() b = ReduceMax<keepdims = 1>(a, i) c = Sigmoid(b) z = Mul(a, c)",
        "s = Constant<value = float {0.05}>() q = Constant<value = uint8 {100}>() b = QuantizeLinear(a, s, q)"
        " z = DequantizeLinear(b, s, q)",
        "h = Cast<to = 10>(a) f = Cast<to = 1>(h) z = Celu(f)",
        "i = Constant<value = int64[1] {2}>() b = Squeeze(a, i) c = Constant<value = float[3] {1, 2, 3}>() d = Mul(b, c)"
        " f = Exp(d) z = Unsqueeze(f, i)",
    };
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        char text[1500];
        snprintf(text, sizeof text, "float[n, m, k, l] y) { " IMAGE "%s" BACK, between[i]);
        if (times("Transpose", text))
            fail_msg("Transposes are left around %s", between[i]);
    }
    /* in the other direction */
    assert_int_equal(times("Transpose",
                           "float[n, m] y) { o = Constant<value = int64[4] {1, 2, 1, 3}>() r = Reshape(x, o)"
                           " w = Constant<value = float[3, 3] {1, 2, 3, 4, 5, 6, 7, 8, 9}>()"
                           " e = MatMul(r, w) a = Transpose<perm = [0, 3, 1, 2]>(e)"
                           " c = Constant<value = float[3, 1, 1] {1, 2, 3}>() b = Mul(a, c)"
                           " z = Transpose<perm = [0, 2, 3, 1]>(b) y = MatMul(z, w) }"),
                     0);
    /* of signals, whose reduction has no such axes any more */
    assert_int_equal(times("Transpose", "float[n, m] y, float[n, m, k] z) { i = Constant<value = int64[1] {1}>()"
                                        " u = Unsqueeze(x, i) e = MaxPool<kernel_shape = [1]>(u)"
                                        " a = Transpose<perm = [0, 2, 1]>(e) b = Abs(a)"
                                        " t = Transpose<perm = [0, 2, 1]>(b) z = MaxPool<kernel_shape = [2]>(t)"
                                        " y = ReduceSum<keepdims = 0>(b, i) }"),
                     0);
}

/* The axes of channels are needed, another value has them in another order, or a Transpose would take the place of one.
 */
static void test_run_passes__transposes_stay(void **state)
{
    (void)state;
    (void)times("Transpose", "float[n, m, k, l] y) { " IMAGE "b = Softmax<axis = -1>(a) z = Exp(b)" BACK);
    (void)times("Transpose", "float[n, m, k, l] y) { " IMAGE "i = Constant<value = int64[1] {3}>()"
                             " b = ReduceMean<keepdims = 1>(a, i) z = Sub(a, b)" BACK);
    (void)times("Transpose", "float[n, m, k, l] y) { " IMAGE "k = Constant<value = float[2, 1, 3] {1, 2, 3, 4, 5, 6}>()"
                             " z = Add(a, k)" BACK);
    (void)times("Transpose", "float[n, m, k, l] y) { " IMAGE "s = Constant<value = int64[4] {1, 2, 1, 3}>()"
                             " k = Reshape(x, s) z = Add(a, k)" BACK);
    (void)times("Transpose", "float[n, m, k, l] y, float[n, m, k, l] z, float[n, m, k, l] v) { " IMAGE
                             "z = Neg(a) v = Softmax<axis = -1>(a)" BACK);
    (void)times("Transpose", "float[n, m, k, l] y, float[n, m] v) { " IMAGE "z = Neg(a) q = ReduceSum<keepdims = 0>(z)"
                             " f = Less(q, q) v = If(f)<then_branch = g () => (float[n, m] u) { i = Constant<value ="
                             " int64[2] {1, 2}>() u = ReduceSum<keepdims = 0>(z, i) }, else_branch = h () =>"
                             " (float[n, m] p) { p = Neg(x) }>" BACK);
    (void)times("Transpose", "float[n, m, k, l] z) { " IMAGE "z = Exp(a) }");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_passes__repeats_run_once),
        cmocka_unit_test(test_run_passes__other_nodes_stay),
        cmocka_unit_test(test_run_passes__repeated_outputs),
        cmocka_unit_test(test_run_passes__repeats_far_apart),
        cmocka_unit_test(test_run_passes__transposes),
        cmocka_unit_test(test_run_passes__wrong_transposes),
        cmocka_unit_test(test_run_passes__loops),
        cmocka_unit_test(test_run_passes__loops_in_subgraphs),
        cmocka_unit_test(test_run_passes__sequences),
        cmocka_unit_test(test_run_passes__long_sequences),
        cmocka_unit_test(test_run_passes__transposes_meet),
        cmocka_unit_test(test_run_passes__transposes_stay),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

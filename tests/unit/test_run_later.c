/* test_run_later.c - nodes after nodes whose output shapes are known only during a run are planned for the shapes at
 * hand: all runs give the same bits, and the results of the plain rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

enum { ROWS = 12, COLUMNS = 8, OUTPUTS = 3 };

/* The body of a graph of x, float[12, 8], and n, int64[1]; `part` are the first n rows of x. */
typedef struct body {
    const char *name, *outputs, *nodes;
    bool planned; /* fewer nodes are typed anew than where each runs alone */
} body;

#define GELU(from, to)                                                                                                 \
    " q = Div (" from ", c)\n e = Erf (q)\n f = Add (e, one)\n h = Mul (" from ", f)\n " to " = Mul (h, half)\n"

static const body bodies[] = {
    { "chains and products", "float[A, B] y", " m = MatMul (part, w)\n" GELU("m", "g") " y = MatMul (g, w)\n", true },
    { "what a rule puts in one place", "float[A, B] y, float[C, D] u",
      " y = MatMul (part, w)\n" GELU("y", "g") " u = Softmax (g)\n", true },
    { "shapes that are known and others", "float[A, B, C] y",
      " s = Shape (x)\n d = Shape (part)\n i1 = Constant <value_ints = [1]> ()\n columns = Gather (s, i1)\n"
      " rows = Gather (d, zero1)\n four = Constant <value_ints = [4]> ()\n two = Constant <value_ints = [2]> ()\n"
      " to = Concat <axis = 0> (rows, four, two)\n r = Reshape (part, to)\n flat = Concat <axis = 0> (rows, columns)\n"
      " back = Reshape (r, flat)\n t = Relu (back)\n p = Sigmoid (t)\n y = Reshape (p, to)\n",
      true },
    { "shapes that follow from elements", "float[A, B] y, int64[C, D] k",
      " first = Gather <axis = 1> (part, zero1)\n high = Greater (first, half)\n k = NonZero (high)\n"
      " which = Gather (k, zero0)\n some = Gather (part, which)\n m = MatMul (some, w)\n r = Relu (m)\n"
      " low = Less (r, half)\n l = NonZero (low)\n lt = Transpose <perm = [1, 0]> (l)\n picked = GatherND (r, lt)\n"
      " sum = ReduceSum <keepdims = 1> (picked)\n t = Tanh (sum)\n y = Add (r, t)\n",
      true },
    { "lists", "float[A, B] y",
      " list = SplitToSequence <axis = 0, keepdims = 1> (part)\n count = SequenceLength (list)\n"
      " some = SequenceInsert (list, one_row)\n more = SequenceInsert (some, one_row)\n"
      " all = ConcatFromSequence <axis = 0> (more)\n r = Relu (all)\n m = MatMul (r, w)\n t = Tanh (m)\n"
      " u = Add (t, half)\n y = Mul (u, r)\n",
      true },
    { "branches", "float[A, B] y, float[C, D] v",
      " sum = ReduceSum <keepdims = 0> (part)\n big = Greater (sum, half)\n"
      " v = If (big) <then_branch = then () => (float[E, F] t) { d = MatMul (part, w)\n t = Relu (d) },"
      " else_branch = other () => (float[G, H] o) { o = Concat <axis = 0> (part, part) }>\n"
      " n1 = Neg (v)\n n2 = Exp (n1)\n n3 = Add (n2, v)\n y = Mul (n3, half)\n",
      true },
    { "loops", "float[A, B] y",
      " true_ = Constant <value = bool {1}> ()\n trips = Constant <value = int64 {3}> ()\n"
      " l = Loop (trips, true_, part) <body = turn (int64 i, bool go, float[E, F] d) => (bool on, float[G, H] b)"
      " { on = Identity (go)\n p = MatMul (d, w)\n q1 = Tanh (p)\n b = Concat <axis = 0> (q1, one_row) }>\n"
      " r = Relu (l)\n s = Sigmoid (r)\n t = Mul (r, s)\n y = Add (t, half)\n",
      true },
    { "a bias and an activation after branches", "float[A, B] y, float[C, D] u",
      " sum = ReduceSum <keepdims = 0> (part)\n big = Greater (sum, half)\n"
      " v = If (big) <then_branch = then () => (float[E, F] t) { t = Neg (part) },"
      " else_branch = other () => (float[G, H] o) { o = Tanh (part) }>\n"
      " m = MatMul (v, w)\n a1 = Add (m, one_row)\n y = Relu (a1)\n"
      " v2 = If (big) <then_branch = then2 () => (float[I, J] t2) { e1 = Exp (y)\n m2 = MatMul (e1, w)\n"
      " a2 = Add (m2, one_row)\n t2 = Tanh (a2) },"
      " else_branch = other2 () => (float[K, L] o2) { o2 = Softmax (y) }>\n"
      " mean = ReduceMean <keepdims = 1> (v2)\n z1 = Sub (v2, mean)\n z2 = Mul (z1, z1)\n u = Sigmoid (z2)\n",
      true },
    { "normalization in a loop", "float[A, B] y",
      " true_ = Constant <value = bool {1}> ()\n trips = Constant <value = int64 {20}> ()\n"
      " l = Loop (trips, true_, part) <body = turn (int64 i, bool go, float[E, F] d) => (bool on, float[G, H] b)"
      " { on = Identity (go)\n mean = ReduceMean (d, minus1)\n c0 = Sub (d, mean)\n sq = Mul (c0, c0)\n"
      " var = ReduceMean (sq, minus1)\n e = Add (var, one)\n root = Sqrt (e)\n n0 = Div (c0, root)\n"
      " p = MatMul (n0, w)\n b = Concat <axis = 0> (p, one_row) }>\n"
      " r = MatMul (l, w)\n s = Add (r, one_row)\n t = Softmax (s)\n y = Mul (t, half)\n",
      true },
    { "texts and the same twice", "string[A] y, string[B] y2, float[C, D] v",
      " names = Constant <value_strings = [\"a\", \"bc\", \"\", \"d\"]> ()\n first = Gather <axis = 1> (part, zero1)\n"
      " flat = Reshape (first, minus1)\n high = Greater (flat, half)\n at = Cast <to = 7> (high)\n"
      " y = Gather (names, at)\n y2 = StringConcat (y, y)\n v = Neg (part)\n",
      true },
    { "a list for its own, which is too short to plan", "float[A, B] y", " y = Neg (part)\n", false },
};

static onx_doc *model_of(const body *b)
{
    static writer w;
    source s = { 71 };
    w.len = 0;
    add(&w,
        "<ir_version: 8, opset_import: [\"\" : 20]>\ng (float[%d, %d] x, int64[1] n) => (%s) <float half = {0.5},"
        " float one = {1}, float limit = {0.9}, float c = {1.41421356}, int64[1] zero1 = {0}, int64 zero0 = {0}, int64[1] minus1 = {-1}, ",
        ROWS, COLUMNS, b->outputs);
    add(&w, "float[%d, %d] w = {", COLUMNS, COLUMNS);
    for (int i = 0; i < COLUMNS * COLUMNS; i++)
        add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
    add(&w, "}, float[1, %d] one_row = {1, 2, 3, 4, 5, 6, 7, 8}> {\n", COLUMNS);
    add(&w,
        " z = Constant <value_ints = [0]> ()\n a = Constant <value_ints = [0]> ()\n part = Slice (x, z, n, a)\n%s}\n",
        b->nodes);
    onx_doc *doc = NULL;
    const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(w.text), 0, &doc);
    say_all();
    assert_int_equal(status, ONX_OK);
    return doc;
}

static onx_session *session_of(onx_doc *doc, bool plain)
{
    const onx_session_options options = { .verify = true, .threads = 2, .plain = plain };
    onx_session *session = NULL;
    const onx_status status = onx_session_new(cx, doc, &options, &session);
    say_all();
    assert_int_equal(status, ONX_OK);
    return session;
}

typedef struct counts {
    unsigned steps, anew;
} counts;

static void count(void *user, const onx_run_event *event)
{
    counts *c = user;
    c->steps++;
    c->anew += event->each_run;
}

static counts run_rows(onx_session *session, const onx_value *x, int64_t rows, onx_value **out)
{
    counts c = { 0 };
    onx_value *n = tensor(ONX_INT64, 1, (int64_t[]){ 1 });
    const onx_run_options watch = { .event = count, .user = &c };
    memcpy(n->data, &rows, sizeof rows);
    const onx_status status = onx_session_run_with(session, cx, (const onx_value *const[]){ x, n }, out, &watch);
    say_all();
    assert_int_equal(status, ONX_OK);
    onx_value_free(n);
    return c;
}

static void free_all(onx_value **values)
{
    for (int i = 0; i < OUTPUTS; i++)
        onx_value_free(values[i]);
}

static void compare_rows(onx_session *fast, onx_session *plain, const onx_value *x, int64_t rows, counts *out)
{
    onx_value *got[OUTPUTS] = { NULL }, *wanted[OUTPUTS] = { NULL };
    *out = run_rows(fast, x, rows, got);
    run_rows(plain, x, rows, wanted);
    for (int i = 0; i < OUTPUTS; i++) {
        assert_true(!got[i] == !wanted[i]);
        if (!got[i])
            continue;
        assert_int_equal(got[i]->rank, wanted[i]->rank);
        assert_memory_equal(got[i]->dims, wanted[i]->dims, got[i]->rank * sizeof *got[i]->dims);
        if (got[i]->dtype == ONX_STRING)
            for (uint64_t k = 0; k < got[i]->count; k++)
                assert_true(onx_str_equal(((const onx_str *)got[i]->data)[k], ((const onx_str *)wanted[i]->data)[k]));
        else
            assert_true(near_enough(got[i], wanted[i], 100));
    }
    free_all(got);
    free_all(wanted);
}

/* Of a session that plans nothing after nodes of unknown shape. */
static counts count_alone(onx_doc *doc, const onx_value *x, int64_t rows)
{
    onx_value *out[OUTPUTS] = { NULL };
    onx_session *session = NULL;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .no_optimize = true }, &session), ONX_OK);
    const counts c = run_rows(session, x, rows, out);
    free_all(out);
    onx_session_free(session);
    return c;
}

/* Numbers of rows that come again, and more of them than plans are kept; none among them. */
static void test_run_later__shapes_come_again(void **state)
{
    static const int64_t rows[] = { 3,  3, 3, 5, 5, 5, 3, 0, 0,  0,  3,  1, 2,  4, 6, 7, 8, 9, 10, 11,
                                    12, 1, 2, 4, 6, 7, 8, 9, 10, 11, 12, 1, 12, 5, 5, 3, 3, 0, 0 };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        source s = { 72 };
        onx_doc *doc = model_of(&bodies[i]);
        onx_session *fast = session_of(doc, false), *plain = session_of(doc, true);
        onx_value *x = floats(&s, 2, (int64_t[]){ ROWS, COLUMNS });
        const counts alone = count_alone(doc, x, rows[0]);
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            counts c = { 0 };
            compare_rows(fast, plain, x, rows[k], &c);
            if (k < 3 && (c.anew < alone.anew) != bodies[i].planned)
                fail_msg("%s: %u of %u steps are done anew, %u of %u where each node runs alone", bodies[i].name,
                         c.anew, c.steps, alone.anew, alone.steps);
        }
        onx_value_free(x);
        onx_session_free(fast);
        onx_session_free(plain);
        onx_doc_free(doc);
    }
}

/* The first run with some shapes, later ones, ones of another session that has seen other shapes before, and ones after
 * more shapes than plans are kept have the same bits. */
static void test_run_later__all_runs_have_the_same_bits(void **state)
{
    enum { SHAPES = 7, TURNS = 3 };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        source s = { 75 };
        onx_doc *doc = model_of(&bodies[i]);
        onx_session *session = session_of(doc, false);
        onx_value *x = floats(&s, 2, (int64_t[]){ ROWS, COLUMNS });
        for (int64_t k = 0; k < TURNS * SHAPES; k++) {
            onx_value *got[2][OUTPUTS] = { { NULL } };
            const int64_t rows = 1 + k * k % SHAPES;
            onx_session *fresh = session_of(doc, false);
            run_rows(session, x, rows, got[0]);
            run_rows(fresh, x, rows, got[1]);
            for (int again = 0; again < 3; again++) {
                for (int n = 0; n < OUTPUTS && got[0][n]; n++)
                    if (got[0][n]->dtype != ONX_STRING && !near_enough(got[0][n], got[1][n], 0))
                        fail_msg("%s: output %d of run %d differs", bodies[i].name, n, again);
                run_rows(again ? session : fresh, x, rows, got[again ? 0 : 1]);
            }
            onx_session_free(fresh);
            free_all(got[0]);
            free_all(got[1]);
        }
        onx_value_free(x);
        onx_session_free(session);
        onx_doc_free(doc);
    }
}

/* Other elements of the same shapes: what was planned fails as the nodes do one by one, at the same node, and serves
 * the next run. */
static void test_run_later__what_is_planned_may_fail(void **state)
{
    static const body b = { "", "float[A, B] y",
                            " first = Gather <axis = 1> (part, zero1)\n flat = Reshape (first, minus1)\n"
                            " at = Cast <to = 7> (flat)\n rows = Gather (w, at)\n r = Relu (rows)\n y = Neg (r)\n",
                            true };
    (void)state;
    onx_doc *doc = model_of(&b);
    onx_session *session = session_of(doc, false);
    char before[400] = "";
    for (int turn = 0; turn < 6; turn++) {
        onx_value *x = tensor(ONX_FLOAT, 2, (int64_t[]){ ROWS, COLUMNS }), *n = tensor(ONX_INT64, 1, (int64_t[]){ 1 });
        onx_value *y = NULL;
        const bool fails = turn == 0 || turn == 3 || turn == 4;
        for (uint64_t k = 0; k < x->count; k++)
            ((float *)x->data)[k] = fails ? 1000 : 7;
        *(int64_t *)n->data = 4;
        const onx_status status = onx_session_run(session, cx, (const onx_value *const[]){ x, n }, &y);
        assert_int_equal(status, fails ? ONX_E_INVALID : ONX_OK);
        if (fails) {
            char said[400];
            assert_int_equal(onx_diag_count(cx), 1);
            onx_diag_format(onx_diag_get(cx, 0), said, sizeof said);
            if (turn)
                assert_string_equal(said, before);
            memcpy(before, said, sizeof said);
            onx_diag_clear(cx);
        }
        onx_value_free(x);
        onx_value_free(n);
        onx_value_free(y);
    }
    onx_session_free(session);
    onx_doc_free(doc);
}

/* Shapes that follow from elements, whose shapes follow from elements, and so on, more often than there are plans in
 * plans. */
static void test_run_later__rests_of_rests(void **state)
{
    enum { TURNS = 40, ROOM = 300 };
    static char nodes[TURNS * ROOM];
    size_t len = 0;
    source s = { 73 };
    (void)state;
    for (int i = 0; i < TURNS; i++) {
        char from[16];
        snprintf(from, sizeof from, i ? "r%d" : "part", i - 1);
        len += (size_t)snprintf(nodes + len, sizeof nodes - len,
                                " m%d = ReduceMax <keepdims = 0> (%s, minus1)\n b%d = Less (m%d, limit)\n"
                                " k%d = Compress <axis = 0> (%s, b%d)\n a%d = Abs (k%d)\n t%d = Mul (a%d, half)\n"
                                " r%d = Sqrt (t%d)\n",
                                i, from, i, i, i, from, i, i, i, i, i, i, i);
    }
    snprintf(nodes + len, sizeof nodes - len, " y = Neg (r%d)\n", TURNS - 1);
    onx_doc *doc = model_of(&(body){ "", "float[A, B] y", nodes, true });
    onx_session *fast = session_of(doc, false), *plain = session_of(doc, true);
    onx_value *x = floats(&s, 2, (int64_t[]){ ROWS, COLUMNS });
    counts c;
    const counts alone = count_alone(doc, x, ROWS);
    for (int turn = 0; turn < 2 * TURNS; turn++)
        compare_rows(fast, plain, x, ROWS - turn / TURNS, &c);
    assert_true(c.anew < alone.anew);
    onx_value_free(x);
    onx_session_free(fast);
    onx_session_free(plain);
    onx_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_later__shapes_come_again),
        cmocka_unit_test(test_run_later__all_runs_have_the_same_bits),
        cmocka_unit_test(test_run_later__what_is_planned_may_fail),
        cmocka_unit_test(test_run_later__rests_of_rests),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* test_run_subgraph.c - subgraphs in sessions: iterations allocate nothing while shapes stay the same, shapes may
 * change each time, several threads run one loop, and failures leak nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/text.h>

#include <pthread.h>
#include <string.h>

#include "unit/scarce.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> "

/* A loop around a loop and a branch, with something carried, something stacked and something captured. */
static const char nested[] =
    HEAD "g (int64 n, float[2] x) => (float[2] y, float[?,2] z) {"
         "  one = Constant <value_int = 1> ()"
         "  two = Size (x)"
         "  three = Add (one, two)" /* a constant would be unrolled */
         "  y, z = Loop <body = outer (int64 i, bool go, float[2] a) => (bool on, float[2] b, float[2] e) {"
         "    on = Identity (go)"
         "    c = Loop <body = inner (int64 j, bool go2, float[2] p) => (bool on2, float[2] q) {"
         "      on2 = Identity (go2)"
         "      big = Less (j, i)"
         "      q = If (big) <then_branch = yes () => (float[2] v) { v = Add (p, x) },"
         "                    else_branch = no () => (float[2] v) { v = Neg (p) }>"
         "    }> (three, , a)"
         "    b = Tanh (c)"
         "    e = Identity (b)"
         "  }> (n, , x)"
         "}";

/* A sequence with a tensor more after each iteration, joined. */
static const char growing[] = HEAD
    "g (int64 n, float[2] x) => (float[?] y, float[?] z) {"
    "  s = SequenceEmpty ()"
    "  t, z = Loop <body = step (int64 i, bool go, seq(float[?]) c, float[?] a) => (bool on, seq(float[?]) d, float[?] b) {"
    "    on = Identity (go)"
    "    d = SequenceInsert (c, a)"
    "    b = Concat <axis = 0> (a, x)"
    "  }> (n, , s, x)"
    "  y = ConcatFromSequence <axis = 0> (t)"
    "}";

static onx_doc *parse(onx_ctx *cx, const char *text)
{
    onx_doc *doc;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    return doc;
}

static onx_value *count_of(onx_ctx *cx, int64_t n)
{
    onx_value *v;
    assert_int_equal(onx_value_new_tensor(cx, ONX_INT64, 0, NULL, &v), ONX_OK);
    memcpy(v->data, &n, sizeof n);
    return v;
}

static onx_value *pair(onx_ctx *cx, float a, float b)
{
    onx_value *v;
    int64_t dims[] = { 2 };
    const float numbers[] = { a, b };
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, dims, &v), ONX_OK);
    memcpy(v->data, numbers, sizeof numbers);
    return v;
}

static onx_status run_with(onx_session *s, onx_ctx *cx, int64_t n, onx_value **out, const onx_run_options *options)
{
    onx_value *in[] = { count_of(cx, n), pair(cx, 0.25f, -0.5f) };
    onx_status status = onx_session_run_with(s, cx, (const onx_value *const *)in, out, options);
    onx_value_free(in[0]);
    onx_value_free(in[1]);
    return status;
}

static onx_status run(onx_session *s, onx_ctx *cx, int64_t n, onx_value **out)
{
    return run_with(s, cx, n, out, NULL);
}

static void free_both(onx_value **out)
{
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    out[0] = out[1] = NULL;
}

static void test_run_subgraph__iterations_allocate_nothing(void **state)
{
    (void)state;
    scarce_memory memory = { 0 };
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ scarce_resize, &memory });
    onx_doc *doc = parse(cx, nested);
    onx_session *s;
    onx_value *out[2] = { NULL };
    unsigned calls[2];
    const int64_t counts[] = { 2, 500 };
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1 }, &s), ONX_OK);
    for (int64_t n = 500; n > 490; n--) /* everything is as large as it will be, whichever value holds it */
        assert_int_equal(run(s, cx, n, out), ONX_OK);
    for (int i = 0; i < 2; i++) {
        unsigned before = memory.calls;
        assert_int_equal(run(s, cx, counts[i], out), ONX_OK);
        calls[i] = memory.calls - before;
        assert_int_equal(out[1]->dims[0], counts[i]);
    }
    assert_int_equal(calls[0], calls[1]);
    free_both(out);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    assert_int_equal(memory.in_use, 0);
}

/* More shapes than plans are kept, forth and back. */
static void test_run_subgraph__shapes_change_every_time(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, growing);
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1 }, &s), ONX_OK);
    for (int64_t n = 1; n < 40; n += 6) {
        onx_value *out[2] = { NULL };
        assert_int_equal(run(s, cx, n, out), ONX_OK);
        assert_int_equal(out[0]->dims[0], n * (n + 1));
        assert_int_equal(out[1]->dims[0], 2 * (n + 1));
        for (uint64_t i = 0; i < out[0]->count; i++)
            assert_true(((const float *)out[0]->data)[i] == (i % 2 ? -0.5f : 0.25f));
        free_both(out);
    }
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* Small states of more shapes than a session keeps large plans for are kept from run to run, unless memory is scarce.
 */
static void test_run_subgraph__states_are_kept(void **state)
{
    enum { SHAPES = 30, OF_STATE = 8 }; /* a state takes more allocations than that */
    unsigned calls[2];
    (void)state;
    for (int lean = 0; lean < 2; lean++) {
        scarce_memory memory = { 0 };
        onx_ctx *cx = onx_ctx_new(&(onx_allocator){ scarce_resize, &memory });
        onx_doc *doc = parse(cx, growing);
        onx_session *s;
        onx_value *out[2] = { NULL };
        const onx_session_options options = { .verify = true, .threads = 1, .lean_memory = lean };
        assert_int_equal(onx_session_new(cx, doc, &options, &s), ONX_OK);
        for (int i = 0; i < 3; i++) {
            const unsigned before = memory.calls;
            assert_int_equal(run(s, cx, SHAPES, out), ONX_OK);
            calls[lean] = memory.calls - before;
        }
        free_both(out);
        onx_session_free(s);
        onx_doc_free(doc);
        onx_ctx_free(cx);
        assert_int_equal(memory.in_use, 0);
    }
    assert_true(calls[0] + SHAPES * OF_STATE < calls[1]);
}

typedef struct job {
    onx_session *s;
    const onx_value *want;
    bool right;
} job;

static void *worker(void *user)
{
    job *j = user;
    onx_ctx *cx = onx_ctx_new(NULL);
    j->right = cx != NULL;
    for (int i = 0; i < 20 && j->right; i++) {
        onx_value *out[2] = { NULL };
        j->right =
            run(j->s, cx, 12, out) == ONX_OK && onx_value_close(out[0], j->want, 0, 0, &(onx_value_difference){ 0 });
        free_both(out);
    }
    onx_ctx_free(cx);
    return NULL;
}

static void test_run_subgraph__many_threads(void **state)
{
    (void)state;
    const char *const models[] = { nested, growing };
    for (int m = 0; m < 2; m++) {
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc = parse(cx, models[m]);
        onx_session *s;
        onx_value *out[2] = { NULL };
        assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1 }, &s), ONX_OK);
        assert_int_equal(run(s, cx, 12, out), ONX_OK);
        pthread_t threads[4];
        job jobs[4];
        for (int i = 0; i < 4; i++) {
            jobs[i] = (job){ s, out[0], false };
            assert_int_equal(pthread_create(&threads[i], NULL, worker, &jobs[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            assert_true(jobs[i].right);
        }
        free_both(out);
        onx_session_free(s);
        onx_doc_free(doc);
        onx_ctx_free(cx);
    }
}

static void test_run_subgraph__bounded_iterations(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, nested);
    onx_session *s;
    onx_value *out[2] = { NULL };
    const onx_run_options limited = { .iterations = 35 }; /* of one outer iteration: 1 + 3 * 2 */
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1 }, &s), ONX_OK);
    assert_int_equal(run_with(s, cx, 5, out, &limited), ONX_OK);
    assert_int_equal(run_with(s, cx, 5, out, &limited), ONX_OK); /* each run counts anew */
    assert_int_equal(run_with(s, cx, 6, out, &limited), ONX_E_LIMIT);
    assert_int_equal(run_with(s, cx, INT64_MAX, out, &limited), ONX_E_LIMIT);
    assert_int_equal(run(s, cx, 6, out), ONX_OK);
    free_both(out);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* What a loop collects counts against the memory of the session, and so do the buffers for its shapes. */
static void test_run_subgraph__bounded_memory(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, growing);
    onx_session *s;
    onx_value *out[2] = { NULL };
    onx_session_options options = { .verify = true, .threads = 1, .memory = 2 << 20 };
    assert_int_equal(onx_session_new(cx, doc, &options, &s), ONX_OK);
    assert_int_equal(run(s, cx, 300, out), ONX_OK); /* items of 363 kB in all */
    assert_int_equal(run(s, cx, 3000, out), ONX_E_LIMIT);
    assert_int_equal(onx_diag_get(cx, onx_diag_count(cx) - 1)->status, ONX_E_LIMIT);
    assert_int_equal(run(s, cx, 300, out), ONX_OK);
    free_both(out);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* Each allocation fails once: an error is told, nothing leaks, and the session runs again. */
static void test_run_subgraph__out_of_memory(void **state)
{
    (void)state;
    const char *const models[] = { nested, growing };
    for (int m = 0; m < 2; m++) {
        bool done = false;
        for (unsigned n = 1; !done; n++) {
            scarce_memory memory = { .failing = n };
            onx_ctx *good = onx_ctx_new(NULL), *cx = onx_ctx_new(&(onx_allocator){ scarce_resize, &memory });
            if (!cx) {
                onx_ctx_free(good);
                continue;
            }
            onx_doc *doc = parse(good, models[m]);
            onx_session *s;
            onx_value *out[2] = { NULL };
            onx_status status = onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1 }, &s);
            if (status == ONX_OK) {
                status = run(s, good, 4, out);
                assert_true(status == ONX_OK || status == ONX_E_MEMORY);
                if (status != ONX_OK)
                    assert_int_equal(run(s, good, 4, out), ONX_OK);
            }
            done = memory.calls < n;
            free_both(out);
            onx_session_free(s);
            onx_doc_free(doc);
            onx_ctx_free(cx);
            onx_ctx_free(good);
            assert_int_equal(memory.in_use, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_subgraph__iterations_allocate_nothing),
        cmocka_unit_test(test_run_subgraph__states_are_kept),
        cmocka_unit_test(test_run_subgraph__shapes_change_every_time),
        cmocka_unit_test(test_run_subgraph__many_threads),
        cmocka_unit_test(test_run_subgraph__bounded_iterations),
        cmocka_unit_test(test_run_subgraph__bounded_memory),
        cmocka_unit_test(test_run_subgraph__out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

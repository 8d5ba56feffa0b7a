/* test_run_session.c - plans follow the shapes of inputs, several threads share a session, failures are reported and
 * leak nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/check.h>

#include "unit/run_random.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- shapes, overrides, sharing ---- */

static const char chain[] =
    "<ir_version: 8, opset_import: [\"\" : 15]>\n"
    "g (float[N,M] x, float[1] bias = {1}) => (float[N,M] y, float[P] flat) {\n"
    "  a = Add (x, bias) b = Mul (a, a) y = Neg (b) s = Size (x)\n"
    "  zero = Constant <value_ints = [0]> () one = Unsqueeze (s, zero) flat = Reshape (b, one) }";

static void check_chain(onx_session *s, onx_ctx *cx, int64_t n, int64_t m, float bias)
{
    onx_value *x, *b = NULL, *out[2] = { NULL };
    int64_t dims[] = { n, m }, one = 1;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &x), ONX_OK);
    for (uint64_t i = 0; i < x->count; i++)
        ((float *)x->data)[i] = (float)i;
    if (bias != 1) {
        assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, &one, &b), ONX_OK);
        *(float *)b->data = bias;
    }
    for (int again = 0; again < 2; again++) { /* outputs are reused the second time */
        assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x, b }, out), ONX_OK);
        assert_int_equal(out[0]->rank, 2);
        assert_int_equal(out[0]->dims[0], n);
        assert_int_equal(out[1]->rank, 1);
        assert_int_equal(out[1]->dims[0], n * m);
        for (uint64_t i = 0; i < x->count; i++) {
            assert_true(((float *)out[0]->data)[i] == -((float)i + bias) * ((float)i + bias));
            assert_true(((float *)out[1]->data)[i] == ((float)i + bias) * ((float)i + bias));
        }
    }
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    onx_value_free(x);
    onx_value_free(b);
}

static void test_run_session__shapes_and_overrides(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, chain);
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, NULL, &s), ONX_OK);
    assert_true(onx_session_input(s, 0).required);
    assert_false(onx_session_input(s, 1).required);
    for (int round = 0; round < 3; round++)
        for (int64_t n = 0; n < 70; n++) /* more shapes than plans are kept for */
            check_chain(s, cx, n, 3, n % 3 ? 1.0f : 2.0f);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void *worker(void *session)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    for (int64_t i = 0; i < 60; i++)
        check_chain(session, cx, 1 + i % 11, 5, i % 2 ? 1.0f : 3.0f);
    onx_ctx_free(cx);
    return NULL;
}

static void test_run_session__many_threads(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, chain);
    onx_session *s;
    pthread_t threads[4];
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .threads = 1 }, &s), ONX_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, s), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* ---- failures ---- */

static void refuse(const char *model, onx_status want, uint64_t memory)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, model);
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .memory = memory, .strict = true }, &s), want);
    assert_null(s);
    assert_true(onx_diag_total(cx, ONX_ERROR) > 0);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_run_session__refusals(void **state)
{
    (void)state;
    refuse("<ir_version: 8, opset_import: [\"\" : 15]> g (float[2] x) => (float[2] y) { y = Add (x, z) z = Neg (x) }",
           ONX_E_INVALID, 0);
    refuse("<ir_version: 8, opset_import: [\"\" : 15]> g (float[2] x) => (float[2] y) { y = Neg (y) }", ONX_E_INVALID,
           0);
    refuse("<ir_version: 8, opset_import: [\"\" : 15]> g (float[2] x) => (float[2] y) { z = Neg (x) }", ONX_E_INVALID,
           0);
    refuse("<ir_version: 8, opset_import: [\"\" : 15]> g (float[2] x) => (float[2] y) { y = NoSuchOperator (x) }",
           ONX_E_INVALID, 0);
    refuse("<ir_version: 8, opset_import: [\"\" : 15]> g (float[2] x) => (float[2] y) { y = Add (x) }", ONX_E_INVALID,
           0);
    refuse(
        "<ir_version: 8, opset_import: [\"\" : 15]> g (int64[2] x = {1000000, 1000000}) => (float[A,B] y) { y = ConstantOfShape (x) }",
        ONX_E_LIMIT, 1 << 20);
    refuse(
        "<ir_version: 8, opset_import: [\"\" : 15]> g (int64[2] x = {4611686018427387904, 4}) => (float[A,B] y) { y = ConstantOfShape (x) }",
        ONX_E_LIMIT, 0);
    refuse(
        "<ir_version: 8, opset_import: [\"\" : 15]> g (float[1000,1000] x) => (float[A,B] y) { a = Exp (x) b = Exp (a) y = MatMul (a, b) }",
        ONX_E_LIMIT, 1 << 20);
    refuse("<ir_version: 8, opset_import: [\"\" : 15, \"f\" : 1]> g (float[2] x) => (float[2] y) { y = f.f (x) }"
           "<domain: \"f\", opset_import: [\"f\" : 1]> f (a) => (b) { b = f.f (a) }",
           ONX_E_INVALID, 0);
}

/* The checker wants shapes of a model's inputs; a run needs none, because values bring theirs. */
static void test_run_session__no_declared_shape(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "<ir_version: 8, opset_import: [\"\" : 17]> g (float x) => (float y) { y = Neg (x) }");
    onx_graph *g = onx_doc_model(doc)->graph;
    g->input[0]->type->tensor_type->shape = NULL;
    g->output[0]->type->tensor_type->shape = NULL;
    onx_check_options check = { .only = (const char *const[]){ "G-09" }, .only_count = 1 };
    assert_int_equal(onx_check(cx, doc, &check, NULL), ONX_E_INVALID);
    onx_diag_clear(cx);
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .threads = 1 }, &s), ONX_OK);
    for (int64_t n = 1; n < 4; n++) {
        onx_value *x = random_floats(cx, 1, &n), *y = NULL;
        assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
        assert_true(y->rank == 1 && y->dims[0] == n);
        onx_value_free(x);
        onx_value_free(y);
    }
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_run_session__wrong_inputs(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, chain);
    onx_session *s;
    int64_t dims[] = { 2, 2, 2 };
    onx_value *out[2] = { NULL }, *x = random_floats(cx, 3, dims), *i;
    assert_int_equal(onx_value_new_tensor(cx, ONX_INT64, 2, dims, &i), ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, NULL, &s), ONX_OK);
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ NULL, NULL }, out), ONX_E_MISUSE);
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x, NULL }, out), ONX_E_INVALID);
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ i, NULL }, out), ONX_E_INVALID);
    check_chain(s, cx, 2, 2, 1);
    onx_value_free(x);
    onx_value_free(i);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* ---- every allocation fails in turn ---- */

static long left;
static void *failing(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user, (void)old_size;
    if (!new_size) {
        free(ptr);
        return NULL;
    }
    return left-- > 0 ? realloc(ptr, new_size) : NULL;
}

static void run_with_few(const char *text)
{
    onx_ctx *good = onx_ctx_new(NULL);
    onx_doc *doc = parse(good, text);
    int64_t dims[] = { 2, 2 };
    onx_value *x = random_floats(good, 2, dims);
    bool done = false;
    for (long n = 0; n < 4000 && !done; n++) {
        left = n;
        onx_ctx *cx = onx_ctx_new(&(onx_allocator){ failing, NULL });
        if (!cx)
            continue;
        onx_session *s;
        onx_value *out[2] = { NULL };
        onx_status status = onx_session_new(cx, doc, &(onx_session_options){ .threads = 1 }, &s);
        if (status == ONX_OK)
            status = onx_session_run(s, cx, (const onx_value *const[]){ x, NULL }, out);
        assert_true(status == ONX_OK || status == ONX_E_MEMORY);
        done = status == ONX_OK;
        onx_value_free(out[0]);
        onx_value_free(out[1]);
        onx_session_free(s);
        onx_ctx_free(cx);
    }
    assert_true(done);
    onx_value_free(x);
    onx_doc_free(doc);
    onx_ctx_free(good);
}

/* Also while a copy of the model is made that computes gradients. */
static void test_run_session__out_of_memory(void **state)
{
    (void)state;
    run_with_few(chain);
    run_with_few("<ir_version: 8, opset_import: [\"\" : 15, \"ai.onnx.preview.training\" : 1]>\n"
                 "g (float[2,2] x) => (float[2,2] y) {\n"
                 "  a = Mul (x, x) y = ai.onnx.preview.training.Gradient <xs = [\"x\"], y = \"a\"> (x) }");
}

/* Also where the shape of the output depends on data, so that the kernel is prepared by every run anew. */
static void test_run_session__attributes_are_checked_while_planning(void **state)
{
    (void)state;
    static const char *const models[] = {
        "<ir_version: 8, opset_import: [\"\" : 17]> g (string[1] x) => (string[?] y) {"
        " y = StringNormalizer <case_change_action = \"TITLE\"> (x) }",
        "<ir_version: 8, opset_import: [\"ai.onnx.ml\" : 1]> g (float[1,3] x) => (seq(map(int64, float)) y) {"
        " y = ai.onnx.ml.ZipMap <classlabels_int64s = [1, 2]> (x) }",
        "<ir_version: 8, opset_import: [\"ai.onnx.ml\" : 1]> g (float[1,1] x) => (int64[1] a, float[1,?] b) {"
        " a, b = ai.onnx.ml.SVMClassifier <classlabels_ints = [5, 6], coefficients = [1.0], rho = [0.1]> (x) }",
    };
    onx_ctx *cx = onx_ctx_new(NULL);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        onx_doc *doc = parse(cx, models[i]);
        onx_session *s;
        assert_int_equal(onx_session_new(cx, doc, NULL, &s), ONX_E_INVALID);
        onx_session_free(s);
        onx_doc_free(doc);
        onx_diag_clear(cx);
    }
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_session__shapes_and_overrides),
        cmocka_unit_test(test_run_session__many_threads),
        cmocka_unit_test(test_run_session__refusals),
        cmocka_unit_test(test_run_session__no_declared_shape),
        cmocka_unit_test(test_run_session__wrong_inputs),
        cmocka_unit_test(test_run_session__out_of_memory),
        cmocka_unit_test(test_run_session__attributes_are_checked_while_planning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

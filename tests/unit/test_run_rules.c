/* test_run_rules.c - the rules that only a running model can break: each with an example that breaks it and one that
 * follows it. The table of tests/cases/check names these functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/text.h>

#define HEAD "<ir_version: 8, opset_import: [\"\" : 15, \"com.example\" : 1]> "

typedef struct fixture {
    onx_ctx *cx;
    onx_doc *doc;
    onx_session *session;
} fixture;

static onx_status open_with(fixture *f, const char *text, const onx_session_options *options)
{
    f->session = NULL;
    f->cx = onx_ctx_new(NULL);
    assert_int_equal(onx_text_parse(f->cx, ONX_KIND_MODEL, onx_str_of(text), 0, &f->doc), ONX_OK);
    return onx_session_new(f->cx, f->doc, options, &f->session);
}

static onx_status open_model(fixture *f, const char *text, const onx_kernel *kernels)
{
    return open_with(f, text, &(onx_session_options){ .verify = true, .threads = 1, .kernels = kernels });
}

static void close_model(fixture *f)
{
    onx_session_free(f->session);
    onx_doc_free(f->doc);
    onx_ctx_free(f->cx);
}

static bool has_rule(const fixture *f, const char *rule)
{
    for (size_t i = 0; i < onx_diag_count(f->cx); i++)
        if (onx_diag_get(f->cx, i)->rule && strcmp(onx_diag_get(f->cx, i)->rule, rule) == 0)
            return true;
    return false;
}

/* A vector 0, 1, 2, ... */
static onx_value *vector(fixture *f, onx_dtype dtype, int64_t size)
{
    onx_value *v;
    assert_int_equal(onx_value_new_tensor(f->cx, dtype, 1, &size, &v), ONX_OK);
    for (int64_t i = 0; i < size; i++)
        if (dtype == ONX_FLOAT)
            ((float *)v->data)[i] = (float)i;
    return v;
}

static onx_status run(fixture *f, onx_value *a, onx_value *b)
{
    onx_value *out[2] = { NULL };
    onx_status status = onx_session_run(f->session, f->cx, (const onx_value *const[]){ a, b }, out);
    onx_value_free(a);
    onx_value_free(b);
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    return status;
}

/* ---- M-12: nothing runs that is understood only in part ---- */

static onx_status copy_types(onx_prepare *p)
{
    return onx_prepare_output(p, 0, ONX_FLOAT, p->inputs[0]->rank, p->inputs[0]->dims);
}

static onx_status copy_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    memcpy(work->outputs[0]->data, work->inputs[0]->data, work->inputs[0]->count * sizeof(float));
    return ONX_OK;
}

static const onx_kernel own[] = { { .op = "Copy",
                                    .domain = "com.example",
                                    .since = 1,
                                    .dtypes = ONX_DTYPE_BIT(ONX_FLOAT),
                                    .run = copy_run,
                                    .types = copy_types },
                                  { 0 } };
static const char custom[] = HEAD "g (float[N] x) => (float[N] y, float[N] z) { y = Neg (x) z = com.example.Copy (x) }";

/* M-12: one node of many that nothing can run, so no session. */
static void test_run_rules__m12_broken(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(open_model(&f, custom, NULL), ONX_E_UNSUPPORTED);
    assert_null(f.session);
    close_model(&f);
}

/* M-12: the same model with a kernel for the operator. */
static void test_run_rules__m12_held(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(open_model(&f, custom, own), ONX_OK);
    assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 3), NULL), ONX_OK);
    close_model(&f);
}

/* ---- M-15, G-26: no state, no side effects ---- */

static const char stateless[] =
    HEAD "g (float[N] x) => (float[N] y, float[N] w)\n"
         "<float[3] v = {1, 2, 3}> { a = Add (x, v) b = Mul (a, v) y = Relu (b) w = Neg (v) }";

/* M-15, G-26: the same inputs give the same bits again, and neither inputs nor initializers change. */
static void test_run_rules__m15_g26_held(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(open_model(&f, stateless, NULL), ONX_OK);
    onx_value *x = vector(&f, ONX_FLOAT, 3), *first[2] = { NULL }, *again[2] = { NULL };
    const float before[] = { 0, 1, 2 };
    const uint64_t size = 3 * sizeof(float);
    assert_int_equal(onx_session_run(f.session, f.cx, (const onx_value *const[]){ x }, first), ONX_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(onx_session_run(f.session, f.cx, (const onx_value *const[]){ x }, again), ONX_OK);
        assert_memory_equal(first[0]->data, again[0]->data, size);
        assert_memory_equal(first[1]->data, again[1]->data, size);
    }
    assert_memory_equal(x->data, before, size);
    uint32_t count = onx_doc_model(f.doc)->graph->initializer_count;
    assert_int_equal(count, 1);
    const onx_tensor *v = onx_doc_model(f.doc)->graph->initializer[0];
    const float weights[] = { 1, 2, 3 };
    assert_int_equal(v->float_data_count, 3);
    assert_memory_equal(v->float_data, weights, size);
    onx_value_free(x);
    for (int i = 0; i < 2; i++) {
        onx_value_free(first[i]);
        onx_value_free(again[i]);
    }
    close_model(&f);
}

/* M-15, G-26: what a caller does to results must not come back: outputs share memory neither with initializers, nor
 * with inputs that are passed through, nor with each other. */
static void test_run_rules__m15_g26_broken_from_outside(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(open_model(&f,
                                HEAD "g (float[N] x) => (float[N] y, float[3] w) <float[3] v = {1, 2, 3}>"
                                     "{ y = Identity (x) w = Identity (v) }",
                                NULL),
                     ONX_OK);
    onx_value *x = vector(&f, ONX_FLOAT, 3), *out[2] = { NULL };
    for (int round = 0; round < 2; round++) {
        assert_int_equal(onx_session_run(f.session, f.cx, (const onx_value *const[]){ x }, out), ONX_OK);
        for (int i = 0; i < 3; i++) {
            assert_true(((float *)x->data)[i] == (float)i);
            assert_true(((float *)out[0]->data)[i] == (float)i);
            assert_true(((float *)out[1]->data)[i] == (float)i + 1);
        }
        memset(out[0]->data, 0x55, 3 * sizeof(float));
        memset(out[1]->data, 0x55, 3 * sizeof(float));
    }
    onx_value_free(x);
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    close_model(&f);
}

/* ---- TY-15, TY-16, TY-19: what is bound to inputs ---- */

static const char two_inputs[] = HEAD "g (float[N] a, float[N] b) => (float[N] y, float[M] z) "
                                      "{ y = Neg (a) z = Neg (b) }";

static void test_run_rules__ty15_broken(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(open_model(&f, two_inputs, NULL), ONX_OK);
    assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 2), vector(&f, ONX_FLOAT, 3)), ONX_OK);
    assert_true(has_rule(&f, "TY-15"));
    assert_int_equal(onx_diag_get(f.cx, 0)->severity, ONX_WARNING);
    onx_diag_clear(f.cx); /* once per session */
    assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 2), vector(&f, ONX_FLOAT, 4)), ONX_OK);
    assert_false(has_rule(&f, "TY-15"));
    close_model(&f);
}

/* TY-15: texts that name no size. */
static void test_run_rules__ty15_no_names(void **state)
{
    (void)state;
    static const char *const texts[] = { "?", "None", "unk__3", "-1", "*", "" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fixture f;
        assert_int_equal(open_model(&f, two_inputs, NULL), ONX_OK);
        onx_graph *g = onx_doc_model(f.doc)->graph;
        for (uint32_t k = 0; k < g->input_count; k++)
            assert_int_equal(onx_arena_keep(onx_doc_arena(f.doc), onx_str_of(texts[i]),
                                            &g->input[k]->type->tensor_type->shape->dim[0]->dim_param),
                             ONX_OK);
        assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 2), vector(&f, ONX_FLOAT, 3)), ONX_OK);
        assert_false(has_rule(&f, "TY-15"));
        close_model(&f);
    }
}

/* What a run makes decides, not a name that two sizes have: one element is broadcast. */
static void test_run_rules__ty15_broadcast(void **state)
{
    (void)state;
    fixture f;
    onx_value *out = NULL;
    assert_int_equal(open_model(&f, HEAD "g (float[N] a, float[N] b) => (float[N] y) { y = Add (a, b) }", NULL),
                     ONX_OK);
    for (int turn = 0; turn < 3; turn++) {
        onx_value *a = vector(&f, ONX_FLOAT, turn == 1 ? 1 : 3), *b = vector(&f, ONX_FLOAT, turn == 2 ? 3 : 1);
        assert_int_equal(onx_session_run(f.session, f.cx, (const onx_value *const[]){ a, b }, &out), ONX_OK);
        assert_int_equal(out->rank, 1);
        assert_int_equal(out->dims[0], turn == 1 ? 1 : 3);
        onx_value_free(a);
        onx_value_free(b);
        onx_value_free(out);
        out = NULL;
    }
    close_model(&f);
}

/* TY-20: a type or a numeric size that the result does not have; once per output. */
static void test_run_rules__ty20_broken(void **state)
{
    (void)state;
    static const char *const wrong[] = { "float[1]", "float[2,2]", "int64[2]" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[256];
        fixture f;
        snprintf(text, sizeof text, HEAD "g (float[N] a, float[M] b) => (%s y, float[M] z) { y = Neg (a) z = Neg (b) }",
                 wrong[i]);
        assert_int_equal(open_model(&f, text, NULL), ONX_OK);
        assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 2), vector(&f, ONX_FLOAT, 3)), ONX_OK);
        assert_true(has_rule(&f, "TY-20"));
        assert_int_equal(onx_diag_count(f.cx), 1);
        assert_int_equal(onx_diag_get(f.cx, 0)->severity, ONX_WARNING);
        onx_diag_clear(f.cx);
        assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 2), vector(&f, ONX_FLOAT, 3)), ONX_OK);
        assert_int_equal(onx_diag_count(f.cx), 0);
        close_model(&f);
    }
}

/* TY-20: what is declared, or what says nothing. */
static void test_run_rules__ty20_held(void **state)
{
    (void)state;
    static const char *const right[] = { "float[2]", "float[?]", "float[K]", "float" };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        char text[256];
        fixture f;
        snprintf(text, sizeof text, HEAD "g (float[N] a, float[M] b) => (%s y, float[M] z) { y = %s (a) z = Neg (b) }",
                 right[i], strcmp(right[i], "float") == 0 ? "ReduceSum <keepdims = 0>" : "Neg");
        assert_int_equal(open_model(&f, text, NULL), ONX_OK);
        assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 2), vector(&f, ONX_FLOAT, 3)), ONX_OK);
        assert_false(has_rule(&f, "TY-20"));
        close_model(&f);
    }
}

/* TY-15: a size of its own in each run. */
static void test_run_rules__ty15_held(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(open_model(&f, two_inputs, NULL), ONX_OK);
    assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 2), vector(&f, ONX_FLOAT, 2)), ONX_OK);
    assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 3), vector(&f, ONX_FLOAT, 3)), ONX_OK);
    close_model(&f);
}

/* TY-15: more variables than are looked up without a table. */
static void test_run_rules__ty15_many_variables(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static char text[8192];
    size_t n = (size_t)snprintf(text, sizeof text, HEAD "g (");
    for (int i = 0; i < COUNT; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%sfloat[N%d] x%d", i ? ", " : "", i / 2 % 99, i);
    snprintf(text + n, sizeof text - n, ") => (float[N0] y) { y = Neg (x0) }");
    for (int wrong = 0; wrong < 2; wrong++) {
        fixture f;
        onx_value *in[COUNT], *out = NULL;
        assert_int_equal(open_model(&f, text, NULL), ONX_OK);
        for (int i = 0; i < COUNT; i++)
            in[i] = vector(&f, ONX_FLOAT, 1 + i / 2 % 99 + (wrong && i == COUNT - 1));
        assert_int_equal(onx_session_run(f.session, f.cx, (const onx_value *const *)in, &out), ONX_OK);
        assert_int_equal(has_rule(&f, "TY-15"), wrong);
        onx_value_free(out);
        for (int i = 0; i < COUNT; i++)
            onx_value_free(in[i]);
        close_model(&f);
    }
}

static onx_value *sequence(fixture *f, onx_dtype second, int64_t size)
{
    onx_value *s, *items[] = { vector(f, ONX_FLOAT, 2), vector(f, second, size) };
    assert_int_equal(onx_value_new(f->cx, &s), ONX_OK);
    assert_int_equal(onx_value_reset_list(s, ONX_VALUE_SEQUENCE, ONX_FLOAT), ONX_OK);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(onx_value_insert(s, i, items[i]), ONX_OK);
        onx_value_free(items[i]);
    }
    return s;
}

static const char of_sequence[] = HEAD "g (seq(float[N]) s, float[M] x) => (float[M] y) { y = Neg (x) }";

static void test_run_rules__ty16_broken(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(open_model(&f, of_sequence, NULL), ONX_OK);
    assert_int_equal(run(&f, sequence(&f, ONX_FLOAT, 3), vector(&f, ONX_FLOAT, 1)), ONX_OK);
    assert_true(has_rule(&f, "TY-16"));
    assert_int_equal(onx_diag_get(f.cx, 0)->severity, ONX_WARNING);
    close_model(&f);
}

/* TY-16: equal sizes, or a type that promises none. */
static void test_run_rules__ty16_held(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(open_model(&f, of_sequence, NULL), ONX_OK);
    assert_int_equal(run(&f, sequence(&f, ONX_FLOAT, 2), vector(&f, ONX_FLOAT, 1)), ONX_OK);
    assert_false(has_rule(&f, "TY-16"));
    close_model(&f);
    assert_int_equal(open_model(&f, HEAD "g (seq(float[?]) s, float[M] x) => (float[M] y) { y = Neg (x) }", NULL),
                     ONX_OK);
    assert_int_equal(run(&f, sequence(&f, ONX_FLOAT, 3), vector(&f, ONX_FLOAT, 1)), ONX_OK);
    close_model(&f);
}

/* TY-19: another element type, rank, size, kind; also inside of a sequence. */
static void test_run_rules__ty19_broken(void **state)
{
    (void)state;
    fixture f;
    const char *one = HEAD "g (float[2] x) => (float[2] y) { y = Neg (x) }";
    const int64_t dims[] = { 2, 1 };
    onx_value *matrix;
    assert_int_equal(open_model(&f, one, NULL), ONX_OK);
    assert_int_equal(run(&f, vector(&f, ONX_INT64, 2), NULL), ONX_E_INVALID);
    assert_true(has_rule(&f, "TY-19"));
    onx_diag_clear(f.cx);
    assert_int_equal(onx_value_new_tensor(f.cx, ONX_FLOAT, 2, dims, &matrix), ONX_OK);
    assert_int_equal(run(&f, matrix, NULL), ONX_E_INVALID);
    assert_true(has_rule(&f, "TY-19"));
    onx_diag_clear(f.cx);
    assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 3), NULL), ONX_E_INVALID);
    assert_true(has_rule(&f, "TY-19"));
    onx_diag_clear(f.cx);
    assert_int_equal(run(&f, sequence(&f, ONX_FLOAT, 2), NULL), ONX_E_INVALID);
    assert_true(has_rule(&f, "TY-19"));
    close_model(&f);
    assert_int_equal(open_model(&f, of_sequence, NULL), ONX_OK);
    assert_int_equal(run(&f, sequence(&f, ONX_INT64, 2), vector(&f, ONX_FLOAT, 1)), ONX_E_INVALID);
    assert_true(has_rule(&f, "TY-19"));
    close_model(&f);
}

/* TY-19: what fits; a negative size says nothing (TY-12). */
static void test_run_rules__ty19_held(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(open_model(&f, HEAD "g (float[2] x) => (float[2] y) { y = Neg (x) }", NULL), ONX_OK);
    assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 2), NULL), ONX_OK);
    close_model(&f);
}

/* A list of one element passes for a scalar, unless the session is strict; longer lists and matrices never do. */
static void test_run_rules__ty19_scalars(void **state)
{
    (void)state;
    const char *scalar = HEAD "g (float x, int64 n) => (float y) { z = Cast <to = 1> (n) y = Add (x, z) }";
    const int64_t dims[] = { 1, 1 };
    fixture f;
    onx_value *matrix;
    assert_int_equal(open_model(&f, scalar, NULL), ONX_OK);
    assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 1), vector(&f, ONX_INT64, 1)), ONX_OK);
    assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 2), vector(&f, ONX_INT64, 1)), ONX_E_INVALID);
    assert_true(has_rule(&f, "TY-19"));
    onx_diag_clear(f.cx);
    assert_int_equal(run(&f, vector(&f, ONX_INT64, 1), vector(&f, ONX_INT64, 1)), ONX_E_INVALID);
    assert_true(has_rule(&f, "TY-19"));
    onx_diag_clear(f.cx);
    assert_int_equal(onx_value_new_tensor(f.cx, ONX_FLOAT, 2, dims, &matrix), ONX_OK);
    assert_int_equal(run(&f, matrix, vector(&f, ONX_INT64, 1)), ONX_E_INVALID);
    assert_true(has_rule(&f, "TY-19"));
    close_model(&f);
    assert_int_equal(open_with(&f, scalar, &(onx_session_options){ .strict = true }), ONX_OK);
    assert_int_equal(run(&f, vector(&f, ONX_FLOAT, 1), vector(&f, ONX_INT64, 1)), ONX_E_INVALID);
    assert_true(has_rule(&f, "TY-19"));
    close_model(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_rules__m12_broken),
        cmocka_unit_test(test_run_rules__m12_held),
        cmocka_unit_test(test_run_rules__m15_g26_held),
        cmocka_unit_test(test_run_rules__m15_g26_broken_from_outside),
        cmocka_unit_test(test_run_rules__ty15_broken),
        cmocka_unit_test(test_run_rules__ty15_no_names),
        cmocka_unit_test(test_run_rules__ty15_broadcast),
        cmocka_unit_test(test_run_rules__ty20_broken),
        cmocka_unit_test(test_run_rules__ty20_held),
        cmocka_unit_test(test_run_rules__ty15_held),
        cmocka_unit_test(test_run_rules__ty15_many_variables),
        cmocka_unit_test(test_run_rules__ty16_broken),
        cmocka_unit_test(test_run_rules__ty16_held),
        cmocka_unit_test(test_run_rules__ty19_broken),
        cmocka_unit_test(test_run_rules__ty19_held),
        cmocka_unit_test(test_run_rules__ty19_scalars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

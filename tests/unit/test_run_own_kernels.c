/* test_run_own_kernels.c - kernels of the caller: they are tried in order, before registered and built-in ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <onx/kernel.h>

#include "unit/run_random.h"

static onx_status twice_types(onx_prepare *p)
{
    return onx_prepare_output(p, 0, ONX_FLOAT, p->inputs[0]->rank, p->inputs[0]->dims);
}

static onx_status twice_prepare(onx_prepare *p)
{
    float *by = onx_arena_alloc(p->arena, sizeof *by);
    if (!by)
        return ONX_E_MEMORY;
    *by = onx_prepare_float(p, "by");
    p->params = by;
    return ONX_OK;
}

static onx_status twice_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    float by = *(const float *)work->params;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++)
        ((float *)work->outputs[0]->data)[i] = by * ((const float *)work->inputs[0]->data)[i];
    return ONX_OK;
}

static void test_run_own_kernels__own_kernel(void **state)
{
    (void)state;
    static const onx_kernel own[] = { { .op = "Times",
                                        .domain = "own",
                                        .since = 1,
                                        .dtypes = ONX_DTYPE_BIT(ONX_FLOAT),
                                        .prepare = twice_prepare,
                                        .run = twice_run,
                                        .types = twice_types },
                                      { 0 } };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(
        cx,
        "<ir_version: 8, opset_import: [\"\" : 15, \"own\" : 1]> g (float[2] x) => (float[2] y) { y = own.Times <by = 3.0> (x) }");
    onx_session *s;
    int64_t two = 2;
    assert_int_equal(onx_session_new(cx, doc, NULL, &s), ONX_E_UNSUPPORTED);
    assert_null(s);
    onx_diag_clear(cx);
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .kernels = own }, &s), ONX_OK);
    onx_value *x = random_floats(cx, 1, &two), *y = NULL;
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    assert_true(((float *)y->data)[1] == 3 * ((float *)x->data)[1]);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static bool never_equal(const onx_layout *a, const onx_layout *b)
{
    (void)a, (void)b;
    return false;
}

static onx_status reorder_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return onx_work_fail(work, ONX_E_INVALID, "nothing is in this layout");
}

/* Chooses a layout of the output, and then declines. */
static onx_status declining_prepare(onx_prepare *p)
{
    static const onx_kernel reorder = { .op = "Reorder", .run = reorder_run };
    static const onx_layout_ops ops = { never_equal, &reorder };
    static const onx_layout layout = { &ops, 4096 };
    p->outputs[0]->layout = &layout;
    return ONX_E_UNSUPPORTED;
}

static void test_run_own_kernels__layout_of_a_row_that_declines(void **state)
{
    (void)state;
    static const onx_kernel own[] = { { .op = "Times",
                                        .domain = "own",
                                        .since = 1,
                                        .flags = ONX_KERNEL_LAYOUTS,
                                        .prepare = declining_prepare,
                                        .run = twice_run,
                                        .types = twice_types },
                                      { .op = "Times",
                                        .domain = "own",
                                        .since = 1,
                                        .prepare = twice_prepare,
                                        .run = twice_run,
                                        .types = twice_types },
                                      { 0 } };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "<ir_version: 8, opset_import: [\"\" : 15, \"own\" : 1]> g (float[2] x) => (float[2] y) {"
                             " t = own.Times <by = 3.0> (x) y = Neg (t) }");
    onx_session *s;
    int64_t two = 2;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .kernels = own }, &s), ONX_OK);
    onx_value *x = random_floats(cx, 1, &two), *y = NULL;
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    assert_true(((float *)y->data)[1] == -3 * ((float *)x->data)[1]);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static onx_status double_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++)
        ((float *)work->outputs[0]->data)[i] = 2 * ((const float *)work->inputs[0]->data)[i];
    return ONX_OK;
}

/* ---- which rows are asked, and in which order ---- */

static onx_status fill(onx_work *work, float value)
{
    for (uint64_t i = 0; i < work->outputs[0]->count; i++)
        ((float *)work->outputs[0]->data)[i] = value;
    return ONX_OK;
}
/* A kernel that keeps a copy of its weight, as packing does. */
static onx_status copy_weight(void *user, const void *elements, uint64_t piece, void *out)
{
    const onx_value *w = user;
    assert_int_equal(piece, 0);
    memcpy(out, elements, w->size);
    return ONX_OK;
}

static onx_status weighted_prepare(onx_prepare *p)
{
    onx_value *w = (onx_value *)(uintptr_t)(const void *)p->inputs[1];
    const void *packed;
    const onx_packing job = {
        .input = 1, .key = "copy", .key_size = 4, .size = w->size, .make = copy_weight, .user = w
    };
    ONX_TRY(p->ops->packed(p, &job, &packed));
    p->params = (void *)(uintptr_t)packed;
    return ONX_OK;
}

static onx_status weighted_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return fill(work, *(const float *)work->params);
}

/* A weight that follows from the shape of the input is computed while planning and goes with the plan; what a kernel
 * made of it must not be taken for that of the next one, which may lie at the same place. */
static void test_run_own_kernels__weights_that_follow_from_shapes(void **state)
{
    (void)state;
    static const onx_kernel own[] = { { .op = "MatMul", .since = 1, .prepare = weighted_prepare, .run = weighted_run },
                                      { 0 } };
    enum { SIZES = 40 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "<ir_version: 8, opset_import: [\"\" : 15]>\n"
                             "g (float[N,64] x) => (float[N,64] y) <int64 zero = {0}, int64[2] square = {64, 64}> {\n"
                             "  s = Shape (x) n = Gather (s, zero) f = Cast <to = 1> (n) w = Expand (f, square)\n"
                             "  y = MatMul (x, w) }");
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .kernels = own }, &s), ONX_OK);
    for (int64_t n = 1; n <= SIZES; n++) {
        const int64_t dims[] = { n, 64 };
        onx_value *x = random_floats(cx, 2, dims), *y = NULL;
        assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
        assert_true(*(const float *)y->data == (float)n);
        onx_value_free(x);
        onx_value_free(y);
    }
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static onx_status seven_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return fill(work, 7);
}
static onx_status eight_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return fill(work, 8);
}
static onx_status decline(onx_prepare *p)
{
    (void)p;
    return ONX_E_UNSUPPORTED;
}

/* What Relu-14 (or the operator of `registry`) makes of 3. */
static float answer(const onx_kernel *own, const onx_registry *registry, const char *domain)
{
    static const int64_t one = 1;
    char model[200];
    snprintf(model, sizeof model,
             "<ir_version: 8, opset_import: [\"\" : 15, \"own\" : 2]> g (float[1] x) => (float[1] y) { "
             "y = %s (x) }",
             domain);
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, model);
    onx_session *s;
    const onx_session_options options = { .verify = true, .kernels = own, .registry = registry };
    assert_int_equal(onx_session_new(cx, doc, &options, &s), ONX_OK);
    onx_value *x, *y = NULL;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, &one, &x), ONX_OK);
    *(float *)x->data = 3;
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    const float got = *(float *)y->data;
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return got;
}

static void test_run_own_kernels__own_kernels_are_asked_first(void **state)
{
    (void)state;
    /* without any preference, and of an older version than the built-in row */
    static const onx_kernel old[] = { { .op = "Relu", .since = 1, .preference = -5, .run = seven_run }, { 0 } };
    static const onx_kernel none[] = { { .op = "Relu", .since = 15, .run = seven_run }, { 0 } };
    static const onx_kernel refuses[] = { { .op = "Relu", .since = 1, .prepare = decline, .run = seven_run }, { 0 } };
    /* of two alike the first; neither memory nor qsort decides */
    static const onx_kernel twins[] = { { .op = "Relu", .since = 6, .run = eight_run },
                                        { .op = "Relu", .since = 6, .run = seven_run },
                                        { 0 } };
    static const onx_kernel better[] = { { .op = "Relu", .since = 6, .run = eight_run },
                                         { .op = "Relu", .since = 6, .preference = 1, .run = seven_run },
                                         { 0 } };
    static const onx_kernel newer[] = { { .op = "Relu", .since = 6, .run = eight_run, .preference = 9 },
                                        { .op = "Relu", .since = 14, .run = seven_run },
                                        { 0 } };
    assert_true(answer(old, NULL, "Relu") == 7);
    assert_true(answer(none, NULL, "Relu") == 3);
    assert_true(answer(refuses, NULL, "Relu") == 3);
    assert_true(answer(twins, NULL, "Relu") == 8);
    assert_true(answer(better, NULL, "Relu") == 7);
    assert_true(answer(newer, NULL, "Relu") == 7);
}

static onx_status same_type(void *user, onx_op_call *call)
{
    (void)user;
    const int64_t one = 1;
    return onx_op_call_set(call, 0, ONX_FLOAT, &one, 1);
}

static void test_run_own_kernels__own_kernels_are_asked_before_registered_ones(void **state)
{
    (void)state;
    static const onx_op_port ports[] = { { "X", "tensor(float)", 0 }, { 0 } };
    static const onx_kernel registered[] = { { .op = "F", .domain = "own", .since = 1, .run = eight_run }, { 0 } };
    static const onx_kernel own[] = { { .op = "F", .domain = "own", .since = 1, .run = seven_run }, { 0 } };
    static const onx_kernel others[] = { { .op = "G", .domain = "own", .since = 1, .run = seven_run },
                                         { .op = "F", .since = 1, .run = seven_run },
                                         { 0 } };
    const onx_op_def def = { .name = "F",
                             .domain = "own",
                             .since = 1,
                             .inputs = ports,
                             .outputs = ports,
                             .infer = same_type,
                             .kernel = registered };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_registry *registry;
    assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
    assert_int_equal(onx_op_register(registry, &def), ONX_OK);
    assert_true(answer(NULL, registry, "own.F") == 8);
    assert_true(answer(own, registry, "own.F") == 7);
    assert_true(answer(others, registry, "own.F") == 8);
    onx_registry_free(registry);
    onx_ctx_free(cx);
}

/* A kernel of one's own for an operator is run also where a fast kernel could do the built-in one in passing; what
 * takes a result as a bound is not done on the result. */
static void test_run_own_kernels__post_operations_are_those_of_the_row(void **state)
{
    (void)state;
    static const onx_kernel own[] = {
        { .op = "Relu", .since = 1, .dtypes = ONX_DTYPE_BIT(ONX_FLOAT), .preference = 1, .run = double_run }, { 0 }
    };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "<ir_version: 8, opset_import: [\"\" : 15]>\n"
                             "g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1, 0, 0, 1}> {\n"
                             "  c = MatMul (x, w) y = Relu (c) }");
    onx_session *s;
    const int64_t dims[] = { 2, 2 };
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .kernels = own }, &s), ONX_OK);
    onx_value *x = random_floats(cx, 2, dims), *y = NULL;
    ((float *)x->data)[1] = -1.5f;
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    assert_true(((float *)y->data)[1] == -3.0f);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(s);
    onx_doc_free(doc);

    onx_value *v[] = { random_floats(cx, 1, dims), random_floats(cx, 1, dims) };
    agree(cx,
          "<ir_version: 8, opset_import: [\"\" : 15]>\n"
          "g (float[N] a, float[N] b) => (float y) <float k = {-9}> { m = MatMul (a, b) y = Clip (k, m) }",
          (const onx_value *const *)v);
    onx_value_free(v[0]);
    onx_value_free(v[1]);
    onx_ctx_free(cx);
}

static void note_step(void *user, const onx_run_event *event)
{
    char *all = user;
    const size_t at = strlen(all);
    snprintf(all + at, 64 - at, "%.*s+%u ", ONX_ARG(event->op_type), event->post_ops);
}

/* A product takes what follows it where that is, unless something is before that which waits for others: the product
 * is what there is to do until they come. */
static void test_run_own_kernels__products_come_before_what_waits(void **state)
{
    (void)state;
    static const char *const steps[] = { "Times+0 MatMul+1 ", "MatMul+0 Times+0 Relu+0 " };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "<ir_version: 8, opset_import: [\"\" : 15, \"own\" : 1]>\n"
                             "g (float[N,4] x, float[4,4] w) => (float[N,4] y, float[N,4] z) {\n"
                             "  a = MatMul (x, w) z = own.Times <by = 3.0> (x) y = Relu (a) }");
    for (int waits = 0; waits < 2; waits++) {
        const onx_kernel own[] = { { .op = "Times",
                                     .domain = "own",
                                     .since = 1,
                                     .dtypes = ONX_DTYPE_BIT(ONX_FLOAT),
                                     .flags = waits ? ONX_KERNEL_ONCE : 0,
                                     .prepare = twice_prepare,
                                     .run = twice_run,
                                     .types = twice_types },
                                   { 0 } };
        const int64_t dims[] = { 4, 4 };
        char all[64] = "";
        onx_session *s;
        onx_value *x = random_floats(cx, 2, dims), *w = random_floats(cx, 2, dims), *y[2] = { NULL, NULL };
        assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .kernels = own }, &s),
                         ONX_OK);
        const onx_run_options options = { .event = note_step, .user = all };
        assert_int_equal(onx_session_run_with(s, cx, (const onx_value *const[]){ x, w }, y, &options), ONX_OK);
        assert_string_equal(all, steps[waits]);
        onx_value_free(x);
        onx_value_free(w);
        onx_value_free(y[0]);
        onx_value_free(y[1]);
        onx_session_free(s);
    }
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_own_kernels__own_kernel),
        cmocka_unit_test(test_run_own_kernels__layout_of_a_row_that_declines),
        cmocka_unit_test(test_run_own_kernels__weights_that_follow_from_shapes),
        cmocka_unit_test(test_run_own_kernels__own_kernels_are_asked_first),
        cmocka_unit_test(test_run_own_kernels__own_kernels_are_asked_before_registered_ones),
        cmocka_unit_test(test_run_own_kernels__post_operations_are_those_of_the_row),
        cmocka_unit_test(test_run_own_kernels__products_come_before_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

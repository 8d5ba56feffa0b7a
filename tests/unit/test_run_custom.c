/* Custom operators in a session: registered from C with schema, shape rule and kernel in one call, or described by a
 * function of an operator-set document. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <onx/check.h>
#include <onx/infer.h>
#include <onx/kernel.h>
#include <onx/op.h>
#include <onx/run.h>
#include <onx/text.h>
#include <onx/transform.h>

static onx_ctx *cx;
static onx_registry *registry;

static int set_up(void **state)
{
    (void)state;
    cx = onx_ctx_new(NULL);
    return cx && onx_registry_new(cx, &registry) == ONX_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    onx_registry_free(registry);
    onx_ctx_free(cx);
    return 0;
}

/* ---- Repeat: every element `times` times along the last axis ---- */

static onx_status infer_repeat(void *user, onx_op_call *call)
{
    onx_op_dim dims[8];
    const int rank = onx_op_call_rank(call, 0);
    const int64_t times = onx_op_call_int(call, "times");
    ++*(int *)user;
    if (rank < 0 || rank > 8)
        return ONX_OK;
    if (rank == 0)
        return onx_op_call_fail(call, "a scalar has no last axis");
    for (int i = 0; i < rank; i++)
        dims[i] = onx_op_call_dim(call, 0, (uint32_t)i);
    dims[rank - 1] = dims[rank - 1] >= 0 ? dims[rank - 1] * times : ONX_OP_DIM_UNKNOWN;
    return onx_op_call_set(call, 0, onx_op_call_dtype(call, 0), dims, rank);
}

static onx_status prepare_repeat(onx_prepare *p)
{
    int64_t *times = onx_arena_alloc(p->arena, sizeof *times);
    if (!times)
        return ONX_E_MEMORY;
    *times = onx_prepare_int(p, "times");
    p->params = times;
    return ONX_OK;
}

static onx_status run_repeat(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first;
    (void)last;
    const int64_t times = *(const int64_t *)work->params;
    const float *x = work->inputs[0]->data;
    float *y = work->outputs[0]->data;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++)
        for (int64_t k = 0; k < times; k++)
            *y++ = x[i];
    return ONX_OK;
}

static const onx_kernel repeat_kernels[] = {
    { .op = "Repeat", .domain = "com.example", .since = 1, .prepare = prepare_repeat, .run = run_repeat },
    { .op = NULL },
};

static const onx_op_port repeat_inputs[] = { { "X", "T", 0 }, { 0 } };
static const onx_op_port repeat_outputs[] = { { "Y", "T", 0 }, { 0 } };
static const onx_op_attribute repeat_attributes[] = { { "times", ONX_ATTR_INT, false, "2" }, { 0 } };
static const char *const repeat_types[] = { "T", "tensor(float)", NULL };

static onx_doc *parse(const char *text)
{
    onx_doc *doc;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    return doc;
}

/* Runs a model of one float[3] input 1, 2, 3 and compares its output. */
static void runs(onx_doc *doc, const float *expected, uint64_t count)
{
    const onx_session_options options = { .verify = true, .threads = 1, .registry = registry };
    const int64_t dims[] = { 3 };
    onx_session *session;
    onx_value *x, *y = NULL;
    if (onx_session_new(cx, doc, &options, &session) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, dims, &x), ONX_OK);
    for (int i = 0; i < 3; i++)
        ((float *)x->data)[i] = (float)(i + 1);
    const onx_value *inputs[] = { x };
    assert_int_equal(onx_session_run(session, cx, inputs, &y), ONX_OK);
    assert_int_equal(y->count, count);
    for (uint64_t i = 0; i < count; i++)
        assert_true(((const float *)y->data)[i] == expected[i]);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(session);
}

static void register_repeat(int *asked)
{
    const onx_op_def repeat = { .domain = "com.example",
                                .name = "Repeat",
                                .since = 1,
                                .inputs = repeat_inputs,
                                .outputs = repeat_outputs,
                                .attributes = repeat_attributes,
                                .types = repeat_types,
                                .infer = infer_repeat,
                                .user = asked,
                                .kernel = repeat_kernels };
    assert_int_equal(onx_op_register(registry, &repeat), ONX_OK);
}

static void test_run_custom__registered_from_c(void **state)
{
    (void)state;
    static int asked;
    register_repeat(&asked);
    onx_doc *doc = parse("<ir_version: 10, opset_import: [\"\": 21, \"com.example\": 1]>\n"
                         "g (float[3] x) => (float[n] z) { y = com.example.Repeat <times = 3> (x) z = Neg (y) }");
    const float expected[] = { -1, -1, -1, -2, -2, -2, -3, -3, -3 };
    runs(doc, expected, 9);
    assert_true(asked > 0);

    const onx_infer_options options = { .registry = registry };
    onx_infer *infer;
    assert_int_equal(onx_infer_new(cx, doc, &options, &infer), ONX_OK);
    const onx_type *y = onx_infer_type(infer, onx_doc_model(doc)->graph, onx_str_of("y"));
    assert_non_null(y);
    assert_int_equal(y->tensor_type->elem_type, ONX_FLOAT);
    assert_int_equal(y->tensor_type->shape->dim[0]->dim_value, 9);
    onx_infer_free(infer);
    onx_doc_free(doc);
}

/* What a context is given is known to all that is called with it and names nothing, passes of transforms among them,
 * and to no one else. */
static void test_run_custom__operators_of_a_context(void **state)
{
    (void)state;
    static int asked;
    register_repeat(&asked);
    onx_doc *doc = parse("<ir_version: 10, opset_import: [\"\": 21, \"com.example\": 1]>\n"
                         "g (float[3] x) => (float[n] z) {\n"
                         "  y = com.example.Repeat <times = 3> (x) s = Shape (y) t = Reshape (y, s) z = Neg (t) }");
    const float expected[] = { -1, -1, -1, -2, -2, -2, -3, -3, -3 };
    onx_registry *named = registry;
    onx_ctx_set_registry(cx, registry);
    registry = NULL; /* `runs` names none then */
    runs(doc, expected, 9);
    assert_int_equal(onx_simplify(cx, doc, NULL), ONX_OK);
    assert_int_equal(onx_doc_model(doc)->graph->node_count, 2);
    runs(doc, expected, 9);
    const onx_check_options closed = { .flags = ONX_CHECK_STRUCTURE | ONX_CHECK_CUSTOM_DOMAINS };
    assert_int_equal(onx_check(cx, doc, &closed, NULL), ONX_OK);
    onx_ctx_set_registry(cx, NULL);
    assert_int_equal(onx_check(cx, doc, &closed, NULL), ONX_E_INVALID);
    onx_ctx_set_registry(cx, named);
    onx_registry_free(named); /* which the context forgets */
    assert_int_equal(onx_check(cx, doc, &closed, NULL), ONX_E_INVALID);
    onx_doc_free(doc);
}

/* Gradients are made of a document before its nodes are planned: they ask for types behind the operator, which come
 * from the registry that the options name. */
static void test_run_custom__gradients_behind_one(void **state)
{
    (void)state;
    static int asked;
    register_repeat(&asked);
    onx_doc *doc =
        parse("<ir_version: 10, opset_import: [\"\": 21, \"com.example\": 1, \"ai.onnx.preview.training\": 1]>\n"
              "g (float[3] x) => (float[n] z) {\n"
              "  y = com.example.Repeat <times = 2> (x) c = Mul (y, y)\n"
              "  z = ai.onnx.preview.training.Gradient <xs = [\"y\"], y = \"c\"> (y) }");
    const float expected[] = { 2, 2, 4, 4, 6, 6 };
    runs(doc, expected, 6);
    onx_doc_free(doc);
}

/* A document of the set com.example.ops with one function, loaded. */
typedef struct loaded {
    onx_doc *set, *function;
} loaded;

static loaded load_function(const char *function)
{
    loaded l;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_FUNCTION, onx_str_of(function), 0, &l.function), ONX_OK);
    assert_int_equal(onx_doc_new(cx, ONX_KIND_OPERATOR_SET, &l.set), ONX_OK);
    onx_operator_set *set = onx_doc_root(l.set, ONX_KIND_OPERATOR_SET);
    onx_arena *arena = onx_doc_arena(l.set);
    onx_bytes text;
    assert_int_equal(onx_arena_keep(arena, onx_str_of("ONNXOPSET"), &text), ONX_OK);
    ONX_SET(operator_set, set, magic, text);
    assert_int_equal(onx_arena_keep(arena, onx_str_of("com.example.ops"), &text), ONX_OK);
    ONX_SET(operator_set, set, domain, text);
    ONX_SET(operator_set, set, ir_version, 10);
    ONX_SET(operator_set, set, opset_version, 1);
    onx_function **slot =
        onx_list_insert(arena, (void **)(void *)&set->functions, &set->functions_count, 0, sizeof *set->functions);
    assert_non_null(slot);
    *slot = onx_doc_root(l.function, ONX_KIND_FUNCTION);
    assert_int_equal(onx_registry_load(registry, l.set), ONX_OK);
    return l;
}

static void unload(loaded l)
{
    onx_registry_free(registry); /* before the documents that it refers to */
    registry = NULL;
    onx_doc_free(l.set);
    onx_doc_free(l.function);
}

static void test_run_custom__a_function_of_a_document(void **state)
{
    (void)state;
    loaded l = load_function("<opset_import: [\"\": 21], domain: \"com.example.ops\">\n"
                             "Square (a) => (b) { b = Mul (a, a) }");
    onx_doc *doc = parse("<ir_version: 10, opset_import: [\"\": 21, \"com.example.ops\": 1]>\n"
                         "g (float[3] x) => (float[3] z) { y = com.example.ops.Square (x) z = Neg (y) }");
    const float expected[] = { -1, -4, -9 };
    runs(doc, expected, 3);
    onx_doc_free(doc);
    unload(l);
}

static void test_run_custom__a_function_that_calls_itself_has_a_place(void **state)
{
    (void)state;
    loaded l = load_function("<opset_import: [\"\": 21, \"com.example.ops\": 1], domain: \"com.example.ops\">\n"
                             "Again (a) => (b) { t = Relu (a) b = com.example.ops.Again (t) }");
    onx_doc *doc = parse("<ir_version: 10, opset_import: [\"\": 21, \"com.example.ops\": 1]>\n"
                         "g (float[3] x) => (float[3] y) { y = com.example.ops.Again (x) }");
    const onx_session_options options = { .verify = true, .threads = 1, .registry = registry };
    onx_session *session;
    assert_int_equal(onx_session_new(cx, doc, &options, &session), ONX_E_LIMIT);
    const onx_diag *diag = onx_diag_get(cx, 0);
    assert_true(onx_str_is(diag->message, "functions call each other more than 100 levels deep"));
    assert_string_equal(diag->where.path.ptr, "graph.node[0] (Again) function Again node[1] (Again) function Again "
                                              "node[1] (Again) function Again node[1] (Again) function Again ... "
                                              "node[1] (Again) function Again node[1] (Again) function Again "
                                              "node[1] (Again) function Again node[1] (Again) function Again "
                                              "node[1] (Again)");
    onx_diag_clear(cx);
    onx_doc_free(doc);
    unload(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_run_custom__registered_from_c, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_run_custom__operators_of_a_context, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_run_custom__gradients_behind_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_run_custom__a_function_of_a_document, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_run_custom__a_function_that_calls_itself_has_a_place, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

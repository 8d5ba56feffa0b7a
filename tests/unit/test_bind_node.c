/* The meaning of a node: one rule reads the list of imports, and functions can replace operators, in the same way for
 * the checker, inference and the runner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <onx/check.h>
#include <onx/infer.h>
#include <onx/run.h>
#include <onx/text.h>

#include "bind/bind.h"

#include "context.h"

static onx_doc *parse(const char *text)
{
    onx_doc *doc;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    return doc;
}

/* ---- imports ---- */

static int64_t version(const char *header, const char *domain)
{
    char text[256];
    (void)snprintf(text, sizeof text, "<%s> g (float[N] x) => (float[N] y) { y = Relu(x) }", header);
    onx_doc *doc = parse(text);
    const onx_model *model = onx_doc_model(doc);
    onx_arena *arena;
    onxi_imports imports;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    assert_int_equal(
        onxi_imports_open(&imports, arena, model->opset_import, model->opset_import_count, onxi_model_is_legacy(model)),
        ONX_OK);
    const int64_t found = onxi_imports_version(&imports, onx_str_of(domain));
    onx_arena_free(arena);
    onx_doc_free(doc);
    return found;
}

static void test_bind_imports__the_highest_version_counts(void **state)
{
    (void)state;
    assert_int_equal(version("ir_version: 8, opset_import: [\"\": 12, \"\": 13]", ""), 13);
    assert_int_equal(version("ir_version: 8, opset_import: [\"\": 13, \"\": 12]", ""), 13);
    assert_int_equal(version("ir_version: 8, opset_import: [\"c\": 2, \"\": 13, \"c\": 7, \"c\": 3]", "c"), 7);
}

static void test_bind_imports__two_spellings_are_one_domain(void **state)
{
    (void)state;
    assert_int_equal(version("ir_version: 8, opset_import: [\"ai.onnx\": 13]", ""), 13);
    assert_int_equal(version("ir_version: 8, opset_import: [\"\": 13]", "ai.onnx"), 13);
    assert_int_equal(version("ir_version: 8, opset_import: [\"ai.onnx\": 12, \"\": 13]", "ai.onnx"), 13);
    assert_int_equal(version("ir_version: 8, opset_import: [\"ai.onnx\": 13, \"\": 12]", ""), 13);
}

static void test_bind_imports__old_models_imply_version_1(void **state)
{
    (void)state;
    assert_int_equal(version("ir_version: 2", ""), 1);
    assert_int_equal(version("ir_version: 2", "c"), -1);
    assert_int_equal(version("ir_version: 2, opset_import: [\"\": 5]", ""), 5);
    assert_int_equal(version("ir_version: 3", ""), -1);
    assert_int_equal(version("ir_version: 8, opset_import: [\"c\": 1]", ""), -1);
}

/* In the order 14, 12 the last entry says 12, and so does the first one in the order 12, 14. */
static void test_bind_imports__infer_and_check_agree(void **state)
{
    (void)state;
    static const char *const headers[] = { "opset_import: [\"\": 12, \"\": 14]", "opset_import: [\"\": 14, \"\": 12]",
                                           "opset_import: [\"ai.onnx\": 12, \"\": 14]",
                                           "opset_import: [\"ai.onnx\": 14, \"\": 12]" };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char text[256]; /* HardSwish exists from version 14 on */
        (void)snprintf(text, sizeof text, "<ir_version: 8, %s> g (float[2,3] x) => (y) { y = HardSwish(x) }",
                       headers[i]);
        onx_doc *doc = parse(text);
        static const char *const only[] = { "O-11", "ND-04" };
        const onx_check_options options = { .only = only, .only_count = 2 };
        assert_int_equal(onx_check(cx, doc, &options, NULL), ONX_OK);
        onx_infer *infer;
        assert_int_equal(onx_infer_new(cx, doc, NULL, &infer), ONX_OK);
        const onx_type *type = onx_infer_type(infer, onx_doc_model(doc)->graph, onx_str_of("y"));
        assert_non_null(type);
        assert_int_equal(type->tensor_type->shape->dim_count, 2);
        onx_infer_free(infer);
        onx_doc_free(doc);
        onx_diag_clear(cx);
    }
}

/* ---- a function with the name of an operator ---- */

static void test_bind_node__a_function_takes_the_place_of_an_operator(void **state)
{
    (void)state;
    onx_doc *doc =
        parse("<ir_version: 10, opset_import: [\"\": 18]>\n"
              "g (float[2] x) => (float[4] y) { y = Shape(x) }\n"
              "<domain: \"\", opset_import: [\"\": 18]> Shape (a) => (b) { c = Neg(a) d = Concat<axis = 0>(c, c) "
              "b = Softsign(d) }\n"
              "<domain: \"\", opset_import: [\"\": 18]> Abs (a) => (b) { b = Neg(a) }");
    onx_check_summary summary;
    assert_int_equal(onx_check(cx, doc, NULL, &summary), ONX_OK); /* ND-05 is a warning */
    onx_infer *infer;
    assert_int_equal(onx_infer_new(cx, doc, NULL, &infer), ONX_OK);
    const onx_type *type = onx_infer_type(infer, onx_doc_model(doc)->graph, onx_str_of("y"));
    assert_non_null(type);
    assert_int_equal(type->tensor_type->elem_type, ONX_FLOAT);
    assert_int_equal(type->tensor_type->shape->dim[0]->dim_value, 4);
    onx_infer_free(infer);
    onx_session *session;
    assert_int_equal(onx_session_new(cx, doc, NULL, &session), ONX_OK);
    onx_value *x, *y = NULL;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, (const int64_t[]){ 2 }, &x), ONX_OK);
    ((float *)x->data)[0] = 1;
    ((float *)x->data)[1] = -3;
    const onx_value *inputs[] = { x };
    assert_int_equal(onx_session_run(session, cx, inputs, &y), ONX_OK);
    assert_int_equal(y->count, 4);
    /* Softsign is x / (1 + |x|) by a body of its own, where Abs is the operator, not the model's function. */
    assert_true(((const float *)y->data)[0] == -0.5f && ((const float *)y->data)[1] == 0.75f);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(session);
    onx_doc_free(doc);
}

/* ---- binding as such ---- */

static onx_node *node_of(onx_doc *doc, uint32_t i)
{
    return onx_doc_model(doc)->graph->node[i];
}

static void test_bind_node__says_what_there_is(void **state)
{
    (void)state;
    onx_doc *doc =
        parse("<ir_version: 10, opset_import: [\"\": 12, \"c\": 3]>\n"
              "g (float[2] x) => (y) { a = Softmax(x) b = c.F(x) c = c.G(x) d = e.H(x) y = ai.onnx.Softmax(x) "
              "z = c.F:o(x) w = Nope(x) }\n"
              "<domain: \"c\", opset_import: [\"\": 18]> F (a) => (b) { b = Neg(a) }");
    const onx_model *model = onx_doc_model(doc);
    onx_arena *arena;
    onxi_functions functions;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    assert_int_equal(onxi_functions_index(arena, model->functions, model->functions_count, &functions), ONX_OK);
    onxi_binder binder = { .arena = arena, .functions = &functions };
    assert_int_equal(onxi_binder_open(&binder, model->opset_import, model->opset_import_count, false), ONX_OK);
    const onxi_bound *softmax = onxi_bind(&binder, node_of(doc, 0)), *f = onxi_bind(&binder, node_of(doc, 1)),
                     *g = onxi_bind(&binder, node_of(doc, 2)), *h = onxi_bind(&binder, node_of(doc, 3)),
                     *overload = onxi_bind(&binder, node_of(doc, 5)), *nope = onxi_bind(&binder, node_of(doc, 6));
    assert_int_equal(softmax->kind, ONXI_BOUND_OPERATOR);
    assert_int_equal(softmax->op, ONXI_ID_Softmax);
    assert_int_equal(softmax->schema->since, 11);
    assert_ptr_equal(onxi_bind(&binder, node_of(doc, 4)), softmax);
    assert_int_equal(f->kind, ONXI_BOUND_FUNCTION);
    assert_ptr_equal(f->function, model->functions[0]);
    assert_int_equal(f->opset, 3);
    assert_int_equal(g->kind, ONXI_BOUND_NOTHING);
    assert_int_equal(g->opset, 3);
    assert_int_equal(h->kind, ONXI_BOUND_NOTHING);
    assert_int_equal(h->opset, -1);
    assert_int_equal(overload->kind, ONXI_BOUND_NOTHING);
    assert_int_equal(nope->kind, ONXI_BOUND_NOTHING);
    assert_int_equal(nope->op, ONXI_ID_NONE);
    onx_arena_free(arena);
    onx_doc_free(doc);
}

/* Every built-in operator has its number. */
static void test_bind_node__numbers_are_places_in_the_table(void **state)
{
    (void)state;
    assert_int_equal(onxi_operator_count, ONXI_ID_END - 1);
    for (uint32_t i = 0; i < onxi_operator_count; i++) {
        const onxi_operator *op = &onxi_operators[i];
        assert_int_equal(
            onxi_operator_id(onxi_operator_at(onx_str_of(op->domain), onx_str_of(op->name), op->rows->since)), i + 1);
    }
    assert_string_equal(onxi_operators[ONXI_ID_Conv - 1].name, "Conv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bind_imports__the_highest_version_counts),
        cmocka_unit_test(test_bind_imports__two_spellings_are_one_domain),
        cmocka_unit_test(test_bind_imports__old_models_imply_version_1),
        cmocka_unit_test(test_bind_imports__infer_and_check_agree),
        cmocka_unit_test(test_bind_node__a_function_takes_the_place_of_an_operator),
        cmocka_unit_test(test_bind_node__says_what_there_is),
        cmocka_unit_test(test_bind_node__numbers_are_places_in_the_table),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

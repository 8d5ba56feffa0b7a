/* The value of a node's attribute: given, given without its value field, absent with and without a default, missing, of
 * the wrong type. Inference and the runner read the same values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <onx/io.h>
#include <onx/run.h>
#include <onx/text.h>

#include "bind/bind.h"

#include "context.h"

/* The attributes of the first node of the model; they live in the arena. */
static onx_status attributes(const onx_doc *doc, onx_arena *arena, onxi_attrs *out, onxi_attr_fault *fault)
{
    const onx_model *model = onx_doc_model(doc);
    onxi_binder binder = { .arena = arena };
    assert_int_equal(onxi_binder_open(&binder, model->opset_import, model->opset_import_count, false), ONX_OK);
    const onx_node *node = model->graph->node[0];
    const onxi_bound *bound = onxi_bind(&binder, node);
    assert_int_equal(bound->kind, ONXI_BOUND_OPERATOR);
    return onxi_bind_attributes(bound, node, NULL, arena, NULL, 0, out, fault);
}

static onx_doc *parse(const char *node)
{
    char text[512];
    onx_doc *doc;
    (void)snprintf(text, sizeof text,
                   "<ir_version: 8, opset_import: [\"\": 13]> g (float[2,3] x) => (float[] y) { %s }", node);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    return doc;
}

/* Takes the value field away and leaves name and type, as proto3 producers do. */
static void strip(onx_doc *doc, uint32_t attribute)
{
    onx_attribute *a = onx_doc_model(doc)->graph->node[0]->attribute[attribute];
    a->slot = ONX_SLOT_NONE;
    a->i = 0;
    a->count = 0;
    a->has &= ~(uint32_t)(onx_attribute_has_i | onx_attribute_has_f | onx_attribute_has_s);
}

static void test_bind_attr__given_default_and_neither(void **state)
{
    (void)state;
    onx_doc *doc = parse("y = Gemm<alpha = 0.5>(x, x)");
    onx_arena *arena;
    onxi_attrs attrs;
    onxi_attr_fault fault;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    assert_int_equal(attributes(doc, arena, &attrs, &fault), ONX_OK);
    const onxi_attr_value *alpha = onxi_attrs_get(&attrs, "alpha", ONX_ATTR_FLOAT),
                          *beta = onxi_attrs_get(&attrs, "beta", ONX_ATTR_FLOAT);
    assert_true(alpha && alpha->given && alpha->f == 0.5f);
    assert_true(beta && !beta->given && beta->f == 1.0f);
    assert_null(onxi_attrs_find(&attrs, "gamma"));
    onx_doc_free(doc);
    doc = parse("y = Conv<group = 1>(x, x)");
    assert_int_equal(attributes(doc, arena, &attrs, &fault), ONX_OK);
    const onxi_attr_value *pads = onxi_attrs_find(&attrs, "pads"), *pad = onxi_attrs_find(&attrs, "auto_pad");
    assert_true(pads && pads->type == ONX_ATTR_UNDEFINED && !pads->given);
    assert_true(pad && onx_str_is(pad->s, "NOTSET"));
    onx_doc_free(doc);
    onx_arena_free(arena);
}

static void test_bind_attr__without_value_field_is_zero(void **state)
{
    (void)state;
    onx_doc *doc = parse("y = Conv<group = 3, auto_pad = \"VALID\", pads = [1, 1, 1, 1]>(x, x)");
    onx_arena *arena;
    onxi_attrs attrs;
    onxi_attr_fault fault;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    for (uint32_t i = 0; i < 3; i++)
        strip(doc, i);
    assert_int_equal(attributes(doc, arena, &attrs, &fault), ONX_OK);
    const onxi_attr_value *group = onxi_attrs_get(&attrs, "group", ONX_ATTR_INT),
                          *pad = onxi_attrs_get(&attrs, "auto_pad", ONX_ATTR_STRING),
                          *pads = onxi_attrs_get(&attrs, "pads", ONX_ATTR_INTS);
    assert_true(group && group->given && group->i == 0);
    assert_true(pad && pad->given && pad->s.len == 0);
    assert_true(pads && pads->given && pads->count == 0);
    onx_doc_free(doc);
    onx_arena_free(arena);
}

/* One attribute alone says what it says among all. */
static void test_bind_attr__one_alone(void **state)
{
    (void)state;
    onx_doc *doc = parse("y = Gemm<alpha = 0.5, transB = 1, transA = 1.0, gamma = 2>(x, x)");
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    const onx_model *model = onx_doc_model(doc);
    const onx_node *node = model->graph->node[0];
    onxi_binder binder = { .arena = arena };
    assert_int_equal(onxi_binder_open(&binder, model->opset_import, model->opset_import_count, false), ONX_OK);
    const onxi_bound *bound = onxi_bind(&binder, node);
    uint32_t count = 7;
    assert_true(onxi_bind_float(bound, node, "alpha") == 0.5f);
    assert_true(onxi_bind_float(bound, node, "beta") == 1.0f); /* the default */
    assert_int_equal(onxi_bind_int(bound, node, "transB"), 1);
    assert_int_equal(onxi_bind_int(bound, node, "alpha"), 0);
    assert_int_equal(onxi_bind_int(bound, node, "transA"), 0); /* of another type */
    assert_true(onxi_bind_attribute(bound, node, "transA").given);
    assert_int_equal(onxi_bind_int(bound, node, "gamma"), 0);
    assert_int_equal(onxi_bind_int(NULL, node, "gamma"), 2); /* nothing is known of the operator */
    assert_null(onxi_bind_ints(bound, node, "transB", &count));
    assert_int_equal(count, 0);
    strip(doc, 0);
    assert_true(onxi_bind_float(bound, node, "alpha") == 0.0f);
    onx_doc_free(doc);
    onx_arena_free(arena);
}

static void test_bind_attr__faults(void **state)
{
    (void)state;
    static const struct {
        const char *node, *rule;
        bool strip;
    } cases[] = {
        { "y = Cast(x)", "ND-18", false },
        { "y = Cast<to = 1.0>(x)", "ND-19", false },
        { "y = Cast<to = 1>(x)", NULL, true }, /* 0, which the rule refuses, not the binding */
        { "y = ConstantOfShape<value = float {1}>(x)", "A-06", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onx_doc *doc = parse(cases[i].node);
        onx_arena *arena;
        onxi_attrs attrs;
        onxi_attr_fault fault = { .rule = NULL };
        assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
        if (cases[i].strip)
            strip(doc, 0);
        assert_int_equal(attributes(doc, arena, &attrs, &fault), cases[i].rule ? ONX_E_INVALID : ONX_OK);
        if (cases[i].rule)
            assert_string_equal(fault.rule, cases[i].rule);
        onx_arena_free(arena);
        onx_doc_free(doc);
    }
}

/* Softmax-13 over axis 0 and over its default, the last one: axis without a value is 0. */
static void test_bind_attr__a_kernel_reads_zero_too(void **state)
{
    (void)state;
    onx_doc *doc = parse("y = Softmax<axis = 1>(x)");
    onx_session *session;
    onx_value *x, *y = NULL;
    strip(doc, 0);
    onx_doc_model(doc)->graph->output[0]->type->tensor_type->shape = NULL;
    assert_int_equal(onx_session_new(cx, doc, NULL, &session), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, (const int64_t[]){ 2, 3 }, &x), ONX_OK);
    for (int i = 0; i < 6; i++)
        ((float *)x->data)[i] = 1;
    const onx_value *inputs[] = { x };
    assert_int_equal(onx_session_run(session, cx, inputs, &y), ONX_OK);
    assert_true(((const float *)y->data)[0] == 0.5f);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(session);
    onx_doc_free(doc);
}

/* A parameter of a function: the caller's value, else the default of the function, else nothing. */
static void test_bind_attr__references(void **state)
{
    (void)state;
    onx_doc *doc;
    assert_int_equal(
        onx_text_parse(cx, ONX_KIND_MODEL,
                       onx_str_of("<ir_version: 8, opset_import: [\"\": 13, \"c\": 1]> g (float[2] x) => "
                                  "(float[2] y) { y = c.F<p = 3.0>(x) }\n"
                                  "<domain: \"c\", opset_import: [\"\": 13]> F <p, q: float = 2.0, r> (a) => "
                                  "(b) { b = Gemm<alpha: float = @p, beta: float = @q, transA: int = @r>(a, a) }"),
                       0, &doc),
        ONX_OK);
    const onx_function *f = onx_doc_model(doc)->functions[0];
    const onx_node *call = onx_doc_model(doc)->graph->node[0];
    onx_arena *arena;
    onxi_arguments arguments;
    onxi_attrs attrs;
    onxi_attr_fault fault;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    onxi_binder binder = { .arena = arena };
    assert_int_equal(onxi_binder_open_body(&binder, f), ONX_OK);
    assert_int_equal(onxi_arguments_make(&arguments, &binder.parameters, arena,
                                         (const onx_attribute *const *)call->attribute, call->attribute_count, NULL),
                     ONX_OK);
    const onxi_bound *bound = onxi_bind(&binder, f->node[0]);
    assert_int_equal(onxi_bind_attributes(bound, f->node[0], &arguments, arena, NULL, 0, &attrs, &fault), ONX_OK);
    assert_true(onxi_attrs_get(&attrs, "alpha", ONX_ATTR_FLOAT)->f == 3.0f);
    assert_true(onxi_attrs_get(&attrs, "beta", ONX_ATTR_FLOAT)->f == 2.0f);
    assert_false(onxi_attrs_given(&attrs, "transA"));
    assert_int_equal(onxi_attrs_get(&attrs, "transA", ONX_ATTR_INT)->i, 0);
    onx_arena_free(arena);
    onx_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bind_attr__given_default_and_neither),
        cmocka_unit_test(test_bind_attr__without_value_field_is_zero),
        cmocka_unit_test(test_bind_attr__one_alone),
        cmocka_unit_test(test_bind_attr__faults),
        cmocka_unit_test(test_bind_attr__a_kernel_reads_zero_too),
        cmocka_unit_test(test_bind_attr__references),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* Fields of messages by name, as other languages read and write them: they agree with the C members, for every kind of
 * field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <onx/ffi.h>
#include <onx/onx.h>

#include "ir/ir.h"

static onx_ctx *cx;
static onx_doc *doc;
static onx_arena *arena;

static int set_up(void **state)
{
    (void)state;
    cx = onx_ctx_new(NULL);
    if (!cx || onx_model_new(cx, "g", 21, &doc) != ONX_OK)
        return -1;
    arena = onx_doc_arena(doc);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return 0;
}

static void test_ir_field__read_and_written(void **state)
{
    (void)state;
    onx_model *model = onx_doc_model(doc);
    int64_t number;
    double real;
    onx_str text;
    onx_kind kind;
    assert_int_equal(onx_field_set_int(arena, ONX_KIND_MODEL, model, "model_version", 7), ONX_OK);
    assert_int_equal(model->model_version, 7);
    assert_true(ONX_HAS(model, model, model_version));
    assert_true(onx_field_int(ONX_KIND_MODEL, model, "model_version", 0, &number));
    assert_int_equal(number, 7);
    assert_false(onx_field_int(ONX_KIND_MODEL, model, "model_version", 1, &number));
    assert_false(onx_field_text(ONX_KIND_MODEL, model, "model_version", 0, &text));
    assert_int_equal(onx_field_clear(arena, ONX_KIND_MODEL, model, "model_version"), ONX_OK);
    assert_int_equal(onx_field_count(ONX_KIND_MODEL, model, "model_version"), 0);

    void *graph = onx_field_message(ONX_KIND_MODEL, model, "graph", 0, &kind);
    assert_ptr_equal(graph, model->graph);
    assert_int_equal(kind, ONX_KIND_GRAPH);
    onx_node *node = onx_message_new(arena, ONX_KIND_NODE);
    for (int i = 0; i < 5; i++)
        assert_int_equal(onx_field_set_text(arena, ONX_KIND_NODE, node, "input", onx_str_of("x")), ONX_OK);
    assert_int_equal(onx_field_set_text(arena, ONX_KIND_NODE, node, "op_type", onx_str_of("Sum")), ONX_OK);
    assert_int_equal(onx_field_set_message(arena, ONX_KIND_GRAPH, graph, "node", node), ONX_OK);
    assert_int_equal(model->graph->node_count, 1);
    assert_int_equal(node->input_count, 5);
    assert_true(onx_field_text(ONX_KIND_NODE, node, "input", 4, &text) && onx_str_is(text, "x"));
    assert_int_equal(onx_field_clear(arena, ONX_KIND_NODE, node, "input"), ONX_OK);
    assert_int_equal(node->input_count, 0);

    onx_attribute *a = onx_node_add_float(arena, node, "alpha", 0.5f);
    assert_true(onx_field_float(ONX_KIND_ATTRIBUTE, a, "f", 0, &real) && real == 0.5);
    assert_int_equal(onx_field_set_float(arena, ONX_KIND_ATTRIBUTE, a, "f", 0.25), ONX_OK);
    assert_true(a->f == 0.25f);

    /* Members of a oneof take the place of each other. */
    onx_dimension *dim = onx_message_new(arena, ONX_KIND_DIMENSION);
    assert_int_equal(onx_field_set_int(arena, ONX_KIND_DIMENSION, dim, "dim_value", 3), ONX_OK);
    assert_int_equal(onx_field_set_text(arena, ONX_KIND_DIMENSION, dim, "dim_param", onx_str_of("N")), ONX_OK);
    assert_int_equal(onx_field_count(ONX_KIND_DIMENSION, dim, "dim_value"), 0);
    assert_true(onx_field_text(ONX_KIND_DIMENSION, dim, "dim_param", 0, &text) && onx_str_is(text, "N"));

    assert_int_equal(
        onx_field_set_int(arena, ONX_KIND_TENSOR, onx_message_new(arena, ONX_KIND_TENSOR), "data_type", INT64_MAX),
        ONX_E_LIMIT);
    assert_int_equal(onx_field_set_int(arena, ONX_KIND_MODEL, model, "nothing", 1), ONX_E_NOT_FOUND);
    assert_int_equal(onx_field_set_int(arena, ONX_KIND_MODEL, model, "graph", 1), ONX_E_NOT_FOUND);
    assert_int_equal(onx_field_count(ONX_KIND_MODEL, model, "nothing"), 0);
    assert_int_equal(onx_field_count((onx_kind)999, model, "graph"), 0);
}

/* Every field of every message takes what its kind says, and gives it back. */
static void test_ir_field__all(void **state)
{
    (void)state;
    unsigned fields = 0;
    for (int kind = 1; kind < ONX_KIND_COUNT; kind++)
        for (uint32_t i = 0; i < onxi_messages[kind]->field_count; i++, fields++) {
            const onxi_field *f = &onxi_messages[kind]->fields[i];
            void *message = onx_message_new(arena, (onx_kind)kind), *inner = NULL;
            onx_status status;
            int64_t number = 0;
            double real = 0;
            onx_str text = { 0 };
            bool back = true;
            if (f->type <= ONXI_DOUBLE) {
                status = onx_field_set_float(arena, (onx_kind)kind, message, f->name, 1.5);
                back = onx_field_float((onx_kind)kind, message, f->name, 0, &real) && real == 1.5;
            } else if (f->type <= ONXI_ENUM) {
                status = onx_field_set_int(arena, (onx_kind)kind, message, f->name, 1);
                back = onx_field_int((onx_kind)kind, message, f->name, 0, &number) && number == 1;
            } else if (f->type != ONXI_MESSAGE) {
                status = onx_field_set_text(arena, (onx_kind)kind, message, f->name, onx_str_of("t"));
                back = onx_field_text((onx_kind)kind, message, f->name, 0, &text) && onx_str_is(text, "t");
            } else {
                inner = onx_message_new(arena, (onx_kind)f->message->kind);
                status = onx_field_set_message(arena, (onx_kind)kind, message, f->name, inner);
                back = onx_field_message((onx_kind)kind, message, f->name, 0, NULL) == inner;
            }
            if (f->flags & ONXI_BORROW && status == ONX_E_UNSUPPORTED)
                continue;
            if (status != ONX_OK || !back || onx_field_count((onx_kind)kind, message, f->name) != 1)
                fail_msg("%s.%s", onxi_messages[kind]->name, f->name);
            assert_int_equal(onx_field_clear(arena, (onx_kind)kind, message, f->name), ONX_OK);
            assert_int_equal(onx_field_count((onx_kind)kind, message, f->name), 0);
        }
    assert_true(fields > 100);
}

static void expect_inputs(const onx_node *node, const char *names)
{
    char got[64] = "";
    for (uint32_t i = 0; i < node->input_count; i++) {
        const onx_str s = onx_view(node->input[i]);
        snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s,", ONX_ARG(s));
    }
    assert_string_equal(got, names);
}

/* Elements of lists come and go in any place, across the sizes at which lists move. */
static void test_ir_field__lists(void **state)
{
    (void)state;
    onx_node *node = onx_message_new(arena, ONX_KIND_NODE);
    const onx_kind n = ONX_KIND_NODE;
    assert_int_equal(onx_field_splice(arena, n, node, "input", 0, 0, 3), ONX_OK);
    assert_int_equal(onx_field_put_text(arena, n, node, "input", 0, onx_str_of("a")), ONX_OK);
    assert_int_equal(onx_field_put_text(arena, n, node, "input", 2, onx_str_of("c")), ONX_OK);
    expect_inputs(node, "a,,c,");
    assert_int_equal(onx_field_splice(arena, n, node, "input", 1, 1, 6), ONX_OK);
    expect_inputs(node, "a,,,,,,,c,");
    assert_int_equal(onx_field_splice(arena, n, node, "input", 1, 5, 0), ONX_OK);
    expect_inputs(node, "a,,c,");
    assert_int_equal(onx_field_splice(arena, n, node, "input", 3, 0, 1), ONX_OK);
    expect_inputs(node, "a,,c,,");
    for (int i = 0; i < 40; i++) {
        assert_int_equal(onx_field_splice(arena, n, node, "attribute", 0, 0, 1), ONX_OK);
        assert_int_equal(onx_field_set_int(arena, ONX_KIND_ATTRIBUTE, node->attribute[0], "i", i), ONX_OK);
    }
    for (int i = 0; i < 40; i++)
        assert_int_equal(node->attribute[i]->i, 39 - i);
    assert_int_equal(onx_field_splice(arena, n, node, "input", 5, 0, 1), ONX_E_MISUSE);
    assert_int_equal(onx_field_splice(arena, n, node, "input", 1, 4, 0), ONX_E_MISUSE);
    assert_int_equal(onx_field_splice(arena, n, node, "name", 0, 0, 1), ONX_E_NOT_FOUND);
    assert_int_equal(onx_field_put_text(arena, n, node, "input", 4, onx_str_of("e")), ONX_E_MISUSE);
    assert_int_equal(onx_field_put_text(arena, n, node, "name", 0, onx_str_of("e")), ONX_E_MISUSE);

    const float numbers[] = { 1, 2, 3 };
    onx_tensor *t = onx_message_new(arena, ONX_KIND_TENSOR);
    assert_int_equal(onx_field_fill(arena, ONX_KIND_TENSOR, t, "float_data", numbers, 3), ONX_OK);
    assert_int_equal(t->float_data_count, 3);
    assert_memory_equal(t->float_data, numbers, sizeof numbers);
    assert_int_equal(onx_field_splice(arena, ONX_KIND_TENSOR, t, "float_data", 0, 1, 0), ONX_E_UNSUPPORTED);
    assert_int_equal(onx_field_put_float(arena, ONX_KIND_TENSOR, t, "float_data", 0, 1), ONX_E_UNSUPPORTED);
    assert_int_equal(onx_field_fill(arena, ONX_KIND_TENSOR, t, "float_data", NULL, 0), ONX_OK);
    assert_int_equal(t->float_data_count, 0);
    assert_int_equal(onx_field_fill(arena, ONX_KIND_TENSOR, t, "name", numbers, 3), ONX_E_NOT_FOUND);
    assert_int_equal(onx_field_splice(arena, ONX_KIND_TENSOR, t, "dims", 0, 0, 2), ONX_OK);
    assert_int_equal(onx_field_put_int(arena, ONX_KIND_TENSOR, t, "dims", 1, 7), ONX_OK);
    assert_true(t->dims_count == 2 && t->dims[0] == 0 && t->dims[1] == 7);
}

static void test_ir_field__listed(void **state)
{
    (void)state;
    onx_field_info info;
    int32_t value;
    assert_true(onx_field_get(ONX_KIND_MODEL, 0, &info));
    assert_string_equal(info.name, "ir_version");
    assert_int_equal(info.type, ONX_FIELD_INT64);
    assert_true(onx_field_get(ONX_KIND_GRAPH, 0, &info));
    assert_true(info.repeated && info.type == ONX_FIELD_MESSAGE && info.message == ONX_KIND_NODE);
    assert_false(onx_field_get(ONX_KIND_GRAPH, 1000, &info));
    assert_false(onx_field_get(ONX_KIND_NONE, 0, &info));
    assert_string_equal(onx_field_enum(ONX_KIND_ATTRIBUTE, "type", 2, &value), "INT");
    assert_int_equal(value, ONX_ATTR_INT);
    assert_null(onx_field_enum(ONX_KIND_ATTRIBUTE, "type", 99, &value));
    assert_null(onx_field_enum(ONX_KIND_ATTRIBUTE, "name", 0, NULL));
}

/* What is changed in a document does not show in one that shares its weights with it, and the other way round. */
static void test_ir_field__shared(void **state)
{
    (void)state;
    const int64_t dims[] = { 2 };
    const float data[] = { 1, 2 };
    onx_doc *share;
    onx_graph *graph = onx_doc_model(doc)->graph;
    onx_tensor *t = onx_tensor_new(arena, ONX_FLOAT, dims, 1, data, "w");
    assert_non_null(onx_graph_add_initializer(arena, graph, t));
    onx_node *node = onx_graph_add_node(arena, graph, "Add", "x w", "y");
    const int64_t ints[] = { 1, 2 };
    assert_non_null(onx_node_add_ints(arena, node, "axes", ints, 2));
    assert_int_equal(onx_doc_share(cx, doc, &share), ONX_OK);
    onx_graph *other = onx_doc_model(share)->graph;
    assert_true(onx_message_equal(ONX_KIND_GRAPH, graph, other));
    assert_ptr_equal(onx_view(other->initializer[0]->raw_data).ptr, onx_view(t->raw_data).ptr);
    assert_ptr_not_equal(other->node[0], node);
    other->node[0]->attribute[0]->ints[0] = 9;
    other->initializer[0]->dims[0] = 9;
    assert_int_equal(node->attribute[0]->ints[0], 1);
    assert_int_equal(t->dims[0], 2);
    assert_int_equal(onx_field_splice(arena, ONX_KIND_GRAPH, graph, "node", 0, 1, 0), ONX_OK);
    assert_int_equal(other->node_count, 1);
    onx_doc_free(share);
    assert_memory_equal(onx_view(t->raw_data).ptr, data, sizeof data);
}

static void test_ir_field__inline_functions(void **state)
{
    (void)state;
    onx_bytes bytes;
    assert_int_equal(onx_arena_keep(arena, onx_str_of("name"), &bytes), ONX_OK);
    assert_true(onx_ffi_str_is(onx_ffi_view(bytes), "name"));
    assert_true(onx_ffi_str_equal(onx_ffi_str_of("ab"), onx_ffi_str_make("abc", 2)));
    assert_false(onx_ffi_str_is(onx_ffi_str_of(NULL), "x"));
    assert_ptr_equal(onx_ffi_doc_model(doc), onx_doc_model(doc));
    assert_ptr_equal(onx_ffi_node_more(NULL), &onx_node_extra_none);
    assert_ptr_equal(onx_ffi_attribute_more(NULL), &onx_attribute_extra_none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ir_field__read_and_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ir_field__all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ir_field__lists, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ir_field__listed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ir_field__shared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ir_field__inline_functions, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rewriting: changed parts are copied with the messages that contain them, unchanged parts are shared, and the old
 * message does not change. */
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static onx_tensor *tensor(onx_arena *arena, const char *name)
{
    float one = 1;
    return onx_tensor_new(arena, ONX_FLOAT, NULL, 0, &one, name);
}

typedef struct state {
    onx_arena *arena;
    unsigned seen;
    const char *change; /* tensors whose name begins so */
} state;

static onx_status rename_tensor(void *user, const onx_visit *at, const void **out)
{
    state *s = user;
    const onx_tensor *old = at->message;
    s->seen++;
    onx_str name = onx_view(old->name);
    if (name.len < strlen(s->change) || memcmp(name.ptr, s->change, strlen(s->change)) != 0)
        return ONX_OK;
    onx_tensor *t = ONXI_NEW(s->arena, onx_tensor);
    *t = *old;
    ONX_TRY(onx_arena_keep(s->arena, onx_str_of("new"), &t->name));
    *out = t;
    return ONX_OK;
}

/* A tensor in every place that can hold one. */
static onx_doc *make(onx_ctx *cx)
{
    onx_doc *doc;
    assert_int_equal(onx_model_new(cx, "g", 20, &doc), ONX_OK);
    onx_arena *arena = onx_doc_arena(doc);
    onx_model *model = onx_doc_model(doc);
    onx_graph *graph = model->graph;
    *(onx_tensor **)onx_list_insert(arena, (void **)&graph->initializer, &graph->initializer_count, 0, sizeof(void *)) =
        tensor(arena, "a init");
    *(onx_tensor **)onx_list_insert(arena, (void **)&graph->initializer, &graph->initializer_count, 1, sizeof(void *)) =
        tensor(arena, "b init");
    onx_sparse_tensor *sparse = ONX_ADD(arena, graph, sparse_initializer, SPARSE_TENSOR);
    ONX_SET(sparse_tensor, sparse, values, tensor(arena, "c values"));
    ONX_SET(sparse_tensor, sparse, indices, tensor(arena, "d indices"));
    onx_graph *body = onx_message_new(arena, ONX_KIND_GRAPH);
    onx_node *inner = onx_graph_add_node(arena, body, "Constant", "", "y");
    onx_node_add_tensor(arena, inner, "value", tensor(arena, "e inner"));
    onx_node *node = onx_graph_add_node(arena, graph, "If", "x", "y");
    onx_node_add_graph(arena, node, "then_branch", body);
    onx_attribute *faulty = onx_node_add_int(arena, node, "faulty", 7); /* two values at once: one is in extra */
    onx_attribute_extra *extra = onx_message_extra(arena, ONX_KIND_ATTRIBUTE, faulty);
    extra->more.t = tensor(arena, "f extra");
    faulty->has |= onx_attribute_has_t;
    onx_function *function = ONX_ADD(arena, model, functions, FUNCTION);
    onx_attribute *preset = ONX_ADD(arena, function, attribute_proto, ATTRIBUTE);
    preset->slot = ONX_SLOT_T;
    preset->has |= onx_attribute_has_t;
    preset->t = tensor(arena, "g default");
    onx_training_info *info = ONX_ADD(arena, model, training_info, TRAINING_INFO);
    onx_graph *algorithm = onx_message_new(arena, ONX_KIND_GRAPH);
    ONX_SET(training_info, info, algorithm, algorithm);
    *(onx_tensor **)onx_list_insert(arena, (void **)&algorithm->initializer, &algorithm->initializer_count, 0,
                                    sizeof(void *)) = tensor(arena, "h train");
    return doc;
}

static void test_ir_rewrite__copies_what_changes(void **unused)
{
    (void)unused;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = make(cx);
    const onx_model *model = onx_doc_model(doc);
    onx_arena *arena;
    void *before;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    assert_int_equal(onx_message_copy(arena, ONX_KIND_MODEL, model, &before), ONX_OK);
    const void *out;
    state s = { arena, 0, "nothing" };
    assert_int_equal(onxi_message_rewrite(arena, ONX_KIND_MODEL, model, ONX_KIND_TENSOR, rename_tensor, &s, &out),
                     ONX_OK);
    assert_ptr_equal(out, model);
    assert_int_equal(s.seen, 8);

    s = (state){ arena, 0, "b" };
    assert_int_equal(onxi_message_rewrite(arena, ONX_KIND_MODEL, model, ONX_KIND_TENSOR, rename_tensor, &s, &out),
                     ONX_OK);
    const onx_model *now = out;
    assert_ptr_not_equal(now, model);
    assert_ptr_equal(now->graph->node, model->graph->node);
    assert_ptr_equal(now->graph->initializer[0], model->graph->initializer[0]);
    assert_true(onx_str_is(onx_view(now->graph->initializer[1]->name), "new"));
    assert_ptr_equal(now->functions, model->functions);

    s = (state){ arena, 0, "" }; /* all of them */
    assert_int_equal(onxi_message_rewrite(arena, ONX_KIND_MODEL, model, ONX_KIND_TENSOR, rename_tensor, &s, &out),
                     ONX_OK);
    assert_int_equal(s.seen, 8);
    now = out;
    state count = { arena, 0, "new" };
    assert_int_equal(onxi_message_rewrite(arena, ONX_KIND_MODEL, now, ONX_KIND_TENSOR, rename_tensor, &count, &out),
                     ONX_OK);
    assert_int_equal(count.seen, 8);
    const onx_attribute *faulty = now->graph->node[0]->attribute[1];
    assert_true(faulty->i == 7 && onx_str_is(onx_view(onx_attribute_more(faulty)->more.t->name), "new"));
    assert_true(onx_str_is(onx_view(now->training_info[0]->algorithm->initializer[0]->name), "new"));
    assert_true(onx_str_is(onx_view(now->graph->sparse_initializer[0]->indices->name), "new"));
    assert_true(onx_message_equal(ONX_KIND_MODEL, before, model));
    onx_arena_free(arena);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ir_rewrite__copies_what_changes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

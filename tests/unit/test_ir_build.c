/* Building, editing, copying, comparing, walking and indexing models from C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <onx/io.h>

#include "context.h"

/* y = Relu(Conv(x, w)), z = If(c){ t = Add(y, k) } */
static onx_doc *small_model(void)
{
    onx_doc *doc;
    assert_int_equal(onx_model_new(cx, "small", 21, &doc), ONX_OK);
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *g = onx_doc_model(doc)->graph;
    const int64_t shape[] = { -1, 3, 8, 8 }, wshape[] = { 1, 3, 1, 1 }, pads[] = { 0, 0, 0, 0 };
    const float w[] = { 0.5f, -1, 2 };
    assert_non_null(onx_graph_add_input(arena, g, "x", onx_type_new_tensor(arena, ONX_FLOAT, shape, 4)));
    assert_non_null(onx_graph_add_input(arena, g, "c", onx_type_new_tensor(arena, ONX_BOOL, NULL, 0)));
    assert_non_null(onx_graph_add_output(arena, g, "z", onx_type_new_tensor(arena, ONX_FLOAT, NULL, -1)));
    onx_tensor *t = onx_tensor_new(arena, ONX_FLOAT, wshape, 4, w, "w");
    assert_ptr_equal(onx_graph_add_initializer(arena, g, t), t);
    assert_int_equal(g->initializer_count, 1);
    onx_node *conv = onx_graph_add_node(arena, g, "Conv", "x w", "conv");
    assert_non_null(onx_node_add_ints(arena, conv, "pads", pads, 4));
    onx_graph_add_node(arena, g, "Relu", "conv", "y");
    onx_graph *branch = onx_message_new(arena, ONX_KIND_GRAPH);
    onx_graph_add_node(arena, branch, "Add", "y k", "t");
    onx_graph_add_output(arena, branch, "t", NULL);
    onx_node *cond = onx_graph_add_node(arena, g, "If", "c", "z");
    assert_non_null(onx_node_add_graph(arena, cond, "then_branch", branch));
    assert_non_null(onx_node_add_graph(arena, cond, "else_branch", branch));
    return doc;
}

static void test_ir_build__a_built_model_is_written_and_read_back(void **state)
{
    (void)state;
    onx_doc *doc = small_model(), *again;
    onx_buffer bytes;
    assert_int_equal(onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &bytes), ONX_OK);
    assert_int_equal(onx_read(cx, ONX_KIND_MODEL, onx_str_make(bytes.ptr, bytes.len), 0, 1, &again), ONX_OK);
    assert_true(onx_message_equal(ONX_KIND_MODEL, onx_doc_model(doc), onx_doc_model(again)));
    assert_int_equal(onx_diag_count(cx), 0);
    onx_doc_free(again);
    onx_buffer_free(&bytes);
    onx_doc_free(doc);
}

static void test_ir_build__omitted_operands_are_empty_names(void **state)
{
    (void)state;
    onx_doc *doc;
    assert_int_equal(onx_model_new(cx, "g", 21, &doc), ONX_OK);
    onx_node *n = onx_graph_add_node(onx_doc_arena(doc), onx_doc_model(doc)->graph, "Clip", "x - hi", "y");
    assert_int_equal(n->input_count, 3);
    assert_int_equal(onx_view(n->input[1]).len, 0);
    assert_true(onx_str_is(onx_view(n->input[2]), "hi"));
    onx_doc_free(doc);
}

static void test_ir_build__copies_share_nothing_and_are_equal(void **state)
{
    (void)state;
    onx_doc *doc = small_model();
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    void *copy;
    assert_int_equal(onx_message_copy(arena, ONX_KIND_MODEL, onx_doc_model(doc), &copy), ONX_OK);
    assert_true(onx_message_equal(ONX_KIND_MODEL, onx_doc_model(doc), copy));
    onx_node *conv = onx_doc_model(doc)->graph->node[0];
    conv->attribute[0]->ints[3] = 1;
    assert_false(onx_message_equal(ONX_KIND_MODEL, onx_doc_model(doc), copy));
    conv->attribute[0]->ints[3] = 0;
    ONX_CLEAR(node, conv, op_type);
    assert_false(onx_message_equal(ONX_KIND_MODEL, onx_doc_model(doc), copy));
    onx_doc_free(doc);
    onx_buffer bytes; /* the copy lives on */
    assert_int_equal(onx_write(cx, ONX_KIND_MODEL, copy, 0, &bytes), ONX_OK);
    onx_buffer_free(&bytes);
    onx_arena_free(arena);
}

static void test_ir_build__lists_grow_shrink_and_keep_order(void **state)
{
    (void)state;
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    uint32_t count = 0, model[64];
    uint32_t n = 0;
    void *list = NULL;
    srand(1);
    for (uint32_t i = 0; i < 2000; i++) {
        if (n < 40 && (n == 0 || rand() % 3)) {
            uint32_t at = (uint32_t)rand() % (n + 1);
            uint32_t *p = onx_list_insert(arena, &list, &count, at, sizeof *p);
            assert_non_null(p);
            assert_int_equal(*p, 0);
            *p = i;
            memmove(model + at + 1, model + at, (n - at) * sizeof *model);
            model[at] = i;
            n++;
        } else {
            uint32_t at = (uint32_t)rand() % n;
            onx_list_remove(list, &count, at, sizeof(uint32_t));
            memmove(model + at, model + at + 1, (n - at - 1) * sizeof *model);
            n--;
        }
        assert_int_equal(count, n);
        if (n)
            assert_memory_equal(list, model, n * sizeof *model);
    }
    assert_null(onx_list_insert(arena, &list, &count, n + 1, sizeof(uint32_t)));
    onx_arena_free(arena);
}

typedef struct seen {
    unsigned nodes, graphs;
    char path[200];
} seen;

static onx_status count_visit(void *user, const onx_visit *at)
{
    seen *s = user;
    s->nodes += at->kind == ONX_KIND_NODE;
    s->graphs += at->kind == ONX_KIND_GRAPH;
    if (at->kind == ONX_KIND_NODE && onx_str_is(onx_view(((onx_node *)at->message)->op_type), "Add"))
        onx_visit_path(at, s->path, sizeof s->path);
    return ONX_OK;
}

static onx_status stop_at_attribute(void *user, const onx_visit *at)
{
    (void)user;
    return at->kind == ONX_KIND_ATTRIBUTE ? ONX_E_CANCELLED : ONX_OK;
}

static void test_ir_build__walks_reach_subgraphs_and_say_where(void **state)
{
    (void)state;
    onx_doc *doc = small_model();
    seen s = { 0 };
    assert_int_equal(onx_message_walk(cx, ONX_KIND_MODEL, onx_doc_model(doc), count_visit, &s), ONX_OK);
    assert_int_equal(s.graphs, 3);
    assert_int_equal(s.nodes, 5);
    assert_string_equal(s.path, "graph.node[2] (If).attribute[1] \"else_branch\".g.node[0] (Add)");
    assert_int_equal(onx_message_walk(cx, ONX_KIND_MODEL, onx_doc_model(doc), stop_at_attribute, NULL),
                     ONX_E_CANCELLED);
    onx_doc_free(doc);
}

static void test_ir_build__a_cyclic_model_is_an_error_not_a_crash(void **state)
{
    (void)state;
    onx_doc *doc = small_model();
    onx_graph *g = onx_doc_model(doc)->graph;
    g->node[2]->attribute[0]->g = g;
    void *copy;
    onx_buffer bytes;
    seen s = { 0 };
    assert_int_equal(onx_message_copy(onx_doc_arena(doc), ONX_KIND_MODEL, onx_doc_model(doc), &copy), ONX_E_LIMIT);
    assert_int_equal(onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &bytes), ONX_E_LIMIT);
    assert_int_equal(onx_message_walk(cx, ONX_KIND_MODEL, onx_doc_model(doc), count_visit, &s), ONX_E_LIMIT);
    onx_doc_free(doc);
}

static void test_ir_build__index_knows_definitions_and_uses(void **state)
{
    (void)state;
    onx_doc *doc = small_model();
    onx_index *index;
    assert_int_equal(onx_index_new(cx, onx_doc_model(doc)->graph, &index), ONX_OK);
    onx_def def = onx_index_def(index, onx_index_find(index, onx_str_of("x")));
    assert_int_equal(def.kind, ONX_DEF_INPUT);
    def = onx_index_def(index, onx_index_find(index, onx_str_of("w")));
    assert_int_equal(def.kind, ONX_DEF_INITIALIZER);
    onx_name_id y = onx_index_find(index, onx_str_of("y"));
    def = onx_index_def(index, y);
    assert_int_equal(def.kind, ONX_DEF_NODE);
    assert_int_equal(def.index, 1);
    uint32_t count;
    const onx_use *uses = onx_index_uses(index, y, &count);
    assert_int_equal(count, 2); /* once in each branch, which count as uses of the If node */
    assert_int_equal(uses[0].node, 2);
    assert_int_equal(uses[0].input, UINT32_MAX);
    assert_true(onx_index_is_output(index, onx_index_find(index, onx_str_of("z"))));
    assert_false(onx_index_is_output(index, y));
    assert_int_equal(onx_index_find(index, onx_str_of("nothing")), ONX_NO_NAME);
    onx_index_free(index);
    onx_doc_free(doc);
}

static void test_ir_build__index_of_many_names(void **state)
{
    (void)state;
    onx_doc *doc;
    enum { N = 50000 };
    assert_int_equal(onx_model_new(cx, "chain", 21, &doc), ONX_OK);
    for (int i = 0; i < N; i++) {
        char in[32], out[32];
        snprintf(in, sizeof in, "v%d", i);
        snprintf(out, sizeof out, "v%d", i + 1);
        assert_non_null(onx_graph_add_node(onx_doc_arena(doc), onx_doc_model(doc)->graph, "Neg", in, out));
    }
    onx_index *index;
    assert_int_equal(onx_index_new(cx, onx_doc_model(doc)->graph, &index), ONX_OK);
    assert_int_equal(onx_index_name_count(index), N + 1);
    for (int i = 1; i <= N; i += 997) {
        char name[32];
        snprintf(name, sizeof name, "v%d", i);
        onx_def def = onx_index_def(index, onx_index_find(index, onx_str_of(name)));
        assert_int_equal(def.index, i - 1);
    }
    onx_index_free(index);
    onx_doc_free(doc);
}

static void test_ir_build__long_bytes_take_the_long_form(void **state)
{
    (void)state;
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    size_t sizes[] = { 0, 1, 0xfffe, 0xffff, 0x10000, 200000 };
    char *big = calloc(1, 200000);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        onx_bytes b;
        assert_int_equal(onx_arena_refer(arena, onx_str_make(big, sizes[i]), &b), ONX_OK);
        assert_int_equal(onx_view(b).len, sizes[i]);
        assert_int_equal(onx_arena_keep(arena, onx_str_make(big, sizes[i]), &b), ONX_OK);
        assert_int_equal(onx_view(b).len, sizes[i]);
        assert_true(sizes[i] == 0 || onx_view(b).ptr != big);
    }
    free(big);
    onx_arena_free(arena);
}

/* ---- every allocation fails in turn ---- */

typedef struct faulty {
    size_t left;
} faulty;

static void *faulty_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    faulty *f = user;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    if (f->left == 0)
        return NULL;
    f->left--;
    return realloc(ptr, new_size);
}

static void test_ir_build__running_out_of_memory_is_an_error_everywhere(void **state)
{
    (void)state;
    onx_doc *doc = small_model();
    onx_buffer bytes;
    assert_int_equal(onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &bytes), ONX_OK);
    bool finished = false;
    for (size_t n = 0; !finished && n < 1000; n++) {
        faulty f = { n };
        onx_allocator allocator = { faulty_resize, &f };
        onx_ctx *poor = onx_ctx_new(&allocator);
        if (!poor)
            continue;
        onx_doc *read;
        onx_status status = onx_read(poor, ONX_KIND_MODEL, onx_str_make(bytes.ptr, bytes.len), ONX_READ_COPY, 1, &read);
        if (status == ONX_OK) {
            onx_buffer out;
            onx_index *index;
            void *copy;
            onx_status written = onx_write(poor, ONX_KIND_MODEL, onx_doc_model(read), 0, &out);
            if (written == ONX_OK)
                onx_buffer_free(&out);
            onx_status copied = onx_message_copy(onx_doc_arena(read), ONX_KIND_MODEL, onx_doc_model(read), &copy);
            onx_status indexed = onx_index_new(poor, onx_doc_model(read)->graph, &index);
            if (indexed == ONX_OK)
                onx_index_free(index);
            finished = written == ONX_OK && copied == ONX_OK && indexed == ONX_OK;
            assert_true(finished || written == ONX_E_MEMORY || copied == ONX_E_MEMORY || indexed == ONX_E_MEMORY);
        } else {
            assert_int_equal(status, ONX_E_MEMORY);
        }
        onx_doc_free(read);
        onx_ctx_free(poor);
    }
    assert_true(finished);
    onx_buffer_free(&bytes);
    onx_doc_free(doc);
}

/* A list that was put in order has the room that appending counts on. */
static void test_ir_build__nodes_are_added_after_sorting(void **state)
{
    (void)state;
    for (uint32_t nodes = 2; nodes < 18; nodes++) {
        onx_doc *doc;
        bool changed = false;
        onx_node *all[40];
        assert_int_equal(onx_model_new(cx, "backwards", 21, &doc), ONX_OK);
        onx_arena *arena = onx_doc_arena(doc);
        for (uint32_t i = nodes; i-- > 0;) {
            char from[16], to[16];
            snprintf(from, sizeof from, "v%u", i);
            snprintf(to, sizeof to, "v%u", i + 1);
            all[i] = onx_graph_add_node(arena, onx_doc_model(doc)->graph, "Relu", from, to);
        }
        assert_int_equal(onx_doc_sort(doc, &changed), ONX_OK);
        assert_true(changed);
        onx_graph *g = onx_doc_model(doc)->graph;
        for (uint32_t i = nodes; i < 2 * nodes; i++)
            assert_non_null(all[i] = onx_graph_add_node(arena, g, "Abs", "v0", "w"));
        assert_int_equal(g->node_count, 2 * nodes);
        for (uint32_t i = 0; i < 2 * nodes; i++) {
            assert_ptr_equal(g->node[i], all[i]);
            assert_true(onx_str_is(onx_view(g->node[i]->op_type), i < nodes ? "Relu" : "Abs"));
        }
        onx_doc_free(doc);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ir_build__a_built_model_is_written_and_read_back),
        TEST(test_ir_build__omitted_operands_are_empty_names),
        TEST(test_ir_build__copies_share_nothing_and_are_equal),
        TEST(test_ir_build__lists_grow_shrink_and_keep_order),
        TEST(test_ir_build__walks_reach_subgraphs_and_say_where),
        TEST(test_ir_build__a_cyclic_model_is_an_error_not_a_crash),
        TEST(test_ir_build__nodes_are_added_after_sorting),
        TEST(test_ir_build__index_knows_definitions_and_uses),
        TEST(test_ir_build__index_of_many_names),
        TEST(test_ir_build__long_bytes_take_the_long_form),
        TEST(test_ir_build__running_out_of_memory_is_an_error_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

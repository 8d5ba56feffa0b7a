/* The C interface of inference: writing results, queries, fixing dimensions, explanations; custom operators; parts of
 * models; limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/infer.h>
#include <onx/text.h>

#include <stdio.h>
#include <stdlib.h>

#include "context.h"

static onx_doc *parse(const char *text)
{
    onx_doc *doc = NULL;
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    return doc;
}

typedef struct collected {
    char text[256];
    size_t len;
} collected;

static onx_status collect(void *user, onx_str bytes)
{
    collected *c = user;
    for (size_t i = 0; i < bytes.len && c->len + 1 < sizeof c->text; i++)
        if (bytes.ptr[i] != '\n')
            c->text[c->len++] = bytes.ptr[i];
    c->text[c->len] = '\0';
    return ONX_OK;
}

static void assert_type(const onx_type *type, const char *wanted)
{
    collected c = { .len = 0 };
    assert_non_null(type);
    assert_int_equal(onx_text_print(cx, ONX_KIND_TYPE, type, NULL, (onx_sink){ collect, &c }), ONX_OK);
    assert_string_equal(c.text, wanted);
}

static const onx_type *value_type(const onx_graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->value_info_count; i++)
        if (onx_str_is(onx_view(graph->value_info[i]->name), name))
            return graph->value_info[i]->type;
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (onx_str_is(onx_view(graph->output[i]->name), name))
            return graph->output[i]->type;
    return NULL;
}

static const char *const small = "<ir_version: 10, opset_import: [\"\" : 18]>\n"
                                 "g (float[N,4] x) => (y) {\n"
                                 "  a = Concat <axis = 0> (x, x)\n"
                                 "  b = NonZero (a)\n"
                                 "  c = Cast <to = 1> (b)\n"
                                 "  y = Transpose (a)\n"
                                 "}";

static void test_infer_api__writes_into_the_model(void **state)
{
    (void)state;
    onx_doc *doc = parse(small);
    onx_graph *graph = onx_doc_model(doc)->graph;
    assert_int_equal(onx_infer_model(cx, doc, NULL), ONX_OK);
    assert_int_equal(graph->value_info_count, 3);
    assert_type(value_type(graph, "a"), "float[\"2*N\", 4]");
    assert_type(value_type(graph, "c"), "float[2, unk__0]");
    assert_type(value_type(graph, "y"), "float[4, \"2*N\"]");
    /* Once more: nothing is added, the fixed size replaces the expression. */
    const onx_infer_fixed fixed[] = { { "N", 3 } };
    const onx_infer_options options = { .fixed = fixed, .fixed_count = 1 };
    assert_int_equal(onx_infer_model(cx, doc, &options), ONX_OK);
    assert_int_equal(graph->value_info_count, 3);
    assert_type(value_type(graph, "a"), "float[6, 4]");
    assert_type(value_type(graph, "y"), "float[4, 6]");
    onx_doc_free(doc);
}

static void test_infer_api__plain_names(void **state)
{
    (void)state;
    onx_doc *doc = parse(small);
    const onx_infer_options options = { .plain_names = true };
    assert_int_equal(onx_infer_model(cx, doc, &options), ONX_OK);
    const onx_type *type = value_type(onx_doc_model(doc)->graph, "a");
    assert_false(ONX_HAS(dimension, type->tensor_type->shape->dim[0], dim_param));
    assert_int_equal(type->tensor_type->shape->dim[1]->dim_value, 4);
    onx_doc_free(doc);
}

static void test_infer_api__asks_and_fixes(void **state)
{
    (void)state;
    onx_doc *doc = parse(small);
    const onx_graph *graph = onx_doc_model(doc)->graph;
    onx_infer *infer;
    assert_int_equal(onx_infer_new(cx, doc, NULL, &infer), ONX_OK);
    assert_type(onx_infer_type(infer, graph, onx_str_of("x")), "float[N, 4]");
    assert_type(onx_infer_type_of(infer, ONX_KIND_GRAPH, graph, onx_str_of("a")), "float[\"2*N\", 4]");
    assert_null(onx_infer_type(infer, graph, onx_str_of("nobody")));
    assert_int_equal(onx_infer_fix(infer, onx_str_of("N"), 5), ONX_OK);
    assert_type(onx_infer_type(infer, graph, onx_str_of("a")), "float[10, 4]");
    assert_int_equal(onx_infer_fix(infer, onx_str_of("M"), 5), ONX_E_NOT_FOUND);
    assert_int_equal(onx_infer_fix(infer, onx_str_of("N"), -1), ONX_E_MISUSE);
    assert_int_equal(graph->value_info_count, 0); /* nothing was written yet */
    assert_int_equal(onx_infer_apply(infer), ONX_OK);
    assert_type(value_type(graph, "y"), "float[4, 10]");
    assert_int_equal(onx_infer_apply(infer), ONX_OK); /* twice is once */
    assert_int_equal(graph->value_info_count, 3);
    onx_infer_free(infer);
    onx_doc_free(doc);
}

static void test_infer_api__explains(void **state)
{
    (void)state;
    onx_doc *doc = parse("<ir_version: 10, opset_import: [\"\" : 18, \"my\" : 1]>\n"
                         "g (float[N,4] x) => () {\n"
                         "  a = Relu (x)\n"
                         "  b = my.Mystery (a)\n"
                         "  c = Relu (b)\n"
                         "  d = Add (c, a)\n"
                         "  e = NonZero (a)\n"
                         "  f = Transpose (e)\n"
                         "}");
    onx_infer *infer;
    assert_int_equal(onx_infer_new(cx, doc, NULL, &infer), ONX_OK);
    onx_infer_summary s = onx_infer_summarize(infer);
    assert_int_equal(s.values, 6);
    assert_int_equal(s.symbolic, 1);
    assert_int_equal(s.open, 2);
    assert_int_equal(s.unknown, 3);
    const onx_infer_loss *first = onx_infer_loss_get(infer, 0), *second = onx_infer_loss_get(infer, 1);
    assert_true(onx_str_is(first->op_type, "Mystery"));
    assert_true(onx_str_is(first->path, "graph.node[1] (Mystery)"));
    assert_int_equal(first->values, 3);
    assert_true(onx_str_is(second->op_type, "NonZero"));
    assert_int_equal(second->values, 2);
    assert_null(onx_infer_loss_get(infer, 2));
    onx_infer_free(infer);
    onx_doc_free(doc);
}

static void test_infer_api__strict_leaves_the_model_alone(void **state)
{
    (void)state;
    onx_doc *doc = parse("<ir_version: 10, opset_import: [\"\" : 18]>\n"
                         "g (float[2,4] x) => () { a = Relu (x) b = MatMul (a, a) }");
    const onx_infer_options strict = { .strict = true };
    assert_int_equal(onx_infer_model(cx, doc, &strict), ONX_E_INVALID);
    assert_int_equal(onx_doc_model(doc)->graph->value_info_count, 0);
    assert_int_equal(onx_diag_total(cx, ONX_ERROR), 1);
    onx_diag_clear(cx);
    assert_int_equal(onx_infer_model(cx, doc, NULL), ONX_OK);
    assert_int_equal(onx_diag_total(cx, ONX_WARNING), 1);
    assert_type(value_type(onx_doc_model(doc)->graph, "a"), "float[2, 4]");
    onx_doc_free(doc);
}

/* ---- custom operators ---- */

static onx_status infer_double(void *user, onx_op_call *call)
{
    onx_op_dim dims[1];
    ++*(int *)user;
    if (onx_op_call_rank(call, 0) != 1)
        return onx_op_call_fail(call, "rank %d", onx_op_call_rank(call, 0));
    dims[0] = onx_op_call_dim(call, 0, 0);
    return onx_op_call_set(call, 0, onx_op_call_dtype(call, 0), dims, 1);
}

static void test_infer_api__custom_operators(void **state)
{
    (void)state;
    static const onx_op_port in[] = { { "x", "T", 0 }, { 0 } }, out[] = { { "y", "T", 0 }, { 0 } };
    static const char *const types[] = { "T", "tensor(float) tensor(int64)", NULL };
    int calls = 0;
    const onx_op_def def = { .domain = "my",
                             .name = "Double",
                             .since = 1,
                             .inputs = in,
                             .outputs = out,
                             .types = types,
                             .infer = infer_double,
                             .user = &calls };
    onx_registry *registry;
    assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
    assert_int_equal(onx_op_register(registry, &def), ONX_OK);
    onx_doc *doc = parse("<ir_version: 10, opset_import: [\"\" : 18, \"my\" : 1]>\n"
                         "g (int64[N] x, float[2,2] m) => () { a = my.Double (x) b = my.Double (m) c = Neg (a) }");
    const onx_infer_options options = { .registry = registry };
    assert_int_equal(onx_infer_model(cx, doc, &options), ONX_OK);
    assert_int_equal(calls, 2);
    assert_type(value_type(onx_doc_model(doc)->graph, "c"), "int64[N]");
    assert_int_equal(onx_diag_total(cx, ONX_WARNING), 1);
    onx_doc_free(doc);
    onx_registry_free(registry);
}

/* ---- parts ---- */

static void test_infer_api__graph_and_function(void **state)
{
    (void)state;
    onx_doc *doc = parse("<ir_version: 10, opset_import: [\"\" : 18, \"my\" : 1]>\n"
                         "g (float[N,M] x) => (y) { y = Transpose (x) }\n"
                         "<domain: \"my\", opset_import: [\"\" : 18]>\n"
                         "f <k> (a, b) => (c, d) { c = Concat <axis: int = @k> (a, a) d = Shape (b) }");
    const onx_model *model = onx_doc_model(doc);
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    const int64_t dims[] = { 2, 3 };
    const onx_type *given[2] = { onx_type_new_tensor(arena, ONX_FLOAT, dims, 2), NULL }, *out[2];
    assert_int_equal(onx_infer_graph(cx, model, model->graph, given, 1, NULL, arena, out), ONX_OK);
    assert_type(out[0], "float[3, 2]");
    onx_node *node = onx_message_new(arena, ONX_KIND_NODE);
    const onx_attribute *k = onx_node_add_int(arena, node, "k", 1);
    assert_int_equal(onx_infer_function(cx, model, model->functions[0], given, 2, &k, 1, NULL, arena, out), ONX_OK);
    assert_type(out[0], "float[2, 6]");
    assert_type(out[1], "int64[unk__0]");
    onx_arena_free(arena);
    onx_doc_free(doc);
}

/* ---- bounds ---- */

/* A model whose function f40 calls f39 twice and so on: 2^40 nodes. */
static onx_doc *parse_bomb(const char *least)
{
    size_t len = 0, size = 1 << 14;
    char *text = malloc(size);
    len += (size_t)snprintf(text, size,
                            "<ir_version: 10, opset_import: [\"\" : 18, \"my\" : 1]>\n"
                            "g (float[N] x) => () { a = my.f40 (x) }\n"
                            "<domain: \"my\", opset_import: [\"\" : 18]>\nf0 (a) => (b) { %s }\n",
                            least);
    for (int i = 1; i <= 40; i++)
        len += (size_t)snprintf(text + len, size - len,
                                "<domain: \"my\", opset_import: [\"\" : 18, \"my\" : 1]>\n"
                                "f%d (a) => (c) { b = my.f%d (a) c = my.f%d (b) }\n",
                                i, i - 1, i - 1);
    onx_doc *doc = parse(text);
    free(text);
    return doc;
}

static void limit_memory(void)
{
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 100 << 20;
    onx_ctx_set_limits(cx, limits);
}

/* A call that is given the same again is not walked again. */
static void test_infer_api__equal_calls_are_one(void **state)
{
    (void)state;
    onx_doc *doc = parse_bomb("b = Relu (a)");
    limit_memory();
    assert_int_equal(onx_infer_model(cx, doc, NULL), ONX_OK);
    assert_int_equal(onx_diag_total(cx, ONX_WARNING), 0);
    assert_type(value_type(onx_doc_model(doc)->graph, "a"), "float[N]");
    onx_doc_free(doc);
    /* Types, constants and attributes tell calls apart; sizes that depend on data are different in each. */
    doc = parse("<ir_version: 10, opset_import: [\"\" : 18, \"my\" : 1]>\n"
                "g (float[N] x, float[N] z, int64[3] i) => () {\n"
                "  a = my.f <k = 2> (x) b = my.f <k = 3> (x) c = my.f <k = 2> (z) d = my.f <k = 2> (i)\n"
                "  one = Constant <value_ints = [1, 3]> () two = Constant <value_ints = [2, -1]> ()\n"
                "  e = my.r (i, one) f = my.r (i, two) h = my.r (i, one)\n"
                "  p = my.n (x) q = my.n (z)\n"
                "}\n"
                "<domain: \"my\", opset_import: [\"\" : 18]>\n"
                "f <k> (x) => (y) { c = Constant <value_int: int = @k> () z = Constant <value_ints = [0]> ()\n"
                "  s = Unsqueeze (c, z) y = Tile (x, s) }\n"
                "<domain: \"my\", opset_import: [\"\" : 18]> r (x, s) => (y) { y = Reshape (x, s) }\n"
                "<domain: \"my\", opset_import: [\"\" : 18]> n (x) => (y) { y = NonZero (x) }");
    onx_graph *graph = onx_doc_model(doc)->graph;
    assert_int_equal(onx_infer_model(cx, doc, NULL), ONX_OK);
    assert_type(value_type(graph, "a"), "float[\"2*N\"]");
    assert_type(value_type(graph, "b"), "float[\"3*N\"]");
    assert_type(value_type(graph, "c"), "float[\"2*N\"]");
    assert_type(value_type(graph, "d"), "int64[6]");
    assert_type(value_type(graph, "e"), "int64[1, 3]");
    assert_type(value_type(graph, "h"), "int64[1, 3]");
    assert_null(value_type(graph, "f")->tensor_type->shape);
    const onx_type *p = value_type(graph, "p"), *q = value_type(graph, "q");
    assert_false(onx_message_equal(ONX_KIND_TYPE, p, q));
    onx_doc_free(doc);
}

/* Calls that each make a size of their own are all different: they end at the limit of repetition, in little memory. */
static void test_infer_api__repetition_is_bounded(void **state)
{
    (void)state;
    onx_doc *doc = parse_bomb("b = NonZero (a)");
    limit_memory();
    assert_int_equal(onx_infer_model(cx, doc, NULL), ONX_OK);
    assert_int_equal(onx_diag_total(cx, ONX_WARNING), 1);
    onx_doc_free(doc);
}

/* 20,000 values of 4,096 elements: 640 MB if all were carried along. */
static void test_infer_api__carried_values_are_bounded(void **state)
{
    (void)state;
    onx_doc *doc;
    assert_int_equal(onx_model_new(cx, "g", 18, &doc), ONX_OK);
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    static int64_t elements[4096];
    const int64_t dims[] = { 4096 };
    onx_node *node = onx_graph_add_node(arena, graph, "Constant", "", "v0");
    assert_non_null(
        onx_node_add_tensor(arena, node, "value", onx_tensor_new(arena, ONX_INT64, dims, 1, elements, "v")));
    for (int i = 0; i < 20000; i++) {
        char in[32], out[16];
        snprintf(in, sizeof in, "v%d v0", i);
        snprintf(out, sizeof out, "v%d", i + 1);
        assert_non_null(onx_graph_add_node(arena, graph, "Add", in, out));
    }
    limit_memory();
    assert_int_equal(onx_infer_model(cx, doc, NULL), ONX_OK);
    assert_type(graph->value_info[20000]->type, "int64[4096]");
    onx_doc_free(doc);
}

static void test_infer_api__nesting_is_bounded(void **state)
{
    (void)state;
    onx_doc *doc;
    assert_int_equal(onx_model_new(cx, "g", 18, &doc), ONX_OK);
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    assert_non_null(onx_graph_add_input(arena, graph, "c", onx_type_new_tensor(arena, ONX_BOOL, NULL, 0)));
    for (int i = 0; i < 5000; i++) { /* deeper than any stack of ours should follow */
        onx_graph *inner = onx_message_new(arena, ONX_KIND_GRAPH);
        onx_node *node = onx_graph_add_node(arena, graph, "If", "c", "r");
        assert_non_null(onx_node_add_graph(arena, node, "then_branch", inner));
        assert_non_null(onx_node_add_graph(arena, node, "else_branch", inner));
        assert_non_null(onx_graph_add_output(arena, graph, "r", NULL));
        graph = inner;
    }
    assert_non_null(onx_graph_add_node(arena, graph, "Identity", "c", "r"));
    assert_non_null(onx_graph_add_output(arena, graph, "r", NULL));
    assert_int_equal(onx_infer_model(cx, doc, NULL), ONX_OK);
    assert_true(onx_diag_total(cx, ONX_WARNING) > 0);
    onx_doc_free(doc);
}

static void test_infer_api__every_pass_is_linear(void **state)
{
    (void)state;
    /* A chain of a million nodes would take minutes if a pass were quadratic; this one takes a moment. */
    onx_doc *doc;
    assert_int_equal(onx_model_new(cx, "g", 18, &doc), ONX_OK);
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    const int64_t dims[] = { 2, 3 };
    assert_non_null(onx_graph_add_input(arena, graph, "v0", onx_type_new_tensor(arena, ONX_FLOAT, dims, 2)));
    for (int i = 0; i < 100000; i++) {
        char in[16], out[16];
        snprintf(in, sizeof in, "v%d", i);
        snprintf(out, sizeof out, "v%d", i + 1);
        assert_non_null(onx_graph_add_node(arena, graph, i % 2 ? "Transpose" : "Relu", in, out));
    }
    assert_int_equal(onx_infer_model(cx, doc, NULL), ONX_OK);
    assert_int_equal(graph->value_info_count, 100000);
    assert_type(graph->value_info[99999]->type, "float[2, 3]");
    onx_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_infer_api__##name, set_up, tear_down)
        TEST(writes_into_the_model),
        TEST(plain_names),
        TEST(asks_and_fixes),
        TEST(explains),
        TEST(strict_leaves_the_model_alone),
        TEST(custom_operators),
        TEST(graph_and_function),
        TEST(equal_calls_are_one),
        TEST(repetition_is_bounded),
        TEST(carried_values_are_bounded),
        TEST(nesting_is_bounded),
        TEST(every_pass_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

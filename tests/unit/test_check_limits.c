/* test_check_limits.c - inputs that are large or hostile by their shape: deep nesting, long chains, many operands, many
 * findings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include <onx/check.h>
#include <onx/io.h>

static bool reported(onx_ctx *cx, const char *rule)
{
    for (size_t i = 0; i < onx_diag_count(cx); i++)
        if (onx_diag_get(cx, i)->rule && strcmp(onx_diag_get(cx, i)->rule, rule) == 0)
            return true;
    return false;
}

static size_t times(onx_ctx *cx, const char *rule)
{
    size_t n = 0;
    for (size_t i = 0; i < onx_diag_count(cx); i++)
        n += onx_diag_get(cx, i)->rule && strcmp(onx_diag_get(cx, i)->rule, rule) == 0;
    return n;
}

static onx_doc *new_model(onx_ctx *cx)
{
    onx_doc *doc;
    assert_int_equal(onx_model_new(cx, "g", 21, &doc), ONX_OK);
    return doc;
}

static onx_bytes name_of(onx_arena *arena, const char *prefix, uint32_t i)
{
    char text[32];
    onx_bytes out;
    snprintf(text, sizeof text, "%s%u", prefix, i);
    assert_int_equal(onx_arena_keep(arena, onx_str_of(text), &out), ONX_OK);
    return out;
}

/* A function local.<prefix><i> that calls number `callee`, or, for UINT32_MAX, only Relu. */
static void add_function(onx_doc *doc, uint32_t i, uint32_t callee)
{
    onx_arena *arena = onx_doc_arena(doc);
    onx_function *f = ONX_ADD(arena, onx_doc_model(doc), functions, FUNCTION);
    assert_non_null(f);
    f->name = name_of(arena, "f", i);
    assert_int_equal(onx_arena_keep(arena, onx_str_of("local"), &f->domain), ONX_OK);
    f->has |= onx_function_has_name | onx_function_has_domain;
    onx_list_add_text(arena, &f->input, &f->input_count, onx_str_of("a"));
    onx_list_add_text(arena, &f->output, &f->output_count, onx_str_of("b"));
    onx_operator_set_id *id = ONX_ADD(arena, f, opset_import, OPERATOR_SET_ID);
    ONX_SET(operator_set_id, id, version, callee == UINT32_MAX ? 21 : 1);
    if (callee != UINT32_MAX) {
        id->domain = f->domain;
        id->has |= onx_operator_set_id_has_domain;
    }
    onx_node *n = ONX_ADD(arena, f, node, NODE);
    onx_list_add_text(arena, &n->input, &n->input_count, onx_str_of("a"));
    onx_list_add_text(arena, &n->output, &n->output_count, onx_str_of("b"));
    if (callee == UINT32_MAX) {
        onx_arena_keep(arena, onx_str_of("Relu"), &n->op_type);
    } else {
        n->op_type = name_of(arena, "f", callee);
        n->domain = f->domain;
    }
    n->has |= onx_node_has_op_type | onx_node_has_domain;
}

static void test_check_limits__functions_chains_and_cycles(void **state)
{
    (void)state;
    const struct {
        uint32_t count;
        bool cycle;
        uint32_t depth; /* 0: the default */
        const char *rule;
    } cases[] = { { 90, false, 0, NULL },       { 120, false, 0, "M-16" },   { 120, false, 200, NULL },
                  { 20, false, 10, "M-16" },    { 20000, false, 0, "M-16" }, { 100000, true, 0, "F-04" },
                  { 1000000, false, 0, "M-16" } };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc = new_model(cx);
        for (uint32_t i = 0; i < cases[c].count; i++)
            add_function(doc, i, i + 1 < cases[c].count ? i + 1 : cases[c].cycle ? 0 : UINT32_MAX);
        onx_limits limits = onx_ctx_limits(cx);
        limits.depth = cases[c].depth ? cases[c].depth : limits.depth;
        onx_ctx_set_limits(cx, limits);
        onx_check_options options = { .flags = ONX_CHECK_STRUCTURE };
        assert_int_equal(onx_check(cx, doc, &options, NULL), cases[c].rule ? ONX_E_INVALID : ONX_OK);
        if (cases[c].rule)
            assert_true(reported(cx, cases[c].rule));
        onx_doc_free(doc);
        onx_ctx_free(cx);
    }
}

static void test_check_limits__a_domain_is_judged_once(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = new_model(cx);
    for (uint32_t i = 0; i < 10; i++)
        add_function(doc, i, i < 9 ? i + 1 : UINT32_MAX);
    assert_int_equal(onx_check(cx, doc, NULL, NULL), ONX_OK);
    assert_int_equal(times(cx, "O-12"), 1);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_check_limits__every_function_calls_the_first(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = new_model(cx);
    enum { COUNT = 5000 };
    for (uint32_t i = 0; i < COUNT; i++)
        add_function(doc, i, i ? i - 1 : COUNT - 1);
    onx_check_options options = { .flags = ONX_CHECK_STRUCTURE };
    assert_int_equal(onx_check(cx, doc, &options, NULL), ONX_E_INVALID);
    assert_int_equal(times(cx, "F-04"), 1);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_check_limits__nested_subgraphs(void **state)
{
    (void)state;
    for (int deep = 0; deep < 2; deep++) {
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc = new_model(cx);
        onx_arena *arena = onx_doc_arena(doc);
        onx_graph *graph = onx_doc_model(doc)->graph;
        onx_graph_add_input(arena, graph, "c", onx_type_new_tensor(arena, ONX_BOOL, NULL, 0));
        for (uint32_t i = 0; i < (deep ? 100000u : 50u); i++) {
            char output[32];
            snprintf(output, sizeof output, "y%u", i);
            onx_node *n = onx_graph_add_node(arena, graph, "If", "c", output);
            onx_graph *inner = onx_message_new(arena, ONX_KIND_GRAPH);
            assert_non_null(inner);
            onx_arena_keep(arena, onx_str_of("t"), &inner->name);
            onx_node_add_graph(arena, n, "then_branch", inner);
            onx_node_add_graph(arena, n, "else_branch", inner == graph ? NULL : onx_message_new(arena, ONX_KIND_GRAPH));
            graph = inner;
        }
        onx_check_options options = { .flags = ONX_CHECK_STRUCTURE };
        assert_int_equal(onx_check(cx, doc, &options, NULL), ONX_E_INVALID);
        assert_int_equal(reported(cx, "S-19"), deep);
        onx_doc_free(doc);
        onx_ctx_free(cx);
    }
}

static void test_check_limits__nested_types(void **state)
{
    (void)state;
    for (int deep = 0; deep < 2; deep++) {
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc;
        assert_int_equal(onx_doc_new(cx, ONX_KIND_TYPE, &doc), ONX_OK);
        onx_arena *arena = onx_doc_arena(doc);
        onx_type *type = onx_doc_root(doc, ONX_KIND_TYPE);
        for (uint32_t i = 0; i < (deep ? 100000u : 40u); i++) {
            onx_type_sequence *s = onx_message_new(arena, ONX_KIND_TYPE_SEQUENCE);
            ONX_SET(type, type, sequence_type, s);
            onx_type *inner = onx_message_new(arena, ONX_KIND_TYPE);
            ONX_SET(type_sequence, s, elem_type, inner);
            type = inner;
        }
        onx_type_tensor *t = onx_message_new(arena, ONX_KIND_TYPE_TENSOR);
        ONX_SET(type_tensor, t, elem_type, ONX_FLOAT);
        ONX_SET(type, type, tensor_type, t);
        assert_int_equal(onx_check(cx, doc, NULL, NULL), deep ? ONX_E_INVALID : ONX_OK);
        assert_int_equal(reported(cx, "W-25"), deep);
        onx_doc_free(doc);
        onx_ctx_free(cx);
    }
}

static void test_check_limits__a_million_operands(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = new_model(cx);
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    onx_graph_add_input(arena, graph, "x", onx_type_new_tensor(arena, ONX_FLOAT, NULL, 0));
    onx_node *n = onx_graph_add_node(arena, graph, "Max", "x", "y");
    for (uint32_t i = 0; i < 1000000; i++)
        assert_int_equal(onx_list_add_text(arena, &n->input, &n->input_count, onx_str_of(i % 2 ? "x" : "q")), ONX_OK);
    for (uint32_t i = 0; i < 100000; i++) { /* as many attributes with names of their own */
        char text[32];
        snprintf(text, sizeof text, "a%u", i);
        assert_non_null(onx_node_add_int(arena, n, text, 1));
    }
    onx_check_options options = { .max_errors = 10 };
    onx_check_summary summary;
    assert_int_equal(onx_check(cx, doc, &options, &summary), ONX_E_INVALID);
    assert_int_equal(times(cx, "G-07"), 1);   /* one name is missing, however often it is read */
    assert_int_equal(summary.errors, 100001); /* and no attribute is known */
    assert_true(onx_diag_total(cx, ONX_ERROR) <= 10);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* A chain of nodes, in order or backwards; in the latter each reads what comes later. */
/* Nothing bounds the operands of Max; rows count up to 65535 only. */
static void test_check_limits__a_hundred_thousand_good_operands(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = new_model(cx);
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    onx_graph_add_input(arena, graph, "x", onx_type_new_tensor(arena, ONX_FLOAT, NULL, 0));
    onx_node *n = onx_graph_add_node(arena, graph, "Max", "x", "y");
    for (uint32_t i = 0; i < 100000; i++)
        assert_int_equal(onx_list_add_text(arena, &n->input, &n->input_count, onx_str_of("x")), ONX_OK);
    onx_check_options options = { .flags = ONX_CHECK_FULL };
    assert_int_equal(onx_check(cx, doc, &options, NULL), ONX_OK);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* Every value of a graph depends on every other one. */
static void test_check_limits__cyclic_references(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = new_model(cx);
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    for (uint32_t i = 0; i < COUNT; i++) {
        onx_node *n = ONX_ADD(arena, graph, node, NODE);
        onx_arena_keep(arena, onx_str_of("Add"), &n->op_type);
        n->has |= onx_node_has_op_type;
        onx_bytes next = name_of(arena, "v", (i + 1) % COUNT), other = name_of(arena, "v", (i * 7919u + 3) % COUNT);
        onx_bytes output = name_of(arena, "v", i);
        onx_list_add_text(arena, &n->input, &n->input_count, onx_view(next));
        onx_list_add_text(arena, &n->input, &n->input_count, onx_view(other));
        onx_list_add_text(arena, &n->output, &n->output_count, onx_view(output));
    }
    onx_check_summary summary;
    assert_int_equal(onx_check(cx, doc, NULL, &summary), ONX_E_INVALID);
    assert_int_equal(times(cx, "G-02"), 1); /* one cycle, one finding */
    assert_int_equal(summary.errors, 1);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* Many calls that leave out many parameters: the product of the two is not worked through. */
static void test_check_limits__parameters_left_out(void **state)
{
    (void)state;
    enum { PARAMETERS = 30000, CALLS = 30000 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = new_model(cx);
    onx_arena *arena = onx_doc_arena(doc);
    add_function(doc, 0, UINT32_MAX);
    onx_function *f = onx_doc_model(doc)->functions[0];
    onx_operator_set_id *id = ONX_ADD(arena, onx_doc_model(doc), opset_import, OPERATOR_SET_ID);
    ONX_SET(operator_set_id, id, version, 1);
    ONX_SET(operator_set_id, id, domain, f->domain);
    for (uint32_t i = 0; i < PARAMETERS; i++) {
        onx_bytes parameter = name_of(arena, "p", i), output = name_of(arena, "t", i);
        onx_list_add_text(arena, &f->attribute, &f->attribute_count, onx_view(parameter));
        onx_node *n = ONX_ADD(arena, f, node, NODE);
        onx_arena_keep(arena, onx_str_of("Cast"), &n->op_type);
        n->has |= onx_node_has_op_type;
        onx_list_add_text(arena, &n->input, &n->input_count, onx_str_of("a"));
        onx_list_add_text(arena, &n->output, &n->output_count, onx_view(output));
        onx_attribute *a = onx_node_add_int(arena, n, "to", 1);
        a->slot = ONX_SLOT_NONE;
        a->has &= ~(uint32_t)onx_attribute_has_i;
        onx_attribute_extra *more = onx_arena_alloc(arena, sizeof *more);
        assert_non_null(more);
        more->ref_attr_name = parameter;
        a->extra = &more->base;
        a->has |= onx_attribute_has_ref_attr_name;
    }
    onx_graph *graph = onx_doc_model(doc)->graph;
    onx_graph_add_input(arena, graph, "x", onx_type_new_tensor(arena, ONX_FLOAT, NULL, 0));
    for (uint32_t i = 0; i < CALLS; i++) {
        onx_bytes output = name_of(arena, "y", i);
        onx_node *n = ONX_ADD(arena, graph, node, NODE);
        n->op_type = f->name;
        n->domain = f->domain;
        n->has |= onx_node_has_op_type | onx_node_has_domain;
        onx_list_add_text(arena, &n->input, &n->input_count, onx_str_of("x"));
        onx_list_add_text(arena, &n->output, &n->output_count, onx_view(output));
    }
    onx_check_options options = { .flags = ONX_CHECK_STRUCTURE };
    onx_check_summary summary;
    assert_int_equal(onx_check(cx, doc, &options, &summary), ONX_E_INVALID);
    assert_true(reported(cx, "F-19"));
    assert_int_equal(summary.errors, CALLS);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_check_limits__long_graphs(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    for (int backwards = 0; backwards < 2; backwards++) {
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc = new_model(cx);
        onx_arena *arena = onx_doc_arena(doc);
        onx_graph *graph = onx_doc_model(doc)->graph;
        onx_graph_add_input(arena, graph, "v0", onx_type_new_tensor(arena, ONX_FLOAT, NULL, 0));
        for (uint32_t j = 0; j < COUNT; j++) {
            uint32_t i = backwards ? COUNT - 1 - j : j;
            onx_node *n = ONX_ADD(arena, graph, node, NODE);
            onx_arena_keep(arena, onx_str_of("Relu"), &n->op_type);
            n->has |= onx_node_has_op_type;
            onx_bytes input = name_of(arena, "v", i), output = name_of(arena, "v", i + 1);
            onx_list_add_text(arena, &n->input, &n->input_count, onx_view(input));
            onx_list_add_text(arena, &n->output, &n->output_count, onx_view(output));
        }
        onx_check_summary summary;
        assert_int_equal(onx_check(cx, doc, NULL, &summary), backwards ? ONX_E_INVALID : ONX_OK);
        assert_int_equal(summary.errors, backwards ? COUNT - 1 : 0);
        assert_false(reported(cx, "G-02"));
        onx_doc_free(doc);
        onx_ctx_free(cx);
    }
}

static void test_check_limits__names_that_differ_in_a_zero_byte(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = new_model(cx);
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    onx_graph_add_input(arena, graph, "a", onx_type_new_tensor(arena, ONX_FLOAT, NULL, 0));
    onx_value_info *other = onx_graph_add_input(arena, graph, "b", onx_type_new_tensor(arena, ONX_FLOAT, NULL, 0));
    assert_int_equal(onx_arena_keep(arena, onx_str_make("a\0b", 3), &other->name), ONX_OK);
    assert_int_equal(onx_check(cx, doc, NULL, NULL), ONX_E_INVALID);
    assert_true(reported(cx, "N-11"));
    assert_false(reported(cx, "G-06"));
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_check_limits__misuse(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    assert_int_equal(onx_doc_new(cx, ONX_KIND_SEGMENT, &doc), ONX_OK);
    assert_int_equal(onx_check(cx, doc, NULL, NULL), ONX_E_MISUSE);
    const char *ids[] = { "T-99" };
    onx_check_options options = { .only = ids, .only_count = 1 };
    assert_int_equal(onx_check(cx, doc, &options, NULL), ONX_E_NOT_FOUND);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* ---- allocation failing at every point in turn ---- */

typedef struct rationed {
    long left;
} rationed;

static void *resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    rationed *r = user;
    (void)old_size;
    if (!new_size) {
        free(ptr);
        return NULL;
    }
    return r->left-- > 0 ? realloc(ptr, new_size) : NULL;
}

static void test_check_limits__memory_runs_out(void **state)
{
    (void)state;
    static const char text[] =
        "ir_version: 10 opset_import { version: 21 } graph { name: \"g\" node { op_type: \"Reluu\" input: \"x\" output: \"y\" name: \"n\" } "
        "node { op_type: \"Relu\" input: \"q\" output: \"z\" name: \"n\" } initializer { name: \"w\" dims: 3 data_type: 1 float_data: 1 } } "
        "functions { name: \"F\" domain: \"c.d\" input: \"a\" output: \"b\" } metadata_props { key: \"a\" } metadata_props { key: \"a\" }";
    bool ended = false;
    for (long n = 0; n < 400 && !ended; n++) {
        rationed ration = { 1000000 };
        onx_allocator allocator = { resize, &ration };
        onx_ctx *cx = onx_ctx_new(&allocator);
        onx_doc *doc;
        assert_int_equal(onx_textproto_read(cx, ONX_KIND_MODEL, onx_str_of(text), &doc), ONX_OK);
        ration.left = n;
        onx_check_options options = { .flags = ONX_CHECK_PEDANTIC };
        onx_status status = onx_check(cx, doc, &options, NULL);
        assert_true(status == ONX_E_MEMORY || status == ONX_E_INVALID);
        ended = ration.left > 0;
        ration.left = 1000000;
        onx_doc_free(doc);
        onx_ctx_free(cx);
    }
    assert_true(ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_limits__functions_chains_and_cycles),
        cmocka_unit_test(test_check_limits__a_domain_is_judged_once),
        cmocka_unit_test(test_check_limits__every_function_calls_the_first),
        cmocka_unit_test(test_check_limits__nested_subgraphs),
        cmocka_unit_test(test_check_limits__nested_types),
        cmocka_unit_test(test_check_limits__a_million_operands),
        cmocka_unit_test(test_check_limits__a_hundred_thousand_good_operands),
        cmocka_unit_test(test_check_limits__cyclic_references),
        cmocka_unit_test(test_check_limits__parameters_left_out),
        cmocka_unit_test(test_check_limits__long_graphs),
        cmocka_unit_test(test_check_limits__names_that_differ_in_a_zero_byte),
        cmocka_unit_test(test_check_limits__misuse),
        cmocka_unit_test(test_check_limits__memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

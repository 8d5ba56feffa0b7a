/* test_ir_path.c - paths of diagnostics: a written path leads back to the same part, whatever names contain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <onx/text.h>

#include "ir/ir.h"

#include "context.h"

static const char model_text[] =
    "<ir_version: 10, opset_import: [\"\" : 21, \"a].b\" : 1], metadata_props: [\"k\\\".v[0]\" : \"v\"]>\n"
    "\"g\\\"\" (float[N, 3] \"x\\\".name\", \"y (z)\") => (out) <float[2] \"w\\\" (Add).input[0]\" = {1, 2}>\n{\n"
    "  [\"n\\\".node[1] \\\"m\\\" (Mul)\"] a = \"Op\\\").attribute[0]\".\"T).input[0]\"<input = 1, b = 2>(x, , z)\n"
    "  b = If (c) <then_branch = t () => (r) { r = Relu(x) }, else_branch = e () => (r) { r = Relu(y) }>\n"
    "  c = If (c) <input = t () => (r) { r = Relu(x) }, bodies = [e () => (r) { r = Relu(y) }]>\n"
    "  [\"a name of more than a hundred bytes, which the label cuts behind a character of several bytes: "
    "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\"] d = local.F:v(\"\x01\n\xff\")\n"
    "}\n"
    "<domain: \"local\", overload: \"v\"> F <p, k: int = 2> (u) => (z) { z = Relu(u) }\n";

static onx_doc *read_model(void)
{
    onx_doc *doc;
    onx_diag_clear(cx);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(model_text), 0, &doc), ONX_OK);
    return doc;
}

/* Where the path leads, of which `*rest` cannot be followed. */
static const void *follow(const onx_doc *doc, const char *path, const char **rest)
{
    onxi_path_cursor c = onxi_path_begin(ONX_KIND_MODEL, onx_doc_model(doc), onx_str_of(path));
    const void *part = NULL;
    while (onxi_path_next(&c))
        part = c.message ? c.message : c.member;
    *rest = c.rest.ptr;
    return part;
}

static onx_status leads_back(void *user, const onx_visit *at)
{
    char path[2048];
    const char *rest;
    if (!at->parent)
        return ONX_OK;
    assert_true(onx_visit_path(at, path, sizeof path) < sizeof path);
    assert_ptr_equal(follow(user, path, &rest), at->message);
    assert_string_equal(rest, "");
    return ONX_OK;
}

static void test_ir_path__leads_back(void **state)
{
    (void)state;
    onx_doc *doc = read_model();
    assert_int_equal(onx_message_walk(cx, ONX_KIND_MODEL, onx_doc_model(doc), leads_back, doc), ONX_OK);
    onx_doc_free(doc);
}

static void test_ir_path__members_and_elements(void **state)
{
    (void)state;
    onx_doc *doc = read_model();
    const onx_model *m = onx_doc_model(doc);
    const onx_node *n = m->graph->node[0];
    const struct {
        const char *path;
        const void *part;
        const char *rest;
    } rows[] = {
        { "ir_version", &m->ir_version, "" },
        { "opset_import", &m->opset_import, "" },
        { "opset_import[0].version", &m->opset_import[0]->version, "" },
        { "graph.node[0].input[2]", &n->input[2], "" },
        { "graph.node[0].input[3]", NULL, "" },
        { "graph.node[0].op_type", &n->op_type, "" },
        { "graph.node[1].then_branch.node[0] (Relu)", m->graph->node[1]->attribute[0]->g->node[0], "" },
        /* the short form is for names that are no members of nodes */
        { "graph.node[2].input.node[0]", &m->graph->node[2]->input, ".node[0]" },
        { "graph.node[2].attribute[0] \"input\".g.node[0]", m->graph->node[2]->attribute[0]->g->node[0], "" },
        /* a label that is not that of the message ends the way */
        { "graph.node[1] \"other\" (If).input[0]", m->graph->node[1], " \"other\" (If).input[0]" },
        { "graph.node[7].input[0]", NULL, ".input[0]" },
        { "graph.node[4294967296].input[0]", m->graph, "[4294967296].input[0]" },
        { "graph.node[].input[0]", m->graph, "[].input[0]" },
        { "graph.node[0", m->graph, "[0" },
        { "graph[0]", NULL, "[0]" },
        { "graph.nothing", m->graph, "" },
        { "graph..node[0]", m->graph, ".node[0]" },
        { ".graph", NULL, ".graph" },
        { "", NULL, "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *rest;
        assert_ptr_equal(follow(doc, rows[i].path, &rest), rows[i].part);
        assert_string_equal(rest, rows[i].rest);
    }
    onx_doc_free(doc);
}

/* The prefixes of what stands in subgraphs and in functions that are called. */
static void test_ir_path__inner_places(void **state)
{
    (void)state;
    onx_doc *doc = read_model();
    const onx_model *m = onx_doc_model(doc);
    const onx_function *f = m->functions[0];
    onx_arena *arena = onx_doc_arena(doc);
    const char *rest;
    onx_str graph = onx_str_of("graph.");
    for (uint32_t i = 1; i < 3; i++) {
        const onx_node *n = m->graph->node[i];
        onx_str node = onxi_path_node(arena, graph, i, n);
        onx_str inner = onxi_path_subgraph(arena, node, n, n->attribute[0]);
        const onx_node *body = n->attribute[0]->g->node[0];
        onx_str path = onxi_arena_printf(arena, "%.*s", ONX_ARG(onxi_path_node(arena, inner, 0, body)));
        assert_string_equal(path.ptr, i == 1 ? "graph.node[1] (If).then_branch.node[0] (Relu)"
                                             : "graph.node[2] (If).attribute[0] \"input\".g.node[0] (Relu)");
        assert_ptr_equal(follow(doc, path.ptr, &rest), body);
    }
    onx_str call = onxi_path_node(arena, graph, 3, m->graph->node[3]);
    onx_str path = onxi_path_node(arena, onxi_path_call(arena, call, f), 0, f->node[0]);
    onxi_path_cursor c = onxi_path_begin(ONX_KIND_MODEL, m, path);
    while (onxi_path_next(&c))
        ;
    assert_ptr_equal(c.message, m->graph->node[3]);
    assert_true(onxi_path_enter_call(&c, f));
    assert_ptr_equal(c.message, f);
    assert_true(onxi_path_next(&c));
    assert_ptr_equal(c.message, f->node[0]);
    assert_int_equal(c.rest.len, 0);
    onx_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ir_path__leads_back),
        cmocka_unit_test(test_ir_path__members_and_elements),
        cmocka_unit_test(test_ir_path__inner_places),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

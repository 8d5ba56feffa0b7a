/* test_text_places.c - conversion of paths of diagnostics to line and column of the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <onx/check.h>
#include <onx/text.h>

#include "scarce.h"

#include "context.h"

typedef struct row {
    const char *path;
    uint32_t line;      /* 0: the path has no place */
    const char *begins; /* what stands there */
} row;

static void check_rows(onx_kind kind, const char *text, const row *rows, size_t count)
{
    onx_doc *doc;
    onx_text_places *places;
    onx_diag_clear(cx);
    assert_int_equal(onx_text_parse(cx, kind, onx_str_of(text), 0, &doc), ONX_OK);
    size_t said = onx_diag_count(cx);
    assert_int_equal(onx_text_places_new(doc, &places), ONX_OK);
    assert_non_null(places);
    assert_int_equal(onx_diag_count(cx), said); /* nothing is said twice */
    for (size_t i = 0; i < count; i++) {
        onx_where where = { .kind = ONX_AT_NOWHERE };
        onx_str excerpt;
        bool found = onx_text_places_find(places, onx_str_of(rows[i].path), &where, &excerpt);
        if (found != (rows[i].line != 0) || where.line != rows[i].line ||
            (found && strncmp(excerpt.ptr + where.column - 1, rows[i].begins, strlen(rows[i].begins)) != 0))
            fail_msg("%s: found %d, line %u, column %u", rows[i].path, found, where.line, where.column);
        if (found) {
            assert_int_equal(where.kind, ONX_AT_TEXT);
            assert_memory_equal(text + where.byte, rows[i].begins, strlen(rows[i].begins));
        }
    }
    onx_text_places_free(places);
    onx_doc_free(doc);
}
#define CHECK_ROWS(kind, text, rows) check_rows((kind), (text), (rows), sizeof(rows) / sizeof *(rows))

static const char model_text[] = "# a model\n"                                                           /*  1 */
                                 "<\n"                                                                   /*  2 */
                                 "  ir_version: 10,\n"                                                   /*  3 */
                                 "  opset_import: [\"\" : 21, \"local\" : 1],\n"                         /*  4 */
                                 "  metadata_props: [\"k\" : \"v\", \"l\" : \"w\"]\n"                    /*  5 */
                                 ">\n"                                                                   /*  6 */
                                 "g (float[N, 3] x, bool c, float[2] d = {1, 2}) => (seq(float[M]) y)\n" /*  7 */
                                 "<float[3] w = {1, 2, 3},\n"                                            /*  8 */
                                 " int64[K] v, float[1] e = [\"location\" : \"file\", \"offset\" : \"0\"]>\n"
                                 "{\n"                                                             /* 10 */
                                 "  a = Relu(x)\n"                                                 /* 11 */
                                 "  [\"n\\\".node[0] (Relu)\"] b, , b2 = \"my.domain\".Op:over<\n" /* 12 */
                                 "    zz = 0.5, t = float[2] tn {1, 2}>(a,\n"                      /* 13 */
                                 "      , nix)\n"                                                  /* 14 */
                                 "  #@ node.metadata_props: [{key: \"k\" value: \"v\"}]\n"         /* 15 */
                                 "  e = If (c) <\n"                                                /* 16 */
                                 "    then_branch = t () => (float[N] r) {\n"                      /* 17 */
                                 "      r = Reluu(x)\n"                                            /* 18 */
                                 "    },\n"                                                        /* 19 */
                                 "    else_branch = s () => (float[N] r2) <float[1] in = {1}>\n"   /* 20 */
                                 "      { r2 = Loop <body = l (i) => (o) { o = Abs(i) }> (z) }\n"  /* 21 */
                                 "  >\n"                                                           /* 22 */
                                 "  y = local.F(b)\n"                                              /* 23 */
                                 "}\n"                                                             /* 24 */
                                 "<domain: \"local\",\n"                                           /* 25 */
                                 " opset_import: [\"\" : 21]>\n"                                   /* 26 */
                                 "F <p, k: ints = [2], q> (u,\n"                                   /* 27 */
                                 "  float[2] o) => (z) <float inner>\n"                            /* 28 */
                                 "{\n"                                                             /* 29 */
                                 "  inner = Relu(u)\n"                                             /* 30 */
                                 "  z = Concat<axis = 7>(inner, nope)\n"                           /* 31 */
                                 "}\n";                                                            /* 32 */

static void test_text_places__headers_and_values(void **state)
{
    (void)state;
    static const row rows[] = {
        { "model", 2, "<" },
        { "ModelProto", 2, "<" },
        { "ir_version", 3, "ir_version" },
        { "opset_import", 4, "opset_import" },
        { "opset_import[0]", 4, "\"\" : 21" },
        { "opset_import[1] \"local\".version", 4, "\"local\" : 1" },
        { "metadata_props[1] \"l\".value", 5, "\"l\"" },
        { "producer_name", 2, "<" }, /* the text does not have it */
        { "graph", 7, "g (" },
        { "graph.name", 7, "g (" },
        { "graph.doc_string", 7, "g (" },
        { "graph.input[0] \"x\"", 7, "float[N, 3] x" },
        { "graph.input[0] \"x\".name", 7, "x, " },
        { "graph.input[0] \"x\".type.tensor_type.shape.dim[1].dim_value", 7, "3] x" },
        { "graph.input[0] \"x\".type.tensor_type.elem_type", 7, "float[N, 3] x" },
        { "graph.input[2] \"d\"", 7, "float[2] d" },
        { "graph.initializer[0] \"d\".dims", 7, "float[2] d" },
        { "graph.output[0] \"y\".type.sequence_type.elem_type", 7, "float[M]" },
        { "graph.initializer[1] \"w\".float_data", 8, "float[3] w" },
        { "graph.value_info[0] \"v\"", 9, "int64[K] v" },
        { "graph.initializer[2] \"e\".external_data[1] \"offset\"", 9, "\"offset\"" },
    };
    CHECK_ROWS(ONX_KIND_MODEL, model_text, rows);
}

static void test_text_places__nodes(void **state)
{
    (void)state;
    static const row rows[] = {
        { "graph.node[0] (Relu)", 11, "a = Relu" },
        { "graph.node[0] (Relu).output[0]", 11, "a = Relu" },
        { "graph.node[0] (Relu).input[0]", 11, "x)" },
        { "graph.node[0] (Relu).input[1]", 11, "a = Relu" }, /* the node has one */
        { "graph.node[1] \"n\".node[0] (Relu)\" (Op)", 12, "[\"n" },
        { "graph.node[1] \"n\".node[0] (Relu)\" (Op).output[2]", 12, "b2" },
        { "graph.node[1].output[1]", 12, ", b2" },
        { "graph.node[1] \"n\".node[0] (Relu)\" (Op).op_type", 12, "\"my.domain\".Op" },
        { "graph.node[1].overload", 12, "over<" },
        { "graph.node[1].attribute[0] \"zz\".f", 13, "zz = 0.5" },
        { "graph.node[1].attribute[1] \"t\".t", 13, "float[2] tn" },
        { "graph.node[1].attribute[1] \"t\".t \"tn\".name", 13, "tn {" },
        { "graph.node[1].input[0]", 13, "a,\n" },
        { "graph.node[1].input[1]", 14, ", nix" },
        { "graph.node[1].input[2]", 14, "nix" },
        { "graph.node[1].metadata_props[0] \"k\"", 12, "[\"n" }, /* from a comment */
        { "graph.node[1] \"n\" (Relu).input[2]", 12, "[\"n" },   /* not its label */
        { "graph.node[99].input[2]", 7, "g (" },
    };
    CHECK_ROWS(ONX_KIND_MODEL, model_text, rows);
}

static void test_text_places__inner_parts(void **state)
{
    (void)state;
    static const row rows[] = {
        { "graph.node[2] (If).attribute[0] \"then_branch\"", 17, "then_branch" },
        { "graph.node[2] (If).attribute[0] \"then_branch\".g", 17, "t () =>" },
        { "graph.node[2] (If).attribute[0] \"then_branch\".g.output[0] \"r\"", 17, "float[N] r" },
        { "graph.node[2] (If).attribute[0] \"then_branch\".g.node[0] (Reluu).input[0]", 18, "x)" },
        { "graph.node[2] (If).then_branch.node[0] (Reluu)", 18, "r = Reluu" },
        { "graph.node[2] (If).else_branch.initializer[0] \"in\"", 20, "float[1] in" },
        { "graph.node[2] (If).else_branch.node[0] (Loop).body.node[0] (Abs).input[0]", 21, "i) }" },
        { "functions[0] \"F\"", 27, "F <p" },
        { "functions[0] \"F\".domain", 25, "domain" },
        { "functions[0] \"F\".opset_import[0]", 26, "\"\" : 21" },
        { "functions[0] \"F\".attribute[0]", 27, "p, k" },
        { "functions[0] \"F\".attribute[1]", 27, "q>" },
        { "functions[0] \"F\".attribute_proto[0] \"k\".ints", 27, "k: ints" },
        { "functions[0] \"F\".input[0]", 27, "u," },
        { "functions[0] \"F\".input[1]", 28, "float[2] o" },
        { "functions[0] \"F\".output[0]", 28, "z)" },
        { "functions[0] \"F\".value_info[0] \"o\"", 28, "float[2] o" },
        { "functions[0] \"F\".value_info[1] \"inner\"", 28, "float inner" },
        { "functions[0] \"F\".node[1] (Concat).input[1]", 31, "nope" },
        { "graph.node[3] (F) function F node[1] (Concat)", 31, "z = Concat" },
        { "graph.node[3] (F) function F node[1] (Concat).attribute[0] \"axis\"", 31, "axis = 7" },
        { "graph.node[3] (F) function F ... node[1] (Concat)", 27, "F <p" },
        { "graph.node[3] (F) function G node[1] (Concat)", 23, "y = local.F" },
        { "graph.node[0] (Relu) function Relu node[1] (Max)", 11, "a = Relu" }, /* the body is the operator's */
    };
    CHECK_ROWS(ONX_KIND_MODEL, model_text, rows);
}

static void test_text_places__no_place(void **state)
{
    (void)state;
    static const row rows[] = {
        { "", 0, "" },
        { "tensor \"w\"", 0, "" },
        { "node[0]", 0, "" },
        { ".graph", 0, "" },
        { "graph[0]", 0, "" },
        { "ir_version[0]", 0, "" },
        { " function F node[0]", 0, "" },
        { "NodeProto", 0, "" },
    };
    CHECK_ROWS(ONX_KIND_MODEL, model_text, rows);
    onx_doc *doc;
    onx_text_places *places;
    onx_diag_clear(cx);
    assert_int_equal(onx_read(cx, ONX_KIND_MODEL, onx_str_make("\x08\x0a", 2), 0, 1, &doc), ONX_OK);
    assert_int_equal(onx_text_places_new(doc, &places), ONX_OK);
    assert_null(places); /* not from text */
    onx_text_places_free(places);
    onx_doc_free(doc);
}

static void test_text_places__parts(void **state)
{
    (void)state;
    static const row node[] = { { "NodeProto", 2, "y = Add" },
                                { "input[1]", 3, "b)" },
                                { "op_type", 2, "Add" },
                                { "attribute[0] \"g\".g.node[0] (Abs).input[0]", 2, "i) }" },
                                { "model", 0, "" } };
    CHECK_ROWS(ONX_KIND_NODE, "# one\ny = Add<g = h () => (o) { o = Abs(i) }>(a,\n b)", node);
    static const row graph[] = { { "GraphProto", 1, "g (" }, { "node[1] (Abs)", 1, "z = Abs" } };
    CHECK_ROWS(ONX_KIND_GRAPH, "g (x) => (z) { y = Abs(x) z = Abs(y) }", graph);
    static const row function[] = { { "FunctionProto", 2, "f (" }, { "input[0]", 2, "x)" }, { "domain", 1, "domain" } };
    CHECK_ROWS(ONX_KIND_FUNCTION, "<domain: \"d\">\nf (x) => (y) { y = Abs(x) }", function);
    static const row value[] = { { "name", 1, "x" }, { "type.tensor_type.shape.dim[0]", 1, "N]" } };
    CHECK_ROWS(ONX_KIND_VALUE_INFO, "float[N] x", value);
    static const row type[] = { { "TypeProto", 1, "seq" }, { "sequence_type.elem_type", 1, "int32" } };
    CHECK_ROWS(ONX_KIND_TYPE, "seq(int32)", type);
    static const row attribute[] = { { "AttributeProto", 1, "a" }, { "tensors[1]", 1, "int64 {2}" } };
    CHECK_ROWS(ONX_KIND_ATTRIBUTE, "a = [int64 {1}, int64 {2}]", attribute);
}

/* Whole parts that come from comments have no places inside. */
static void test_text_places__restored_parts(void **state)
{
    (void)state;
    static const row rows[] = { { "graph.node[0] (Mul).input[0]", 3, "y = Add" },
                                { "graph.node[1] (Abs).input[0]", 5, "z = Abs" },
                                { "graph.node[2] (Abs).input[0]", 7, "z)" } };
    CHECK_ROWS(ONX_KIND_MODEL,
               "<ir_version: 10, opset_import: [\"\" : 21]>\ng (x) => (y) {\n"
               "  y = Add(a, b)\n  #@ node: {op_type: \"Mul\" input: [\"q\"] output: [\"y\"]}\n"
               "  z = Abs(y)\n  #@ node.input: [\"p\"]\n  w = Abs(z)\n}\n",
               rows);
}

/* Line and column do not depend on where the text is cut into blocks, and an excerpt is left out where it is far. */
static void test_text_places__long_texts(void **state)
{
    (void)state;
    enum { NODES = 3000 };
    static const char head[] = "<ir_version: 10, opset_import: [\"\" : 21]>\ng (x) => (y) {";
    for (int lines = 0; lines < 2; lines++) {
        char *text = malloc(sizeof head + NODES * 20 + 4);
        assert_non_null(text);
        size_t n = (size_t)sprintf(text, "%s", head);
        for (int i = 0; i < NODES; i++)
            n += (size_t)sprintf(text + n, "%cx%04d = Abs(x)", lines ? '\n' : ' ', i);
        n += (size_t)sprintf(text + n, " }");
        onx_doc *doc;
        onx_text_places *places;
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(text, n), ONX_TEXT_BORROW, &doc), ONX_OK);
        assert_int_equal(onx_text_places_new(doc, &places), ONX_OK);
        for (int i = NODES - 1; i >= 0; i--) {
            char path[64];
            onx_where where;
            onx_str excerpt;
            snprintf(path, sizeof path, "graph.node[%d] (Abs)", i);
            assert_true(onx_text_places_find(places, onx_str_of(path), &where, &excerpt));
            assert_int_equal(where.line, lines ? 3 + i : 2);
            assert_int_equal(where.column, lines ? 1 : 16 + 15 * i);
            assert_int_equal(excerpt.len != 0, lines || where.column <= 240);
        }
        onx_text_places_free(places);
        onx_doc_free(doc);
        free(text);
    }
}

static void test_text_places__diagnostics(void **state)
{
    (void)state;
    static const char text[] =
        "<ir_version: 10, opset_import: [\"\" : 21], producer_name: \"p\", producer_version: \"1\">\n"
        "g (float[1] x) => (float[1] y) {\n  y = Relu(q)\n}\n";
    onx_doc *doc;
    onx_diag_clear(cx);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_check(cx, doc, NULL, NULL), ONX_E_INVALID);
    size_t count = onx_diag_count(cx), i = 0;
    while (i < count && strcmp(onx_diag_get(cx, i)->rule, "G-07") != 0)
        i++;
    assert_true(i < count);
    assert_int_equal(onx_text_locate(doc, i + 1), ONX_OK);
    assert_int_equal(onx_diag_get(cx, i)->where.kind, ONX_AT_MODEL);
    assert_int_equal(onx_text_locate(doc, 0), ONX_OK);
    assert_int_equal(onx_diag_count(cx), count);
    const onx_diag *d = onx_diag_get(cx, i);
    assert_int_equal(d->where.kind, ONX_AT_TEXT);
    assert_int_equal(d->where.line, 3);
    assert_int_equal(d->where.column, 12);
    assert_int_equal(d->excerpt.len, strlen("  y = Relu(q)"));
    char line[256];
    onx_diag_format(d, line, sizeof line);
    assert_non_null(strstr(line, "3:12: graph.node[0] (Relu).input[0]: error: "));
    onx_doc_free(doc);
}

static void test_text_places__memory_may_run_out(void **state)
{
    (void)state;
    for (unsigned failing = 1;; failing++) {
        scarce_memory memory = { 0 };
        onx_ctx *poor = onx_ctx_new(&(onx_allocator){ scarce_resize, &memory });
        onx_doc *doc;
        onx_text_places *places;
        onx_where where;
        assert_non_null(poor);
        assert_int_equal(onx_text_parse(poor, ONX_KIND_MODEL, onx_str_of(model_text), 0, &doc), ONX_OK);
        memory.calls = 0;
        memory.failing = failing;
        onx_status status = onx_text_places_new(doc, &places);
        bool done = memory.calls < failing;
        assert_int_equal(status, done ? ONX_OK : ONX_E_MEMORY);
        assert_int_equal(places != NULL, done);
        if (done)
            assert_true(onx_text_places_find(places, onx_str_of("graph.node[0]"), &where, NULL));
        onx_text_places_free(places);
        onx_doc_free(doc);
        onx_ctx_free(poor);
        assert_int_equal(memory.in_use, 0);
        if (done)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_places__headers_and_values),
        cmocka_unit_test(test_text_places__nodes),
        cmocka_unit_test(test_text_places__inner_parts),
        cmocka_unit_test(test_text_places__no_place),
        cmocka_unit_test(test_text_places__parts),
        cmocka_unit_test(test_text_places__restored_parts),
        cmocka_unit_test(test_text_places__long_texts),
        cmocka_unit_test(test_text_places__diagnostics),
        cmocka_unit_test(test_text_places__memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

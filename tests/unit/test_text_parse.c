/* test_text_parse.c - edge cases of the parser: limits, hostile text, lenient literals, lack of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/tensor.h>
#include <onx/text.h>

#include "cases.h"
#include "scarce.h"

#include "context.h"

static onx_status parse(onx_kind kind, const char *text, uint32_t flags, onx_doc **out)
{
    onx_diag_clear(cx);
    return onx_text_parse(cx, kind, onx_str_of(text), flags, out);
}

static cases_buffer repeat(const char *before, const char *part, size_t count, const char *after)
{
    cases_buffer b = { NULL, 0 };
    size_t len = strlen(part);
    b.ptr = malloc(strlen(before) + count * len + strlen(after) + 1);
    assert_non_null(b.ptr);
    memcpy(b.ptr, before, b.len = strlen(before));
    for (size_t i = 0; i < count; i++, b.len += len)
        memcpy(b.ptr + b.len, part, len);
    memcpy(b.ptr + b.len, after, strlen(after) + 1);
    b.len += strlen(after);
    return b;
}

static void test_text_parse__nesting_is_bounded(void **state)
{
    (void)state;
    static const struct {
        onx_kind kind;
        const char *before, *part;
    } rows[] = { { ONX_KIND_GRAPH, "g (", "seq(" },
                 { ONX_KIND_TYPE, "", "map(int64, optional(" },
                 { ONX_KIND_NODE, "", "y = If(c)<b = g () => () { " },
                 { ONX_KIND_NODE, "y = Op<a = ", "[g () => () { y = Op<a = " } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        onx_doc *doc;
        cases_buffer text = repeat(rows[i].before, rows[i].part, 1000000, "");
        onx_diag_clear(cx);
        assert_int_equal(onx_text_parse(cx, rows[i].kind, onx_str_make(text.ptr, text.len), 0, &doc), ONX_E_LIMIT);
        assert_null(doc);
        const onx_diag *d = onx_diag_get(cx, 0);
        assert_int_equal(d->status, ONX_E_LIMIT);
        assert_int_equal(d->where.kind, ONX_AT_TEXT);
        assert_true(d->where.column < 5000);
        free(text.ptr);
    }
}

static void test_text_parse__depth_is_that_of_messages(void **state)
{
    (void)state;
    onx_limits limits = onx_ctx_limits(cx);
    limits.depth = 9; /* graph 0, input 1, type 2, sequence 3, type 4, sequence 5, type 6, tensor 7, shape 8, dim 9 */
    onx_ctx_set_limits(cx, limits);
    onx_doc *doc;
    assert_int_equal(parse(ONX_KIND_GRAPH, "g (seq(seq(float[N])) x) => () {}", 0, &doc), ONX_OK);
    onx_doc_free(doc);
    assert_int_equal(parse(ONX_KIND_GRAPH, "g (seq(seq(seq(float[N]))) x) => () {}", 0, &doc), ONX_E_LIMIT);
}

static void test_text_parse__long_names_and_lists(void **state)
{
    (void)state;
    onx_doc *doc;
    cases_buffer name = repeat("y = Abs(", "abcdefgh", 131072, ")");
    assert_int_equal(parse(ONX_KIND_NODE, name.ptr, ONX_TEXT_BORROW, &doc), ONX_OK);
    onx_node *node = onx_doc_root(doc, ONX_KIND_NODE);
    assert_int_equal(onx_view(node->input[0]).len, 1048576);
    onx_doc_free(doc);
    free(name.ptr);
    cases_buffer list = repeat("y = Op<a = [", "1, ", 1000000, "2]>(x)");
    assert_int_equal(parse(ONX_KIND_NODE, list.ptr, 0, &doc), ONX_OK);
    node = onx_doc_root(doc, ONX_KIND_NODE);
    uint32_t count;
    const int64_t *values = onx_attribute_value(node->attribute[0], ONX_SLOT_INTS, &count);
    assert_int_equal(count, 1000001);
    assert_int_equal(values[1000000], 2);
    onx_doc_free(doc);
    free(list.ptr);
}

/* Texts that took quadratic time would not finish here. */
static void test_text_parse__hostile_texts_take_linear_time(void **state)
{
    (void)state;
    static const struct {
        const char *before, *part;
    } rows[] = { { "g () => () { ", "\"\\" },
                 { "g () => () { y = ", "a . " },
                 { "g () => () { ", "y = (\n" },
                 { "g () => () { y = A(", "(" },
                 { "g (", "float[2] x = {\n" },
                 { "g (", "a b, " },
                 { "", "# comment\n" },
                 { "", "#@ node.x: \n" },
                 { "g (opaque(", "a . " },
                 { "<ir_version: 1", ", a" },
                 { "g () => () {\n", "y = Op<a = [1, 2\n" },
                 { "g () => () {}\n", "f (float[\n" },
                 { "g () => () {\n", "\"\\\"\n" },
                 { "g () => () {\n", "y = A<b = g () => () { z = (\n" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        onx_doc *doc;
        cases_buffer text = repeat(rows[i].before, rows[i].part, 400000, "");
        onx_diag_clear(cx);
        assert_int_not_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(text.ptr, text.len), 0, &doc), ONX_OK);
        assert_null(doc);
        assert_true(onx_diag_total(cx, ONX_ERROR) > 0 && onx_diag_total(cx, ONX_ERROR) <= 101);
        free(text.ptr);
    }
}

static void test_text_parse__errors_have_an_excerpt(void **state)
{
    (void)state;
    onx_doc *doc;
    assert_int_equal(parse(ONX_KIND_GRAPH, "g () => () {\r\n  y = Abs[x]\r\n}", 0, &doc), ONX_E_MALFORMED);
    const onx_diag *d = onx_diag_get(cx, 0);
    assert_int_equal(d->where.line, 2);
    assert_int_equal(d->where.column, 10);
    assert_true(onx_str_is(d->excerpt, "  y = Abs[x]"));
    assert_true(onx_str_is(d->value, "'['"));
    assert_true(onx_str_is(d->expected, "'(' or '<'"));
}

static void test_text_parse__lenient_literals(void **state)
{
    (void)state;
    onx_doc *doc;
    const char *text = "g () => () <uint8[1] a = {300}, bool[1] b = {7}, float[3] c = {1}, int8[0] d = {-200}> {}";
    assert_int_equal(parse(ONX_KIND_GRAPH, text, 0, &doc), ONX_E_MALFORMED);
    assert_int_equal(parse(ONX_KIND_GRAPH, text, ONX_TEXT_LENIENT, &doc), ONX_OK);
    assert_int_equal(onx_diag_total(cx, ONX_WARNING), 5);
    onx_graph *g = onx_doc_root(doc, ONX_KIND_GRAPH);
    assert_int_equal(g->initializer[0]->int32_data[0], 300);
    assert_int_equal(g->initializer[1]->int32_data[0], 7);
    assert_int_equal(g->initializer[2]->float_data_count, 1);
    assert_int_equal(g->initializer[3]->int32_data[0], -200);
    onx_doc_free(doc);
    static const char *const never[] = { "int4[1] {8}", "uint64[1] {-1}", "int32[1] {3000000000}",
                                         "int64[1] {9223372036854775808}" };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        assert_int_equal(parse(ONX_KIND_TENSOR, never[i], ONX_TEXT_LENIENT, &doc), ONX_E_MALFORMED);
}

static void test_text_parse__packed_elements(void **state)
{
    (void)state;
    onx_doc *doc;
    assert_int_equal(parse(ONX_KIND_TENSOR, "int4[3] {1, -2, 3}", 0, &doc), ONX_OK);
    onx_tensor *t = onx_doc_root(doc, ONX_KIND_TENSOR);
    assert_int_equal(t->int32_data_count, 2);
    assert_int_equal(t->int32_data[0], 0xe1);
    assert_int_equal(t->int32_data[1], 3);
    onx_doc_free(doc);
    assert_int_equal(parse(ONX_KIND_TENSOR, "uint2[5] {1, 2, 3, 0, 2}\n#@ tensor.raw_data", 0, &doc), ONX_OK);
    t = onx_doc_root(doc, ONX_KIND_TENSOR);
    assert_int_equal(t->int32_data_count, 0);
    onx_str raw = onx_view(t->raw_data);
    assert_int_equal(raw.len, 2);
    assert_int_equal((uint8_t)raw.ptr[0], 0x39);
    assert_int_equal((uint8_t)raw.ptr[1], 2);
    onx_doc_free(doc);
}

static void test_text_parse__kinds_without_notation(void **state)
{
    (void)state;
    onx_doc *doc;
    assert_false(onx_text_has_notation(ONX_KIND_SEQUENCE));
    assert_int_equal(parse(ONX_KIND_SEQUENCE, "x", 0, &doc), ONX_E_UNSUPPORTED);
    assert_true(onx_text_has_notation(ONX_KIND_TENSOR_SHAPE));
    assert_int_equal(parse(ONX_KIND_TENSOR_SHAPE, "[N, 2]", 0, &doc), ONX_OK);
    onx_doc_free(doc);
}

/* Each allocation fails in turn: an error, and nothing is left behind. */
static void test_text_parse__memory_that_runs_out(void **state)
{
    (void)state;
    static const char text[] =
        "<ir_version: 10, opset_import: [\"\" : 21], doc_string: \"a \\\"b\\\"\">\n# note\n"
        "g (float[2] a = {1, 2}, seq(map(int64, float[N, \"M N\"])) s) => (b) <int4[3] w = {1, 2, 3}> {\n"
        "  [l] b = \"my dom\".Op<x = [1, 2], y = sub () => () { z = Abs(a) }, t = float {1}>(a, , \"q\\\"\")\n"
        "  #@ node.metadata_props: [{key: \"k\" value: \"v\"}]\n"
        "}\n<domain: \"d\"> f <p, q = 2> (float x) => (y) { y = Abs(x) }\n";
    for (unsigned failing = 1;; failing++) {
        scarce_memory memory = { .failing = failing };
        onx_ctx *poor = onx_ctx_new(&(onx_allocator){ scarce_resize, &memory });
        cases_buffer out = { NULL, 0 };
        bool done = false;
        if (poor) {
            onx_doc *doc = NULL;
            onx_status status = onx_text_parse(poor, ONX_KIND_MODEL, onx_str_of(text), 0, &doc);
            if (status == ONX_OK)
                status =
                    onx_text_print(poor, ONX_KIND_MODEL, onx_doc_model(doc), NULL, (onx_sink){ cases_collect, &out });
            if (status == ONX_OK)
                status = onx_text_format(poor, ONX_KIND_MODEL, onx_str_of(text), (onx_sink){ cases_collect, &out });
            assert_true(status == ONX_OK || status == ONX_E_MEMORY);
            done = memory.calls < failing;
            assert_true(!done || status == ONX_OK);
            onx_doc_free(doc);
            onx_ctx_free(poor);
        }
        free(out.ptr);
        assert_int_equal(memory.in_use, 0);
        if (done)
            break;
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_text_parse__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nesting_is_bounded),     TEST(depth_is_that_of_messages),
        TEST(long_names_and_lists),   TEST(hostile_texts_take_linear_time),
        TEST(errors_have_an_excerpt), TEST(lenient_literals),
        TEST(packed_elements),        TEST(kinds_without_notation),
        TEST(memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_text_print.c - options of the printer, values at the limits of the notation, and comments in the formatter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/text.h>

#include "cases.h"
#include "text_normal.h"

#include "context.h"

static onx_doc *parse(onx_kind kind, const char *text)
{
    onx_doc *doc;
    assert_int_equal(onx_text_parse(cx, kind, onx_str_of(text), 0, &doc), ONX_OK);
    return doc;
}

static void assert_prints(onx_kind kind, const onx_doc *doc, const onx_text_options *options, const char *want)
{
    cases_buffer out = { NULL, 0 };
    assert_int_equal(onx_text_print(cx, kind, onx_doc_root(doc, kind), options, (onx_sink){ cases_collect, &out }),
                     ONX_OK);
    assert_string_equal(out.ptr, want);
    free(out.ptr);
}

static void test_text_print__elides_long_tensors(void **state)
{
    (void)state;
    onx_doc *doc =
        parse(ONX_KIND_GRAPH, "g () => () <float[10] w = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9} #@ initializer.raw_data\n> "
                              "{ y = Op<a = [1, 2, 3, 4, 5, 6, 7, 8, 9], b = [1, 2]>(w) }");
    onx_text_options options = { .elide = 8 };
    assert_prints(ONX_KIND_GRAPH, doc, &options,
                  "g () => ()\n<\n  float[10] w = {0, 1, 2, 3, 4, 5, ... 10 values}\n>\n{\n"
                  "  y = Op<a = [1, 2, 3, 4, 5, 6, ... 9 values], b = [1, 2]>(w)\n}\n");
    onx_doc_free(doc);
}

static void test_text_print__breaks_lines_at_the_width(void **state)
{
    (void)state;
    onx_doc *doc = parse(ONX_KIND_TENSOR, "int32[3, 4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}");
    onx_text_options options = { .width = 40 };
    assert_prints(ONX_KIND_TENSOR, doc, &options, "int32[3, 4] {\n  1, 2, 3, 4,\n  5, 6, 7, 8,\n  9, 10, 11, 12\n}\n");
    onx_doc_free(doc);
}

static const onx_type *type_of(void *user, onx_kind kind, const void *scope, onx_str name)
{
    const onx_graph *graph = scope;
    assert_int_equal(kind, ONX_KIND_GRAPH);
    (void)user;
    for (uint32_t i = 0; i < graph->value_info_count; i++)
        if (onx_str_equal(onx_view(graph->value_info[i]->name), name))
            return graph->value_info[i]->type;
    return NULL;
}

static void test_text_print__types_beside_values(void **state)
{
    (void)state;
    onx_doc *doc =
        parse(ONX_KIND_GRAPH, "g () => () <float[N, \"a\nb\"] x, seq(int64) z> { x = A() y = B() z, u = C() }");
    onx_text_options options = { .type_of = type_of };
    assert_prints(
        ONX_KIND_GRAPH, doc, &options,
        "g () => ()\n<float[N, \"a\nb\"] x, seq(int64) z>\n{\n  x = A()                                       # float[N, \"a b\"]\n  y = B()\n"
        "  z, u = C()                                    # z: seq(int64)\n}\n");
    onx_doc_free(doc);
}

static void test_text_print__plain_text_says_what_it_leaves_out(void **state)
{
    (void)state;
    onx_doc *doc = parse(ONX_KIND_GRAPH, "g () => () {\n#@ graph.doc_string: \"d\"\ny = A() #@ node.doc_string: \"e\"\n"
                                         "z = B() #@ node.doc_string: \"f\"\n}");
    onx_text_options options = { .plain = true };
    assert_prints(ONX_KIND_GRAPH, doc, &options,
                  "#@ (without notation, not in this text: graph.doc_string, node.doc_string (2))\n"
                  "g () => () {\n  y = A()\n  z = B()\n}\n");
    assert_int_equal(onx_diag_total(cx, ONX_NOTE), 1);
    assert_non_null(strstr(onx_diag_get(cx, 0)->message.ptr, "node.doc_string (2)"));
    onx_doc_free(doc);
}

/* Every NaN keeps its bits, in typed and in raw data and in attributes. */
static void test_text_print__floats_keep_their_bits(void **state)
{
    (void)state;
    static const uint32_t bits[] = { 0x7fc00000, 0xffc00000, 0x7f800001, 0xff812345, 0x80000000,
                                     1,          0x007fffff, 0x7f7fffff, 0x3dcccccd, 0xff800000 };
    enum { COUNT = sizeof bits / sizeof *bits };
    int64_t dims[] = { COUNT };
    for (int raw = 0; raw < 2; raw++) {
        onx_doc *doc, *again;
        cases_buffer out = { NULL, 0 };
        assert_int_equal(onx_doc_new(cx, ONX_KIND_NODE, &doc), ONX_OK);
        onx_arena *arena = onx_doc_arena(doc);
        onx_node *node = onx_doc_root(doc, ONX_KIND_NODE);
        onx_tensor *t = onx_tensor_new(arena, ONX_FLOAT, dims, 1, bits, "t");
        assert_non_null(t);
        if (!raw) {
            t->float_data = onx_view(t->raw_data).ptr;
            t->float_data_count = COUNT;
            t->raw_data.bits = 0;
            ONX_CLEAR(tensor, t, raw_data);
        }
        ONX_SET(node, node, op_type, ((onx_bytes){ 0 }));
        assert_int_equal(onx_arena_keep(arena, onx_str_of("Op"), &node->op_type), ONX_OK);
        float odd, list[COUNT];
        memcpy(&odd, &bits[2], sizeof odd);
        memcpy(list, bits, sizeof list);
        assert_non_null(onx_node_add_tensor(arena, node, "t", t));
        assert_non_null(onx_node_add_float(arena, node, "f", odd));
        assert_non_null(onx_node_add_floats(arena, node, "l", list, COUNT));
        assert_int_equal(onx_text_print(cx, ONX_KIND_NODE, node, NULL, (onx_sink){ cases_collect, &out }), ONX_OK);
        assert_int_equal(onx_text_parse(cx, ONX_KIND_NODE, onx_str_make(out.ptr, out.len), 0, &again), ONX_OK);
        text_normal(cx, ONX_KIND_NODE, node);
        assert_true(onx_message_equal(ONX_KIND_NODE, node, onx_doc_root(again, ONX_KIND_NODE)));
        onx_doc_free(again);
        onx_doc_free(doc);
        free(out.ptr);
    }
}

static onx_status refuse(void *user, onx_str bytes)
{
    (void)user;
    (void)bytes;
    return ONX_E_CANCELLED;
}

static void test_text_print__passes_on_what_the_sink_says(void **state)
{
    (void)state;
    onx_doc *doc = parse(ONX_KIND_GRAPH, "g () => () { y = A() }");
    assert_int_equal(
        onx_text_print(cx, ONX_KIND_GRAPH, onx_doc_root(doc, ONX_KIND_GRAPH), NULL, (onx_sink){ refuse, NULL }),
        ONX_E_CANCELLED);
    onx_doc_free(doc);
}

static void assert_formats(const char *text, const char *want)
{
    cases_buffer out = { NULL, 0 }, again = { NULL, 0 };
    assert_int_equal(onx_text_format(cx, ONX_KIND_MODEL, onx_str_of(text), (onx_sink){ cases_collect, &out }), ONX_OK);
    assert_string_equal(out.ptr, want);
    assert_int_equal(
        onx_text_format(cx, ONX_KIND_MODEL, onx_str_make(out.ptr, out.len), (onx_sink){ cases_collect, &again }),
        ONX_OK);
    assert_string_equal(again.ptr, want);
    free(out.ptr);
    free(again.ptr);
}

static void test_text_print__the_formatter_keeps_comments(void **state)
{
    (void)state;
    assert_formats(
        "# head\n\n\n<ir_version: 10, # ten\nopset_import: [\"\":21]> # behind the head\ng(float x, # an input\nfloat y)=>(float z)\n"
        "< # first\nfloat[1] w={1} # weight\n>\n{ # open\n\n# one\na=A(x) # two\n\n\n# three\n\n"
        "b=If(c)<t=u()=>(){ # in\nd=D()\n# end of u\n}>\n# last\n} # after\n\n# before f\n<domain:\"d\">f(x)=>(y){y=A(x)}\n# tail\n",
        "# head\n\n<\n  ir_version: 10,  # ten\n  opset_import: [\"\": 21]\n>  # behind the head\n"
        "g (\n  float x,  # an input\n  float y\n) => (float z)\n"
        "<\n  # first\n  float[1] w = {1}  # weight\n>\n{\n  # open\n\n  # one\n  a = A(x)  # two\n\n  # three\n\n"
        "  b = If(c)<\n    t = u () => () {\n      # in\n      d = D()\n      # end of u\n    }\n  >\n  # last\n}  # after\n\n"
        "# before f\n<domain: \"d\">\nf (x) => (y) {\n  y = A(x)\n}\n# tail\n");
}

/* Behind the brace of an inner graph the line goes on with a comma or a bracket. */
static void test_text_print__comments_do_not_swallow_what_follows_a_graph(void **state)
{
    (void)state;
    assert_formats("g()=>(){a=A(b)<t=u()=>(){} # one\n,e=[v()=>(){} # two\n,w()=>(){x=B() # three\n}]# four\n,i=1>}",
                   "g () => () {\n  a = A(b)<\n    t = u () => () {},  # one\n"
                   "    e = [v () => () {}, w (\n      # two\n    ) => () {\n      x = B()  # three\n    }],  # four\n"
                   "    i = 1\n  >\n}\n");
}

static void test_text_print__attributes_keep_their_comments(void **state)
{
    (void)state;
    assert_formats("g () => () {\n  # node\n  y = Conv<\n    # size\n    kernel_shape = [3, 3], # square\n"
                   "    mode = \"same\" # as always\n  >(x, w)\n  z = Op<a = inf # last\n  >()\n}\n"
                   "f <p, # p\n q = 2 # two\n> (x) => () {}\n",
                   "g () => () {\n  # node\n  y = Conv<\n    # size\n    kernel_shape = [3, 3],  # square\n"
                   "    mode = \"same\"  # as always\n  >(x, w)\n  z = Op<\n    a = inf  # last\n  >()\n}\n\n"
                   "f <\n  p,\n  # p\n  q = 2  # two\n> (x) => () {}\n");
}

static void test_text_print__comments_stay_within_their_brackets(void **state)
{
    (void)state;
    assert_formats(
        "<ir_version: 10, opset_import: [\"\": 21]\n# domain: \"d\"\n>\n"
        "g (float x # x\n# float z\n) => (# none\n) <# no more\n> {\n  y = Concat<axis=0>(x, # first\n"
        "    y, # second\n    z) # last\n  w = Conv<a=[1, # one\n 2] # two\n# b = 3\n>(y)\n}\n",
        "<\n  ir_version: 10,\n  opset_import: [\"\": 21]\n  # domain: \"d\"\n>\n"
        "g (\n  float x  # x\n  # float z\n) => (\n  # none\n)\n<\n  # no more\n>\n{\n  # first\n  # second\n"
        "  y = Concat<axis = 0>(x, y, z)  # last\n  w = Conv<\n    # one\n    a = [1, 2]  # two\n    # b = 3\n"
        "  >(y)\n}\n");
}

static void test_text_print__parts_that_are_texts_of_their_own_keep_comments(void **state)
{
    (void)state;
    cases_buffer out = { NULL, 0 };
    assert_int_equal(onx_text_format(cx, ONX_KIND_NODE, onx_str_of("# a\ny = Op(# b\nx) # c\n# d\n"),
                                     (onx_sink){ cases_collect, &out }),
                     ONX_OK);
    assert_string_equal(out.ptr, "# a\n# b\ny = Op(x)  # c\n# d\n");
    free(out.ptr);
}

static void test_text_print__empty_lines_within_blocks(void **state)
{
    (void)state;
    assert_formats("g (\n\nfloat x) => () {\n\n\ny = A()\n\n\nz = B()\n\n}\n\nf () => () {\n\n}\n",
                   "g (float x) => () {\n  y = A()\n\n  z = B()\n}\n\nf () => () {}\n");
}

/* A comment on an attribute that is a text of its own is not for those of the graphs in it. */
static void test_text_print__attributes_that_hold_graphs_keep_their_parts(void **state)
{
    (void)state;
    const char *text = "#@ (kept in these comments, which other readers skip: attribute.doc_string)\n"
                       "b = g () => () {\n  y = A<i = 1>()\n}\n#@ attribute.doc_string: \"outer\"\n";
    onx_doc *doc = parse(ONX_KIND_ATTRIBUTE, text);
    assert_prints(ONX_KIND_ATTRIBUTE, doc, NULL, text);
    onx_doc_free(doc);
}

/* A type with parts that have no notation cannot carry a default value. */
static void test_text_print__defaults_need_a_type_in_the_text(void **state)
{
    (void)state;
    const char *text = "#@ (kept in these comments, which other readers skip: input.type)\n"
                       "g (\n  x\n  #@ input.type: {tensor_type: {elem_type: 1 shape: {}} unknown: [\"\\x08\\x01\"]}\n"
                       ") => ()\n<float x = {1}>\n{}\n";
    onx_doc *doc = parse(ONX_KIND_GRAPH, text);
    assert_prints(ONX_KIND_GRAPH, doc, NULL, text);
    onx_doc_free(doc);
}

static void test_text_print__empty_lists_of_strings_stay_on_their_line(void **state)
{
    (void)state;
    onx_doc *doc = parse(ONX_KIND_ATTRIBUTE, "a = [string[0] {}, string[0] {}, string[0] {}]");
    onx_text_options options = { .width = 20 };
    assert_prints(ONX_KIND_ATTRIBUTE, doc, &options, "a = [string[0] {}, string[0] {}, string[0] {}]\n");
    onx_doc_free(doc);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_text_print__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(elides_long_tensors),
        TEST(breaks_lines_at_the_width),
        TEST(types_beside_values),
        TEST(plain_text_says_what_it_leaves_out),
        TEST(floats_keep_their_bits),
        TEST(passes_on_what_the_sink_says),
        TEST(the_formatter_keeps_comments),
        TEST(comments_do_not_swallow_what_follows_a_graph),
        TEST(attributes_keep_their_comments),
        TEST(empty_lines_within_blocks),
        TEST(comments_stay_within_their_brackets),
        TEST(parts_that_are_texts_of_their_own_keep_comments),
        TEST(attributes_that_hold_graphs_keep_their_parts),
        TEST(defaults_need_a_type_in_the_text),
        TEST(empty_lists_of_strings_stay_on_their_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

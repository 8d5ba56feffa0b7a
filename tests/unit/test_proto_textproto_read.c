/* test_proto_textproto_read.c - the syntax of protobuf's text format, and errors with their positions. */
#include "text_formats.h"

static void assert_reads(onx_kind kind, const char *text, const char *want)
{
    assert_rewrites(onx_textproto_read, onx_textproto_write, kind, onx_str_of(text), onx_str_of(want));
}

static void assert_malformed(onx_kind kind, const char *text, const char *want)
{
    assert_refuses(onx_textproto_read, kind, onx_str_of(text), ONX_E_MALFORMED, want);
}

static void test_proto_textproto_read__spelling_of_messages(void **state)
{
    (void)state;
    static const char want[] = "opset_import {\n  domain: \"a\"\n  version: 3\n}\n";
    static const char *const spellings[] = {
        "opset_import { domain: 'a' version: 3 }",
        "opset_import < domain: 'a' version: 3 >",
        "opset_import: { domain: 'a', version: 3, }",
        "opset_import:<domain:'a';version:3;>;",
        "opset_import: [{ domain: 'a' version: 3 }],",
        "opset_import [ < domain: 'a' version: 3 > ]",
        "# a comment\nopset_import # another\n{ # and\n domain:\n#here\n'a' version\n:\n3\n}#end",
        "\xef\xbb\xbfopset_import\t{\rdomain\v:\f\"a\"version:3}",
        "opset_import: [] opset_import { domain: \"\" 'a' '' version: 03 }",
    };
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        assert_reads(ONX_KIND_MODEL, spellings[i], want);
    assert_reads(ONX_KIND_MODEL, "", "");
    assert_reads(ONX_KIND_MODEL, " # nothing", "");
}

static void test_proto_textproto_read__lists(void **state)
{
    (void)state;
    assert_reads(ONX_KIND_TENSOR, "dims: [1, -2,0x3] dims: 4 dims: [ ] dims: [5]; string_data: ['a', \"b\" 'c']",
                 "dims: 1\ndims: -2\ndims: 3\ndims: 4\ndims: 5\nstring_data: \"a\"\nstring_data: \"bc\"\n");
    assert_malformed(ONX_KIND_TENSOR, "dims: [1, ]", "1:11: dims: error: syntax error, found ], expected an integer");
    assert_malformed(ONX_KIND_TENSOR, "dims: [1 2]", "1:10: dims: error: syntax error, found 2, expected , or ]");
    assert_malformed(ONX_KIND_TENSOR, "data_type: [1]",
                     "1:12: data_type: error: syntax error, found [, expected an integer");
    assert_malformed(ONX_KIND_TENSOR, "dims: 1,, dims: 2", "1:9: error: syntax error, found ,, expected a field name");
}

static void test_proto_textproto_read__strings(void **state)
{
    (void)state;
    assert_reads(ONX_KIND_TENSOR, "name: \"a'b\" 'c\"d'\n# between\n\"\\a\\b\\f\\n\\r\\t\\v\\\\\\?\\'\\\"\"",
                 "name: \"a\\'bc\\\"d\\007\\010\\014\\n\\r\\t\\013\\\\?\\'\\\"\"\n");
    assert_reads(ONX_KIND_TENSOR, "raw_data: \"\\1\\12\\123\\0019\\x4\\x41\\xabc\\xFF\\377\"",
                 "raw_data: \"\\001\\nS\\0019\\004A\\253c\\377\\377\"\n");
    assert_reads(ONX_KIND_TENSOR, "name: '\\u00e9\\u20ac\\U0001F600\\ud83d\\ude00\\ud83d'",
                 "name: \"\\303\\251\\342\\202\\254\\360\\237\\230\\200\\360\\237\\230\\200\\355\\240\\275\"\n");
    assert_reads(ONX_KIND_TENSOR, "name: '\xc3\xa9'", "name: \"\\303\\251\"\n");
    assert_malformed(
        ONX_KIND_TENSOR, "name: 'a\nb'",
        "1:9: name: error: syntax error, found the end of the line, expected the quote that ends the string");
    assert_malformed(ONX_KIND_TENSOR, "dims: 1\nname: 'ab",
                     "2:7: name: error: syntax error, found 'ab, expected the quote that ends the string");
    assert_malformed(
        ONX_KIND_TENSOR, "name: 'a\\z'",
        "1:9: name: error: syntax error, found \\, expected an escape: \\n \\t \\\\ \\\" \\ooo \\xhh \\uhhhh or the like");
    assert_malformed(ONX_KIND_TENSOR, "name: '\\400'",
                     "1:8: name: error: syntax error, found \\, expected an octal escape up to \\377");
    assert_malformed(ONX_KIND_TENSOR, "name: '\\xg'",
                     "1:8: name: error: syntax error, found \\, expected hexadecimal digits behind \\x");
    assert_malformed(ONX_KIND_TENSOR, "name: '\\u12'",
                     "1:8: name: error: syntax error, found \\, expected four hexadecimal digits behind \\u");
    assert_malformed(
        ONX_KIND_TENSOR, "name: '\\U00110000'",
        "1:8: name: error: syntax error, found \\, expected eight hexadecimal digits behind \\U, up to 0010ffff");
    assert_malformed(ONX_KIND_TENSOR, "name: a",
                     "1:7: name: error: syntax error, found a, expected a string in quotes");
    assert_malformed(ONX_KIND_TENSOR, "name: '\\",
                     "1:8: name: error: syntax error, found \\, expected an escape: "
                     "\\n \\t \\\\ \\\" \\ooo \\xhh \\uhhhh or the like");
}

static void test_proto_textproto_read__integers(void **state)
{
    (void)state;
    assert_reads(
        ONX_KIND_TENSOR,
        "dims: 9223372036854775807 dims: -9223372036854775808 dims: -0x10 dims: 017 dims: - 5 dims: 0 dims: 0X1f\n"
        "int32_data: [-2147483648, 2147483647] uint64_data: 0xffffffffffffffff",
        "dims: 9223372036854775807\ndims: -9223372036854775808\ndims: -16\ndims: 15\ndims: -5\ndims: 0\ndims: 31\n"
        "int32_data: -2147483648\nint32_data: 2147483647\nuint64_data: 18446744073709551615\n");
    assert_malformed(ONX_KIND_TENSOR, "int32_data: 2147483648",
                     "1:13: int32_data: error: the number is out of range, found 2147483648, "
                     "expected an integer from -2147483648 to 2147483647");
    assert_malformed(ONX_KIND_TENSOR, "dims: 9223372036854775808",
                     "1:7: dims: error: the number is out of range, found 9223372036854775808, "
                     "expected an integer from -2^63 to 2^63 - 1");
    assert_malformed(ONX_KIND_TENSOR, "uint64_data: 18446744073709551616",
                     "1:14: uint64_data: error: the number is out of range, found 18446744073709551616, "
                     "expected an integer from 0 to 2^64 - 1");
    assert_malformed(ONX_KIND_TENSOR, "uint64_data: -1",
                     "1:14: uint64_data: error: syntax error, found -1, expected an integer");
    assert_malformed(ONX_KIND_TENSOR, "dims: 1.5", "1:7: dims: error: syntax error, found 1.5, expected an integer");
    assert_malformed(ONX_KIND_TENSOR, "dims: 1f", "1:7: dims: error: syntax error, found 1f, expected an integer");
    assert_malformed(
        ONX_KIND_TENSOR, "dims: 08",
        "1:7: dims: error: syntax error, found 08, expected no 0 before a decimal number, and digits 0 to 7 "
        "behind the 0 of an octal one");
    assert_malformed(ONX_KIND_TENSOR, "dims:1dims:2",
                     "1:6: dims: error: syntax error, found 1dims, expected a number with a blank behind it");
    assert_malformed(ONX_KIND_TENSOR, "dims: 0x",
                     "1:7: dims: error: syntax error, found 0x, expected a number with a blank behind it");
}

static void test_proto_textproto_read__floats(void **state)
{
    (void)state;
    assert_reads(
        ONX_KIND_TENSOR,
        "float_data: [1, 1.5, .5, 5., 1e3, 1.5E-3f, 2F, -0, - 1, inf, -INFINITY, nan, Inf, 1e400, 0.1]"
        "double_data: [0.1, 1e400, 123456789012345678901234567890, -inf, NaN]",
        "float_data: 1\nfloat_data: 1.5\nfloat_data: 0.5\nfloat_data: 5\nfloat_data: 1000\nfloat_data: 0.0015\n"
        "float_data: 2\nfloat_data: -0\nfloat_data: -1\nfloat_data: inf\nfloat_data: -inf\nfloat_data: nan\n"
        "float_data: inf\nfloat_data: inf\nfloat_data: 0.1\n"
        "double_data: 0.1\ndouble_data: inf\ndouble_data: 1.2345678901234568e+29\ndouble_data: -inf\n"
        "double_data: nan\n");
    assert_malformed(ONX_KIND_TENSOR, "float_data: 0x10",
                     "1:13: float_data: error: syntax error, found 0x10, expected a decimal number, inf or nan");
    assert_malformed(ONX_KIND_TENSOR, "float_data: 010",
                     "1:13: float_data: error: syntax error, found 010, expected a decimal number, inf or nan");
    assert_malformed(ONX_KIND_TENSOR, "float_data: inff",
                     "1:13: float_data: error: syntax error, found inff, expected a decimal number, inf or nan");
    assert_malformed(ONX_KIND_TENSOR, "float_data: 1.5.2",
                     "1:13: float_data: error: syntax error, found 1.5.2, expected a number with a blank behind it");
    assert_malformed(ONX_KIND_TENSOR, "float_data: 1e",
                     "1:13: float_data: error: syntax error, found 1e, expected a decimal number, inf or nan");
    assert_malformed(ONX_KIND_TENSOR, "float_data: .",
                     "1:13: float_data: error: syntax error, found ., expected a decimal number, inf or nan");
}

static void test_proto_textproto_read__enums(void **state)
{
    (void)state;
    assert_reads(ONX_KIND_ATTRIBUTE, "type: INTS", "type: INTS\n");
    assert_reads(ONX_KIND_ATTRIBUTE, "type: 7", "type: INTS\n");
    assert_reads(ONX_KIND_ATTRIBUTE, "type: -99", "type: -99\n");
    assert_malformed(ONX_KIND_ATTRIBUTE, "type: INT16",
                     "1:7: type: error: type has no value of that name, found INT16");
}

static void test_proto_textproto_read__presence(void **state)
{
    (void)state;
    assert_reads(ONX_KIND_NODE, "name: '' domain: \"\"", "name: \"\"\ndomain: \"\"\n");
    assert_reads(ONX_KIND_ATTRIBUTE, "i: 0 type: UNDEFINED", "i: 0\ntype: UNDEFINED\n");
    assert_reads(ONX_KIND_TYPE, "tensor_type { }", "tensor_type {\n}\n");
}

/* An attribute has room for one value; a faulty one with several keeps them all. */
static void test_proto_textproto_read__attribute_with_several_values(void **state)
{
    (void)state;
    assert_reads(ONX_KIND_ATTRIBUTE, "ints: [1, 2] f: 2.5 i: 7 ints: 3 floats: 1 floats: 2 doc_string: 'd' s: 'x'",
                 "f: 2.5\ni: 7\ns: \"x\"\nfloats: 1\nfloats: 2\nints: 1\nints: 2\nints: 3\ndoc_string: \"d\"\n");
}

static void test_proto_textproto_read__given_twice(void **state)
{
    (void)state;
    assert_malformed(ONX_KIND_MODEL, "ir_version: 1\nir_version: 2",
                     "2:1: ir_version: error: field ir_version is given twice, found ir_version");
    assert_malformed(ONX_KIND_MODEL, "graph {} graph {}",
                     "1:10: graph: error: field graph is given twice, found graph");
    assert_malformed(
        ONX_KIND_DIMENSION, "dim_value: 1 dim_param: 'N'",
        "1:14: dim_param: error: fields dim_value and dim_param belong to one oneof, of which only one may "
        "be given, found dim_param");
}

static void test_proto_textproto_read__unknown_fields(void **state)
{
    (void)state;
    static const char text[] = "domain: \"d\"\n"
                               "99: 5\n99: 18446744073709551615\n99: 0x0000000a\n99: 0x000000000000000b\n"
                               "99: \"hello\"\n99 {\n  1: 1\n  2 {\n    3: 4\n  }\n}\n99 <\n  1: 1\n  2 <\n  >\n>\n";
    assert_reads(ONX_KIND_OPERATOR_SET_ID, text, text);
    assert_reads(ONX_KIND_OPERATOR_SET_ID, "99: -1; 98: 0xa, 97: { } 96: < >",
                 "99: 18446744073709551615\n98: 10\n97: \"\"\n96 <\n>\n");
    assert_malformed(ONX_KIND_OPERATOR_SET_ID, "99: 1.5",
                     "1:5: error: syntax error, found 1.5, expected an integer of up to 64 bits, for an unknown field");
    assert_malformed(ONX_KIND_OPERATOR_SET_ID, "99 5", "1:4: error: syntax error, found 5, expected : or { or <");
    assert_malformed(ONX_KIND_OPERATOR_SET_ID, "0: 5",
                     "1:1: error: syntax error, found 0, expected a field number from 1 to 536870911");
    assert_malformed(ONX_KIND_OPERATOR_SET_ID, "99 { a: 5 }",
                     "1:6: error: syntax error, found a, expected the number of a field");
    assert_malformed(ONX_KIND_OPERATOR_SET_ID, "99 { 1: 5",
                     "1:10: error: syntax error, found the end of the text, expected the number of a field");
}

static void test_proto_textproto_read__errors_have_places(void **state)
{
    (void)state;
    assert_malformed(
        ONX_KIND_MODEL, "graph {\n  node {\n    name: \"n\"\n    op_type: \"Conv\"\n    attribute {\n      nam: 'x'\n",
        "6:7: graph.node[0] \"n\" (Conv).attribute[0]: error: AttributeProto has no field of that name, found nam");
    assert_malformed(ONX_KIND_MODEL, "graph { node {} node { input: 5 } }",
                     "1:31: graph.node[1].input: error: syntax error, found 5, expected a string in quotes");
    assert_malformed(ONX_KIND_MODEL, "graph { node { name: '\\033[2J\\n' 'x' y",
                     "1:38: graph.node[0] \"\\x1b[2J\\x0ax\": error: NodeProto has no field of that name, found y");
    assert_malformed(ONX_KIND_MODEL, "graph {",
                     "1:8: graph: error: syntax error, found the end of the text, expected a field name or }");
    assert_malformed(ONX_KIND_MODEL, "graph { >",
                     "1:9: graph: error: syntax error, found >, expected a field name or }");
    assert_malformed(ONX_KIND_MODEL, "}", "1:1: error: syntax error, found }, expected a field name");
    assert_malformed(ONX_KIND_MODEL, "[a.b]: 1",
                     "1:1: error: syntax error, found [, expected a field name (ONNX has no extensions)");
    assert_malformed(ONX_KIND_MODEL, "graph 5", "1:7: graph: error: syntax error, found 5, expected { or <");
    assert_malformed(ONX_KIND_MODEL, "domain 'x'", "1:8: domain: error: syntax error, found 'x', expected :");
    assert_malformed(ONX_KIND_MODEL, "\xc3\xa9: 1", "1:1: error: syntax error, found \xc3\xa9, expected a field name");
    assert_malformed(ONX_KIND_MODEL, "\xff: 1",
                     "1:1: error: syntax error, found a byte that is not text, expected a field name");
    assert_refuses(onx_textproto_read, ONX_KIND_MODEL, onx_str_make("\0", 1), ONX_E_MALFORMED,
                   "1:1: error: syntax error, found a control character, expected a field name");
}

static void test_proto_textproto_read__excerpt_is_the_line(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    assert_int_equal(
        onx_textproto_read(cx, ONX_KIND_MODEL, onx_str_of("domain: 'a'\r\n  x: 5 # here\r\ngraph {}"), &doc),
        ONX_E_MALFORMED);
    const onx_diag *d = onx_diag_get(cx, 0);
    assert_text(d->excerpt, onx_str_of("  x: 5 # here"));
    assert_int_equal(d->where.line, 2);
    assert_int_equal(d->where.column, 3);
    assert_int_equal(d->where.byte, 15);
    onx_ctx_free(cx);
}

static void test_proto_textproto_read__depth_is_limited(void **state)
{
    (void)state;
    char text[8192] = "";
    for (int i = 0; i < 60; i++)
        strcat(text, "sequence_type{elem_type{");
    assert_refuses(onx_textproto_read, ONX_KIND_TYPE, onx_str_of(text), ONX_E_LIMIT, NULL);
    memset(text, 0, sizeof text);
    for (int i = 0; i < 101; i++)
        strcat(text, "99<");
    assert_refuses(onx_textproto_read, ONX_KIND_TYPE, onx_str_of(text), ONX_E_LIMIT,
                   "1:303: error: unknown fields are nested too deep");
    memset(text, 0, sizeof text);
    for (int i = 0; i < 11; i++)
        strcat(text, "99{");
    assert_refuses(onx_textproto_read, ONX_KIND_TYPE, onx_str_of(text), ONX_E_LIMIT,
                   "1:33: error: unknown fields are nested too deep");
}

static void test_proto_textproto_read__deepest_nesting(void **state)
{
    (void)state;
    assert_nests(onx_textproto_read, onx_textproto_write, "sequence_type{elem_type{", "", "}}");
    assert_nests(onx_textproto_read, onx_textproto_write, "99<99<", "", ">>");
}

static void test_proto_textproto_read__memory_may_fail(void **state)
{
    (void)state;
    char text[9000] = "99 { 1: 5 } opset_import { domain: '";
    memset(text + strlen(text), 'x', 8000); /* past the first blocks */
    strcat(text, "' 'y' } graph { node { input: ['a', 'b', 'c', 'd', 'e'] attribute { ints: [1, 2, 3] f: 1 } } }");
    assert_survives_scarcity(onx_textproto_read, onx_textproto_write, ONX_KIND_MODEL, onx_str_of(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proto_textproto_read__spelling_of_messages),
        cmocka_unit_test(test_proto_textproto_read__lists),
        cmocka_unit_test(test_proto_textproto_read__strings),
        cmocka_unit_test(test_proto_textproto_read__integers),
        cmocka_unit_test(test_proto_textproto_read__floats),
        cmocka_unit_test(test_proto_textproto_read__enums),
        cmocka_unit_test(test_proto_textproto_read__presence),
        cmocka_unit_test(test_proto_textproto_read__attribute_with_several_values),
        cmocka_unit_test(test_proto_textproto_read__given_twice),
        cmocka_unit_test(test_proto_textproto_read__unknown_fields),
        cmocka_unit_test(test_proto_textproto_read__errors_have_places),
        cmocka_unit_test(test_proto_textproto_read__excerpt_is_the_line),
        cmocka_unit_test(test_proto_textproto_read__depth_is_limited),
        cmocka_unit_test(test_proto_textproto_read__deepest_nesting),
        cmocka_unit_test(test_proto_textproto_read__memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_proto_json_read.c - JSON in the proto3 mapping: every allowed spelling, and errors with their positions. */
#include "text_formats.h"

/* The expected message is given as protobuf text. */
static void assert_reads(onx_kind kind, const char *json, const char *want)
{
    assert_rewrites(onx_json_read, onx_textproto_write, kind, onx_str_of(json), onx_str_of(want));
}

static void assert_malformed(onx_kind kind, const char *json, const char *want)
{
    assert_refuses(onx_json_read, kind, onx_str_of(json), ONX_E_MALFORMED, want);
}

static void test_proto_json_read__objects(void **state)
{
    (void)state;
    assert_reads(ONX_KIND_MODEL, "{}", "");
    assert_reads(ONX_KIND_MODEL, "\xef\xbb\xbf \t\r\n{ \"graph\" : { } }\n", "graph {\n}\n");
    assert_reads(ONX_KIND_MODEL, "{\"graph\":null,\"opset_import\":null,\"domain\":null,\"producer_name\":\"\"}",
                 "producer_name: \"\"\n");
    assert_reads(ONX_KIND_MODEL, "{\"opset_import\":[],\"opsetImport\":[{\"version\":1},{\"version\":2}]}",
                 "opset_import {\n  version: 1\n}\nopset_import {\n  version: 2\n}\n");
    assert_reads(ONX_KIND_MODEL, "{\"producerName\":\"a\",\"ir_version\":3,\"d\\u006fmain\":\"d\"}",
                 "ir_version: 3\nproducer_name: \"a\"\ndomain: \"d\"\n");
    assert_malformed(ONX_KIND_MODEL, "", "1:1: error: syntax error, found the end of the text, expected an object");
    assert_malformed(ONX_KIND_MODEL, "[]", "1:1: error: syntax error, found [, expected an object");
    assert_malformed(ONX_KIND_MODEL, "{},", "1:3: error: syntax error, found ,, expected the end of the text");
    assert_malformed(ONX_KIND_MODEL, "{\"domain\":\"a\",}",
                     "1:15: error: syntax error, found }, expected the name of a field in quotes");
    assert_malformed(ONX_KIND_MODEL, "{\"domain\" \"a\"}",
                     "1:11: domain: error: syntax error, found \"a\", expected :");
    assert_malformed(ONX_KIND_MODEL, "{\"domain\":\"a\" \"graph\":{}}",
                     "1:15: domain: error: syntax error, found \"graph\", expected , or }");
    assert_malformed(ONX_KIND_MODEL, "{\n  \"graph\": {\n    \"nodes\": []\n  }\n}",
                     "3:5: graph: error: GraphProto has no field of that name, found nodes");
    assert_malformed(ONX_KIND_MODEL, "{\"domain\":\"a\",\"domain\":\"a\"}",
                     "1:15: domain: error: field domain is given twice, found domain");
    assert_malformed(ONX_KIND_MODEL, "{\"opset_import\":[{}],\"opsetImport\":[{}]}",
                     "1:22: opset_import: error: field opset_import is given twice, found opset_import");
    assert_malformed(
        ONX_KIND_DIMENSION, "{\"dim_value\":1,\"dimParam\":\"N\"}",
        "1:16: dim_param: error: fields dim_value and dim_param belong to one oneof, of which only one may be "
        "given, found dim_param");
    assert_reads(ONX_KIND_DIMENSION, "{\"dim_value\":null,\"dimParam\":\"N\"}", "dim_param: \"N\"\n");
    assert_malformed(ONX_KIND_MODEL, "{\"graph\":5}", "1:10: graph: error: syntax error, found 5, expected an object");
    assert_malformed(ONX_KIND_MODEL, "{\"opset_import\":{}}",
                     "1:17: opset_import: error: syntax error, found {, expected a list");
    assert_malformed(ONX_KIND_TENSOR, "{\"dims\":[1,]}",
                     "1:12: dims: error: syntax error, found ], expected an integer, bare or in quotes");
    assert_malformed(ONX_KIND_TENSOR, "{\"dims\":[null]}",
                     "1:10: dims: error: syntax error, found null, expected an integer, bare or in quotes");
    assert_malformed(ONX_KIND_TENSOR, "{\"dims\":[1 2]}", "1:12: dims: error: syntax error, found 2, expected , or ]");
}

static void test_proto_json_read__integers(void **state)
{
    (void)state;
    assert_reads(
        ONX_KIND_TENSOR,
        "{\"dims\":[\"9223372036854775807\",-9223372036854775808,\"-0\",1e3,2.0,\"1.5e1\"],\"int32_data\":[\"-2147483648\",5],"
        "\"uint64_data\":[18446744073709551615,\"18446744073709551615\"]}",
        "dims: 9223372036854775807\ndims: -9223372036854775808\ndims: 0\ndims: 1000\ndims: 2\ndims: 15\n"
        "int32_data: -2147483648\nint32_data: 5\n"
        "uint64_data: 18446744073709551615\nuint64_data: 18446744073709551615\n");
    static const char *const wrong[] = { "1.5",
                                         "\"1.5\"",
                                         "1e30",
                                         "\"NaN\"",
                                         "01",
                                         "+1",
                                         "\"\"",
                                         "\" 1\"",
                                         "\"1 \"",
                                         "true",
                                         "0x10",
                                         "1e",
                                         "1.",
                                         ".5",
                                         "-",
                                         "\"0x1\"",
                                         "[1]",
                                         "{}",
                                         "1e999",
                                         "9223372036854775808",
                                         "-9223372036854775809",
                                         "99999999999999999999999" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char json[128];
        snprintf(json, sizeof json, "{\"ir_version\":%s}", wrong[i]);
        assert_refuses(onx_json_read, ONX_KIND_MODEL, onx_str_of(json), ONX_E_MALFORMED, NULL);
    }
    assert_malformed(ONX_KIND_TENSOR, "{\"data_type\": 2147483648}",
                     "1:15: data_type: error: the number is out of range, found 2147483648, "
                     "expected an integer from -2147483648 to 2147483647");
    assert_malformed(
        ONX_KIND_TENSOR, "{\"uint64_data\": [-1]}",
        "1:18: uint64_data: error: the number is out of range, found -1, expected an integer from 0 to 2^64 - 1");
}

static void test_proto_json_read__floats(void **state)
{
    (void)state;
    assert_reads(
        ONX_KIND_TENSOR,
        "{\"float_data\":[1,-0,1.5,\"1.5\",1E+2,0.1,\"NaN\",\"Infinity\",\"-Infinity\"],\"double_data\":[0.1,1e300,\"NaN\"]}",
        "float_data: 1\nfloat_data: -0\nfloat_data: 1.5\nfloat_data: 1.5\nfloat_data: 100\nfloat_data: 0.1\n"
        "float_data: nan\nfloat_data: inf\nfloat_data: -inf\n"
        "double_data: 0.1\ndouble_data: 1e+300\ndouble_data: nan\n");
    static const char *const wrong[] = { "NaN",   "\"nan\"", "\"inf\"", "\"+Infinity\"", "\"1e\"", "\"\"", "1e39",
                                         "-1e39", "null5",   "[]",      "\"0x1p3\"" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char json[128];
        snprintf(json, sizeof json, "{\"f\":%s}", wrong[i]);
        assert_refuses(onx_json_read, ONX_KIND_ATTRIBUTE, onx_str_of(json), ONX_E_MALFORMED, NULL);
    }
    assert_malformed(
        ONX_KIND_TENSOR, "{\"double_data\":[1e309]}",
        "1:17: double_data: error: syntax error, found 1e309, expected a number in the range of 64-bit floats");
}

static void test_proto_json_read__strings(void **state)
{
    (void)state;
    assert_reads(
        ONX_KIND_TENSOR, "{\"name\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\\u20AC\\ud83d\\ude00\xc3\xa9\x7f\"}",
        "name: \"\\\"\\\\/\\010\\014\\n\\r\\t\\000\\303\\251\\342\\202\\254\\360\\237\\230\\200\\303\\251\\177\"\n");
    static const char *const wrong[] = {
        "\"\\x41\"", "\"\\ud83d\"", "\"\\ude00\"", "\"\\ud83d\\u0041\"", "\"\\u12g4\"", "\"a\nb\"",
        "\"a\tb\"",  "\"\xff\"",    "\"\xc3\"",    "\"\xed\xa0\x80\"",   "'a'",         "a",
        "5",         "\""
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char json[128];
        snprintf(json, sizeof json, "{\"name\":%s}", wrong[i]);
        assert_refuses(onx_json_read, ONX_KIND_TENSOR, onx_str_of(json), ONX_E_MALFORMED, NULL);
    }
    assert_malformed(ONX_KIND_TENSOR, "{\"name\":\"ab",
                     "1:9: name: error: syntax error, found \"ab, expected the quote that ends the string");
    assert_malformed(ONX_KIND_TENSOR, "{\"name\":\"a\xff\"}",
                     "1:11: name: error: syntax error, found a byte that is not text, expected a string in UTF-8");
}

static void test_proto_json_read__base64(void **state)
{
    (void)state;
    static const struct {
        const char *base64, *want;
    } cases[] = {
        { "", "" },
        { "Zg==", "f" },
        { "Zg", "f" },
        { "Zm8=", "fo" },
        { "Zm8", "fo" },
        { "Zm9v", "foo" },
        { "Zm9vYg", "foob" },
        { "+/+/", "\\373\\377\\277" },
        { "-_-_", "\\373\\377\\277" },
        { "+\\/-_", "\\373\\377\\277" },
    };
    char json[128], want[128];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(json, sizeof json, "{\"raw_data\":\"%s\"}", cases[i].base64);
        snprintf(want, sizeof want, "raw_data: \"%s\"\n", cases[i].want);
        assert_reads(ONX_KIND_TENSOR, json, want);
    }
    static const char *const wrong[] = { "Z",       "Zg=",  "Z===", "====", "Zm9v=",   "Zm 9v",
                                         "Zm9v\\n", "Zm9*", "=",    "Zm=v", "\xc3\xa9" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(json, sizeof json, "{\"raw_data\":\"%s\"}", wrong[i]);
        assert_malformed(ONX_KIND_TENSOR, json, NULL);
    }
}

static void test_proto_json_read__enums(void **state)
{
    (void)state;
    assert_reads(ONX_KIND_ATTRIBUTE, "{\"type\":\"INTS\"}", "type: INTS\n");
    assert_reads(ONX_KIND_ATTRIBUTE, "{\"type\":7}", "type: INTS\n");
    assert_reads(ONX_KIND_ATTRIBUTE, "{\"type\":99}", "type: 99\n");
    assert_malformed(ONX_KIND_ATTRIBUTE, "{\"type\":\"ints\"}",
                     "1:9: type: error: type has no value of that name, found ints");
}

static void test_proto_json_read__depth_is_limited(void **state)
{
    (void)state;
    char json[8192] = "";
    for (int i = 0; i < 60; i++)
        strcat(json, "{\"sequence_type\":{\"elem_type\":");
    assert_refuses(onx_json_read, ONX_KIND_TYPE, onx_str_of(json), ONX_E_LIMIT, NULL);
}

static void test_proto_json_read__deepest_nesting(void **state)
{
    (void)state;
    assert_nests(onx_json_read, onx_json_write, "{\"sequence_type\":{\"elem_type\":", "{}", "}}");
}

static void test_proto_json_read__memory_may_fail(void **state)
{
    (void)state;
    char text[9000] = "{\"opset_import\":[{\"domain\":\"";
    memset(text + strlen(text), 'x', 8000); /* past the first blocks */
    strcat(
        text,
        "\"}],\"graph\":{\"node\":[{\"input\":[\"a\",\"b\",\"c\\n\"],\"attribute\":[{\"ints\":[1,2,3],\"s\":\"AAAA\"}]}]}}");
    assert_survives_scarcity(onx_json_read, onx_json_write, ONX_KIND_MODEL, onx_str_of(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proto_json_read__objects),
        cmocka_unit_test(test_proto_json_read__integers),
        cmocka_unit_test(test_proto_json_read__floats),
        cmocka_unit_test(test_proto_json_read__strings),
        cmocka_unit_test(test_proto_json_read__base64),
        cmocka_unit_test(test_proto_json_read__enums),
        cmocka_unit_test(test_proto_json_read__depth_is_limited),
        cmocka_unit_test(test_proto_json_read__deepest_nesting),
        cmocka_unit_test(test_proto_json_read__memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

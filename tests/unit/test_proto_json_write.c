/* test_proto_json_write.c - the proto3 JSON mapping, and what it cannot represent. */
#include "text_formats.h"

#include <math.h>

static void assert_writes(onx_kind kind, const void *message, const char *want)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    text_buffer b = { 0 };
    assert_ok(cx, onx_json_write(cx, kind, message, text_sink(&b)));
    assert_text(text_view(&b), onx_str_of(want));
    assert_int_equal(onx_diag_count(cx), 0);
    free(b.ptr);
    onx_ctx_free(cx);
}

static void test_proto_json_write__nested_messages(void **state)
{
    (void)state;
    assert_writes(ONX_KIND_MODEL, &(onx_model){ 0 }, "{}\n");
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    assert_ok(cx, onx_model_new(cx, "g", 21, &doc));
    onx_graph *graph = onx_doc_model(doc)->graph;
    onx_node *node = onx_graph_add_node(doc->arena, graph, "Conv", "x w", "y");
    onx_node_add_ints(doc->arena, node, "pads", (const int64_t[]){ 1, -2 }, 2);
    onx_graph_add_input(doc->arena, graph, "x", onx_type_new_tensor(doc->arena, ONX_FLOAT, NULL, 0));
    assert_writes(ONX_KIND_GRAPH, graph,
                  "{\n"
                  "  \"node\": [\n"
                  "    {\n"
                  "      \"input\": [\"x\", \"w\"],\n"
                  "      \"output\": [\"y\"],\n"
                  "      \"op_type\": \"Conv\",\n"
                  "      \"attribute\": [\n"
                  "        {\n"
                  "          \"name\": \"pads\",\n"
                  "          \"ints\": [\"1\", \"-2\"],\n"
                  "          \"type\": \"INTS\"\n"
                  "        }\n"
                  "      ]\n"
                  "    }\n"
                  "  ],\n"
                  "  \"name\": \"g\",\n"
                  "  \"input\": [\n"
                  "    {\n"
                  "      \"name\": \"x\",\n"
                  "      \"type\": {\n"
                  "        \"tensor_type\": {\n"
                  "          \"elem_type\": 1,\n"
                  "          \"shape\": {}\n"
                  "        }\n"
                  "      }\n"
                  "    }\n"
                  "  ]\n"
                  "}\n");
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_proto_json_write__numbers(void **state)
{
    (void)state;
    int64_t dims[] = { INT64_MIN, 0 };
    int32_t ints[] = { INT32_MIN, 7 };
    uint64_t wide[] = { UINT64_MAX };
    const float floats[] = { 1, 0.1f, -2.5f, INFINITY, -INFINITY, NAN };
    const double doubles[] = { 0.1, 1e300 };
    onx_tensor t = { .dims = dims,
                     .dims_count = 2,
                     .int32_data = ints,
                     .int32_data_count = 2,
                     .uint64_data = wide,
                     .uint64_data_count = 1,
                     .float_data = floats,
                     .float_data_count = 6,
                     .double_data = doubles,
                     .double_data_count = 2 };
    ONX_SET(tensor, &t, data_location, ONX_DATA_EXTERNAL);
    assert_writes(ONX_KIND_TENSOR, &t,
                  "{\n"
                  "  \"dims\": [\"-9223372036854775808\", \"0\"],\n"
                  "  \"float_data\": [1, 0.1, -2.5, \"Infinity\", \"-Infinity\", \"NaN\"],\n"
                  "  \"int32_data\": [-2147483648, 7],\n"
                  "  \"double_data\": [0.1, 1e+300],\n"
                  "  \"uint64_data\": [\"18446744073709551615\"],\n"
                  "  \"data_location\": \"EXTERNAL\"\n"
                  "}\n");
    t = (onx_tensor){ .data_location = 9, .has = onx_tensor_has_data_location };
    assert_writes(ONX_KIND_TENSOR, &t, "{\n  \"data_location\": 9\n}\n");
}

static void test_proto_json_write__strings_and_bytes(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_arena *arena;
    assert_ok(cx, onx_arena_new(cx, &arena));
    onx_tensor t = { 0 };
    onx_bytes bytes;
    assert_ok(cx, onx_arena_refer(arena, onx_str_of("\"\\/\b\f\n\r\t\x01\x7f\xc3\xa9"), &bytes));
    ONX_SET(tensor, &t, name, bytes);
    assert_writes(ONX_KIND_TENSOR, &t, "{\n  \"name\": \"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f\xc3\xa9\"\n}\n");
    static const struct {
        const char *bytes, *base64;
    } cases[] = {
        { "", "" },        { "f", "Zg==" },        { "fo", "Zm8=" },
        { "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "\xfb\xff\xbf", "+/+/" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[64];
        t = (onx_tensor){ 0 };
        assert_ok(cx, onx_arena_refer(arena, onx_str_of(cases[i].bytes), &bytes));
        ONX_SET(tensor, &t, raw_data, bytes);
        snprintf(want, sizeof want, "{\n  \"raw_data\": \"%s\"\n}\n", cases[i].base64);
        assert_writes(ONX_KIND_TENSOR, &t, want);
    }
    onx_arena_free(arena);
    onx_ctx_free(cx);
}

static void test_proto_json_write__what_it_cannot_carry(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    text_buffer b = { 0 };
    char line[512];
    assert_ok(cx, onx_textproto_read(cx, ONX_KIND_MODEL, onx_str_of("99: 1 opset_import { 5: 2 5: 3 }"), &doc));
    assert_ok(cx, onx_json_write(cx, ONX_KIND_MODEL, doc->root, text_sink(&b)));
    assert_text(text_view(&b), onx_str_of("{\n  \"opset_import\": [\n    {}\n  ]\n}\n"));
    assert_int_equal(onx_diag_total(cx, ONX_WARNING), 1);
    onx_diag_format(onx_diag_get(cx, 0), line, sizeof line);
    assert_string_equal(
        line, "warning: 3 unknown fields, here and further on, are not written: JSON has no way to express them");
    onx_doc_free(doc);
    assert_ok(cx, onx_textproto_read(cx, ONX_KIND_MODEL, onx_str_of("graph { node { output: 'y' output: 'ab\\377' } }"),
                                     &doc));
    assert_unwritable(onx_json_write, ONX_KIND_MODEL, doc->root, ONX_E_UNSUPPORTED,
                      "graph.node[0].output: error: the string is not UTF-8 at byte 2, which JSON cannot carry");
    onx_doc_free(doc);
    /* NaNs other than the usual one: also in protobuf text. */
    static const uint32_t nans[] = { 0x7fc00000, 0xffc00000, 0x7f800001 };
    onx_tensor t = { .float_data = nans, .float_data_count = 3 };
    for (int i = 0; i < 2; i++) {
        onx_diag_clear(cx);
        b.len = 0;
        assert_ok(cx, (i ? onx_textproto_write : onx_json_write)(cx, ONX_KIND_TENSOR, &t, text_sink(&b)));
        assert_int_equal(onx_diag_total(cx, ONX_WARNING), 1);
        onx_diag_format(onx_diag_get(cx, 0), line, sizeof line);
        assert_string_equal(line, "warning: 2 NaN values have a sign or payload, which the text does not keep");
    }
    free(b.ptr);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proto_json_write__nested_messages),
        cmocka_unit_test(test_proto_json_write__numbers),
        cmocka_unit_test(test_proto_json_write__strings_and_bytes),
        cmocka_unit_test(test_proto_json_write__what_it_cannot_carry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

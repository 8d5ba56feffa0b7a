/* test_proto_textproto_write.c - protobuf text as protoc prints it. */
#include "text_formats.h"

#include <math.h>

static void assert_writes(onx_kind kind, const void *message, const char *want)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    text_buffer b = { 0 };
    assert_ok(cx, onx_textproto_write(cx, kind, message, text_sink(&b)));
    assert_text(text_view(&b), onx_str_of(want));
    free(b.ptr);
    onx_ctx_free(cx);
}

/* A message from its wire form. */
static void assert_shows(onx_kind kind, onx_str wire, const char *want)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc, *again;
    onx_buffer bytes;
    text_buffer b = { 0 };
    assert_ok(cx, onx_read(cx, kind, wire, 0, 1, &doc));
    assert_writes(kind, doc->root, want);
    /* And what is shown can be had back. */
    assert_ok(cx, onx_textproto_write(cx, kind, doc->root, text_sink(&b)));
    assert_ok(cx, onx_textproto_read(cx, kind, text_view(&b), &again));
    assert_ok(cx, onx_write(cx, kind, again->root, 0, &bytes));
    assert_int_equal(bytes.len, wire.len);
    assert_memory_equal(bytes.ptr, wire.ptr, wire.len);
    onx_buffer_free(&bytes);
    free(b.ptr);
    onx_doc_free(doc);
    onx_doc_free(again);
    onx_ctx_free(cx);
}
#define WIRE(literal) onx_str_make("" literal, sizeof(literal) - 1)

static void test_proto_textproto_write__nested_messages(void **state)
{
    (void)state;
    assert_writes(ONX_KIND_MODEL, &(onx_model){ 0 }, "");
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    assert_ok(cx, onx_model_new(cx, "g", 21, &doc));
    onx_graph *graph = onx_doc_model(doc)->graph;
    onx_node *node = onx_graph_add_node(doc->arena, graph, "Conv", "x w", "y");
    onx_node_add_ints(doc->arena, node, "pads", (const int64_t[]){ 1, -2 }, 2);
    onx_graph_add_input(doc->arena, graph, "x", onx_type_new_tensor(doc->arena, ONX_FLOAT, NULL, 0));
    text_buffer b = { 0 };
    assert_ok(cx, onx_textproto_write(cx, ONX_KIND_GRAPH, graph, text_sink(&b)));
    assert_text(text_view(&b), onx_str_of("node {\n"
                                          "  input: \"x\"\n"
                                          "  input: \"w\"\n"
                                          "  output: \"y\"\n"
                                          "  op_type: \"Conv\"\n"
                                          "  attribute {\n"
                                          "    name: \"pads\"\n"
                                          "    ints: 1\n"
                                          "    ints: -2\n"
                                          "    type: INTS\n"
                                          "  }\n"
                                          "}\n"
                                          "name: \"g\"\n"
                                          "input {\n"
                                          "  name: \"x\"\n"
                                          "  type {\n"
                                          "    tensor_type {\n"
                                          "      elem_type: 1\n"
                                          "      shape {\n"
                                          "      }\n"
                                          "    }\n"
                                          "  }\n"
                                          "}\n"));
    free(b.ptr);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_proto_textproto_write__escapes(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    assert_ok(cx, onx_doc_new(cx, ONX_KIND_TENSOR, &doc));
    onx_tensor *t = doc->root;
    char bytes[256], want[2048], *p = want;
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    p += sprintf(p, "raw_data: \"");
    for (int i = 0; i < 256; i++) {
        if (i == '\n' || i == '\r' || i == '\t')
            p += sprintf(p, "\\%c", i == '\n' ? 'n' : i == '\r' ? 'r' : 't');
        else if (i == '"' || i == '\'' || i == '\\')
            p += sprintf(p, "\\%c", i);
        else if (i >= 0x20 && i < 0x7f)
            p += sprintf(p, "%c", i);
        else
            p += sprintf(p, "\\%03o", (unsigned)i);
    }
    strcpy(p, "\"\n");
    onx_bytes raw;
    assert_ok(cx, onx_arena_refer(doc->arena, onx_str_make(bytes, 256), &raw));
    ONX_SET(tensor, t, raw_data, raw);
    assert_writes(ONX_KIND_TENSOR, t, want);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_proto_textproto_write__floats(void **state)
{
    (void)state;
    static const float floats[] = { 0.0f,       -0.0f, 1.0f,  -1.5f,    0.1f,        1e6f,         123456.0f,
                                    1234567.0f, 1e-5f, 1e30f, 16777216, 3.14159274f, 1.40130e-45f, 3.4028235e38f };
    static const double doubles[] = { 0.1,    1e15,    123456789012345.0,  1.0 / 3, -2.5e-300, 1e22,
                                      999999, 1000000, 0.30000000000000004 };
    onx_tensor t = { .float_data = floats, .float_data_count = sizeof floats / sizeof *floats };
    t.double_data = doubles;
    t.double_data_count = sizeof doubles / sizeof *doubles;
    assert_writes(
        ONX_KIND_TENSOR, &t,
        "float_data: 0\nfloat_data: -0\nfloat_data: 1\nfloat_data: -1.5\nfloat_data: 0.1\nfloat_data: 1e+06\n"
        "float_data: 123456\nfloat_data: 1234567\nfloat_data: 1e-05\nfloat_data: 1e+30\nfloat_data: 16777216\n"
        "float_data: 3.14159274\nfloat_data: 1.40129846e-45\nfloat_data: 3.40282347e+38\n"
        "double_data: 0.1\ndouble_data: 1e+15\ndouble_data: 123456789012345\n"
        "double_data: 0.33333333333333331\ndouble_data: -2.5e-300\ndouble_data: 1e+22\n"
        "double_data: 999999\ndouble_data: 1000000\ndouble_data: 0.30000000000000004\n");
    const float specials[] = { INFINITY, -INFINITY, NAN };
    t = (onx_tensor){ .float_data = specials, .float_data_count = 3 };
    assert_writes(ONX_KIND_TENSOR, &t, "float_data: inf\nfloat_data: -inf\nfloat_data: nan\n");
}

static void test_proto_textproto_write__integers_and_enums(void **state)
{
    (void)state;
    int64_t dims[] = { INT64_MIN, INT64_MAX, 0 };
    int32_t ints[] = { INT32_MIN, -1 };
    uint64_t wide[] = { UINT64_MAX };
    onx_tensor t = { .dims = dims,
                     .dims_count = 3,
                     .int32_data = ints,
                     .int32_data_count = 2,
                     .uint64_data = wide,
                     .uint64_data_count = 1 };
    ONX_SET(tensor, &t, data_location, ONX_DATA_EXTERNAL);
    assert_writes(ONX_KIND_TENSOR, &t,
                  "dims: -9223372036854775808\ndims: 9223372036854775807\ndims: 0\nint32_data: -2147483648\n"
                  "int32_data: -1\nuint64_data: 18446744073709551615\ndata_location: EXTERNAL\n");
    t = (onx_tensor){ .data_location = 7, .has = onx_tensor_has_data_location };
    assert_writes(ONX_KIND_TENSOR, &t, "data_location: 7\n");
}

static void test_proto_textproto_write__unknown_fields(void **state)
{
    (void)state;
    /* varint, fixed32, fixed64, string, message, message that is no message after all, empty */
    assert_shows(ONX_KIND_OPERATOR_SET_ID,
                 WIRE("\x98\x06\x05"
                      "\x9d\x06\x01\x02\x03\x04"
                      "\x99\x06\x01\x02\x03\x04\x05\x06\x07\x08"
                      "\x9a\x06\x05hello"
                      "\x9a\x06\x04\x08\x01\x12\x00"
                      "\x9a\x06\x03\x08\x80\x00"
                      "\x9a\x06\x00"),
                 "99: 5\n"
                 "99: 0x04030201\n"
                 "99: 0x0807060504030201\n"
                 "99: \"hello\"\n"
                 "99 {\n  1: 1\n  2: \"\"\n}\n"
                 "99: \"\\010\\200\\000\"\n"
                 "99: \"\"\n");
    /* Groups, which protoc shows like messages, stay apart from them. */
    assert_shows(ONX_KIND_OPERATOR_SET_ID, WIRE("\x9b\x06\x08\x01\x13\x1a\x01x\x14\x9c\x06"),
                 "99 <\n  1: 1\n  2 <\n    3: \"x\"\n  >\n>\n");
}

static void test_proto_textproto_write__unknown_nesting_ends(void **state)
{
    (void)state;
    /* Twelve messages within each other: ten are shown, the rest is a string, as with protoc. */
    char wire[64];
    size_t len = 0;
    for (int i = 12; i > 0; i--) {
        wire[len++] = 0x12;
        wire[len++] = (char)(2 * (i - 1));
    }
    char want[1024], *p = want;
    for (int i = 0; i < 10; i++)
        p += sprintf(p, "%*s2 {\n", 2 * i, "");
    p += sprintf(p, "%*s2: \"\\022\\000\"\n", 20, "");
    for (int i = 9; i >= 0; i--)
        p += sprintf(p, "%*s}\n", 2 * i, "");
    wire[0] = (char)0x9a; /* 19: not known in the outermost message */
    char first[] = "19 {\n";
    memmove(wire + 2, wire + 1, len - 1);
    wire[1] = 0x01;
    char shown[1024];
    snprintf(shown, sizeof shown, "%s%s", first, strchr(want, '\n') + 1);
    assert_shows(ONX_KIND_OPERATOR_SET_ID, onx_str_make(wire, len + 1), shown);
}

static onx_status full_disk(void *user, onx_str bytes)
{
    (void)bytes;
    ++*(int *)user;
    return ONX_E_IO;
}

static void test_proto_textproto_write__sink_failure_ends_it(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    int calls = 0;
    char *big = calloc(1, 1 << 20);
    onx_str long_text = onx_str_make(big, 1 << 20);
    onx_tensor t = { .has = onx_tensor_has_raw_data };
    onx_arena *arena;
    assert_ok(cx, onx_arena_new(cx, &arena));
    assert_ok(cx, onx_arena_refer(arena, long_text, &t.raw_data));
    assert_int_equal(onx_textproto_write(cx, ONX_KIND_TENSOR, &t, (onx_sink){ full_disk, &calls }), ONX_E_IO);
    assert_int_equal(calls, 1);
    onx_arena_free(arena);
    free(big);
    onx_ctx_free(cx);
}

static void test_proto_textproto_write__depth_is_limited(void **state)
{
    (void)state;
    onx_type types[130];
    onx_type_sequence sequences[130];
    memset(types, 0, sizeof types);
    memset(sequences, 0, sizeof sequences);
    for (int i = 0; i < 129; i++) {
        ONX_SET(type, &types[i], sequence_type, &sequences[i]);
        ONX_SET(type_sequence, &sequences[i], elem_type, &types[i + 1]);
    }
    onx_ctx *cx = onx_ctx_new(NULL);
    text_buffer b = { 0 };
    assert_int_equal(onx_textproto_write(cx, ONX_KIND_TYPE, types, text_sink(&b)), ONX_E_LIMIT);
    assert_non_null(strstr(onx_diag_get(cx, 0)->message.ptr, "nested more than 100 deep"));
    free(b.ptr);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proto_textproto_write__nested_messages),
        cmocka_unit_test(test_proto_textproto_write__escapes),
        cmocka_unit_test(test_proto_textproto_write__floats),
        cmocka_unit_test(test_proto_textproto_write__integers_and_enums),
        cmocka_unit_test(test_proto_textproto_write__unknown_fields),
        cmocka_unit_test(test_proto_textproto_write__unknown_nesting_ends),
        cmocka_unit_test(test_proto_textproto_write__sink_failure_ends_it),
        cmocka_unit_test(test_proto_textproto_write__depth_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

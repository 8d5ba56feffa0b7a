/* test_proto_json_value.c - arbitrary JSON: what is read, and what is refused at which position. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/proto.h"

#include <stdlib.h>

#include "unit/context.h"

static void test_proto_json_value__reads(void **state)
{
    (void)state;
    onx_arena *arena;
    onxi_json v;
    int64_t n;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    const char text[] =
        "\xef\xbb\xbf {\"a\": [1, -2.5e1, true, false, null, \"x\\u00e9\\ud83d\\ude00\"], \"b\": {\"c\": \"d\"},"
        " \"b\": {\"c\": \"e\", \"\": []}, \"n\": 9007199254740992}";
    assert_int_equal(onxi_json_value_read(cx, arena, onx_str_of(text), &v), ONX_OK);
    const onxi_json *a = onxi_json_get(&v, "a");
    assert_int_equal(a->kind, ONXI_JSON_LIST);
    assert_int_equal(a->count, 6);
    assert_true(onxi_json_integer(&a->members[0].value, &n) && n == 1);
    assert_true(onxi_json_integer(&a->members[1].value, &n) && n == -25);
    assert_true(a->members[2].value.truth);
    assert_false(a->members[3].value.truth);
    assert_int_equal(a->members[4].value.kind, ONXI_JSON_NULL);
    assert_true(onx_str_is(a->members[5].value.text, "x\xc3\xa9\xf0\x9f\x98\x80"));
    assert_true(onx_str_is(onxi_json_text(onxi_json_get(&v, "b"), "c"), "e")); /* the last of a name counts */
    assert_true(onxi_json_integer(onxi_json_get(&v, "n"), &n) && n == INT64_C(9007199254740992));
    assert_int_equal(onxi_json_get(&v, "nothing")->kind, ONXI_JSON_NULL);
    assert_int_equal(onxi_json_get(a, "a")->kind, ONXI_JSON_NULL);
    assert_true(onxi_json_number(&v, "a", 3) == 3.0 && onxi_json_truth(&v, "a", true));
    assert_false(onxi_json_integer(onxi_json_get(&v, "b"), &n));
    onx_arena_free(arena);
}

static void test_proto_json_value__refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t column;
    } wrong[] = { { "", 1 },         { "[1,]", 4 },        { "{\"a\" 1}", 6 },   { "{a: 1}", 2 },
                  { "[1 2]", 4 },    { "nul", 1 },         { "1 2", 3 },         { "\"a", 1 },
                  { "01", 2 },       { "\"\\x\"", 2 },     { "\"\\ud800\"", 2 }, { "[1, 1e999]", 5 },
                  { "\"\xff\"", 2 }, { "{\"a\": 1,}", 9 }, { "+1", 1 } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        onx_arena *arena;
        onxi_json v;
        onx_diag_clear(cx);
        assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
        assert_int_equal(onxi_json_value_read(cx, arena, onx_str_of(wrong[i].text), &v), ONX_E_MALFORMED);
        assert_int_equal(onx_diag_get(cx, 0)->where.column, wrong[i].column);
        onx_arena_free(arena);
    }
    onx_diag_clear(cx);
}

static void test_proto_json_value__bounds_depth(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    char *text = malloc(DEEP);
    onx_arena *arena;
    onxi_json v;
    assert_non_null(text);
    memset(text, '[', DEEP);
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    assert_int_equal(onxi_json_value_read(cx, arena, onx_str_make(text, DEEP), &v), ONX_E_LIMIT);
    onx_arena_free(arena);
    onx_diag_clear(cx);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proto_json_value__reads),
        cmocka_unit_test(test_proto_json_value__refuses),
        cmocka_unit_test(test_proto_json_value__bounds_depth),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

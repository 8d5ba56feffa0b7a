/* test_run_maps.c - maps as inputs and outputs of a run: DictVectorizer, CastMap, ZipMap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/text.h>

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 1]>\n"

static onx_value *new_map(onx_ctx *cx, onx_dtype key)
{
    onx_value *map;
    assert_int_equal(onx_value_new(cx, &map), ONX_OK);
    assert_int_equal(onx_value_reset_list(map, ONX_VALUE_MAP, key), ONX_OK);
    return map;
}

/* One more value: the text, or the number where that is NULL; its key is the next one. */
static void add(onx_value *map, int64_t key, const char *name, onx_dtype dtype, const char *text, double number)
{
    onx_value *item;
    uint64_t at = map->count;
    assert_int_equal(onx_value_new_tensor(map->cx, dtype, 0, NULL, &item), ONX_OK);
    if (text)
        assert_int_equal(onx_value_set_text(item, 0, onx_str_of(text)), ONX_OK);
    else if (dtype == ONX_FLOAT)
        *(float *)item->data = (float)number;
    else
        *(int64_t *)item->data = (int64_t)number;
    assert_int_equal(onx_value_insert(map, at, item), ONX_OK);
    onx_value_free(item);
    if (name)
        assert_int_equal(onx_value_set_text(map, at, onx_str_of(name)), ONX_OK);
    else
        ((int64_t *)map->data)[at] = key;
}

static onx_status run(onx_ctx *cx, const char *text, const onx_value *input, onx_value **output)
{
    onx_doc *doc;
    onx_session *s;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    *output = NULL;
    onx_status status = onx_session_new(cx, doc, NULL, &s);
    for (int again = 0; again < 2 && status == ONX_OK; again++) /* memory of the first run is used again */
        status = onx_session_run(s, cx, &input, output);
    onx_session_free(s);
    onx_doc_free(doc);
    return status;
}

static void expect_failure(onx_ctx *cx, const char *text, const onx_value *input, const char *message)
{
    onx_value *out;
    assert_int_not_equal(run(cx, text, input, &out), ONX_OK);
    assert_true(onx_diag_count(cx) > 0);
    onx_str said = onx_diag_get(cx, 0)->message;
    assert_int_equal(said.len, strlen(message));
    assert_memory_equal(said.ptr, message, said.len);
    onx_value_free(out);
    onx_diag_clear(cx);
}

static void test_run_maps__dict_vectorizer(void **state)
{
    (void)state;
    static const char model[] = HEAD "g (map(string, int64) m) => (int64[1, 3] y) {"
                                     " y = ai.onnx.ml.DictVectorizer <string_vocabulary = [\"a\", \"b\", \"c\"]> (m) }";
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *map = new_map(cx, ONX_STRING), *y;
    add(map, 0, "c", ONX_INT64, NULL, 9007199254740992.0);
    add(map, 0, "other", ONX_INT64, NULL, 5);
    add(map, 0, "a", ONX_INT64, NULL, -4);
    assert_int_equal(run(cx, model, map, &y), ONX_OK);
    const int64_t wanted[] = { -4, 0, INT64_C(9007199254740992) };
    assert_int_equal(y->dtype, ONX_INT64);
    assert_int_equal(y->count, 3);
    assert_memory_equal(y->data, wanted, sizeof wanted);
    onx_value_free(y);
    add(map, 0, "b", ONX_FLOAT, NULL, 1);
    expect_failure(cx, model, map, "value 3 of the map is not a single element of the same type");
    onx_value_free(map);
    onx_ctx_free(cx);
}

static void test_run_maps__texts(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *map = new_map(cx, ONX_INT64), *y;
    add(map, 7, NULL, ONX_STRING, "1.5", 0);
    add(map, -2, NULL, ONX_STRING, "-3", 0);
    assert_int_equal(run(cx,
                         HEAD "g (map(int64, string) m) => (string[1, 3] y) {"
                              " y = ai.onnx.ml.DictVectorizer <int64_vocabulary = [5, -2, 7]> (m) }",
                         map, &y),
                     ONX_OK);
    const onx_str *texts = y->data;
    assert_true(onx_str_is(texts[0], "") && onx_str_is(texts[1], "-3") && onx_str_is(texts[2], "1.5"));
    onx_value_free(y);
    assert_int_equal(
        run(cx, HEAD "g (map(int64, string) m) => (float[1, ?] y) { y = ai.onnx.ml.CastMap (m) }", map, &y), ONX_OK);
    const float numbers[] = { -3, 1.5f };
    assert_int_equal(y->count, 2);
    assert_memory_equal(y->data, numbers, sizeof numbers);
    onx_value_free(y);
    expect_failure(cx,
                   HEAD "g (map(int64, string) m) => (float[1, ?] y) {"
                        " y = ai.onnx.ml.CastMap <map_form = \"SPARSE\", max_map = 9> (m) }",
                   map, "key -2 is outside of max_map 9");
    add(map, 8, NULL, ONX_STRING, "three", 0);
    expect_failure(cx, HEAD "g (map(int64, string) m) => (float[1, ?] y) { y = ai.onnx.ml.CastMap (m) }", map,
                   "\"three\" is no number");
    onx_value_free(map);
    onx_ctx_free(cx);
}

static void test_run_maps__empty(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *map = new_map(cx, ONX_INT64), *y;
    assert_int_equal(run(cx, HEAD "g (map(int64, float) m) => (float[1, ?] y) { y = ai.onnx.ml.CastMap (m) }", map, &y),
                     ONX_OK);
    assert_int_equal(y->count, 0);
    onx_value_free(y);
    assert_int_equal(run(cx,
                         HEAD "g (map(int64, float) m) => (float[1, ?] y) {"
                              " y = ai.onnx.ml.DictVectorizer <int64_vocabulary = [5]> (m) }",
                         map, &y),
                     ONX_OK);
    assert_int_equal(y->dtype, ONX_FLOAT);
    assert_int_equal(y->count, 1);
    onx_value_free(y);
    onx_value_free(map);
    onx_ctx_free(cx);
}

static void test_run_maps__zip(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    const int64_t dims[] = { 2, 2 };
    onx_value *x, *y;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &x), ONX_OK);
    for (int i = 0; i < 4; i++)
        ((float *)x->data)[i] = (float)i;
    assert_int_equal(run(cx,
                         HEAD "g (float[2, 2] x) => (seq(map(string, float)) y) {"
                              " y = ai.onnx.ml.ZipMap <classlabels_strings = [\"no\", \"yes\"]> (x) }",
                         x, &y),
                     ONX_OK);
    assert_int_equal(y->kind, ONX_VALUE_SEQUENCE);
    assert_int_equal(y->count, 2);
    for (uint64_t row = 0; row < 2; row++) {
        const onx_value *map = y->items[row];
        assert_int_equal(map->kind, ONX_VALUE_MAP);
        assert_int_equal(map->count, 2);
        assert_true(onx_str_is(((const onx_str *)map->data)[0], "no"));
        assert_true(onx_str_is(((const onx_str *)map->data)[1], "yes"));
        for (uint64_t i = 0; i < 2; i++) {
            assert_int_equal(map->items[i]->rank, 0);
            assert_true(*(const float *)map->items[i]->data == (float)(row * 2 + i));
        }
    }
    onx_value_free(y);
    onx_value_free(x);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_run_maps__dict_vectorizer),
                                        cmocka_unit_test(test_run_maps__texts), cmocka_unit_test(test_run_maps__empty),
                                        cmocka_unit_test(test_run_maps__zip) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_text_roundtrip.c - every model of the reference implementation is the same after printing it as ONNX text and
 * parsing that; parsing, printing and parsing again changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/text.h>

#include "cases.h"
#include "conformance.h"
#include "text_normal.h"

static unsigned models, failures;

static void fail_model(const char *path, const char *why, const onx_ctx *cx)
{
    char text[512] = "";
    size_t count = onx_diag_count(cx);
    if (count)
        onx_diag_format(onx_diag_get(cx, count - 1), text, sizeof text);
    print_error("%s: %s %s\n", path, why, text);
    failures++;
}

static const char *round_trip(onx_ctx *cx, onx_doc *doc, cases_buffer *first, cases_buffer *second, onx_doc **again)
{
    if (onx_text_print(cx, ONX_KIND_MODEL, onx_doc_model(doc), NULL, (onx_sink){ cases_collect, first }) != ONX_OK)
        return "cannot be printed";
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(first->ptr, first->len), ONX_TEXT_BORROW, again) != ONX_OK)
        return "cannot be parsed";
    if (onx_text_print(cx, ONX_KIND_MODEL, onx_doc_model(*again), NULL, (onx_sink){ cases_collect, second }) != ONX_OK)
        return "cannot be printed again";
    if (first->len != second->len || memcmp(first->ptr, second->ptr, first->len) != 0)
        return "prints differently the second time";
    text_normal(cx, ONX_KIND_MODEL, onx_doc_model(doc));
    text_normal(cx, ONX_KIND_MODEL, onx_doc_model(*again));
    return onx_message_equal(ONX_KIND_MODEL, onx_doc_model(doc), onx_doc_model(*again)) ? NULL : "is another model";
}

static void try_case(void *user, const char *dir, const char *path)
{
    onx_ctx *cx = user;
    onx_doc *doc = NULL, *again = NULL;
    cases_buffer first = { NULL, 0 }, second = { NULL, 0 };
    (void)dir;
    models++;
    const char *why = onx_load(cx, ONX_KIND_MODEL, path, NULL, &doc) == ONX_OK
                          ? round_trip(cx, doc, &first, &second, &again)
                          : "cannot be read";
    if (why)
        fail_model(path, why, cx);
    onx_doc_free(again);
    onx_doc_free(doc);
    free(first.ptr);
    free(second.ptr);
    onx_diag_clear(cx);
}

static const char *root_dir;

static void test_text_roundtrip__every_model(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    assert_non_null(cx);
    conformance_walk(root_dir, 0, try_case, cx);
    onx_ctx_free(cx);
    print_message("%u models below %s\n", models, root_dir);
    assert_true(models > 500);
    assert_int_equal(failures, 0);
}

int main(void)
{
    root_dir = conformance_dir();
    if (!root_dir)
        return CONFORMANCE_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_roundtrip__every_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

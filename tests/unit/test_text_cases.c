/* test_text_cases.c - every construct of the text syntax and every error, from
 * tests/cases/text/{accepted,rejected}.case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/text.h>

#include "unit/cases.h"

/* The canonical text, or the diagnostics. Reading and printing it again must change nothing. */
static cases_buffer answer_of(onx_kind kind, onx_str text, bool *parsed)
{
    cases_buffer out = { NULL, 0 }, again = { NULL, 0 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc, *other;
    *parsed = onx_text_parse(cx, kind, text, 0, &doc) == ONX_OK;
    if (!*parsed) {
        assert_null(doc);
        assert_true(onx_diag_total(cx, ONX_ERROR) > 0);
        cases_add_diagnostics(cx, &out);
    } else {
        assert_int_equal(onx_text_print(cx, kind, onx_doc_root(doc, kind), NULL, (onx_sink){ cases_collect, &out }),
                         ONX_OK);
        assert_int_equal(onx_text_parse(cx, kind, onx_str_make(out.ptr, out.len), ONX_TEXT_BORROW, &other), ONX_OK);
        assert_true(onx_message_equal(kind, onx_doc_root(doc, kind), onx_doc_root(other, kind)));
        assert_int_equal(onx_text_print(cx, kind, onx_doc_root(other, kind), NULL, (onx_sink){ cases_collect, &again }),
                         ONX_OK);
        assert_string_equal(out.ptr, again.ptr);
        onx_doc_free(other);
    }
    onx_doc_free(doc);
    onx_ctx_free(cx);
    free(again.ptr);
    return out;
}

/* The title begins with the kind of message. */
static cases_buffer answer_to(onx_str title, onx_str text, bool accepted)
{
    const char *colon = memchr(title.ptr, ':', title.len);
    assert_non_null(colon);
    const onx_kind kind = onx_kind_find(onx_str_make(title.ptr, (size_t)(colon - title.ptr)));
    assert_int_not_equal(kind, ONX_KIND_NONE);
    bool parsed;
    cases_buffer answer = answer_of(kind, text, &parsed);
    if (parsed != accepted)
        fail_msg("%.*s: %s\n%s", ONX_ARG(title), parsed ? "accepted" : "refused", answer.ptr);
    return answer;
}

static cases_buffer accept(onx_str title, onx_str text)
{
    return answer_to(title, text, true);
}

static cases_buffer reject(onx_str title, onx_str text)
{
    return answer_to(title, text, false);
}

static void test_text_cases__accepted(void **state)
{
    (void)state;
    cases_run(ONX_SOURCE_DIR "/tests/cases/text/accepted.case", 90, accept);
}

static void test_text_cases__rejected(void **state)
{
    (void)state;
    cases_run(ONX_SOURCE_DIR "/tests/cases/text/rejected.case", 85, reject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_cases__accepted),
        cmocka_unit_test(test_text_cases__rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

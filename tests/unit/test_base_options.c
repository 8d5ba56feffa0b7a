/* Options as passed by callers of other releases, and the version that the library reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/base.h"

typedef struct options {
    uint32_t struct_size;
    uint32_t first;
    uint64_t second;
} options;

static onx_status take(onx_ctx *cx, const void *given, options *out)
{
    ONXI_OPTIONS(cx, options, own, given);
    *out = own;
    return ONX_OK;
}

static void test_base_options__of_other_releases(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    options got = { 0 };
    struct {
        options known;
        uint64_t later;
    } newer = { .known = { sizeof newer, 1, 2 } };
    const options same = { 0, 1, 2 }, older = { offsetof(options, second), 1, 2 };

    assert_int_equal(take(cx, NULL, &got), ONX_OK);
    assert_true(got.first == 0 && got.second == 0);
    assert_int_equal(take(cx, &same, &got), ONX_OK);
    assert_true(got.first == 1 && got.second == 2);
    /* What an older caller does not know of is not looked at. */
    assert_int_equal(take(cx, &older, &got), ONX_OK);
    assert_true(got.first == 1 && got.second == 0);
    /* A newer caller that asks for nothing new is served; one that does is told. */
    assert_int_equal(take(cx, &newer, &got), ONX_OK);
    assert_true(got.first == 1 && got.second == 2);
    assert_int_equal(onx_diag_count(cx), 0);
    newer.later = 1;
    assert_int_equal(take(cx, &newer, &got), ONX_E_MISUSE);
    assert_int_equal(onx_diag_count(cx), 1);
    onx_ctx_free(cx);
}

static void test_base_options__version(void **state)
{
    (void)state;
    char text[32];
    assert_int_equal(onx_version(), ONX_VERSION_NUMBER);
    snprintf(text, sizeof text, "%d.%d.%d", ONX_VERSION_MAJOR, ONX_VERSION_MINOR, ONX_VERSION_PATCH);
    assert_string_equal(onx_version_text(), text);
    uint32_t facts = 0;
    while (onx_build_info(facts))
        assert_true(strlen(onx_build_info(facts++)) > 0);
    assert_true(facts >= 4);
    assert_null(onx_build_info(UINT32_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_options__of_other_releases),
        cmocka_unit_test(test_base_options__version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

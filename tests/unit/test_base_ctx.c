/* Diagnostics: their addresses stay valid while others are added, the first error is always kept, and lack of memory is
 * always reported. */
#include "base/base.h"
#include "unit/scarce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/context.h"

static void test_base_ctx__diagnostics_stay_where_they_are(void **state)
{
    (void)state;
    enum { COUNT = 900 };
    const onx_diag *seen[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        onxi_warn(cx, ONX_WARNING, i % 3 ? "T-01" : "T-02", ONXI_NOWHERE, "number %u", i);
        seen[i] = onx_diag_get(cx, i);
        assert_non_null(seen[i]);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        char text[32];
        snprintf(text, sizeof text, "number %u", i);
        assert_ptr_equal(onx_diag_get(cx, i), seen[i]);
        assert_true(onx_str_is(seen[i]->message, text));
    }
    onxi_diag_forget(cx, "T-01");
    assert_int_equal(onx_diag_count(cx), COUNT / 3);
    assert_ptr_equal(onx_diag_get(cx, 1), seen[3]);
    assert_true(onx_str_is(seen[3]->message, "number 3"));
    onx_diag_clear(cx);
}

static void test_base_ctx__first_error_is_kept(void **state)
{
    (void)state;
    onx_limits limits = onx_ctx_limits(cx), few = limits;
    few.diagnostics = 10;
    onx_ctx_set_limits(cx, few);
    for (int i = 0; i < 20; i++)
        onxi_warn(cx, ONX_WARNING, "T-01", ONXI_NOWHERE, "a warning");
    onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the reason");
    onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "a further one");
    assert_int_equal(onx_diag_count(cx), 11);
    assert_true(onx_str_is(onx_diag_get(cx, 10)->message, "the reason"));
    assert_int_equal(onx_diag_total(cx, ONX_ERROR), 2);
    onx_diag_clear(cx);
    onx_ctx_set_limits(cx, limits);
}

/* Whichever allocation fails, and all after it as well: the reason is said, or that memory ran out. */
static void test_base_ctx__no_memory_is_always_said(void **state)
{
    (void)state;
    for (int lasting = 0; lasting < 2; lasting++)
        for (unsigned n = 2;; n++) {
            scarce_memory memory = { .failing = n, .lasting = lasting };
            onx_ctx *scarce = onx_ctx_new(&(onx_allocator){ scarce_resize, &memory });
            assert_non_null(scarce);
            for (int i = 0; i < 100; i++) {
                size_t errors = onx_diag_total(scarce, ONX_ERROR);
                onxi_fail(scarce, ONX_E_INVALID, ONXI_NOWHERE, "a reason that takes some room in memory: %0200d", i);
                assert_true(onx_diag_total(scarce, ONX_ERROR) > errors);
                assert_true(onx_diag_count(scarce) > 0);
            }
            for (size_t i = 0; i < onx_diag_count(scarce); i++)
                assert_true(onx_diag_get(scarce, i)->message.len > 0);
            onx_diag_clear(scarce);
            onxi_no_memory(scarce);
            assert_int_equal(onx_diag_count(scarce), 1);
            onx_ctx_free(scarce);
            assert_int_equal(memory.in_use, 0);
            if (memory.calls < n)
                break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_ctx__diagnostics_stay_where_they_are),
        cmocka_unit_test(test_base_ctx__first_error_is_kept),
        cmocka_unit_test(test_base_ctx__no_memory_is_always_said),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

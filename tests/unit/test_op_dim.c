/* Dimension expressions: how they are simplified and printed, and that printed text can be read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "op/op.h"

static onx_ctx *cx;
static onxi_dims *dims;

static int set_up(void **state)
{
    (void)state;
    cx = onx_ctx_new(NULL);
    return cx && onxi_dims_new(cx, &dims) == ONX_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    onxi_dims_free(dims);
    onx_ctx_free(cx);
    return 0;
}

static onxi_dim read_dim(const char *text)
{
    return onxi_dim_parse(dims, onx_str_of(text));
}

static void test_op_dim__simplifies(void **state)
{
    (void)state;
    static const struct {
        const char *text, *simple;
    } cases[] = {
        { "N + 1", "N + 1" },
        { "1 + N", "N + 1" },
        { "N - N + 3*M", "3*M" },
        { "2*(N + 1)", "2*N + 2" },
        { "(H - 1)/2 + 1", "(H + 1)/2" },
        { "(H + 6 - 7)/2 + 1", "(H + 1)/2" },
        { "((H + 1)/2 + 1)/2", "(H + 3)/4" },
        { "4*N/4", "N" },
        { "(4*N + 6)/4", "N + 1" },
        { "6*N/4", "3*N/2" },
        { "2*(N/3)", "2*(N/3)" },
        { "N*S*768/(N*S*12)", "64" },
        { "(past + seq)*H*D/(past + seq)", "H*D" },
        { "(past + seq)*64/((past + seq)*64)", "1" },
        { "(N*M + K)/M", "N + K/M" },
        { "N % 1 + M", "M" },
        { "(4*N + 7) % 4 + M", "M + 3" },
        { "(3*N + 7) % 2 + M", "(N + 1) % 2 + M" },
        { "min(N, N + 1)", "N" },
        { "max(N, N + 1)", "N + 1" },
        { "min(5, N)", "min(5, N)" },
        { "N - max(N - 1, 0)", "min(1, N)" },
        { "past + seq - min(past, past + seq)", "seq" },
        { "max(0, 2*N + 1)", "2*N + 1" },
        { "min(1024, past + seq) - past", "min(1024 - past, seq)" },
        { "-N + M", "M - N" },
        { "-1*N", "-N" },
        { "min(1, N)/2 + M", "M" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buf[200], again[200];
        onxi_dim d = read_dim(cases[i].text);
        size_t len = onxi_dim_print(dims, d, buf, sizeof buf);
        assert_true(len < sizeof buf);
        onxi_dim same = onxi_dim_is_const(d) ? d : read_dim(buf);
        onxi_dim wanted = onxi_dim_is_const(d) ? d : read_dim(cases[i].simple);
        if (d != same)
            print_message("%s gives %s\n", cases[i].text, buf);
        assert_true(d == same);
        if (wanted != d || onxi_dim_is_const(d))
            assert_string_equal(buf, cases[i].simple);
        (void)onxi_dim_print(dims, same, again, sizeof again);
        assert_string_equal(buf, again);
    }
}

static void test_op_dim__prints(void **state)
{
    (void)state;
    static const char *const texts[] = { "N",         "N + 1",      "2*seq",       "(H + 1)/2", "N*(K/M)",
                                         "min(5, N)", "seq + past", "(N + 1) % 2", "N/M",       "a*b + 2*c - 3" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char buf[200];
        (void)onxi_dim_print(dims, read_dim(texts[i]), buf, sizeof buf);
        assert_string_equal(buf, texts[i]);
    }
}

static void test_op_dim__names_stay_names(void **state)
{
    (void)state;
    static const char *const names[] = { "batch-size", "a b", "unk__12", "floor(h/2 - 1/2)", "N+", "1/2*h", "min(" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char buf[200];
        onxi_dim d = read_dim(names[i]);
        assert_true(onxi_dim_is_symbol(dims, d));
        (void)onxi_dim_print(dims, d, buf, sizeof buf);
        assert_string_equal(buf, names[i]);
    }
    static const char *const nothing[] = { "", "?", "-1", "*", "3", "(", "None" };
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        assert_false(onxi_dim_is_name(onx_str_of(nothing[i])));
        if (strcmp(nothing[i], "-1") != 0) /* a formula */
            assert_false(onxi_dim_is_known(read_dim(nothing[i])));
    }
    assert_false(onxi_dim_is_name(onx_str_of("unk__12")));
    assert_true(onxi_dim_is_name(onx_str_of("unk__N")));
}

static void test_op_dim__unknown_and_overflow(void **state)
{
    (void)state;
    onxi_dim n = read_dim("N"), big = INT64_MAX;
    assert_false(onxi_dim_is_known(onxi_dim_add(dims, ONXI_DIM_UNKNOWN, n)));
    assert_false(onxi_dim_is_known(onxi_dim_add(dims, big, 1)));
    assert_false(onxi_dim_is_known(onxi_dim_mul(dims, big, big)));
    assert_false(onxi_dim_is_known(onxi_dim_sub(NULL, -big, big)));
    assert_false(onxi_dim_is_known(onxi_dim_div(dims, n, 0)));
    assert_false(onxi_dim_is_known(onxi_dim_mod(dims, 5, 0)));
    assert_int_equal(onxi_dim_div(NULL, -7, 2), -4);
    assert_int_equal(onxi_dim_div_ceil(NULL, 7, 2), 4);
    assert_int_equal(onxi_dim_mod(NULL, -7, 3), 2);
    assert_true(onxi_dim_is_known(onxi_dim_mul(dims, onxi_dim_mul(dims, n, big), big))); /* opaque, still a dimension */
}

static void test_op_dim__stays_bounded(void **state)
{
    (void)state;
    /* A chain that would double its text with every step ends in a fresh symbol instead. */
    onxi_dim d = read_dim("N");
    char buf[4000];
    for (int i = 0; i < 1000 && onxi_dim_is_known(d); i++) {
        d = onxi_dim_max(dims, onxi_dim_mul(dims, d, d), onxi_dim_div(dims, d, read_dim("M")));
        assert_true(onxi_dim_print(dims, d, buf, sizeof buf) < sizeof buf);
    }
    onxi_dim sum = 0;
    for (int i = 0; i < 200; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "x%d", i);
        sum = onxi_dim_add(dims, sum, read_dim(name));
        assert_true(onxi_dim_print(dims, sum, buf, sizeof buf) < sizeof buf);
    }
}

static void test_op_dim__fixing_and_substituting(void **state)
{
    (void)state;
    onxi_dim d = read_dim("min(5, (H + 1)/2*N) + past % 3");
    d = onxi_dim_substitute(dims, d, read_dim("H"), 7);
    d = onxi_dim_substitute(dims, d, read_dim("past"), 8);
    char buf[100];
    (void)onxi_dim_print(dims, d, buf, sizeof buf);
    assert_string_equal(buf, "min(5, 4*N) + 2");
    assert_int_equal(onxi_dim_substitute(dims, d, read_dim("N"), 1), 6);
    assert_int_equal(onxi_dims_fix(dims, onx_str_of("batch"), 8), ONX_OK);
    assert_int_equal(read_dim("2*batch + 1"), 17);
}

static void test_op_dim__broadcast(void **state)
{
    (void)state;
    onxi_dim n = read_dim("N"), m = read_dim("M");
    assert_true(onxi_dim_broadcast(dims, n, 1) == n);
    assert_true(onxi_dim_broadcast(dims, n, n) == n);
    assert_int_equal(onxi_dim_broadcast(dims, n, 5), 5);
    onxi_dim both = onxi_dim_broadcast(dims, n, m);
    assert_true(both == onxi_dim_broadcast(dims, m, n));
    assert_true(onxi_dim_broadcast(dims, read_dim("past + seq"), read_dim("min(1024, past + seq)")) ==
                read_dim("past + seq"));
    assert_int_equal(onxi_dim_substitute(dims, onxi_dim_substitute(dims, both, n, 1), m, 7), 7);
    assert_false(onxi_dim_is_known(onxi_dim_broadcast(dims, 2, 3)));
}

/* A rule may hand on a number of the model that looks like an expression. */
static void test_op_dim__numbers_that_look_like_expressions(void **state)
{
    (void)state;
    onxi_dim forged = INT64_MIN + 100000, n = read_dim("N");
    char buf[20];
    assert_false(onxi_dim_exists(dims, forged));
    assert_false(onxi_dim_is_known(onxi_dim_add(dims, forged, n)));
    assert_false(onxi_dim_is_known(onxi_dim_max(dims, forged, 1)));
    assert_false(onxi_dim_is_known(onxi_dim_div(dims, n, forged)));
    assert_false(onxi_dim_at_least(dims, forged, n));
    assert_false(onxi_dim_is_symbol(dims, forged));
    assert_int_equal(onxi_dim_print(dims, forged, buf, sizeof buf), 0);
    assert_true(onxi_dim_is_const(onxi_dim_of_int(INT64_MIN)));
}

static void test_op_dim__fresh_symbols_differ(void **state)
{
    (void)state;
    onxi_dim a = onxi_dim_fresh(dims, "nonzero"), b = onxi_dim_fresh(dims, "nonzero");
    assert_true(a != b && onxi_dim_is_fresh(dims, a));
    char buf[100];
    (void)onxi_dim_print(dims, a, buf, sizeof buf);
    onxi_dim named = read_dim(buf);
    assert_true(named != a && !onxi_dim_is_fresh(dims, named));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_op_dim__##name, set_up, tear_down)
        TEST(simplifies),
        TEST(prints),
        TEST(names_stay_names),
        TEST(unknown_and_overflow),
        TEST(stays_bounded),
        TEST(fixing_and_substituting),
        TEST(broadcast),
        TEST(fresh_symbols_differ),
        TEST(numbers_that_look_like_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

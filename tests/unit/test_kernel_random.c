/* Random numbers with a seed: the first values are those of numpy.random.seed(n); numpy.random.uniform(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "unit/variants.h"

static void assert_close(double got, double want, double bound)
{
    if (!(got - want <= bound && want - got <= bound))
        fail_msg("%.17g, expected %.17g", got, want);
}

static void test_kernel_random__known_values(void **state)
{
    (void)state;
    onxi_random r;
    onxi_random_seed(&r, 0);
    assert_close(onxi_random_uniform(&r), 0.5488135039273248, 1e-16);
    assert_close(onxi_random_uniform(&r), 0.7151893663724195, 1e-16);
    onxi_random_seed(&r, 42);
    assert_close(onxi_random_uniform(&r), 0.3745401188473625, 1e-16);
}

/* numpy.random.RandomState(n).randn(6) */
static void test_kernel_random__known_normals(void **state)
{
    (void)state;
    static const double want[] = { 1.76405235, 0.40015721, 0.97873798, 2.2408932, 1.86755799, -0.97727788 };
    onxi_random r;
    onxi_random_seed(&r, 0);
    for (int i = 0; i < 6; i++)
        assert_close(onxi_random_normal(&r), want[i], 1e-8);
    onxi_random_seed(&r, 42); /* what was left of a pair is forgotten */
    assert_close(onxi_random_normal(&r), 0.49671415, 1e-8);
    assert_close(onxi_random_normal(&r), -0.1382643, 1e-8);
}

static void test_kernel_random__numbers_stay_in_range_and_go_on_after_a_refill(void **state)
{
    (void)state;
    onxi_random r;
    double sum = 0;
    onxi_random_seed(&r, 1);
    for (int i = 0; i < 10000; i++) {
        double u = onxi_random_uniform(&r);
        assert_true(u >= 0 && u < 1);
        sum += u;
    }
    assert_close(sum / 10000, 0.5, 0.02);
}

/* Many at once are the same as one after the other, over several refills, from any place. */
static void test_kernel_random__many_are_the_same(void **state)
{
    enum { MOST = 1500 };
    static double many[MOST];
    (void)state;
    for (uint32_t turn = 0; turn < 60; turn++) {
        onxi_random a, b;
        onxi_random_seed(&a, turn);
        onxi_random_seed(&b, turn);
        for (uint64_t count = turn; count < MOST; count = 2 * count + turn % 3 + 1) {
            if (turn % 5 == 1)
                assert_true(onxi_random_normal(&a) == onxi_random_normal(&b)); /* one of a pair is left */
            onxi_random_uniforms(&a, many, count);
            for (uint64_t i = 0; i < count; i++)
                assert_true(many[i] == onxi_random_uniform(&b));
            onxi_random_normals(&a, many, count);
            for (uint64_t i = 0; i < count; i++)
                assert_true(many[i] == onxi_random_normal(&b));
        }
    }
}

/* As NumPy draws a binomial distribution of one trial, which draws no number for probability 0. */
static void test_kernel_random__ones_are_as_drawn_one_by_one(void **state)
{
    static const double few[] = { 0, 1, 0.5, 0.25, 0.999, 1e-9 };
    (void)state;
    for (uint32_t turn = 0; turn < 8; turn++) {
        const int64_t count = 1 + 177 * turn;
        char text[300];
        onx_doc *doc = NULL;
        onx_session *session = NULL;
        onx_value *x = tensor(ONX_DOUBLE, 1, &count), *y = NULL;
        onxi_random r;
        snprintf(text, sizeof text,
                 "<ir_version: 9, opset_import: [\"\" : 17]> g (double[N] x) => (int32[N] y)"
                 " { y = Bernoulli <seed = %u.0, dtype = 6> (x) }",
                 turn);
        onxi_random_seed(&r, 100 + turn);
        for (int64_t i = 0; i < count; i++)
            ((double *)x->data)[i] = turn % 2 || i % 3 == 0 ? onxi_random_uniform(&r) : few[i % (turn % 4 ? 6 : 3)];
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
        assert_int_equal(onx_session_new(cx, doc, NULL, &session), ONX_OK);
        assert_int_equal(onx_session_run(session, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
        onxi_random_seed(&r, turn);
        for (int64_t i = 0; i < count; i++) {
            const double p = ((const double *)x->data)[i];
            bool one = false;
            if (p > 0.5)
                one = onxi_random_uniform(&r) <= exp(log(p));
            else if (p > 0)
                one = onxi_random_uniform(&r) > exp(log(1 - p));
            assert_int_equal(((const int32_t *)y->data)[i], one);
        }
        onx_session_free(session);
        onx_doc_free(doc);
        onx_value_free(x);
        onx_value_free(y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_random__known_values),
        cmocka_unit_test(test_kernel_random__known_normals),
        cmocka_unit_test(test_kernel_random__numbers_stay_in_range_and_go_on_after_a_refill),
        cmocka_unit_test(test_kernel_random__many_are_the_same),
        cmocka_unit_test(test_kernel_random__ones_are_as_drawn_one_by_one),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

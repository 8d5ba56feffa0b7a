/* Random numbers with a seed: the first values are those of numpy.random.seed(n); numpy.random.uniform(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_random__known_values),
        cmocka_unit_test(test_kernel_random__known_normals),
        cmocka_unit_test(test_kernel_random__numbers_stay_in_range_and_go_on_after_a_refill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

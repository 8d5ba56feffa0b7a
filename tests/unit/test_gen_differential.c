/* test_gen_differential.c - random models of several nodes: all parts of onx, all kernels, threads, formats and forms
 * of the same computation agree. The fuzz target of the same name uses other seeds, for longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen/gen.h"
#include "share.h"

#include <stdlib.h>

static void test_gen_differential__everything_agrees(void **state)
{
    (void)state;
    const char *from = getenv("ONX_GEN_SEED"), *how_many = getenv("ONX_GEN_COUNT"); /* for debugging and longer runs */
    const uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    const uint64_t count = how_many ? strtoull(how_many, NULL, 10) : 4000 / share_step();
    unsigned found = 0, models = 0, ran = 0, nodes = 0, forms = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        gen_random random = { .state = seed };
        gen_finding finding;
        gen_differential(&random, &finding);
        if (finding.why[0]) {
            print_error("seed %llu: %s\n%s\n", (unsigned long long)seed, finding.why, finding.text ? finding.text : "");
            found++;
        }
        free(finding.text);
        models += finding.nodes > 0;
        ran += finding.ran;
        nodes += finding.nodes;
        forms += finding.forms;
    }
    print_message("%u models of %u nodes, %u of them run, %u other forms\n", models, nodes, ran, forms);
    assert_int_equal(found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_differential__everything_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

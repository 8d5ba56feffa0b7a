/* test_base_left.c - memory left for later users that make the same contents: it is found by name while the memory is
 * not needed, and not found if the system has taken part of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/base_process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SMALL = 1 << 20, LARGE = 4 << 20, PAGE = 4096 };

static unsigned freed;

static void free_counted(void *owner, void *bytes, size_t size)
{
    assert_ptr_equal(owner, &freed);
    freed++;
    onxi_allocator_default.resize(onxi_allocator_default.user, bytes, size, 0);
}

static char *make(size_t size, int with)
{
    char *bytes = onxi_allocator_default.resize(onxi_allocator_default.user, NULL, 0, size);
    assert_non_null(bytes);
    memset(bytes, with, size);
    return bytes;
}

static bool put(uint64_t name, char *bytes, size_t size)
{
    return onxi_left_put((onxi_digest){ name, 1 }, &freed, bytes, size, free_counted);
}

static char *take(uint64_t name, size_t size)
{
    void *owner = NULL;
    char *bytes = onxi_left_take((onxi_digest){ name, 1 }, size, &owner);
    assert_true(!bytes || owner == &freed);
    return bytes;
}

static void give_back(char *bytes, size_t size)
{
    onxi_allocator_default.resize(onxi_allocator_default.user, bytes, size, 0);
}

static void test_base_left__bytes_are_found_by_name(void **state)
{
    (void)state;
    const size_t sizes[] = { 1, 100, SMALL, LARGE, LARGE + 3 * PAGE + 5 };
    freed = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *bytes = make(sizes[i], 7);
        assert_true(put(i, bytes, sizes[i]));
        assert_false(put(i, bytes, sizes[i])); /* there is one */
        assert_null(take(i + ONXI_LEFT_CHAINS, sizes[i]));
        assert_null(take(i, sizes[i] + 1));
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *bytes = take(i, sizes[i]);
        assert_non_null(bytes);
        assert_null(take(i, sizes[i]));
        for (size_t k = 0; k < sizes[i]; k++)
            if (bytes[k] != 7)
                fail_msg("byte %zu of %zu", k, sizes[i]);
        give_back(bytes, sizes[i]);
    }
    assert_int_equal(freed, 0);
    assert_false(onxi_left_drop(SIZE_MAX));
    const onxi_left *left = &onxi_process_get()->left;
    assert_int_equal(left->all + left->held, 0);
}

/* Pages that the system takes while they are lent hold zeros afterwards; here it is told to take them at once. */
static void test_base_left__what_the_system_took_is_not_found(void **state)
{
    (void)state;
    freed = 0;
    char *bytes = make(LARGE, 0);
    memset(bytes + 5 * PAGE + 100, 3, 50);
    bytes[LARGE - 1] = 4;
    if (!put(1, bytes, LARGE))
        skip(); /* nothing can be lent */
    if (onxi_process_get()->left.held) {
        assert_true(onxi_left_drop(1));
        skip(); /* there are no mappings */
    }
    assert_int_equal(madvise(bytes + 9 * PAGE, PAGE, MADV_DONTNEED), 0); /* of zeros */
    assert_ptr_equal(take(1, LARGE), bytes);
    assert_true(put(1, bytes, LARGE));
    assert_int_equal(madvise(bytes + 5 * PAGE, PAGE, MADV_DONTNEED), 0);
    assert_null(take(1, LARGE));
    assert_int_equal(freed, 1);
    assert_false(onxi_left_drop(1));
}

static void test_base_left__there_are_bounds(void **state)
{
    (void)state;
    const onxi_left *left = &onxi_process_get()->left;
    onxi_secret secret, again;
    uint64_t count = 0;
    freed = 0;
    for (;; count++) {
        char *bytes = make(SMALL, 1);
        if (!put(count, bytes, SMALL)) {
            give_back(bytes, SMALL);
            break;
        }
        assert_true(count < 300);
    }
    assert_int_equal(left->held, count * SMALL);
    assert_int_equal(freed, 0);
    assert_true(onxi_left_begin(&secret)); /* somebody asks; what he does not take makes room */
    assert_true(onxi_left_begin(&again));
    assert_memory_equal(&secret, &again, sizeof secret);
    assert_true(put(count, make(SMALL, 1), SMALL));
    assert_int_equal(freed, 1);
    assert_null(take(0, SMALL));
    onxi_memory_keep();
    char *large = make(LARGE, 1); /* what needs a mapping has as much freed before */
    assert_int_equal(freed, onxi_process_get()->left.held < count * SMALL ? 1 + LARGE / SMALL : 1);
    give_back(large, LARGE);
    char *last = take(count, SMALL);
    assert_non_null(last);
    give_back(last, SMALL);
    assert_true(onxi_left_drop(SIZE_MAX));
    assert_int_equal(freed, count);
    assert_int_equal(left->all + left->held, 0);
    assert_false(put(0, NULL, SIZE_MAX));
}

/* What is kept for its size makes room for what is kept for what is in it. */
static void test_base_left__the_bound_is_one_for_both(void **state)
{
    (void)state;
    enum { BLOCKS = 70 };
    const onxi_process *process = onxi_process_get();
    char *blocks[2][BLOCKS];
    onxi_memory_keep();
    for (int i = 0; i < BLOCKS; i++) {
        blocks[0][i] = make(LARGE, 1);
        blocks[1][i] = make(LARGE, 2);
    }
    for (int i = 0; i < BLOCKS; i++)
        give_back(blocks[0][i], LARGE);
    for (int i = 0; i < BLOCKS; i++) {
        if (!put((uint64_t)i, blocks[1][i], LARGE))
            give_back(blocks[1][i], LARGE);
        assert_true(process->kept.total + process->left.all <= ONXI_KEPT_MOST);
    }
    assert_true(process->left.all >= ONXI_KEPT_MOST / 2);
    assert_int_equal(process->kept.total, process->left.held ? 0 : ONXI_KEPT_MOST - process->left.all);
    assert_true(onxi_left_drop(SIZE_MAX));
    assert_int_equal(process->left.all, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_left__bytes_are_found_by_name),
        cmocka_unit_test(test_base_left__what_the_system_took_is_not_found),
        cmocka_unit_test(test_base_left__there_are_bounds),
        cmocka_unit_test(test_base_left__the_bound_is_one_for_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

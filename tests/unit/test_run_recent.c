/* test_run_recent.c - lists of the most recently used objects: which are kept when one is added, by number and size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/run.h"

enum { OBJECTS = 16, LEAST = 3, MOST = 8, ROOM = 100 };

static uint32_t length(const onxi_run_kept *k)
{
    uint32_t n = 0;
    for (; k; k = k->next)
        n++;
    return n;
}

/* Adds objects of a size, each unused once it is in the list. Returns how many are kept at the end. */
static uint32_t kept_of(uint64_t size)
{
    onxi_run_kept objects[OBJECTS] = { { 0 } };
    onxi_run_recent list = { 0 };
    uint32_t dropped = 0;
    for (int i = 0; i < OBJECTS; i++) {
        objects[i].size = size;
        dropped += length(onxi_run_recent_add(&list, &objects[i], LEAST, MOST, ROOM));
        assert_ptr_equal(list.first, &objects[i]);
        assert_false(onxi_run_recent_let_go(&objects[i]));
    }
    assert_int_equal(length(list.first), list.count);
    assert_int_equal(list.count + dropped, OBJECTS);
    return list.count;
}

static void test_run_recent__by_size(void **state)
{
    (void)state;
    assert_int_equal(kept_of(0), MOST);
    assert_int_equal(kept_of(ROOM / MOST), MOST);
    assert_int_equal(kept_of(ROOM / 5), 5);
    assert_int_equal(kept_of(ROOM), LEAST);
    assert_int_equal(kept_of(UINT64_MAX), LEAST);
}

/* A large object may drop several small ones; those in use are freed by their last user. */
static void test_run_recent__large_after_small(void **state)
{
    onxi_run_kept small[MOST - 1] = { { 0 } }, large = { .size = ROOM };
    onxi_run_recent list = { 0 };
    (void)state;
    for (int i = 0; i < MOST - 1; i++) {
        small[i].size = 1;
        assert_null(onxi_run_recent_add(&list, &small[i], LEAST, MOST, ROOM));
        if (i != 1)
            assert_false(onxi_run_recent_let_go(&small[i]));
    }
    onxi_run_kept *old = onxi_run_recent_add(&list, &large, LEAST, MOST, ROOM);
    assert_int_equal(list.count, LEAST);
    assert_int_equal(length(old), MOST - LEAST - 1);
    for (; old; old = old->next)
        assert_ptr_not_equal(old, &small[1]);
    assert_true(onxi_run_recent_let_go(&small[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_recent__by_size),
        cmocka_unit_test(test_run_recent__large_after_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

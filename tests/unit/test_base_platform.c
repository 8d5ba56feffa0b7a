/* Functions that depend on the system: each implementation does what its declaration says, on any system. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static int open_scratch(void)
{
    char name[] = "platform-XXXXXX";
    const int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    return fd;
}

static void test_base_platform__open_files_have_a_second_number(void **state)
{
    (void)state;
    const int fd = open_scratch(), same = onxi_platform_same_file(fd);
    assert_true(same >= 0 && same != fd);
    assert_int_equal(write(fd, "12345", 5), 5);
    assert_int_equal(lseek(same, 0, SEEK_CUR), 5); /* the position is that of the file, not of the number */
    close(same);
    char path[64];
    if (onxi_platform_path_of(fd, path, sizeof path)) {
        const int again = open(path, O_RDONLY);
        char text[5];
        assert_int_equal(read(again, text, 5), 5);
        assert_memory_equal(text, "12345", 5);
        close(again);
        assert_false(onxi_platform_path_of(fd, path, 3));
    }
    close(fd);
}

static void test_base_platform__data_is_never_taken_for_a_hole(void **state)
{
    (void)state;
    const int fd = open_scratch();
    assert_int_equal(ftruncate(fd, 8 << 20), 0);
    assert_int_equal(pwrite(fd, "x", 1, 4 << 20), 1);
    const int64_t at = onxi_platform_data_after(fd, 0);
    assert_true(at >= 0 && at <= 4 << 20);
    assert_true(onxi_platform_data_after(fd, 4 << 20) == 4 << 20);
    const int64_t behind = onxi_platform_data_after(fd, 6 << 20);
    assert_true(behind >= 6 << 20 || (behind < 0 && errno == ENXIO));
    close(fd);
}

static void test_base_platform__files_without_names_and_paths_below(void **state)
{
    (void)state;
    const int dir = open(".", onxi_platform_folder_flags());
    assert_true(dir >= 0);
    const int nameless = onxi_platform_open_nameless(dir, O_RDWR, 0600);
    if (nameless >= 0) {
        assert_int_equal(write(nameless, "1", 1), 1);
        close(nameless);
    }
    errno = 0;
    assert_int_equal(onxi_platform_open_beneath(dir, "../..", O_RDONLY | O_CLOEXEC), -1);
    assert_true(errno == EXDEV || errno == ENOSYS || errno == EPERM);
    close(dir);
}

static void test_base_platform__mappings_keep_their_contents(void **state)
{
    (void)state;
    enum { SMALL = 1 << 20, LARGE = 5 << 20 };
    char *p = mmap(NULL, SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    memset(p, 7, SMALL);
    onxi_platform_advise_huge(p, SMALL);
    onxi_platform_advise_sequential(p, SMALL);
    p = onxi_platform_remap(p, SMALL, LARGE);
    assert_non_null(p);
    assert_int_equal(p[0], 7);
    assert_int_equal(p[SMALL - 1], 7);
    assert_int_equal(p[SMALL], 0);
    onxi_platform_advise_small(p, LARGE);
    assert_int_equal(p[SMALL - 1], 7);
    munmap(p, LARGE);
}

static void test_base_platform__a_page_is_touched(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_true(onxi_platform_touch(p) < 1000000000u);
    assert_int_equal(p[0], 0);
    p[0] = 7;
    (void)onxi_platform_touch(p);
    assert_int_equal(p[0], 0);
    munmap(p, SIZE);
}

static void test_base_platform__random_numbers_and_processors(void **state)
{
    (void)state;
    uint64_t a[4] = { 0 }, b[4] = { 0 };
    assert_true(onxi_platform_random(a, sizeof a, true));
    assert_true(onxi_platform_random(b, sizeof b, true));
    assert_true(memcmp(a, b, sizeof a) != 0);
    assert_true(onxi_platform_processors() >= 1);
}

static void test_base_platform__libraries_that_are_missing_say_why(void **state)
{
    (void)state;
    assert_null(onxi_platform_library_open("./libnothing.so.77", true));
    assert_true(strlen(onxi_platform_library_error()) > 0);
}

static void test_base_platform__memory_beyond_addresses_is_refused(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    assert_null(onxi_arena_array(arena, UINT64_MAX / 2, 8));
    assert_null(onxi_arena_get(arena, UINT64_MAX - 3));
    size_t product;
    assert_false(onxi_mul_size((uint64_t)1 << 40, (uint64_t)1 << 40, &product));
    assert_true(onx_diag_count(cx) > 0);
    onx_arena_free(arena);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_platform__open_files_have_a_second_number),
        cmocka_unit_test(test_base_platform__data_is_never_taken_for_a_hole),
        cmocka_unit_test(test_base_platform__files_without_names_and_paths_below),
        cmocka_unit_test(test_base_platform__mappings_keep_their_contents),
        cmocka_unit_test(test_base_platform__a_page_is_touched),
        cmocka_unit_test(test_base_platform__random_numbers_and_processors),
        cmocka_unit_test(test_base_platform__libraries_that_are_missing_say_why),
        cmocka_unit_test(test_base_platform__memory_beyond_addresses_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

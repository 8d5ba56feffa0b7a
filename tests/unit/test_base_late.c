/* Files whose bytes are read on demand: which bytes are loaded, and what happens if some cannot be read. */
#include "base/base_late.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/file_fixture.h"

enum { BLOCK = 1 << 16, SIZE = 3 * BLOCK + 1000 };

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 31 + i / 251);
}

static int make_file(fixture *f, onxi_file *out)
{
    unsigned char *bytes = malloc(SIZE);
    assert_non_null(bytes);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = byte_at(i);
    const int fd = open(at(f, "w"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, bytes, SIZE), SIZE);
    free(bytes);
    assert_int_equal(onxi_late_open(f->cx, fd, SIZE, "w", out), ONX_OK);
    return fd;
}

static void expect_bytes(const char *from, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal((unsigned char)from[i], byte_at(first + i));
}

static void test_base_late__what_is_needed_is_read(void **state)
{
    fixture *f = *state;
    onxi_file file;
    close(make_file(f, &file)); /* it has a descriptor of its own */
    assert_int_equal(file.bytes.len, SIZE);
    const struct {
        size_t at, size;
    } spans[] = { { 2 * BLOCK - 1, 2 }, { 5, 0 }, { 0, 1 }, { SIZE - 1, 1 }, { 0, SIZE }, { BLOCK, BLOCK } };
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        const onx_str bytes = onx_str_make(file.bytes.ptr + spans[i].at, spans[i].size);
        assert_int_equal(onxi_file_need(f->cx, ONXI_NOWHERE, &file, bytes), ONX_OK);
        expect_bytes(bytes.ptr, spans[i].at, spans[i].size);
    }
    onxi_file_close(f->cx, &file);
    assert_null(file.late);
}

static void test_base_late__copies_need_nothing(void **state)
{
    fixture *f = *state;
    onxi_file file;
    char some[1000];
    const int fd = make_file(f, &file);
    onxi_file_copy(&file, file.bytes.ptr + BLOCK - 500, sizeof some, some);
    expect_bytes(some, BLOCK - 500, sizeof some);
    /* What is there is not read again, and what is not comes from the file as it is now. */
    const onx_str first = onx_str_make(file.bytes.ptr, 1), rest = onx_str_make(file.bytes.ptr, SIZE);
    assert_int_equal(onxi_file_need(f->cx, ONXI_NOWHERE, &file, first), ONX_OK);
    assert_int_equal(pwrite(fd, "\xff", 1, 0), 1);
    assert_int_equal(pwrite(fd, "\xff", 1, BLOCK), 1);
    assert_int_equal(onxi_file_need(f->cx, ONXI_NOWHERE, &file, rest), ONX_OK);
    assert_int_equal((unsigned char)file.bytes.ptr[0], byte_at(0));
    assert_int_equal((unsigned char)file.bytes.ptr[BLOCK], 0xff);
    assert_null(onxi_file_broken(&file));
    close(fd);
    onxi_file_close(f->cx, &file);
}

static void test_base_late__a_file_that_shrinks(void **state)
{
    fixture *f = *state;
    onxi_file file;
    char some[100], text[512];
    memset(some, 1, sizeof some);
    const int fd = make_file(f, &file);
    assert_int_equal(ftruncate(fd, BLOCK + 10), 0);
    assert_int_equal(onxi_file_need(f->cx, ONXI_NOWHERE, &file, onx_str_make(file.bytes.ptr, BLOCK)), ONX_OK);
    assert_int_equal(onxi_file_need(f->cx, ONXI_NOWHERE, &file, file.bytes), ONX_E_IO);
    onx_diag_format(onx_diag_get(f->cx, 0), text, sizeof text);
    assert_non_null(strstr(text, "bytes of w cannot be read from offset 65536"));
    onxi_file_copy(&file, file.bytes.ptr, sizeof some, some);
    expect_bytes(some, 0, sizeof some);
    assert_null(onxi_file_broken(&file));
    onxi_file_copy(&file, file.bytes.ptr + BLOCK, sizeof some, some);
    for (size_t i = 0; i < sizeof some; i++)
        assert_int_equal(some[i], 0);
    assert_string_equal(onxi_file_broken(&file), "w");
    close(fd);
    onxi_file_close(f->cx, &file);
}

static void test_base_late__no_more_than_the_limit(void **state)
{
    fixture *f = *state;
    onxi_file file;
    onx_limits limits = onx_ctx_limits(f->cx);
    const int fd = open("/dev/null", O_RDONLY);
    limits.memory = 1 << 20;
    onx_ctx_set_limits(f->cx, limits);
    assert_int_equal(onxi_late_open(f->cx, fd, UINT64_C(1) << 40, "w", &file), ONX_E_LIMIT);
    assert_null(file.heap);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_base_late__what_is_needed_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_base_late__copies_need_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_base_late__a_file_that_shrinks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_base_late__no_more_than_the_limit, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

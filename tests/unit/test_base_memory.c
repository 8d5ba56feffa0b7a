/* Memory of contexts without an allocator of their own: contents survive every change of size, small or mapped; blocks
 * of freed arenas are used again. */
#include "base/base_ctx.h"
#include "base/base_process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* AddressSanitizer, where it is on: requests that cannot be met return NULL as elsewhere. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 131 + (i >> 12));
}

static void expect_pattern(const unsigned char *p, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (p[i] != pattern(i))
            fail_msg("byte %zu of %zu is lost", i, size);
}

static void test_base_memory__contents_survive(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0,   1,       4096,      (2 << 20) - 1, 2 << 20,       (2 << 20) + 1,
                                    100, 5 << 20, (3 << 20), (9 << 20),     (2 << 20) - 1, 7 << 20,
                                    8,   0 };
    onx_ctx *cx = onx_ctx_new(NULL);
    unsigned char *p = NULL;
    for (size_t i = 1; i < sizeof sizes / sizeof *sizes; i++) {
        size_t old = sizes[i - 1], now = sizes[i];
        p = onxi_resize(cx, p, old, now);
        if (!now)
            break;
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        expect_pattern(p, old < now ? old : now);
        for (size_t b = 0; b < now; b++)
            p[b] = pattern(b);
    }
    assert_null(p);
    onx_ctx_free(cx);
}

static void test_base_memory__too_much_is_an_error(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    char *small = onxi_resize(cx, NULL, 0, 10), *large = onxi_resize(cx, NULL, 0, 3 << 20);
    assert_non_null(small);
    assert_non_null(large);
    small[9] = large[(3 << 20) - 1] = 'x';
    assert_null(onxi_resize(cx, NULL, 0, SIZE_MAX / 4));
    assert_null(onxi_resize(cx, small, 10, SIZE_MAX / 4));
    assert_null(onxi_resize(cx, large, 3 << 20, SIZE_MAX / 4));
    assert_int_equal(small[9], 'x');
    assert_int_equal(large[(3 << 20) - 1], 'x');
    onxi_release(cx, small, 10);
    onxi_release(cx, large, 3 << 20);
    onx_ctx_free(cx);
}

/* An allocator that counts how often new memory is asked for. */
static void *counting(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (!new_size) {
        free(ptr);
        return NULL;
    }
    *(unsigned *)user += !ptr;
    return realloc(ptr, new_size);
}

static void test_base_memory__blocks_are_used_again(void **state)
{
    (void)state;
    unsigned asked = 0;
    onx_allocator allocator = { counting, &asked };
    onx_ctx *cx = onx_ctx_new(&allocator);
    unsigned before = 0;
    for (int round = 0; round < 3; round++) {
        onx_arena *arena;
        assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
        for (int i = 0; i < 20000; i++)
            assert_non_null(onx_arena_alloc(arena, 1000));
        onx_arena_free(arena);
        if (round > 0)
            assert_int_equal(asked, before + 1); /* the arena itself */
        before = asked;
    }
    onx_ctx_free(cx);
}

/* However little is left at the limit, the message is whole. */
static void test_base_memory__the_limit_is_said(void **state)
{
    (void)state;
    for (uint64_t limit = 1 << 20; limit < (1 << 20) + 16384; limit += 512) {
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_limits limits = onx_ctx_limits(cx);
        limits.memory = limit;
        onx_ctx_set_limits(cx, limits);
        onx_arena *arena;
        assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
        while (onx_arena_alloc(arena, 256))
            ;
        while (onx_arena_alloc(arena, 4000))
            ;
        assert_true(onx_diag_count(cx) > 0);
        for (size_t i = 0; i < onx_diag_count(cx); i++)
            assert_non_null(onx_diag_get(cx, i)->message.ptr);
        onx_arena_free(arena);
        onx_ctx_free(cx);
    }
}

/* What a session gives back is there for the next one: as much as the bound says, and less where others need more. */
static void test_base_memory__large_blocks_are_kept(void **state)
{
    (void)state;
    enum { SIZE = 4 << 20, BLOCKS = 100, LARGE = 16 << 20 };
    const onxi_kept *kept = &onxi_process_get()->kept;
    onx_ctx *cx = onx_ctx_new(NULL);
    char *blocks[BLOCKS], *first = onxi_resize(cx, NULL, 0, SIZE);
    assert_non_null(first);
    onxi_release(cx, first, SIZE);
    assert_int_equal(kept->count, 0);
    onxi_memory_keep();
    assert_non_null(first = onxi_resize(cx, NULL, 0, SIZE));
    onxi_release(cx, first, SIZE);
    if (!kept->count) {
        onx_ctx_free(cx);
        skip(); /* mappings are not to be had, or cannot be lent */
    }
    assert_int_equal(kept->total, SIZE);
    char *again = onxi_resize(cx, NULL, 0, SIZE - 1000); /* as many pages */
    assert_ptr_equal(again, first);
    memset(again, 1, SIZE - 1000);
    assert_int_equal(kept->count + kept->total, 0);
    onxi_release(cx, again, SIZE - 1000);
    for (int i = 0; i < BLOCKS; i++)
        assert_non_null(blocks[i] = onxi_resize(cx, NULL, 0, SIZE));
    assert_int_equal(kept->count, 0);
    for (int i = 0; i < BLOCKS; i++)
        onxi_release(cx, blocks[i], SIZE);
    assert_int_equal(kept->count, ONXI_KEPT_BLOCKS);
    assert_int_equal(kept->total, (size_t)ONXI_KEPT_BLOCKS * SIZE);
    assert_true(kept->total <= 256u << 20);
    char *large = onxi_resize(cx, NULL, 0, LARGE);
    assert_non_null(large);
    assert_int_equal(kept->total, (size_t)ONXI_KEPT_BLOCKS * SIZE - LARGE);
    onxi_release(cx, large, LARGE);
    for (int i = 0; i < 2; i++) { /* more than the bound at once is not kept, and what is kept goes */
        char *most = onxi_resize(cx, NULL, 0, (size_t)300 << 20);
        assert_non_null(most);
        onxi_release(cx, most, (size_t)300 << 20);
        assert_int_equal(kept->count + kept->total, 0);
    }
    onx_ctx_free(cx);
}

/* Where huge pages are slow to have, mappings are as good with small ones, and for no more bytes than are said. */
static void test_base_memory__pages_may_be_small(void **state)
{
    (void)state;
    enum { SIZE = 5 << 20 };
    atomic_size_t *small = &onxi_process_get()->small_pages;
    onx_ctx *cx = onx_ctx_new(NULL);
    assert_non_null(cx);
    atomic_store(small, SIZE + 1);
    for (size_t i = 0; i < 3; i++) {
        unsigned char *p = onxi_resize(cx, NULL, 0, SIZE);
        assert_non_null(p);
        for (size_t k = 0; k < SIZE; k++)
            p[k] = pattern(k);
        assert_non_null(p = onxi_resize(cx, p, SIZE, 3 * SIZE));
        expect_pattern(p, SIZE);
        onxi_release(cx, p, 3 * SIZE);
        if (onxi_platform_has_mappings() && i == 0)
            assert_true(atomic_load(small) <= SIZE);
    }
    atomic_store(small, 0);
    onx_ctx_free(cx);
}

/* An allocator that puts each block directly behind the one before; user: a `row`. */
typedef struct row {
    char bytes[1 << 16];
    size_t used;
} row;

static void *put_beside(void *user, void *ptr, size_t old_size, size_t new_size)
{
    row *r = user;
    if (!new_size || new_size > sizeof r->bytes)
        return NULL;
    const size_t whole = (new_size + 15) & ~(size_t)15;
    if (whole > sizeof r->bytes - r->used)
        return NULL;
    char *out = r->bytes + r->used;
    r->used += whole;
    if (ptr)
        memcpy(out, ptr, old_size < new_size ? old_size : new_size);
    return out;
}

/* What a run writes to lies in these: no line holds any of it and of a block that came before or after. */
static void expect_apart(const row *r, const void *block, size_t from, size_t size)
{
    size_t at = (size_t)((const char *)block - r->bytes);
    assert_true(at >= from + ONXI_APART_BYTES);
    assert_true(r->used >= at + size + ONXI_APART_BYTES);
}

static void test_base_memory__no_line_is_shared(void **state)
{
    (void)state;
    static row r;
    r.used = 0;
    const onx_allocator beside = { put_beside, &r };
    onx_ctx *cx = onx_ctx_new(&beside);
    assert_non_null(cx);
    expect_apart(&r, cx, 0, sizeof(onx_ctx));
    size_t from = r.used;
    void *block = onxi_apart_new(cx, 100);
    assert_non_null(block);
    expect_apart(&r, block, from, 100);
    memset(block, 1, 100);
    from = r.used;
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    expect_apart(&r, arena, from, sizeof *arena);
    assert_null(onxi_apart_new(cx, sizeof r.bytes));
    assert_null(onxi_apart_new(cx, UINT64_MAX - 1));
    onx_arena_free(arena);
    onxi_apart_free(cx, block, 100);
    onxi_apart_free(cx, NULL, 100);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_memory__contents_survive),
        cmocka_unit_test(test_base_memory__too_much_is_an_error),
        cmocka_unit_test(test_base_memory__blocks_are_used_again),
        cmocka_unit_test(test_base_memory__the_limit_is_said),
        cmocka_unit_test(test_base_memory__large_blocks_are_kept),
        cmocka_unit_test(test_base_memory__pages_may_be_small),
        cmocka_unit_test(test_base_memory__no_line_is_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

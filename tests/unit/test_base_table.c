/* The hash table: added entries are found, whatever the hashes are; names constructed to collide do not collide;
 * nothing leaks when an allocation fails. */
#include "base/base_ctx.h"
#include "unit/scarce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/context.h"

static void test_base_table__finds_what_was_added(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    onxi_table tables[2] = { onxi_table_on_heap(cx), onxi_table_in_arena(arena) };
    for (int t = 0; t < 2; t++) {
        onxi_table *table = &tables[t];
        for (uint32_t i = 0; i < COUNT; i++)
            assert_true(onxi_table_add(table, onxi_table_hash_word(table, i), i));
        for (uint32_t i = 0; i < 2 * COUNT; i++) {
            uint32_t hash = onxi_table_hash_word(table, i);
            bool there = false;
            ONXI_TABLE_EACH (table, hash, k)
                there |= k == i;
            assert_int_equal(there, i < COUNT);
        }
        onxi_table_clear(table);
        ONXI_TABLE_EACH (table, onxi_table_hash_word(table, 1), k)
            fail_msg("entry %u is left", k);
        onxi_table_free(table);
    }
    onx_arena_free(arena);
}

/* Equal hashes are told apart by whoever compares: each is met exactly once. */
static void test_base_table__equal_hashes(void **state)
{
    (void)state;
    onxi_table table = onxi_table_on_heap(cx);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < 30; i++)
        assert_true(onxi_table_add(&table, i % 2 ? UINT32_MAX : 0, i)); /* at both ends, and round the end */
    ONXI_TABLE_EACH (&table, UINT32_MAX, k)
        seen |= UINT32_C(1) << k;
    assert_int_equal(seen, 0x2aaaaaaa);
    onxi_table_free(&table);
}

static void test_base_table__empty(void **state)
{
    (void)state;
    onxi_table nothing = { 0 };
    onxi_dict dict = { 0 };
    onxi_map map = { 0 };
    onxi_table_prefetch(&nothing, 7);
    ONXI_TABLE_EACH (&nothing, 7, k)
        fail_msg("entry %u in an empty table", k);
    assert_null(onxi_dict_find(&dict, onx_str_of("a")));
    assert_null(onxi_map_find(&map, 1));
}

static void test_base_table__dict(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static char texts[COUNT][8];
    onxi_dict dict = onxi_dict_on_heap(cx);
    bool made;
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(texts[i], sizeof texts[i], "n%u", i);
        assert_non_null(onxi_dict_at(&dict, onx_str_of(texts[i]), i, &made));
        assert_true(made);
    }
    assert_int_equal(onxi_dict_at(&dict, onx_str_of("n7"), 1, &made)->value, 7);
    assert_false(made);
    assert_int_equal(dict.count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(onxi_dict_find(&dict, onx_str_of(texts[i]))->value, i);
        assert_int_equal(dict.entries[i].value, i); /* in the order of adding */
    }
    assert_null(onxi_dict_find(&dict, onx_str_of("n5000")));
    assert_null(onxi_dict_find(&dict, onx_str_of("")));
    onxi_dict_free(&dict);
}

static void test_base_table__map(void **state)
{
    (void)state;
    static int values[3000];
    onxi_map map = onxi_map_on_heap(cx);
    for (uint64_t i = 0; i < 3000; i++)
        *onxi_map_at(&map, i << 40) = &values[i];
    for (uint64_t i = 0; i < 3000; i++)
        assert_ptr_equal(onxi_map_find(&map, i << 40), &values[i]);
    assert_null(onxi_map_find(&map, 1));
    assert_ptr_equal(*onxi_map_at(&map, 0), &values[0]);
    onxi_map_free(&map);
}

/* Texts that lose what tells them apart, were one of the constants of the hash the whole of a factor. */
static size_t worst_pile(onx_ctx *of, const uint64_t *words, size_t before, size_t after)
{
    enum { COUNT = 4096, PLACES = 8192 };
    static uint16_t piles[PLACES];
    onxi_table table = onxi_table_on_heap(of);
    size_t worst = 0;
    memset(piles, 0, sizeof piles);
    for (uint32_t i = 0; i < COUNT; i++) {
        char text[64];
        size_t len = 0;
        uint64_t digits = i * UINT64_C(0x0101010101010101);
        for (size_t k = 0; k < before; k++, len += 8)
            memcpy(text + len, &words[k], 8);
        memcpy(text + len, &digits, 8);
        memcpy(text + len + 6, &i, 2);
        len += 8;
        for (size_t k = 0; k < after; k++, len += 8)
            memcpy(text + len, &words[k], 8);
        size_t at = onxi_table_hash(&table, onx_str_make(text, len)) % PLACES;
        piles[at]++;
        worst = piles[at] > worst ? piles[at] : worst;
    }
    return worst;
}

static void test_base_table__nobody_steers_it(void **state)
{
    (void)state;
    static const uint64_t constants[] = { 0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu, 0x9e3779b97f4a7c15u,
                                          0xd6e8feb86659fd93u, 0 };
    for (size_t c = 0; c < sizeof constants / sizeof *constants; c++) {
        const uint64_t words[2] = { constants[c], constants[c] };
        for (size_t before = 0; before < 3; before++)
            for (size_t after = 0; after < 3; after++) {
                size_t worst = worst_pile(cx, words, before, after);
                if (worst > 16)
                    fail_msg("%zu of 4096 texts fall on one of 8192 places (constant %zu, %zu before, %zu after)",
                             worst, c, before, after);
            }
    }
}

static void test_base_table__secret_per_context(void **state)
{
    (void)state;
    onx_ctx *other = onx_ctx_new(NULL), *worker = onxi_ctx_worker(cx);
    assert_non_null(other);
    assert_non_null(worker);
    onxi_secret a = onxi_ctx_secret(cx), b = onxi_ctx_secret(other), c = onxi_ctx_secret(worker);
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_memory_equal(&a, &c, sizeof a); /* tables of one are looked into by the other */
    onx_ctx_free(other);
    onx_ctx_free(worker);
}

static void fill(onx_ctx *scarce)
{
    onxi_dict dict = onxi_dict_on_heap(scarce);
    onxi_map map = onxi_map_on_heap(scarce);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    bool ok = true;
    for (uint32_t i = 0; ok && i < 2500; i++)
        ok = onxi_dict_at(&dict, onx_str_make(letters + i % 26, 1 + i / 26 % 20), i, NULL) && onxi_map_at(&map, i);
    for (uint32_t i = 0; i < dict.count; i++) /* what is there stays found */
        assert_ptr_equal(onxi_dict_find(&dict, dict.entries[i].key), &dict.entries[i]);
    assert_int_equal(ok, onx_diag_count(scarce) == 0);
    onxi_dict_free(&dict);
    onxi_map_free(&map);
}

static void test_base_table__out_of_memory(void **state)
{
    (void)state;
    for (unsigned n = 1;; n++) {
        scarce_memory memory = { .failing = n };
        onx_ctx *scarce = onx_ctx_new(&(onx_allocator){ scarce_resize, &memory });
        if (scarce)
            fill(scarce);
        onx_ctx_free(scarce);
        assert_int_equal(memory.in_use, 0);
        if (memory.calls < n)
            break;
    }
}

static void test_base_table__arrays_grow(void **state)
{
    (void)state;
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    double *list = NULL, *there = NULL;
    uint32_t room = 0;
    size_t wide = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(ONXI_GROW(cx, list, room, i + 1));
        assert_true(ONXI_GROW_IN(arena, there, wide, i + 1));
        list[i] = there[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(list[i] == i && there[i] == i);
    assert_int_equal(room, 1024);
    assert_int_equal(wide, 1024);
    /* more than the counter, the address space or the memory limit holds: refused, and nothing has changed */
    const uint64_t all = UINT64_MAX, least = UINT64_C(1) << 32;
    assert_false(ONXI_GROW(cx, list, room, least));
    assert_false(ONXI_GROW(cx, list, room, all));
    assert_false(ONXI_GROW_IN(arena, there, wide, all));
    assert_false(ONXI_GROW_IN(arena, there, wide, all / 8));
    assert_int_equal(room, 1024);
    assert_true(list[999] == 999 && there[999] == 999);
    assert_int_equal(onx_diag_count(cx), 4);
    onx_diag_clear(cx);
    onxi_release(cx, list, room * sizeof *list);
    onx_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_table__finds_what_was_added),
        cmocka_unit_test(test_base_table__equal_hashes),
        cmocka_unit_test(test_base_table__empty),
        cmocka_unit_test(test_base_table__dict),
        cmocka_unit_test(test_base_table__map),
        cmocka_unit_test(test_base_table__nobody_steers_it),
        cmocka_unit_test(test_base_table__secret_per_context),
        cmocka_unit_test(test_base_table__out_of_memory),
        cmocka_unit_test(test_base_table__arrays_grow),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

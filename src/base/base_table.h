/* base_table.h - the one hash table, keyed with a secret of the context, and what is made of it: texts and numbers as
 * keys. Included by base.h. See docs/notes/hashing.md. */
#ifndef ONXI_BASE_TABLE_H
#define ONXI_BASE_TABLE_H

#include <onx/base.h>

/* ---- hashing ---- */

/* Made when a context is made; one who does not know it cannot choose names that fall on one place. */
typedef struct onxi_secret {
    uint64_t a, b;
} onxi_secret;

onxi_secret onxi_ctx_secret(const onx_ctx *cx);
/* 64 well mixed bits. They differ from run to run: for tables in memory, never for output or files. */
uint64_t onxi_hash(onxi_secret secret, const void *bytes, size_t len);

/* Multiply and fold: the two halves of a 128-bit product. */
static inline uint64_t onxi_hash_fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
static inline uint64_t onxi_hash_word(onxi_secret secret, uint64_t word)
{
    return onxi_hash_fold(word ^ secret.a, secret.b | 1);
}
/* What the next part of a key of several parts is hashed with. */
static inline onxi_secret onxi_hash_then(onxi_secret secret, uint64_t hash)
{
    return (onxi_secret){ secret.a ^ hash, secret.b };
}

/* 128 bits of many bytes, at the speed of memory. With a secret that stays the same they may go to files. */
typedef struct onxi_digest {
    uint64_t a, b;
} onxi_digest;
onxi_digest onxi_digest_of(onxi_secret secret, const void *bytes, size_t len);

/* ---- the table: from a hash to indexes ---- */

#define ONXI_NO_ENTRY UINT32_MAX

/* Entries stay with the user, in an array; the table knows their indexes, and only the user can compare keys. What is
 * found or printed never follows the order of the slots. All zero is an empty table to look into, not to add to. */
typedef struct onxi_table {
    uint64_t *slots; /* hash << 32 | index + 1, 0: free; linear probing from the low bits of the hash on */
    uint32_t mask;   /* slots - 1 */
    uint32_t count, limit;
    onxi_secret secret;
    onx_ctx *cx;
    onx_arena *arena; /* where the slots are; NULL: on the heap of cx */
} onxi_table;

/* Nothing is allocated yet. The slots of the first kind are freed by onxi_table_free, those of the second kind with the
 * arena, which also keeps the slots that a table outgrows (as much again in all). */
onxi_table onxi_table_on_heap(onx_ctx *cx);
onxi_table onxi_table_in_arena(onx_arena *arena);
/* Leaves an empty table. */
void onxi_table_free(onxi_table *table);
/* Forgets all entries and keeps the slots. */
void onxi_table_clear(onxi_table *table);
/* Makes room for `count` entries in all; false, recorded, when there is no memory or they are more than 2^30. */
bool onxi_table_reserve(onxi_table *table, uint64_t count);

static inline uint32_t onxi_table_hash(const onxi_table *table, onx_str key)
{
    return (uint32_t)onxi_hash(table->secret, key.ptr, key.len);
}
static inline uint32_t onxi_table_hash_word(const onxi_table *table, uint64_t key)
{
    return (uint32_t)onxi_hash_word(table->secret, key);
}
/* Of a key of three texts, such as name, domain and overload; the latter two are empty as a rule. */
uint32_t onxi_table_hash_texts(const onxi_table *table, onx_str a, onx_str b, onx_str c);

static inline void onxi_table_prefetch(const onxi_table *table, uint32_t hash)
{
    if (table->slots)
        __builtin_prefetch(&table->slots[hash & table->mask]);
}

/* The first entry from slot *at on whose hash that is, and where it is; ONXI_NO_ENTRY at a free slot. */
static inline uint32_t onxi_table_seek(const onxi_table *table, uint32_t hash, uint32_t *at)
{
    if (!table->slots)
        return ONXI_NO_ENTRY;
    for (uint64_t slot; (slot = table->slots[*at & table->mask]) != 0; ++*at)
        if (slot >> 32 == hash)
            return (uint32_t)slot - 1;
    return ONXI_NO_ENTRY;
}

/* A loop over the entries whose hash that is, mostly none or the one that is looked for: `i` is the index. */
#define ONXI_TABLE_EACH(table, hash, i)                                                                                \
    for (uint32_t i##_at = (hash), i; (i = onxi_table_seek((table), (hash), &i##_at)) != ONXI_NO_ENTRY; i##_at++)

/* Adds an index at the slot where onxi_table_seek ended, in a table that has room reserved. */
static inline void onxi_table_place(onxi_table *table, uint32_t hash, uint32_t at, uint32_t index)
{
    table->slots[at & table->mask] = (uint64_t)hash << 32 | (uint64_t)(index + 1);
    table->count++;
}

/* Adds an index; false, recorded, when out of memory. An index past 2^32 - 2 is a mistake of the caller. */
static inline bool onxi_table_add(onxi_table *table, uint32_t hash, uint32_t index)
{
    if (table->count >= table->limit && !onxi_table_reserve(table, (uint64_t)table->count + 1))
        return false;
    uint32_t at = hash;
    while (table->slots[at & table->mask])
        at++;
    onxi_table_place(table, hash, at, index);
    return true;
}

/* ---- texts as keys ---- */

typedef struct onxi_dict_entry {
    onx_str key; /* where the caller has it */
    uint32_t value;
} onxi_dict_entry;

/* The entries are in the order in which they were added. */
typedef struct onxi_dict {
    onxi_table table;
    onxi_dict_entry *entries;
    uint32_t count, room;
} onxi_dict;

onxi_dict onxi_dict_on_heap(onx_ctx *cx);
onxi_dict onxi_dict_in_arena(onx_arena *arena);
void onxi_dict_free(onxi_dict *dict);
/* Makes room for `count` entries in all, in one piece; false, recorded, when there is none. */
bool onxi_dict_reserve(onxi_dict *dict, uint64_t count);
/* NULL when the key is not there. */
onxi_dict_entry *onxi_dict_find(const onxi_dict *dict, onx_str key);
/* The entry of the key, made with that value where there is none, and then *made_out (may be NULL) is true. NULL,
 * recorded, when out of memory. It stays where it is until the next one is made. */
onxi_dict_entry *onxi_dict_at(onxi_dict *dict, onx_str key, uint32_t value, bool *made_out);

/* ---- numbers as keys ---- */

typedef struct onxi_map_entry {
    uint64_t key;
    void *value;
} onxi_map_entry;

typedef struct onxi_map {
    onxi_table table;
    onxi_map_entry *entries;
    uint32_t count, room;
} onxi_map;

onxi_map onxi_map_on_heap(onx_ctx *cx);
onxi_map onxi_map_in_arena(onx_arena *arena);
void onxi_map_free(onxi_map *map);
/* NULL when the key is not there. */
void *onxi_map_find(const onxi_map *map, uint64_t key);
/* Where the value of the key is, made as NULL where there is none. NULL, recorded, when out of memory. It stays where
 * it is until the next one is made. */
void **onxi_map_at(onxi_map *map, uint64_t key);

#endif

/* base_table.h - the one hash table, keyed with a secret of the context, and maps built on it with strings and integers
 * as keys. Included by base.h. See docs/notes/hashing.md. */
#ifndef ONXI_BASE_TABLE_H
#define ONXI_BASE_TABLE_H

#include <onx/base.h>

/* ---- hashing ---- */

/* Created with a context. Whoever does not know it cannot choose names that collide. */
typedef struct onxi_secret {
    uint64_t a, b;
} onxi_secret;

onxi_secret onxi_ctx_secret(const onx_ctx *cx);
/* 64 well-mixed bits. They differ between runs: use them for tables in memory, never for output or files. */
uint64_t onxi_hash(onxi_secret secret, const void *bytes, size_t len);

/* Multiply and fold: the exclusive or of the two halves of a 128-bit product. */
static inline uint64_t onxi_hash_fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
static inline uint64_t onxi_hash_word(onxi_secret secret, uint64_t word)
{
    return onxi_hash_fold(word ^ secret.a, secret.b | 1);
}
/* The secret for hashing the next part of a key that consists of several parts. */
static inline onxi_secret onxi_hash_then(onxi_secret secret, uint64_t hash)
{
    return (onxi_secret){ secret.a ^ hash, secret.b };
}

/* A 128-bit digest of many bytes, at memory speed. It may be stored in files if the secret stays the same. */
typedef struct onxi_digest {
    uint64_t a, b;
} onxi_digest;
onxi_digest onxi_digest_of(onxi_secret secret, const void *bytes, size_t len);

/* ---- the table: from a hash to indexes ---- */

#define ONXI_NO_ENTRY UINT32_MAX

/* Entries stay with the user, in an array; the table stores their indexes, and only the user can compare keys. Results
 * and output never depend on the order of the slots. A zeroed struct is an empty table for lookups, but not for
 * insertions. */
typedef struct onxi_table {
    uint64_t *slots; /* hash << 32 | index + 1, 0: free; linear probing from the low bits of the hash on */
    uint32_t mask;   /* slots - 1 */
    uint32_t count, limit;
    onxi_secret secret;
    onx_ctx *cx;
    onx_arena *arena; /* where the slots are; NULL: on the heap of cx */
} onxi_table;

/* Initialises a table without allocating. Slots on the heap are freed by onxi_table_free; slots in an arena are freed
 * with it, together with the smaller slot arrays that a growing table leaves behind (in total as much again). */
onxi_table onxi_table_on_heap(onx_ctx *cx);
onxi_table onxi_table_in_arena(onx_arena *arena);
/* Frees the slots and leaves an empty table. */
void onxi_table_free(onxi_table *table);
/* Removes all entries and keeps the slots. */
void onxi_table_clear(onxi_table *table);
/* Reserves room for `count` entries in all; false, with a diagnostic, when out of memory or above 2^30 entries. */
bool onxi_table_reserve(onxi_table *table, uint64_t count);

static inline uint32_t onxi_table_hash(const onxi_table *table, onx_str key)
{
    return (uint32_t)onxi_hash(table->secret, key.ptr, key.len);
}
static inline uint32_t onxi_table_hash_word(const onxi_table *table, uint64_t key)
{
    return (uint32_t)onxi_hash_word(table->secret, key);
}
/* The hash of a key of three strings, such as name, domain and overload; the last two are usually empty. */
uint32_t onxi_table_hash_texts(const onxi_table *table, onx_str a, onx_str b, onx_str c);

static inline void onxi_table_prefetch(const onxi_table *table, uint32_t hash)
{
    if (table->slots)
        __builtin_prefetch(&table->slots[hash & table->mask]);
}

/* The first entry with that hash from slot *at on; *at becomes its slot. ONXI_NO_ENTRY at a free slot. */
static inline uint32_t onxi_table_seek(const onxi_table *table, uint32_t hash, uint32_t *at)
{
    if (!table->slots)
        return ONXI_NO_ENTRY;
    for (uint64_t slot; (slot = table->slots[*at & table->mask]) != 0; ++*at)
        if (slot >> 32 == hash)
            return (uint32_t)slot - 1;
    return ONXI_NO_ENTRY;
}

/* Loops over the entries with that hash, usually none or the one that is searched for; `i` is the index. */
#define ONXI_TABLE_EACH(table, hash, i)                                                                                \
    for (uint32_t i##_at = (hash), i; (i = onxi_table_seek((table), (hash), &i##_at)) != ONXI_NO_ENTRY; i##_at++)

/* Inserts an index at the slot where onxi_table_seek ended; room must have been reserved. */
static inline void onxi_table_place(onxi_table *table, uint32_t hash, uint32_t at, uint32_t index)
{
    table->slots[at & table->mask] = (uint64_t)hash << 32 | (uint64_t)(index + 1);
    table->count++;
}

/* Inserts an index; false, with a diagnostic, when out of memory. An index above 2^32 - 2 is a programming error. */
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

/* ---- strings as keys ---- */

typedef struct onxi_dict_entry {
    onx_str key; /* borrowed from the caller */
    uint32_t value;
} onxi_dict_entry;

/* Entries are in insertion order. */
typedef struct onxi_dict {
    onxi_table table;
    onxi_dict_entry *entries;
    uint32_t count, room;
} onxi_dict;

onxi_dict onxi_dict_on_heap(onx_ctx *cx);
onxi_dict onxi_dict_in_arena(onx_arena *arena);
void onxi_dict_free(onxi_dict *dict);
/* Reserves room for `count` entries in all, in one block; false, with a diagnostic, when out of memory. */
bool onxi_dict_reserve(onxi_dict *dict, uint64_t count);
/* The entry of the key, NULL if there is none. */
onxi_dict_entry *onxi_dict_find(const onxi_dict *dict, onx_str key);
/* The entry of the key. If there is none, one is created with that value, and *made_out (may be NULL) becomes true.
 * NULL, with a diagnostic, when out of memory. The pointer is valid until the next entry is created. */
onxi_dict_entry *onxi_dict_at(onxi_dict *dict, onx_str key, uint32_t value, bool *made_out);

/* ---- integers as keys ---- */

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
/* The value of the key, NULL if there is none. */
void *onxi_map_find(const onxi_map *map, uint64_t key);
/* The address of the value of the key; a new value is NULL. Returns NULL, with a diagnostic, when out of memory. The
 * pointer is valid until the next entry is created. */
void **onxi_map_at(onxi_map *map, uint64_t key);

#endif

/* cli_table.h - a hash table for names from files: maps a hash, keyed with the context's secret, to indexes into an
 * array of the caller. Output never depends on its order. */
#ifndef ONX_CLI_TABLE_H
#define ONX_CLI_TABLE_H

#include <onx/base.h>

#include <stdlib.h>
#include <string.h>

/* Makes room for one more element in a list of `count`, whose capacity doubles; false when out of memory. */
#define CLI_GROW(list, count, room) ((count) < (room) || cli_grow(&(list), sizeof *(list), &(room)))
static inline bool cli_grow(void *list, size_t size, uint32_t *room)
{
    void *old, *more;
    memcpy(&old, list, sizeof old);
    const uint32_t wanted = *room ? *room * 2 : 64;
    if (wanted < *room || wanted > SIZE_MAX / size || !(more = realloc(old, wanted * size)))
        return false;
    memcpy(list, &more, sizeof more);
    *room = wanted;
    return true;
}

#define CLI_NO_ENTRY UINT32_MAX

typedef struct cli_table {
    const onx_ctx *cx; /* set by the caller; all other members are zero initially */
    uint64_t *slots;   /* hash << 32 | index + 1, 0: free; linear probing */
    uint32_t mask, count;
} cli_table;

static inline uint32_t cli_table_hash(const cli_table *t, onx_str first, onx_str second)
{
    return (uint32_t)onx_hash(t->cx, second, onx_hash(t->cx, first, 0));
}

/* The next entry with that hash; *at is initially the hash, and has to be incremented before the next call. */
static inline uint32_t cli_table_seek(const cli_table *t, uint32_t hash, uint32_t *at)
{
    for (uint64_t slot; t->slots && (slot = t->slots[*at & t->mask]) != 0; ++*at)
        if (slot >> 32 == hash)
            return (uint32_t)slot - 1;
    return CLI_NO_ENTRY;
}
#define CLI_TABLE_EACH(t, hash, i)                                                                                     \
    for (uint32_t i##_at = (hash), i; (i = cli_table_seek((t), (hash), &i##_at)) != CLI_NO_ENTRY; i##_at++)

static inline bool cli_table_grow(cli_table *t)
{
    uint64_t count = t->slots ? ((uint64_t)t->mask + 1) * 2 : 64;
    uint64_t *slots = count <= UINT32_C(1) << 31 ? calloc(count, sizeof *slots) : NULL;
    if (!slots)
        return false;
    for (uint64_t i = 0; t->slots && i <= t->mask; i++) {
        uint64_t at = t->slots[i] >> 32;
        while (t->slots[i] && slots[at & (count - 1)])
            at++;
        if (t->slots[i])
            slots[at & (count - 1)] = t->slots[i];
    }
    free(t->slots);
    t->slots = slots;
    t->mask = (uint32_t)(count - 1);
    return true;
}

/* False when out of memory. */
static inline bool cli_table_add(cli_table *t, uint32_t hash, uint32_t index)
{
    if (t->count >= t->mask / 8 * 5 && !cli_table_grow(t))
        return false;
    uint32_t at = hash;
    while (t->slots[at & t->mask])
        at++;
    t->slots[at & t->mask] = (uint64_t)hash << 32 | (uint64_t)(index + 1);
    t->count++;
    return true;
}

#endif

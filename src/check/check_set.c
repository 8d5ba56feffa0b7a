/* check_set.c - a set of texts with a number each, for the many small questions of "is it there twice". */
#include "check/check.h"

typedef struct entry {
    onx_str text;
    uint64_t hash;
    uint32_t value;
} entry;

struct onxi_check_set {
    entry *entries; /* open addressing; hash 0 is free */
    uint32_t count, slots;
};

onxi_check_set *onxi_check_set_new(onxi_check *k)
{
    onxi_check_set *set = ONXI_NEW(k->arena, onxi_check_set);
    onxi_check_failed(k, set);
    return set;
}

static uint64_t hash_of(onx_str text)
{
    uint64_t h = onxi_hash(text.ptr, text.len, 0x2545f4914f6cdd1du);
    return h ? h : 1;
}

static entry *probe(const onxi_check_set *set, onx_str text, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & (set->slots - 1);
    while (set->entries[i].hash && (set->entries[i].hash != hash || !onx_str_equal(set->entries[i].text, text)))
        i = (i + 1) & (set->slots - 1);
    return &set->entries[i];
}

static bool grow(onxi_check *k, onxi_check_set *set)
{
    onxi_check_set old = *set;
    uint32_t slots = old.slots ? old.slots * 2 : 8;
    entry *entries = slots > old.slots ? ONXI_ARRAY(k->arena, entry, slots) : NULL;
    if (onxi_check_failed(k, entries))
        return false;
    set->entries = entries;
    set->slots = slots;
    for (uint32_t i = 0; i < old.slots; i++)
        if (old.entries[i].hash)
            *probe(set, old.entries[i].text, old.entries[i].hash) = old.entries[i];
    return true;
}

bool onxi_check_set_add(onxi_check *k, onxi_check_set *set, onx_str text, uint32_t value, uint32_t *value_out)
{
    if (!set || (set->count >= set->slots / 4 * 3 && !grow(k, set)))
        return true;
    uint64_t hash = hash_of(text);
    entry *e = probe(set, text, hash);
    if (e->hash) {
        if (value_out)
            *value_out = e->value;
        return false;
    }
    *e = (entry){ .text = text, .hash = hash, .value = value };
    set->count++;
    return true;
}

bool onxi_check_set_find(const onxi_check_set *set, onx_str text, uint32_t *value_out)
{
    if (!set || !set->slots)
        return false;
    const entry *e = probe(set, text, hash_of(text));
    if (!e->hash)
        return false;
    if (value_out)
        *value_out = e->value;
    return true;
}

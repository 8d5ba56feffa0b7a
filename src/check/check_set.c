/* check_set.c - a set of strings with a number each, for detecting duplicates. */
#include "check/check.h"

struct onxi_check_set {
    onxi_dict dict;
};

onxi_check_set *onxi_check_set_new(onxi_check *k)
{
    onxi_check_set *set = ONXI_NEW(k->arena, onxi_check_set);
    if (!onxi_check_failed(k, set))
        set->dict = onxi_dict_in_arena(k->arena);
    return set;
}

bool onxi_check_set_add(onxi_check *k, onxi_check_set *set, onx_str text, uint32_t value, uint32_t *value_out)
{
    bool made;
    const onxi_dict_entry *entry = set ? onxi_dict_at(&set->dict, text, value, &made) : NULL;
    if (!set || onxi_check_failed(k, entry) || made)
        return true;
    if (value_out)
        *value_out = entry->value;
    return false;
}

bool onxi_check_set_find(const onxi_check_set *set, onx_str text, uint32_t *value_out)
{
    const onxi_dict_entry *entry = set ? onxi_dict_find(&set->dict, text) : NULL;
    if (entry && value_out)
        *value_out = entry->value;
    return entry != NULL;
}

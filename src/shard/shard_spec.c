/* shard_spec.c - converts an annotation to a placement: devices, groups of devices, and split axes. */
#include "shard/shard.h"

/* The devices of an entry: a single device or a group. NULL if it is neither. */
static const int64_t *entry_devices(const onxi_shard_plan *plan, const onx_sharding_spec *spec, uint32_t entry,
                                    uint32_t *count)
{
    for (uint32_t i = 0; i < spec->index_to_device_group_map_count; i++) {
        const onx_int_int_list_entry *e = spec->index_to_device_group_map[i];
        if (e->key == spec->device[entry]) {
            *count = e->value_count;
            for (uint32_t k = 0; k < e->value_count; k++)
                if (e->value[k] < 0 || e->value[k] >= plan->placements.devices)
                    return NULL;
            return e->value_count ? e->value : NULL;
        }
    }
    *count = 1;
    return spec->device[entry] >= 0 && spec->device[entry] < plan->placements.devices ? &spec->device[entry] : NULL;
}

typedef struct split { /* in the written order */
    uint32_t axis, shards;
} split;

/* The split axes, in the order in which shards are counted. False, with a note, if this is not possible. */
static bool read_axes(onxi_shard_plan *plan, uint32_t node, const onx_sharding_spec *spec,
                      const onxi_shard_value *value, split out[ONXI_SHARD_RANK], uint32_t *count, uint64_t *shards,
                      onx_status *status)
{
    *count = 0;
    *shards = 1;
    for (uint32_t i = 0; i < spec->sharded_dim_count; i++) {
        const onx_sharded_dim *d = spec->sharded_dim[i];
        uint64_t n = 1;
        for (uint32_t k = 0; k < d->simple_sharding_count; k++) {
            const int64_t each = d->simple_sharding[k]->num_shards;
            if (each < 1 || !onxi_mul_u64(n, (uint64_t)each, &n))
                n = UINT64_MAX;
        }
        const int64_t axis = value && d->axis < 0 ? d->axis + value->rank : d->axis;
        if (!value || axis < 0 || axis >= value->rank || *count == ONXI_SHARD_RANK || n > plan->placements.devices) {
            *status = onxi_shard_note(plan, node, "axis %lld of \"%.*s\" cannot be split into %llu shards",
                                      (long long)d->axis, ONX_ARG(onx_view(spec->tensor_name)), (unsigned long long)n);
            return false;
        }
        if ((int64_t)n > value->dims[axis]) {
            *status = onxi_shard_note(plan, node, "axis %lld of \"%.*s\" has %lld elements, fewer than its %llu shards",
                                      (long long)axis, ONX_ARG(onx_view(spec->tensor_name)),
                                      (long long)value->dims[axis], (unsigned long long)n);
            return false;
        }
        for (uint32_t k = 0; k < *count; k++)
            if (out[k].axis == (uint32_t)axis) {
                *status = onxi_shard_note(plan, node, "axis %lld of \"%.*s\" is split twice", (long long)d->axis,
                                          ONX_ARG(onx_view(spec->tensor_name)));
                return false;
            }
        out[(*count)++] = (split){ (uint32_t)axis, (uint32_t)n };
        *shards *= n;
    }
    return true;
}

static void sort_axes(const split *given, uint32_t count, split *sorted)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = i;
        for (; k && sorted[k - 1].axis > given[i].axis; k--)
            sorted[k] = sorted[k - 1];
        sorted[k] = given[i];
    }
}

/* Converts a shard index in the order of `given` to one in the order of `sorted`. */
static int32_t turn_index(const split *given, const split *sorted, uint32_t count, uint32_t index)
{
    uint32_t at[ONXI_SHARD_RANK] = { 0 }, out = 0;
    for (uint32_t i = count; i-- > 0; index /= given[i].shards)
        at[given[i].axis] = index % given[i].shards;
    for (uint32_t i = 0; i < count; i++)
        out = out * sorted[i].shards + at[sorted[i].axis];
    return (int32_t)out;
}

onx_status onxi_shard_spec_read(onxi_shard_plan *plan, uint32_t node, const onx_sharding_spec *spec,
                                const onxi_shard_value *value, const onxi_placement **out)
{
    split given[ONXI_SHARD_RANK], sorted[ONXI_SHARD_RANK];
    uint32_t count = 0, axis[ONXI_SHARD_RANK], shards[ONXI_SHARD_RANK];
    uint64_t all = 1;
    onx_status status = ONX_OK;
    *out = NULL;
    if (value && !value->known && spec->sharded_dim_count)
        return onxi_shard_note(plan, node, "the shape of \"%.*s\" is not known, so it is not split",
                               ONX_ARG(onx_view(spec->tensor_name)));
    const bool can = read_axes(plan, node, spec, value, given, &count, &all, &status);
    ONX_TRY(status);
    if (!can || (count && all != spec->device_count)) { /* the devices then have the whole value */
        if (can)
            ONX_TRY(onxi_shard_note(plan, node, "\"%.*s\" has %llu shards, and %u entries of devices",
                                    ONX_ARG(onx_view(spec->tensor_name)), (unsigned long long)all, spec->device_count));
        count = 0;
    }
    int32_t *at = ONXI_ARRAY(plan->arena, int32_t, plan->placements.devices);
    if (!at)
        return ONX_E_MEMORY;
    memset(at, -1, plan->placements.devices * sizeof *at);
    sort_axes(given, count, sorted);
    for (uint32_t i = 0; i < spec->device_count; i++) {
        uint32_t devices;
        const int64_t *list = entry_devices(plan, spec, i, &devices);
        if (!list)
            return onxi_shard_note(plan, node, "%lld is neither a device nor a group of \"%.*s\"",
                                   (long long)spec->device[i], ONX_ARG(onx_view(spec->tensor_name)));
        for (uint32_t k = 0; k < devices; k++)
            if (at[list[k]] < 0)
                at[list[k]] = count ? turn_index(given, sorted, count, i) : 0;
            else if (count)
                return onxi_shard_note(plan, node, "device %lld has two shards of \"%.*s\"", (long long)list[k],
                                       ONX_ARG(onx_view(spec->tensor_name)));
    }
    if (!spec->device_count)
        return onxi_shard_note(plan, node, "the sharding of \"%.*s\" names no device",
                               ONX_ARG(onx_view(spec->tensor_name)));
    for (uint32_t i = 0; i < count; i++) {
        axis[i] = sorted[i].axis;
        shards[i] = sorted[i].shards;
    }
    *out = onxi_placement_make(&plan->placements, count, axis, shards, at);
    return *out ? ONX_OK : ONX_E_MEMORY;
}

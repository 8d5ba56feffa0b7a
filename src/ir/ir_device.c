/* ir_device.c - updates the device configurations of a node, which refer to operands by name, after the operands
 * changed. */
#include "ir/ir.h"

/* The new operand at the position of an operand of `before`; empty if there is none. */
static onx_bytes in_its_place(const onx_node *node, const onx_node *before, onx_str name)
{
    for (uint32_t i = 0; before && i < before->input_count && i < node->input_count; i++)
        if (onx_str_equal(onx_view(before->input[i]), name))
            return node->input[i];
    for (uint32_t i = 0; before && i < before->output_count && i < node->output_count; i++)
        if (onx_str_equal(onx_view(before->output[i]), name))
            return node->output[i];
    return (onx_bytes){ 0 };
}

static bool has_operand(const onx_node *node, onx_str name)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (onx_str_equal(onx_view(node->input[i]), name))
            return true;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (onx_str_equal(onx_view(node->output[i]), name))
            return true;
    return false;
}

static bool all_fit(const onx_node *node, const onx_node_device_configuration *c)
{
    for (uint32_t i = 0; i < c->sharding_spec_count; i++)
        if (!has_operand(node, onx_view(c->sharding_spec[i]->tensor_name)))
            return false;
    return true;
}

static bool is_about(const onx_node_device_configuration *c, onx_str name)
{
    for (uint32_t i = 0; i < c->sharding_spec_count; i++)
        if (onx_str_equal(onx_view(c->sharding_spec[i]->tensor_name), name))
            return true;
    return false;
}

static onx_status fit(onx_arena *arena, const onx_node *node, const onx_node *before,
                      onx_node_device_configuration **place)
{
    const onx_node_device_configuration *old = *place;
    onx_node_device_configuration *c = ONXI_NEW(arena, onx_node_device_configuration);
    if (!c || !(c->sharding_spec = onxi_arena_array(arena, (size_t)onxi_list_room(old->sharding_spec_count),
                                                    sizeof *c->sharding_spec)))
        return ONX_E_MEMORY;
    onx_sharding_spec **list = c->sharding_spec;
    *c = *old;
    c->sharding_spec = list;
    c->sharding_spec_count = 0;
    for (uint32_t i = 0; i < old->sharding_spec_count; i++) {
        onx_sharding_spec *spec = old->sharding_spec[i];
        onx_bytes now = spec->tensor_name;
        if (!has_operand(node, onx_view(now)))
            now = in_its_place(node, before, onx_view(now));
        if (!onx_view(now).len || is_about(c, onx_view(now)))
            continue;
        if (now.bits != spec->tensor_name.bits) {
            if (!(spec = ONXI_NEW(arena, onx_sharding_spec)))
                return ONX_E_MEMORY;
            *spec = *old->sharding_spec[i];
            ONX_SET(sharding_spec, spec, tensor_name, now);
        }
        list[c->sharding_spec_count++] = spec;
    }
    *place = c;
    return ONX_OK;
}

onx_status onxi_node_fit_devices(onx_arena *arena, onx_node *node, const onx_node *before)
{
    const onx_node_extra *more = onx_node_more(node);
    bool fits = true;
    for (uint32_t i = 0; i < more->device_configurations_count; i++)
        fits &= all_fit(node, more->device_configurations[i]);
    if (fits)
        return ONX_OK;
    onx_node_extra *own = ONXI_NEW(arena, onx_node_extra);
    onx_node_device_configuration **list =
        onxi_arena_array(arena, (size_t)onxi_list_room(more->device_configurations_count), sizeof *list);
    if (!own || !list)
        return ONX_E_MEMORY;
    *own = *more;
    memcpy(list, more->device_configurations, more->device_configurations_count * sizeof *list);
    own->device_configurations = list;
    for (uint32_t i = 0; i < own->device_configurations_count; i++)
        ONX_TRY(fit(arena, node, before, &list[i]));
    node->extra = &own->base;
    return ONX_OK;
}

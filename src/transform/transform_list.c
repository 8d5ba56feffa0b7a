/* transform_list.c - growing lists of nodes, used while a graph is rewritten. */
#include "transform/transform.h"

onx_status onxi_node_list_add_all(onx_arena *scratch, onxi_node_list *list, onx_node *const *nodes, uint32_t count)
{
    if (!ONXI_GROW_IN(scratch, list->items, list->room, (uint64_t)list->count + count))
        return ONX_E_MEMORY;
    if (count)
        memcpy(list->items + list->count, nodes, count * sizeof *nodes);
    list->count += count;
    return ONX_OK;
}

onx_status onxi_node_list_add(onx_arena *scratch, onxi_node_list *list, onx_node *node)
{
    return onxi_node_list_add_all(scratch, list, &node, 1);
}

onx_status onxi_node_list_keep(onx_arena *arena, const onxi_node_list *list, onx_node ***nodes, uint32_t *count)
{
    onx_node **kept = onxi_arena_array(arena, (size_t)onxi_list_room(list->count), sizeof *kept);
    if (!kept)
        return ONX_E_MEMORY;
    if (list->count)
        memcpy(kept, list->items, list->count * sizeof *kept);
    *nodes = kept;
    *count = list->count;
    return ONX_OK;
}

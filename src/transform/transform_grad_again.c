/* transform_grad_again.c - copies nodes of the model under other names: if Gradient is applied to values other than
 * those it names, and to recompute forward values that are not kept for the backward pass. */
#include "transform/transform_grad.h"

/* ---- copies ---- */

onx_status onxi_grad_again_set(onxi_grad_again *a, onx_str name, onx_bytes to)
{
    onxi_dict_entry *entry = onxi_dict_at(&a->to, name, a->to.count, NULL);
    if (!entry || !ONXI_GROW_IN(a->g->scratch, a->names, a->room, a->to.count))
        return ONX_E_MEMORY;
    a->names[entry->value] = to;
    return ONX_OK;
}

onx_status onxi_grad_again_rename(void *again, onx_bytes *name)
{
    const onxi_grad_again *a = again;
    const onxi_dict_entry *entry =
        onx_view(*name).len ? onxi_dict_find((onxi_dict *)(uintptr_t)&a->to, onx_view(*name)) : NULL;
    if (entry)
        *name = a->names[entry->value];
    return ONX_OK;
}

onx_status onxi_grad_again_inputs(onxi_grad_again *a, onx_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        ONX_TRY(onxi_grad_again_rename(a, &node->input[i]));
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attribute[i]->slot == ONX_SLOT_G && node->attribute[i]->g)
            ONX_TRY(onxi_graph_each_name(a->g->cx, node->attribute[i]->g, onxi_grad_again_rename, a));
    return ONX_OK;
}

onx_status onxi_grad_again_node(onxi_grad_again *a, const onx_node *from, onx_node **out)
{
    onx_node *node;
    ONX_TRY(onxi_grad_copy(a->g, from, out));
    node = *out;
    ONX_TRY(onxi_grad_again_inputs(a, node));
    if (onx_view(node->name).len) /* runtimes refuse two nodes with the same name */
        ONX_TRY(onxi_grad_name(a->g, node->name, "again", &node->name));
    for (uint32_t i = 0; i < node->output_count; i++)
        if (onx_view(node->output[i]).len) {
            onx_bytes name;
            ONX_TRY(onxi_grad_name(a->g, node->output[i], "again", &name));
            ONX_TRY(onxi_grad_again_set(a, onx_view(node->output[i]), name));
            node->output[i] = name;
        }
    return ONX_OK;
}

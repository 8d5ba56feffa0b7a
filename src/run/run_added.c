/* run_added.c - nodes that a session adds, which are no nodes of the model. */
#include "run/run.h"
#include "transform/transform.h"

/* They have a fixed operator version, which does not depend on the versions that the model imports. */
static onx_status open_binder(onxi_run_session *s)
{
    enum { VERSION = 13 }; /* the first version with bfloat16 */
    if (s->added)
        return ONX_OK;
    onx_operator_set_id *id = onx_message_new(s->arena, ONX_KIND_OPERATOR_SET_ID);
    if (!id || !(s->added = ONXI_NEW(s->arena, onxi_binder)))
        return ONX_E_MEMORY;
    ONX_SET(operator_set_id, id, version, VERSION);
    *s->added = (onxi_binder){ .arena = s->arena };
    return onxi_binder_open(s->added, &id, 1, false);
}

static onx_status add_attribute(onxi_run_session *s, onx_node *node, const char *name, int64_t value)
{
    onx_attribute *attribute = onxi_attribute_new(s->arena, name, ONX_ATTR_INT);
    if (!attribute || !(node->attribute = (onx_attribute **)ONXI_ARRAY(s->arena, void *, 1)))
        return ONX_E_MEMORY;
    ONX_SET(attribute, attribute, i, value);
    node->attribute[0] = attribute;
    node->attribute_count = 1;
    return ONX_OK;
}

onx_status onxi_run_op_added(onxi_run_session *s, const onxi_run_op *by, const onxi_run_added *what,
                             const uint32_t *inputs, uint32_t count, onxi_run_op *out)
{
    onxi_run_op op = { .frame = by ? by->frame : NULL, .index = by ? by->index : 0, .needed = true, .added = true };
    onx_node *node = onx_message_new(s->arena, ONX_KIND_NODE);
    if (!node || !(op.inputs = ONXI_ARRAY(s->arena, uint32_t, count + 1u)) ||
        !(op.outputs = ONXI_ARRAY(s->arena, uint32_t, 1)))
        return ONX_E_MEMORY;
    ONX_TRY(open_binder(s));
    ONX_TRY(onx_arena_refer(s->arena, onx_str_of(what->op_type), &node->op_type));
    ONX_TRY(onx_arena_refer(s->arena, what->name, &node->name));
    if (what->attribute)
        ONX_TRY(add_attribute(s, node, what->attribute, what->value));
    op.node = node;
    ONX_TRY(onxi_run_op_mean(s, s->added, NULL, &op));
    for (uint32_t i = 0; i < count; i++)
        op.inputs[i] = inputs[i];
    op.input_count = count;
    op.input_room = count + 1u;
    op.output_count = 1;
    op.outputs[0] = ONXI_NO_SLOT;
    *out = op;
    return ONX_OK;
}

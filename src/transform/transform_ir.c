/* transform_ir.c - the IR version of a model, and what it says about inputs that have an initializer. */
#include "transform/transform.h"

/* Before IR version 4 every initializer had to be an input, and was a constant; from then on an initializer of an input
 * is a default that callers may replace. */
static onx_status drop_constant_inputs(onx_arena *scratch, onx_graph *graph)
{
    onxi_dict constants = onxi_dict_in_arena(scratch);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        if (!onxi_dict_at(&constants, onx_view(graph->initializer[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (!onxi_dict_find(&constants, onx_view(graph->input[i]->name)))
            graph->input[kept++] = graph->input[i];
    graph->input_count = kept;
    return ONX_OK;
}

onx_status onxi_model_raise_ir(onx_arena *scratch, onx_model *model, int64_t least)
{
    const bool constants = model->ir_version < ONXI_IR_DEFAULTS && least >= ONXI_IR_DEFAULTS;
    if (model->ir_version >= least)
        return ONX_OK;
    ONX_SET(model, model, ir_version, least);
    return constants && model->graph ? drop_constant_inputs(scratch, model->graph) : ONX_OK;
}

onx_status onxi_model_complete_inputs(onx_arena *arena, onx_arena *scratch, onx_model *model)
{
    onx_graph *graph = model->ir_version < ONXI_IR_DEFAULTS ? model->graph : NULL;
    onxi_dict inputs = onxi_dict_in_arena(scratch);
    for (uint32_t i = 0; graph && i < graph->input_count; i++)
        if (!onxi_dict_at(&inputs, onx_view(graph->input[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; graph && i < graph->initializer_count; i++) {
        const onx_tensor *tensor = graph->initializer[i];
        if (onxi_dict_find(&inputs, onx_view(tensor->name)) || tensor->dims_count > ONX_RANK_MAX ||
            (unsigned)tensor->data_type >= ONX_DTYPE_COUNT)
            continue;
        onx_type *type =
            onx_type_new_tensor(arena, (onx_dtype)tensor->data_type, tensor->dims, (int)tensor->dims_count);
        onx_value_info *input = type ? ONX_ADD(arena, graph, input, VALUE_INFO) : NULL;
        if (!input)
            return ONX_E_MEMORY;
        ONX_SET(value_info, input, name, tensor->name);
        ONX_SET(value_info, input, type, type);
    }
    return ONX_OK;
}

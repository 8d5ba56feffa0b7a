/* infer_facts.c - what transforms may believe about a model: only what every run of it is bound to obey. The file's
 * claims about inner values, outputs and names of sizes may be wrong, and callers may override defaults. See
 * docs/notes/facts.md. */
#include "infer/infer.h"

bool onxi_facts_has_defaults(const onx_model *model)
{
    return model && model->ir_version >= 4;
}

onx_status onxi_facts_defaults(const onx_model *model, const onx_graph *graph, onxi_dict *names)
{
    for (uint32_t i = 0; onxi_facts_has_defaults(model) && i < graph->input_count; i++)
        if (!onxi_dict_at(names, onx_view(graph->input[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

onx_status onxi_facts_new(onx_ctx *cx, onx_doc *doc, onx_str same, onx_infer **out)
{
    const onx_infer_options none = { .struct_size = sizeof none };
    return onxi_infer_open(cx, doc, &none, &same, out);
}

onx_status onxi_facts_check(onx_ctx *cx, onx_doc *doc, onx_infer **out)
{
    const onx_infer_options strict = { .struct_size = sizeof strict, .strict = true, .check_type = true };
    const onx_str same = onx_str_of("");
    return onxi_infer_open(cx, doc, &strict, &same, out);
}

bool onxi_facts_prove(onx_infer *e, const onx_graph *graph, onx_str name, const onx_type *declared)
{
    onxi_infer_result *result = onxi_infer_result_of(e, graph, false);
    const onxi_infer_fact *fact = result ? onxi_infer_result_find(e, result, name) : NULL;
    const onx_type_tensor *says = ONX_HAS(type, declared, tensor_type) ? declared->tensor_type : NULL;
    if (!fact || !says || fact->type.kind != ONXI_TYPE_TENSOR || says->elem_type != fact->type.dtype)
        return false;
    const onx_tensor_shape *shape = ONX_HAS(type_tensor, says, shape) ? says->shape : NULL;
    if (shape && (!fact->type.ranked || fact->type.rank != shape->dim_count))
        return false;
    for (uint32_t i = 0; shape && i < shape->dim_count; i++)
        if (ONX_HAS(dimension, shape->dim[i], dim_value) &&
            (!onxi_dim_is_const(fact->type.dims[i]) || fact->type.dims[i] != shape->dim[i]->dim_value))
            return false;
    return true;
}

/* N'2 + 1 is N + 1. */
static onx_status show_size(void *user, const onx_visit *at)
{
    onx_arena *arena = user;
    onx_dimension *d = at->message;
    if (at->kind != ONX_KIND_DIMENSION || !ONX_HAS(dimension, d, dim_param))
        return ONX_OK;
    const onx_str text = onx_view(d->dim_param);
    char *out = text.len ? onx_arena_alloc(arena, text.len) : NULL;
    size_t len = 0;
    if (!text.len)
        return ONX_OK;
    if (!out)
        return ONX_E_MEMORY;
    for (size_t i = 0; i < text.len;) {
        size_t end = i + 1;
        while (text.ptr[i] == '\'' && end < text.len && text.ptr[end] >= '0' && text.ptr[end] <= '9')
            end++;
        if (end == i + 1)
            out[len++] = text.ptr[i];
        i = end;
    }
    return len == text.len ? ONX_OK : onx_arena_keep(arena, onx_str_make(out, len), &d->dim_param);
}

onx_status onxi_facts_show(onx_arena *arena, const onx_type *type, onx_type **out)
{
    void *copy;
    ONX_TRY(onx_message_copy(arena, ONX_KIND_TYPE, type, &copy));
    *out = copy;
    return onx_message_walk(arena->cx, ONX_KIND_TYPE, copy, show_size, arena);
}

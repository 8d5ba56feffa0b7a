/* transform_types.c - declared types of inner values when a size before them changes: shapes are removed, so that
 * nothing contradicts, and set again from inference; everything else that is declared stays. */
#include "transform/transform.h"

typedef struct shapes {
    onx_arena *arena;
    const onx_graph *graph; /* the graph whose own inputs and outputs keep their types */
    onx_infer *infer;
} shapes;

static bool is_inside(const shapes *s, const onx_visit *at)
{
    return at->kind == ONX_KIND_VALUE_INFO && at->parent && at->parent->kind == ONX_KIND_GRAPH &&
           (at->parent->message != s->graph || strcmp(at->field, "value_info") == 0);
}

static onx_type_tensor *tensor_of(const onx_value_info *info)
{
    const onx_type *type = ONX_HAS(value_info, info, type) ? info->type : NULL;
    return type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
}

static onx_status forget(void *user, const onx_visit *at)
{
    const shapes *s = user;
    onx_value_info *info = at->message;
    if (!is_inside(s, at) || !tensor_of(info))
        return ONX_OK;
    void *copy;
    ONX_TRY(onx_message_copy(s->arena, ONX_KIND_TYPE, info->type, &copy));
    info->type = copy;
    tensor_of(info)->shape = NULL;
    ONX_CLEAR(type_tensor, tensor_of(info), shape);
    return ONX_OK;
}

onx_status onxi_types_forget(onx_ctx *cx, onx_arena *arena, onx_graph *graph)
{
    shapes s = { .arena = arena, .graph = graph };
    return onx_message_walk(cx, ONX_KIND_GRAPH, graph, forget, &s);
}

static onx_status recall(void *user, const onx_visit *at)
{
    const shapes *s = user;
    onx_value_info *info = at->message;
    if (!is_inside(s, at) || !tensor_of(info) || tensor_of(info)->shape)
        return ONX_OK;
    const onx_type *type = onx_infer_type(s->infer, at->parent->message, onx_view(info->name));
    void *copy;
    if (onxi_type_rank(type) < 0 || onxi_type_dtype(type) != tensor_of(info)->elem_type)
        return ONX_OK;
    ONX_TRY(onx_message_copy(s->arena, ONX_KIND_TYPE, type, &copy));
    info->type = copy;
    return ONX_OK;
}

onx_status onxi_types_recall(onx_doc *doc, onx_arena *arena, onx_graph *graph)
{
    shapes s = { .arena = arena, .graph = graph };
    const onxi_diag_mark mark = onxi_diag_here(doc->cx);
    onx_status status = onx_infer_new(doc->cx, doc, NULL, &s.infer);
    if (status == ONX_E_MEMORY || status == ONX_E_LIMIT)
        return status;
    onxi_diag_rewind(doc->cx, mark); /* the caller has reported contradictions */
    status = status == ONX_OK ? onx_message_walk(doc->cx, ONX_KIND_GRAPH, graph, recall, &s) : ONX_OK;
    onx_infer_free(s.infer);
    return status;
}

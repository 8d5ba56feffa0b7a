/* transform_edit_batch.c - changes the batch size: adapts the inputs and constant shapes of Reshape that contain it,
 * and reports what cannot be adapted. */
#include "transform/transform_edit.h"

#include <onx/tensor.h>

typedef struct batcher {
    onxi_editor *e;
    onxi_cutter *c;
    onx_str old_symbol;
    int64_t old_size, size; /* -1: a symbol */
    onx_str symbol;         /* used for inputs and outputs during the analysis */
    bool *fed;              /* per input: does it have the batch? */
    bool *carried;          /* per output of the model: did it have the old size? */
    bool *reshaped;         /* per node: a Reshape whose shape was adjusted */
    uint32_t adjusted;
    size_t wrong; /* what inference says about the model before */
} batcher;

enum { SOME_SIZE = 6133 }; /* a prime that is unlikely to occur in a model otherwise */

static onx_dimension *first_dim(const onx_value_info *info)
{
    const onx_type *type = info->type;
    const onx_tensor_shape *shape =
        type && ONX_HAS(type, type, tensor_type) && type->tensor_type ? type->tensor_type->shape : NULL;
    return shape && shape->dim_count ? shape->dim[0] : NULL;
}

static bool has_old(const batcher *b, const onx_dimension *d)
{
    if (!d)
        return false;
    if (b->old_size >= 0)
        return ONX_HAS(dimension, d, dim_value) && d->dim_value == b->old_size;
    return ONX_HAS(dimension, d, dim_param) && onx_str_equal(onx_view(d->dim_param), b->old_symbol);
}

/* Changes only this dimension; other values that share the message keep it. */
static onx_status set_dim(batcher *b, onx_value_info *info, int64_t size, onx_str symbol)
{
    void *copy;
    ONX_TRY(onx_message_copy(b->e->arena, ONX_KIND_TYPE, info->type, &copy));
    info->type = copy;
    onx_dimension *d = first_dim(info);
    ONX_CLEAR(dimension, d, dim_param);
    ONX_CLEAR(dimension, d, dim_value);
    if (size >= 0)
        ONX_SET(dimension, d, dim_value, size);
    else {
        ONX_TRY(onx_arena_keep(b->e->arena, symbol, &d->dim_param));
        d->has |= onx_dimension_has_dim_param;
    }
    return ONX_OK;
}

/* The batch is the first dimension of the first input with dimensions. */
static onx_status find_old(batcher *b)
{
    const onx_graph *g = b->e->graph;
    onxi_dict initialized = onxi_dict_in_arena(b->e->scratch);
    const onx_dimension *d = NULL;
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (!onxi_dict_at(&initialized, onx_view(g->initializer[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    b->fed = ONXI_ARRAY(b->e->scratch, bool, (size_t)g->input_count + 1);
    b->carried = ONXI_ARRAY(b->e->scratch, bool, (size_t)g->output_count + 1);
    if (!b->fed || !b->carried)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const onx_dimension *own = first_dim(g->input[i]);
        if (onxi_dict_find(&initialized, onx_view(g->input[i]->name)) || !own)
            continue;
        if (!d) {
            d = own;
            b->old_size = ONX_HAS(dimension, d, dim_value) ? d->dim_value : -1;
            b->old_symbol = ONX_HAS(dimension, d, dim_param) ? onx_view(d->dim_param) : (onx_str){ 0 };
        }
        b->fed[i] = own == d || has_old(b, own);
        if (!b->fed[i])
            onxi_warn(b->e->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
                      "the first dimension of input %.*s differs from that of the first input, and is not changed",
                      ONX_ARG(onx_view(g->input[i]->name)));
    }
    if (!d)
        return onxi_fail(b->e->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "no input has a dimension that could be the batch");
    for (uint32_t i = 0; i < g->output_count; i++)
        b->carried[i] = has_old(b, first_dim(g->output[i]));
    return ONX_OK;
}

/* ---- shapes of Reshape ---- */

static bool is_batch(batcher *b, onx_str name)
{
    const onxi_scope scope = { .graph = b->e->graph };
    const onx_type *type = onxi_values_type(&b->c->values, &scope, name);
    const onx_value_info info = { .type = (onx_type *)(uintptr_t)type };
    const onx_dimension *d = type ? first_dim(&info) : NULL;
    return d && ONX_HAS(dimension, d, dim_param) && onx_str_equal(onx_view(d->dim_param), b->symbol);
}

/* The shape for both the old size and any other: 0 copies the first dimension, -1 is computed from the others. False if
 * neither is possible or needed. */
static bool adjust(const batcher *b, bool zeros, int64_t first, int64_t *shape, uint32_t count)
{
    if (!count || shape[0] <= 0)
        return false;
    if (shape[0] == b->old_size && first == b->old_size && !zeros) {
        shape[0] = 0;
        return true;
    }
    for (uint32_t i = 1; i < count; i++)
        if (shape[i] < 1)
            return false;
    if (b->old_size && shape[0] % b->old_size != 0)
        return false;
    shape[0] = -1;
    return true;
}

static onx_status adjust_reshape(batcher *b, uint32_t at)
{
    onxi_editor *e = b->e;
    onx_node *node = e->graph->node[at];
    onxi_scope scope = { .graph = e->graph, .nodes = e->graph->node, .node_count = e->graph->node_count };
    const onxi_bound *bound = onxi_bind(&b->c->binder, node);
    if (!bound)
        return ONX_E_MEMORY;
    if (bound->kind != ONXI_BOUND_OPERATOR || bound->op != ONXI_ID_Reshape || node->input_count < 2)
        return ONX_OK;
    const onx_name_id data = onx_index_find(b->c->index, onx_view(node->input[0]));
    const onx_def def = onx_index_def(b->c->index, data);
    if (def.kind == ONX_DEF_INITIALIZER || onxi_cutter_is_constant(b->c, data))
        return ONX_OK; /* weights */
    const int64_t first = onxi_type_dim(onxi_values_type(&b->c->values, &scope, onx_view(node->input[0])), 0);
    const onxi_constant *constant = onxi_values_constant(&b->c->values, &scope, onx_view(node->input[1]));
    const onx_attribute *a =
        constant ? onxi_constant_attribute(&b->c->values, e->scratch, constant, ONX_ATTR_INTS) : NULL;
    if (!a || a->slot != ONX_SLOT_INTS || !a->count || a->count > ONX_RANK_MAX || a->ints[0] < 1)
        return ONX_OK;
    int64_t shape[ONX_RANK_MAX];
    onxi_copy_dims(shape, a->ints, a->count);
    if (!adjust(b, onxi_bind_int(bound, node, "allowzero") != 0, first, shape, a->count))
        return ONX_OK;
    const int64_t dims[1] = { a->count };
    onx_tensor *tensor = onx_tensor_new(e->arena, ONX_INT64, dims, 1, shape, "");
    onx_bytes *inputs = onxi_arena_array(e->arena, (size_t)onxi_list_room(node->input_count) + 1, sizeof *inputs);
    if (!tensor || !inputs)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_names_make(&e->names, onx_view(node->input[1]), onx_str_of("batch"), &tensor->name));
    tensor->has |= onx_tensor_has_name;
    memcpy(inputs, node->input, node->input_count * sizeof *inputs);
    inputs[1] = tensor->name;
    node->input = inputs;
    b->adjusted++;
    b->reshaped[at] = true;
    onxi_tell_change(e->options->changed, e->options->user, "edit", "batch",
                     onxi_path_node(e->scratch, onx_str_of("graph."), at, node), "the shape begins with %lld",
                     (long long)shape[0]);
    return onx_graph_add_initializer(e->arena, e->graph, tensor) ? ONX_OK : ONX_E_MEMORY;
}

/* ---- checking the result ---- */

static onx_status settle_outputs(batcher *b, onx_str wanted)
{
    onxi_editor *e = b->e;
    onxi_cutter c;
    onx_status status = onxi_cutter_open(&c, e->doc, e->scratch);
    c.values.same = b->symbol;
    b->c = &c;
    for (uint32_t i = 0; i < e->graph->output_count && status == ONX_OK; i++) {
        onx_value_info *output = e->graph->output[i];
        if (!b->carried[i])
            continue;
        const bool follows = is_batch(b, onx_view(output->name));
        if (!follows)
            onxi_warn(
                e->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
                "the size of output %.*s does not follow the batch size: a node before it may contain a fixed size",
                ONX_ARG(onx_view(output->name)));
        status = follows ? set_dim(b, output, b->size, wanted) : ONX_OK;
    }
    onxi_cutter_close(&c);
    return status;
}

/* Removes the batch from declared outputs, so that they do not contradict the inferred types. */
static onx_status open_outputs(batcher *b)
{
    for (uint32_t i = 0; i < b->e->graph->output_count; i++) {
        if (!b->carried[i])
            continue;
        ONX_TRY(set_dim(b, b->e->graph->output[i], 0, (onx_str){ 0 }));
        ONX_CLEAR(dimension, first_dim(b->e->graph->output[i]), dim_value);
    }
    return ONX_OK;
}

static onx_status set_inputs(batcher *b, int64_t size)
{
    for (uint32_t i = 0; i < b->e->graph->input_count; i++)
        if (b->fed[i])
            ONX_TRY(set_dim(b, b->e->graph->input[i], size, (onx_str){ 0 }));
    return ONX_OK;
}

/* True if the batch was found in all shapes. */
static onx_status search_shapes(batcher *b, bool *found)
{
    onxi_cutter c;
    const onxi_batch_shapes with = { .size = SOME_SIZE, .old = b->old_size };
    *found = false;
    if (b->old_size < 1)
        return ONX_OK;
    ONX_TRY(set_inputs(b, SOME_SIZE));
    onx_status status = onxi_cutter_open(&c, b->e->doc, b->e->scratch);
    c.values.same = b->symbol; /* the caller says that there is one batch */
    if (status == ONX_OK)
        status = onxi_edit_batch_shapes(b->e, &c.binder, &with, found, &b->adjusted);
    onxi_cutter_close(&c);
    return status == ONX_OK ? set_inputs(b, b->old_size) : status;
}

static onx_status adjust_all(batcher *b)
{
    onxi_cutter c;
    b->reshaped = ONXI_ARRAY(b->e->scratch, bool, (size_t)b->e->graph->node_count + 1);
    if (!b->reshaped)
        return ONX_E_MEMORY;
    onx_status status = onxi_cutter_open(&c, b->e->doc, b->e->scratch);
    c.values.same = b->symbol; /* the caller says that there is one batch */
    b->c = &c;
    for (uint32_t i = 0; i < b->e->graph->node_count && status == ONX_OK; i++)
        status = adjust_reshape(b, i);
    onxi_cutter_close(&c);
    return status;
}

/* A shape that begins with the batch separates samples correctly only if they are contiguous. */
static onx_status check_order(batcher *b)
{
    onxi_cutter c;
    const onxi_scope scope = { .graph = b->e->graph };
    ONX_TRY(set_inputs(b, SOME_SIZE));
    onx_status status = onxi_cutter_open(&c, b->e->doc, b->e->scratch);
    c.values.same = b->symbol; /* the caller says that there is one batch */
    for (uint32_t i = 0; i < b->e->graph->node_count && status == ONX_OK; i++) {
        const onx_node *node = b->e->graph->node[i];
        if (!b->reshaped || !b->reshaped[i])
            continue;
        const int64_t first = onxi_type_dim(onxi_values_type(&c.values, &scope, onx_view(node->input[0])), 0);
        if (first > 0 && first % SOME_SIZE != 0)
            onxi_warn(b->e->cx, ONX_WARNING, NULL,
                      ONXI_AT_PATH(onxi_path_node(b->e->scratch, onx_str_of("graph."), i, node)),
                      "the batch is not the first dimension of what this Reshape takes: samples may get mixed up");
    }
    onxi_cutter_close(&c);
    return status;
}

/* Other constants that contain the old size contradict a different batch size, and inference warns about this. A symbol
 * would not contradict anything, so an unlikely number is used. */
static onx_status contradict(batcher *b)
{
    onx_infer *infer;
    ONX_TRY(check_order(b));
    ONX_TRY(set_inputs(b, b->size >= 0 ? b->size : SOME_SIZE));
    const size_t before = onx_diag_count(b->e->cx);
    ONX_TRY(onx_infer_new(b->e->cx, b->e->doc, NULL, &infer));
    onx_infer_free(infer);
    if (onx_diag_count(b->e->cx) - before <= b->wrong && !b->e->uneven.len)
        return ONX_OK;
    return b->e->uneven.len
               ? onxi_fail(b->e->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                           "the batch size cannot be changed: constant %.*s has %lld parts, one for each sample, which "
                           "differ",
                           ONX_ARG(b->e->uneven), (long long)b->old_size)
               : onxi_fail(b->e->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                           "the batch size cannot be changed: constants of the model contain the old one, where types "
                           "contradict each other");
}

/* Counts what inference says about the unchanged model. */
static onx_status count_wrong(batcher *b)
{
    const onxi_diag_mark mark = onxi_diag_here(b->e->cx);
    const size_t before = onx_diag_count(b->e->cx);
    onx_infer *infer;
    ONX_TRY(onx_infer_new(b->e->cx, b->e->doc, NULL, &infer));
    onx_infer_free(infer);
    b->wrong = onx_diag_count(b->e->cx) - before;
    onxi_diag_rewind(b->e->cx, mark);
    return ONX_OK;
}

/* The inputs of all nodes before the change, after which device configurations are updated. */
typedef struct earlier {
    onx_node **node;
    onx_bytes **inputs;
    uint32_t count;
} earlier;

static onx_status list_inputs(const batcher *b, earlier *out)
{
    const onx_graph *g = b->e->graph;
    *out = (earlier){ (onx_node **)ONXI_ARRAY(b->e->scratch, void *, (size_t)g->node_count + 1),
                      (onx_bytes **)ONXI_ARRAY(b->e->scratch, void *, (size_t)g->node_count + 1), g->node_count };
    if (!out->node || !out->inputs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->node_count; i++) {
        out->node[i] = g->node[i];
        out->inputs[i] = g->node[i]->input;
    }
    return ONX_OK;
}

static onx_status fit_devices(const batcher *b, const earlier *was)
{
    for (uint32_t i = 0; i < was->count; i++) {
        onx_node before = *was->node[i];
        before.input = was->inputs[i];
        if (was->node[i]->input != was->inputs[i])
            ONX_TRY(onxi_node_fit_devices(b->e->arena, was->node[i], &before));
    }
    return ONX_OK;
}

onx_status onxi_edit_batch(onxi_editor *e)
{
    batcher b = { .e = e, .size = -1, .symbol = onx_str_of("onx_batch_size_in_hand") };
    onx_graph *g = e->graph;
    const onx_str wanted = e->edit->a;
    e->uneven = (onx_str){ 0 };
    bool digits = wanted.len > 0;
    for (size_t i = 0; i < wanted.len; i++)
        digits &= wanted.ptr[i] >= '0' && wanted.ptr[i] <= '9';
    if (!wanted.len || (digits && !onxi_edit_number(e, wanted, &b.size)))
        return onxi_fail(e->cx, ONX_E_MISUSE, ONXI_NOWHERE, "a batch size is a number or a symbol");
    ONX_TRY(count_wrong(&b));
    ONX_TRY(find_old(&b));
    ONX_TRY(open_outputs(&b));
    ONX_TRY(onxi_types_forget(e->cx, e->arena, g)); /* they describe the old size */
    bool found;
    earlier was;
    ONX_TRY(list_inputs(&b, &was));
    ONX_TRY(search_shapes(&b, &found));
    if (b.old_size >= 0 && !found) /* as far as possible; the rest is reported */
        ONX_TRY(adjust_all(&b));
    ONX_TRY(fit_devices(&b, &was));
    for (uint32_t i = 0; i < g->input_count; i++)
        if (b.fed[i])
            ONX_TRY(set_dim(&b, g->input[i], -1, b.symbol));
    ONX_TRY(settle_outputs(&b, wanted));
    ONX_TRY(contradict(&b));
    for (uint32_t i = 0; i < g->input_count; i++)
        if (b.fed[i])
            ONX_TRY(set_dim(&b, g->input[i], b.size, wanted));
    ONX_TRY(onxi_types_recall(e->doc, e->arena, g));
    ONXI_TELL_EDIT(e, "batch", "is the new batch size; %u shapes were adjusted", b.adjusted);
    return ONX_OK;
}

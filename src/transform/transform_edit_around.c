/* transform_edit_around.c - adds nodes before inputs and after outputs: layout, normalization, resizing, the most
 * likely class. */
#include "transform/transform_edit.h"

/* ---- a value between the model and the added nodes ---- */

typedef struct around {
    onxi_editor *e;
    onx_value_info *end;  /* the input or output */
    onx_bytes inner;      /* the new name of the value inside of the model */
    onxi_node_list nodes; /* new ones */
    const char *rule;
} around;

static onx_status rename_inside(void *user, onx_bytes *name)
{
    around *w = user;
    if (onx_str_equal(onx_view(*name), onx_view(w->end->name)))
        *name = w->inner;
    return ONX_OK;
}

/* An input with an initializer cannot be changed, nor an output that no node computes. */
static onx_status check_end(onxi_editor *e, const onx_value_info *end)
{
    onx_index *index;
    const onx_str name = onx_view(end->name);
    bool input = false, initialized = false;
    for (uint32_t i = 0; i < e->graph->input_count; i++)
        input |= e->graph->input[i] == end;
    for (uint32_t i = 0; i < e->graph->initializer_count; i++)
        initialized |= onx_str_equal(onx_view(e->graph->initializer[i]->name), name);
    ONX_TRY(onx_index_new(e->cx, e->graph, &index));
    const onx_def def = onx_index_def(index, onx_index_find(index, name));
    onx_index_free(index);
    if (input ? !initialized : def.kind == ONX_DEF_NODE)
        return ONX_OK;
    return onxi_fail(e->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                     input ? "input %.*s has an initializer" : "no node computes the output %.*s", ONX_ARG(name));
}

/* Renames the value inside of the model; the added nodes use its old name outside. */
static onx_status open_around(onxi_editor *e, around *w, onx_value_info *end, const char *rule)
{
    *w = (around){ .e = e, .end = end, .rule = rule };
    if (!end)
        return ONX_E_NOT_FOUND;
    ONX_TRY(check_end(e, end));
    ONX_TRY(onxi_names_make(&e->names, onx_view(end->name), onx_str_of("inner"), &w->inner));
    for (uint32_t i = 0; i < e->graph->node_count; i++)
        ONX_TRY(onxi_each_name(e->cx, ONX_KIND_NODE, e->graph->node[i], rename_inside, NULL, w));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < e->graph->value_info_count; i++)
        if (!onx_str_equal(onx_view(e->graph->value_info[i]->name), onx_view(end->name)))
            e->graph->value_info[kept++] = e->graph->value_info[i];
    e->graph->value_info_count = kept;
    return ONX_OK;
}

static onx_node *add_node(around *w, const char *op, onx_bytes a, onx_bytes b, onx_bytes output)
{
    onx_arena *arena = w->e->arena;
    onx_node *node = onx_message_new(arena, ONX_KIND_NODE);
    if (!node || onx_arena_keep(arena, onx_str_of(op), &node->op_type) != ONX_OK ||
        onx_list_add_text(arena, &node->input, &node->input_count, onx_view(a)) != ONX_OK ||
        (onx_view(b).len && onx_list_add_text(arena, &node->input, &node->input_count, onx_view(b)) != ONX_OK) ||
        onx_list_add_text(arena, &node->output, &node->output_count, onx_view(output)) != ONX_OK ||
        onxi_names_make(&w->e->names, onx_view(w->end->name), onx_str_of(w->rule), &node->name) != ONX_OK)
        return NULL;
    node->has |= onx_node_has_op_type | onx_node_has_name;
    return onxi_node_list_add(w->e->scratch, &w->nodes, node) == ONX_OK ? node : NULL;
}

static onx_bytes new_value(around *w, const char *part)
{
    onx_bytes name;
    return onxi_names_make(&w->e->names, onx_view(w->end->name), onx_str_of(part), &name) == ONX_OK ? name
                                                                                                    : (onx_bytes){ 0 };
}

/* A constant as an initializer; empty when out of memory. */
static onx_bytes add_constant(around *w, const char *part, onx_dtype dtype, uint32_t rank, const int64_t *dims,
                              const void *data)
{
    onx_tensor *tensor = onx_tensor_new(w->e->arena, dtype, dims, rank, data, "");
    if (!tensor)
        return (onx_bytes){ 0 };
    tensor->name = new_value(w, part);
    tensor->has |= onx_tensor_has_name;
    return onx_graph_add_initializer(w->e->arena, w->e->graph, tensor) ? tensor->name : (onx_bytes){ 0 };
}

static onx_status put_nodes(around *w, bool in_front)
{
    onx_graph *g = w->e->graph;
    onxi_node_list list = { 0 };
    if (in_front)
        ONX_TRY(onxi_node_list_add_all(w->e->scratch, &list, w->nodes.items, w->nodes.count));
    ONX_TRY(onxi_node_list_add_all(w->e->scratch, &list, g->node, g->node_count));
    if (!in_front)
        ONX_TRY(onxi_node_list_add_all(w->e->scratch, &list, w->nodes.items, w->nodes.count));
    ONX_TRY(onxi_node_list_keep(w->e->arena, &list, &g->node, &g->node_count));
    onxi_tell_change(w->e->options->changed, w->e->options->user, "edit", w->rule, onx_view(w->end->name),
                     "%u nodes are added %s", w->nodes.count, in_front ? "in front of the model" : "behind the model");
    return ONX_OK;
}

/* The version of the default domain; an error if it is below `least`. */
static onx_status version_of(onxi_editor *e, int64_t least, int64_t *out)
{
    onxi_imports imports;
    ONX_TRY(onxi_imports_open(&imports, e->scratch, e->model->opset_import, e->model->opset_import_count,
                              onxi_model_is_legacy(e->model)));
    *out = onxi_imports_version(&imports, (onx_str){ 0 });
    return *out >= least
               ? ONX_OK
               : onxi_fail(e->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                           "that needs version %lld of the default operator set; onx retarget converts the model "
                           "there",
                           (long long)least);
}

/* A declared tensor of that rank, whose type is copied so that it can be changed. */
static onx_status own_type(onxi_editor *e, onx_value_info *info, int rank)
{
    void *copy;
    if (!info)
        return ONX_E_NOT_FOUND;
    if (onxi_type_rank(info->type) < 0 || (rank >= 0 && onxi_type_rank(info->type) != rank))
        return onxi_fail(e->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "%.*s is not declared as a tensor of rank %d",
                         ONX_ARG(onx_view(info->name)), rank);
    ONX_TRY(onx_message_copy(e->arena, ONX_KIND_TYPE, info->type, &copy));
    info->type = copy;
    return ONX_OK;
}

static onx_status end_at(const around *w)
{
    return w->nodes.count ? ONX_OK : ONX_E_MEMORY;
}

/* ---- before inputs ---- */

onx_status onxi_edit_nhwc(onxi_editor *e)
{
    around w;
    onx_value_info *input = onxi_edit_input(e, e->edit->a);
    const int64_t perm[4] = { 0, 3, 1, 2 };
    ONX_TRY(own_type(e, input, 4));
    ONX_TRY(open_around(e, &w, input, "nhwc"));
    onx_node *node = add_node(&w, "Transpose", input->name, (onx_bytes){ 0 }, w.inner);
    if (!node || !onx_node_add_ints(e->arena, node, "perm", perm, 4))
        return ONX_E_MEMORY;
    onx_dimension **dim = input->type->tensor_type->shape->dim, *channels = dim[1];
    dim[1] = dim[2];
    dim[2] = dim[3];
    dim[3] = channels;
    ONX_TRY(end_at(&w));
    return put_nodes(&w, true);
}

enum { CHANNELS_MAX = 4096 };

static onx_status read_numbers(onxi_editor *e, onx_str text, double *out, uint32_t *count)
{
    *count = 0;
    for (size_t i = 0, from = 0; i <= text.len; i++) {
        bool overflow;
        if (i < text.len && text.ptr[i] != ',')
            continue;
        if (*count == CHANNELS_MAX || !onxi_parse_f64(onx_str_make(text.ptr + from, i - from), &out[*count], &overflow))
            return onxi_fail(e->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%.*s is not a list of numbers", ONX_ARG(text));
        ++*count;
        from = i + 1;
    }
    return ONX_OK;
}

/* A constant with one number, or one per channel, of the input's type. */
static onx_bytes channel_constant(around *w, const char *part, const double *values, uint32_t count, int rank)
{
    const onx_dtype dtype = (onx_dtype)onxi_type_dtype(w->end->type);
    int64_t dims[ONX_RANK_MAX];
    uint64_t size;
    for (int i = 0; i < rank; i++)
        dims[i] = i == 1 ? count : 1;
    if (!onx_dtype_size(dtype, count, &size))
        return (onx_bytes){ 0 };
    void *data = onx_arena_alloc(w->e->scratch, (size_t)size + 16);
    if (!data || onx_convert(dtype, data, ONX_DOUBLE, values, count, true) != ONX_OK)
        return (onx_bytes){ 0 };
    return add_constant(w, part, dtype, count == 1 ? 0 : (uint32_t)rank, dims, data);
}

onx_status onxi_edit_normalize(onxi_editor *e)
{
    around w;
    int64_t version;
    uint32_t means, deviations;
    onx_value_info *input = onxi_edit_input(e, e->edit->a);
    const onx_str b = e->edit->b;
    const char *colon = b.len ? memchr(b.ptr, ':', b.len) : NULL;
    const size_t at = colon ? (size_t)(colon - b.ptr) : 0;
    double *numbers = ONXI_ARRAY(e->scratch, double, (size_t)2 * CHANNELS_MAX);
    if (!numbers)
        return ONX_E_MEMORY;
    if (!colon)
        return onxi_fail(e->cx, ONX_E_MISUSE, ONXI_NOWHERE, "normalization needs MEAN,...:DEVIATION,...");
    ONX_TRY(version_of(e, 7, &version));
    ONX_TRY(own_type(e, input, -1));
    ONX_TRY(read_numbers(e, onx_str_make(b.ptr, at), numbers, &means));
    ONX_TRY(read_numbers(e, onx_str_make(b.ptr + at + 1, b.len - at - 1), numbers + CHANNELS_MAX, &deviations));
    const int dtype = onxi_type_dtype(input->type), rank = onxi_type_rank(input->type);
    if (dtype != ONX_FLOAT && dtype != ONX_DOUBLE && dtype != ONX_FLOAT16 && dtype != ONX_BFLOAT16)
        return onxi_fail(e->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "input %.*s has no elements that can be normalized",
                         ONX_ARG(e->edit->a));
    const int64_t channels = rank > 1 ? onxi_type_dim(input->type, 1) : 1;
    for (int i = 0; i < 2; i++) {
        const uint32_t count = i ? deviations : means;
        if (count != 1 && (rank < 2 || (channels >= 0 && count != channels)))
            return onxi_fail(e->cx, ONX_E_INVALID, ONXI_NOWHERE, "%u numbers for %lld channels", count,
                             (long long)channels);
    }
    ONX_TRY(open_around(e, &w, input, "normalize"));
    const onx_bytes mean = channel_constant(&w, "mean", numbers, means, rank),
                    deviation = channel_constant(&w, "deviation", numbers + CHANNELS_MAX, deviations, rank),
                    centred = new_value(&w, "centred");
    if (!mean.bits || !deviation.bits || !centred.bits || !add_node(&w, "Sub", input->name, mean, centred) ||
        !add_node(&w, "Div", centred, deviation, w.inner))
        return ONX_E_MEMORY;
    ONX_TRY(end_at(&w));
    return put_nodes(&w, true);
}

/* Batch and channels keep their sizes; height and width become those of the model. */
static onx_status add_resize(around *w, int64_t height, int64_t width, int64_t version)
{
    const int64_t zero[1] = { 0 }, two[1] = { 2 }, wanted[2] = { height, width }, one[1] = { 1 }, pair[1] = { 2 };
    const onx_bytes shape = new_value(w, "shape"), head = new_value(w, "head"), sizes = new_value(w, "sizes"),
                    from = add_constant(w, "from", ONX_INT64, 1, one, zero),
                    to = add_constant(w, "to", ONX_INT64, 1, one, two),
                    size = add_constant(w, "size", ONX_INT64, 1, pair, wanted);
    onx_arena *arena = w->e->arena;
    onx_node *node;
    if (!shape.bits || !head.bits || !sizes.bits || !from.bits || !to.bits || !size.bits ||
        !add_node(w, "Shape", w->end->name, (onx_bytes){ 0 }, shape) ||
        !(node = add_node(w, "Slice", shape, from, head)))
        return ONX_E_MEMORY;
    ONX_TRY(onx_list_add_text(arena, &node->input, &node->input_count, onx_view(to)));
    if (!(node = add_node(w, "Concat", head, size, sizes)) || !onx_node_add_int(arena, node, "axis", 0) ||
        !(node = add_node(w, "Resize", w->end->name, (onx_bytes){ 0 }, w->inner)))
        return ONX_E_MEMORY;
    onx_bytes none = { 0 };
    if (version < 13) { /* roi was not yet an optional input */
        const int64_t nothing[1] = { 0 };
        none = add_constant(w, "region", ONX_FLOAT, 1, nothing, "");
    }
    const onx_bytes scales = version < 13 ? none : (onx_bytes){ 0 };
    ONX_TRY(onx_list_add_text(arena, &node->input, &node->input_count, onx_view(none)));
    ONX_TRY(onx_list_add_text(arena, &node->input, &node->input_count, onx_view(scales)));
    ONX_TRY(onx_list_add_text(arena, &node->input, &node->input_count, onx_view(sizes)));
    if (!onx_node_add_string(arena, node, "mode", onx_str_of("linear")) ||
        (version >= 18 && !onx_node_add_int(arena, node, "antialias", 1)))
        return ONX_E_MEMORY;
    return ONX_OK;
}

onx_status onxi_edit_resize(onxi_editor *e)
{
    around w;
    int64_t version;
    onx_value_info *input = onxi_edit_input(e, e->edit->a);
    ONX_TRY(version_of(e, 11, &version));
    ONX_TRY(own_type(e, input, 4));
    const int64_t height = onxi_type_dim(input->type, 2), width = onxi_type_dim(input->type, 3);
    if (height < 1 || width < 1)
        return onxi_fail(e->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "input %.*s has no fixed height and width",
                         ONX_ARG(e->edit->a));
    ONX_TRY(open_around(e, &w, input, "resize"));
    ONX_TRY(add_resize(&w, height, width, version));
    static const char *const names[2] = { "height", "width" };
    for (int i = 0; i < 2; i++) {
        onx_dimension *d = input->type->tensor_type->shape->dim[2 + i];
        const onx_str symbol = onxi_arena_printf(e->arena, "%.*s_%s", ONX_ARG(e->edit->a), names[i]);
        ONX_CLEAR(dimension, d, dim_value);
        if (!symbol.len)
            return ONX_E_MEMORY;
        ONX_TRY(onx_arena_refer(e->arena, symbol, &d->dim_param));
        d->has |= onx_dimension_has_dim_param;
    }
    ONX_TRY(end_at(&w));
    return put_nodes(&w, true);
}

/* ---- after outputs ---- */

static onx_status axis_of(onxi_editor *e, const onx_value_info *output, int64_t *out)
{
    const int rank = onxi_type_rank(output->type);
    *out = -1;
    if (e->edit->b.len && !onxi_edit_number(e, e->edit->b, out))
        return ONX_E_MISUSE;
    if (*out < -rank || *out >= rank)
        return onxi_fail(e->cx, ONX_E_INVALID, ONXI_NOWHERE, "output %.*s of rank %d has no axis %lld",
                         ONX_ARG(e->edit->a), rank, (long long)*out);
    if (*out < 0)
        *out += rank;
    return ONX_OK;
}

onx_status onxi_edit_argmax(onxi_editor *e)
{
    around w;
    int64_t axis;
    onx_value_info *output = onxi_edit_output(e, e->edit->a);
    ONX_TRY(own_type(e, output, -1));
    ONX_TRY(axis_of(e, output, &axis));
    ONX_TRY(open_around(e, &w, output, "argmax"));
    onx_node *node = add_node(&w, "ArgMax", w.inner, (onx_bytes){ 0 }, output->name);
    if (!node || !onx_node_add_int(e->arena, node, "axis", axis) || !onx_node_add_int(e->arena, node, "keepdims", 0))
        return ONX_E_MEMORY;
    onx_tensor_shape *shape = output->type->tensor_type->shape;
    onx_list_remove((void *)shape->dim, &shape->dim_count, (uint32_t)axis, sizeof *shape->dim);
    ONX_SET(type_tensor, output->type->tensor_type, elem_type, ONX_INT64);
    return put_nodes(&w, false);
}

onx_status onxi_edit_softmax(onxi_editor *e)
{
    around w;
    int64_t axis, version;
    onx_value_info *output = onxi_edit_output(e, e->edit->a);
    ONX_TRY(own_type(e, output, -1));
    ONX_TRY(axis_of(e, output, &axis));
    /* before 13 all axes from that one on count as one */
    ONX_TRY(version_of(e, axis == onxi_type_rank(output->type) - 1 ? 1 : 13, &version));
    ONX_TRY(open_around(e, &w, output, "softmax"));
    onx_node *node = add_node(&w, "Softmax", w.inner, (onx_bytes){ 0 }, output->name);
    if (!node || !onx_node_add_int(e->arena, node, "axis", axis))
        return ONX_E_MEMORY;
    return put_nodes(&w, false);
}

/* infer_apply.c - writes the result into the model: value_info, and unknown parts of declared types. */
#include "infer/infer.h"

/* Sets the unknown dimensions of a declared shape. */
static void fill_shape(onx_infer *e, onx_arena *arena, onx_tensor_shape *shape, const onxi_type *type)
{
    if (!type->ranked || shape->dim_count != type->rank)
        return;
    for (uint32_t i = 0; i < type->rank; i++) {
        onx_dimension *d = shape->dim[i];
        onxi_dim known = type->dims[i];
        if (onxi_dim_is_const(known) && known >= 0) { /* a number is more specific than a name */
            ONX_CLEAR(dimension, d, dim_param);
            ONX_SET(dimension, d, dim_value, known);
        } else if (!ONX_HAS(dimension, d, dim_param) && !ONX_HAS(dimension, d, dim_value)) {
            onx_bytes text = onxi_infer_dim_text(e, arena, known);
            if (text.bits)
                ONX_SET(dimension, d, dim_param, text);
        }
    }
}

static onx_status fill_type(onx_infer *e, onx_arena *arena, onx_type **into, const onxi_type *type);

static onx_status fill_tensor(onx_infer *e, onx_arena *arena, onx_type *into, const onxi_type *type)
{
    bool sparse = type->kind == ONXI_TYPE_SPARSE_TENSOR;
    onx_tensor_shape *shape = sparse ? into->sparse_tensor_type->shape : into->tensor_type->shape;
    if (shape)
        fill_shape(e, arena, shape, type);
    else if (type->ranked) {
        onx_type *fresh;
        ONX_TRY(onxi_infer_type_write(e, arena, type, &fresh));
        if (sparse)
            ONX_SET(type_sparse_tensor, into->sparse_tensor_type, shape, fresh->sparse_tensor_type->shape);
        else
            ONX_SET(type_tensor, into->tensor_type, shape, fresh->tensor_type->shape);
    }
    if (sparse && !into->sparse_tensor_type->elem_type && type->dtype)
        ONX_SET(type_sparse_tensor, into->sparse_tensor_type, elem_type, type->dtype);
    if (!sparse && !into->tensor_type->elem_type && type->dtype)
        ONX_SET(type_tensor, into->tensor_type, elem_type, type->dtype);
    return ONX_OK;
}

static onx_status fill_type(onx_infer *e, onx_arena *arena, onx_type **into, const onxi_type *type)
{
    static const uint32_t bits[] = { 0,
                                     onx_type_has_tensor_type,
                                     onx_type_has_sparse_tensor_type,
                                     onx_type_has_sequence_type,
                                     onx_type_has_optional_type,
                                     onx_type_has_map_type,
                                     onx_type_has_opaque_type };
    uint32_t any = 0;
    for (size_t i = 1; i < sizeof bits / sizeof *bits; i++)
        any |= bits[i];
    if (type->kind == ONXI_TYPE_NONE)
        return ONX_OK;
    if (!*into || !((*into)->has & any) || !(*into)->tensor_type) {
        onx_bytes denotation = *into ? (*into)->denotation : (onx_bytes){ 0 };
        uint32_t had = *into ? (*into)->has & (uint32_t)onx_type_has_denotation : 0;
        ONX_TRY(onxi_infer_type_write(e, arena, type, into));
        (*into)->denotation = denotation;
        (*into)->has |= had;
        return ONX_OK;
    }
    if (!((*into)->has & bits[type->kind]))
        return ONX_OK; /* a contradiction, reported before */
    onx_type *t = *into;
    switch (type->kind) {
    case ONXI_TYPE_TENSOR:
    case ONXI_TYPE_SPARSE_TENSOR:
        return fill_tensor(e, arena, t, type);
    case ONXI_TYPE_SEQUENCE:
        t->sequence_type->has |= type->inner && type->inner->kind ? (uint32_t)onx_type_sequence_has_elem_type : 0u;
        return type->inner ? fill_type(e, arena, &t->sequence_type->elem_type, type->inner) : ONX_OK;
    case ONXI_TYPE_OPTIONAL:
        t->optional_type->has |= type->inner && type->inner->kind ? (uint32_t)onx_type_optional_has_elem_type : 0u;
        return type->inner ? fill_type(e, arena, &t->optional_type->elem_type, type->inner) : ONX_OK;
    case ONXI_TYPE_MAP:
        if (!t->map_type->key_type && type->dtype)
            ONX_SET(type_map, t->map_type, key_type, type->dtype);
        t->map_type->has |= type->inner && type->inner->kind ? (uint32_t)onx_type_map_has_value_type : 0u;
        return type->inner ? fill_type(e, arena, &t->map_type->value_type, type->inner) : ONX_OK;
    default:
        return ONX_OK;
    }
}

/* The declarations of a graph. Its lists are mostly in the order in which values are defined, and outputs are defined
 * late: so the declared value after the last match is tried first, then the last few of the lists; the name table is
 * only built when this fails. */
enum { LATE = 32 };
typedef struct declared {
    const onxi_infer_result *result;
    uint32_t next; /* in result->made */
    onxi_table table;
    bool indexed;
} declared;

static const onxi_infer_made *look_up(const declared *d, onx_str name)
{
    uint32_t hash = onxi_table_hash(&d->table, name);
    ONXI_TABLE_EACH (&d->table, hash, i)
        if (onx_str_equal(d->result->made[i].name, name))
            return &d->result->made[i];
    return NULL;
}

static onx_status index_declared(onx_infer *e, declared *d)
{
    const onxi_infer_result *result = d->result;
    uint32_t count = 0;
    for (uint32_t i = 0; i < result->count; i++)
        count += result->made[i].declared;
    d->table = onxi_table_in_arena(e->arena);
    if (!onxi_table_reserve(&d->table, count))
        return e->status = ONX_E_MEMORY;
    for (uint32_t i = 0; i < result->count && count; i++) {
        const onxi_infer_made *made = &result->made[i];
        if (!made->declared || look_up(d, made->name)) /* of a name that is defined twice, the first counts */
            continue;
        if (!onxi_table_add(&d->table, onxi_table_hash(&d->table, made->name), i))
            return e->status = ONX_E_MEMORY;
    }
    d->indexed = true;
    return ONX_OK;
}

static onx_status find_declared(onx_infer *e, declared *d, onx_str name, const onxi_infer_fact **out)
{
    const onxi_infer_result *r = d->result;
    while (d->next < r->count && !r->made[d->next].declared)
        d->next++;
    if (d->next < r->count && onx_str_equal(r->made[d->next].name, name)) {
        *out = r->made[d->next++].fact;
        return ONX_OK;
    }
    for (uint32_t i = r->count; i > 0 && i + LATE > r->count && !d->indexed; i--)
        if (r->made[i - 1].declared && onx_str_equal(r->made[i - 1].name, name)) {
            *out = r->made[i - 1].fact;
            d->next = i;
            return ONX_OK;
        }
    if (!d->indexed)
        ONX_TRY(index_declared(e, d));
    const onxi_infer_made *made = look_up(d, name);
    *out = made ? made->fact : NULL;
    if (made)
        d->next = (uint32_t)(made - r->made) + 1;
    return ONX_OK;
}

static onx_status fill_declared(onx_infer *e, declared *d, onx_arena *arena, onx_value_info *const *list,
                                uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const onxi_infer_fact *fact;
        ONX_TRY(find_declared(e, d, onx_view(list[i]->name), &fact));
        if (fact && fact->type.kind != ONXI_TYPE_NONE)
            ONX_TRY(fill_type(e, arena, &list[i]->type, &fact->type));
        else if (!list[i]->type && !(list[i]->type = ONXI_NEW(arena, onx_type))) /* declared without a type */
            return e->status = ONX_E_MEMORY;
        list[i]->has |= (uint32_t)onx_value_info_has_type;
    }
    return ONX_OK;
}

/* Declared types of inputs are not changed, except that fixed symbols are replaced by their sizes. */
static onx_status fix_inputs(onx_infer *e, declared *d, const onx_graph *graph)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const onx_type *type = graph->input[i]->type;
        const onxi_infer_fact *fact;
        ONX_TRY(find_declared(e, d, onx_view(graph->input[i]->name), &fact));
        const onx_tensor_shape *shape = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->shape : NULL;
        if (!shape || !fact || !fact->type.ranked || fact->type.rank != shape->dim_count)
            continue;
        for (uint32_t k = 0; k < shape->dim_count; k++)
            if (ONX_HAS(dimension, shape->dim[k], dim_param) && onxi_dim_is_const(fact->type.dims[k]) &&
                fact->type.dims[k] >= 0) {
                ONX_CLEAR(dimension, shape->dim[k], dim_param);
                ONX_SET(dimension, shape->dim[k], dim_value, fact->type.dims[k]);
            }
    }
    return ONX_OK;
}

/* A value_info and its type in one allocation, because there is one per value of the model. */
typedef struct tensor_info {
    onx_value_info info;
    onx_type type;
    onx_type_tensor tensor;
} tensor_info;

static onx_value_info *new_info(onx_infer *e, onx_arena *arena, const onxi_infer_made *made)
{
    const onxi_type *type = &made->fact->type;
    bool plain = type->kind == ONXI_TYPE_TENSOR;
    tensor_info *t = onx_arena_alloc(arena, plain ? sizeof *t : sizeof t->info);
    onx_value_info *info = t ? &t->info : NULL;
    if (!t || !onxi_bytes_refer(arena, made->name.ptr, made->name.len, &info->name))
        return NULL;
    info->has = (uint32_t)onx_value_info_has_name | (uint32_t)onx_value_info_has_type;
    if (!plain)
        return onxi_infer_type_write(e, arena, type, &info->type) == ONX_OK ? info : NULL;
    info->type = &t->type;
    ONX_SET(type, &t->type, tensor_type, &t->tensor);
    return onxi_infer_tensor_write(e, arena, type, &t->tensor) == ONX_OK ? info : NULL;
}

/* The last value_info of a shared fact, which the next one is copied from. */
typedef struct pattern {
    const onxi_infer_fact *fact;
    const tensor_info *info; /* its shape is stored after it */
    size_t size;
} pattern;

static void note_pattern(pattern *p, const onxi_infer_fact *fact, const onx_value_info *info)
{
    const tensor_info *t = (const tensor_info *)(const void *)info;
    if (fact->shared && (const void *)t->tensor.shape == (const void *)(t + 1))
        *p = (pattern){ fact, t, sizeof *t + onxi_infer_shape_size(fact->type.rank) };
}

static onx_value_info *copy_info(onx_arena *arena, const pattern *p, onx_str name)
{
    tensor_info *t = onxi_arena_get(arena, p->size);
    if (!t)
        return NULL;
    memcpy(t, p->info, p->size);
    t->info.type = &t->type;
    t->type.tensor_type = &t->tensor;
    t->tensor.shape = onxi_infer_shape_place(t + 1, p->fact->type.rank);
    return onxi_bytes_refer(arena, name.ptr, name.len, &t->info.name) ? &t->info : NULL;
}

static bool is_new(const onxi_infer_made *made)
{
    return !made->declared && made->fact->type.kind != ONXI_TYPE_NONE;
}

/* Appends all new value_info entries at once, so that the list grows once. */
static onx_status add_value_info(onx_infer *e, onxi_infer_result *result, onx_arena *arena, onx_graph *graph)
{
    uint64_t total = graph->value_info_count;
    for (uint32_t i = result->input_count; i < result->count; i++)
        total += is_new(&result->made[i]);
    if (total == graph->value_info_count)
        return ONX_OK;
    if (total > UINT32_MAX)
        return onxi_fail(e->cx, ONX_E_LIMIT, ONXI_NOWHERE, "the graph would have %llu value_info entries",
                         (unsigned long long)total);
    onx_value_info **list = onxi_arena_get(arena, onxi_list_room(total) * sizeof *list);
    if (!list)
        return e->status = ONX_E_MEMORY;
    if (graph->value_info_count)
        memcpy(list, graph->value_info, graph->value_info_count * sizeof *list);
    enum { PATTERNS = 16 };
    pattern patterns[PATTERNS] = { { .fact = NULL } };
    uint32_t at = graph->value_info_count;
    for (uint32_t i = result->input_count; i < result->count; i++) {
        const onxi_infer_made *made = &result->made[i];
        if (!is_new(made))
            continue;
        pattern *p = &patterns[((uintptr_t)made->fact >> 6) % PATTERNS];
        const bool known = p->fact == made->fact;
        list[at] = known ? copy_info(arena, p, made->name) : new_info(e, arena, made);
        if (!list[at])
            return e->status = ONX_E_MEMORY;
        if (!known)
            note_pattern(p, made->fact, list[at]);
        at++;
        result->made[i].declared = true; /* in case the result is written again */
    }
    graph->value_info = list;
    graph->value_info_count = at;
    return ONX_OK;
}

static onx_status apply(onx_infer *e)
{
    if (!e->doc)
        return onxi_fail(e->cx, ONX_E_MISUSE, ONXI_NOWHERE, "there is no model to write to");
    if (e->may_cycle || e->cut || (e->model && e->model->functions_count)) /* not all functions are called */
        ONX_TRY(onxi_doc_warn_of_cycle(e->doc, ONXI_CYCLE_UNTYPED));
    if (!e->again) /* no dimension was fixed after inference; fixing one later requires a second walk */
        onxi_infer_main_free(e);
    e->applied = true;
    onx_arena *arena = onx_doc_arena(e->doc);
    for (onxi_infer_result *r = e->results; r; r = r->next) {
        /* The engine does not change the document during inference; this is the only place that writes to it. */
        onx_graph *graph = (onx_graph *)(uintptr_t)r->graph;
        declared d = { .result = r, .next = r->input_count };
        if (!r->settled)
            ONX_TRY(fill_declared(e, &d, arena, graph->value_info, graph->value_info_count));
        ONX_TRY(fill_declared(e, &d, arena, graph->output, graph->output_count));
        d.next = 0;
        if (graph != (e->model ? e->model->graph : NULL))
            ONX_TRY(fill_declared(e, &d, arena, graph->input, graph->input_count));
        else
            ONX_TRY(fix_inputs(e, &d, graph));
        ONX_TRY(add_value_info(e, r, arena, graph));
    }
    return e->status;
}

onx_status onx_infer_apply(onx_infer *e)
{
    ONXI_NEED(NULL, e);
    ONXI_CALL(e->cx, apply(e));
}

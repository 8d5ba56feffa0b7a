/* infer_type.c - types of the engine: conversion from and to TypeProto, merging, printing. */
#include "infer/infer.h"

#include <stdio.h>

/* ---- from TypeProto ---- */

/* Equal names, and formulas over names, claim that sizes are related. Without claims each is a size of its own, unless
 * the caller has fixed it. */
static onxi_dim named_size(onx_infer *e, onx_str text)
{
    int64_t size;
    if (!e->proven)
        return onxi_dim_parse(e->dims, text);
    if (onxi_dims_fixed(e->dims, text, &size) || (e->same.len && onx_str_equal(text, e->same)))
        return onxi_dim_symbol(e->dims, text);
    onxi_dict_entry *entry = onxi_dim_is_name(text) ? onxi_dict_at(&e->named, text, 0, NULL) : NULL;
    if (!entry)
        return ONXI_DIM_UNKNOWN;
    if (++entry->value > 1)
        text = onxi_arena_printf(e->arena, "%.*s'%u", ONX_ARG(text), entry->value);
    return onxi_dim_symbol(e->dims, text);
}

static onx_status read_shape(onx_infer *e, const onx_tensor_shape *shape, onxi_type *out)
{
    if (!shape)
        return ONX_OK;
    size_t size;
    if (!onxi_mul_size(shape->dim_count ? shape->dim_count : 1, sizeof(onxi_dim), &size))
        return e->status = ONX_E_MEMORY;
    onxi_dim *dims = onxi_arena_get(e->arena, size);
    if (!dims)
        return e->status = ONX_E_MEMORY;
    for (uint32_t i = 0; i < shape->dim_count; i++) {
        const onx_dimension *d = shape->dim[i];
        dims[i] = ONXI_DIM_UNKNOWN;
        if (ONX_HAS(dimension, d, dim_value) && d->dim_value >= 0)
            dims[i] = d->dim_value;
        else if (ONX_HAS(dimension, d, dim_param))
            dims[i] = named_size(e, onx_view(d->dim_param));
        if (!onxi_dim_is_known(dims[i]) || (onxi_dim_is_const(dims[i]) && dims[i] < 0))
            dims[i] = onxi_dim_fresh(e->dims, "unk_");
    }
    out->ranked = true;
    out->rank = shape->dim_count;
    out->dims = dims;
    return ONX_OK;
}

static onx_status read_type(onx_infer *e, const onx_type *type, uint32_t depth, onxi_type *out);

static onx_status read_inner(onx_infer *e, const onx_type *type, uint32_t depth, onxi_type *out)
{
    onxi_type *inner = ONXI_NEW(e->arena, onxi_type);
    if (!inner)
        return e->status = ONX_E_MEMORY;
    out->inner = inner;
    return type ? read_type(e, type, depth + 1, inner) : ONX_OK;
}

static uint8_t dtype_of(int32_t number)
{
    return onx_dtype_name(number) ? (uint8_t)number : (uint8_t)ONX_UNDEFINED;
}

static onx_status read_type(onx_infer *e, const onx_type *type, uint32_t depth, onxi_type *out)
{
    *out = (onxi_type){ .kind = ONXI_TYPE_NONE };
    if (depth > onx_ctx_limits(e->cx).depth)
        return onxi_fail(e->cx, ONX_E_LIMIT, ONXI_NOWHERE, "a type is nested more than %u levels deep",
                         onx_ctx_limits(e->cx).depth);
    if (ONX_HAS(type, type, tensor_type) && type->tensor_type) {
        out->kind = ONXI_TYPE_TENSOR;
        out->dtype = dtype_of(type->tensor_type->elem_type);
        return read_shape(e, type->tensor_type->shape, out);
    }
    if (ONX_HAS(type, type, sparse_tensor_type) && type->sparse_tensor_type) {
        out->kind = ONXI_TYPE_SPARSE_TENSOR;
        out->dtype = dtype_of(type->sparse_tensor_type->elem_type);
        return read_shape(e, type->sparse_tensor_type->shape, out);
    }
    if (ONX_HAS(type, type, sequence_type) && type->sequence_type) {
        out->kind = ONXI_TYPE_SEQUENCE;
        return read_inner(e, type->sequence_type->elem_type, depth, out);
    }
    if (ONX_HAS(type, type, optional_type) && type->optional_type) {
        out->kind = ONXI_TYPE_OPTIONAL;
        return read_inner(e, type->optional_type->elem_type, depth, out);
    }
    if (ONX_HAS(type, type, map_type) && type->map_type) {
        out->kind = ONXI_TYPE_MAP;
        out->dtype = dtype_of(type->map_type->key_type);
        return read_inner(e, e->proven ? NULL : type->map_type->value_type, depth, out); /* runs do not check it */
    }
    if (ONX_HAS(type, type, opaque_type) && type->opaque_type) {
        out->kind = ONXI_TYPE_OPAQUE;
        onxi_opaque *opaque = ONXI_NEW(e->arena, onxi_opaque);
        if (!opaque)
            return e->status = ONX_E_MEMORY;
        *opaque = (onxi_opaque){ onx_view(type->opaque_type->domain), onx_view(type->opaque_type->name) };
        out->opaque = opaque;
    }
    return ONX_OK;
}

onx_status onxi_infer_type_read(onx_infer *e, const onx_type *type, onxi_type *out)
{
    return read_type(e, type, 0, out);
}

bool onxi_infer_type_plain(const onx_type *type, onxi_type *out)
{
    const onx_type_tensor *t = ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
    const onx_tensor_shape *shape = t ? t->shape : NULL;
    const uint8_t dtype = shape ? dtype_of(t->elem_type) : 0;
    if (!dtype || shape->dim_count > ONXI_INFER_PLAIN_RANK)
        return false;
    for (uint32_t i = 0; i < shape->dim_count; i++) {
        const onx_dimension *d = shape->dim[i];
        if (!ONX_HAS(dimension, d, dim_value) || d->dim_value < 0)
            return false;
        out->dims[i] = d->dim_value;
    }
    *out = (onxi_type){
        .kind = ONXI_TYPE_TENSOR, .dtype = dtype, .ranked = true, .rank = shape->dim_count, .dims = out->dims
    };
    return true;
}

/* ---- to TypeProto ---- */

onx_bytes onxi_infer_dim_text(onx_infer *e, onx_arena *arena, onxi_dim d)
{
    static const onx_bytes none = { 0 };
    if (onxi_dim_is_const(d) || !onxi_dim_is_known(d) || (e->options.plain_names && !onxi_dim_is_symbol(e->dims, d)))
        return none;
    uint32_t index = (uint32_t)((uint64_t)d - (uint64_t)INT64_MIN);
    if (e->dim_text_arena != arena) { /* queries and applied results use separate arenas */
        if (e->dim_text_count)
            memset(e->dim_texts, 0, e->dim_text_count * sizeof *e->dim_texts);
        e->dim_text_arena = arena;
    }
    const uint32_t before = e->dim_text_count;
    if (!ONXI_GROW_IN(e->arena, e->dim_texts, e->dim_text_count, (uint64_t)index + 1))
        return none;
    if (e->dim_text_count > before)
        memset(e->dim_texts + before, 0, (e->dim_text_count - before) * sizeof *e->dim_texts);
    if (e->dim_texts[index].bits)
        return e->dim_texts[index];
    char buf[1024];
    size_t len = onxi_dim_print(e->dims, d, buf, sizeof buf);
    onx_bytes text = { 0 };
    if (len && len < sizeof buf && onx_arena_keep(arena, onx_str_make(buf, len), &text) == ONX_OK)
        e->dim_texts[index] = text;
    return text;
}

/* A shape, its list and its dimensions are one allocation, because there is one per value of the model. */
size_t onxi_infer_shape_size(uint32_t rank)
{
    size_t dims;
    const size_t head = sizeof(onx_tensor_shape) + (size_t)onxi_list_room(rank) * sizeof(onx_dimension *);
    return onxi_mul_size(rank, sizeof(onx_dimension), &dims) && dims <= SIZE_MAX / 4 ? head + dims : 0;
}

onx_tensor_shape *onxi_infer_shape_place(void *memory, uint32_t rank)
{
    onx_tensor_shape *shape = memory;
    onx_dimension **list = (onx_dimension **)(void *)(shape + 1);
    onx_dimension *dim = (onx_dimension *)(void *)(list + onxi_list_room(rank));
    shape->dim = rank ? list : NULL;
    shape->dim_count = rank;
    for (uint32_t i = 0; i < rank; i++)
        list[i] = dim + i;
    return shape;
}

static onx_status write_shape(onx_infer *e, onx_arena *arena, const onxi_type *type, onx_tensor_shape **out)
{
    *out = NULL;
    if (!type->ranked)
        return ONX_OK;
    const size_t size = onxi_infer_shape_size(type->rank);
    void *memory = size ? onx_arena_alloc(arena, size) : NULL;
    if (!memory)
        return e->status = ONX_E_MEMORY;
    onx_tensor_shape *shape = onxi_infer_shape_place(memory, type->rank);
    for (uint32_t i = 0; i < type->rank; i++) {
        onx_dimension *dim = shape->dim[i];
        onxi_dim d = type->dims[i];
        if (onxi_dim_is_const(d)) {
            if (d >= 0)
                ONX_SET(dimension, dim, dim_value, d);
        } else {
            onx_bytes text = onxi_infer_dim_text(e, arena, d);
            if (text.bits)
                ONX_SET(dimension, dim, dim_param, text);
        }
    }
    *out = shape;
    return ONX_OK;
}

onx_status onxi_infer_tensor_write(onx_infer *e, onx_arena *arena, const onxi_type *type, onx_type_tensor *tensor)
{
    if (type->dtype)
        ONX_SET(type_tensor, tensor, elem_type, type->dtype);
    ONX_TRY(write_shape(e, arena, type, &tensor->shape));
    if (tensor->shape)
        tensor->has |= (uint32_t)onx_type_tensor_has_shape;
    return ONX_OK;
}

static onx_status write_tensor(onx_infer *e, onx_arena *arena, const onxi_type *type, onx_type *out)
{
    onx_type_tensor *tensor = ONXI_NEW(arena, onx_type_tensor);
    if (!tensor)
        return e->status = ONX_E_MEMORY;
    ONX_SET(type, out, tensor_type, tensor);
    return onxi_infer_tensor_write(e, arena, type, tensor);
}

static onx_status write_sparse(onx_infer *e, onx_arena *arena, const onxi_type *type, onx_type *out)
{
    onx_type_sparse_tensor *tensor = ONXI_NEW(arena, onx_type_sparse_tensor);
    if (!tensor)
        return e->status = ONX_E_MEMORY;
    if (type->dtype)
        ONX_SET(type_sparse_tensor, tensor, elem_type, type->dtype);
    ONX_TRY(write_shape(e, arena, type, &tensor->shape));
    if (tensor->shape)
        tensor->has |= onx_type_sparse_tensor_has_shape;
    ONX_SET(type, out, sparse_tensor_type, tensor);
    return ONX_OK;
}

/* Sequences, optionals and maps. */
static onx_status write_container(onx_infer *e, onx_arena *arena, const onxi_type *type, onx_type *out)
{
    onx_type *inner = NULL;
    if (type->inner)
        ONX_TRY(onxi_infer_type_write(e, arena, type->inner, &inner));
    if (type->kind == ONXI_TYPE_MAP) {
        onx_type_map *map = ONXI_NEW(arena, onx_type_map);
        if (!map)
            return e->status = ONX_E_MEMORY;
        if (type->dtype)
            ONX_SET(type_map, map, key_type, type->dtype);
        if (inner)
            ONX_SET(type_map, map, value_type, inner);
        ONX_SET(type, out, map_type, map);
    } else if (type->kind == ONXI_TYPE_SEQUENCE) {
        onx_type_sequence *sequence = ONXI_NEW(arena, onx_type_sequence);
        if (!sequence)
            return e->status = ONX_E_MEMORY;
        if (inner)
            ONX_SET(type_sequence, sequence, elem_type, inner);
        ONX_SET(type, out, sequence_type, sequence);
    } else {
        onx_type_optional *optional = ONXI_NEW(arena, onx_type_optional);
        if (!optional)
            return e->status = ONX_E_MEMORY;
        if (inner)
            ONX_SET(type_optional, optional, elem_type, inner);
        ONX_SET(type, out, optional_type, optional);
    }
    return ONX_OK;
}

static onx_status write_opaque(onx_infer *e, onx_arena *arena, const onxi_type *type, onx_type *out)
{
    onx_type_opaque *opaque = ONXI_NEW(arena, onx_type_opaque);
    if (!opaque)
        return e->status = ONX_E_MEMORY;
    ONX_TRY(onx_arena_keep(arena, type->opaque->domain, &opaque->domain));
    ONX_TRY(onx_arena_keep(arena, type->opaque->name, &opaque->name));
    opaque->has = (type->opaque->domain.len ? (uint32_t)onx_type_opaque_has_domain : 0u) |
                  (type->opaque->name.len ? (uint32_t)onx_type_opaque_has_name : 0u);
    ONX_SET(type, out, opaque_type, opaque);
    return ONX_OK;
}

onx_status onxi_infer_type_write(onx_infer *e, onx_arena *arena, const onxi_type *type, onx_type **out)
{
    *out = NULL;
    if (type->kind == ONXI_TYPE_NONE)
        return ONX_OK;
    onx_type *t = ONXI_NEW(arena, onx_type);
    if (!t)
        return e->status = ONX_E_MEMORY;
    *out = t;
    switch (type->kind) {
    case ONXI_TYPE_TENSOR:
        return write_tensor(e, arena, type, t);
    case ONXI_TYPE_SPARSE_TENSOR:
        return write_sparse(e, arena, type, t);
    case ONXI_TYPE_OPAQUE:
        return write_opaque(e, arena, type, t);
    default:
        return write_container(e, arena, type, t);
    }
}

/* ---- merging ---- */

static const char *const kind_names[] = { "nothing",     "a tensor", "a sparse tensor", "a sequence",
                                          "an optional", "a map",    "an opaque value" };

static bool merge_dims(onx_infer *e, const onxi_type *from, onxi_type *into, char *why, size_t why_size)
{
    if (!from->ranked)
        return true;
    if (!into->ranked) {
        into->ranked = true;
        into->rank = from->rank;
        into->dims = from->dims;
        return true;
    }
    if (from->rank != into->rank) {
        (void)snprintf(why, why_size, "rank %u and rank %u", from->rank, into->rank);
        return false;
    }
    onxi_dim *dims = into->dims;
    for (uint32_t i = 0; i < from->rank; i++) {
        onxi_dim a = from->dims[i], b = into->dims[i], better = b;
        if (a == b)
            continue;
        if (onxi_dim_is_const(a) && onxi_dim_is_const(b)) {
            (void)snprintf(why, why_size, "size %lld and size %lld at axis %u", (long long)a, (long long)b, i);
            return false;
        }
        /* A number is the most specific, then an expression over the model's symbols, then a symbol of the engine. */
        if (onxi_dim_is_known(a) && (!onxi_dim_is_known(b) || onxi_dim_is_const(a) || onxi_dim_is_fresh(e->dims, b)))
            better = a;
        if (better == b)
            continue;
        if (dims == into->dims) { /* the array is shared: change a copy */
            dims = onxi_arena_get(e->arena, into->rank * sizeof *dims);
            if (!dims) {
                e->status = ONX_E_MEMORY;
                return true;
            }
            memcpy(dims, into->dims, into->rank * sizeof *dims);
        }
        dims[i] = better;
    }
    into->dims = dims;
    return true;
}

static bool merge_into(onx_infer *e, const onxi_type *from, onxi_type *into, char *why, size_t why_size)
{
    if (from->kind == ONXI_TYPE_NONE)
        return true;
    if (into->kind == ONXI_TYPE_NONE) {
        *into = *from;
        return true;
    }
    if (from->kind != into->kind) {
        (void)snprintf(why, why_size, "%s and %s", kind_names[from->kind], kind_names[into->kind]);
        return false;
    }
    if (from->dtype && into->dtype && from->dtype != into->dtype) {
        (void)snprintf(why, why_size, "%s %s and %s", from->kind == ONXI_TYPE_MAP ? "keys of type" : "element type",
                       onx_dtype_name(from->dtype), onx_dtype_name(into->dtype));
        return false;
    }
    if (!into->dtype)
        into->dtype = from->dtype;
    if (from->kind == ONXI_TYPE_TENSOR || from->kind == ONXI_TYPE_SPARSE_TENSOR)
        return merge_dims(e, from, into, why, why_size);
    if (from->kind == ONXI_TYPE_OPAQUE) {
        const onxi_opaque *a = from->opaque, *b = into->opaque;
        bool same = (!a->name.len || !b->name.len || onx_str_equal(a->name, b->name)) &&
                    (!a->domain.len || !b->domain.len || onx_str_equal(a->domain, b->domain));
        if (!same)
            (void)snprintf(why, why_size, "opaque %.*s and opaque %.*s", ONX_ARG(a->name), ONX_ARG(b->name));
        return same;
    }
    if (!from->inner)
        return true;
    onxi_type *inner = ONXI_NEW(e->arena, onxi_type);
    if (!inner) {
        e->status = ONX_E_MEMORY;
        return true;
    }
    if (into->inner)
        *inner = *into->inner;
    if (!merge_into(e, from->inner, inner, why, why_size))
        return false;
    into->inner = inner;
    return true;
}

bool onxi_infer_type_merge(onx_infer *e, const onxi_type *from, onxi_type *into, char *why, size_t why_size)
{
    onxi_type merged = *into;
    if (!merge_into(e, from, &merged, why, why_size))
        return false;
    *into = merged;
    return true;
}

/* ---- comparing ---- */

static bool same_type(const onxi_type *a, const onxi_type *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->ranked != b->ranked || (a->ranked && a->rank != b->rank))
        return false;
    if (a->ranked && a->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) != 0)
        return false;
    if (a->opaque != b->opaque && (!a->opaque || !b->opaque || !onx_str_equal(a->opaque->name, b->opaque->name) ||
                                   !onx_str_equal(a->opaque->domain, b->opaque->domain)))
        return false;
    return a->inner == b->inner || (a->inner && b->inner && same_type(a->inner, b->inner));
}

static bool same_value(const onxi_known_ints *a, const onxi_known_ints *b)
{
    if (!a || !b)
        return a == b;
    return a->rank == b->rank && a->count == b->count && a->floored == b->floored &&
           (!a->count || memcmp(a->elements, b->elements, a->count * sizeof *a->elements) == 0);
}

/* Elements of a tensor are read on demand, and may not have been read for the new fact. */
bool onxi_infer_fact_same(const onxi_infer_fact *a, const onxi_infer_fact *b)
{
    bool both_lazy = a->tensor && a->tensor == b->tensor && !(a->value && b->value);
    return a->tensor == b->tensor && a->omitted == b->omitted &&
           (both_lazy || (a->constant == b->constant && same_value(a->value, b->value))) &&
           same_type(&a->type, &b->type);
}

bool onxi_infer_type_materialize(onx_infer *e, onxi_type *type)
{
    bool any = false;
    if (type->ranked) {
        for (uint32_t i = 0; i < type->rank; i++) {
            /* A rule may compute a negative size without noticing; it is treated as unknown. */
            if (onxi_dim_exists(e->dims, type->dims[i]) && (!onxi_dim_is_const(type->dims[i]) || type->dims[i] >= 0))
                continue;
            type->dims[i] = onxi_dim_fresh(e->dims, "unk_");
            any = true;
        }
    } else if (type->inner) {
        onxi_type inner = *type->inner;
        if (onxi_infer_type_materialize(e, &inner)) {
            any = true;
            onxi_type *kept = ONXI_NEW(e->arena, onxi_type);
            if (kept) {
                *kept = inner;
                type->inner = kept;
            }
        }
    }
    return any;
}

/* ---- printing ---- */

typedef struct text {
    char *buf;
    size_t size, len;
} text;

static void put(text *t, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++, t->len++)
        if (t->len + 1 < t->size)
            t->buf[t->len] = s[i];
}

static void put_text(text *t, const char *s)
{
    put(t, s, strlen(s));
}

static void print_type(text *t, const onxi_dims *dims, const onxi_type *type)
{
    static const char *const containers[] = { "", "", "sparse_tensor(", "seq(", "optional(", "map(", "opaque(" };
    const char *dtype = onx_dtype_name(type->dtype);
    put_text(t, containers[type->kind]);
    if (type->kind == ONXI_TYPE_NONE) {
        put_text(t, "?");
        return;
    }
    if (type->kind == ONXI_TYPE_OPAQUE) {
        put(t, type->opaque->name.ptr, type->opaque->name.len);
        put_text(t, ")");
        return;
    }
    if (type->kind == ONXI_TYPE_TENSOR || type->kind == ONXI_TYPE_SPARSE_TENSOR) {
        put_text(t, dtype ? dtype : "?");
        if (!type->ranked)
            put_text(t, "[...]");
        for (uint32_t i = 0; type->ranked && i < type->rank; i++) {
            char buf[1024];
            size_t len = onxi_dim_print(dims, type->dims[i], buf, sizeof buf);
            put_text(t, i ? "," : "[");
            put(t, len ? buf : "?", len ? (len < sizeof buf ? len : sizeof buf - 1) : 1);
        }
        if (type->ranked && type->rank)
            put_text(t, "]");
        if (type->kind == ONXI_TYPE_SPARSE_TENSOR)
            put_text(t, ")");
        return;
    }
    if (type->kind == ONXI_TYPE_MAP) {
        put_text(t, dtype ? dtype : "?");
        put_text(t, ",");
    }
    static const onxi_type nothing = { .kind = ONXI_TYPE_NONE };
    print_type(t, dims, type->inner ? type->inner : &nothing);
    put_text(t, ")");
}

size_t onxi_infer_type_print(const onxi_dims *dims, const onxi_type *type, char *buf, size_t size)
{
    text t = { .buf = buf, .size = size, .len = 0 };
    print_type(&t, dims, type);
    if (size)
        buf[t.len < size ? t.len : size - 1] = '\0';
    return t.len;
}

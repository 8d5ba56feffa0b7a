/* value_message.c - converts values from and to the messages that store them: TensorProto, SequenceProto, MapProto,
 * OptionalProto. */
#include "value/value.h"

static onx_status from_tensor(onx_value *v, onx_doc *doc, const onx_tensor *t)
{
    onx_ctx *cx = v->cx;
    uint64_t count;
    if (!onx_tensor_count(t, &count))
        return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the dims of the tensor are impossible");
    if (!onx_dtype_name(t->data_type))
        return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the tensor has no known element type (%d)",
                         (int)t->data_type);
    if (t->data_type == ONX_STRING && t->string_data_count != count)
        return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the tensor has %u strings, its dims ask for %llu",
                         t->string_data_count, (unsigned long long)count);
    uint64_t size; /* the message is checked to have this much data before memory is allocated */
    if (t->data_type != ONX_STRING)
        ONX_TRY(onxi_tensor_measure(doc, t, &size));
    ONX_TRY(onx_value_reset(v, (onx_dtype)t->data_type, t->dims_count, t->dims));
    if (t->data_type != ONX_STRING)
        return onxi_tensor_copy(doc, t, v->data, v->size);
    uint64_t total = 0, at = 0;
    for (uint64_t i = 0; i < count; i++)
        total += onx_view(t->string_data[i]).len;
    ONX_TRY(onxi_value_memory(cx, &v->text, 0, total));
    v->text_room = total;
    v->text_spare = 0;
    for (uint64_t i = 0; i < count; i++) {
        onx_str s = onx_view(t->string_data[i]);
        if (s.len)
            memcpy(v->text + at, s.ptr, s.len);
        ((onx_str *)v->data)[i] = onx_str_make(s.len ? v->text + at : NULL, s.len);
        at += s.len;
    }
    return ONX_OK;
}

/* The shape of the indices is [nnz] (linear) or [nnz, rank]. */
static onx_status from_sparse(onx_value *v, onx_doc *doc, const onx_sparse_tensor *s)
{
    onx_ctx *cx = v->cx;
    if (!s->values || !s->indices || s->values->dims_count != 1 || s->indices->dims_count < 1 ||
        s->indices->dims_count > 2)
        return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the sparse tensor lacks values or indices of rank 1 or 2");
    uint64_t bits = onx_dtype_bits(s->values->data_type), nnz, index_count, width = bits / 8;
    if (bits < 8 || !onx_tensor_count(s->values, &nnz) || !onx_tensor_count(s->indices, &index_count))
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "sparse tensors of this type are not supported");
    bool flat = s->indices->dims_count == 1;
    if (index_count != (flat ? nnz : nnz * s->dims_count))
        return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the sparse tensor has %llu values and %llu indices",
                         (unsigned long long)nnz, (unsigned long long)index_count);
    onx_str bytes;
    ONX_TRY(onx_tensor_bytes(doc, s->values, &bytes));
    if (bytes.len != nnz * width)
        return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the values of the sparse tensor do not fit their dims");
    ONX_TRY(onx_value_reset(v, (onx_dtype)s->values->data_type, s->dims_count, s->dims));
    if (v->size)
        memset(v->data, 0, v->size);
    for (uint64_t i = 0; i < nnz; i++) {
        uint64_t at = 0;
        for (uint32_t d = 0; d < (flat ? 1u : s->dims_count); d++) {
            int64_t x;
            ONX_TRY(onx_tensor_get_i64(doc, s->indices, flat ? i : i * s->dims_count + d, 1, &x));
            uint64_t bound = flat ? v->count : (uint64_t)v->dims[d];
            if (x < 0 || (uint64_t)x >= bound)
                return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE,
                                 "index %lld of the sparse tensor is outside of its dims", (long long)x);
            at = flat ? (uint64_t)x : at * (uint64_t)v->dims[d] + (uint64_t)x;
        }
        memcpy((char *)v->data + at * width, bytes.ptr + i * width, width);
    }
    return ONX_OK;
}

static onx_status from_any(onx_ctx *cx, onx_doc *doc, onx_kind kind, const void *message, uint32_t depth,
                           onx_value **out);

static onx_status add_item(onx_value *list, onx_doc *doc, onx_kind kind, const void *message, uint32_t depth)
{
    onx_value *item;
    ONX_TRY(from_any(list->cx, doc, kind, message, depth, &item));
    if (list->kind == ONX_VALUE_SEQUENCE && !list->count && item->kind == ONX_VALUE_TENSOR)
        list->dtype = item->dtype;
    onx_status status = onx_value_insert(list, list->count, item);
    onx_value_free(item);
    return status;
}

static onx_status from_sequence(onx_value *v, onx_doc *doc, const onx_sequence *s, uint32_t depth)
{
    ONX_TRY(onx_value_reset_list(v, ONX_VALUE_SEQUENCE, ONX_UNDEFINED));
    for (uint32_t i = 0; i < s->tensor_values_count; i++)
        ONX_TRY(add_item(v, doc, ONX_KIND_TENSOR, s->tensor_values[i], depth));
    for (uint32_t i = 0; i < s->sparse_tensor_values_count; i++)
        ONX_TRY(add_item(v, doc, ONX_KIND_SPARSE_TENSOR, s->sparse_tensor_values[i], depth));
    for (uint32_t i = 0; i < s->sequence_values_count; i++)
        ONX_TRY(add_item(v, doc, ONX_KIND_SEQUENCE, s->sequence_values[i], depth));
    for (uint32_t i = 0; i < s->map_values_count; i++)
        ONX_TRY(add_item(v, doc, ONX_KIND_MAP, s->map_values[i], depth));
    for (uint32_t i = 0; i < s->optional_values_count; i++)
        ONX_TRY(add_item(v, doc, ONX_KIND_OPTIONAL, s->optional_values[i], depth));
    return ONX_OK;
}

static onx_status from_map(onx_value *v, onx_doc *doc, const onx_map *m, uint32_t depth)
{
    bool text = m->key_type == ONX_STRING;
    uint32_t count = text ? m->string_keys_count : m->keys_count;
    ONX_TRY(onx_value_reset_list(v, ONX_VALUE_MAP, (onx_dtype)(text ? ONX_STRING : ONX_INT64)));
    const onx_sequence *values = m->values;
    if (count && (!values || values->tensor_values_count != count))
        return onxi_fail(v->cx, ONX_E_INVALID, ONXI_NOWHERE, "the map has %u keys and %u values", count,
                         values ? values->tensor_values_count : 0);
    for (uint32_t i = 0; i < count; i++) {
        ONX_TRY(add_item(v, doc, ONX_KIND_TENSOR, values->tensor_values[i], depth));
        if (!text)
            ((int64_t *)v->data)[i] = m->keys[i];
    }
    for (uint32_t i = 0; text && i < count; i++) /* refers to the message until all strings are copied at the end */
        ((onx_str *)v->data)[i] = onx_view(m->string_keys[i]);
    return onxi_value_own_texts(v);
}

static onx_status from_optional(onx_value *v, onx_doc *doc, const onx_optional *o, uint32_t depth)
{
    ONX_TRY(onx_value_reset_list(v, ONX_VALUE_OPTIONAL, ONX_UNDEFINED));
    if (o->tensor_value)
        return add_item(v, doc, ONX_KIND_TENSOR, o->tensor_value, depth);
    if (o->sparse_tensor_value)
        return add_item(v, doc, ONX_KIND_SPARSE_TENSOR, o->sparse_tensor_value, depth);
    if (o->sequence_value)
        return add_item(v, doc, ONX_KIND_SEQUENCE, o->sequence_value, depth);
    if (o->map_value)
        return add_item(v, doc, ONX_KIND_MAP, o->map_value, depth);
    if (o->optional_value)
        return add_item(v, doc, ONX_KIND_OPTIONAL, o->optional_value, depth);
    return ONX_OK;
}

static onx_status from_any(onx_ctx *cx, onx_doc *doc, onx_kind kind, const void *message, uint32_t depth,
                           onx_value **out)
{
    if (depth >= onx_ctx_limits(cx).depth)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "values are nested more than %u levels deep",
                         onx_ctx_limits(cx).depth);
    ONX_TRY(onx_value_new(cx, out));
    onx_status status;
    switch (kind) {
    case ONX_KIND_TENSOR:
        status = from_tensor(*out, doc, message);
        break;
    case ONX_KIND_SPARSE_TENSOR:
        status = from_sparse(*out, doc, message);
        break;
    case ONX_KIND_SEQUENCE:
        status = from_sequence(*out, doc, message, depth + 1);
        break;
    case ONX_KIND_MAP:
        status = from_map(*out, doc, message, depth + 1);
        break;
    case ONX_KIND_OPTIONAL:
        status = from_optional(*out, doc, message, depth + 1);
        break;
    default:
        status = onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "a %s holds no value", onx_kind_proto_name(kind));
        break;
    }
    if (status != ONX_OK) {
        onx_value_free(*out);
        *out = NULL;
    }
    return status;
}

onx_status onx_value_from_message(onx_ctx *cx, onx_doc *doc, onx_kind kind, const void *message, onx_value **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_NEED(cx, message);
    return from_any(cx, doc, kind, message, 0, out);
}

onx_kind onx_value_kind_of_type(const onx_type *type)
{
    if (!type)
        return ONX_KIND_NONE;
    if (ONX_HAS(type, type, tensor_type))
        return ONX_KIND_TENSOR;
    if (ONX_HAS(type, type, sparse_tensor_type))
        return ONX_KIND_SPARSE_TENSOR;
    if (ONX_HAS(type, type, sequence_type))
        return ONX_KIND_SEQUENCE;
    if (ONX_HAS(type, type, map_type))
        return ONX_KIND_MAP;
    return ONX_HAS(type, type, optional_type) ? ONX_KIND_OPTIONAL : ONX_KIND_NONE;
}

/* ---- to messages ---- */

static onx_status to_tensor(onx_ctx *cx, onx_arena *arena, const onx_value *v, onx_str name, onx_tensor *t)
{
    ONX_SET(tensor, t, data_type, v->dtype);
    if (name.len) {
        ONX_TRY(onx_arena_keep(arena, name, &t->name));
        t->has |= onx_tensor_has_name;
    }
    for (uint32_t i = 0; i < v->rank; i++) {
        int64_t *dim =
            onx_list_insert(arena, (void **)(void *)&t->dims, &t->dims_count, t->dims_count, sizeof *t->dims);
        if (!dim)
            return onxi_no_memory(cx);
        *dim = v->dims[i];
    }
    if (v->dtype == ONX_STRING) {
        const onx_str *strings = v->data;
        for (uint64_t i = 0; i < v->count; i++)
            ONX_TRY(onx_list_add_text(arena, &t->string_data, &t->string_data_count, strings[i]));
        return ONX_OK;
    }
    ONX_TRY(onx_arena_keep(arena, onx_str_make(v->data, v->size), &t->raw_data));
    t->has |= onx_tensor_has_raw_data;
    return ONX_OK;
}

static onx_status to_message(onx_ctx *cx, onx_arena *arena, const onx_value *v, onx_str name, void *message,
                             uint32_t depth);

static onx_kind message_kind(const onx_value *v)
{
    static const onx_kind kinds[] = {
        [ONX_VALUE_TENSOR] = ONX_KIND_TENSOR,
        [ONX_VALUE_SEQUENCE] = ONX_KIND_SEQUENCE,
        [ONX_VALUE_OPTIONAL] = ONX_KIND_OPTIONAL,
        [ONX_VALUE_MAP] = ONX_KIND_MAP,
    };
    return v && v->kind < sizeof kinds / sizeof *kinds ? kinds[v->kind] : ONX_KIND_NONE;
}

static int32_t data_type_of(onx_kind kind)
{
    switch (kind) {
    case ONX_KIND_TENSOR:
        return ONX_DATA_TENSOR;
    case ONX_KIND_SEQUENCE:
        return ONX_DATA_SEQUENCE;
    case ONX_KIND_MAP:
        return ONX_DATA_MAP;
    case ONX_KIND_OPTIONAL:
        return ONX_DATA_OPTIONAL;
    default:
        return ONX_DATA_UNDEFINED;
    }
}

static onx_status to_sequence(onx_ctx *cx, onx_arena *arena, const onx_value *v, onx_sequence *s, uint32_t depth)
{
    ONX_SET(sequence, s, elem_type, v->count ? data_type_of(message_kind(v->items[0])) : ONX_DATA_TENSOR);
    for (uint64_t i = 0; i < v->count; i++) {
        void *m = NULL;
        switch (message_kind(v->items[i])) {
        case ONX_KIND_TENSOR:
            m = ONX_ADD(arena, s, tensor_values, TENSOR);
            break;
        case ONX_KIND_SEQUENCE:
            m = ONX_ADD(arena, s, sequence_values, SEQUENCE);
            break;
        case ONX_KIND_MAP:
            m = ONX_ADD(arena, s, map_values, MAP);
            break;
        case ONX_KIND_OPTIONAL:
            m = ONX_ADD(arena, s, optional_values, OPTIONAL);
            break;
        default:
            return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "an item of the sequence holds nothing");
        }
        if (!m)
            return onxi_no_memory(cx);
        ONX_TRY(to_message(cx, arena, v->items[i], (onx_str){ 0 }, m, depth));
    }
    return ONX_OK;
}

static onx_status to_map(onx_ctx *cx, onx_arena *arena, const onx_value *v, onx_map *m)
{
    ONX_SET(map, m, key_type, v->dtype);
    m->values = onx_message_new(arena, ONX_KIND_SEQUENCE);
    if (!m->values)
        return onxi_no_memory(cx);
    m->has |= onx_map_has_values;
    ONX_SET(sequence, m->values, elem_type, ONX_DATA_TENSOR);
    for (uint64_t i = 0; i < v->count; i++) {
        if (v->dtype == ONX_STRING) {
            ONX_TRY(onx_list_add_text(arena, &m->string_keys, &m->string_keys_count, ((const onx_str *)v->data)[i]));
        } else {
            int64_t *key =
                onx_list_insert(arena, (void **)(void *)&m->keys, &m->keys_count, m->keys_count, sizeof *m->keys);
            if (!key)
                return onxi_no_memory(cx);
            *key = ((const int64_t *)v->data)[i];
        }
        onx_tensor *t = ONX_ADD(arena, m->values, tensor_values, TENSOR);
        if (!t)
            return onxi_no_memory(cx);
        ONX_TRY(to_tensor(cx, arena, v->items[i], (onx_str){ 0 }, t));
    }
    return ONX_OK;
}

static onx_status to_optional(onx_ctx *cx, onx_arena *arena, const onx_value *v, onx_optional *o, uint32_t depth)
{
    ONX_SET(optional, o, elem_type, ONX_DATA_UNDEFINED);
    if (!v->count)
        return ONX_OK;
    const onx_value *item = v->items[0];
    onx_kind kind = message_kind(item);
    void *m = kind ? onx_message_new(arena, kind) : NULL;
    if (!m)
        return kind ? onxi_no_memory(cx)
                    : onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the optional holds an empty value");
    ONX_SET(optional, o, elem_type, data_type_of(kind));
    switch (kind) {
    case ONX_KIND_TENSOR:
        ONX_SET(optional, o, tensor_value, m);
        break;
    case ONX_KIND_SEQUENCE:
        ONX_SET(optional, o, sequence_value, m);
        break;
    case ONX_KIND_MAP:
        ONX_SET(optional, o, map_value, m);
        break;
    default:
        ONX_SET(optional, o, optional_value, m);
        break;
    }
    return to_message(cx, arena, item, (onx_str){ 0 }, m, depth);
}

static onx_status keep_name(onx_arena *arena, onx_str name, uint32_t bit, uint32_t *has, onx_bytes *out)
{
    if (!name.len)
        return ONX_OK;
    *has |= bit;
    return onx_arena_keep(arena, name, out);
}

static onx_status to_message(onx_ctx *cx, onx_arena *arena, const onx_value *v, onx_str name, void *message,
                             uint32_t depth)
{
    if (depth >= onx_ctx_limits(cx).depth)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "values are nested more than %u levels deep",
                         onx_ctx_limits(cx).depth);
    switch (message_kind(v)) {
    case ONX_KIND_TENSOR:
        return to_tensor(cx, arena, v, name, message);
    case ONX_KIND_SEQUENCE: {
        onx_sequence *s = message;
        ONX_TRY(keep_name(arena, name, onx_sequence_has_name, &s->has, &s->name));
        return to_sequence(cx, arena, v, s, depth + 1);
    }
    case ONX_KIND_MAP: {
        onx_map *m = message;
        ONX_TRY(keep_name(arena, name, onx_map_has_name, &m->has, &m->name));
        return to_map(cx, arena, v, m);
    }
    case ONX_KIND_OPTIONAL: {
        onx_optional *o = message;
        ONX_TRY(keep_name(arena, name, onx_optional_has_name, &o->has, &o->name));
        return to_optional(cx, arena, v, o, depth + 1);
    }
    default:
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the value holds nothing");
    }
}

onx_status onx_value_to_doc(onx_ctx *cx, const onx_value *value, onx_str name, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, value);
    onx_kind kind = message_kind(value);
    if (!kind)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the value holds nothing");
    ONX_TRY(onx_doc_new(cx, kind, out));
    onx_status status = to_message(cx, onx_doc_arena(*out), value, name, onx_doc_root(*out, kind), 0);
    if (status != ONX_OK) {
        onx_doc_free(*out);
        *out = NULL;
    }
    return status;
}

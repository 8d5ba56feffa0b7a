/* simplify_look.c - types and elements of values, from inference and from the constants of the model. */
#include "simplify/simplify.h"

bool onxi_simplify_type(onxi_simplify *s, uint32_t value, onxi_type *out)
{
    if (value == ONXI_S_NONE)
        return false;
    const onxi_svalue *v = &s->values[value];
    if (v->fact && v->fact->type.kind == ONXI_TYPE_TENSOR && v->fact->type.ranked) {
        *out = v->fact->type;
        return true;
    }
    if (!v->tensor || v->tensor->dims_count > ONX_RANK_MAX)
        return false;
    *out = (onxi_type){ .kind = ONXI_TYPE_TENSOR,
                        .dtype = (uint8_t)v->tensor->data_type,
                        .ranked = true,
                        .rank = v->tensor->dims_count,
                        .dims = v->tensor->dims };
    return (unsigned)v->tensor->data_type < ONX_DTYPE_COUNT;
}

int onxi_simplify_dtype(onxi_simplify *s, uint32_t value)
{
    if (value == ONXI_S_NONE)
        return ONX_UNDEFINED;
    const onxi_svalue *v = &s->values[value];
    if (v->tensor)
        return v->tensor->data_type;
    return v->fact && v->fact->type.kind == ONXI_TYPE_TENSOR ? v->fact->type.dtype : ONX_UNDEFINED;
}

bool onxi_simplify_same_type(onxi_simplify *s, uint32_t a, uint32_t b)
{
    onxi_type x, y;
    if (!onxi_simplify_type(s, a, &x) || !onxi_simplify_type(s, b, &y) || x.rank != y.rank || x.dtype != y.dtype ||
        x.dtype == ONX_UNDEFINED)
        return false;
    for (uint32_t i = 0; i < x.rank; i++)
        if (x.dims[i] != y.dims[i] || !onxi_dim_is_known(x.dims[i]))
            return false;
    return true;
}

static bool readable(onxi_simplify *s, uint32_t value, uint64_t most, uint64_t *count)
{
    const onx_tensor *t = value == ONXI_S_NONE ? NULL : s->values[value].tensor;
    return t && t->data_type != ONX_STRING && onx_tensor_count(t, count) && *count <= most;
}

/* unreadable values are unknown; the checker reports why */
static bool quietly(onxi_simplify *s, onxi_diag_mark mark, onx_status status)
{
    onxi_diag_rewind(s->cx, mark);
    return status == ONX_OK;
}

bool onxi_simplify_get_ints(onxi_simplify *s, uint32_t value, int64_t *out, uint32_t most, uint32_t *count)
{
    uint64_t n;
    if (!readable(s, value, most, &n) ||
        (onx_dtype_class_of((onx_dtype)s->values[value].tensor->data_type) != ONX_CLASS_SIGNED &&
         s->values[value].tensor->data_type != ONX_BOOL))
        return false;
    *count = (uint32_t)n;
    return quietly(s, onxi_diag_here(s->cx), onx_tensor_get_i64(s->doc, s->values[value].tensor, 0, n, out));
}

bool onxi_simplify_get_numbers(onxi_simplify *s, uint32_t value, double *out, uint64_t most, uint64_t *count)
{
    return readable(s, value, most, count) &&
           quietly(s, onxi_diag_here(s->cx), onx_tensor_get_f64(s->doc, s->values[value].tensor, 0, *count, out));
}

const onxi_known_ints *onxi_simplify_known(onxi_simplify *s, uint32_t value)
{
    const onxi_infer_fact *fact = value == ONXI_S_NONE ? NULL : s->values[value].fact;
    return fact && fact->value && !fact->value->floored ? fact->value : NULL;
}

bool onxi_simplify_list(onxi_simplify *s, onxi_sop *op, const char *name, uint32_t input, int64_t *out, uint32_t most,
                        uint32_t *count)
{
    const onxi_attr_value *v = onxi_attrs_get(&op->attrs, name, ONX_ATTR_INTS);
    const uint32_t value = onxi_simplify_input(s, op, input);
    *count = 0;
    if (v) {
        if (v->count > most)
            return false;
        *count = v->count;
        onxi_copy_dims(out, v->list, v->count);
        return true;
    }
    return value == ONXI_S_NONE || onxi_simplify_get_ints(s, value, out, most, count);
}

bool onxi_simplify_elements(const onx_tensor *tensor, uint64_t *bytes)
{
    uint64_t count;
    return onx_tensor_count(tensor, &count) && tensor->data_type != ONX_STRING &&
           onx_dtype_size((onx_dtype)tensor->data_type, count, bytes);
}

enum { NODE_BYTES = 40, CONSTANT_BYTES = 60 };

uint64_t onxi_simplify_bytes(onxi_simplify *s)
{
    uint64_t sum = 0, size;
    for (uint32_t i = 0; i < s->value_count; i++) {
        const onxi_svalue *v = &s->values[i];
        const bool there = v->uses || v->pinned || v->is_output || (v->initializer && !s->changed);
        if (!v->tensor || v->alias != ONXI_S_NONE || !there || v->tensor->data_location == ONX_DATA_EXTERNAL ||
            !onxi_simplify_elements(v->tensor, &size))
            continue;
        if (!onxi_add_u64(sum, size + CONSTANT_BYTES, &sum))
            return UINT64_MAX;
    }
    for (uint32_t i = 0; i < s->op_count; i++)
        sum += s->ops[i].dead ? 0 : NODE_BYTES;
    return sum;
}

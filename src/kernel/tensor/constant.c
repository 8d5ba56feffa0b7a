/* constant.c - operators that create values: Constant, ConstantOfShape, Range. */
#include "kernel/core/loops.h"
#include "kernel/core/pace.h"

/* ---- Constant ---- */

typedef struct constant {
    const onxi_attr_value *value;
    onx_str bytes;    /* the elements of a tensor */
    onx_value *dense; /* a sparse tensor as a dense one */
} constant;

static onx_status constant_prepare(onx_prepare *p)
{
    static const char *const names[] = { "value",      "value_float",  "value_floats",  "value_int",
                                         "value_ints", "value_string", "value_strings", "sparse_value" };
    const onxi_attr_value *v = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !v; i++)
        if (onx_prepare_given(p, names[i]))
            v = onxi_attrs_find(p->attrs, names[i]);
    if (!v)
        return onx_prepare_fail(p, ONX_E_INVALID, "no attribute gives the value");
    constant *q = ONXI_NEW(p->arena, constant);
    if (!q)
        return ONX_E_MEMORY;
    q->value = v;
    if (v->type == ONX_ATTR_TENSOR && v->t->data_type != ONX_STRING)
        ONX_TRY(onx_tensor_bytes(p->doc, v->t, &q->bytes));
    if (v->type == ONX_ATTR_SPARSE_TENSOR)
        ONX_TRY(onx_value_from_message(p->cx, p->doc, ONX_KIND_SPARSE_TENSOR, v->sparse, &q->dense));
    p->params = q;
    return ONX_OK;
}

static void constant_release(void *params)
{
    if (params)
        onx_value_free(((constant *)params)->dense);
}

/* Copies the attribute's elements to the output. It is an error if the inferred type has another number of elements. */
static onx_status store(onx_work *work, const void *from, uint64_t count, uint64_t size)
{
    onx_value *out = work->outputs[0];
    if (out->count != count || out->size != size)
        return onx_work_fail(work, ONX_E_INVALID, "the value has %llu elements, its type says %llu",
                             (unsigned long long)count, (unsigned long long)out->count);
    onxi_pace_copy(work, out->data, from, size);
    return ONX_OK;
}

static onx_status store_text(onx_work *work, onx_str text)
{
    onx_value *out = work->outputs[0];
    if (out->count != 1 || out->dtype != ONX_STRING)
        return onx_work_fail(work, ONX_E_INVALID, "the value is a string, its type says otherwise");
    *(onx_str *)out->data = text;
    return ONX_OK;
}

static onx_status store_texts(onx_work *work, const onx_bytes *from, uint64_t count)
{
    onx_value *out = work->outputs[0];
    if (out->count != count || out->dtype != ONX_STRING)
        return onx_work_fail(work, ONX_E_INVALID, "the value has %llu strings, its type says %llu",
                             (unsigned long long)count, (unsigned long long)out->count);
    for (uint64_t i = 0; i < count; i++)
        ((onx_str *)out->data)[i] = onx_view(from[i]);
    return ONX_OK;
}

static onx_status constant_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const constant *q = work->params;
    const onxi_attr_value *v = q->value;
    switch (v->type) {
    case ONX_ATTR_TENSOR:
        if (v->t->data_type == ONX_STRING)
            return store_texts(work, v->t->string_data, v->t->string_data_count);
        /* Checks their size against the type of the output. */
        return store(work, q->bytes.ptr, work->outputs[0]->count, q->bytes.len);
    case ONX_ATTR_SPARSE_TENSOR:
        return store(work, q->dense->data, q->dense->count, q->dense->size);
    case ONX_ATTR_FLOAT:
        return store(work, &v->f, 1, sizeof v->f);
    case ONX_ATTR_INT:
        return store(work, &v->i, 1, sizeof v->i);
    case ONX_ATTR_STRING:
        return store_text(work, v->s);
    case ONX_ATTR_STRINGS:
        return store_texts(work, v->list, v->count);
    case ONX_ATTR_FLOATS:
        return store(work, v->list, v->count, v->count * sizeof(float));
    default:
        return store(work, v->list, v->count, v->count * sizeof(int64_t));
    }
}

/* ---- ConstantOfShape ---- */

static onx_status fill_prepare(onx_prepare *p)
{
    const onx_tensor *t = onx_prepare_tensor(p, "value");
    char *element = onx_arena_alloc(p->arena, 16); /* zero by default */
    if (!element)
        return ONX_E_MEMORY;
    if (t) {
        onx_str bytes;
        uint64_t count;
        unsigned bits = onx_dtype_bits(t->data_type);
        if (t->data_type != p->outputs[0]->dtype || !onx_tensor_count(t, &count) || count != 1 || !bits)
            return onx_prepare_fail(p, ONX_E_INVALID, "value must have one element");
        ONX_TRY(onx_tensor_bytes(p->doc, t, &bytes));
        if (bytes.len < (bits + 7) / 8)
            return onx_prepare_fail(p, ONX_E_INVALID, "value must have one element");
        memcpy(element, bytes.ptr, (bits + 7) / 8);
    }
    p->params = element;
    return ONX_OK;
}

static onx_status fill_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    onx_value *y = work->outputs[0];
    const char *element = work->params;
    unsigned bits = onx_dtype_bits(y->dtype), width = bits / 8;
    if (!y->size)
        return ONX_OK;
    if (bits < 8) {
        uint8_t group[8] = { 0 }; /* 8 elements are `bits` bytes */
        for (unsigned i = 0; i < 8; i++)
            onxi_packed_set(group, bits, i, (uint8_t)element[0]);
        onxi_pace_repeat(work, y->data, (const char *)group, bits, y->size / bits);
        memcpy((char *)y->data + y->size / bits * bits, group, y->size % bits);
        return ONX_OK;
    }
    onxi_pace_repeat(work, y->data, element, width, y->size / width);
    return ONX_OK;
}

bool onxi_fill_reads(const onx_kernel *kernel)
{
    return kernel->run == fill_run;
}

void onxi_fill_read(const void *params, uint64_t count, float *out)
{
    float element;
    memcpy(&element, params, sizeof element);
    for (uint64_t i = 0; i < count; i++)
        out[i] = element;
}

/* ---- Range ---- */

/* Element i is computed as start + i * step, so that rounding errors do not accumulate. */
#define RANGE(op, d, T, C, M, L, S)                                                                                    \
    static void op##_##d(const void *start, const void *step, void *out, uint64_t first, uint64_t last)                \
    {                                                                                                                  \
        C x = (C)L(*(const T *)start), y = (C)L(*(const T *)step);                                                     \
        for (uint64_t i = first; i < last; i++)                                                                        \
            ((T *)out)[i] = (T)S(RANGE_AT(C, x, i, y));                                                                \
    }
#define RANGE_AT(C, x, i, y) (x + (C)i * y)
ONXI_EACH_FLOAT(RANGE, range)
#undef RANGE_AT
#define RANGE_AT(C, x, i, y) ONXI_WRAP(C, x, +, i *(uint64_t)y)
ONXI_EACH_SIGNED(RANGE, range)

typedef void (*range_loop)(const void *start, const void *step, void *out, uint64_t first, uint64_t last);
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static const range_loop range_loops[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, range) ONXI_EACH_SIGNED(ENTRY, range) };

static onx_status range_prepare(onx_prepare *p)
{
    for (uint32_t i = 0; i < 3; i++)
        if (p->inputs[i]->dtype != p->outputs[0]->dtype || p->inputs[i]->count != 1)
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u is not a scalar of the type of the output", i);
    p->rows = p->outputs[0]->count;
    p->grain = ONXI_BLOCK;
    return ONX_OK;
}

static onx_status range_run(onx_work *work, uint64_t first, uint64_t last)
{
    range_loops[work->outputs[0]->dtype](work->inputs[0]->data, work->inputs[2]->data, work->outputs[0]->data, first,
                                         last);
    return ONX_OK;
}

const onx_kernel onxi_kernels_constant[] = {
    { .op = "Constant", .since = 1, .prepare = constant_prepare, .run = constant_run, .release = constant_release },
    { .op = "ConstantOfShape", .since = 9, .prepare = fill_prepare, .run = fill_run },
    { .op = "Range", .since = 11, .dtypes = ONXI_FLOATS | ONXI_SIGNED, .prepare = range_prepare, .run = range_run },
    { 0 }
};

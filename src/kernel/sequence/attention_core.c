/* attention_core.c - arithmetic of attention for a tile of queries of one head: products with the keys, softmax, and
 * the weighted sum of the values. Keys that need conversion are converted in blocks. */
#include "kernel/core/attention.h"

#include <math.h>

enum { KEYS = 128 }; /* keys converted at a time */

onx_status onxi_heads_make(const onx_prepare *p, const onx_value *v, const char *name, int64_t heads, onxi_heads *out)
{
    if (!v || v->kind != ONX_VALUE_TENSOR || !(ONXI_FLOATS & ONX_DTYPE_BIT(v->dtype)) || (v->rank != 3 && v->rank != 4))
        return onx_prepare_fail(p, ONX_E_INVALID, "%s is not a floating-point tensor of rank 3 or 4", name);
    out->dtype = v->dtype;
    if (v->rank == 4) {
        out->heads = (uint64_t)v->dims[1];
        out->length = (uint64_t)v->dims[2];
        out->size = (uint64_t)v->dims[3];
        out->row_step = v->dims[3];
        out->head_step = (int64_t)(out->length * out->size);
        out->batch_step = (int64_t)(out->heads * out->length * out->size);
        return ONX_OK;
    }
    if (heads < 1 || v->dims[2] % heads)
        return onx_prepare_fail(p, ONX_E_INVALID, "%s is %lld wide, which %lld heads do not divide", name,
                                (long long)v->dims[2], (long long)heads);
    out->heads = (uint64_t)heads;
    out->length = (uint64_t)v->dims[1];
    out->size = (uint64_t)(v->dims[2] / heads);
    out->row_step = v->dims[2];
    out->head_step = (int64_t)out->size;
    out->batch_step = (int64_t)(out->length * (uint64_t)v->dims[2]);
    return ONX_OK;
}

/* Reserves `count` elements of `size` bytes in a thread's workspace. */
static bool reserve(uint64_t *total, uint64_t *at, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    *at = *total;
    return onxi_mul_u64(count, size, &bytes) && bytes < UINT64_MAX / 4 &&
           onxi_add_u64(*total, (bytes + 63u) & ~(uint64_t)63u, total);
}

onx_status onxi_attention_make(const onx_prepare *p, onxi_attention *a, uint64_t extra)
{
    const onxi_heads *q = &a->q, *k = &a->k, *v = &a->v;
    if (k->dtype != q->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "the types of query and key differ");
    if (k->heads != v->heads || k->length != v->length)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu heads of %llu keys and %llu heads of %llu values",
                                (unsigned long long)k->heads, (unsigned long long)k->length,
                                (unsigned long long)v->heads, (unsigned long long)v->length);
    if (q->size != k->size)
        return onx_prepare_fail(p, ONX_E_INVALID, "a query has %llu elements, a key %llu", (unsigned long long)q->size,
                                (unsigned long long)k->size);
    if (k->heads ? !q->heads || q->heads % k->heads : q->heads != 0)
        return onx_prepare_fail(p, ONX_E_INVALID, "%llu query heads are not a multiple of %llu key heads",
                                (unsigned long long)q->heads, (unsigned long long)k->heads);
    a->group = k->heads ? q->heads / k->heads : 1;
    uint64_t width = onxi_element_size(a->dtype), at, tile = q->size > v->size ? q->size : v->size;
    bool fits = onxi_add_u64(a->past_k.length, k->length, &a->total) && onxi_mul_u64(a->total, width, &at) &&
                onxi_mul_u64(tile, KEYS, &tile);
    a->bytes = (onxi_gemm_workspace(a->dtype, ONXI_ATTENTION_ROWS, KEYS, KEYS) + 63u) & ~(uint64_t)63u;
    fits = fits && q->size < UINT64_MAX / 256 && v->size < UINT64_MAX / 256 && a->total < UINT64_MAX / 256 &&
           reserve(&a->bytes, &a->query_at, ONXI_ATTENTION_ROWS * q->size, width) &&
           reserve(&a->bytes, &a->scores_at, ONXI_ATTENTION_ROWS * a->total, width) &&
           reserve(&a->bytes, &a->result_at, ONXI_ATTENTION_ROWS * v->size, width) &&
           reserve(&a->bytes, &a->tile_at, tile, width) && reserve(&a->bytes, &a->extra_at, extra, 1);
    return fits ? ONX_OK : onx_prepare_fail(p, ONX_E_LIMIT, "the operands are too large");
}

/* ---- operands ---- */

/* Returns `count` rows of a head as elements of a->dtype; in place, if they have that type. */
static const void *rows_of(const onxi_attention *a, const onxi_attention_tile *t, const onxi_heads *h,
                           const onx_value *v, uint64_t head, uint64_t first, uint64_t count, int64_t *step)
{
    int64_t at = (int64_t)t->batch * h->batch_step + (int64_t)head * h->head_step + (int64_t)first * h->row_step;
    const char *from = (const char *)v->data + at * onxi_element_size(h->dtype);
    char *to = t->memory + a->tile_at;
    *step = h->row_step;
    if (h->dtype == a->dtype)
        return from;
    *step = (int64_t)h->size;
    for (uint64_t i = 0; i < count; i++)
        onx_convert((onx_dtype)a->dtype, to + i * h->size * onxi_element_size(a->dtype), (onx_dtype)h->dtype,
                    from + (int64_t)i * h->row_step * onxi_element_size(h->dtype), h->size, true);
    return to;
}

/* Returns rows of past and new operands: from `key` on, as many as are contiguous. */
static const void *piece(const onxi_attention *a, const onxi_attention_tile *t, bool values, const onx_value *past,
                         const onx_value *now, uint64_t key, uint64_t *count, int64_t *step)
{
    uint64_t before = a->past_k.length, head = t->head / a->group;
    const onxi_heads *h = key < before ? (values ? &a->past_v : &a->past_k) : (values ? &a->v : &a->k);
    uint64_t end = key < before && before < t->to ? before : t->to;
    *count = end - key;
    if (h->dtype != a->dtype && *count > KEYS)
        *count = KEYS;
    return rows_of(a, t, h, key < before ? past : now, head, key < before ? key : key - before, *count, step);
}

/* ---- products ---- */

#define SCALE(T, sfx)                                                                                                  \
    static void scale_##sfx(T *x, uint64_t n, double scale)                                                            \
    {                                                                                                                  \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            x[i] *= (T)scale;                                                                                          \
    }
SCALE(float, f32)
SCALE(double, f64)

void onxi_attention_scores(const onxi_attention *a, const onxi_attention_tile *t, const onx_value *q,
                           const onx_value *past_k, const onx_value *k)
{
    uint64_t width = onxi_element_size(a->dtype), count;
    char *query = t->memory + a->query_at;
    for (uint64_t i = 0; i < t->rows; i++) {
        int64_t at = (int64_t)t->batch * a->q.batch_step + (int64_t)t->head * a->q.head_step +
                     (int64_t)(t->first + i) * a->q.row_step;
        onx_convert((onx_dtype)a->dtype, query + i * a->q.size * width, (onx_dtype)a->q.dtype,
                    (const char *)q->data + at * onxi_element_size(a->q.dtype), a->q.size, true);
    }
    if (a->dtype == ONX_DOUBLE)
        scale_f64((double *)query, t->rows * a->q.size, a->scale);
    else
        scale_f32((float *)query, t->rows * a->q.size, a->scale);
    for (uint64_t key = t->from; key < t->to; key += count) {
        int64_t step;
        const void *keys = piece(a, t, false, past_k, k, key, &count, &step);
        onxi_gemm g = { .dtype = a->dtype,
                        .m = t->rows,
                        .n = count,
                        .k = a->q.size,
                        .a = query,
                        .b = keys,
                        .c = (char *)onxi_attention_row(a, t, 0) + key * width,
                        .a_row = (int64_t)a->q.size,
                        .a_col = 1,
                        .b_row = 1,
                        .b_col = step,
                        .c_row = (int64_t)a->total,
                        .work = t->work };
        onxi_gemm_run(&g, t->memory);
    }
}

void onxi_attention_mix(const onxi_attention *a, const onxi_attention_tile *t, const onx_value *past_v,
                        const onx_value *v, onx_value *y)
{
    uint64_t width = onxi_element_size(a->dtype), count;
    char *result = t->memory + a->result_at;
    memset(result, 0, t->rows * a->v.size * width);
    for (uint64_t key = t->from; key < t->to; key += count) {
        int64_t step;
        const void *values = piece(a, t, true, past_v, v, key, &count, &step);
        onxi_gemm g = { .dtype = a->dtype,
                        .m = t->rows,
                        .n = a->v.size,
                        .k = count,
                        .a = (const char *)onxi_attention_row(a, t, 0) + key * width,
                        .b = values,
                        .c = result,
                        .a_row = (int64_t)a->total,
                        .a_col = 1,
                        .b_row = step,
                        .b_col = 1,
                        .c_row = (int64_t)a->v.size,
                        .accumulate = true,
                        .work = t->work };
        onxi_gemm_run(&g, t->memory);
    }
    for (uint64_t i = 0; i < t->rows; i++) {
        int64_t at = (int64_t)t->batch * a->y.batch_step + (int64_t)t->head * a->y.head_step +
                     (int64_t)(t->first + i) * a->y.row_step;
        onx_convert((onx_dtype)a->y.dtype, (char *)y->data + at * onxi_element_size(a->y.dtype), (onx_dtype)a->dtype,
                    result + i * a->v.size * width, a->v.size, true);
    }
}

/* ---- softmax ---- */

static float round_to(int precision, double x)
{
    if (precision == ONX_FLOAT16)
        return onx_float16_to_f32(onx_f32_to_float16((float)x));
    if (precision == ONX_BFLOAT16)
        return onx_bfloat16_to_f32(onx_f32_to_bfloat16((float)x));
    return (float)x;
}

#define SOFTMAX(T, sfx, m)                                                                                             \
    static void softmax_##sfx(const onxi_attention *a, T *x, uint64_t n, bool blind)                                   \
    {                                                                                                                  \
        if (blind) {                                                                                                   \
            memset(x, 0, n * sizeof *x);                                                                               \
            return;                                                                                                    \
        }                                                                                                              \
        bool narrow = onx_dtype_bits(a->precision) < sizeof(T) * 8;                                                    \
        T best = -(T)INFINITY, sum = 0;                                                                                \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            if (narrow)                                                                                                \
                x[i] = (T)round_to(a->precision, (double)x[i]);                                                        \
            if (x[i] > best || x[i] != x[i])                                                                           \
                best = x[i];                                                                                           \
        }                                                                                                              \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            x[i] = exp##m(x[i] - best);                                                                                \
            sum += x[i];                                                                                               \
        }                                                                                                              \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            x[i] = narrow ? (T)round_to(a->precision, (double)(x[i] / sum)) : x[i] / sum;                              \
    }
SOFTMAX(float, f32, f)
SOFTMAX(double, f64, )

void onxi_attention_softmax(const onxi_attention *a, void *row, uint64_t count, bool blind)
{
    if (a->dtype == ONX_DOUBLE)
        softmax_f64(a, row, count, blind);
    else
        softmax_f32(a, row, count, blind);
}

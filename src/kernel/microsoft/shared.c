/* shared.c - shared by the kernels of com.microsoft: conversion to float, masks, and attention of one query by a
 * running softmax, which needs no memory for scores. */
#include "kernel/core/halves.h"
#include "kernel/microsoft/microsoft.h"

#include <math.h>

float onxi_ms_float(const onx_value *v, uint64_t index)
{
    if (v->dtype == ONX_FLOAT)
        return ((const float *)v->data)[index];
    if (v->dtype == ONX_FLOAT8E4M3FN || v->dtype == ONX_FLOAT8E8M0)
        return onx_small_float_to_f32((onx_dtype)v->dtype, ((const uint8_t *)v->data)[index]);
    const uint16_t bits = ((const uint16_t *)v->data)[index];
    return v->dtype == ONX_FLOAT16 ? onx_float16_to_f32(bits) : onx_bfloat16_to_f32(bits);
}

static bool is_half(const onx_value *v)
{
    return v->dtype == ONX_FLOAT16 || v->dtype == ONX_BFLOAT16;
}

void onxi_ms_floats(const onx_value *v, uint64_t first, uint64_t count, float *out)
{
    const onxi_half_loops *loops = is_half(v) ? onxi_half_loops_best() : NULL;
    if (loops) {
        loops->widen(v->dtype, (const uint16_t *)v->data + first, out, count);
        return;
    }
    onx_convert(ONX_FLOAT, out, (onx_dtype)v->dtype, (const char *)v->data + first * onxi_element_size(v->dtype), count,
                true);
}

void onxi_ms_store(onx_value *v, uint64_t first, uint64_t count, const float *from)
{
    const onxi_half_loops *loops = is_half(v) ? onxi_half_loops_best() : NULL;
    if (loops) {
        loops->narrow(v->dtype, from, (uint16_t *)v->data + first, count);
        return;
    }
    onx_convert((onx_dtype)v->dtype, (char *)v->data + first * onxi_element_size(v->dtype), ONX_FLOAT, from, count,
                true);
}

float onxi_ms_dot(const float *a, const float *b, uint64_t n)
{
    enum { LANES = 16 };
    float sums[LANES] = { 0 }, sum = 0;
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (uint64_t k = 0; k < LANES; k++)
            sums[k] += a[i + k] * b[i + k];
    for (uint64_t k = 0; k < LANES; k++)
        sum += sums[k];
    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

bool onxi_ms_reserve(uint64_t *total, uint64_t count, uint64_t *at)
{
    *at = *total;
    return count < UINT64_MAX / 64 && onxi_add_u64(*total, (count * 4 + 63u) & ~(uint64_t)63u, total);
}

/* ---- masks and biases ---- */

onx_status onxi_ms_mask(const onx_prepare *p, const onx_value *mask, uint64_t batch, uint64_t queries, uint64_t total,
                        onxi_ms_scores *s)
{
    s->batch = batch;
    if (!mask)
        return ONX_OK;
    if (mask->dtype != ONX_INT32 || mask->rank < 1 || mask->rank > 3)
        return onx_prepare_fail(p, ONX_E_INVALID, "the mask has rank %u, expected 1 to 3", mask->rank);
    const uint64_t first = (uint64_t)mask->dims[0], last = (uint64_t)mask->dims[mask->rank - 1];
    if (mask->rank == 1) {
        s->mask_kind = first == 2 * batch ? ONXI_MS_RANGE : ONXI_MS_LENGTH;
        if (first == batch || first == 2 * batch || first == 3 * batch + 2)
            return ONX_OK;
        return onx_prepare_fail(p, ONX_E_INVALID, "the mask has %llu entries for a batch of %llu",
                                (unsigned long long)first, (unsigned long long)batch);
    }
    s->mask_kind = ONXI_MS_KEYS;
    s->mask_row = mask->rank == 3 ? last : 0;
    s->mask_batch = mask->rank == 3 ? queries * last : last;
    if (first == batch && (last == total || total == UINT64_MAX) &&
        (mask->rank == 2 || (uint64_t)mask->dims[1] == queries))
        return ONX_OK;
    return onx_prepare_fail(p, ONX_E_INVALID,
                            "the mask is not for a batch of %llu, %llu queries and as many keys as "
                            "there are",
                            (unsigned long long)batch, (unsigned long long)queries);
}

onx_status onxi_ms_shared_past(onx_work *work, const onx_value *length, const onx_value *mask, const onx_value *bias,
                               uint64_t room, uint64_t keys, uint64_t *past)
{
    const int32_t given = ((const int32_t *)length->data)[0];
    if (given < 0 || (uint64_t)given > room || keys > room - (uint64_t)given)
        return onx_work_fail(work, ONX_E_INVALID,
                             "the past has %d keys and its buffer room for %llu, but %llu keys have to be added", given,
                             (unsigned long long)room, (unsigned long long)keys);
    *past = (uint64_t)given;
    const uint64_t total = *past + keys;
    if ((mask && mask->rank > 1 && (uint64_t)mask->dims[mask->rank - 1] < total) ||
        (bias && (uint64_t)bias->dims[3] < total))
        return onx_work_fail(work, ONX_E_INVALID, "the mask or the bias is for fewer than %llu keys",
                             (unsigned long long)total);
    return ONX_OK;
}

onx_status onxi_ms_bias(const onx_prepare *p, const onx_value *bias, uint64_t batch, uint64_t heads, uint64_t queries,
                        uint64_t total, onxi_ms_scores *s)
{
    if (!bias)
        return ONX_OK;
    const bool fits = bias->rank == 4 && (bias->dims[0] == 1 || (uint64_t)bias->dims[0] == batch) &&
                      (bias->dims[1] == 1 || (uint64_t)bias->dims[1] == heads) && (uint64_t)bias->dims[2] == queries &&
                      (total == UINT64_MAX || (uint64_t)bias->dims[3] == total);
    if (!fits)
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "attention_bias is not for a batch of %llu, %llu heads, %llu queries "
                                "and as many keys as there are",
                                (unsigned long long)batch, (unsigned long long)heads, (unsigned long long)queries);
    s->bias_row = (uint64_t)bias->dims[3];
    s->bias_head = bias->dims[1] == 1 ? 0 : queries * s->bias_row;
    s->bias_batch = bias->dims[0] == 1 ? 0 : (uint64_t)bias->dims[1] * queries * s->bias_row;
    return ONX_OK;
}

float onxi_ms_scale(const onx_prepare *p, uint64_t size)
{
    const float scale = onx_prepare_given(p, "scale") ? onx_prepare_float(p, "scale") : 0;
    return scale != 0 ? scale : 1 / sqrtf((float)(size ? size : 1));
}

static bool is_masked(const onxi_ms_query *q, uint64_t key)
{
    const onxi_ms_scores *s = q->scores;
    const int32_t *mask = q->mask ? q->mask->data : NULL;
    switch (mask ? s->mask_kind : ONXI_MS_NO_MASK) {
    case ONXI_MS_KEYS:
        return mask[q->batch * s->mask_batch + q->row * s->mask_row + key] <= 0;
    case ONXI_MS_LENGTH:
        return (int64_t)key >= mask[q->batch];
    case ONXI_MS_RANGE:
        return (int64_t)key >= mask[q->batch] || (int64_t)key < mask[s->batch + q->batch];
    default:
        return false;
    }
}

/* ---- a query ---- */

static void make_real(const onxi_ms_rows *r, const uint8_t *from, float *out)
{
    for (uint64_t i = 0; i < r->size; i++) {
        const int code = r->bits == 8 ? (int8_t)from[i] : (int)(from[i / 2] >> (i % 2 * 4) & 15) - 8;
        out[i] = (float)code * r->scales[r->per_channel ? i : 0];
    }
}

const float *onxi_ms_row(const onxi_ms_rows *r, uint64_t index, float *space)
{
    const bool second = index >= r->split;
    const onx_value *v = r->in[second];
    uint64_t at = r->at[second] + (second ? index - r->split : index) * r->step[second];
    if (!second && r->beams) { /* an invalid beam counts as the first */
        const int32_t beam = r->beams[index];
        at += beam > 0 && (uint64_t)beam < r->beam_count ? (uint64_t)beam * r->beam_step : 0;
    }
    if (v->dtype == ONX_FLOAT)
        return (const float *)v->data + at;
    if (r->bits && !second)
        make_real(r, (const uint8_t *)v->data + at, space);
    else
        onxi_ms_floats(v, at, r->size, space);
    return space;
}

void onxi_ms_begin(onxi_ms_query *q, uint64_t value_size)
{
    q->greatest = -INFINITY;
    q->weights = 0;
    memset(q->sum, 0, value_size * sizeof *q->sum);
}

static void scale_sum(float *sum, uint64_t n, float by)
{
    for (uint64_t i = 0; i < n; i++)
        sum[i] *= by;
}

void onxi_ms_keys(onxi_ms_query *q, const onxi_ms_rows *keys, const onxi_ms_rows *values, uint64_t from, uint64_t to)
{
    const onxi_ms_scores *s = q->scores;
    const uint64_t bias_at = q->batch * s->bias_batch + q->head * s->bias_head + q->row * s->bias_row + q->bias_from;
    for (uint64_t key = from; key < to; key++) {
        float score = onxi_ms_dot(q->query, onxi_ms_row(keys, key, q->space), keys->size) * s->scale;
        if (s->softcap > 0)
            score = s->softcap * tanhf(score / s->softcap);
        if (q->bias)
            score += onxi_ms_float(q->bias, bias_at + key);
        if (is_masked(q, key))
            score += s->filter;
        if (q->shown)
            q->shown[key] = score;
        if (score == -INFINITY)
            continue;
        if (score > q->greatest) {
            const float by = q->weights > 0 ? expf(q->greatest - score) : 0;
            scale_sum(q->sum, values->size, by);
            q->weights *= by;
            q->greatest = score;
        }
        const float weight = score == q->greatest ? 1 : expf(score - q->greatest);
        const float *value = onxi_ms_row(values, key, q->space);
        q->weights += weight;
        for (uint64_t i = 0; i < values->size; i++)
            q->sum[i] += weight * value[i];
    }
}

void onxi_ms_end(onxi_ms_query *q, uint64_t value_size, float sink)
{
    float weights = q->weights;
    if (sink != -INFINITY && q->greatest != -INFINITY)
        weights += expf(sink - q->greatest);
    scale_sum(q->sum, value_size, weights > 0 ? 1 / weights : 0);
    q->weights = weights;
}

/* ---- products as outputs ---- */

bool onxi_ms_gives(const onx_prepare *p, uint32_t i, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t count;
    return i >= p->output_count || !p->outputs[i] ||
           (onxi_mul_u64(a, b, &count) && onxi_mul_u64(count, c, &count) && p->outputs[i]->count == count);
}

bool onxi_ms_reserve_shown(uint64_t *total, onxi_ms_products kind, uint64_t keys, uint64_t *at)
{
    return kind == ONXI_MS_NO_PRODUCTS || onxi_ms_reserve(total, keys, at);
}

void onxi_ms_show(const onxi_ms_query *q, onxi_ms_products kind, uint64_t from, uint64_t to, float absent,
                  uint64_t heads, uint64_t queries, onx_value *out)
{
    const uint64_t keys = (uint64_t)out->dims[3];
    for (uint64_t key = from; kind == ONXI_MS_SHARES && key < to; key++)
        q->shown[key] = q->weights > 0 ? expf(q->shown[key] - q->greatest) / q->weights : 0;
    for (uint64_t key = 0; key < from; key++)
        q->shown[key] = absent;
    for (uint64_t key = to; key < keys; key++)
        q->shown[key] = absent;
    onxi_ms_store(out, ((q->batch * heads + q->head) * queries + q->row) * keys, keys, q->shown);
}

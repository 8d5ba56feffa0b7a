/* attention.c - Attention and QAttention: projects a sequence to queries, keys, and values, head by head, and computes
 * the attention of each query to past and new keys. */
#include "kernel/microsoft/microsoft.h"

#include <math.h>

typedef struct params {
    uint64_t batch, length, depth, heads, size, v_size, columns, past;
    uint64_t room;  /* capacity of a buffer that past and present share; 0: not shared */
    uint64_t at[3]; /* first column of queries, keys, and values */
    onxi_ms_scores scores;
    bool causal, quantized;
    bool per_column, zero_per_column;                     /* kinds of scales and zero points of quantized weights */
    uint64_t part[3], raw, left, right, pack, sum, space; /* offsets in a thread's workspace */
    uint32_t past_input, mask_input;
} params;

static const onx_value *operand(const onx_prepare *p, uint32_t i)
{
    return onxi_operand(p->input_count, p->inputs, i);
}

static onx_status read_sizes(const onx_prepare *p, params *q)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1];
    uint32_t count = 0;
    const int64_t *sizes = q->quantized ? NULL : onx_prepare_ints(p, "qkv_hidden_sizes", &count);
    const int64_t heads = onx_prepare_int(p, "num_heads");
    if (x->rank != 3 || w->rank != 2 || x->dims[2] != w->dims[0])
        return onx_prepare_fail(p, ONX_E_INVALID, "the weights do not fit the input");
    int64_t hidden = sizes ? sizes[0] : w->dims[1] / 3, v_hidden = sizes ? sizes[2] : w->dims[1] / 3;
    if (heads < 1 || hidden < 0 || v_hidden < 0 || hidden % heads || v_hidden % heads ||
        (sizes && (count != 3 || sizes[1] != hidden)) || hidden > INT32_MAX || v_hidden > INT32_MAX ||
        2 * hidden + v_hidden != w->dims[1])
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "%lld columns of weights are not queries, keys, and values of %lld heads",
                                (long long)w->dims[1], (long long)heads);
    q->batch = (uint64_t)x->dims[0];
    q->length = (uint64_t)x->dims[1];
    q->depth = (uint64_t)x->dims[2];
    q->heads = (uint64_t)heads;
    q->size = (uint64_t)(hidden / heads);
    q->v_size = (uint64_t)(v_hidden / heads);
    q->columns = (uint64_t)w->dims[1];
    q->at[1] = (uint64_t)hidden;
    q->at[2] = (uint64_t)hidden * 2;
    const onx_value *bias = operand(p, 2), *past = operand(p, q->past_input);
    if (bias && (bias->rank != 1 || (uint64_t)bias->dims[0] != q->columns))
        return onx_prepare_fail(p, ONX_E_INVALID, "the bias does not have %llu elements",
                                (unsigned long long)q->columns);
    if (!past)
        return ONX_OK;
    q->past = past->rank == 5 ? (uint64_t)past->dims[3] : 0;
    if (past->rank != 5 || past->dims[0] != 2 || past->dims[1] != x->dims[0] || past->dims[2] != heads ||
        (uint64_t)past->dims[4] != q->size || q->size != q->v_size)
        return onx_prepare_fail(p, ONX_E_INVALID, "the past is not [2, %llu, %llu, any, %llu]",
                                (unsigned long long)q->batch, (unsigned long long)q->heads,
                                (unsigned long long)q->size);
    return ONX_OK;
}

static onx_status check_scale(const onx_prepare *p, uint32_t input, uint64_t columns, bool *per_column)
{
    const onx_value *v = operand(p, input);
    *per_column = v && v->count != 1;
    return !v || v->count == 1 || (columns && v->rank == 1 && v->count == columns)
               ? ONX_OK
               : onx_prepare_fail(p, ONX_E_INVALID, "input %u has %llu elements, neither 1 nor %llu", input,
                                  (unsigned long long)v->count, (unsigned long long)columns);
}

static onx_status check_quantized(const onx_prepare *p, params *q)
{
    bool ignored;
    ONX_TRY(check_scale(p, 3, 0, &ignored));
    ONX_TRY(check_scale(p, 4, q->columns, &q->per_column));
    ONX_TRY(check_scale(p, 6, 0, &ignored));
    return check_scale(p, 7, q->columns, &q->zero_per_column);
}

static bool reserve(onx_prepare *p, params *q)
{
    const uint64_t wide = q->size > q->v_size ? q->size : q->v_size;
    uint64_t total = 0, count, depth;
    const int dtype = q->quantized ? ONX_INT32 : p->inputs[0]->dtype;
    bool fits = onxi_mul_u64(q->length, wide, &count);
    for (uint32_t i = 0; i < 3; i++)
        fits = fits && onxi_ms_reserve(&total, count, &q->part[i]);
    fits = fits && onxi_ms_reserve(&total, count, &q->raw) && onxi_ms_reserve(&total, wide, &q->sum) &&
           onxi_ms_reserve(&total, wide, &q->space);
    if (q->quantized)
        fits = fits && onxi_mul_u64(q->length, q->depth, &depth) && onxi_ms_reserve(&total, depth, &q->left) &&
               onxi_mul_u64(q->depth, wide, &depth) && onxi_ms_reserve(&total, depth, &q->right);
    q->pack = total;
    fits = fits && onxi_add_u64(total, onxi_gemm_workspace(dtype, q->length, wide, q->depth), &p->thread_workspace);
    return fits;
}

/* Reads whether past and present share a buffer. Its capacity is that of the input; another input says how many past
 * keys it has. */
static onx_status read_sharing(const onx_prepare *p, params *q)
{
    const onx_value *past = operand(p, q->past_input), *length = q->quantized ? NULL : operand(p, 6);
    if (!past || !onx_prepare_is_set(p, "past_present_share_buffer"))
        return ONX_OK;
    if (!length || length->count != 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "a shared buffer needs past_sequence_length, which is one number");
    q->room = q->past;
    q->past = 0;
    return q->room ? ONX_OK : onx_prepare_fail(p, ONX_E_INVALID, "the shared buffer has no room");
}

static onx_status attention_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    q->quantized = p->kernel->body != NULL;
    q->past_input = q->quantized ? 8 : 4;
    q->mask_input = q->quantized ? 5 : 3;
    if (onx_prepare_is_set(p, "do_rotary"))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "%s does not support rotary embedding", p->kernel->op);
    ONX_TRY(read_sizes(p, q));
    if (q->quantized)
        ONX_TRY(check_quantized(p, q));
    ONX_TRY(read_sharing(p, q));
    const uint64_t total = q->room ? UINT64_MAX : q->past + q->length;
    const onx_value *mask = operand(p, q->mask_input);
    q->causal = onx_prepare_is_set(p, "unidirectional");
    q->scores.scale = onxi_ms_scale(p, q->size);
    q->scores.filter = onx_prepare_float(p, "mask_filter_value");
    if (!onxi_ms_mask_is_even(mask, q->batch))
        ONX_TRY(onxi_ms_mask(p, mask, q->batch, q->length, total, &q->scores));
    if (!q->quantized)
        ONX_TRY(onxi_ms_bias(p, operand(p, 5), q->batch, q->heads, q->length, total, &q->scores));
    if (!reserve(p, q))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the operands are too large");
    p->params = q;
    p->rows = q->batch * q->heads;
    return ONX_OK;
}

/* Computes a projection by the columns from `first` on of the weights, for one batch entry, in float. */
static void project_real(const onx_work *work, const params *q, uint64_t batch, uint64_t first, uint64_t size,
                         float *out)
{
    char *memory = work->thread_workspace;
    const onx_value *x = work->inputs[0], *w = work->inputs[1];
    const uint64_t width = onxi_element_size(x->dtype);
    const bool direct = x->dtype == ONX_FLOAT;
    const onxi_gemm g = { .dtype = x->dtype,
                          .m = q->length,
                          .n = size,
                          .k = q->depth,
                          .a = (const char *)x->data + batch * q->length * q->depth * width,
                          .b = (const char *)w->data + first * width,
                          .c = direct ? (void *)out : (void *)(memory + q->raw),
                          .a_row = (int64_t)q->depth,
                          .a_col = 1,
                          .b_row = (int64_t)q->columns,
                          .b_col = 1,
                          .c_row = (int64_t)size,
                          .work = work };
    onxi_gemm_run(&g, memory + q->pack);
    if (!direct)
        onx_convert(ONX_FLOAT, out, (onx_dtype)x->dtype, memory + q->raw, q->length * size, true);
}

static int32_t byte_at(const onx_value *v, uint64_t i)
{
    return v->dtype == ONX_INT8 ? ((const int8_t *)v->data)[i] : ((const uint8_t *)v->data)[i];
}

static void project_quantized(const onx_work *work, const params *q, uint64_t batch, uint64_t first, uint64_t size,
                              float *out)
{
    char *memory = work->thread_workspace;
    const onx_value *x = work->inputs[0], *w = work->inputs[1];
    const onx_value *x_zero = onxi_operand(work->prepared->input_count, work->inputs, 6),
                    *w_zero = onxi_operand(work->prepared->input_count, work->inputs, 7);
    int32_t *left = (int32_t *)(void *)(memory + q->left), *right = (int32_t *)(void *)(memory + q->right),
            *sums = (int32_t *)(void *)(memory + q->raw);
    const int32_t zero = x_zero ? byte_at(x_zero, 0) : 0;
    for (uint64_t i = 0; i < q->length * q->depth; i++)
        left[i] = byte_at(x, batch * q->length * q->depth + i) - zero;
    for (uint64_t k = 0; k < q->depth; k++)
        for (uint64_t i = 0; i < size; i++)
            right[k * size + i] = byte_at(w, k * q->columns + first + i) -
                                  (w_zero ? byte_at(w_zero, q->zero_per_column ? first + i : 0) : 0);
    const onxi_gemm g = { .dtype = ONX_INT32,
                          .m = q->length,
                          .n = size,
                          .k = q->depth,
                          .a = left,
                          .b = right,
                          .c = sums,
                          .a_row = (int64_t)q->depth,
                          .a_col = 1,
                          .b_row = (int64_t)size,
                          .b_col = 1,
                          .c_row = (int64_t)size,
                          .work = work };
    onxi_gemm_run(&g, memory + q->pack);
    const float scale = onxi_ms_float(work->inputs[3], 0);
    for (uint64_t i = 0; i < q->length * size; i++)
        out[i] = (float)sums[i] * (scale * onxi_ms_float(work->inputs[4], q->per_column ? first + i % size : 0));
}

static void project(const onx_work *work, const params *q, uint64_t batch, uint64_t first, uint64_t size, float *out)
{
    const onx_value *bias = onxi_operand(work->prepared->input_count, work->inputs, 2);
    (q->quantized ? project_quantized : project_real)(work, q, batch, first, size, out);
    for (uint64_t i = 0; bias && i < q->length; i++)
        for (uint64_t k = 0; k < size; k++)
            out[i * size + k] += onxi_ms_float(bias, first + k);
    if (bias && !q->quantized && bias->dtype != ONX_FLOAT) { /* rounded to its type, as products are */
        char *raw = (char *)work->thread_workspace + q->raw;
        onx_convert((onx_dtype)bias->dtype, raw, ONX_FLOAT, out, q->length * size, true);
        onx_convert(ONX_FLOAT, out, (onx_dtype)bias->dtype, raw, q->length * size, true);
    }
}

/* Writes past and new keys or values to the output. */
static void hand_on(const onx_work *work, const params *q, uint64_t row, uint32_t which, uint64_t past_keys,
                    const float *now)
{
    onx_value *present = work->prepared->output_count > 1 ? work->outputs[1] : NULL;
    const onx_value *past = onxi_operand(work->prepared->input_count, work->inputs, q->past_input);
    if (!present)
        return;
    const uint64_t width = onxi_element_size(present->dtype), at = which * q->batch * q->heads + row,
                   kept = (q->room ? q->room : past_keys) * q->size,
                   to = at * (q->room ? q->room : past_keys + q->length) * q->size;
    if (past && kept)
        memcpy((char *)present->data + to * width, (const char *)past->data + at * kept * width, kept * width);
    onxi_ms_store(present, to + past_keys * q->size, q->length * q->size, now);
}

static void attend(const onx_work *work, const params *q, uint64_t row, uint64_t past_keys, float *const *parts)
{
    char *memory = work->thread_workspace;
    const uint32_t inputs = work->prepared->input_count;
    const onx_value *past = onxi_operand(inputs, work->inputs, q->past_input);
    const onx_value keys = { .dtype = ONX_FLOAT, .data = parts[1] }, values = { .dtype = ONX_FLOAT, .data = parts[2] };
    const uint64_t all = q->batch * q->heads, head = row % q->heads, batch = row / q->heads,
                   length = q->room ? q->room : past_keys;
    const onxi_ms_rows k = { .in = { past, &keys },
                             .at = { row * length * q->size, 0 },
                             .step = { q->size, q->size },
                             .split = past_keys,
                             .size = q->size },
                       v = { .in = { past, &values },
                             .at = { (all + row) * length * q->size, 0 },
                             .step = { q->size, q->v_size },
                             .split = past_keys,
                             .size = q->v_size };
    onxi_ms_query one = { .scores = &q->scores,
                          .mask = q->scores.mask_kind ? onxi_operand(inputs, work->inputs, q->mask_input) : NULL,
                          .bias = q->quantized ? NULL : onxi_operand(inputs, work->inputs, 5),
                          .batch = batch,
                          .head = head,
                          .sum = (float *)(void *)(memory + q->sum),
                          .space = (float *)(void *)(memory + q->space) };
    for (one.row = 0; one.row < q->length && !onx_work_stops(work); one.row++) {
        one.query = parts[0] + one.row * q->size;
        onxi_ms_begin(&one, q->v_size);
        onxi_ms_keys(&one, &k, &v, 0, q->causal ? past_keys + one.row + 1 : past_keys + q->length);
        onxi_ms_end(&one, q->v_size, -INFINITY);
        onxi_ms_store(work->outputs[0], ((batch * q->length + one.row) * q->heads + head) * q->v_size, q->v_size,
                      one.sum);
    }
}

/* A row of work is a head. */
static onx_status attention_run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    char *memory = work->thread_workspace;
    const uint32_t inputs = work->prepared->input_count;
    float *parts[3];
    uint64_t past = q->past;
    if (q->room)
        ONX_TRY(onxi_ms_shared_past(work, work->inputs[6], onxi_operand(inputs, work->inputs, q->mask_input),
                                    onxi_operand(inputs, work->inputs, 5), q->room, q->length, &past));
    for (uint64_t row = first; row < last && !onx_work_stops(work); row++) {
        for (uint32_t i = 0; i < 3; i++) {
            const uint64_t size = i == 2 ? q->v_size : q->size;
            parts[i] = (float *)(void *)(memory + q->part[i]);
            project(work, q, row / q->heads, q->at[i] + row % q->heads * size, size, parts[i]);
        }
        hand_on(work, q, row, 0, past, parts[1]);
        hand_on(work, q, row, 1, past, parts[2]);
        attend(work, q, row, past, parts);
    }
    return ONX_OK;
}

static const bool quantized = true;

const onx_kernel onxi_kernels_microsoft_attention[] = {
    MS_KERNEL("Attention", .prepare = attention_prepare, .run = attention_run),
    MS_KERNEL("QAttention", .prepare = attention_prepare, .run = attention_run, .body = &quantized),
    { 0 },
};

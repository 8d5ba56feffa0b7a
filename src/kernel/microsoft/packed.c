/* packed.c - GatherPacked and MatMulPacked: rows of weights in one of the packed formats. */
#include "kernel/microsoft/microsoft.h"
#include "kernel/microsoft/packed_formats.h"

#include <math.h>

/* ---- GatherPacked ---- */

typedef struct rows {
    const onxi_packed_format *format;
    uint64_t count, bytes, length;
    uint64_t row_at;
} rows;

static onx_status rows_prepare(onx_prepare *p)
{
    const onx_value *data = p->inputs[0];
    const int64_t length = onx_prepare_int(p, "K");
    rows *q = ONXI_NEW(p->arena, rows);
    if (!q)
        return ONX_E_MEMORY;
    if (data->rank != 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "data has rank %u, expected 2", data->rank);
    ONX_TRY(onxi_packed_format_read(p, "packed_type", data, length, &q->format));
    q->count = (uint64_t)data->dims[0];
    q->bytes = (uint64_t)data->dims[1];
    q->length = (uint64_t)length;
    if (!onxi_ms_gives(p, 0, p->inputs[1]->count, q->length, 1) || (!q->count && p->inputs[1]->count))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "%llu indices select among %llu rows, and the output has %llu elements",
                                (unsigned long long)p->inputs[1]->count, (unsigned long long)q->count,
                                (unsigned long long)p->outputs[0]->count);
    if (!onxi_ms_reserve(&p->thread_workspace, q->length, &q->row_at))
        return onx_prepare_fail(p, ONX_E_LIMIT, "rows of %llu elements are too long", (unsigned long long)q->length);
    p->params = q;
    p->rows = p->inputs[1]->count;
    p->grain = onxi_worth_a_thread(q->length * ONXI_COST_ELEMENT);
    return ONX_OK;
}

/* A row of work is an index; one outside of the table selects row 0. */
static onx_status rows_run(onx_work *work, uint64_t first, uint64_t last)
{
    const rows *q = work->params;
    const onx_value *ids = work->inputs[1];
    float *row = (float *)(void *)((char *)work->thread_workspace + q->row_at);
    onxi_pace pace = { .work = work };
    for (uint64_t i = first; i < last && !onxi_pace_stops(&pace, q->length * 2); i++) {
        int64_t id = ids->dtype == ONX_INT64 ? ((const int64_t *)ids->data)[i] : ((const int32_t *)ids->data)[i];
        if (id < 0 || (uint64_t)id >= q->count)
            id = 0;
        onxi_packed_format_row(q->format, (const uint8_t *)work->inputs[0]->data + (uint64_t)id * q->bytes, q->length,
                               row);
        onxi_ms_store(work->outputs[0], i * q->length, q->length, row);
    }
    return ONX_OK;
}

/* ---- MatMulPacked ---- */

typedef struct product {
    const onxi_packed_format *format;
    uint64_t rows, columns, length, bytes;
    enum { PLAIN, SQUARED_RELU, SILU } activation;
    uint64_t left_at, weights_at;
} product;

static onx_status product_prepare(onx_prepare *p)
{
    static const onxi_word words[] = {
        { "none", 1, 0 }, { "relu2", 1, 0 }, { "relu_squared", 1, 0 }, { "silu", 1, 0 }
    };
    const onx_value *a = p->inputs[0], *b = p->inputs[1], *scale = onxi_operand(p->input_count, p->inputs, 2);
    const int64_t length = onx_prepare_int(p, "K"), columns = onx_prepare_int(p, "N");
    const int word = onxi_prepare_word(p, "activation_type", words, 4);
    product *q = ONXI_NEW(p->arena, product);
    if (!q)
        return ONX_E_MEMORY;
    if (word < 0)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute activation_type is \"%.*s\", expected none, relu2 or silu",
                                ONX_ARG(onx_prepare_text(p, "activation_type")));
    if (!a->rank || a->dims[a->rank - 1] != length || b->rank != 2 || b->dims[0] != columns ||
        (scale && scale->count != 1))
        return onx_prepare_fail(p, ONX_E_INVALID, "the operands do not fit K = %lld and N = %lld", (long long)length,
                                (long long)columns);
    ONX_TRY(onxi_packed_format_read(p, "packed_type", b, length, &q->format));
    q->rows = onxi_product(a->dims, 0, a->rank - 1);
    q->columns = (uint64_t)columns;
    q->length = (uint64_t)length;
    q->bytes = (uint64_t)b->dims[1];
    q->activation = word == 3 ? SILU : word ? SQUARED_RELU : PLAIN;
    if (!onxi_ms_gives(p, 0, q->rows, q->columns, 1) ||
        !onxi_ms_reserve(&p->thread_workspace, q->length, &q->left_at) ||
        !onxi_ms_reserve(&p->thread_workspace, q->length, &q->weights_at))
        return onx_prepare_fail(p, ONX_E_INVALID, "the output has %llu elements for %llu rows of %llu",
                                (unsigned long long)p->outputs[0]->count, (unsigned long long)q->rows,
                                (unsigned long long)q->columns);
    p->params = q;
    p->rows = p->outputs[0]->count ? q->columns : 0;
    p->grain = onxi_worth_a_thread(q->length * (4 + q->rows));
    return ONX_OK;
}

static float activate(const product *q, float y)
{
    if (q->activation == SQUARED_RELU)
        return y > 0 ? y * y : y != y ? y : 0;
    return q->activation == SILU ? y / (1 + expf(-y)) : y;
}

/* A row of work is a column of the product. Weights are rounded to the type of the other operand. */
static onx_status product_run(onx_work *work, uint64_t first, uint64_t last)
{
    const product *q = work->params;
    const onx_value *a = work->inputs[0], *scale = onxi_operand(work->prepared->input_count, work->inputs, 2);
    float *left = (float *)(void *)((char *)work->thread_workspace + q->left_at),
          *weights = (float *)(void *)((char *)work->thread_workspace + q->weights_at);
    onx_value *y = work->outputs[0];
    onxi_pace pace = { .work = work };
    for (uint64_t n = first; n < last; n++) {
        onxi_packed_format_row(q->format, (const uint8_t *)work->inputs[1]->data + n * q->bytes, q->length, weights);
        for (uint64_t i = 0; i < q->length; i++)
            weights[i] = a->dtype == ONX_FLOAT16 ? onx_float16_to_f32(onx_f32_to_float16(weights[i]))
                                                 : onx_bfloat16_to_f32(onx_f32_to_bfloat16(weights[i]));
        for (uint64_t m = 0; m < q->rows && !onxi_pace_stops(&pace, q->length * 2); m++) {
            const uint64_t at = m * q->columns + n;
            onxi_ms_floats(a, m * q->length, q->length, left);
            float sum = onxi_ms_dot(left, weights, q->length) * (scale ? onxi_ms_float(scale, 0) : 1);
            onxi_ms_store(y, at, 1, &sum);
            if (q->activation != PLAIN) {
                sum = activate(q, onxi_ms_float(y, at));
                onxi_ms_store(y, at, 1, &sum);
            }
        }
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_packed[] = {
    MS_KERNEL("GatherPacked", .prepare = rows_prepare, .run = rows_run),
    MS_KERNEL("MatMulPacked", .prepare = product_prepare, .run = product_run),
    { 0 },
};

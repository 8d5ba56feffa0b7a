/* gather.c - GatherBlockQuantized: selects slices of low-bit weights and dequantizes them. */
#include "kernel/core/unpack.h"
#include "kernel/microsoft/microsoft.h"

typedef struct gather {
    uint64_t axis, count, inner; /* the axis: its index, its size, and elements per index */
    uint64_t indices, last;      /* last: unpacked size of the last axis */
    uint64_t quantized, quantized_inner, scales, scales_last, block;
    unsigned bits;
    bool is_signed, packed;
} gather;

static onx_status check_gather(const onx_prepare *p, const gather *q, uint32_t axis)
{
    const onx_value *data = p->inputs[0], *scales = p->inputs[2], *zeros = onxi_operand(p->input_count, p->inputs, 3);
    bool fits = scales->rank == data->rank;
    uint64_t count = 1;
    for (uint32_t i = 0; fits && i < data->rank; i++) {
        const uint64_t size = i + 1 == data->rank ? q->last : (uint64_t)data->dims[i],
                       wanted = i == axis ? (size + q->block - 1) / q->block : size;
        fits = (uint64_t)scales->dims[i] == wanted;
        count *= i + 1 == data->rank && q->packed ? (wanted * q->bits + 7) / 8 : wanted;
    }
    return fits && (!zeros || zeros->count == count)
               ? ONX_OK
               : onx_prepare_fail(p, ONX_E_INVALID, "scales or zero points do not fit blocks of %llu on axis %u",
                                  (unsigned long long)q->block, axis);
}

static onx_status gather_prepare(onx_prepare *p)
{
    const onx_value *data = p->inputs[0];
    gather *q = ONXI_NEW(p->arena, gather);
    uint32_t axis, quantized;
    if (!q)
        return ONX_E_MEMORY;
    const int64_t block = onx_prepare_int(p, "block_size"), bits = onx_prepare_int(p, "bits");
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "gather_axis"), data->rank, &axis));
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "quantize_axis"), data->rank, &quantized));
    q->packed = data->dtype == ONX_UINT8;
    q->is_signed = data->dtype == ONX_INT4;
    q->bits = q->packed ? (unsigned)bits : 4;
    if (block < 16 || (block & (block - 1)) || (q->packed && axis != 0) || (q->packed && data->rank < 2))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "blocks of %lld, or gathering uint8 data along axis %u, are not supported",
                                (long long)block, axis);
    q->block = (uint64_t)block;
    q->last = (uint64_t)data->dims[data->rank - 1] * (q->packed ? 8 / q->bits : 1);
    const uint64_t unpacked = q->packed ? 8 / q->bits : 1;
    q->count = (uint64_t)data->dims[axis];
    q->inner = onxi_product(data->dims, axis + 1, data->rank) * (axis + 1 < data->rank ? unpacked : 1);
    q->quantized = quantized + 1 == data->rank ? q->last : (uint64_t)data->dims[quantized];
    q->quantized_inner =
        onxi_product(data->dims, quantized + 1, data->rank) * (quantized + 1 < data->rank ? unpacked : 1);
    q->scales = (q->quantized + q->block - 1) / q->block;
    q->scales_last = (uint64_t)p->inputs[2]->dims[p->inputs[2]->rank ? p->inputs[2]->rank - 1 : 0];
    q->indices = p->inputs[1]->count;
    ONX_TRY(check_gather(p, q, quantized));
    p->params = q;
    p->rows = p->outputs[0]->count ? onxi_product(data->dims, 0, axis) * q->indices : 0;
    p->grain = onxi_worth_a_thread(q->inner * ONXI_COST_ELEMENT);
    return ONX_OK;
}

static float few_bits(const gather *q, const void *data, uint64_t at, uint64_t last)
{
    const uint8_t *bytes = data;
    if (q->packed)
        bytes += at / last * ((last * q->bits + 7) / 8);
    const unsigned v = onxi_ms_number(bytes, q->packed ? at % last : at, q->bits);
    return q->is_signed && v > 7 ? (float)v - 16 : (float)v;
}

/* Dequantizes elements of one block of the last axis. */
static void few_bits_run(const gather *q, const onxi_unpack_loops *loops, const void *data, uint64_t at, uint64_t count,
                         float zero, float scale, float *out)
{
    const uint8_t *bytes = data;
    if (q->packed) {
        bytes += at / q->last * ((q->last * q->bits + 7) / 8);
        at %= q->last;
    }
    if (q->bits == 8) {
        loops->bytes(bytes + at, count, zero, scale, out);
        return;
    }
    if (q->bits == 4 && at % 2 == 0) {
        loops->nibbles(bytes + at / 2, count, q->is_signed ? 8 : 0, zero, scale, out);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        const unsigned v = onxi_ms_number(bytes, at + i, q->bits);
        out[i] = ((q->is_signed && v > 7 ? (float)v - 16 : (float)v) - zero) * scale;
    }
}

/* Processes one index. Each step takes the elements with one scale and one zero point. */
static void gather_one(const gather *q, const onx_work *work, const onxi_unpack_loops *loops, uint64_t from,
                       uint64_t to)
{
    enum { MOST = 128 };
    const onx_value *scales = work->inputs[2], *zeros = onxi_operand(work->prepared->input_count, work->inputs, 3);
    onx_value *out = work->outputs[0];
    float y[MOST];
    uint64_t line = from / q->quantized_inner, inner = from % q->quantized_inner, place = line % q->quantized;
    line /= q->quantized;
    for (uint64_t i = 0, count; i < q->inner; i += count) {
        const uint64_t left = q->block - (place & (q->block - 1)), ends = q->quantized - place,
                       scale = (line * q->scales + place / q->block) * q->quantized_inner + inner;
        const float zero = zeros       ? few_bits(q, zeros->data, scale, q->scales_last)
                           : q->packed ? (float)(1u << (q->bits - 1))
                                       : 0;
        count = q->quantized_inner > 1 ? 1 : left < ends ? left : ends;
        count = count < q->inner - i ? count : q->inner - i;
        count = count < MOST ? count : MOST;
        float *const at = out->dtype == ONX_FLOAT ? (float *)out->data + to + i : y;
        few_bits_run(q, loops, work->inputs[0]->data, from + i, count, zero, onxi_ms_float(scales, scale), at);
        if (at == y)
            onxi_ms_store(out, to + i, count, y);
        inner = q->quantized_inner > 1 && inner + 1 < q->quantized_inner ? inner + 1 : 0;
        place += inner ? 0 : count;
        line += place == q->quantized;
        place = place == q->quantized ? 0 : place;
    }
}

/* A row of work is an index. */
static onx_status gather_run(onx_work *work, uint64_t first, uint64_t last)
{
    const gather *q = work->params;
    const onx_value *ids = work->inputs[1];
    const onxi_unpack_loops *loops = onxi_unpack_loops_best();
    for (uint64_t row = first; row < last; row++) {
        const uint64_t which = row % q->indices;
        int64_t id =
            ids->dtype == ONX_INT64 ? ((const int64_t *)ids->data)[which] : ((const int32_t *)ids->data)[which];
        if (id < -(int64_t)q->count || id >= (int64_t)q->count)
            return onx_work_fail(work, ONX_E_INVALID, "index %lld is outside of an axis of %llu", (long long)id,
                                 (unsigned long long)q->count);
        id += id < 0 ? (int64_t)q->count : 0;
        gather_one(q, work, loops, (row / q->indices * q->count + (uint64_t)id) * q->inner, row * q->inner);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_gather[] = {
    MS_KERNEL("GatherBlockQuantized", .prepare = gather_prepare, .run = gather_run),
    { 0 },
};

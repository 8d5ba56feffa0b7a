/* gather.c - GatherBlockQuantized: selects slices of low-bit weights, integers or small floats, and makes them real. */
#include "kernel/core/unpack.h"
#include "kernel/microsoft/microsoft.h"

typedef struct gather {
    uint64_t axis, count, inner; /* the axis: its index, its size, and elements per index */
    uint64_t indices, last;      /* last: unpacked size of the last axis */
    uint64_t quantized, quantized_inner, scales, scales_last, block;
    unsigned bits;
    bool is_signed, packed;
    /* Small floats: a scale may hold for all of an axis, so its place is counted by steps; `place` is the quantized
     * axis. */
    int small_float; /* the type, or 0 */
    uint32_t rank, place;
    uint64_t size[ONX_RANK_MAX], step[ONX_RANK_MAX];
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

/* Small floats have no zero points, and one scale may serve a whole axis. */
static onx_status prepare_floats(const onx_prepare *p, gather *q, uint32_t axis, uint32_t quantized)
{
    const onx_value *data = p->inputs[0], *scales = p->inputs[2];
    const int64_t block = onx_prepare_int(p, "block_size");
    if (block < 0 || (block && (block < 16 || block & (block - 1))) || onxi_operand(p->input_count, p->inputs, 3))
        return onx_prepare_fail(
            p, ONX_E_INVALID,
            "small floats have no zero points, and blocks of a power of two above 8, or of 0, found %lld",
            (long long)block);
    q->small_float = data->dtype;
    q->rank = data->rank;
    q->place = quantized;
    q->count = (uint64_t)data->dims[axis];
    q->inner = onxi_product(data->dims, axis + 1, data->rank);
    q->block = block ? (uint64_t)block : data->dims[quantized] ? (uint64_t)data->dims[quantized] : 1;
    bool fits = scales->rank == data->rank;
    uint64_t step = 1;
    for (uint32_t i = data->rank; fits && i-- > 0;) {
        const uint64_t size = (uint64_t)data->dims[i], given = (uint64_t)scales->dims[i];
        fits = i == quantized ? given == (size + q->block - 1) / q->block : given == size || given == 1;
        q->size[i] = size;
        q->step[i] = i != quantized && given == 1 ? 0 : step;
        step *= given;
    }
    return fits ? ONX_OK
                : onx_prepare_fail(p, ONX_E_INVALID, "scales do not fit blocks of %llu on axis %u",
                                   (unsigned long long)q->block, quantized);
}

static onx_status gather_prepare(onx_prepare *p)
{
    const onx_value *data = p->inputs[0];
    gather *q = ONXI_NEW(p->arena, gather);
    uint32_t axis, quantized;
    if (!q)
        return ONX_E_MEMORY;
    q->indices = p->inputs[1]->count;
    const int64_t block = onx_prepare_int(p, "block_size"), bits = onx_prepare_int(p, "bits");
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "gather_axis"), data->rank, &axis));
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "quantize_axis"), data->rank, &quantized));
    if (data->dtype != ONX_UINT8 && data->dtype != ONX_INT4 && data->dtype != ONX_UINT4) {
        ONX_TRY(prepare_floats(p, q, axis, quantized));
        p->params = q;
        p->rows = p->outputs[0]->count ? onxi_product(data->dims, 0, axis) * q->indices : 0;
        p->grain = onxi_worth_a_thread(q->inner * ONXI_COST_ELEMENT);
        return ONX_OK;
    }
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

/* The scale of an element. */
static uint64_t scale_of(const gather *q, uint64_t at)
{
    uint64_t scale = 0;
    for (uint32_t i = q->rank; i-- > 0; at /= q->size[i])
        scale += (i == q->place ? at % q->size[i] / q->block : at % q->size[i]) * q->step[i];
    return scale;
}

/* Elements of the last axis of one block, or between two of the other axes, have one scale. */
static void gather_floats(const gather *q, const onx_work *work, uint64_t from, uint64_t to)
{
    enum { MOST = 128 };
    const uint8_t *data = work->inputs[0]->data;
    const uint32_t last = q->rank - 1;
    const uint64_t size = q->size[last], each = last == q->place ? q->block : q->step[last] ? 1 : size;
    float y[MOST];
    for (uint64_t i = 0, count; i < q->inner; i += count) {
        const uint64_t at = from + i, in_row = at % size, left = size - in_row, of_block = each - in_row % each;
        const float scale = onxi_ms_float(work->inputs[2], scale_of(q, at));
        count = left < of_block ? left : of_block;
        count = count < q->inner - i ? count : q->inner - i;
        count = count < MOST ? count : MOST;
        for (uint64_t k = 0; k < count; k++) {
            const unsigned code = q->small_float == ONX_FLOAT4E2M1 ? onxi_packed_get(data, 4, at + k) : data[at + k];
            y[k] = onx_small_float_to_f32((onx_dtype)q->small_float, (uint8_t)code) * scale;
        }
        onxi_ms_store(work->outputs[0], to + i, count, y);
    }
}

/* A row of work is an index; one outside of the axis gives zeros. */
static onx_status gather_run(onx_work *work, uint64_t first, uint64_t last)
{
    const gather *q = work->params;
    const onx_value *ids = work->inputs[1];
    const onxi_unpack_loops *loops = onxi_unpack_loops_best();
    for (uint64_t row = first; row < last; row++) {
        const uint64_t which = row % q->indices;
        int64_t id =
            ids->dtype == ONX_INT64 ? ((const int64_t *)ids->data)[which] : ((const int32_t *)ids->data)[which];
        if (id < -(int64_t)q->count || id >= (int64_t)q->count) {
            const uint64_t size = work->outputs[0]->dtype == ONX_FLOAT ? sizeof(float) : sizeof(uint16_t);
            memset((uint8_t *)work->outputs[0]->data + row * q->inner * size, 0, q->inner * size);
            continue;
        }
        id += id < 0 ? (int64_t)q->count : 0;
        const uint64_t from = (row / q->indices * q->count + (uint64_t)id) * q->inner;
        if (q->small_float)
            gather_floats(q, work, from, row * q->inner);
        else
            gather_one(q, work, loops, from, row * q->inner);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_gather[] = {
    MS_KERNEL("GatherBlockQuantized", .prepare = gather_prepare, .run = gather_run),
    { 0 },
};

/* byte_lines.c - QuantizeLinear and DequantizeLinear of images between convolutions of bytes: with one scale for all,
 * they leave them laid out as they come. */
#include "kernel/core/blocked.h"
#include "kernel/core/quantize.h"
#include "kernel/simd/round.h"

#define BYTES (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8))

enum { PIECE = 1 << 14 };

typedef struct lines_params {
    uint64_t count;
    float scale;
    int32_t zero;
    bool is_signed;
} lines_params;

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0], *scale = onxi_operand(p->input_count, p->inputs, 1);
    const onx_value *zero = onxi_operand(p->input_count, p->inputs, 2);
    const bool back = x->dtype != ONX_FLOAT;
    const onx_value *bytes = back ? x : y;
    lines_params *q = ONXI_NEW(p->arena, lines_params);
    const uint32_t block = onxi_blocked_of(x);
    if (!q)
        return ONX_E_MEMORY;
    if (!p->want || !block || !y || !scale || !scale->data || scale->count != 1 || scale->dtype != ONX_FLOAT ||
        !(BYTES & (bytes->dtype < 32 ? ONX_DTYPE_BIT(bytes->dtype) : 0)) || (back && y->dtype != ONX_FLOAT) ||
        (zero && (!zero->data || zero->count != 1 || zero->dtype != bytes->dtype)))
        return ONX_E_UNSUPPORTED;
    const onx_layout *layout = onxi_blocked_layout(p->arena, y, block);
    if (!layout)
        return ONX_E_UNSUPPORTED;
    q->count = x->count;
    q->scale = *(const float *)scale->data;
    q->zero = zero ? (int32_t)onxi_value_number(zero, 0) : 0;
    q->is_signed = bytes->dtype == ONX_INT8;
    for (uint32_t i = 1; i < p->operand_count; i++)
        p->want[i] = NULL;
    p->outputs[0]->layout = layout;
    p->params = q;
    p->rows = (q->count + PIECE - 1) / PIECE;
    return ONX_OK;
}

/* What is written may be the params, for all that a compiler knows: they are read before. */
static onx_status quantize_run(onx_work *work, uint64_t first, uint64_t last)
{
    const lines_params q = *(const lines_params *)work->params;
    const uint64_t end = last * PIECE < q.count ? last * PIECE : q.count;
    const int32_t least = q.is_signed ? -128 : 0, most = least + 255;
    const onxi_vf scale = vf_all(q.scale);
    const float *x = work->inputs[0]->data;
    char *y = work->outputs[0]->data;
    for (uint64_t i = first * PIECE; i < end; i += ONXI_LANES) {
        const uint64_t left = end - i;
        const onxi_vi v =
            quantized(vf_load_part(x + i, left, 0), scale, (float)(least - q.zero), (float)(most - q.zero), q.zero);
        _mm_mask_storeu_epi8(y + i, (__mmask16)(left < 16 ? (1u << left) - 1 : 0xffffu),
                             _mm512_cvtepi32_epi8((__m512i)v));
    }
    return ONX_OK;
}

static onx_status dequantize_run(onx_work *work, uint64_t first, uint64_t last)
{
    const lines_params q = *(const lines_params *)work->params;
    const uint64_t end = last * PIECE < q.count ? last * PIECE : q.count;
    const char *x = work->inputs[0]->data;
    float *y = work->outputs[0]->data;
    for (uint64_t i = first * PIECE; i < end; i += ONXI_LANES) {
        const uint64_t left = end - i;
        const __m128i bytes = _mm_maskz_loadu_epi8((__mmask16)(left < 16 ? (1u << left) - 1 : 0xffffu), x + i);
        const onxi_vi v = (onxi_vi)(q.is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes));
        vf_store_part(y + i, __builtin_convertvector(v - q.zero, onxi_vf) * q.scale, left);
    }
    return ONX_OK;
}

#define ROW(name, types, run_)                                                                                         \
    {                                                                                                                  \
        .op = name, .since = 10, .dtypes = types, .preference = 2, .isa = ONXI_LEVEL, .flags = ONX_KERNEL_LAYOUTS,     \
        .variant = ONXI_VARIANT, .prepare = prepare, .run = run_                                                       \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_byte_lines)[] = { ROW("QuantizeLinear", ONXI_F32, quantize_run),
                                                             ROW("DequantizeLinear", BYTES, dequantize_run),
                                                             { 0 } };

/* bytes.c - loops over 8-bit quantized elements: sums and products of two operands, means, and sums. */
#include "kernel/core/bytes.h"
#include "kernel/simd/round.h"

#include <float.h>
#include <math.h>

#ifndef __wasm__ /* as in kernel/microsoft/bytes.c */

__attribute__((always_inline)) static inline void put(uint8_t *y, byte_line v, uint64_t n)
{
    if (n == ONXI_LANES)
        memcpy(y, &v, sizeof v);
    else
        memcpy(y, &v, (size_t)n);
}

/* Constants of a loop over pairs of bytes. Bytes are converted to float, and a_zero or b_zero is subtracted: the zero
 * point for products; for sums, only the offset of signed bytes, which are read as unsigned. */
typedef struct pair_state {
    onxi_vf a, b;           /* operands that are broadcast along the row */
    float a_zero, b_zero;   /* subtracted from bytes when they are read */
    float a_ratio, b_ratio; /* sums: operand scale / result scale; products: one factor, in a_ratio */
    float fixed;            /* sums: the constant term; products: the zero point of the result */
    float low, high;        /* bounds of the result; for products, before the zero point is added */
    uint8_t flip;
} pair_state;

__attribute__((always_inline)) static inline void pair_at(const onxi_byte_pair *t, const pair_state *s,
                                                          const bool times, const bool a_step, const bool b_step,
                                                          uint64_t i, uint64_t n)
{
    const onxi_vf a = a_step ? floats_of(t->a + i, n, s->flip) - s->a_zero : s->a;
    const onxi_vf b = b_step ? floats_of(t->b + i, n, s->flip) - s->b_zero : s->b;
    onxi_vf made =
        times ? a * b * s->a_ratio : fused(a, vf_all(s->a_ratio), fused(b, vf_all(s->b_ratio), vf_all(s->fixed)));
    made = vf_min(vf_max(made, vf_all(s->low)), vf_all(s->high)); /* NaN: low */
    if (times)
        made += s->fixed; /* not contracted to an FMA, because the clamping is in between */
    put(t->y + i, bytes_of(rounded(made)), n);
}

/* The same arithmetic as onnxruntime, with the same bits where onnxruntime uses FMA instructions. */
static pair_state pair_start(const onxi_byte_pair *t)
{
    const onxi_byte_meaning *a = &t->of[0], *b = &t->of[1], *y = &t->of[2];
    const int32_t from = y->flip ? 128 : 0, y_zero = y->zero - from; /* the read values are `from` too high */
    pair_state s = {
        .a = vf_all(0), .b = vf_all(0), .flip = y->flip, .low = (float)-from, .high = (float)(255 - from)
    };
    if (t->times) {
        s.a_zero = (float)a->zero;
        s.b_zero = (float)b->zero;
        s.a_ratio = a->scale * b->scale / y->scale;
        s.fixed = (float)y_zero;
        s.low -= s.fixed;
        s.high -= s.fixed;
    } else {
        s.a_zero = s.b_zero = (float)from;
        s.a_ratio = a->scale / y->scale;
        s.b_ratio = b->scale / y->scale;
        const float second = s.b_ratio * (float)(b->zero - from);
        s.fixed = (float)y_zero - fmaf(s.a_ratio, (float)(a->zero - from), second);
    }
    return s;
}

__attribute__((always_inline)) static inline void pair_of(const onxi_byte_pair *given, const bool times,
                                                          const bool a_step, const bool b_step)
{
    onxi_byte_pair t = *given; /* a local copy, which written bytes cannot alias */
    pair_state s = pair_start(&t);
    for (uint64_t row = 0; row < t.rows; row++, t.a += t.a_next, t.b += t.b_next, t.y += t.count) {
        uint64_t i = 0;
        s.a = a_step ? s.a : vf_all(floats_of(t.a, 1, s.flip)[0] - s.a_zero);
        s.b = b_step ? s.b : vf_all(floats_of(t.b, 1, s.flip)[0] - s.b_zero);
        for (; i + ONXI_LANES <= t.count; i += ONXI_LANES)
            pair_at(&t, &s, times, a_step, b_step, i, ONXI_LANES);
        if (i < t.count)
            pair_at(&t, &s, times, a_step, b_step, i, t.count - i);
    }
}

/* Exchanges the operands, so that the one that is broadcast is the second. */
static onxi_byte_pair turned(const onxi_byte_pair *t)
{
    onxi_byte_pair other = *t;
    other.a = t->b;
    other.b = t->a;
    other.a_next = t->b_next;
    other.b_next = t->a_next;
    other.a_step = t->b_step;
    other.b_step = t->a_step;
    other.of[0] = t->of[1];
    other.of[1] = t->of[0];
    return other;
}

static void pair(const onxi_byte_pair *given)
{
    if (!given->count)
        return;
    const onxi_byte_pair t = given->a_step || !given->b_step ? *given : turned(given);
    const int form = t.times * 4 + t.a_step * 2 + t.b_step;
    switch (form) {
    case 7:
        pair_of(&t, true, true, true);
        break;
    case 3:
        pair_of(&t, false, true, true);
        break;
    case 6:
        pair_of(&t, true, true, false);
        break;
    case 2:
        pair_of(&t, false, true, false);
        break;
    default: /* both operands are broadcast */
        pair_of(&t, t.times, false, false);
        break;
    }
}

/* Dequantizes and adds the bytes of some channels. The bound -FLT_MAX changes no value; it keeps the compiler from
 * contracting product and sum to an FMA, because onnxruntime rounds the product first. */
__attribute__((always_inline)) static inline onxi_vf total_of(const onxi_byte_mean *t, uint64_t i, const uint64_t n)
{
    const float zero = (float)t->of[0].zero, scale = t->of[0].scale;
    onxi_vf sum = vf_all(0);
    for (uint64_t k = 0; k < t->taps; k++)
        sum += vf_max((floats_of(t->x[k] + i, n, t->of[0].flip) - zero) * scale, vf_all(-FLT_MAX));
    return sum;
}

static void mean(const onxi_byte_mean *t)
{
    const int32_t from = t->of[1].flip ? 128 : 0;
    const float zero = (float)(t->of[1].zero - from);
    for (uint64_t i = 0; i < t->count; i += ONXI_LANES) {
        const uint64_t n = t->count - i < ONXI_LANES ? t->count - i : ONXI_LANES;
        const onxi_vf sum = n < ONXI_LANES ? total_of(t, i, n) : total_of(t, i, ONXI_LANES);
        const onxi_vf made = sum / t->divisor / t->of[1].scale + zero;
        put(t->y + i, bytes_of(rounded(vf_min(vf_max(made, vf_all((float)-from)), vf_all((float)(255 - from))))), n);
    }
}

static void total(const uint8_t *x, uint8_t flip, uint64_t n, uint32_t *sums)
{
    uint64_t i = 0;
    for (; i + ONXI_LANES <= n; i += ONXI_LANES) {
        onxi_vi sum;
        memcpy(&sum, sums + i, sizeof sum);
        sum += __builtin_convertvector(floats_of(x + i, ONXI_LANES, flip), onxi_vi);
        memcpy(sums + i, &sum, sizeof sum);
    }
    for (; i < n; i++)
        sums[i] += (uint8_t)(x[i] ^ flip);
}

/* Adds all bytes in float lanes. Each lane sums a piece that is short enough for the sum to be exact. */
static uint32_t sum(const uint8_t *x, uint8_t flip, uint64_t n)
{
    enum { PIECE = 1 << 15 };
    uint32_t all = 0;
    for (uint64_t at = 0, count; at < n; at += count) {
        onxi_vf part = vf_all(0), more = vf_all(0);
        count = n - at < PIECE ? n - at : PIECE;
        uint64_t i = 0;
        for (; i + 2 * ONXI_LANES <= count; i += 2 * ONXI_LANES) {
            part += floats_of(x + at + i, ONXI_LANES, flip);
            more += floats_of(x + at + i + ONXI_LANES, ONXI_LANES, flip);
        }
        part += more;
        for (; i + ONXI_LANES <= count; i += ONXI_LANES)
            part += floats_of(x + at + i, ONXI_LANES, flip);
        for (int k = 0; k < ONXI_LANES; k++)
            all += (uint32_t)part[k];
        for (; i < count; i++)
            all += (uint8_t)(x[at + i] ^ flip);
    }
    return all;
}

const onxi_byte_loops ONXI_LEVELED(onxi_byte_loops) = { pair, mean, total, sum };
#endif

/* few_bits.c - layout of low-bit weights for vectorized loops. */
#include "kernel/core/few_bits.h"

/* Reorders the weights of a word, so that weights 4 * j .. 4 * j + 3 are spread over its four bytes. */
static uint32_t deal(uint32_t v, unsigned bits)
{
    uint32_t out = 0;
    for (unsigned i = 0; bits == 4 && i < 2; i++, v >>= 16) {
        uint32_t part = v & 0xffffu; /* each group of four weights is spread over four bytes */
        part = (part | part << 8) & 0x00ff00ffu;
        out |= ((part | part << 4) & 0x0f0f0f0fu) << 4 * i;
    }
    for (unsigned i = 0; bits == 2 && i < 4; i++, v >>= 8) {
        uint32_t part = v & 0xffu;
        part = (part | part << 12) & 0x000f000fu;
        out |= ((part | part << 6) & 0x03030303u) << 2 * i;
    }
    return bits == 8 ? v : out;
}

static uint64_t width_of(const onxi_few_bits *q, uint64_t strip)
{
    const uint64_t left = q->n - strip * q->lanes;
    return left < q->lanes ? left : q->lanes;
}

void onxi_few_bits_strip(const onxi_few_bits *q, const uint8_t *weights, uint64_t strip, uint8_t *out)
{
    const uint64_t words = q->row_bytes / 4, width = width_of(q, strip);
    if (width < q->lanes)
        memset(out, 0, q->row_bytes * q->lanes);
    for (uint64_t c = 0; c < width; c++) {
        const uint8_t *from = weights + (strip * q->lanes + c) * q->row_bytes;
        for (uint64_t i = 0; i < words; i++) {
            const uint8_t *b = from + 4 * i;
            const uint32_t v = deal(b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24, q->bits);
            memcpy(out + (i * q->lanes + c) * sizeof v, &v, sizeof v);
        }
    }
}

void onxi_few_bits_lines(const onxi_few_bits *q, const float *numbers, uint64_t strip, float *out)
{
    const uint64_t width = width_of(q, strip);
    if (width < q->lanes)
        memset(out, 0, q->blocks * q->lanes * sizeof *out);
    for (uint64_t c = 0; c < width; c++)
        for (uint64_t b = 0; b < q->blocks; b++)
            memcpy(out + b * q->lanes + c,
                   (const char *)numbers + ((strip * q->lanes + c) * q->blocks + b) * sizeof *out, sizeof *out);
}

void onxi_few_bits_zeros(const onxi_few_bits *q, const uint8_t *zeros, uint64_t strip, uint8_t *out)
{
    const uint64_t width = width_of(q, strip);
    if (width < q->lanes)
        memset(out, 0, q->blocks * q->lanes);
    for (uint64_t c = 0; c < width; c++)
        for (uint64_t b = 0; b < q->blocks; b++) {
            const uint8_t byte = zeros[(strip * q->lanes + c) * q->zero_bytes + b * q->bits / 8];
            out[b * q->lanes + c] = (uint8_t)(byte >> b * q->bits % 8 & ((1u << q->bits) - 1));
        }
}

/* packed_formats.c - decodes blocks of packed weights. Numbers are little-endian; scales are float16. */
#include "kernel/microsoft/packed_formats.h"

#include <string.h>

static uint32_t u16_at(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32_at(const uint8_t *p)
{
    return u16_at(p) | u16_at(p + 2) << 16;
}

static float half_at(const uint8_t *p)
{
    return onx_float16_to_f32((uint16_t)u16_at(p));
}

static float real_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* ---- real numbers ---- */

static void decode_float(const uint8_t *p, float *out)
{
    *out = real_of(u32_at(p));
}

static void decode_half(const uint8_t *p, float *out)
{
    *out = half_at(p);
}

static void decode_bfloat(const uint8_t *p, float *out)
{
    *out = real_of(u16_at(p) << 16);
}

/* ---- integers and one scale: low halves of bytes, then high ones ---- */

static void decode_4(const uint8_t *p, float *out)
{
    const float scale = half_at(p);
    for (int i = 0; i < 16; i++) {
        out[i] = (float)((p[2 + i] & 15) - 8) * scale;
        out[i + 16] = (float)((p[2 + i] >> 4) - 8) * scale;
    }
}

static void decode_5(const uint8_t *p, float *out)
{
    const float scale = half_at(p);
    const uint32_t tops = u32_at(p + 2);
    for (int i = 0; i < 16; i++) {
        out[i] = (float)((int)(p[6 + i] & 15u) + (int)(tops >> i & 1) * 16 - 16) * scale;
        out[i + 16] = (float)((p[6 + i] >> 4) + (int)(tops >> (i + 16) & 1) * 16 - 16) * scale;
    }
}

static void decode_8(const uint8_t *p, float *out)
{
    const float scale = half_at(p);
    for (int i = 0; i < 32; i++)
        out[i] = (float)(int8_t)p[2 + i] * scale;
}

static void decode_2(const uint8_t *p, float *out)
{
    const float scale = half_at(p);
    for (int i = 0; i < 64; i++)
        out[i] = (float)((p[2 + i / 4] >> (i % 4 * 2) & 3) - 1) * scale;
}

/* ---- blocks of 256 with scales that are quantized, too ---- */

/* Scale and minimum of 6 bits each for 32 elements, of 8 in 12 bytes. */
static void small_scales(const uint8_t *p, int i, float *scale, float *least)
{
    if (i < 4) {
        *scale = (float)(p[i] & 63);
        *least = (float)(p[i + 4] & 63);
    } else {
        *scale = (float)((p[i + 4] & 15) | (p[i - 4] >> 6) << 4);
        *least = (float)((p[i + 4] >> 4) | (p[i] >> 6) << 4);
    }
}

static void decode_5_of_256(const uint8_t *p, float *out)
{
    const float scale = half_at(p), least = half_at(p + 2);
    const uint8_t *tops = p + 16, *low = p + 48;
    for (int i = 0; i < 8; i++) {
        float s, m;
        small_scales(p + 4, i, &s, &m);
        s *= scale;
        m *= least;
        for (int k = 0; k < 32; k++) {
            const uint8_t byte = low[i / 2 * 32 + k];
            const int number = (i % 2 ? byte >> 4 : byte & 15) + (tops[k] >> i & 1) * 16;
            out[i * 32 + k] = s * (float)number - m;
        }
    }
}

static void decode_6_of_256(const uint8_t *p, float *out)
{
    const float scale = half_at(p + 208);
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, quarter = i % 128 / 32, k = i % 32;
        const uint8_t byte = p[half * 64 + quarter % 2 * 32 + k], top = p[128 + half * 32 + k];
        const int number = (quarter < 2 ? byte & 15 : byte >> 4) | (top >> (quarter * 2) & 3) << 4;
        out[i] = scale * (float)(int8_t)p[192 + i / 16] * (float)(number - 32);
    }
}

/* ---- entries of a table ---- */

static const int8_t curve[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

static void decode_curve(const uint8_t *p, float *out)
{
    const float scale = half_at(p);
    for (int i = 0; i < 16; i++) {
        out[i] = scale * (float)curve[p[2 + i] & 15];
        out[i + 16] = scale * (float)curve[p[2 + i] >> 4];
    }
}

static void decode_curve_of_256(const uint8_t *p, float *out)
{
    const float scale = half_at(p);
    const uint32_t tops = u16_at(p + 2);
    for (int i = 0; i < 8; i++) {
        const int low = i % 2 ? p[4 + i / 2] >> 4 : p[4 + i / 2] & 15, number = low | (int)(tops >> (2 * i) & 3) << 4;
        const float s = scale * (float)(number - 32);
        const uint8_t *at = p + 8 + i * 16;
        for (int k = 0; k < 16; k++) {
            out[i * 32 + k] = s * (float)curve[at[k] & 15];
            out[i * 32 + k + 16] = s * (float)curve[at[k] >> 4];
        }
    }
}

/* ---- points of a lattice, with signs ---- */

/* Eight signs of seven bits: the number of negative ones is even. */
static unsigned even_signs(uint32_t bits)
{
    unsigned all = bits & 127, odd = all;
    odd ^= odd >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return all | (odd & 1) << 7;
}

static void put_point(uint16_t point, unsigned signs, float scale, float *out)
{
    static const float steps[4] = { 8, 25, 43, 0 };
    for (int i = 0; i < 8; i++)
        out[i] = scale * steps[point >> (2 * i) & 3] * (signs >> i & 1 ? -1.f : 1.f);
}

static void put_point_4d(uint16_t point, unsigned signs, float scale, float *out)
{
    static const float steps[8] = { 4, 12, 20, 28, 36, 44, 52, 62 };
    for (int i = 0; i < 4; i++)
        out[i] = scale * steps[point >> (3 * i) & 7] * (signs >> i & 1 ? -1.f : 1.f);
}

static void decode_lattice_256(const uint8_t *p, float *out)
{
    const float scale = half_at(p);
    for (int i = 0; i < 8; i++) {
        const uint8_t *at = p + 2 + i * 8;
        const uint32_t more = u32_at(at + 4);
        for (int k = 0; k < 4; k++)
            put_point(onxi_lattice_256[at[k]], even_signs(more >> (7 * k)),
                      scale * (0.5f + (float)(more >> 28)) * 0.25f, out + i * 32 + k * 8);
    }
}

static float nibble_scale(float scale, uint8_t pair, int which)
{
    return scale * (0.5f + (float)(which ? pair >> 4 : pair & 15)) * 0.25f;
}

static void decode_lattice_512(const uint8_t *p, float *out)
{
    const float scale = half_at(p);
    for (int i = 0; i < 32; i++) {
        const uint32_t code = u16_at(p + 2 + i * 2);
        put_point(onxi_lattice_512[code & 511], even_signs(code >> 9), nibble_scale(scale, p[66 + i / 4], i % 4 / 2),
                  out + i * 8);
    }
}

static void decode_lattice_1024(const uint8_t *p, float *out)
{
    const float scale = half_at(p);
    for (int i = 0; i < 32; i++) {
        const unsigned top = (unsigned)p[66 + i / 4] >> (i % 4 * 2) & 3u;
        put_point(onxi_lattice_1024[p[2 + i] | top << 8], p[34 + i], nibble_scale(scale, p[74 + i / 4], i % 4 / 2),
                  out + i * 8);
    }
}

static void decode_lattice_4d(const uint8_t *p, float *out)
{
    const float scale = half_at(p);
    for (int i = 0; i < 32; i++) {
        const uint32_t more = u32_at(p + 66 + i / 4 * 4);
        const unsigned signs = even_signs(more >> (i % 4 * 7));
        const float s = scale * (0.5f + (float)(more >> 28)) * 0.5f;
        put_point_4d(onxi_lattice_4d[p[2 + i * 2]], signs & 15, s, out + i * 8);
        put_point_4d(onxi_lattice_4d[p[3 + i * 2]], signs >> 4, s, out + i * 8 + 4);
    }
}

/* ---- the table ---- */

enum { MOST_ELEMENTS = 256 };
static const onxi_packed_format formats[] = {
    { 0, 1, 4, decode_float },
    { 1, 1, 2, decode_half },
    { 2, 32, 18, decode_4 },
    { 6, 32, 22, decode_5 },
    { 8, 32, 34, decode_8 },
    { 13, 256, 176, decode_5_of_256 },
    { 14, 256, 210, decode_6_of_256 },
    { 16, 256, 66, decode_lattice_256 },
    { 17, 256, 74, decode_lattice_512 },
    { 18, 256, 98, decode_lattice_4d },
    { 20, 32, 18, decode_curve },
    { 22, 256, 82, decode_lattice_1024 },
    { 23, 256, 136, decode_curve_of_256 },
    { 30, 1, 2, decode_bfloat },
    { 42, 64, 18, decode_2 },
};

const onxi_packed_format *onxi_packed_format_find(int64_t id)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].id == id)
            return &formats[i];
    return NULL;
}

onx_status onxi_packed_format_read(const onx_prepare *p, const char *name, const onx_value *data, int64_t length,
                                   const onxi_packed_format **out)
{
    const int64_t id = onx_prepare_int(p, name);
    const onxi_packed_format *f = onxi_packed_format_find(id);
    uint64_t bytes;
    if (!f)
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "attribute %s is %lld, which names no format that is known", name,
                                (long long)id);
    if (length < 1 || (uint64_t)length % f->elements)
        return onx_prepare_fail(p, ONX_E_INVALID, "rows have %lld elements, expected a multiple of %u above 0",
                                (long long)length, f->elements);
    if (!onxi_mul_u64((uint64_t)length / f->elements, f->bytes, &bytes) || !data->rank ||
        (uint64_t)data->dims[data->rank - 1] != bytes)
        return onx_prepare_fail(p, ONX_E_INVALID, "rows of packed data have %lld bytes, expected %llu",
                                (long long)(data->rank ? data->dims[data->rank - 1] : 0), (unsigned long long)bytes);
    *out = f;
    return ONX_OK;
}

void onxi_packed_format_row(const onxi_packed_format *f, const uint8_t *row, uint64_t length, float *out)
{
    for (uint64_t i = 0; i < length; i += f->elements, row += f->bytes)
        f->decode(row, out + i);
}

/* shard_sum.c - combines partial results, each element in the order of parts. */
#include "shard/shard.h"

#include "value/value.h"

#define REDUCE(type, wide, read, write)                                                                                \
    for (uint64_t i = 0; i < count; i++) {                                                                             \
        wide acc = read(((const type *)part[0])[i]);                                                                   \
        for (uint32_t k = 1; k < s->parts; k++) {                                                                      \
            const wide x = read(((const type *)part[k])[i]);                                                           \
            switch (s->kind) {                                                                                         \
            case ONXI_SUM_ADD:                                                                                         \
                acc = (wide)(acc + x);                                                                                 \
                break;                                                                                                 \
            case ONXI_SUM_LARGEST:                                                                                     \
                acc = acc != acc || acc > x ? acc : x;                                                                 \
                break;                                                                                                 \
            case ONXI_SUM_SMALLEST:                                                                                    \
                acc = acc != acc || acc < x ? acc : x;                                                                 \
                break;                                                                                                 \
            case ONXI_SUM_MULTIPLY:                                                                                    \
                acc = (wide)(acc * x);                                                                                 \
                break;                                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
        ((type *)out)[i] = write(acc);                                                                                 \
    }
#define AS_IS(x)        (x)
#define SCALED(x)       ((x) * (float)s->scale)
#define SCALED_WIDE(x)  ((x)*s->scale)
#define HALF_SCALED(x)  onx_f32_to_float16((x) * (float)s->scale)
#define BRAIN_SCALED(x) onx_f32_to_bfloat16((x) * (float)s->scale)

/* One block at a time, so that partial sums stay in the cache; each element in the order of parts. */
static void add_floats(const onxi_shard_sum *s, const float *const *part, float *out, uint64_t count)
{
    enum { BLOCK = 512 };
    const float scale = (float)s->scale;
    float acc[BLOCK];
    if (s->parts == 2) { /* the common case: no intermediate sums */
        const float *const a = part[0], *const b = part[1];
        for (uint64_t i = 0; i < count; i++)
            out[i] = (a[i] + b[i]) * scale;
        return;
    }
    for (uint64_t from = 0; from < count; from += BLOCK) {
        const uint64_t n = count - from < BLOCK ? count - from : BLOCK;
        const float *so_far = part[0] + from;
        for (uint32_t k = 1; k < s->parts; k++, so_far = acc)
            for (uint64_t i = 0; i < n; i++)
                acc[i] = so_far[i] + part[k][from + i];
        for (uint64_t i = 0; i < n; i++)
            out[from + i] = so_far[i] * scale;
    }
}

/* Integers wrap around like in kernels: they are added as unsigned integers. */
bool onxi_shard_sum_up(const onxi_shard_sum *s, const void *const *part, void *out, uint64_t count)
{
    const bool ordered = s->kind == ONXI_SUM_LARGEST || s->kind == ONXI_SUM_SMALLEST;
    switch (s->dtype) {
    case ONX_FLOAT:
        if (s->kind == ONXI_SUM_ADD)
            add_floats(s, (const float *const *)(const void *)part, out, count);
        else
            REDUCE(float, float, AS_IS, SCALED)
        return true;
    case ONX_DOUBLE:
        REDUCE(double, double, AS_IS, SCALED_WIDE)
        return true;
    case ONX_FLOAT16:
        REDUCE(uint16_t, float, onx_float16_to_f32, HALF_SCALED)
        return true;
    case ONX_BFLOAT16:
        REDUCE(uint16_t, float, onx_bfloat16_to_f32, BRAIN_SCALED)
        return true;
    case ONX_INT32:
        if (ordered)
            REDUCE(int32_t, int32_t, AS_IS, AS_IS)
        else
            REDUCE(uint32_t, uint32_t, AS_IS, AS_IS)
        return true;
    case ONX_INT64:
        if (ordered)
            REDUCE(int64_t, int64_t, AS_IS, AS_IS)
        else
            REDUCE(uint64_t, uint64_t, AS_IS, AS_IS)
        return true;
    case ONX_UINT32:
        REDUCE(uint32_t, uint32_t, AS_IS, AS_IS)
        return true;
    case ONX_UINT64:
        REDUCE(uint64_t, uint64_t, AS_IS, AS_IS)
        return true;
    default:
        return false;
    }
}

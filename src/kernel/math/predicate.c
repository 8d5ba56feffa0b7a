/* predicate.c - predicates of single elements: IsInf, IsNaN, and NonZero, which lists the positions. */
#include "kernel/core/blocked.h"
#include "kernel/core/loops.h"

#include <math.h>

/* ---- IsInf, IsNaN: by their bits ---- */

typedef struct class_params {
    bool nan, below, above; /* what the node tests for */
    uint8_t answer[256];    /* results for the 256 values of a one-byte type */
} class_params;

onx_status onxi_class_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    class_params *q = ONXI_NEW(p->arena, class_params);
    if (!q)
        return ONX_E_MEMORY;
    q->nan = ((const onxi_class_body *)p->kernel->body)->nan;
    q->below = !q->nan && onx_prepare_int(p, "detect_negative") != 0;
    q->above = !q->nan && onx_prepare_int(p, "detect_positive") != 0;
    for (unsigned i = 0; onx_dtype_bits(x->dtype) == 8 && i < 256; i++) {
        float v = onx_small_float_to_f32((onx_dtype)x->dtype, (uint8_t)i);
        q->answer[i] = (uint8_t)(q->nan ? isnan(v) : isinf(v) && (v < 0 ? q->below : q->above));
    }
    if (!onxi_element_layout(p))
        return ONX_E_MEMORY;
    p->params = q;
    p->rows = (x->count + ONXI_BLOCK - 1) / ONXI_BLOCK;
    return ONX_OK;
}

/* A float without its sign bit is NaN if it is greater than INF. Conditions of the node are evaluated outside of the
 * loops, so that the loops are vectorized. */
#define CLASSIFY(T, SIGN, INF)                                                                                         \
    do {                                                                                                               \
        const T *from = (const T *)x->data + start;                                                                    \
        const T above = (T)(q->above ? (INF) : (INF) | (SIGN)), below = (T)(q->below ? (INF) | (SIGN) : (INF));        \
        const bool nan = q->nan, any = q->above || q->below; /* which writing bytes might change */                    \
        for (uint64_t i = 0; nan && i < count; i++)                                                                    \
            y[i] = (T)(from[i] & ((SIGN)-1)) > (INF);                                                                  \
        for (uint64_t i = 0; !nan && i < count; i++)                                                                   \
            y[i] = (uint8_t)(any & ((from[i] == above) | (from[i] == below)));                                         \
    } while (0)

/* SSE2 cannot compare 64-bit integers, so NaN is found by comparing floats and infinities one by one. */
static void classify_doubles(const class_params *q, const double *from, uint8_t *y, uint64_t count)
{
    const bool nan = q->nan;
    for (uint64_t i = 0; nan && i < count; i++)
        y[i] = from[i] != from[i];
    for (uint64_t i = 0; !nan && i < count; i++) {
        uint64_t bits;
        memcpy(&bits, from + i, sizeof bits);
        y[i] = bits << 1 == UINT64_C(0xffe0000000000000) && (bits >> 63 ? q->below : q->above);
    }
}

onx_status onxi_class_run(onx_work *work, uint64_t first, uint64_t last)
{
    const class_params *q = work->params;
    const onx_value *x = work->inputs[0];
    uint64_t start = first * ONXI_BLOCK, end = last * ONXI_BLOCK < x->count ? last * ONXI_BLOCK : x->count;
    uint64_t count = end - start;
    uint8_t *y = (uint8_t *)work->outputs[0]->data + start;
#if ONXI_PLATFORM_ROOMY
    const onxi_class_loop loop = ((const onxi_class_body *)work->prepared->kernel->body)->loops[x->dtype];
    if (loop) {
        loop((const char *)x->data + start * onxi_element_size(x->dtype), y, count, q->below, q->above);
        return ONX_OK;
    }
#endif
    switch (x->dtype) {
    case ONX_FLOAT:
        CLASSIFY(uint32_t, UINT32_C(0x80000000), UINT32_C(0x7f800000));
        break;
    case ONX_DOUBLE:
        classify_doubles(q, (const double *)x->data + start, y, count);
        break;
    case ONX_FLOAT16:
        CLASSIFY(uint16_t, 0x8000u, 0x7c00u);
        break;
    case ONX_BFLOAT16:
        CLASSIFY(uint16_t, 0x8000u, 0x7f80u);
        break;
    default:
        for (uint64_t i = 0; i < count; i++)
            y[i] = q->answer[((const uint8_t *)x->data)[start + i]];
    }
    return ONX_OK;
}

/* ---- NonZero ---- */

/* An element as words, with a mask of the bits that make it differ from zero: all but the sign of a float. */
typedef struct zero_test {
    uint32_t width, words; /* bytes of a word; words of an element */
    uint64_t mask;
} zero_test;

static zero_test test_of(int dtype)
{
    zero_test t = { .width = onxi_element_size(dtype), .words = 1, .mask = UINT64_MAX };
    switch (dtype) {
    case ONX_FLOAT:
        t.mask = UINT64_C(0x7fffffff);
        break;
    case ONX_FLOAT16:
    case ONX_BFLOAT16:
        t.mask = 0x7fff;
        break;
    case ONX_DOUBLE:
        t.mask = UINT64_C(0x7fffffffffffffff);
        break;
    case ONX_COMPLEX64:
        t.mask = UINT64_C(0x7fffffff7fffffff);
        break;
    case ONX_COMPLEX128:
        t = (zero_test){ .width = 8, .words = 2, .mask = UINT64_C(0x7fffffffffffffff) };
        break;
    default:
        break;
    }
    return t;
}

static inline bool is_zero(const zero_test *t, const onx_value *x, uint64_t i)
{
    uint64_t v = 0;
    switch (t->width) {
    case 1:
        return !((const uint8_t *)x->data)[i];
    case 2:
        return !(((const uint16_t *)x->data)[i] & t->mask);
    case 4:
        return !(((const uint32_t *)x->data)[i] & t->mask);
    case 8:
        for (uint32_t w = 0; w < t->words; w++)
            v |= ((const uint64_t *)x->data)[i * t->words + w] & t->mask;
        return !v;
    default: /* text */
        return !((const onx_str *)x->data)[i].len;
    }
}

/* Counts the nonzero elements among the `count` ones from `first` on. Unless `to` is NULL, writes their positions
 * there, at most `room` of them. Each position is written and the index advances only if the element counts, so there
 * is no branch. */
static inline uint64_t places_of(const zero_test *t, const onx_value *x, uint64_t first, uint64_t count, int64_t *to,
                                 uint64_t room)
{
    uint64_t n = 0;
    if (!to) {
        for (uint64_t i = 0; i < count; i++)
            n += !is_zero(t, x, first + i);
        return n;
    }
    for (uint64_t i = 0; i < count && n < room; i++) {
        to[n] = (int64_t)i;
        n += !is_zero(t, x, first + i);
    }
    return n;
}

/* Calls places_of with a constant width, so that the compiler specializes it. */
static uint64_t find_places(const zero_test *t, const onx_value *x, uint64_t first, uint64_t count, int64_t *to,
                            uint64_t room)
{
    zero_test known = *t;
    switch (t->width) {
    case 1:
        known.width = 1;
        return places_of(&known, x, first, count, to, room);
    case 4:
        known.width = 4;
        return places_of(&known, x, first, count, to, room);
    default:
        return places_of(t, x, first, count, to, room);
    }
}

static onx_status nonzero_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    const zero_test test = test_of(x->dtype);
    int64_t pos[ONX_RANK_MAX] = { 0 };
    enum { PART = 1 << 18 };
    uint64_t found = 0;
    for (uint64_t at = 0; at < x->count; at += PART) {
        if (onx_work_stops(work))
            return ONX_OK;
        found += find_places(&test, x, at, x->count - at < PART ? x->count - at : PART, NULL, 0);
    }
    const int64_t dims[2] = { x->rank, (int64_t)found };
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_INT64, 2, dims));
    int64_t *y = work->outputs[0]->data;
    if (!x->rank || !found)
        return ONX_OK;
    const uint32_t lines = x->rank - 1;
    const uint64_t inner = (uint64_t)x->dims[lines];
    onxi_pace pace = { .work = work };
    for (uint64_t row = 0, at = 0; row < x->count / inner && !onxi_pace_stops(&pace, 2 * inner + 8); row++) {
        const uint64_t n = find_places(&test, x, row * inner, inner, y + lines * found + at, found - at);
        for (uint32_t d = 0; d < lines; d++)
            for (uint64_t i = 0; i < n; i++)
                y[d * found + at + i] = pos[d];
        at += n;
        for (uint32_t d = lines; d-- > 0;) {
            if (++pos[d] < x->dims[d])
                break;
            pos[d] = 0;
        }
    }
    return ONX_OK;
}

#define SMALL                                                                                                          \
    (ONX_DTYPE_BIT(ONX_FLOAT8E4M3FN) | ONX_DTYPE_BIT(ONX_FLOAT8E4M3FNUZ) | ONX_DTYPE_BIT(ONX_FLOAT8E5M2) |             \
     ONX_DTYPE_BIT(ONX_FLOAT8E5M2FNUZ))
static const onxi_class_body is_nan = { .nan = true }, is_inf = { .nan = false };

const onx_kernel onxi_kernels_predicate[] = {
    { .op = "IsInf",
      .since = 10,
      .dtypes = ONXI_FLOATS | SMALL,
      .body = &is_inf,
      .prepare = onxi_class_prepare,
      .run = onxi_class_run },
    { .op = "IsNaN",
      .since = 9,
      .dtypes = ONXI_FLOATS | SMALL,
      .body = &is_nan,
      .prepare = onxi_class_prepare,
      .run = onxi_class_run },
    { .op = "NonZero", .since = 9, .flags = ONX_KERNEL_SIZES_OUTPUT, .prepare = onxi_whole_bytes, .run = nonzero_run },
    { 0 }
};

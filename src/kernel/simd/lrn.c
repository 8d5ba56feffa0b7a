/* lrn.c - LRN, a vector at a time: of neighbouring pixels if channels are stored as planes, of neighbouring channels if
 * those of a pixel are contiguous (channels last, blocks of channels). */
#include "kernel/core/blocked.h"
#include "kernel/simd/math.h"

typedef struct lrn_params {
    uint64_t channels, plane, before, after; /* neighbours on each side */
    uint64_t block;                          /* channels that are contiguous for a pixel; 0: planes */
    float alpha, beta, bias;
} lrn_params;

static inline onxi_vf scaled(const lrn_params *q, onxi_vf x, onxi_vf squares)
{
    const onxi_vf base = squares * q->alpha + q->bias;
    if (q->beta == 0.75f) {
        const onxi_vf root = vf_sqrt(base);
        return x / (root * vf_sqrt(root));
    }
    return x / vf_pow(base, vf_all(q->beta));
}

static void channel(const lrn_params *q, const float *x, float *y, uint64_t c)
{
    const uint64_t low = c > q->before ? c - q->before : 0, last = q->channels - 1;
    const uint64_t high = last - c > q->after ? c + q->after : last;
    const float *from = x + low * q->plane;
    x += c * q->plane;
    y += c * q->plane;
    for (uint64_t i = 0; i < q->plane; i += ONXI_LANES) {
        const uint64_t left = q->plane - i;
        onxi_vf sum = vf_all(0);
        if (left >= ONXI_LANES) {
            for (uint64_t k = 0; k <= high - low; k++) {
                const onxi_vf v = vf_load(from + k * q->plane + i);
                sum += v * v;
            }
            vf_store(y + i, scaled(q, vf_load(x + i), sum));
        } else {
            for (uint64_t k = 0; k <= high - low; k++) {
                const onxi_vf v = vf_load_part(from + k * q->plane + i, left, 0);
                sum += v * v;
            }
            vf_store_part(y + i, scaled(q, vf_load_part(x + i, left, 0), sum), left);
        }
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const lrn_params *q = work->params;
    const uint64_t image = q->channels * q->plane;
    for (uint64_t row = first; row < last; row++) {
        const uint64_t at = row / q->channels * image;
        channel(q, (const float *)work->inputs[0]->data + at, (float *)work->outputs[0]->data + at, row % q->channels);
    }
    return ONX_OK;
}

/* The sizes are clipped: there are no neighbours beyond the other channels. */
static onx_status take(onx_prepare *p, lrn_params *q)
{
    const onx_value *x = p->inputs[0];
    const int64_t size = onx_prepare_int(p, "size");
    if (x->rank < 2 || size < 1 || !x->count)
        return ONX_E_UNSUPPORTED;
    const uint64_t channels = (uint64_t)x->dims[1], before = (uint64_t)(size - 1) / 2, after = (uint64_t)size / 2;
    *q = (lrn_params){ .channels = channels,
                       .plane = onxi_product(x->dims, 2, x->rank),
                       .before = before < channels ? before : channels - 1,
                       .after = after < channels ? after : channels - 1,
                       .alpha = (float)((double)onx_prepare_float(p, "alpha") / (double)size),
                       .beta = onx_prepare_float(p, "beta"),
                       .bias = onx_prepare_float(p, "bias") };
    p->params = q;
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    lrn_params *q = ONXI_NEW(p->arena, lrn_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(take(p, q));
    p->rows = p->inputs[0]->count / q->plane;
    p->grain = 16384 / q->plane + 1;
    return ONX_OK;
}

#if ONXI_PLATFORM_ROOMY /* browsers have the planes only */

/* ---- channels next to each other ---- */

/* Pixels are copied before the first of them is read again, since loads at other addresses than those of the stores
 * have to wait for these: as many as the first-level cache has room for, as blocks are read and written in long pieces
 * then. */
enum { LEAST = 8, MOST = 64, ROOM = 6144 };

/* Elements of the copy of a pixel: zeros in place of neighbours beyond the ends, and the excess of a last vector. */
static uint64_t room_of(const lrn_params *q)
{
    return q->before + q->channels + q->after + ONXI_LANES;
}

static uint64_t pixels_of(const lrn_params *q)
{
    const uint64_t pixels = ROOM / room_of(q);
    return pixels < LEAST ? LEAST : pixels > MOST ? MOST : pixels;
}

/* Copies the channels of a pixel; `x` is its first element in the image. */
static void take_pixel(const lrn_params *q, const float *x, float *copy)
{
    for (uint64_t c = 0; c < q->channels; c += q->block, x += q->block * q->plane)
        if (q->block == ONXI_LANES)
            vf_store(copy + q->before + c, vf_load(x));
        else
            memcpy(copy + q->before + c, x, q->block * sizeof *x);
}

static inline onxi_vf scaled_at(const lrn_params *q, const float *copy)
{
    onxi_vf sum = vf_all(0);
    for (uint64_t k = 0; k <= q->before + q->after; k++) {
        const onxi_vf v = vf_load(copy + k);
        sum += v * v;
    }
    return scaled(q, vf_load(copy + q->before), sum);
}

static void pixel(const lrn_params *q, const float *copy, float *y)
{
    for (uint64_t c = 0; c < q->channels; c += q->block, y += q->block * q->plane) {
        uint64_t i = 0;
        for (; i + ONXI_LANES <= q->block; i += ONXI_LANES)
            vf_store(y + i, scaled_at(q, copy + c + i));
        if (i < q->block)
            vf_store_part(y + i, scaled_at(q, copy + c + i), q->block - i);
    }
}

/* A row of work is some pixels. */
static onx_status run_channels(onx_work *work, uint64_t first, uint64_t last)
{
    const lrn_params *q = work->params;
    const uint64_t image = q->channels * q->plane, room = room_of(q);
    const uint64_t each = pixels_of(q), rows = (q->plane + each - 1) / each;
    float *copies = work->thread_workspace;
    memset(copies, 0, each * room * sizeof *copies);
    for (uint64_t row = first; row < last; row++) {
        const uint64_t from = row % rows * each, left = q->plane - from, count = left < each ? left : each;
        const uint64_t at = row / rows * image + from * q->block;
        const float *x = (const float *)work->inputs[0]->data + at;
        float *y = (float *)work->outputs[0]->data + at;
        for (uint64_t i = 0; i < count; i++)
            take_pixel(q, x + i * q->block, copies + i * room);
        for (uint64_t i = 0; i < count; i++)
            pixel(q, copies + i * room, y + i * q->block);
    }
    return ONX_OK;
}

static onx_status prepare_channels(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    lrn_params *q = ONXI_NEW(p->arena, lrn_params);
    if (!q)
        return ONX_E_MEMORY;
    const uint32_t block = onxi_blocked_of(x);
    if (!p->want || !y || block < ONXI_LANES)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(take(p, q));
    q->block = block;
    if (!(y->layout = onxi_blocked_layout(p->arena, y, block)))
        return ONX_E_MEMORY;
    p->rows = (uint64_t)x->dims[0] * ((q->plane + pixels_of(q) - 1) / pixels_of(q));
    p->grain = onxi_worth_a_thread(pixels_of(q) * q->channels * ONXI_COST_ELEMENT);
    p->thread_workspace = pixels_of(q) * room_of(q) * sizeof(float);
    return ONX_OK;
}
#endif

#define ROW(preference_, flags_, prepare_, run_)                                                                       \
    {                                                                                                                  \
        .op = "LRN", .since = 1, .dtypes = ONXI_F32, .preference = preference_, .isa = ONXI_LEVEL, .flags = flags_,    \
        .variant = ONXI_VARIANT, .prepare = prepare_, .run = run_                                                      \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_lrn)[] = {
#if ONXI_PLATFORM_ROOMY
    ROW(2, ONX_KERNEL_LAYOUTS, prepare_channels, run_channels),
#endif
    ROW(1, 0, prepare, run),
    { 0 }
};

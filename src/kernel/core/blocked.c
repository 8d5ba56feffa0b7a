/* blocked.c - images with their channels in blocks, made from row-major ones and back. */
#include "kernel/core/blocked.h"

typedef struct blocked {
    onx_layout layout;
    uint32_t block;
} blocked;

static const blocked *blocked_of(const onx_layout *layout)
{
    return (const blocked *)(const void *)layout;
}

static bool layouts_equal(const onx_layout *a, const onx_layout *b)
{
    return blocked_of(a)->block == blocked_of(b)->block && a->size == b->size;
}

/* ---- changes of layout ---- */

enum { GRAIN = 1 << 15 }; /* elements that are worth a thread */

typedef struct reorder_params {
    uint64_t pixels;
    uint32_t channels, from, to; /* channels of a block, 0: row-major */
} reorder_params;

typedef float four __attribute__((vector_size(16)));

/* Four lines of four, `in` and `out` elements apart, turned. */
static inline void turn(const float *from, uint64_t in, float *to, uint64_t out)
{
    four x[4], y[4];
    for (uint64_t i = 0; i < 4; i++)
        memcpy(&x[i], from + i * in, sizeof x[i]);
    for (int i = 0; i < 4; i++)
        y[i] = (four){ x[0][i], x[1][i], x[2][i], x[3][i] };
    for (uint64_t i = 0; i < 4; i++)
        memcpy(to + i * out, &y[i], sizeof y[i]);
}

/* `lines` lines of `length` become as many columns; `lines` is a multiple of four. */
static void turn_all(const float *from, uint64_t lines, uint64_t length, uint64_t in, float *to, uint64_t out)
{
    uint64_t i = 0;
    for (; i + 4 <= length; i += 4)
        for (uint64_t l = 0; l < lines; l += 4)
            turn(from + l * in + i, in, to + i * out + l, out);
    for (; i < length; i++)
        for (uint64_t l = 0; l < lines; l++)
            to[i * out + l] = from[l * in + i];
}

static void from_blocks(const float *from, uint64_t block, uint64_t pixels, float *to)
{
    uint64_t i = 0;
    for (; i + 4 <= pixels; i += 4)
        for (uint64_t c = 0; c < block; c += 4)
            turn(from + i * block + c, block, to + c * pixels + i, pixels);
    for (; i < pixels; i++)
        for (uint64_t c = 0; c < block; c++)
            to[c * pixels + i] = from[i * block + c];
}

/* A row is a block of channels of an image, which is the same stretch of memory in both layouts; or a whole image,
 * where blocks are changed for larger or smaller ones. */
static onx_status reorder_run(onx_work *work, uint64_t first, uint64_t last)
{
    const reorder_params *q = work->params;
    const uint64_t size = q->pixels * q->channels;
    for (uint64_t r = first; r < last; r++) {
        const float *x = (const float *)work->inputs[0]->data + r * size;
        float *y = (float *)work->outputs[0]->data + r * size;
        if (!q->from)
            turn_all(x, q->to, q->pixels, q->pixels, y, q->to);
        else if (!q->to)
            from_blocks(x, q->from, q->pixels, y);
        for (uint64_t c = 0; q->from && q->to && c < q->channels; c++)
            for (uint64_t i = 0; i < q->pixels; i++)
                y[(c / q->to * q->pixels + i) * q->to + c % q->to] =
                    x[(c / q->from * q->pixels + i) * q->from + c % q->from];
    }
    return ONX_OK;
}

static onx_status reorder_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    reorder_params *q = ONXI_NEW(p->arena, reorder_params);
    if (!q)
        return ONX_E_MEMORY;
    q->from = onxi_blocked_of(x);
    q->to = onxi_blocked_of(y);
    if ((x->layout && !q->from) || (y->layout && !q->to) || (!q->from && !q->to))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "a layout cannot be changed");
    q->channels = q->from && q->to ? (uint32_t)x->dims[1] : q->from ? q->from : q->to;
    q->pixels = onxi_product(x->dims, 2, x->rank);
    p->params = q;
    p->rows = x->count / (q->pixels * q->channels);
    p->grain = GRAIN / (q->pixels * q->channels) + 1;
    return ONX_OK;
}

static const onx_kernel reorder = {
    .op = "Reorder", .variant = "blocked", .prepare = reorder_prepare, .run = reorder_run
};
static const onx_layout_ops ops = { layouts_equal, &reorder };

/* ---- the layout ---- */

const onx_layout *onxi_blocked_layout(onx_arena *arena, const onx_value *v, uint32_t block)
{
    if (v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_FLOAT || v->rank < 3 || v->dims[1] <= 0 ||
        v->dims[1] > UINT32_MAX || block < 4 || block % 4 || v->dims[1] % block || !v->count)
        return NULL;
    blocked *b = ONXI_NEW(arena, blocked);
    if (!b)
        return NULL;
    *b = (blocked){ { &ops, v->count * sizeof(float) }, block };
    return &b->layout;
}

uint32_t onxi_blocked_of(const onx_value *v)
{
    return v->layout && v->layout->ops == &ops ? blocked_of(v->layout)->block : 0;
}

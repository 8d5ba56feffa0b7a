/* depth.c - DepthToSpace and SpaceToDepth of images with channel blocks. Each channel of the deep image is a channel of
 * the other one at some pixel of a square. Adjacent elements that stay adjacent are moved together. */
#include "kernel/core/depth.h"
#include "kernel/core/blocked.h"
#include "kernel/core/move.h"

onx_status onxi_depth_of(const onx_prepare *p, onxi_depth *out)
{
    const onx_value *x = p->inputs[0];
    int64_t area;
    out->to_depth = p->op == ONXI_ID_SpaceToDepth;
    const onx_str mode = p->since >= (out->to_depth ? 28 : 11) ? onx_prepare_text(p, "mode") : onx_str_of("DCR");
    out->columns_first = onx_str_is(mode, "CRD");
    out->block = onx_prepare_int(p, "blocksize");
    if (x->rank != 4 || out->block < 1 || !onxi_mul_i64(out->block, out->block, &area) ||
        (out->to_depth ? x->dims[2] % out->block || x->dims[3] % out->block : x->dims[1] % area))
        return onx_prepare_fail(p, ONX_E_INVALID, "blocks of %lld do not fit an input of rank %u",
                                (long long)out->block, x->rank);
    if (!out->columns_first && !onx_str_is(mode, "DCR"))
        return onx_prepare_fail(p, ONX_E_INVALID, "mode is \"%.*s\"", ONX_ARG(mode));
    return ONX_OK;
}

#if ONXI_PLATFORM_ROOMY

/* FOUR: channels, and pixels of a square, that are turned together. PIECE: squares along a line that are moved before
 * the next channels are. */
enum { FOUR = 4, PIECE = 16 };

/* One of the images: channels of a block, its pixels, and elements of an image, from square to square, and from line of
 * squares to line. */
typedef struct image {
    uint64_t block, pixels, size, square, line;
} image;

typedef struct depth_params {
    uint64_t lines, squares;    /* lines of squares; squares of a line */
    uint64_t side, area, width; /* of a square; pixels of a line of the flat image */
    uint64_t channels;          /* of the flat image */
    uint64_t run;               /* elements that are adjacent in both images; 0: squares of four are turned */
    image deep, flat;
    bool to_depth, columns_first;
} depth_params;

/* Offset of a channel of the first pixel. */
static uint64_t channel_at(const image *q, uint64_t c)
{
    return c / q->block * q->block * q->pixels + c % q->block;
}

/* Offset of a channel of the flat image at pixel k of the first square, and where it is in the deep one. */
static uint64_t flat_at(const depth_params *q, uint64_t d, uint64_t k)
{
    return channel_at(&q->flat, d) + (k / q->side * q->width + k % q->side) * q->flat.block;
}

static uint64_t deep_at(const depth_params *q, uint64_t d, uint64_t k)
{
    return channel_at(&q->deep, q->columns_first ? d * q->area + k : k * q->channels + d);
}

/* FOUR channels from d on, of FOUR pixels from k on. */
static void turn(const depth_params *q, uint64_t d, uint64_t k, const float *deep, float *flat, uint64_t count)
{
    uint64_t at[FOUR];
    for (uint64_t i = 0; i < FOUR; i++)
        at[i] = flat_at(q, d, k + i);
    deep += deep_at(q, d, k);
    for (uint64_t i = 0; i < count; i++, deep += q->deep.square, flat += q->flat.square) {
        float square[FOUR][FOUR];
        onxi_move_turned(deep, (int64_t)q->area, square, FOUR);
        for (int n = 0; n < FOUR; n++)
            memcpy(flat + at[n], square[n], sizeof square[n]);
    }
}

/* Moves some squares of a line. */
static void move(const depth_params *q, const float *x, float *y, uint64_t count)
{
    const uint64_t each = q->run ? q->run : FOUR, pixels = q->run ? 1 : FOUR;
    for (uint64_t d = 0; d < q->channels; d += each)
        for (uint64_t k = 0; k < q->area; k += pixels) {
            const uint64_t deep = deep_at(q, d, k), flat = flat_at(q, d, k);
            if (!q->run)
                turn(q, d, k, x, y, count);
            else if (q->to_depth)
                onxi_copy_runs(x + flat, q->flat.square, y + deep, q->deep.square, q->run, count);
            else
                onxi_copy_runs(x + deep, q->deep.square, y + flat, q->flat.square, q->run, count);
        }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const depth_params *q = work->params;
    const image *from = q->to_depth ? &q->flat : &q->deep, *to = q->to_depth ? &q->deep : &q->flat;
    for (uint64_t r = first; r < last; r++) {
        const uint64_t n = r / q->lines, line = r % q->lines;
        const float *x = (const float *)work->inputs[0]->data + n * from->size + line * from->line;
        float *y = (float *)work->outputs[0]->data + n * to->size + line * to->line;
        for (uint64_t at = 0; at < q->squares; at += PIECE, x += PIECE * from->square, y += PIECE * to->square)
            move(q, x, y, q->squares - at < PIECE ? q->squares - at : PIECE);
    }
    return ONX_OK;
}

/* ---- preparing ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* All channels are one block if they are in the input, or if its blocks do not divide them. 0: they are too many. */
static uint32_t block_of_result(const onx_value *x, uint32_t block, int64_t channels)
{
    return block != x->dims[1] && channels % block == 0 ? block : channels <= INT32_MAX ? (uint32_t)channels : 0;
}

static image image_of(const onx_value *v, uint64_t block, uint64_t side)
{
    return (image){ .block = block,
                    .pixels = (uint64_t)v->dims[2] * (uint64_t)v->dims[3],
                    .size = v->count / (uint64_t)v->dims[0],
                    .square = block * side,
                    .line = block * side * (uint64_t)v->dims[3] };
}

/* Do the images have the dims that the operator gives them? */
static bool fit(const onxi_depth *at, const onx_value *deep, const onx_value *flat)
{
    return deep->rank == 4 && flat->rank == 4 && deep->dims[0] == flat->dims[0] &&
           deep->dims[1] == flat->dims[1] * at->block * at->block && flat->dims[2] == deep->dims[2] * at->block &&
           flat->dims[3] == deep->dims[3] * at->block;
}

static void take_images(depth_params *q, const onxi_depth *at, const onx_value *deep, uint64_t deep_block,
                        const onx_value *flat, uint64_t flat_block)
{
    q->to_depth = at->to_depth;
    q->columns_first = at->columns_first;
    q->side = (uint64_t)at->block;
    q->area = q->side * q->side;
    q->width = (uint64_t)flat->dims[3];
    q->channels = (uint64_t)flat->dims[1];
    q->deep = image_of(deep, deep_block, 1);
    q->flat = image_of(flat, flat_block, q->side);
    q->lines = (uint64_t)deep->dims[2];
    q->squares = (uint64_t)deep->dims[3];
    const bool turns = q->columns_first && q->area % FOUR == 0 && deep_block % (FOUR * q->area) == 0;
    q->run = turns && flat_block % FOUR == 0 ? 0
             : q->columns_first              ? 1
                                             : common_divisor(common_divisor(q->channels, deep_block), flat_block);
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    const uint32_t from = onxi_blocked_of(x);
    depth_params *q = ONXI_NEW(p->arena, depth_params);
    onxi_depth at;
    if (!q)
        return ONX_E_MEMORY;
    if (!p->want || !from || p->row_major_next || (x->dtype != ONX_FLOAT && x->dtype != ONX_INT32) || !y->count ||
        y->count != x->count)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_depth_of(p, &at));
    const uint32_t to = block_of_result(x, from, y->dims[1]);
    const onx_layout *layout = onxi_blocked_layout(p->arena, y, to);
    if (!layout || !fit(&at, at.to_depth ? y : x, at.to_depth ? x : y))
        return ONX_E_UNSUPPORTED;
    if (at.to_depth)
        take_images(q, &at, y, to, x, from);
    else
        take_images(q, &at, x, from, y, to);
    onxi_image_layouts(p, x->layout, layout);
    p->params = q;
    p->rows = (uint64_t)x->dims[0] * q->lines;
    p->grain = onxi_worth_a_thread(x->count / p->rows * ONXI_COST_ELEMENT);
    return ONX_OK;
}

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32 | ONX_DTYPE_BIT(ONX_INT32), .preference = 5,                        \
        .flags = ONX_KERNEL_LAYOUTS, .variant = "blocked", .prepare = prepare, .run = run                              \
    }
const onx_kernel onxi_kernels_depth[] = { ROW("DepthToSpace"), ROW("SpaceToDepth"), { 0 } };
#else
const onx_kernel onxi_kernels_depth[] = { { 0 } };
#endif

/* depth.c - DepthToSpace and SpaceToDepth of images with channel blocks. Each channel of the deep image is a channel of
 * the other one at some pixel of a square. Adjacent elements that stay adjacent are moved together. */
#include "kernel/core/depth.h"
#include "kernel/core/blocked.h"
#include "kernel/core/move.h"

onx_status onxi_depth_of(const onx_prepare *p, onxi_depth *out)
{
    const onx_value *x = p->inputs[0];
    const onx_str mode =
        p->op == ONXI_ID_DepthToSpace && p->since >= 11 ? onx_prepare_text(p, "mode") : onx_str_of("DCR");
    int64_t area;
    out->to_depth = p->op == ONXI_ID_SpaceToDepth;
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
enum { FOUR = 4, PIECE = 16, UNITS_MOST = 1 << 16 };

/* Offsets of elements in the images that are moved together, for the first square of an image. In the flat image those
 * of FOUR pixels, if four times four elements are turned. */
typedef struct unit {
    uint64_t deep, flat[FOUR];
} unit;

/* One of the images: elements of an image, from square to square, and from line of squares to line. */
typedef struct steps {
    uint64_t image, square, line;
} steps;

typedef struct depth_params {
    uint64_t lines, squares; /* lines of squares; squares of a line */
    uint64_t run;            /* elements that are adjacent in both images; 0: units are four times four elements */
    uint64_t area;           /* pixels of a square */
    steps deep, flat;
    const unit *units;
    uint64_t count;
    bool to_depth;
} depth_params;

static void turn(const depth_params *q, const unit *u, const float *deep, float *flat, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, deep += q->deep.square, flat += q->flat.square) {
        float square[FOUR][FOUR];
        onxi_move_turned(deep + u->deep, (int64_t)q->area, square, FOUR);
        for (int k = 0; k < FOUR; k++)
            memcpy(flat + u->flat[k], square[k], sizeof square[k]);
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const depth_params *q = work->params;
    const steps *from = q->to_depth ? &q->flat : &q->deep, *to = q->to_depth ? &q->deep : &q->flat;
    for (uint64_t r = first; r < last; r++) {
        const uint64_t image = r / q->lines, line = r % q->lines;
        const float *x = (const float *)work->inputs[0]->data + image * from->image + line * from->line;
        float *y = (float *)work->outputs[0]->data + image * to->image + line * to->line;
        for (uint64_t at = 0; at < q->squares; at += PIECE, x += PIECE * from->square, y += PIECE * to->square) {
            const uint64_t count = q->squares - at < PIECE ? q->squares - at : PIECE;
            for (uint64_t i = 0; i < q->count; i++) {
                const unit *u = &q->units[i];
                const uint64_t a = q->to_depth ? u->flat[0] : u->deep, b = q->to_depth ? u->deep : u->flat[0];
                if (q->run)
                    onxi_copy_runs(x + a, from->square, y + b, to->square, q->run, count);
                else
                    turn(q, u, x, y, count);
            }
        }
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

/* Offset of a channel of the first pixel. */
static uint64_t channel_at(uint64_t c, uint64_t block, uint64_t pixels)
{
    return c / block * block * pixels + c % block;
}

/* All channels are one block if they are in the input, or if its blocks do not divide them. 0: they are too many. */
static uint32_t block_of_result(const onx_value *x, uint32_t block, int64_t channels)
{
    return block != x->dims[1] && channels % block == 0 ? block : channels <= INT32_MAX ? (uint32_t)channels : 0;
}

/* `deep` and `flat` are the images, which have such blocks. */
static onx_status make_units(onx_prepare *p, depth_params *q, const onxi_depth *at, const onx_value *deep,
                             uint64_t deep_block, const onx_value *flat, uint64_t flat_block)
{
    const uint64_t channels = (uint64_t)flat->dims[1], side = (uint64_t)at->block, area = side * side;
    const uint64_t width = (uint64_t)flat->dims[3], pixels = width * (uint64_t)flat->dims[2];
    const bool turns = at->columns_first && area % FOUR == 0 && deep_block % (FOUR * area) == 0 && !(flat_block % FOUR);
    const uint64_t each = at->columns_first ? 1 : common_divisor(common_divisor(channels, deep_block), flat_block);
    const uint64_t count = turns ? channels * area / (FOUR * FOUR) : channels * area / each;
    unit *units = count <= UNITS_MOST ? ONXI_ARRAY(p->arena, unit, count) : NULL;
    if (!units)
        return count <= UNITS_MOST ? ONX_E_MEMORY : ONX_E_UNSUPPORTED;
    q->area = area;
    q->units = units;
    q->run = turns ? 0 : each;
    for (uint64_t d = 0; d < channels; d += turns ? FOUR : each)
        for (uint64_t k = 0; k < area; k += turns ? FOUR : 1) {
            unit *u = &units[q->count++];
            const uint64_t c = at->columns_first ? d * area + k : k * channels + d;
            u->deep = channel_at(c, deep_block, pixels / area);
            for (uint64_t i = 0; i < (turns ? FOUR : 1); i++)
                u->flat[i] = channel_at(d, flat_block, pixels) + ((k + i) / side * width + (k + i) % side) * flat_block;
        }
    q->deep = (steps){ deep->count / (uint64_t)deep->dims[0], deep_block, deep_block * (uint64_t)deep->dims[3] };
    q->flat = (steps){ flat->count / (uint64_t)flat->dims[0], flat_block * side, flat_block * side * width };
    q->lines = (uint64_t)deep->dims[2];
    q->squares = (uint64_t)deep->dims[3];
    return ONX_OK;
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
    if (!layout)
        return ONX_E_UNSUPPORTED;
    q->to_depth = at.to_depth;
    ONX_TRY(at.to_depth ? make_units(p, q, &at, y, to, x, from) : make_units(p, q, &at, x, from, y, to));
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

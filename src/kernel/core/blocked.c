/* blocked.c - conversion between row-major images and images with blocked channels. */
#include "kernel/core/blocked.h"
#include "kernel/core/move.h"

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

enum { PIECE = 1 << 14, WHOLE = 16 }; /* elements that are worth a thread; what pixels of one are a multiple of */

typedef struct reorder_params {
    uint64_t channels, pixels;
    uint64_t from, to;     /* channels of a block; row-major has blocks of one channel */
    uint64_t each;         /* pixels of a piece of work */
    uint64_t pieces;       /* of an image */
    bool bytes;            /* elements are bytes, else as wide as floats */
    onxi_turn_lines *turn; /* of floats; NULL: turn_all */
} reorder_params;

/* Interleaves one to three lines into columns, one after the other: four floats are written per column, and the excess
 * is overwritten by the next column. Returns the number of columns that were done. */
static uint64_t turn_rest(const float *from, uint64_t rest, uint64_t length, uint64_t in, float *to, uint64_t out)
{
    uint64_t i = 0;
    for (; i + 8 <= length; i += 4) { /* four more columns come after these */
        float x[4][4] = { { 0 } };
        for (uint64_t l = 0; l < rest; l++)
            memcpy(x[l], from + l * in + i, sizeof x[l]);
        onxi_move_turned(x, 4, to + i * out, (int64_t)out);
    }
    return i;
}

/* The largest power of two that divides n. */
static uint64_t even_part(uint64_t n)
{
    return n & (0 - n);
}

/* Turns whole fours of lines and columns, usually four columns after the others. But lines of memory that are a power
 * of two apart share some sets of the first-level cache, and SETS * WAYS elements of them fit: if those that are read
 * do not, they are read to their end four at a time. Columns that are far apart are then written in pieces. */
static void turn_fours(const float *from, uint64_t lines, uint64_t length, uint64_t in, float *to, uint64_t out)
{
    enum { SETS = 1024, WAYS = 8 }; /* SETS: elements of one way */
    const uint64_t piece = in < out ? 16 : length;
    if (even_part(in) <= even_part(out) || lines <= SETS * WAYS / even_part(in)) {
        for (uint64_t i = 0; i < length; i += 4)
            for (uint64_t l = 0; l < lines; l += 4)
                onxi_move_turned(from + l * in + i, (int64_t)in, to + i * out + l, (int64_t)out);
        return;
    }
    for (uint64_t start = 0; start < length; start += piece) {
        const uint64_t end = length - start < piece ? length : start + piece;
        for (uint64_t l = 0; l < lines; l += 4)
            for (uint64_t i = start; i < end; i += 4)
                onxi_move_turned(from + l * in + i, (int64_t)in, to + i * out + l, (int64_t)out);
    }
}

/* Interleaves `lines` lines of `length`, `in` apart, into columns, which are `out` apart. */
static void turn_all(const float *from, uint64_t lines, uint64_t length, uint64_t in, float *to, uint64_t out)
{
    const uint64_t whole = lines / 4 * 4;
    if (lines == out && whole == 0) {
        const uint64_t done = turn_rest(from, lines, length, in, to, out);
        from += done;
        to += done * out;
        length -= done;
    }
    const uint64_t columns = length / 4 * 4;
    turn_fours(from, whole, columns, in, to, out);
    for (uint64_t l = whole; l < lines; l++)
        for (uint64_t i = 0; i < columns; i++)
            to[i * out + l] = from[l * in + i];
    for (uint64_t i = columns; i < length; i++)
        for (uint64_t l = 0; l < lines; l++)
            to[i * out + l] = from[l * in + i];
}

static void turn(const reorder_params *q, const float *from, uint64_t lines, uint64_t length, uint64_t in, float *to,
                 uint64_t out)
{
    if (!q->turn || !q->turn(from, lines, length, in, to, out))
        turn_all(from, lines, length, in, to, out);
}

void onxi_copy_runs(const float *from, uint64_t in, float *to, uint64_t out, uint64_t run, uint64_t count)
{
    /* short runs have a constant number of bytes */
    if (run == 16)
        for (uint64_t i = 0; i < count; i++, from += in, to += out)
            memcpy(to, from, 16 * sizeof *to);
    else if (run == 8)
        for (uint64_t i = 0; i < count; i++, from += in, to += out)
            memcpy(to, from, 8 * sizeof *to);
    else
        for (uint64_t i = 0; i < count; i++, from += in, to += out)
            memcpy(to, from, run * sizeof *to);
}

/* Converts some pixels of an image: single channels are combined into blocks or blocks split into channels, or the
 * contiguous runs that both layouts have are copied. */
static void change(const reorder_params *q, const float *x, float *y, uint64_t first, uint64_t count)
{
    const uint64_t from = q->from, to = q->to, run = from < to ? from : to;
    if (from == 1) {
        for (uint64_t c = 0; c < q->channels; c += to)
            turn(q, x + c * q->pixels + first, to, count, q->pixels, y + c * q->pixels + first * to, to);
        return;
    }
    for (uint64_t c = 0; to == 1 && c < q->channels; c += from)
        turn(q, x + c * q->pixels + first * from, count, from, from, y + c * q->pixels + first, q->pixels);
    for (uint64_t c = 0; to != 1 && c < q->channels; c += run) {
        const float *line = x + (c / from * q->pixels + first) * from + c % from;
        float *out = y + (c / to * q->pixels + first) * to + c % to;
        onxi_copy_runs(line, from, out, to, run, count);
    }
}

/* The same of bytes. */
static void change_bytes(const reorder_params *q, const uint8_t *x, uint8_t *y, uint64_t first, uint64_t count)
{
    enum { PIXELS = 64 };
    const uint64_t from_block = q->from, to_block = q->to;
    for (uint64_t c = 0; from_block == 1 && c < q->channels; c += to_block) {
        uint8_t *to = y + c * q->pixels + first * to_block;
        onxi_move_turn_all_bytes(&(onxi_move_square){ x + c * q->pixels + first, x + q->channels * q->pixels, to,
                                                      to + count * to_block, q->pixels, to_block, to_block, count });
    }
    for (uint64_t c = 0; to_block == 1 && c < q->channels; c += from_block)
        onxi_move_turn_all_bytes(&(onxi_move_square){
            x + c * q->pixels + first * from_block, x + q->channels * q->pixels, y + c * q->pixels + first,
            y + q->channels * q->pixels, from_block, q->pixels, count, from_block });
    if (from_block == 1 || to_block == 1)
        return;
    for (uint64_t p0 = first; p0 < first + count; p0 += PIXELS) {
        const uint64_t end = first + count - p0 < PIXELS ? first + count : p0 + PIXELS;
        for (uint64_t c = 0; c < q->channels; c++) {
            const uint8_t *from = x + c / q->from * q->pixels * q->from + c % q->from;
            uint8_t *to = y + c / q->to * q->pixels * q->to + c % q->to;
            for (uint64_t i = p0; i < end; i++)
                to[i * q->to] = from[i * q->from];
        }
    }
}

onx_status onxi_reorder_run(onx_work *work, uint64_t first, uint64_t last)
{
    const reorder_params *q = work->params;
    const uint64_t size = q->pixels * q->channels;
    for (uint64_t r = first; r < last; r++) {
        const uint64_t at = r % q->pieces * q->each, left = q->pixels - at, count = left < q->each ? left : q->each;
        const uint64_t image = r / q->pieces * size;
        const void *x = work->inputs[0]->data;
        void *y = work->outputs[0]->data;
        if (q->bytes)
            change_bytes(q, (const uint8_t *)x + image, (uint8_t *)y + image, at, count);
        else
            change(q, (const float *)x + image, (float *)y + image, at, count);
    }
    return ONX_OK;
}

onx_status onxi_reorder_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    const onxi_reorder_body *body = p->kernel->body;
    reorder_params *q = ONXI_NEW(p->arena, reorder_params);
    if (!q)
        return ONX_E_MEMORY;
    q->from = x->layout ? onxi_blocked_of(x) : 1;
    q->to = y->layout ? onxi_blocked_of(y) : 1;
    if (!q->from || !q->to || (q->from % q->to && q->to % q->from)) /* layouts of other rows */
        return body ? ONX_E_UNSUPPORTED : onx_prepare_fail(p, ONX_E_UNSUPPORTED, "a layout cannot be changed");
    q->turn = body ? body->turn : NULL;
    q->bytes = x->dtype != ONX_FLOAT && x->dtype != ONX_INT32;
    q->channels = (uint64_t)x->dims[1];
    q->pixels = onxi_product(x->dims, 2, x->rank);
    q->each = (PIECE / q->channels + WHOLE) / WHOLE * WHOLE;
    q->pieces = (q->pixels + q->each - 1) / q->each;
    p->params = q;
    p->rows = (uint64_t)x->dims[0] * q->pieces;
    p->grain = onxi_worth_a_thread(q->each * q->channels * ONXI_COST_ELEMENT);
    return ONX_OK;
}

static const onx_kernel reorder = {
    .op = "Reorder", .variant = "blocked", .prepare = onxi_reorder_prepare, .run = onxi_reorder_run
};
static const onx_layout_ops ops = { layouts_equal, &reorder };

/* ---- the layout ---- */

bool onxi_blocked_type_is(int dtype)
{
    return dtype == ONX_FLOAT || dtype == ONX_INT32 || dtype == ONX_INT8 || dtype == ONX_UINT8 || dtype == ONX_BOOL;
}

const onx_layout *onxi_blocked_layout(onx_arena *arena, const onx_value *v, uint32_t block)
{
    if (v->kind != ONX_VALUE_TENSOR || !onxi_blocked_type_is(v->dtype) || v->rank < 3 || v->dims[1] <= 0 ||
        v->dims[1] > UINT32_MAX || block < 2 || v->dims[1] % block || !v->count ||
        (block != 8 && block != 16 && block != v->dims[1]))
        return NULL;
    blocked *b = ONXI_NEW(arena, blocked);
    if (!b)
        return NULL;
    *b = (blocked){ { &ops, v->count * onxi_element_size(v->dtype) }, block };
    return &b->layout;
}

uint32_t onxi_blocked_of(const onx_value *v)
{
    return v->layout && v->layout->ops == &ops ? blocked_of(v->layout)->block : 0;
}

bool onxi_element_layout(onx_prepare *p)
{
    onx_value *z = p->outputs[0];
    for (uint32_t i = 0; i < p->input_count; i++) {
        const onx_value *x = p->inputs[i];
        if (x && x->layout) {
            z->layout = x->dtype == z->dtype ? x->layout : onxi_blocked_layout(p->arena, z, onxi_blocked_of(x));
            return z->layout != NULL;
        }
    }
    return true;
}

bool onxi_blocked_alike(const onx_value *a, const onx_value *b)
{
    const uint32_t block = onxi_blocked_of(a);
    return block && block == onxi_blocked_of(b) && a->rank == b->rank && onxi_same_dims(a->dims, b->dims, a->rank);
}

bool onxi_blocked_view(const onx_value *v, uint32_t rank, uint32_t block, int64_t *dims, onx_value *out)
{
    uint64_t pixels = 1;
    if (v->rank > rank || (v->layout && v->rank != rank)) /* its channels would be another axis of the result */
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = i + v->rank < rank ? 1 : v->dims[i + v->rank - rank];
        pixels *= i < 2 ? 1 : (uint64_t)dims[i];
    }
    const bool one_channel = dims[1] == 1 && block > 1;
    if (!v->layout && !one_channel && (pixels != 1 || dims[1] % block))
        return false;
    dims[rank] = one_channel ? 1 : block;
    dims[1] /= dims[rank];
    *out = *v;
    out->rank = rank + 1;
    out->dims = dims;
    return true;
}

/* move.c - common code of Slice, Pad, Tile and Split: the source of each index is described and checked once, then one
 * loop copies runs of elements. */
#include "kernel/core/move.h"

#include "kernel/core/blocked.h"

/* ---- describing a move ---- */

const onx_value *onxi_move_input(const onxi_move_call *call, uint32_t index)
{
    return onxi_operand(call->p->input_count, call->inputs, index);
}

int64_t onxi_move_number(const onx_value *v, uint64_t index)
{
    int64_t out = 0;
    onx_convert(ONX_INT64, &out, (onx_dtype)v->dtype, (const char *)v->data + index * (onx_dtype_bits(v->dtype) / 8), 1,
                true);
    return out;
}

static onx_status move_start(const onxi_move_call *call, onxi_move *m)
{
    const onx_value *x = call->inputs[0];
    memset(m, 0, sizeof *m);
    m->rank = x->rank;
    m->bits = x->dtype == ONX_STRING ? 8 * (uint32_t)sizeof(onx_str) : onx_dtype_bits(x->dtype);
    if (!m->bits)
        return ONX_E_UNSUPPORTED;
    uint64_t stride = 1;
    for (uint32_t d = x->rank; d-- > 0;) {
        const int64_t n = x->dims[d];
        m->axis[d] = (onxi_move_axis){ .in = n, .out = n, .step = 1, .count = n, .stride = stride };
        stride *= (uint64_t)x->dims[d];
    }
    return ONX_OK;
}

static bool stays_inside(const onxi_move_axis *a)
{
    if (a->out == 0)
        return true;
    if (a->mode == ONXI_MOVE_FILL)
        return true;
    if (a->mode != ONXI_MOVE_EXACT)
        return a->count > 0;
    int64_t way, last;
    return onxi_mul_i64(a->out - 1, a->step, &way) && onxi_add_i64(a->offset, way, &last) && a->offset >= a->low &&
           a->offset - a->low < a->count && last >= a->low && last - a->low < a->count;
}

static bool is_whole(const onxi_move_axis *a)
{
    return a->offset == 0 && a->step == 1 && a->low == 0 && a->out == a->in && a->count == a->in;
}

/* Merges an axis that is copied whole with the one before it, if that is contiguous. Pads that crop what they add may
 * have any size. */
static void merge_axes(onxi_move *m)
{
    for (uint32_t d = m->rank; d-- > 1;) {
        onxi_move_axis *a = &m->axis[d - 1];
        const onxi_move_axis *b = &m->axis[d];
        if (!is_whole(b) || a->step != 1 || (a->mode != ONXI_MOVE_EXACT && a->mode != ONXI_MOVE_FILL))
            continue;
        onxi_move_axis both = { .step = 1, .stride = b->stride, .mode = a->mode };
        if (!onxi_mul_i64(a->offset, b->out, &both.offset) || !onxi_mul_i64(a->low, b->out, &both.low) ||
            !onxi_mul_i64(a->out, b->out, &both.out) || !onxi_mul_i64(a->count, b->count, &both.count) ||
            !onxi_mul_i64(a->in, b->in, &both.in))
            continue;
        *a = both;
        memmove(&m->axis[d], b + 1, (--m->rank - d) * sizeof *b);
    }
}

/* Does the output have the dims that the axes give? */
static onx_status move_check(const onxi_move_call *call, const onxi_move *m)
{
    const onx_value *y = call->output;
    if (y->rank != m->rank)
        return ONXI_MOVE_FAIL(call, "the output has rank %u, expected %u", y->rank, m->rank);
    for (uint32_t d = 0; d < m->rank; d++)
        if (y->dims[d] != m->axis[d].out)
            return ONXI_MOVE_FAIL(call, "dimension %u of the output is %lld, expected %lld", d, (long long)y->dims[d],
                                  (long long)m->axis[d].out);
    return ONX_OK;
}

/* Merges axes, once they are as they are in memory. */
static onx_status move_finish(const onxi_move_call *call, onxi_move *m)
{
    m->inner = 1;
    m->rows = 0;
    if (!call->output->count)
        return ONX_OK;
    for (uint32_t d = 0; d < m->rank; d++)
        if (!stays_inside(&m->axis[d]))
            return ONXI_MOVE_FAIL(call, "dimension %u would be made from elements that are not there", d);
    merge_axes(m);
    while (m->rank && is_whole(&m->axis[m->rank - 1]))
        m->inner *= (uint64_t)m->axis[--m->rank].out;
    if (!m->rank) {
        m->axis[0] = (onxi_move_axis){ .in = 1, .out = 1, .step = 1, .count = 1 };
        m->rank = 1;
    }
    m->rows = 1;
    for (uint32_t d = 0; d + 1 < m->rank; d++)
        m->rows *= (uint64_t)m->axis[d].out;
    return ONX_OK;
}

/* ---- copying ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Some output indices from one on, and their source: index `from`, then `step` further for each. */
typedef struct piece {
    int64_t from, step, count; /* from is -1 where elements are filled in */
} piece;

/* What output index `o` begins. */
static piece piece_at(const onxi_move_axis *a, int64_t o)
{
    int64_t at = a->offset + o * a->step, left = a->out - o, high = a->low + a->count;
    if (a->mode == ONXI_MOVE_EXACT)
        return (piece){ at, a->step, left };
    if (at >= a->low && at < high)
        return (piece){ at, 1, least(high - at, left) };
    int64_t rest = at - a->low, period = a->mode == ONXI_MOVE_REFLECT ? 2 * (a->count - 1) : a->count;
    switch (a->mode) {
    case ONXI_MOVE_EDGE:
        return at < a->low ? (piece){ a->low, 0, least(a->low - at, left) } : (piece){ high - 1, 0, left };
    case ONXI_MOVE_REFLECT:
    case ONXI_MOVE_WRAP:
        if (period <= 0)
            return (piece){ a->low, 0, left };
        rest %= period;
        rest += rest < 0 ? period : 0;
        return rest < a->count ? (piece){ a->low + rest, 1, least(a->count - rest, left) }
                               : (piece){ a->low + period - rest, -1, least(period - rest, left) };
    default:
        return (piece){ -1, 0, at < a->low ? least(a->low - at, left) : left };
    }
}

void onxi_move_copy(uint32_t bits, const onx_value *x, uint64_t from, onx_value *y, uint64_t to, uint64_t count)
{
    if (bits < 8) {
        for (uint64_t i = 0; i < count; i++)
            onxi_move_bits(bits, x->data, from + i, y->data, to + i);
        return;
    }
    uint64_t width = bits / 8;
    const char *source = (const char *)x->data + from * width;
    char *target = (char *)y->data + to * width;
    if (source == target)
        return;
    onxi_copy_item(target, source, count * width);
}

/* Contiguous runs, and the distance in elements between the starts of two runs. */
typedef struct runs {
    uint64_t count, each;
    int64_t source_step, target_step;
} runs;

/* `width` is a constant at each call. */
static inline __attribute__((always_inline)) void copy_apart(char *to, int64_t to_step, const char *from,
                                                             int64_t from_step, size_t width, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * to_step, from + i * from_step, width);
}

/* The same by `parts` parts from the start and as many from the end, which overlap. */
static inline __attribute__((always_inline)) void copy_ends(char *to, int64_t to_step, const char *from,
                                                            int64_t from_step, size_t width, int64_t count,
                                                            const size_t part, const size_t parts)
{
    const size_t end = width - part * parts;
    for (int64_t i = 0; i < count; i++, to += to_step, from += from_step)
        for (size_t k = 0; k < parts; k++) {
            memcpy(to + k * part, from + k * part, part);
            memcpy(to + end + k * part, from + end + k * part, part);
        }
}

void onxi_move_apart(char *to, int64_t to_step, const char *from, int64_t from_step, size_t width, int64_t count)
{
    switch (width) {
    case 1:
        copy_apart(to, to_step, from, from_step, 1, count);
        break;
    case 2:
        copy_apart(to, to_step, from, from_step, 2, count);
        break;
    case 4:
        copy_apart(to, to_step, from, from_step, 4, count);
        break;
    case 8:
        copy_apart(to, to_step, from, from_step, 8, count);
        break;
    case 16:
        copy_apart(to, to_step, from, from_step, 16, count);
        break;
    case 32:
        copy_apart(to, to_step, from, from_step, 32, count);
        break;
    default:
        if (width > 4 && width < 8)
            copy_ends(to, to_step, from, from_step, width, count, 4, 1);
        else if (width > 8 && width < 16)
            copy_ends(to, to_step, from, from_step, width, count, 8, 1);
        else if (width > 16 && width < 32)
            copy_ends(to, to_step, from, from_step, width, count, 16, 1);
        else if (width > 32 && width <= 64)
            copy_ends(to, to_step, from, from_step, width, count, 16, 2);
        else if (width > 64 && width <= 128)
            copy_ends(to, to_step, from, from_step, width, count, 16, 4);
        else if (width > 128 && width <= 256)
            copy_ends(to, to_step, from, from_step, width, count, 16, 8);
        else
            copy_apart(to, to_step, from, from_step, width, count);
    }
}

static void copy_runs(uint32_t bits, const runs *r, const onx_value *x, uint64_t from, onx_value *y, uint64_t to)
{
    if (bits < 8) {
        for (int64_t i = 0; i < (int64_t)r->count; i++)
            onxi_move_copy(bits, x, from + (uint64_t)(i * r->source_step), y, to + (uint64_t)(i * r->target_step),
                           r->each);
        return;
    }
    const int64_t bytes = bits / 8;
    onxi_move_apart((char *)y->data + to * (uint64_t)bytes, r->target_step * bytes,
                    (const char *)x->data + from * (uint64_t)bytes, r->source_step * bytes, r->each * (uint64_t)bytes,
                    (int64_t)r->count);
}

/* Repeats the first `period` bytes up to `size` by copying what is there already, up to a size that fits into a
 * cache. */
static void repeat_bytes(char *at, uint64_t period, uint64_t size)
{
    const uint64_t most = 1u << 15;
    uint64_t whole = period; /* periods that are copied at once */
    for (uint64_t done = period, n; done < size; done += n) {
        whole = done < most ? done : whole;
        n = whole < size - done ? whole : size - done;
        memcpy(at + done, at, (size_t)n);
    }
}

static void fill_run(uint32_t bits, const void *fill, onx_value *y, uint64_t to, uint64_t count)
{
    const uint64_t width = bits / 8;
    char *at = (char *)y->data + to * width;
    if (bits < 8) {
        for (uint64_t i = 0; i < count; i++)
            onxi_move_bits(bits, fill, 0, y->data, to + i);
    } else if (count) {
        memcpy(at, fill, (size_t)width);
        repeat_bytes(at, width, count * width);
    }
}

static void move_row(const onxi_move *m, const onx_value *x, uint64_t base, onx_value *y, uint64_t to, const void *fill)
{
    const onxi_move_axis *along = &m->axis[m->rank - 1];
    const bool repeats = along->mode == ONXI_MOVE_WRAP && along->out > along->count && m->bits >= 8;
    const int64_t end = repeats ? along->count : along->out;
    char *const start = (char *)y->data + to * (m->bits / 8);
    for (int64_t o = 0; o < end;) {
        piece run = piece_at(along, o);
        run.count = least(run.count, end - o);
        const uint64_t from = base + (uint64_t)run.from * along->stride, count = (uint64_t)run.count * m->inner;
        if (run.from < 0)
            fill_run(m->bits, fill, y, to, count);
        else if (run.step == 1 || run.count == 1)
            onxi_move_copy(m->bits, x, from, y, to, count);
        else
            copy_runs(m->bits,
                      &(runs){ (uint64_t)run.count, m->inner, run.step * (int64_t)along->stride, (int64_t)m->inner }, x,
                      from, y, to);
        to += count;
        o += run.count;
    }
    if (repeats) {
        const uint64_t width = m->inner * (m->bits / 8);
        repeat_bytes(start, (uint64_t)along->count * width, (uint64_t)along->out * width);
    }
}

/* The position of a row along all axes but the last one: input offset of its start, accumulated axis by axis. */
typedef struct row_place {
    int64_t at[ONX_RANK_MAX];
    uint64_t base[ONX_RANK_MAX]; /* before the axis */
    bool filled[ONX_RANK_MAX];
} row_place;

/* From axis `d` on, where `at` has changed. */
static void place_from(const onxi_move *m, row_place *r, uint32_t d)
{
    for (; d + 1 < m->rank; d++) {
        const int64_t from = piece_at(&m->axis[d], r->at[d]).from;
        r->filled[d + 1] = r->filled[d] || from < 0;
        r->base[d + 1] = r->base[d] + (uint64_t)from * m->axis[d].stride;
    }
}

/* Are the rows so short that a piece of them is copied for many rows at once? */
static bool are_thin(const onxi_move *m)
{
    enum { THIN = 32 /* elements */, THIN_BYTES = 512 };
    const onxi_move_axis *a = &m->axis[m->rank - 1];
    const uint64_t each = (uint64_t)a->out * m->inner;
    return m->rank > 1 && (each <= THIN || each * m->bits <= 8 * THIN_BYTES) && a->step == 1;
}

/* Copies at most `most` rows from a position inside of the input; returns their number. */
static uint64_t move_thin(const onxi_move *m, const row_place *r, const onx_value *x, onx_value *y, uint64_t to,
                          const void *fill, uint64_t most)
{
    enum { TOGETHER = 4096 }; /* elements, which stay in a cache until the last piece of their rows is there */
    const onxi_move_axis *a = &m->axis[m->rank - 2], *along = a + 1;
    const piece rows = piece_at(a, r->at[m->rank - 2]);
    const uint64_t each = (uint64_t)along->out * m->inner, some = TOGETHER / each + 1;
    uint64_t count = (uint64_t)rows.count < most ? (uint64_t)rows.count : most;
    count = count < some ? count : some;
    const uint64_t base = r->base[m->rank - 1];
    runs run = { count, 0, rows.step * (int64_t)a->stride, (int64_t)each };
    bool filled = false;
    piece p;
    for (int64_t o = 0; o < along->out && !filled; o += p.count) {
        p = piece_at(along, o);
        filled = p.from < 0;
    }
    if (filled)
        fill_run(m->bits, fill, y, to, count * each);
    for (int64_t o = 0; o < along->out; o += p.count) {
        p = piece_at(along, o);
        const int64_t parts = p.step == 1 ? 1 : p.count;
        run.each = (uint64_t)(p.count / parts) * m->inner;
        for (int64_t i = 0; i < parts && p.from >= 0; i++)
            copy_runs(m->bits, &run, x, base + (uint64_t)(p.from + i * p.step) * along->stride, y,
                      to + (uint64_t)(o + i) * m->inner);
    }
    return count;
}

/* The number of rows from here on that contain nothing of the input, at most `most`. */
static uint64_t filled_rows(const onxi_move *m, const row_place *r, uint64_t most)
{
    const onxi_move_axis *a = &m->axis[m->rank - 2];
    const int64_t at = r->at[m->rank - 2];
    const uint64_t count = (uint64_t)(r->filled[m->rank - 2] ? a->out - at : piece_at(a, at).count);
    return count < most ? count : most;
}

static void move_rows(const onxi_move *m, const onx_value *x, onx_value *y, const void *fill, uint64_t first,
                      uint64_t last)
{
    if (first >= last) /* of an output without elements rows have no places */
        return;
    const bool thin = are_thin(m);
    const uint64_t each = (uint64_t)m->axis[m->rank - 1].out * m->inner;
    row_place r;
    uint64_t rest = first;
    for (uint32_t d = m->rank - 1; d-- > 0; rest /= (uint64_t)m->axis[d].out)
        r.at[d] = (int64_t)(rest % (uint64_t)m->axis[d].out);
    r.base[0] = 0;
    r.filled[0] = false;
    place_from(m, &r, 0);
    for (uint64_t row = first, done = 1; row < last; row += done) {
        done = 1;
        if (r.filled[m->rank - 1]) {
            done = filled_rows(m, &r, last - row);
            fill_run(m->bits, fill, y, row * each, done * each);
        } else if (thin)
            done = move_thin(m, &r, x, y, row * each, fill, last - row);
        else
            move_row(m, x, r.base[m->rank - 1], y, row * each, fill);
        uint32_t d = m->rank - 1;
        if (d > 0)
            r.at[d - 1] += (int64_t)done - 1;
        while (d > 0 && ++r.at[d - 1] == m->axis[d - 1].out)
            r.at[--d] = 0;
        if (d > 0)
            place_from(m, &r, d - 1);
    }
}

/* ---- moves that repeat whole axes ---- */

/* False: it does something else, too. */
static bool only_repeats(const onxi_move *m)
{
    bool any = false;
    for (uint32_t d = 0; d < m->rank; d++) {
        const onxi_move_axis *a = &m->axis[d];
        const bool wraps = a->mode == ONXI_MOVE_WRAP && a->offset == 0 && a->count == a->in && a->out % a->in == 0;
        if (!wraps && !is_whole(a))
            return false;
        any = any || wraps;
    }
    return any && m->bits % 8 == 0;
}

static void repeat_as(const onxi_move *m, unsigned threads, onxi_copies *r)
{
    onxi_copies_start(r, m->bits / 8);
    for (uint32_t d = 0; d < m->rank; d++) {
        const onxi_move_axis *a = &m->axis[d];
        onxi_copies_add(r, (uint64_t)(a->out / a->count), true);
        onxi_copies_add(r, (uint64_t)a->count, false);
    }
    onxi_copies_add(r, m->inner, false);
    onxi_copies_finish(r, threads);
}

/* ---- bytes that are transposed ---- */

typedef uint8_t sixteen_bytes __attribute__((vector_size(ONXI_MOVE_SQUARE)));

/* Interleaves the first and the second halves of two vectors. */
static inline sixteen_bytes first_halves(sixteen_bytes a, sixteen_bytes b)
{
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

static inline sixteen_bytes second_halves(sixteen_bytes a, sixteen_bytes b)
{
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/* Interleaves each row with the one half of all rows after it: after four times columns are rows. */
static inline void turn_square(sixteen_bytes *x)
{
    enum { ROWS = ONXI_MOVE_SQUARE, TIMES = 4 };
    sixteen_bytes y[ROWS];
    for (int t = 0; t < TIMES; t++) {
        for (int i = 0; i < ROWS / 2; i++) {
            y[2 * i] = first_halves(x[i], x[i + ROWS / 2]);
            y[2 * i + 1] = second_halves(x[i], x[i + ROWS / 2]);
        }
        memcpy(x, y, sizeof y);
    }
}

void onxi_move_turn_bytes(const onxi_move_square *s)
{
    sixteen_bytes x[ONXI_MOVE_SQUARE];
    const bool whole_rows = s->columns == ONXI_MOVE_SQUARE, whole_columns = s->rows == ONXI_MOVE_SQUARE;
    if (!whole_rows || !whole_columns)
        memset(x, 0, sizeof x);
    for (uint64_t i = 0; i < s->rows; i++) {
        const uint8_t *from = s->from + i * s->in;
        if (whole_rows || s->from_end - from >= ONXI_MOVE_SQUARE)
            memcpy(&x[i], from, sizeof x[i]);
        else
            memcpy(&x[i], from, (size_t)s->columns);
    }
    turn_square(x);
    for (uint64_t i = 0; i < s->columns; i++) {
        uint8_t *to = s->to + i * s->out;
        if (whole_columns || s->to_end - to >= ONXI_MOVE_SQUARE)
            memcpy(to, &x[i], sizeof x[i]);
        else
            memcpy(to, &x[i], (size_t)s->rows);
    }
}

void onxi_move_turn_all_bytes(const onxi_move_square *s)
{
    enum { SIDE = ONXI_MOVE_SQUARE };
    const bool close = s->out == s->rows && s->rows < SIDE;
    if (onxi_move_planes(1, s->from, (int64_t)s->in, s->columns, s->rows, s->to, s->out))
        return;
    for (uint64_t j = 0, columns; j < s->columns; j += columns) {
        columns = s->columns - j < SIDE ? s->columns - j : SIDE;
        for (uint64_t i = 0, rows; i < s->rows; i += rows) {
            rows = s->rows - i < SIDE ? s->rows - i : SIDE;
            /* Recomputes the last rows and columns as a full square instead of a partial one. */
            const uint64_t row = rows < SIDE && s->rows >= SIDE ? s->rows - SIDE : i;
            const uint64_t column = columns < SIDE && s->columns >= SIDE ? s->columns - SIDE : j;
            uint8_t *to = s->to + column * s->out + row;
            const uint64_t high = row < i ? SIDE : rows, wide = column < j ? SIDE : columns;
            onxi_move_turn_bytes(&(onxi_move_square){ s->from + row * s->in + column, s->from_end, to,
                                                      close ? s->to_end : to, s->in, s->out, high, wide });
        }
    }
}

/* ---- moves that are known while preparing, or depend on data ---- */

static bool is_known(const onx_prepare *p, const onxi_move_body *body)
{
    for (uint32_t i = 1; i < p->input_count; i++)
        if (i != body->fill_input && p->inputs[i] && !p->inputs[i]->data)
            return false;
    return p->outputs[0] && p->outputs[0]->kind == ONX_VALUE_TENSOR;
}

/* Gives an axis of channels the unit of a block. False: parts of blocks would move. */
static bool take_blocks(onxi_move_axis *a, int64_t block)
{
    const int64_t in = a->in / block;
    if (is_whole(a))
        *a = (onxi_move_axis){ .in = in, .out = in, .step = 1, .count = in };
    else if (a->mode == ONXI_MOVE_EXACT && a->step == 1 && a->offset % block == 0 && a->out % block == 0)
        *a = (onxi_move_axis){ .in = in, .out = a->out / block, .offset = a->offset / block, .step = 1, .count = in };
    else
        return false;
    return true;
}

/* For an image whose channels lie next to each other: puts the axes in the order that they have in memory, and gives
 * the result the same kind of layout. */
static onx_status lay_out(onx_prepare *p, onxi_move *m)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    const uint32_t rank = m->rank, block = onxi_blocked_of(x);
    const onx_layout *layout;
    if (!p->want || !block || !y->count || rank == ONX_RANK_MAX)
        return ONX_E_UNSUPPORTED;
    onxi_move_axis channels = m->axis[1];
    const bool last = block == x->dims[1];
    if (last ? !onxi_channels_last(p, y, &layout)
             : !take_blocks(&channels, block) || !(layout = onxi_blocked_layout(p->arena, y, block)))
        return ONX_E_UNSUPPORTED;
    uint64_t stride = last ? (uint64_t)x->dims[1] : block;
    for (uint32_t d = rank; d-- > 2; stride *= (uint64_t)x->dims[d])
        m->axis[d].stride = stride;
    if (last) {
        memmove(&m->axis[1], &m->axis[2], (rank - 2) * sizeof *m->axis);
        channels.stride = 1;
        m->axis[rank - 1] = channels;
    } else {
        channels.stride = stride;
        m->axis[1] = channels;
        m->axis[m->rank++] = (onxi_move_axis){ .in = block, .out = block, .step = 1, .count = block, .stride = 1 };
    }
    onxi_image_layouts(p, x->layout, layout);
    return ONX_OK;
}

onx_status onxi_move_prepare(onx_prepare *p)
{
    const onxi_move_body *body = p->kernel->body;
    onxi_move_params *q = ONXI_NEW(p->arena, onxi_move_params);
    if (!q)
        return ONX_E_MEMORY;
    p->params = q;
    q->known = is_known(p, body);
    const bool laid_out = (p->kernel->flags & ONX_KERNEL_LAYOUTS) != 0;
    if (!q->known && laid_out)
        return ONX_E_UNSUPPORTED;
    if (!q->known)
        return (q->kept = onxi_prepare_keep(p)) ? ONX_OK : ONX_E_MEMORY;
    const onxi_move_call call = { .p = p, .inputs = p->inputs, .output = p->outputs[0] };
    ONX_TRY(move_start(&call, &q->move));
    ONX_TRY(body->describe(&call, &q->move));
    ONX_TRY(move_check(&call, &q->move));
    if (laid_out)
        ONX_TRY(lay_out(p, &q->move));
    ONX_TRY(move_finish(&call, &q->move));
    p->rows = q->move.rows;
    if (p->rows && only_repeats(&q->move)) {
        if (!(q->repeat = ONXI_NEW(p->arena, onxi_copies)))
            return ONX_E_MEMORY;
        repeat_as(&q->move, p->threads, q->repeat);
        p->rows = q->repeat->rows;
        p->grain = ONXI_MOVE_GRAIN / (p->outputs[0]->count / p->rows) + 1;
        return ONX_OK;
    }
    uint64_t row = q->move.rows ? (uint64_t)q->move.axis[q->move.rank - 1].out * q->move.inner : 1;
    p->grain = q->move.bits < 8 ? p->rows + 1 : ONXI_MOVE_GRAIN / row + 1; /* threads do not share bytes */
    return ONX_OK;
}

/* Allocates the output as described, for versions without a rule that determines its shape. */
static onx_status size_output(const onxi_move *m, const onx_value *x, onx_value *y)
{
    int64_t dims[ONX_RANK_MAX];
    for (uint32_t d = 0; d < m->rank; d++)
        dims[d] = m->axis[d].out;
    return onxi_value_size(y, x->dtype, m->rank, dims);
}

onx_status onxi_move_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_move_params *q = work->params;
    const onxi_move_body *body = work->prepared->kernel->body;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    const onx_value *value =
        body->fill_input ? onxi_operand(work->prepared->input_count, work->inputs, body->fill_input) : NULL;
    if (value && value->dtype != x->dtype)
        return onx_work_fail(work, ONX_E_INVALID, "the value to fill with is %s, the input %s",
                             onx_dtype_name(value->dtype), onx_dtype_name(x->dtype));
    const void *fill = value && value->count ? value->data : q->fill;
    if (q->repeat) {
        onxi_copies_run(q->repeat, x->data, y->data, first, last);
        return ONX_OK;
    }
    if (q->known) {
        move_rows(&q->move, x, y, fill, first, last);
        return ONX_OK;
    }
    onxi_move own;
    const onx_prepare again = onxi_prepare_again(q->kept, work);
    const onxi_move_call call = { .p = &again, .inputs = work->inputs, .output = y };
    ONX_TRY(move_start(&call, &own));
    ONX_TRY(body->describe(&call, &own));
    if (work->prepared->kernel->flags & ONX_KERNEL_SIZES_OUTPUT)
        ONX_TRY(size_output(&own, x, y));
    ONX_TRY(move_check(&call, &own));
    ONX_TRY(move_finish(&call, &own));
    if (own.rows && only_repeats(&own)) {
        onxi_copies repeat;
        repeat_as(&own, 1, &repeat);
        onxi_copies_run(&repeat, x->data, y->data, 0, repeat.rows);
    } else {
        move_rows(&own, x, y, fill, 0, own.rows);
    }
    return ONX_OK;
}

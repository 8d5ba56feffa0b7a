/* product.c - MatMul and Gemm with constant weights, and Conv of images of one pixel: packed panels of columns, tiles
 * in registers, to which bias, residual and activation are applied before they are stored. The sum over k runs in one
 * fixed order, so the bits depend neither on blocking nor on threads. After Goto and van de Geijn, "Anatomy of
 * High-Performance Matrix Multiplication" (2008). */
#include "kernel/simd/product.h"
#include "kernel/simd/narrow.h"

/* Number of panels that are gathered at a time when weights are not packed ahead. */
enum { GROUP = 8, STRETCH = BLOCK_K * PANEL /* floats of a panel of those */ };

typedef struct product_params {
    product of;
    const float *b;     /* packed: panel by panel, k rows of PANEL columns; NULL: unpacked, or narrow */
    const char *narrow; /* low-precision weights: panel by panel, `narrow_step` bytes each; NULL: none */
    uint64_t narrow_step;
    unsigned precision; /* ONX_PRECISION_* of narrow */
    bool in_place;      /* b as the constant has it: */
    packing shape;
    onx_elements elements;
    bool column;   /* b is unpacked and has one column: most of a panel of it would be padding */
    bool thin;     /* less than a panel of columns, with all of k in a cache: rows of the result are contiguous */
    uint32_t rank; /* of the batch, where b comes as it is */
    int64_t dims[ONX_RANK_MAX], a_step[ONX_RANK_MAX], b_step[ONX_RANK_MAX]; /* steps in elements, 0: repeated */
} product_params;

/* ---- packing in fewer bits ---- */

typedef struct narrow_packing {
    packing shape;
    unsigned precision;
    uint64_t step;
} narrow_packing;

static onx_status pack_narrow(void *user, const void *elements, uint64_t panel, void *out)
{
    enum { ROWS = 64 };
    const narrow_packing *q = user;
    const uint64_t all = q->shape.k, width = narrow_width(q->precision);
    float rows[ROWS * PANEL], most[PANEL] = { 0 }, factors[PANEL], to_int8[PANEL] = { 0 };
    char *to = (char *)out + panel * q->step;
    for (uint64_t k = 0; q->precision == ONX_PRECISION_INT8 && k < all; k += ROWS) {
        const uint64_t count = all - k < ROWS ? all - k : ROWS;
        product_gather(&q->shape, elements, panel, k, count, rows);
        for (uint64_t i = 0; i < count * PANEL; i++)
            most[i % PANEL] = fabsf(rows[i]) > most[i % PANEL] ? fabsf(rows[i]) : most[i % PANEL];
    }
    narrow_factors(most, factors, to_int8);
    memcpy(to, factors, narrow_head(q->precision));
    to += narrow_head(q->precision);
    for (uint64_t k = 0; k < all; k += ROWS) {
        const uint64_t count = all - k < ROWS ? all - k : ROWS;
        product_gather(&q->shape, elements, panel, k, count, rows);
        if (!narrow_pack(q->precision, rows, count * PANEL, to_int8, to))
            return ONX_E_UNSUPPORTED;
        to += count * PANEL * width;
    }
    return ONX_OK;
}

/* ---- not packing: pieces of what the constant has ---- */

static const float *elements_at(const onx_elements *b, uint64_t first, uint64_t count, float *space)
{
    if (b->data)
        memcpy(space, (const char *)b->data + first * sizeof *space, count * sizeof *space);
    else
        b->read(b->user, first, count, space);
    return space;
}

/* Gathers rows k0 .. k0+kc-1 of panels p0 .. p1-1, each into a STRETCH of `out`, in the layout of packed weights. */
static void gather_rows(const product_params *q, uint64_t p0, uint64_t p1, uint64_t k0, uint64_t kc, float *out)
{
    float row[GROUP * PANEL];
    const uint64_t first = p0 * PANEL, last = p1 * PANEL < q->of.n ? p1 * PANEL : q->of.n;
    memset(row, 0, sizeof row);
    for (uint64_t k = 0; k < kc; k++) {
        const float *from = elements_at(&q->elements, (k0 + k) * q->of.n + first, last - first, row);
        for (uint64_t p = p0; p < p1; p++, from += PANEL)
            memcpy(out + (p - p0) * STRETCH + k * PANEL, from, PANEL * sizeof *out);
    }
}

static void gather_columns(const product_params *q, uint64_t panel, uint64_t k0, uint64_t kc, float *out)
{
    enum { PIECE = 64 };
    float t[PANEL][PIECE];
    const uint64_t first = panel * PANEL, width = q->of.n - first < PANEL ? q->of.n - first : PANEL;
    memset(t, 0, sizeof t);
    for (uint64_t at = 0; at < kc; at += PIECE) {
        const uint64_t count = kc - at < PIECE ? kc - at : PIECE;
        for (uint64_t i = 0; i < width; i++)
            (void)elements_at(&q->elements, (first + i) * q->of.k + k0 + at, count, t[i]);
        for (uint64_t k = 0; k < count; k++)
            for (uint64_t i = 0; i < PANEL; i++)
                out[(at + k) * PANEL + i] = t[i][k];
    }
}

static void gather_group(const product_params *q, uint64_t p0, uint64_t p1, uint64_t k0, uint64_t kc, float *out)
{
    if (!q->shape.turned)
        gather_rows(q, p0, p1, k0, kc, out);
    for (uint64_t p = p0; q->shape.turned && p < p1; p++)
        gather_columns(q, p, k0, kc, out + (p - p0) * STRETCH);
}

/* ---- tiles ---- */

/* A product with one row, limited by memory bandwidth: several panels are read at a time, because several streams are
 * faster than one, with enough sums that none waits for another. With vectors of four floats that takes more panels,
 * which are narrower there. WebAssembly has no prefetch instruction: packed panels are read one after the other. */
enum { STREAMS = ONXI_LANES < 8 ? 4 : 2, WAYS = ONXI_LANES < 8 ? 1 : 2, SUMS = STREAMS * WAYS };
#ifdef __wasm__
enum { ONE_BY_ONE = 1 };
#else
enum { ONE_BY_ONE = 0 };
#endif
typedef struct row_sums {
    onxi_vf of[SUMS][TILE_V];
} row_sums;

static inline void row_begin(row_sums *s)
{
    for (int i = 0; i < SUMS * TILE_V; i++)
        s->of[i / TILE_V][i % TILE_V] = vf_all(0);
}

/* Panels, and how far it is from one row of each to the next. */
typedef struct streams {
    const float *b[STREAMS];
    uint64_t step[STREAMS];
} streams;

/* Adds kc rows of `count` panels (a constant). The loop ends with the panels that remain after each sum had one. */
__attribute__((always_inline)) static inline void row_add(const float *restrict a, const streams *from, uint64_t kc,
                                                          row_sums *s, const int count)
{
    const int ways = SUMS / count;
    onxi_vf sum[SUMS][TILE_V];
    streams in = *from;
    memcpy(sum, s->of, sizeof sum);
    uint64_t k = 0;
    for (; k + (uint64_t)ways <= kc; k += (uint64_t)ways, a += ways)
        UNROLL
    for (int w = 0; w < ways; w++) {
        UNROLL
        for (int i = 0; i < count; i++) {
            UNROLL
            for (int v = 0; v < TILE_V; v++)
                sum[i * ways + w][v] += a[w] * vf_load(in.b[i] + v * ONXI_LANES);
            in.b[i] += in.step[i];
        }
    }
    for (; k < kc; k++, a++)
        for (int i = 0; i < count; i++) {
            for (int v = 0; v < TILE_V; v++)
                sum[i * ways][v] += *a * vf_load(in.b[i] + v * ONXI_LANES);
            in.b[i] += in.step[i];
        }
    memcpy(s->of, sum, sizeof sum);
}

__attribute__((always_inline)) static inline void row_end(const row_sums *s, float *restrict c, const int count)
{
    const int ways = SUMS / count;
    for (int i = 0; i < count; i++)
        for (int v = 0; v < TILE_V; v++) {
            onxi_vf sum = s->of[i * ways][v];
            for (int w = 1; w < ways; w++)
                sum += s->of[i * ways + w][v];
            vf_store(c + i * PANEL + v * ONXI_LANES, sum);
        }
}

static void row_of_panels(const float *restrict a, const streams *from, uint64_t kc, float *restrict c)
{
    row_sums sums;
    row_begin(&sums);
    row_add(a, from, kc, &sums, STREAMS);
    row_end(&sums, c, STREAMS);
}

static void row_of_panel(const float *restrict a, const float *b, uint64_t kc, float *restrict c)
{
    const streams from = { .b = { b }, .step = { PANEL } };
    row_sums sums;
    row_begin(&sums);
    row_add(a, &from, kc, &sums, 1);
    row_end(&sums, c, 1);
}

/* The operands of one product of the batch. */
typedef struct operands {
    const float *a, *b, *edge; /* edge: the last columns of an unpacked b, padded to a panel */
    float *c;
    uint64_t row; /* of the whole result that c begins with */
} operands;

static const float *panel_of(const product_params *q, const operands *o, uint64_t panel, uint64_t *step)
{
    *step = PANEL;
    if (q->b)
        return o->b + panel * q->of.k * PANEL;
    if ((panel + 1) * PANEL > q->of.n)
        return o->edge;
    *step = q->of.n;
    return o->b + panel * PANEL;
}

/* With weights in fewer bits. */
static void one_row_narrow(const product_params *q, const onx_work *work, const operands *o, uint64_t p0, uint64_t p1)
{
    for (uint64_t p = p0; p < p1; p += 2) {
        float two[2 * PANEL];
        const uint64_t pair = p + 1 < p1 ? p + 1 : p;
        const char *panels[] = { q->narrow + p * q->narrow_step, q->narrow + pair * q->narrow_step };
        narrow_row(q->precision, o->a, panels, q->of.k, two);
        product_put_row(&q->of, work, o->c, o->row, p, pair + 1, two);
    }
}

static void one_row(const product_params *q, const onx_work *work, const operands *o, uint64_t p0, uint64_t p1)
{
    for (uint64_t p = p0, end; p < p1; p = end) {
        float row[STREAMS * PANEL];
        streams from;
        if (ONE_BY_ONE && q->b) {
            end = p + 1;
            row_of_panel(o->a, o->b + p * q->of.k * PANEL, q->of.k, row);
            product_put_row(&q->of, work, o->c, o->row, p, end, row);
            continue;
        }
        end = p1 - p < STREAMS ? p1 : p + STREAMS;
        for (uint64_t i = 0; i < STREAMS; i++) /* the last one again where there are no more */
            from.b[i] = panel_of(q, o, p + i < end ? p + i : end - 1, &from.step[i]);
        row_of_panels(o->a, &from, q->of.k, row);
        product_put_row(&q->of, work, o->c, o->row, p, end, row);
    }
}

/* The same with weights that are gathered, several panels at a time. */
static void one_row_gathered(const product_params *q, const onx_work *work, const operands *o, uint64_t p0, uint64_t p1)
{
    float *space = work->thread_workspace;
    for (uint64_t g = p0, end; g < p1; g = end) {
        row_sums sums[GROUP / STREAMS];
        end = p1 - g < GROUP ? p1 : g + GROUP;
        for (int i = 0; i < GROUP / STREAMS; i++)
            row_begin(&sums[i]);
        for (uint64_t k0 = 0, kc; k0 < q->of.k; k0 += kc) {
            kc = q->of.k - k0 < BLOCK_K ? q->of.k - k0 : BLOCK_K;
            gather_group(q, g, end, k0, kc, space);
            for (uint64_t p = g; p < end; p += STREAMS) {
                streams from;
                for (uint64_t i = 0; i < STREAMS; i++) {
                    from.b[i] = space + ((p + i < end ? p + i : end - 1) - g) * STRETCH;
                    from.step[i] = PANEL;
                }
                row_add(o->a + k0, &from, kc, &sums[(p - g) / STREAMS], STREAMS);
            }
        }
        for (uint64_t p = g; p < end; p += STREAMS) {
            float row[STREAMS * PANEL];
            row_end(&sums[(p - g) / STREAMS], row, STREAMS);
            product_put_row(&q->of, work, o->c, o->row, p, p + STREAMS < end ? p + STREAMS : end, row);
        }
    }
}

/* A block of k that the tiles of some rows accumulate; `next` is the packed block after it, for prefetching. */
typedef struct stretch {
    uint64_t k0, kc, tiles;
    const float *next;
    const float *b; /* where it is, unless it is packed or comes as it is */
} stretch;

/* A tile of the result. half: the last panel, if it has its columns in one vector. */
__attribute__((always_inline)) static inline void tile_of_panel(const product_params *q, const onx_work *work,
                                                                const operands *o, uint64_t row, uint64_t rows,
                                                                uint64_t index, uint64_t panel, const stretch *s,
                                                                const bool half)
{
    const uint64_t k0 = s->k0, kc = s->kc;
    float edge[TILE_M * PANEL];
    const product_place at = { .c = o->c,
                               .row = row,
                               .rows = rows,
                               .whole_row = o->row + row,
                               .panel = panel,
                               .ends = k0 + kc == q->of.k,
                               .half = half,
                               .edge = edge };
    tile_operands t = { .a = o->a + row * q->of.k + k0, .lda = q->of.k, .k = kc, .more = k0 > 0 };
    if (q->narrow || q->in_place) {
        t.b = s->b;
        t.ldb = PANEL;
    } else {
        t.b = panel_of(q, o, panel, &t.ldb) + k0 * t.ldb;
    }
    product_tile_begin(&q->of, &at, &t);
    tile_fetch(&t, s->next, index, s->tiles);
    if (half)
        tile_run_half(&t, rows);
    else
        tile_run(&t, rows);
    product_tile_end(&q->of, work, &at, &t);
}

/* Not inlined, so that they do not change the code of whole tiles. */
__attribute__((noinline)) static void half_tile(const product_params *q, const onx_work *work, const operands *o,
                                                uint64_t row, uint64_t rows, uint64_t index, uint64_t panel,
                                                const stretch *s)
{
    tile_of_panel(q, work, o, row, rows, index, panel, s, true);
}

static void tile(const product_params *q, const onx_work *work, const operands *o, uint64_t row, uint64_t rows,
                 uint64_t index, uint64_t panel, const stretch *s)
{
    if (q->of.n - panel * PANEL <= ONXI_LANES)
        half_tile(q, work, o, row, rows, index, panel, s);
    else
        tile_of_panel(q, work, o, row, rows, index, panel, s, false);
}

static operands operands_of(const product_params *q, const onx_work *work, uint64_t batch)
{
    operands o = { .a = work->inputs[0]->data, .b = q->b, .c = work->outputs[0]->data };
    if (q->b || q->narrow || q->in_place)
        return o;
    o.b = work->inputs[1]->data;
    o.c += batch * q->of.m * q->of.n;
    o.row = batch * q->of.m;
    for (uint32_t d = q->rank; d-- > 0; batch /= (uint64_t)q->dims[d]) {
        const int64_t at = (int64_t)(batch % (uint64_t)q->dims[d]);
        o.a += at * q->a_step[d];
        o.b += at * q->b_step[d];
    }
    if (q->column)
        return o;
    const uint64_t whole = q->of.n / PANEL * PANEL;
    float *edge = work->thread_workspace;
    for (uint64_t k = 0; whole < q->of.n && k < q->of.k; k++)
        for (uint64_t i = 0; i < PANEL; i += ONXI_LANES)
            vf_store(edge + k * PANEL + i, whole + i < q->of.n
                                               ? vf_load_part(o.b + k * q->of.n + whole + i, q->of.n - whole - i, 0)
                                               : vf_all(0));
    o.edge = edge;
    return o;
}

/* The rows of a block times a stretch of panels p0 .. p1-1. */
static void one_stretch(const product_params *q, const onx_work *work, const operands *o, uint64_t m0, uint64_t m1,
                        uint64_t p0, uint64_t p1, uint64_t k0, uint64_t kc)
{
    stretch s = { .k0 = k0, .kc = kc, .tiles = (m1 - m0 + TILE_M - 1) / TILE_M };
    float *space = work->thread_workspace;
    for (uint64_t p = p0; p < p1; p++) {
        const bool along = p + 1 < p1;
        if (q->b)
            s.next = along || k0 + kc < q->of.k
                         ? o->b + (along ? (p + 1) * q->of.k + k0 : p0 * q->of.k + k0 + kc) * PANEL
                         : NULL;
        s.b = space;
        if (q->narrow)
            narrow_widen(q->precision, q->narrow + p * q->narrow_step, k0, kc, space);
        if (q->in_place && (p - p0) % GROUP == 0)
            gather_group(q, p, p1 - p < GROUP ? p1 : p + GROUP, k0, kc, space);
        if (q->in_place)
            s.b += (p - p0) % GROUP * STRETCH;
        for (uint64_t m = m0, rows, index = 0; m < m1; m += rows, index++) {
            rows = tile_height(m1 - m);
            tile(q, work, o, m, rows, index, p, &s);
        }
    }
}

/* Copies `rows` rows of n floats from rows that are PANEL apart to contiguous rows. Whole vectors are stored; the
 * excess of a row is overwritten by the rows after it. `room` floats may be written. */
static void put_thin(const float *from, uint64_t rows, uint64_t n, float *c, uint64_t room)
{
    const uint64_t vectors = (n + ONXI_LANES - 1) / ONXI_LANES;
    for (uint64_t i = 0; i < rows; i++, from += PANEL, c += n, room -= n) {
        if (room < vectors * ONXI_LANES) {
            memcpy(c, from, n * sizeof *c);
            continue;
        }
        for (uint64_t v = 0; v < vectors; v++)
            vf_store(c + v * ONXI_LANES, vf_load(from + v * ONXI_LANES));
    }
}

/* Rows of less than a panel of columns. Rows are stored as whole vectors; their excess is overwritten by the next row.
 * Only the last rows, and those with post-operations, go through the buffer `edge`. The sums are those of other tiles,
 * in one vector if all columns fit into it. */
static void thin_rows(const product_params *q, const onx_work *work, const operands *o, uint64_t m0, uint64_t m1)
{
    const uint64_t n = q->of.n, width = n <= ONXI_LANES ? ONXI_LANES : PANEL;
    const bool apart = q->of.posts.count || tile_depth(q->of.k) < q->of.k;
    float edge[TILE_M * PANEL];
    tile_operands t = { .lda = q->of.k };
    const float *b = panel_of(q, o, 0, &t.ldb);
    for (uint64_t m = m0, rows; m < m1; m += rows) {
        rows = tile_height(m1 - m);
        const uint64_t room = (m1 - m) * n;
        const bool direct = !apart && (rows - 1) * n + width <= room;
        t.c = direct ? o->c + m * n : edge;
        t.ldc = direct ? n : PANEL;
        for (uint64_t k = 0; k < q->of.k; k += t.k) {
            t.a = o->a + m * q->of.k + k;
            t.b = b + k * t.ldb;
            t.k = tile_depth(q->of.k - k);
            t.more = k > 0;
            (width < PANEL ? tile_run_half : tile_run)(&t, rows);
        }
        if (direct)
            continue;
        product_finish(&q->of, work, o->row + m, 0, rows, n, edge, PANEL);
        put_thin(edge, rows, n, o->c + m * n, room);
    }
}

/* Rows by one column: sums along the rows. */
static void one_column(const operands *o, uint64_t m0, uint64_t m1, uint64_t k)
{
    for (uint64_t m = m0; m < m1; m++) {
        const float *a = o->a + m * k;
        uint64_t i = 0;
        float sum = 0;
        if (k >= ONXI_LANES) {
            onxi_vf sums[2] = { vf_all(0), vf_all(0) };
            for (; i + 2 * ONXI_LANES <= k; i += 2 * ONXI_LANES) {
                sums[0] += vf_load(a + i) * vf_load(o->b + i);
                sums[1] += vf_load(a + i + ONXI_LANES) * vf_load(o->b + i + ONXI_LANES);
            }
            for (; i < k; i += ONXI_LANES)
                sums[0] += vf_load_part(a + i, k - i, 0) * vf_load_part(o->b + i, k - i, 0);
            sum = vf_sum(sums[0] + sums[1]);
        }
        for (; i < k; i++)
            sum += a[i] * o->b[i];
        o->c[m] = sum;
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const product_params *q = work->params;
    operands o = { 0 };
    for (uint64_t piece = first, batch = UINT64_MAX; piece < last; piece++) {
        const product_piece at = product_piece_of(&q->of, piece);
        if (at.batch != batch)
            o = operands_of(q, work, at.batch);
        batch = at.batch;
        if (q->column) {
            one_column(&o, at.m0, at.m1, q->of.k);
            continue;
        }
        if (q->of.m == 1) {
            (q->in_place ? one_row_gathered : q->narrow ? one_row_narrow : one_row)(q, work, &o, at.p0, at.p1);
            continue;
        }
        if (q->thin) {
            thin_rows(q, work, &o, at.m0, at.m1);
            continue;
        }
        for (uint64_t k0 = 0, kc; k0 < q->of.k; k0 += kc) {
            kc = tile_depth(q->of.k - k0);
            one_stretch(q, work, &o, at.m0, at.m1, at.p0, at.p1, k0, kc);
        }
    }
    return ONX_OK;
}

/* ---- preparing ---- */

static onx_status cut(onx_prepare *p, product_params *q, uint64_t batch)
{
    enum { THIN_K = 2048 };
    product_cut(p, &q->of, batch, TILE_M, 1);
    q->thin = !q->narrow && !q->in_place && q->of.n < PANEL && q->of.k <= THIN_K;
    p->params = q;
    return ONX_OK;
}

/* Packs the weights in 16 or 8 bits; declines if they do not fit. */
static onx_status prepare_narrow(onx_prepare *p, product_params *q, bool turned, unsigned precision)
{
    const uint64_t panels = (q->of.n + PANEL - 1) / PANEL;
    narrow_packing b = { .shape = { .n = q->of.n, .k = q->of.k, .turned = turned }, .precision = precision };
    uint64_t size;
    if (!narrow_size(precision, q->of.k, &b.step) || !onxi_mul_u64(panels, b.step, &size))
        return ONX_E_UNSUPPORTED;
    const struct {
        char what[8];
        uint64_t precision, panel, n, k, turned;
    } key = { "narrow", precision, PANEL, q->of.n, q->of.k, turned };
    const onx_packing job = { .input = 1,
                              .key = &key,
                              .key_size = sizeof key,
                              .size = size,
                              .pieces = panels,
                              .unaligned = true,
                              .in_order = turned,
                              .part = turned ? PANEL * q->of.k : 0,
                              .make = pack_narrow,
                              .user = &b,
                              .may_decline = true };
    const void *packed;
    ONX_TRY(p->ops->packed(p, &job, &packed));
    q->narrow = packed;
    q->narrow_step = b.step;
    q->precision = precision;
    p->thread_workspace = BLOCK_K * PANEL * sizeof(float);
    return cut(p, q, 1);
}

static onx_status prepare_packed(onx_prepare *p, product_params *q, bool turned, bool may_narrow)
{
    uint64_t size;
    onx_status status = ONX_E_UNSUPPORTED;
    if (p->precision && may_narrow)
        status = prepare_narrow(p, q, turned, p->precision);
    if (status != ONX_E_UNSUPPORTED)
        return status;
    if (!product_packed_size(&q->of, &size))
        return ONX_E_UNSUPPORTED;
    q->shape = (packing){ .n = q->of.n, .k = q->of.k, .turned = turned };
    status = p->ops->in_place(p, 1, size, &q->elements);
    if (status == ONX_OK) {
        q->in_place = true;
        p->thread_workspace = GROUP * STRETCH * sizeof(float);
        return cut(p, q, 1);
    }
    /* A single row takes as long as reading the weights. With several rows, widening them takes noticeable time. */
    const unsigned stored = may_narrow && q->of.m == 1 && !p->precision ? p->ops->stored(p, 1) : ONX_PRECISION_FULL;
    if (status == ONX_E_UNSUPPORTED && stored)
        status = prepare_narrow(p, q, turned, stored);
    if (status != ONX_E_UNSUPPORTED)
        return status;
    ONX_TRY(product_packed(p, &q->shape, size, &q->b));
    return cut(p, q, 1);
}

/* Two non-constant values, leading dims as batch: b is read in its own layout, so it should fit in a cache. */
static onx_status prepare_batch(onx_prepare *p, product_params *q)
{
    enum { B_MAX = 1 << 18 };
    const onx_value *a = p->inputs[0], *b = p->inputs[1], *y = p->outputs[0];
    if (a->rank < 2 || b->rank < 2 || y->rank < 2 || !a->count || !b->count || b->dims[b->rank - 2] <= 0)
        return ONX_E_UNSUPPORTED;
    q->of.m = (uint64_t)y->dims[y->rank - 2];
    q->of.n = (uint64_t)y->dims[y->rank - 1];
    q->of.k = (uint64_t)b->dims[b->rank - 2];
    if (a->dims[a->rank - 1] != (int64_t)q->of.k || a->dims[a->rank - 2] != (int64_t)q->of.m ||
        b->dims[b->rank - 1] != (int64_t)q->of.n || q->of.n > B_MAX / q->of.k)
        return ONX_E_UNSUPPORTED;
    int64_t a_step = (int64_t)(q->of.m * q->of.k), b_step = (int64_t)(q->of.k * q->of.n);
    q->rank = y->rank - 2;
    for (uint32_t i = 0; i < q->rank; i++) { /* from the last dim of the batch */
        const uint32_t d = q->rank - 1 - i;
        const int64_t in_a = i + 2 < a->rank ? a->dims[a->rank - 3 - i] : 1;
        const int64_t in_b = i + 2 < b->rank ? b->dims[b->rank - 3 - i] : 1;
        if ((in_a != 1 && in_a != y->dims[d]) || (in_b != 1 && in_b != y->dims[d]))
            return ONX_E_UNSUPPORTED;
        q->dims[d] = y->dims[d];
        q->a_step[d] = in_a == 1 ? 0 : a_step;
        q->b_step[d] = in_b == 1 ? 0 : b_step;
        a_step *= in_a;
        b_step *= in_b;
    }
    p->thread_workspace = q->of.n % PANEL ? q->of.k * PANEL * sizeof(float) : 0;
    ONX_TRY(cut(p, q, y->count / (q->of.m * q->of.n)));
    q->column = q->of.n == 1 && !q->of.posts.count;
    return ONX_OK;
}

static onx_status matmul_prepare(onx_prepare *p)
{
    const onx_value *b = p->inputs[1], *y = p->outputs[0];
    product_params *q = ONXI_NEW(p->arena, product_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!y || !y->count || b->dtype != ONX_FLOAT)
        return ONX_E_UNSUPPORTED;
    const onx_status status = product_of_matmul(p, &q->of) ? prepare_packed(p, q, false, true) : ONX_E_UNSUPPORTED;
    return status == ONX_E_UNSUPPORTED ? prepare_batch(p, q)
                                       : status; /* no constant, of a node whose shapes a run tells */
}

static onx_status gemm_prepare(onx_prepare *p)
{
    bool turned;
    product_params *q = ONXI_NEW(p->arena, product_params);
    if (!q)
        return ONX_E_MEMORY;
    return product_of_gemm(p, &q->of, &turned) ? prepare_packed(p, q, turned, true) : ONX_E_UNSUPPORTED;
}

/* Windows of one pixel on images of one pixel, as in blocks that weigh their channels (squeeze-and-excitation): the
 * bytes are those of rows in any layout. Weights keep full precision, like those of other convolutions. Not for a
 * single channel, because following floats would be taken for rows. */
static onx_status conv_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *c = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    product_params *q = ONXI_NEW(p->arena, product_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!y || x->rank < 3 || y->rank != x->rank || w->rank != x->rank || !w->data || w->dtype != ONX_FLOAT ||
        onx_prepare_int(p, "group") != 1 || x->dims[1] <= 0 || w->dims[1] != x->dims[1] || y->dims[1] < 2 ||
        w->dims[0] != y->dims[1] || x->dims[0] <= 0 || y->dims[0] != x->dims[0])
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 2; i < x->rank; i++)
        if (x->dims[i] != 1 || w->dims[i] != 1 || y->dims[i] != 1)
            return ONX_E_UNSUPPORTED;
    onxi_window win; /* with padding the pixel may be one of zeros */
    ONX_TRY(onxi_window_make(p, w->dims + 2, &win));
    for (uint32_t i = 0; i < win.spatial; i++)
        if (win.pad[i])
            return ONX_E_UNSUPPORTED;
    q->of.m = (uint64_t)x->dims[0];
    q->of.n = (uint64_t)y->dims[1];
    q->of.k = (uint64_t)x->dims[1];
    if (c) {
        if (!c->data || c->dtype != ONX_FLOAT || c->rank != 1 ||
            !post_add_row(p, &q->of.posts.list[q->of.posts.count++], c, q->of.n, PANEL))
            return ONX_E_UNSUPPORTED;
    }
    return prepare_packed(p, q, true, false);
}

/* Preferred to oneDNN at every level: bits depend neither on the number of threads nor on whether weights fit the
 * requested precision, nothing is copied in between, and no scratchpad is needed. */
#define ROW(name, preference_, prepare_)                                                                               \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = preference_, .isa = ONXI_LEVEL, .packs = 1 << 1,     \
        .flags = ONX_KERNEL_POST_OPS, .variant = ONXI_VARIANT, .prepare = prepare_, .run = run                         \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_product)[] = {
    ROW("MatMul", 11, matmul_prepare), ROW("Gemm", 11, gemm_prepare), ROW("Conv", 13, conv_prepare), { 0 }
};

/* rnn.c - RNN, GRU and LSTM of floats: products with weights that are packed once per session, and vectorized gates;
 * the driver is that of the plain rows. */
#include "kernel/core/rnn.h"
#include "kernel/simd/math.h"

/* ---- products ---- */

/* Vectors of a tile and its maximum rows. With few registers (ONXI_ROWS) a tile is wide, since usually there is a
 * single row, whose product is limited by memory bandwidth. */
enum { WIDTH = ONXI_ROWS == 4 ? 4 : 2, ROWS = ONXI_ROWS == 4 ? 2 : 6, TILE = WIDTH * ONXI_LANES };

/* A tile is k rows of TILE columns of the weights; the last tile of a gate is padded with zeros. */
static void pack_tile(const float *weight, uint64_t width, uint64_t k, float *out)
{
    const uint64_t whole = width == TILE ? k / ONXI_LANES * ONXI_LANES : 0;
    for (uint64_t j = 0; j < whole; j += ONXI_LANES)
        for (uint64_t i = 0; i < TILE; i += ONXI_LANES)
            vf_turn((const char *)(weight + i * k + j), k * sizeof *weight, out + j * TILE + i, TILE);
    for (uint64_t j = whole; j < k; j++)
        for (uint64_t i = 0; i < TILE; i++)
            out[j * TILE + i] = i < width ? weight[i * k + j] : 0;
}

static void pack(const float *weight, uint32_t gates, uint64_t hidden, uint64_t k, float *out)
{
    for (uint32_t gate = 0; gate < gates; gate++, weight += hidden * k)
        for (uint64_t n = 0; n < hidden; n += TILE, out += k * TILE)
            pack_tile(weight + n * k, hidden - n < TILE ? hidden - n : TILE, k, out);
}

/* `rows` and `apart` are compile-time constants at each call: the number of rows, and of partial sums per row, which
 * are added at the end. */
static inline __attribute__((always_inline)) void tile(const float *a, uint64_t k, const float *w, unsigned rows,
                                                       unsigned apart, onxi_vf (*out)[WIDTH])
{
    onxi_vf sum[ROWS][WIDTH];
    for (unsigned i = 0; i < rows * apart; i++)
        for (unsigned v = 0; v < WIDTH; v++)
            sum[i][v] = vf_all(0);
    uint64_t j = 0;
    for (; j + apart <= k; j += apart)
        for (unsigned u = 0; u < apart; u++, w += TILE) {
            onxi_vf x[WIDTH];
            for (unsigned v = 0; v < WIDTH; v++)
                x[v] = vf_load(w + v * ONXI_LANES);
            for (unsigned i = 0; i < rows; i++) {
                const onxi_vf by = vf_all(a[i * k + j + u]);
                for (unsigned v = 0; v < WIDTH; v++)
                    sum[u * rows + i][v] += by * x[v];
            }
        }
    for (; j < k; j++, w += TILE)
        for (unsigned i = 0; i < rows; i++)
            for (unsigned v = 0; v < WIDTH; v++)
                sum[i][v] += a[i * k + j] * vf_load(w + v * ONXI_LANES);
    for (unsigned i = 0; i < rows; i++)
        for (unsigned v = 0; v < WIDTH; v++) {
            out[i][v] = sum[i][v];
            for (unsigned u = 1; u < apart; u++)
                out[i][v] += sum[u * rows + i][v];
        }
}

/* With few registers, a single row has one sum per element in both cases: tiles are processed in pairs, and an odd one
 * has to give the same bits. */
enum { PAIRS = ONXI_ROWS == 4, ALONE = PAIRS ? 1 : ROWS };

#if ONXI_ROWS == 4
#define TILE_EACH(X) X(1) X(2)
#else
#define TILE_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
#define ROWS_OF(n)                                                                                                     \
    static inline ONXI_ALONE void tile_##n(const float *a, uint64_t k, const float *w, onxi_vf(*out)[WIDTH])           \
    {                                                                                                                  \
        tile(a, k, w, n, n == 1 ? ALONE : ROWS / n, out);                                                              \
    }
TILE_EACH(ROWS_OF)

static void tile_of(const float *a, uint64_t k, const float *w, uint64_t rows, onxi_vf (*out)[WIDTH])
{
    switch (rows) {
#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        tile_##n(a, k, w, out);                                                                                        \
        break;
        TILE_EACH(CASE)
#undef CASE
    default:
        break;
    }
}

/* Two tiles at once for one row: memory is read as two streams, and each element of the row is broadcast once for
 * both. */
static ONXI_ALONE void pair(const float *a, uint64_t k, const float *w, const float *more, onxi_vf (*out)[WIDTH])
{
    onxi_vf sum[2][WIDTH];
    for (unsigned v = 0; v < WIDTH; v++)
        sum[0][v] = sum[1][v] = vf_all(0);
    for (uint64_t j = 0; j < k; j++, w += TILE, more += TILE) {
        const onxi_vf by = vf_all(a[j]);
        for (unsigned v = 0; v < WIDTH; v++) {
            sum[0][v] += by * vf_load(w + v * ONXI_LANES);
            sum[1][v] += by * vf_load(more + v * ONXI_LANES);
        }
    }
    memcpy(out, sum, sizeof sum);
}

/* Stores row `row` of tile `t` in the output. */
static void put(const onxi_rnn_product *p, uint64_t t, uint64_t row, const onxi_vf *out)
{
    const uint64_t per_gate = (p->hidden + TILE - 1) / TILE, start = t % per_gate * TILE;
    const uint64_t width = p->hidden - start < TILE ? p->hidden - start : TILE;
    float *to = p->out + t / per_gate * p->hidden + start + row * p->pitch;
    if (width < TILE)
        memcpy(to, out, width * sizeof *to);
    else
        for (unsigned v = 0; v < WIDTH; v++)
            vf_store(to + v * ONXI_LANES, out[v]);
}

static void product(const onxi_rnn_product *p, uint64_t first, uint64_t last)
{
    onxi_vf out[ROWS][WIDTH];
    for (uint64_t n = first; n < last; n++) {
        const uint64_t t = p->backwards ? last - 1 - (n - first) : n;
        const float *w = p->packed + t * p->k * TILE;
        if (PAIRS && p->rows == 1 && n + 1 < last) {
            const uint64_t next = p->backwards ? t - 1 : t + 1;
            pair(p->a, p->k, w, p->packed + next * p->k * TILE, out);
            put(p, t, 0, out[0]);
            put(p, next, 0, out[1]);
            n++;
            continue;
        }
        for (uint64_t row = 0; row < p->rows; row += ROWS) {
            const uint64_t rows = p->rows - row < ROWS ? p->rows - row : ROWS;
            tile_of(p->a + row * p->k, p->k, w, rows, out);
            for (uint64_t i = 0; i < rows; i++)
                put(p, t, row + i, out[i]);
        }
    }
}

const onxi_rnn_packing ONXI_LEVELED(onxi_rnn_packing) = { TILE, pack, product };

/* ---- gates ---- */

/* Iterates over vectors of `n` elements from `i` on; the last one is partial. The gates need only a few instructions,
 * so a call per vector would double the time: only the partial vector is a call. */
static ONXI_ALONE onxi_vf load_part(const float *p, uint64_t n)
{
    return vf_load_part(p, n, 0);
}

static ONXI_ALONE void store_part(float *p, onxi_vf v, uint64_t n)
{
    vf_store_part(p, v, n);
}

static inline __attribute__((always_inline)) onxi_vf load(const float *p, uint64_t i, uint64_t n)
{
    return n - i >= ONXI_LANES ? vf_load(p + i) : load_part(p + i, n - i);
}

static inline __attribute__((always_inline)) void store(float *p, uint64_t i, uint64_t n, onxi_vf v)
{
    if (n - i >= ONXI_LANES)
        vf_store(p + i, v);
    else
        store_part(p + i, v, n - i);
}

#define EACH(i, n) for (uint64_t i = 0; i < (n); i += ONXI_LANES)

static inline onxi_vf clipped(onxi_vf x, float most)
{
    return vf_select(x > most, vf_all(most), vf_select(x < -most, vf_all(-most), x)); /* NaN is kept */
}

#define ACTIVATION(kind, EXPR)                                                                                         \
    case ONXI_ACT_##kind:                                                                                              \
        EACH(i, n)                                                                                                     \
        {                                                                                                              \
            const onxi_vf v = clipped(load(x, i, n), most);                                                            \
            store(x, i, n, EXPR);                                                                                      \
        }                                                                                                              \
        break;

static void activate(const onxi_rnn_row *r, uint32_t which, float *x, uint64_t n)
{
    const float most = which == 2 && r->open_cell ? INFINITY : (float)r->clip, a = (float)r->act[which].alpha,
                b = (float)r->act[which].beta;
    const onxi_vf zero = vf_all(0), one = vf_all(1);
    switch (r->act[which].kind) {
        ACTIVATION(RELU, vf_select(v < 0.0f, zero, v))
        ACTIVATION(TANH, vf_tanh(v))
        ACTIVATION(SIGMOID, vf_sigmoid(v))
        ACTIVATION(AFFINE, a * v + b)
        ACTIVATION(LEAKY_RELU, vf_select(v < 0.0f, a * v, v))
        ACTIVATION(THRESHOLDED_RELU, vf_select(v < a, zero, v))
        ACTIVATION(SCALED_TANH, a * vf_tanh(b * v))
        ACTIVATION(HARD_SIGMOID, vf_select(a * v + b < 0.0f, zero, vf_select(a * v + b > 1.0f, one, a * v + b)))
        ACTIVATION(ELU, vf_select(v < 0.0f, a * vf_expm1(v), v))
        ACTIVATION(SOFTSIGN, v / (1.0f + vf_abs(v)))
        ACTIVATION(SOFTPLUS, vf_softplus(v))
    }
}

/* The first `count` gates of `gates`: adds the products of the hidden state and both biases. */
static void gather(const onxi_rnn_row *r, uint32_t gates, uint32_t count)
{
    const float *recurrent = r->recurrent, *b = r->bias, *rb = b + gates * r->hidden;
    const uint64_t n = count * r->hidden;
    float *g = r->gates;
    EACH(i, n)
    store(g, i, n, load(g, i, n) + (load(recurrent, i, n) + (load(b, i, n) + load(rb, i, n))));
}

static void rnn(const onxi_rnn_row *r)
{
    gather(r, 1, 1);
    activate(r, 0, r->gates, r->hidden);
    memcpy(r->h, r->gates, r->hidden * sizeof(float));
}

static void gru(const onxi_rnn_row *r)
{
    const uint64_t n = r->hidden;
    float *g = r->gates, *gate = g + n;
    gather(r, 3, 2);
    activate(r, 0, g, 2 * n);
    EACH(i, n)
    store(r->reset, i, n, load(gate, i, n) * load(r->h, i, n));
}

static void gru_finish(const onxi_rnn_row *r)
{
    const uint64_t n = r->hidden;
    const float *rec = (const float *)r->recurrent + 2 * n, *wb = (const float *)r->bias + 2 * n, *rb = wb + 3 * n;
    float *z = r->gates, *reset = z + n, *c = reset + n, *h = r->h;
    EACH(i, n)
    {
        const onxi_vf state = load(rec, i, n), add = load(wb, i, n), more = load(rb, i, n);
        store(c, i, n,
              load(c, i, n) + (r->before_reset ? load(reset, i, n) * (state + more) + add : state + (add + more)));
    }
    activate(r, 1, c, n);
    EACH(i, n)
    {
        const onxi_vf keep = load(z, i, n);
        store(h, i, n, (1.0f - keep) * load(c, i, n) + keep * load(h, i, n));
    }
}

static void lstm(const onxi_rnn_row *r)
{
    const uint64_t n = r->hidden;
    const float *p = r->peephole;
    float *in = r->gates, *out = in + n, *forget = out + n, *cell = forget + n, *c = r->c, *h = r->h;
    gather(r, 4, 4);
    for (uint64_t i = 0; p && i < n; i += ONXI_LANES) {
        store(in, i, n, load(in, i, n) + load(p, i, n) * load(c, i, n));
        store(forget, i, n, load(forget, i, n) + load(p + 2 * n, i, n) * load(c, i, n));
    }
    activate(r, 0, in, n);
    if (!r->couple)
        activate(r, 0, forget, n);
    activate(r, 1, cell, n);
    EACH(i, n)
    {
        const onxi_vf input = load(in, i, n), keep = r->couple ? 1.0f - input : load(forget, i, n);
        const onxi_vf state = keep * load(c, i, n) + input * load(cell, i, n);
        store(c, i, n, state);
        store(cell, i, n, state);
        if (p)
            store(out, i, n, load(out, i, n) + load(p + n, i, n) * state);
    }
    activate(r, 0, out, n);
    activate(r, 2, cell, n);
    EACH(i, n)
    store(h, i, n, load(out, i, n) * load(cell, i, n));
}

const onxi_rnn_cell ONXI_LEVELED(onxi_rnn_cells)[] = {
    { "RNN", 1, 1, { ONXI_ACT_TANH }, { rnn, NULL }, { NULL, NULL }, &ONXI_LEVELED(onxi_rnn_packing) },
    { "GRU",
      3,
      2,
      { ONXI_ACT_SIGMOID, ONXI_ACT_TANH },
      { gru, NULL },
      { gru_finish, NULL },
      &ONXI_LEVELED(onxi_rnn_packing) },
    { "LSTM",
      4,
      3,
      { ONXI_ACT_SIGMOID, ONXI_ACT_TANH, ONXI_ACT_TANH },
      { lstm, NULL },
      { NULL, NULL },
      &ONXI_LEVELED(onxi_rnn_packing) },
};

#define ROW(name, index)                                                                                               \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = 1, .isa = ONXI_LEVEL, .packs = 1 << 1 | 1 << 2,      \
        .flags = ONX_KERNEL_SIZES_OUTPUT, .variant = ONXI_VARIANT, .body = &ONXI_LEVELED(onxi_rnn_cells)[index],       \
        .prepare = onxi_rnn_prepare, .run = onxi_rnn_run                                                               \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_rnn)[] = { ROW("RNN", 0), ROW("GRU", 1), ROW("LSTM", 2), { 0 } };

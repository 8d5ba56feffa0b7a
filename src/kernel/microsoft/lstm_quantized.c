/* lstm_quantized.c - products of DynamicQuantizeLSTM: the input and each state are quantized to 8 bits by their own
 * range and multiplied with 8-bit weights. The products are vectorized if the weights are constant. */
#include "kernel/microsoft/lstm.h"

#include <math.h>

/* ---- not vectorized ---- */

typedef struct range {
    float least, most;
} range;

static range widen(range r, const float *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        r.least = x[i] < r.least ? x[i] : r.least;
        r.most = x[i] > r.most ? x[i] : r.most;
    }
    return r;
}

/* The scale that maps the range to 8 bits, and the zero point. */
static float step_of(range r, int32_t *zero)
{
    const float scale = r.most > r.least ? (r.most - r.least) / 255 : 1;
    const float z = nearbyintf(0 - r.least / scale);
    *zero = z >= 0 && z <= 255 ? (int32_t)z : z > 255 ? 255 : 0;
    return scale;
}

static int32_t byte_of(const onx_value *v, uint64_t i)
{
    return v->dtype == ONX_INT8 ? ((const int8_t *)v->data)[i] : ((const uint8_t *)v->data)[i];
}

/* sums[j] += by * row[j] */
static void add_row(const onx_value *w, uint64_t from, uint64_t n, int32_t by, int32_t *sums)
{
    const int8_t *s = (const int8_t *)w->data + from;
    const uint8_t *u = (const uint8_t *)w->data + from;
    if (w->dtype == ONX_INT8)
        for (uint64_t j = 0; j < n; j++)
            sums[j] += by * s[j];
    else
        for (uint64_t j = 0; j < n; j++)
            sums[j] += by * u[j];
}

/* Quantizes a row by `scale` and `zero`, multiplies it with the weights of this direction, and adds the result to out[4
 * * hidden]. */
static void quantized_row(const lstm_lane *l, const float *x, uint64_t k, float scale, int32_t zero, uint32_t weight,
                          float *out)
{
    const uint64_t n = GATES * l->q->hidden;
    const uint32_t first = weight == W ? W_SCALE : R_SCALE;
    const onx_value *w = lstm_operand(l, weight), *zeros = lstm_operand(l, first + 1);
    const float *scales = lstm_part(l, first);
    const bool columns = lstm_operand(l, first)->rank == 2, zero_columns = zeros->rank == 2;
    int32_t *sums = (int32_t *)(void *)lstm_at(l, l->q->sums);
    for (uint64_t from = 0; from < k; from += EXACT) {
        const uint64_t to = from + EXACT < k ? from + EXACT : k;
        int64_t sum = 0;
        memset(sums, 0, (size_t)n * sizeof *sums);
        for (uint64_t i = from; i < to; i++) {
            const float steps = nearbyintf(x[i] / scale) + (float)zero;
            const int32_t a = (steps > 255 ? 255 : steps > 0 ? (int32_t)steps : 0) - zero;
            sum += a;
            if (a)
                add_row(w, (l->d * k + i) * n, n, a, sums);
        }
        for (uint64_t j = 0; j < n; j++) {
            const int64_t z = byte_of(zeros, zero_columns ? l->d * n + j : l->d);
            out[j] += (float)(sums[j] - sum * z) * (scale * scales[columns ? j : 0]);
        }
    }
}

/* ---- vectorized ---- */

static const onx_value *input_of(const onx_prepare *p, uint32_t i)
{
    return onxi_operand(p->input_count, p->inputs, i);
}

typedef struct packing {
    const lstm_params *q;
    uint64_t k, bytes; /* per direction */
    bool is_unsigned;
} packing;

static onx_status pack(void *user, const void *elements, uint64_t direction, void *out)
{
    const packing *j = user;
    const uint64_t n = GATES * j->q->hidden;
    j->q->body->bytes->pack((const uint8_t *)elements + direction * j->k * n, j->k, n, j->is_unsigned,
                            (char *)out + direction * j->bytes);
    return ONX_OK;
}

static onx_status pack_weights(onx_prepare *p, const lstm_params *q, uint32_t input, uint64_t k, const char **out,
                               uint64_t *bytes)
{
    const onx_value *w = input_of(p, input);
    uint64_t size;
    if (!w->data || !k || !q->hidden || !q->body->bytes->size(k, GATES * q->hidden, bytes))
        return ONX_E_UNSUPPORTED;
    *bytes = (*bytes + 63) / 64 * 64;
    if (!onxi_mul_u64(*bytes, q->directions, &size))
        return ONX_E_UNSUPPORTED;
    const struct {
        char what[8];
        uint64_t tile, n, k, directions;
    } key = { "lstm", q->body->bytes->tile, GATES * q->hidden, k, q->directions };
    packing job = { q, k, *bytes, w->dtype == ONX_UINT8 };
    const onx_packing as = { .input = input,
                             .key = &key,
                             .key_size = sizeof key,
                             .size = size,
                             .pieces = q->directions,
                             .in_order = true,
                             .make = pack,
                             .user = &job };
    const void *made;
    ONX_TRY(p->ops->packed(p, &as, &made));
    *out = made;
    return ONX_OK;
}

onx_status onxi_ms_lstm_pack(onx_prepare *p, lstm_params *q, uint64_t *total)
{
    const uint64_t most = (q->inputs > q->hidden ? q->inputs : q->hidden) / sizeof(float) + 1, n = GATES * q->hidden;
    uint64_t rows, words;
    if (!onxi_mul_u64(q->steps, q->batch, &rows) || !onxi_mul_u64(rows > q->batch ? rows : q->batch, most, &words))
        return ONX_E_UNSUPPORTED;
    rows = rows > q->batch ? rows : q->batch;
    ONX_TRY(pack_weights(p, q, W, q->inputs, &q->packed_w, &q->packed_w_size));
    ONX_TRY(pack_weights(p, q, R, q->hidden, &q->packed_r, &q->packed_r_size));
    return onxi_ms_reserve(total, words, &q->bytes) && onxi_ms_reserve(total, rows, &q->totals) &&
                   onxi_ms_reserve(total, 2 * n, &q->scales) && onxi_ms_reserve(total, 2 * n, &q->zeros)
               ? ONX_OK
               : ONX_E_UNSUPPORTED;
}

/* Expands scales and zero points to all columns of a weight. */
static void spread(const lstm_lane *l, uint32_t weight, float *scales, int32_t *zeros)
{
    const uint64_t n = GATES * l->q->hidden;
    const uint32_t first = weight == W ? W_SCALE : R_SCALE;
    const onx_value *z = lstm_operand(l, first + 1);
    const bool columns = lstm_operand(l, first)->rank == 2, zero_columns = z->rank == 2;
    const float *from = lstm_part(l, first);
    for (uint64_t j = 0; j < n; j++) {
        scales[j] = from[columns ? j : 0];
        zeros[j] = byte_of(z, zero_columns ? l->d * n + j : l->d) - (z->dtype == ONX_UINT8 ? 128 : 0);
    }
}

/* Tiles of a product, divided among threads if that pays. Results do not depend on which thread computes which tile. */
typedef struct product_job {
    const onxi_byte_rows_ops *ops;
    onxi_byte_rows product;
    uint64_t tiles, parts;
} product_job;

static void run_part(void *user, uint64_t part, unsigned worker)
{
    const product_job *j = user;
    (void)worker;
    j->ops->product(&j->product, j->tiles * part / j->parts, j->tiles * (part + 1) / j->parts);
}

/* Multiplies `rows` quantized rows in the thread's workspace with a weight. */
static void multiply(const lstm_lane *l, uint64_t rows, uint32_t weight, float scale, int32_t zero, float *out)
{
    enum { PART_COST = 1 << 22 };
    const lstm_params *q = l->q;
    const uint64_t n = GATES * q->hidden, k = weight == W ? q->inputs : q->hidden, tile = q->body->bytes->tile;
    product_job job = { .ops = q->body->bytes,
                        .tiles = (n + tile - 1) / tile,
                        .parts = 1,
                        .product = { .a = (const uint8_t *)l->memory + q->bytes,
                                     .totals = (const int32_t *)(const void *)(l->memory + q->totals),
                                     .rows = rows,
                                     .pitch = (k + 3) / 4 * 4,
                                     .k = k,
                                     .n = n,
                                     .packed = weight == W ? q->packed_w + l->d * q->packed_w_size
                                                           : q->packed_r + l->d * q->packed_r_size,
                                     .zero = zero,
                                     .zeros =
                                         (const int32_t *)(const void *)(l->memory + q->zeros) + (weight == W ? 0 : n),
                                     .scale = scale,
                                     .scales = lstm_at(l, q->scales) + (weight == W ? 0 : n),
                                     .out = out } };
    if (q->directions == 1 && rows >= PART_COST / (n * k) + 1)
        job.parts = onxi_team_threads(l->work->threads);
    if (job.parts > 1)
        onxi_team_run((unsigned)job.parts, job.parts, run_part, &job);
    else
        run_part(&job, 0, 0);
}

static void quantize_row(const lstm_lane *l, uint64_t row, const float *x, uint64_t k, float scale, int32_t zero)
{
    ((int32_t *)(void *)(l->memory + l->q->totals))[row] =
        l->q->body->bytes->quantize(x, k, scale, zero, (uint8_t *)l->memory + l->q->bytes + row * ((k + 3) / 4 * 4));
}

/* ---- products ---- */

static range range_of(const lstm_lane *l, range r, const float *x, uint64_t count)
{
    if (!l->q->body->bytes)
        return widen(r, x, count);
    l->q->body->bytes->range(x, count, &r.least, &r.most);
    return r;
}

void onxi_ms_lstm_quantized_inputs(const lstm_lane *l)
{
    const lstm_params *q = l->q;
    const uint64_t n = GATES * q->hidden;
    int32_t zero;
    const range r = range_of(l, (range){ 0, 0 }, lstm_operand(l, X)->data, l->longest * q->batch * q->inputs);
    const float scale = step_of(r, &zero);
    if (q->body->bytes) {
        spread(l, W, lstm_at(l, q->scales), (int32_t *)(void *)(l->memory + q->zeros));
        spread(l, R, lstm_at(l, q->scales) + n, (int32_t *)(void *)(l->memory + q->zeros) + n);
    } else {
        memset(lstm_at(l, q->gates), 0, (size_t)(q->steps * q->batch * n) * sizeof(float));
    }
    onxi_pace pace = { .work = l->work };
    for (uint64_t s = 0; s < l->longest; s++)
        for (uint64_t b = 0; b < q->batch && !onxi_pace_stops(&pace, q->inputs * (q->body->bytes ? 1 : n)); b++) {
            const uint64_t row = s * q->batch + b;
            const float *x = lstm_input_row(l, s, b);
            if (q->body->bytes)
                quantize_row(l, row, x, q->inputs, scale, zero);
            else
                quantized_row(l, x, q->inputs, scale, zero, W, lstm_at(l, q->gates) + row * n);
        }
    if (q->body->bytes)
        multiply(l, l->longest * q->batch, W, scale, zero, lstm_at(l, q->gates));
}

void onxi_ms_lstm_quantized_states(const lstm_lane *l, uint64_t s)
{
    const lstm_params *q = l->q;
    const uint64_t n = GATES * q->hidden;
    int32_t zero;
    range r = { 0, 0 };
    for (uint64_t b = 0; b < q->batch; b++)
        if (!s || s - 1 < lstm_length(l, b))
            r = range_of(l, r, lstm_at(l, q->h) + b * q->hidden, q->hidden);
    const float scale = step_of(r, &zero);
    if (!q->body->bytes)
        memset(lstm_at(l, q->recurrent), 0, (size_t)(q->batch * n) * sizeof(float));
    for (uint64_t b = 0; b < q->batch; b++) {
        const float *h = lstm_at(l, q->h) + b * q->hidden;
        if (q->body->bytes) /* rows of ended sequences are computed, too, but not used */
            quantize_row(l, b, h, q->hidden, scale, zero);
        else if (s < lstm_length(l, b))
            quantized_row(l, h, q->hidden, scale, zero, R, lstm_at(l, q->recurrent) + b * n);
    }
    if (q->body->bytes)
        multiply(l, q->batch, R, scale, zero, lstm_at(l, q->recurrent));
}

/* transform_quantize_numbers.c - weights in few bits: scales and zero points of groups, rounding, packing, and rounding
 * whose errors are made up for by the rows that come after. */
#include "transform/transform_quantize.h"

#include <float.h>
#include <math.h>

enum { PIECE = 1 << 12 };

static bool is_small_float(onx_dtype type)
{
    return type == ONX_FLOAT8E4M3FN || type == ONX_FLOAT8E5M2 || type == ONX_FLOAT4E2M1;
}

int onxi_integer_least(onx_dtype type)
{
    return type == ONX_INT8 ? -128 : type == ONX_INT4 ? -8 : 0;
}

int onxi_integer_most(onx_dtype type)
{
    return type == ONX_INT8 ? 127 : type == ONX_UINT8 ? 255 : type == ONX_INT4 ? 7 : 15;
}

void onxi_scale_of(onx_dtype type, bool asymmetric, float low, float high, float *scale, int *zero)
{
    const double from = low < 0 ? (double)low : 0, to = high > 0 ? (double)high : 0;
    double step;
    *zero = 0;
    if (is_small_float(type))
        step = fmax(-from, to) / onxi_float_largest(type);
    else if (asymmetric)
        step = (to - from) / (onxi_integer_most(type) - onxi_integer_least(type));
    else
        step = fmax(-from, to) / (onxi_integer_least(type) < 0 ? onxi_integer_most(type) : onxi_integer_most(type) / 2);
    if (!(step > 0))
        step = 1;
    step = fmin(fmax(step, (double)FLT_MIN), (double)FLT_MAX);
    *scale = (float)step;
    if (asymmetric && !is_small_float(type)) {
        const double at = onxi_integer_least(type) - rint(from / (double)*scale);
        *zero = at > onxi_integer_most(type) ? onxi_integer_most(type) : (int)at;
    } else if (onxi_integer_least(type) == 0 && !is_small_float(type)) {
        *zero = (onxi_integer_most(type) + 1) / 2;
    }
}

int onxi_quantize_one(onx_dtype type, double x, double scale, int zero)
{
    if (is_small_float(type))
        return onx_f32_to_small_float(type, (float)(x / scale), true);
    const double q = rint(x / scale) + zero;
    const int least = onxi_integer_least(type), most = onxi_integer_most(type);
    return q <= least ? least : q >= most ? most : (int)q;
}

double onxi_dequantize_one(onx_dtype type, int q, double scale, int zero)
{
    return is_small_float(type) ? (double)onx_small_float_to_f32(type, (uint8_t)q) * scale : (q - zero) * scale;
}

void onxi_pack(onx_dtype type, const int *q, uint64_t count, uint8_t *out)
{
    if (onx_dtype_bits((int64_t)type) == 8) {
        for (uint64_t i = 0; i < count; i++)
            out[i] = (uint8_t)q[i];
        return;
    }
    for (uint64_t i = 0; i < count; i += 2)
        out[i / 2] = (uint8_t)((q[i] & 15) | (i + 1 < count ? (q[i + 1] & 15) << 4 : 0));
}

/* ---- groups ---- */

bool onxi_grid_open(onxi_grid *g, const onx_tensor *weight)
{
    uint64_t count;
    g->outer = g->inner = 1;
    if (!onx_tensor_count(weight, &count) || !count)
        return false;
    g->length = count;
    g->groups = 1;
    if (g->axis < 0)
        return true;
    if ((uint32_t)g->axis >= weight->dims_count)
        return false;
    for (uint32_t i = 0; i < weight->dims_count; i++)
        *(i < (uint32_t)g->axis   ? &g->outer
          : i > (uint32_t)g->axis ? &g->inner
                                  : &g->length) *= i == (uint32_t)g->axis ? 1 : (uint64_t)weight->dims[i];
    g->length = (uint64_t)weight->dims[g->axis];
    g->groups = g->block ? g->outer * ((g->length + g->block - 1) / g->block) * g->inner : g->length;
    return true;
}

static uint64_t group_of(const onxi_grid *g, uint64_t i)
{
    if (g->axis < 0)
        return 0;
    const uint64_t along = i / g->inner % g->length;
    if (!g->block)
        return along;
    const uint64_t blocks = (g->length + g->block - 1) / g->block;
    return (i / (g->inner * g->length) * blocks + along / g->block) * g->inner + i % g->inner;
}

/* ---- reading ---- */

typedef struct source {
    onxi_weights *w;
    const char *bytes;
    const onx_tensor *tensor;
    uint64_t count;
    bool transpose;
    float *changed; /* instead of the bytes: a matrix that was worked on */
    uint64_t nonfinite;
    onx_arena *arena; /* of this weight alone: blocks of few elements have many scales */
} source;

static float made_finite(source *s, float x)
{
    if (isfinite(x))
        return x;
    s->nonfinite++;
    return isnan(x) ? 0 : copysignf(FLT_MAX, x);
}

/* Elements in the order of the result. Large matrices that are transposed are read across. */
static void read_piece(source *s, uint64_t first, uint64_t n, float *out)
{
    if (s->transpose) {
        const uint64_t rows = (uint64_t)s->tensor->dims[0], columns = (uint64_t)s->tensor->dims[1];
        for (uint64_t i = first; i < first + n; i++)
            memcpy(&out[i - first], s->bytes + (i % rows * columns + i / rows) * 4, 4);
    } else {
        memcpy(out, s->bytes + first * 4, n * 4);
        onxi_weights_forget(s->w, s->bytes + first * 4, n * 4);
    }
    for (uint64_t i = 0; i < n; i++)
        out[i] = made_finite(s, out[i]);
}

typedef struct scales {
    float *scale, *low, *high;
    int *zero;
} scales;

static onx_status find_scales(source *s, const onxi_grid *g, scales *to)
{
    float piece[PIECE];
    to->scale = ONXI_ARRAY(s->arena, float, (size_t)g->groups);
    to->low = ONXI_ARRAY(s->arena, float, (size_t)g->groups);
    to->high = ONXI_ARRAY(s->arena, float, (size_t)g->groups);
    to->zero = ONXI_ARRAY(s->arena, int, (size_t)g->groups);
    if (!to->scale || !to->low || !to->high || !to->zero)
        return ONX_E_MEMORY;
    for (uint64_t at = 0; at < s->count; at += PIECE) {
        const uint64_t n = s->count - at < PIECE ? s->count - at : PIECE;
        read_piece(s, at, n, piece);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t k = group_of(g, at + i);
            to->low[k] = piece[i] < to->low[k] ? piece[i] : to->low[k];
            to->high[k] = piece[i] > to->high[k] ? piece[i] : to->high[k];
        }
    }
    for (uint64_t k = 0; k < g->groups; k++)
        onxi_scale_of(g->type, g->asymmetric, to->low[k], to->high[k], &to->scale[k], &to->zero[k]);
    return ONX_OK;
}

static onx_status write_elements(source *s, const onxi_grid *g, const scales *by, onxi_weight_sink *sink,
                                 onxi_quantized *out)
{
    float piece[PIECE];
    int q[PIECE];
    uint8_t packed[PIECE];
    double wrong = 0, whole = 0;
    for (uint64_t at = 0; at < s->count; at += PIECE) {
        const uint64_t n = s->count - at < PIECE ? s->count - at : PIECE;
        uint64_t size;
        read_piece(s, at, n, piece);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t k = group_of(g, at + i);
            const double x = (double)(s->changed ? s->changed[at + i] : piece[i]);
            q[i] = onxi_quantize_one(g->type, x, (double)by->scale[k], by->zero[k]);
            const double e = onxi_dequantize_one(g->type, q[i], (double)by->scale[k], by->zero[k]) - (double)piece[i];
            wrong += e * e;
            whole += (double)piece[i] * (double)piece[i];
        }
        onxi_pack(g->type, q, n, packed);
        (void)onx_dtype_size((int64_t)g->type, n, &size);
        ONX_TRY(onxi_weight_put(sink, packed, size));
    }
    out->error = whole > 0 ? sqrt(wrong / whole) : 0;
    return ONX_OK;
}

/* ---- error feedback ---- */

/* The upper Cholesky factor of the inverse of a positive matrix, in place; false when it is none. */
static bool invert_root(double *a, double *work, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) /* a = L L^T */
        for (uint32_t i = j; i < n; i++) {
            double sum = a[(size_t)i * n + j];
            for (uint32_t k = 0; k < j; k++)
                sum -= a[(size_t)i * n + k] * a[(size_t)j * n + k];
            if (i == j && !(sum > 0))
                return false;
            a[(size_t)i * n + j] = i == j ? sqrt(sum) : sum / a[(size_t)j * n + j];
        }
    for (uint32_t j = 0; j < n; j++) /* work = L^-1, lower */
        for (uint32_t i = 0; i < n; i++) {
            double sum = i == j ? 1 : 0;
            for (uint32_t k = j; k < i; k++)
                sum -= a[(size_t)i * n + k] * work[(size_t)k * n + j];
            work[(size_t)i * n + j] = i < j ? 0 : sum / a[(size_t)i * n + i];
        }
    /* The inverse is work^T work; its factor from the last row backwards is lower, of the mirrored matrix. */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++) {
            double sum = 0;
            for (uint32_t k = i; k < n; k++)
                sum += work[(size_t)k * n + i] * work[(size_t)k * n + j];
            a[(size_t)i * n + j] = a[(size_t)j * n + i] = sum;
        }
    for (uint32_t j = 0; j < n; j++) { /* inverse = U^T U */
        for (uint32_t i = j; i < n; i++) {
            double sum = a[(size_t)j * n + i];
            for (uint32_t k = 0; k < j; k++)
                sum -= work[(size_t)k * n + i] * work[(size_t)k * n + j];
            if (i == j && !(sum > 0))
                return false;
            work[(size_t)j * n + i] = i == j ? sqrt(sum) : sum / work[(size_t)j * n + j];
        }
    }
    return true;
}

/* A hundredth of the mean of the diagonal is added to it, so that what no sample moved has a weight, too. */
static bool factor_of(const onx_value_moments *m, double *a, double *work)
{
    double mean = 0;
    for (uint32_t i = 0; i < m->size; i++)
        mean += (double)m->data[(size_t)i * m->size + i] / m->size;
    if (!(mean > 0) || !isfinite(mean))
        return false;
    for (size_t i = 0; i < (size_t)m->size * m->size; i++)
        a[i] = (double)m->data[i];
    for (uint32_t i = 0; i < m->size; i++)
        a[(size_t)i * m->size + i] += 0.01 * mean;
    return invert_root(a, work, m->size);
}

/* Row by row of [K, N] (`rows`, N is `other`), column by column of [N, K]: what rounding takes away is given to the
 * rows that are left, as far as their inputs move together. The numbers afterwards are on the grid. */
static void feed_back(float *x, const onxi_grid *g, const scales *by, const double *u, uint32_t n, uint64_t other,
                      bool rows)
{
    for (uint32_t k = 0; k < n; k++)
        for (uint64_t c = 0; c < other; c++) {
            const uint64_t i = rows ? k * other + c : c * n + k, group = group_of(g, i);
            const int q = onxi_quantize_one(g->type, (double)x[i], (double)by->scale[group], by->zero[group]);
            const double to = onxi_dequantize_one(g->type, q, (double)by->scale[group], by->zero[group]);
            const double e = ((double)x[i] - to) / u[(size_t)k * n + k];
            x[i] = (float)to;
            for (uint32_t j = k + 1; j < n; j++)
                x[rows ? j * other + c : c * n + j] -= (float)(e * u[(size_t)k * n + j]);
        }
}

/* Changes the numbers of the matrix, where that can be done. */
static onx_status apply_feedback(source *s, const onxi_grid *g, const scales *by, const onx_value_moments *m)
{
    onx_ctx *cx = s->w->doc->cx;
    const onx_tensor *t = s->tensor;
    const size_t size = (size_t)m->size * m->size * sizeof(double);
    /* Blocks are along the summed axis; else a scale belongs to an index of the other one. */
    const bool rows = g->block ? g->axis == 0 : g->axis == 1;
    if (t->dims_count != 2 || t->dims[rows ? 0 : 1] != (int64_t)m->size || s->transpose)
        return ONX_OK;
    float *x = ONXI_ARRAY(s->arena, float, (size_t)s->count);
    double *a = onxi_resize(cx, NULL, 0, size), *work = a ? onxi_resize(cx, NULL, 0, size) : NULL;
    onx_status status = x && a && work ? ONX_OK : ONX_E_MEMORY;
    if (status == ONX_OK)
        memset(work, 0, size);
    if (status == ONX_OK && factor_of(m, a, work)) {
        read_piece(s, 0, s->count, x);
        feed_back(x, g, by, work, m->size, s->count / m->size, rows);
        s->changed = x;
    }
    onxi_release(cx, a, size);
    onxi_release(cx, work, size);
    return status;
}

/* ---- the tensors ---- */

static onx_status write_zeros(source *s, const onxi_grid *g, const scales *by, const int64_t *dims, uint32_t rank,
                              onx_tensor **out)
{
    uint8_t packed[PIECE];
    uint64_t size;
    onxi_weight_sink sink;
    ONX_TRY(onxi_weight_begin(s->w, g->type, dims, rank, out, &sink));
    for (uint64_t at = 0; at < g->groups; at += PIECE) {
        const uint64_t n = g->groups - at < PIECE ? g->groups - at : PIECE;
        onxi_pack(g->type, by->zero + at, n, packed);
        (void)onx_dtype_size((int64_t)g->type, n, &size);
        ONX_TRY(onxi_weight_put(&sink, packed, size));
    }
    return ONX_OK;
}

static onx_status write_all(source *s, const onxi_grid *g, const scales *by, onxi_quantized *out)
{
    onxi_weight_sink sink;
    int64_t dims[ONX_RANK_MAX];
    uint32_t rank = s->tensor->dims_count;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = s->tensor->dims[s->transpose ? rank - 1 - i : i];
    ONX_TRY(onxi_weight_begin(s->w, g->type, dims, rank, &out->q, &sink));
    ONX_TRY(write_elements(s, g, by, &sink, out));
    if (g->block)
        dims[g->axis] = (int64_t)((g->length + g->block - 1) / g->block);
    else
        dims[0] = (int64_t)g->groups;
    rank = g->block ? rank : g->axis >= 0;
    ONX_TRY(onxi_weight_begin(s->w, ONX_FLOAT, dims, rank, &out->scale, &sink));
    ONX_TRY(onxi_weight_put(&sink, by->scale, g->groups * sizeof *by->scale));
    if (!g->block) {
        out->scales = ONXI_ARRAY(s->w->scratch, float, (size_t)g->groups);
        if (!out->scales)
            return ONX_E_MEMORY;
        memcpy(out->scales, by->scale, (size_t)g->groups * sizeof *by->scale);
    }
    return is_small_float(g->type) ? ONX_OK : write_zeros(s, g, by, dims, rank, &out->zero);
}

static onx_status quantize_source(source *s, const onxi_grid *grid, const onx_value_moments *moments,
                                  onxi_quantized *out)
{
    scales by;
    ONX_TRY(find_scales(s, grid, &by));
    out->nonfinite = s->nonfinite;
    if (moments)
        ONX_TRY(apply_feedback(s, grid, &by, moments));
    return write_all(s, grid, &by, out);
}

onx_status onxi_quantize_weight(onxi_weights *w, const onx_tensor *from, const onxi_grid *grid, bool transpose,
                                const onx_value_moments *moments, onxi_quantized *out)
{
    source s = { .w = w, .tensor = from, .transpose = transpose };
    onx_str bytes;
    *out = (onxi_quantized){ 0 };
    ONX_TRY(onx_tensor_bytes(w->doc, from, &bytes));
    s.bytes = bytes.ptr;
    s.count = bytes.len / sizeof(float);
    ONX_TRY(onx_arena_new(w->doc->cx, &s.arena));
    const onx_status status = quantize_source(&s, grid, moments, out);
    onx_arena_free(s.arena);
    return status;
}

/* transform_quantize_numbers.c - quantises weights: scales and zero points of groups, rounding, packing, and rounding
 * with error feedback into the following rows (as in GPTQ). */
#include "transform/transform_quantize.h"

#include <float.h>
#include <math.h>

enum { PIECE = 1 << 12, FEED_COLUMNS = 64 /* columns of a matrix processed together with error feedback */ };

static bool is_small_float(onx_dtype type)
{
    return onx_dtype_class_of((int64_t)type) == ONX_CLASS_FLOATING;
}

int onxi_integer_least(onx_dtype type)
{
    return onx_dtype_class_of((int64_t)type) == ONX_CLASS_SIGNED ? -(1 << (onx_dtype_bits((int64_t)type) - 1)) : 0;
}

int onxi_integer_most(onx_dtype type)
{
    return onxi_integer_least(type) + (1 << onx_dtype_bits((int64_t)type)) - 1;
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
    uint64_t size = 0;
    onx_dtype_size((int64_t)type, count, &size);
    memset(out, 0, (size_t)size);
    for (uint64_t i = 0; i < count; i++)
        onxi_packed_set(out, onx_dtype_bits((int64_t)type), i, (unsigned)q[i]);
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
    onx_dtype dtype; /* FLOAT, FLOAT16 or BFLOAT16 */
    uint32_t width;  /* bytes of an element */
    uint64_t count;
    bool transpose;
    uint8_t *changed; /* instead of the bytes: the quantised elements of a processed matrix */
    uint64_t nonfinite;
    onx_arena *arena; /* for this weight only, because small blocks have many scales */
} source;

static float made_finite(source *s, float x)
{
    if (isfinite(x))
        return x;
    s->nonfinite++;
    return isnan(x) ? 0 : copysignf(FLT_MAX, x);
}

/* Elements in the order of the result. Large transposed matrices are read column by column. */
static void read_piece(source *s, uint64_t first, uint64_t n, float *out)
{
    if (s->transpose) {
        const uint64_t rows = (uint64_t)s->tensor->dims[0], columns = (uint64_t)s->tensor->dims[1];
        for (uint64_t i = first; i < first + n; i++)
            (void)onx_convert(ONX_FLOAT, &out[i - first], s->dtype,
                              s->bytes + (i % rows * columns + i / rows) * s->width, 1, true);
    } else {
        (void)onx_convert(ONX_FLOAT, out, s->dtype, s->bytes + first * s->width, n, true);
        onxi_weights_forget(s->w, s->bytes + first * s->width, n * s->width);
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

/* Unpacks quantized elements from bytes, and packs them. */
static int code_of(onx_dtype type, uint8_t byte)
{
    return onx_dtype_class_of((int32_t)type) == ONX_CLASS_SIGNED ? (int8_t)byte : byte;
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
            q[i] = s->changed ? code_of(g->type, s->changed[at + i])
                              : onxi_quantize_one(g->type, (double)piece[i], (double)by->scale[k], by->zero[k]);
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

/* The upper Cholesky factor of the inverse of a positive definite matrix, in `work`; false if it is not positive
 * definite. All inner loops run along rows. */
static bool invert_root(double *restrict a, double *restrict work, uint32_t size)
{
    const size_t n = size;
    for (size_t i = 0; i < n; i++) /* a = L L^T */
        for (size_t j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            if (i == j && !(sum > 0))
                return false;
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
    memset(work, 0, n * n * sizeof *work);
    for (size_t i = 0; i < n; i++) { /* work = L^-1, lower */
        double *row = work + i * n;
        row[i] = 1;
        for (size_t k = 0; k < i; k++)
            for (size_t j = 0; j <= k; j++)
                row[j] -= a[i * n + k] * work[k * n + j];
        for (size_t j = 0; j <= i; j++)
            row[j] /= a[i * n + i];
    }
    memset(a, 0, n * n * sizeof *a);
    for (size_t k = 0; k < n; k++) /* the inverse, a = work^T work; only its upper half is needed */
        for (size_t i = 0; i <= k; i++)
            for (size_t j = i; j <= k; j++)
                a[i * n + j] += work[k * n + i] * work[k * n + j];
    for (size_t k = 0; k < n; k++) { /* = U^T U, which is stored in work row by row */
        if (!(a[k * n + k] > 0))
            return false;
        memset(work + k * n, 0, n * sizeof *work);
        work[k * n + k] = sqrt(a[k * n + k]);
        for (size_t i = k + 1; i < n; i++)
            work[k * n + i] = a[k * n + i] / work[k * n + k];
        for (size_t j = k + 1; j < n; j++)
            for (size_t i = j; i < n; i++)
                a[j * n + i] -= work[k * n + j] * work[k * n + i];
    }
    return true;
}

/* Adds one percent of the mean diagonal to the diagonal, so that inputs that are zero in all samples also count. */
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

/* A matrix with error feedback: [K, N], or [N, K] if `rows` is not set. */
typedef struct feeding {
    const onxi_grid *g;
    const scales *by;
    const double *u; /* the factor, K x K */
    uint64_t k, n;
    bool rows;
    uint8_t *out;
} feeding;

/* Quantises `count` of the N columns row by row; they are in x, one row for each of K. The rounding error of a row is
 * compensated in the following rows, as far as their inputs are correlated. */
static void feed_back(const feeding *f, float *restrict x, uint64_t first, uint64_t count)
{
    const onxi_grid *g = f->g;
    double e[FEED_COLUMNS];
    for (uint64_t k = 0; k < f->k; k++) {
        const double *u = f->u + k * f->k;
        for (uint64_t c = 0; c < count; c++) {
            const uint64_t i = f->rows ? k * f->n + first + c : (first + c) * f->k + k, group = group_of(g, i);
            const double scale = (double)f->by->scale[group], was = (double)x[k * FEED_COLUMNS + c];
            const int q = onxi_quantize_one(g->type, was, scale, f->by->zero[group]);
            e[c] = (was - onxi_dequantize_one(g->type, q, scale, f->by->zero[group])) / u[k];
            f->out[i] = (uint8_t)q;
        }
        for (uint64_t j = k + 1; j < f->k; j++)
            for (uint64_t c = 0; c < count; c++)
                x[j * FEED_COLUMNS + c] -= (float)(e[c] * u[j]);
    }
}

/* Processes a group of columns. */
static void feed_all(source *s, const feeding *f, float *x)
{
    for (uint64_t first = 0, count; first < f->n; first += count) {
        count = f->n - first < FEED_COLUMNS ? f->n - first : FEED_COLUMNS;
        for (uint64_t k = 0; f->rows && k < f->k; k++)
            read_piece(s, k * f->n + first, count, x + k * FEED_COLUMNS);
        for (uint64_t c = 0; !f->rows && c < count; c++) {
            float piece[PIECE];
            for (uint64_t at = 0, n; at < f->k; at += n) {
                n = f->k - at < PIECE ? f->k - at : PIECE;
                read_piece(s, (first + c) * f->k + at, n, piece);
                for (uint64_t i = 0; i < n; i++)
                    x[(at + i) * FEED_COLUMNS + c] = piece[i];
            }
        }
        feed_back(f, x, first, count);
    }
}

/* Quantises the matrix with error feedback, if possible. */
static onx_status apply_feedback(source *s, const onxi_grid *g, const scales *by, const onx_value_moments *m)
{
    onx_ctx *cx = s->w->doc->cx;
    const onx_tensor *t = s->tensor;
    const size_t k = m->size, size = k * k * sizeof(double);
    /* blocks are along the reduction axis; otherwise each index of the other axis has a scale */
    const bool rows = g->block ? g->axis == 0 : g->axis == 1;
    if (t->dims_count != 2 || t->dims[rows ? 0 : 1] != (int64_t)k || s->transpose)
        return ONX_OK;
    double *a = onxi_resize(cx, NULL, 0, size), *work = a ? onxi_resize(cx, NULL, 0, size) : NULL;
    onx_status status = a && work ? ONX_OK : ONX_E_MEMORY;
    const bool possible = status == ONX_OK && factor_of(m, a, work);
    onxi_release(cx, a, size);
    if (possible) {
        float *x = ONXI_ARRAY(s->arena, float, k *FEED_COLUMNS);
        const feeding f = { g, by, work, k, s->count / k, rows, onx_arena_alloc(s->arena, (size_t)s->count) };
        status = x && f.out ? ONX_OK : ONX_E_MEMORY;
        if (status == ONX_OK)
            feed_all(s, &f, x);
        s->changed = f.out;
    }
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
    s.dtype = (onx_dtype)from->data_type;
    s.width = onx_dtype_bits(from->data_type) / 8;
    s.count = bytes.len / s.width;
    ONX_TRY(onx_arena_new(w->doc->cx, &s.arena));
    const onx_status status = quantize_source(&s, grid, moments, out);
    onx_arena_free(s.arena);
    return status;
}

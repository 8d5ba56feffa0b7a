/* dft.c - DFT and STFT, computed line by line in double, and MelWeightMatrix. */
#include "kernel/core/fft.h"
#include "kernel/core/loops.h"

#include <math.h>

/* Loads n elements with stride `step` and `parts` numbers each (1: real, 2: complex), multiplied with the window if
 * there is one. */
typedef void (*load_loop)(const void *x, uint64_t n, int64_t step, uint32_t parts, const void *window,
                          onxi_complex *line);
typedef void (*store_loop)(void *y, uint64_t n, int64_t step, uint32_t parts, double scale, const onxi_complex *line);

#define LOAD_LINE(op, d, T, C, M, L, S)                                                                                \
    static void load_##d(const void *px, uint64_t n, int64_t step, uint32_t parts, const void *pw, onxi_complex *line) \
    {                                                                                                                  \
        const T *x = px, *w = pw;                                                                                      \
        for (uint64_t i = 0; i < n; i++, x += step) {                                                                  \
            double weight = w ? (double)L(w[i]) : 1;                                                                   \
            line[i] = (onxi_complex){ (double)L(x[0]) * weight, parts > 1 ? (double)L(x[1]) * weight : 0 };            \
        }                                                                                                              \
    }
#define STORE_LINE(op, d, T, C, M, L, S)                                                                               \
    static void store_##d(void *py, uint64_t n, int64_t step, uint32_t parts, double scale, const onxi_complex *line)  \
    {                                                                                                                  \
        T *y = py;                                                                                                     \
        for (uint64_t i = 0; i < n; i++, y += step) {                                                                  \
            y[0] = (T)S((C)(line[i].re * scale));                                                                      \
            if (parts > 1)                                                                                             \
                y[1] = (T)S((C)(line[i].im * scale));                                                                  \
        }                                                                                                              \
    }
ONXI_EACH_FLOAT(LOAD_LINE, load)
ONXI_EACH_FLOAT(STORE_LINE, store)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static const load_loop loads[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, load) };
static const store_loop stores[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, store) };

/* Bytes of the tables and of a line. */
static onx_status fft_bytes(const onx_prepare *p, uint64_t length, uint64_t *tables, uint64_t *line)
{
    if (!onxi_fft_room(length, tables, line) || !onxi_mul_u64(*tables, sizeof(onxi_complex), tables) ||
        !onxi_mul_u64(*line, sizeof(onxi_complex), line))
        return onx_prepare_fail(p, ONX_E_INVALID, "a transform of length %llu is impossible",
                                (unsigned long long)length);
    return ONX_OK;
}

static onx_status fft_prepare(const onx_prepare *p, uint64_t length, onxi_fft *fft, uint64_t *line)
{
    uint64_t bytes;
    ONX_TRY(fft_bytes(p, length, &bytes, line));
    onxi_complex *tables =
        bytes < SIZE_MAX / 2 ? ONXI_ARRAY(p->arena, onxi_complex, (size_t)bytes / sizeof(onxi_complex) + 1) : NULL;
    if (!tables)
        return ONX_E_MEMORY;
    onxi_pace pace = { .prepare = p };
    onxi_fft_make(fft, length, tables, &pace);
    return onxi_pace_stops(&pace, ONXI_PACE) ? ONX_E_CANCELLED : ONX_OK;
}

/* Reads a number that has to be known while preparing, because sizes depend on it. */
static onx_status number_of(const onx_prepare *p, const onx_value *v, const char *name, int64_t *out)
{
    if (v->count != 1 || !v->data)
        return onx_prepare_fail(p, ONX_E_INVALID, "%s is no single number", name);
    *out = onxi_index(v, 0);
    return ONX_OK;
}

/* ---- DFT ---- */

typedef struct dft_params {
    bool inverse, one_sided, known; /* known: the axis is known, so the tables exist */
    uint32_t parts, out_parts;
    uint64_t given, length, outer, inner; /* given: elements of the input along the axis; length: of the transform */
    const onx_prepare *kept;              /* for an axis that is known only while running */
    uint64_t line_at;                     /* offset of the line in the workspace, for such an axis */
    onxi_fft fft;
} dft_params;

static onx_status dft_axis(const onx_prepare *p, int64_t axis, const onx_value *x, dft_params *q)
{
    uint32_t at;
    ONX_TRY(onx_prepare_axis(p, axis, x->rank, &at));
    if (at + 1 == x->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "axis %lld holds real and imaginary parts", (long long)axis);
    q->given = (uint64_t)x->dims[at];
    q->outer = onxi_product(x->dims, 0, at);
    q->inner = onxi_product(x->dims, at + 1, x->rank - 1);
    return ONX_OK;
}

static onx_status dft_length(const onx_prepare *p, const onx_value *v, dft_params *q)
{
    int64_t length = q->inverse && q->one_sided ? 2 * ((int64_t)q->given - 1) : (int64_t)q->given;
    if (v)
        ONX_TRY(number_of(p, v, "dft_length", &length));
    if (length < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "a transform of length %lld is impossible", (long long)length);
    q->length = (uint64_t)length;
    return ONX_OK;
}

/* For an axis known only while running: reserves memory for the longest axis. The output then has the shape of the
 * input. */
static onx_status dft_any_axis(onx_prepare *p, const onx_value *x, dft_params *q)
{
    if (q->one_sided || onxi_operand(p->input_count, p->inputs, 1))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED,
                                "the axis is known only at run time, but the output shape depends on it");
    for (uint32_t d = 0; d + 1 < x->rank; d++) {
        uint64_t tables = 0, line = 0;
        if (x->dims[d])
            ONX_TRY(fft_bytes(p, (uint64_t)x->dims[d], &tables, &line));
        if (q->line_at < tables)
            q->line_at = tables;
        if (p->workspace < line)
            p->workspace = line;
    }
    return onxi_add_u64(p->workspace, q->line_at, &p->workspace)
               ? ONX_OK
               : onx_prepare_fail(p, ONX_E_LIMIT, "the input is too large");
}

static onx_status dft_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *axis = p->since >= 20 ? onxi_operand(p->input_count, p->inputs, 2) : NULL;
    dft_params *q = ONXI_NEW(p->arena, dft_params);
    int64_t at = p->since >= 20 ? -2 : onx_prepare_int(p, "axis");
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank < 2 || x->dims[x->rank - 1] < 1 || x->dims[x->rank - 1] > 2)
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "the last dimension of the input is neither 1 (real) nor 2 (complex)");
    q->inverse = onx_prepare_int(p, "inverse") != 0;
    q->one_sided = onx_prepare_int(p, "onesided") != 0;
    q->parts = (uint32_t)x->dims[x->rank - 1];
    q->out_parts = q->inverse && q->one_sided ? 1 : 2;
    p->params = q;
    if (axis && (axis->kind != ONX_VALUE_TENSOR || axis->count != 1))
        return onx_prepare_fail(p, ONX_E_INVALID, "axis is not a single integer");
    q->known = !axis || axis->data;
    if (!q->known && !(q->kept = onxi_prepare_keep(p)))
        return ONX_E_MEMORY;
    if (!q->known)
        return dft_any_axis(p, x, q);
    ONX_TRY(dft_axis(p, axis ? onxi_index(axis, 0) : at, x, q));
    ONX_TRY(dft_length(p, onxi_operand(p->input_count, p->inputs, 1), q));
    p->rows = q->outer * q->inner;
    p->grain = ONXI_BLOCK / 8 / q->length + 1;
    return p->rows ? fft_prepare(p, q->length, &q->fft, &p->thread_workspace) : ONX_OK;
}

/* Computes the second half of the spectrum of a real signal, which mirrors the first. */
static void mirror(const dft_params *q, onxi_complex *line)
{
    uint64_t n = q->length;
    line[0].im = 0;
    if (n % 2 == 0)
        line[n / 2].im = 0;
    for (uint64_t k = n / 2 + 1; k < n; k++)
        line[k] = (onxi_complex){ line[n - k].re, -line[n - k].im };
}

static void dft_line(const dft_params *q, const onx_value *x, onx_value *y, uint64_t row, onxi_complex *line,
                     onxi_pace *pace)
{
    uint32_t width = onxi_element_size(x->dtype);
    uint64_t half = q->length / 2 + 1, outer = row / q->inner, inner = row % q->inner;
    uint64_t wanted = q->inverse && q->one_sided ? half : q->length, given = q->given < wanted ? q->given : wanted;
    uint64_t out = !q->inverse && q->one_sided ? half : q->length;
    memset(line, 0, q->length * sizeof *line);
    loads[x->dtype]((const char *)x->data + (outer * q->given * q->inner + inner) * q->parts * width, given,
                    (int64_t)(q->inner * q->parts), q->parts, NULL, line);
    if (q->inverse && q->one_sided)
        mirror(q, line);
    onxi_fft_run(&q->fft, line, q->inverse, pace);
    stores[y->dtype]((char *)y->data + (outer * out * q->inner + inner) * q->out_parts * width, out,
                     (int64_t)(q->inner * q->out_parts), q->out_parts, q->inverse ? 1 / (double)q->length : 1, line);
}

static onx_status dft_run(onx_work *work, uint64_t first, uint64_t last)
{
    const dft_params *q = work->params;
    dft_params settled = *q;
    onxi_complex *line = work->thread_workspace;
    onxi_pace pace = { .work = work };
    if (!q->known) {
        const onx_prepare here = onxi_prepare_again(q->kept, work);
        ONX_TRY(dft_axis(&here, onxi_index(work->inputs[2], 0), work->inputs[0], &settled));
        ONX_TRY(dft_length(&here, NULL, &settled));
        onxi_fft_make(&settled.fft, settled.length, work->workspace, &pace);
        line = (onxi_complex *)(void *)((char *)work->workspace + q->line_at);
        first = 0;
        last = settled.outer * settled.inner;
    }
    for (uint64_t row = first; row < last && !onxi_pace_stops(&pace, settled.length * 4); row++)
        dft_line(&settled, work->inputs[0], work->outputs[0], row, line, &pace);
    return ONX_OK;
}

/* ---- STFT ---- */

typedef struct stft_params {
    uint32_t parts;
    bool sizes; /* no rule determines the size of a frame */
    uint64_t given, step, length, bins;
    int64_t dims[4];
    onxi_fft fft;
} stft_params;

static onx_status stft_sizes(onx_prepare *p, stft_params *q)
{
    const onx_value *x = p->inputs[0], *window = onxi_operand(p->input_count, p->inputs, 2),
                    *size = onxi_operand(p->input_count, p->inputs, 3);
    int64_t step = 0, length = x->rank > 1 ? x->dims[1] : 0;
    if (x->rank < 2 || x->rank > 3 || (x->rank == 3 && (x->dims[2] < 1 || x->dims[2] > 2)))
        return onx_prepare_fail(p, ONX_E_INVALID, "the signal is neither [batch, length, 1] nor [batch, length, 2]");
    ONX_TRY(number_of(p, p->inputs[1], "frame_step", &step));
    if (window)
        length = window->rank == 1 ? window->dims[0] : 0;
    if (size)
        ONX_TRY(number_of(p, size, "frame_length", &length));
    if (step < 1 || length < 1 ||
        (window && (window->rank != 1 || window->dims[0] != length || window->dtype != x->dtype)))
        return onx_prepare_fail(p, ONX_E_INVALID, "frames of %lld elements, %lld apart, are impossible",
                                (long long)length, (long long)step);
    int64_t rest = x->dims[1] - length, frames = rest < 0 ? 0 : rest / step + 1;
    q->parts = x->rank == 3 ? (uint32_t)x->dims[2] : 1;
    q->given = (uint64_t)x->dims[1];
    q->step = (uint64_t)step;
    q->length = (uint64_t)length;
    q->bins = onx_prepare_int(p, "onesided") ? q->length / 2 + 1 : q->length;
    q->dims[0] = x->dims[0];
    q->dims[1] = frames;
    q->dims[2] = (int64_t)q->bins;
    q->dims[3] = 2;
    return ONX_OK;
}

static onx_status stft_prepare(onx_prepare *p)
{
    stft_params *q = ONXI_NEW(p->arena, stft_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(stft_sizes(p, q));
    p->params = q;
    q->sizes = p->outputs[0]->kind != ONX_VALUE_TENSOR;
    if (!q->dims[0] || !q->dims[1]) {
        p->rows = q->sizes;
        return ONX_OK;
    }
    p->rows = q->sizes ? 1 : (uint64_t)q->dims[0] * (uint64_t)q->dims[1];
    p->grain = ONXI_BLOCK / 8 / q->length + 1;
    return fft_prepare(p, q->length, &q->fft, &p->thread_workspace);
}

static onx_status stft_run(onx_work *work, uint64_t first, uint64_t last)
{
    const stft_params *q = work->params;
    const onx_value *x = work->inputs[0], *window = onxi_operand(work->prepared->input_count, work->inputs, 2);
    onx_value *y = work->outputs[0];
    onxi_complex *line = work->thread_workspace;
    uint32_t width = onxi_element_size(x->dtype);
    onxi_pace pace = { .work = work };
    if (q->sizes) {
        ONX_TRY(onxi_value_size(y, x->dtype, 4, q->dims));
        first = 0;
        last = (uint64_t)q->dims[0] * (uint64_t)q->dims[1];
    }
    for (uint64_t row = first; row < last && !onxi_pace_stops(&pace, q->length * 4); row++) {
        uint64_t batch = row / (uint64_t)q->dims[1], frame = row % (uint64_t)q->dims[1];
        loads[x->dtype]((const char *)x->data + (batch * q->given + frame * q->step) * q->parts * width, q->length,
                        q->parts, q->parts, window ? window->data : NULL, line);
        onxi_fft_run(&q->fft, line, false, &pace);
        stores[x->dtype]((char *)y->data + row * q->bins * 2 * width, q->bins, 2, 2, 1, line);
    }
    return ONX_OK;
}

/* ---- MelWeightMatrix ---- */

static double mel_of(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}
static double hertz_of(double mel)
{
    return 700 * (pow(10, mel / 2595) - 1);
}

typedef struct mel_scale {
    double low, step, per_hertz; /* per_hertz: lines of the spectrum per hertz */
} mel_scale;

/* The line of the spectrum where band `i` begins; lines far outside are clamped. */
static int64_t mel_edge(const mel_scale *m, uint64_t i)
{
    double at = floor(hertz_of((double)i * m->step + m->low) * m->per_hertz);
    return at < 0 ? 0 : at < 9e15 ? (int64_t)at : (int64_t)9e15;
}

static void mel_set(onx_value *y, int64_t line, int64_t band, double value)
{
    uint32_t width = onxi_element_size(y->dtype);
    onx_convert((onx_dtype)y->dtype, (char *)y->data + (line * y->dims[1] + band) * width, ONX_DOUBLE, &value, 1, true);
}

/* Writes a triangular filter that rises up to `middle` and falls after it. */
static void mel_band(onx_value *y, int64_t band, int64_t left, int64_t middle, int64_t right)
{
    int64_t lines = y->dims[0];
    if (left == middle && middle < lines)
        mel_set(y, middle, band, 1);
    for (int64_t j = left; left < middle && j <= middle && j < lines; j++)
        mel_set(y, j, band, (double)(j - left) / (double)(middle - left));
    for (int64_t j = middle; j < right && j < lines; j++)
        mel_set(y, j, band, (double)(right - j) / (double)(right - middle));
}

static onx_status mel_prepare(onx_prepare *p)
{
    for (uint32_t i = 0; i < 5; i++)
        if (p->inputs[i]->kind != ONX_VALUE_TENSOR || p->inputs[i]->count != 1)
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u is no single number", i);
    return ONX_OK;
}

static onx_status mel_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *const *in = work->inputs;
    onx_value *y = work->outputs[0];
    double length = onxi_value_number(in[1], 0), rate = onxi_value_number(in[2], 0);
    double lower = onxi_value_number(in[3], 0), upper = onxi_value_number(in[4], 0);
    if (!(rate > 0) || !(lower >= 0) || !(upper >= 0) || isinf(lower) || isinf(upper))
        return onx_work_fail(work, ONX_E_INVALID, "frequencies from %g to %g are impossible at %g samples per second",
                             lower, upper, rate);
    if (!y->count)
        return ONX_OK;
    memset(y->data, 0, y->size);
    mel_scale m = { mel_of(lower), 0, (length + 1) / rate };
    m.step = (mel_of(upper) - m.low) / ((double)y->dims[1] + 2);
    onxi_pace pace = { .work = work };
    for (int64_t band = 0; band < y->dims[1] && !onxi_pace_stops(&pace, 200 + (uint64_t)y->dims[0]); band++) {
        uint64_t i = (uint64_t)band;
        mel_band(y, band, mel_edge(&m, i), mel_edge(&m, i + 1), mel_edge(&m, i + 2));
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_dft[] = {
    { .op = "DFT", .since = 17, .dtypes = ONXI_FLOATS, .prepare = dft_prepare, .run = dft_run },
    { .op = "STFT",
      .since = 17,
      .dtypes = ONXI_FLOATS,
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .prepare = stft_prepare,
      .run = stft_run },
    { .op = "MelWeightMatrix",
      .since = 17,
      .dtypes = ONXI_NUMBERS,
      .dtype_from = ONX_OUTPUT(0),
      .prepare = mel_prepare,
      .run = mel_run },
    { 0 },
};

/* random.c - operators with random results (kernel/core/random.c). */
#include "kernel/kernel.h"

#include <math.h>

typedef struct random_params {
    bool seeded;
    uint32_t seed;
    double by, plus; /* factor and offset of each random number */
    bool normal;
} random_params;

static onx_status read_seed(onx_prepare *p, random_params **out)
{
    random_params *q = ONXI_NEW(p->arena, random_params);
    *out = q;
    if (!q)
        return ONX_E_MEMORY;
    p->params = q;
    const bool given = onx_prepare_given(p, "seed");
    const float seed = given ? onx_prepare_float(p, "seed") : 0;
    q->seeded = given && seed > -0x1p62f && seed < 0x1p62f; /* false for NaN */
    q->seed = q->seeded ? (uint32_t)(int64_t)seed : 0;
    return ONX_OK;
}

static void start(onx_work *work, onxi_random *r)
{
    const random_params *q = work->params;
    if (q->seeded)
        onxi_random_seed(r, q->seed);
    else
        onxi_random_any(r, work->outputs[0]);
}

static onx_status normal_prepare(onx_prepare *p)
{
    random_params *q;
    ONX_TRY(read_seed(p, &q));
    q->normal = true;
    q->by = (double)onx_prepare_float(p, "scale");
    q->plus = (double)onx_prepare_float(p, "mean");
    return ONX_OK;
}

static onx_status uniform_prepare(onx_prepare *p)
{
    random_params *q;
    ONX_TRY(read_seed(p, &q));
    q->plus = (double)onx_prepare_float(p, "low");
    q->by = (double)onx_prepare_float(p, "high") - q->plus;
    return ONX_OK;
}

/* Elements that are drawn and converted together. */
enum { CHUNK = 256 };

/* Rounds to the output's type, as the reference implementation does after each operation. */
static void round_all(onx_dtype dtype, double *x, uint64_t n)
{
    uint16_t half[CHUNK];
    if (dtype == ONX_DOUBLE)
        return;
    if (dtype == ONX_FLOAT) {
        for (uint64_t i = 0; i < n; i++)
            x[i] = (double)(float)x[i];
        return;
    }
    onx_convert(dtype, half, ONX_DOUBLE, x, n, true);
    onx_convert(ONX_DOUBLE, x, dtype, half, n, true);
}

/* Elements `at` to `at + n` - 1 of a tensor, as numbers, which are written to it or read from it. */
static void put_numbers(onx_value *y, uint64_t at, const double *x, uint64_t n)
{
    onx_convert((onx_dtype)y->dtype, (char *)y->data + at * (onx_dtype_bits(y->dtype) / 8), ONX_DOUBLE, x, n, true);
}

static void get_numbers(const onx_value *x, uint64_t at, double *out, uint64_t n)
{
    onx_convert(ONX_DOUBLE, out, (onx_dtype)x->dtype, (const char *)x->data + at * (onx_dtype_bits(x->dtype) / 8), n,
                true);
}

static onx_status random_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const random_params *q = work->params;
    onx_value *y = work->outputs[0];
    const onx_dtype dtype = (onx_dtype)y->dtype;
    double scale[2] = { q->by, q->plus }, x[CHUNK];
    round_all(dtype, scale, 2);
    onxi_random r;
    start(work, &r);
    onxi_pace pace = { .work = work };
    for (uint64_t at = 0, n; at < y->count && !onxi_pace_stops(&pace, 16 * CHUNK); at += n) {
        n = y->count - at < CHUNK ? y->count - at : CHUNK;
        if (q->normal)
            onxi_random_normals(&r, x, n);
        else
            onxi_random_uniforms(&r, x, n);
        round_all(dtype, x, n);
        for (uint64_t i = 0; i < n; i++)
            x[i] *= scale[0];
        round_all(dtype, x, n);
        for (uint64_t i = 0; i < n; i++)
            x[i] += scale[1];
        put_numbers(y, at, x, n);
    }
    return ONX_OK;
}

/* ---- Bernoulli ---- */

static onx_status seeded_prepare(onx_prepare *p)
{
    random_params *q;
    return read_seed(p, &q);
}

/* Draws 1 with probability p, by the method that NumPy uses for a binomial distribution of one trial: it compares from
 * below for small p, from above for large p, and draws no number for 0. */
static bool one_with(double p, double drawn)
{
    const bool large = p > 0.5;
    return large != (drawn > exp(log(large ? p : 1 - p)));
}

/* Replaces probabilities by 1 or 0. */
static void draw_ones(onxi_random *r, double *p, uint64_t n)
{
    const double NEAR = 1e-12; /* far more than the rounding errors of exp and log */
    double drawn[CHUNK];
    bool none = false, close = false;
    for (uint64_t i = 0; i < n; i++)
        none |= p[i] == 0;
    if (!none)
        onxi_random_uniforms(r, drawn, n);
    for (uint64_t i = 0; none && i < n; i++)
        drawn[i] = p[i] == 0 ? 0 : onxi_random_uniform(r);
    for (uint64_t i = 0; i < n; i++) {
        const double rest = 1 - p[i], other = p[i] > rest ? p[i] : rest;
        close |= fabs(drawn[i] - other) < NEAR;
    }
    for (uint64_t i = 0; close && i < n; i++)
        p[i] = one_with(p[i], drawn[i]);
    for (uint64_t i = 0; !close && i < n; i++) { /* without branches, which nobody could predict */
        const double rest = 1 - p[i], other = p[i] > rest ? p[i] : rest;
        const int large = p[i] > 0.5, beyond = drawn[i] > other;
        p[i] = large ^ beyond;
    }
}

static onx_status bernoulli_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    double p[CHUNK];
    onxi_random r;
    start(work, &r);
    onxi_pace pace = { .work = work };
    for (uint64_t at = 0, n; at < x->count && !onxi_pace_stops(&pace, 16 * CHUNK); at += n) {
        n = x->count - at < CHUNK ? x->count - at : CHUNK;
        get_numbers(x, at, p, n);
        for (uint64_t i = 0; i < n; i++)
            if (!(p[i] >= 0 && p[i] <= 1))
                return onx_work_fail(work, ONX_E_INVALID, "element %llu is %g, which is not a probability",
                                     (unsigned long long)(at + i), p[i]);
        draw_ones(&r, p, n);
        put_numbers(work->outputs[0], at, p, n);
    }
    return ONX_OK;
}

/* ---- Multinomial ---- */

static onx_status multinomial_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    uint64_t bytes;
    if (x->rank != 2 || !y || y->rank != 2 || y->dims[0] != x->dims[0])
        return onx_prepare_fail(p, ONX_E_INVALID, "the input has rank %u, expected 2", x->rank);
    if (!x->dims[1] && y->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are no classes to sample from");
    if (!onxi_mul_u64((uint64_t)x->dims[1], sizeof(double), &bytes))
        return onx_prepare_fail(p, ONX_E_LIMIT, "there are too many classes");
    p->workspace = x->count ? bytes : 0;
    return seeded_prepare(p);
}

/* Sums up the probabilities up to each class, from log probabilities that need not be normalized; returns the total. */
static double cumulate(const onx_value *x, uint64_t row, double *sums)
{
    uint64_t classes = (uint64_t)x->dims[1];
    double most = -INFINITY, sum = 0;
    get_numbers(x, row * classes, sums, classes);
    for (uint64_t c = 0; c < classes; c++)
        most = sums[c] > most ? sums[c] : most;
    for (uint64_t c = 0; c < classes; c++) {
        double p = sums[c] == most ? 1 : exp(sums[c] - most);
        sums[c] = sum += p;
    }
    return sum;
}

static onx_status multinomial_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    double *sums = work->workspace;
    onxi_random r;
    start(work, &r);
    uint64_t samples = (uint64_t)y->dims[1], classes = (uint64_t)x->dims[1];
    onxi_pace pace = { .work = work };
    for (uint64_t row = 0; row < (uint64_t)x->dims[0] && y->count && !onxi_pace_stops(&pace, 16 * classes); row++) {
        double all = cumulate(x, row, sums);
        if (!(all > 0 && all < INFINITY))
            return onx_work_fail(work, ONX_E_INVALID, "the probabilities of row %llu have no positive, finite sum",
                                 (unsigned long long)row);
        for (uint64_t i = 0; i < samples && !onxi_pace_stops(&pace, 32); i++) {
            double at = onxi_random_uniform(&r) * all;
            uint64_t low = 0, high = classes - 1; /* binary search: the first class whose sum is greater */
            while (low < high) {
                uint64_t mid = low + (high - low) / 2;
                if (sums[mid] > at)
                    high = mid;
                else
                    low = mid + 1;
            }
            onxi_value_set_number(y, row * samples + i, (double)low);
        }
    }
    return ONX_OK;
}

#define ROW(name, from, typed, how, body)                                                                              \
    {                                                                                                                  \
        .op = name, .since = from, .dtypes = ONXI_FLOATS, .dtype_from = typed, .flags = ONX_KERNEL_RANDOM,             \
        .prepare = how, .run = body                                                                                    \
    }
const onx_kernel onxi_kernels_random[] = {
    ROW("RandomNormal", 1, -1, normal_prepare, random_run),
    ROW("RandomNormalLike", 1, -1, normal_prepare, random_run),
    ROW("RandomUniform", 1, -1, uniform_prepare, random_run),
    ROW("RandomUniformLike", 1, -1, uniform_prepare, random_run),
    ROW("Bernoulli", 15, 0, seeded_prepare, bernoulli_run),
    ROW("Multinomial", 7, 0, multinomial_prepare, multinomial_run),
    { 0 },
};

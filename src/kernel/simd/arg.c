/* arg.c - ArgMax and ArgMin of floats: across lines, a vector of adjacent outputs at a time; or along a line, where
 * each lane keeps its own best element until the end, or has a short line of its own. NaN is the extreme, as in NumPy:
 * the first or the last one. */
#include "kernel/core/blocked.h"
#include "kernel/core/reduce.h"
#include "kernel/simd/halves.h"
#include "kernel/simd/turned.h"

/* SHORT: lines of which each lane has one. */
enum { VECTORS = 2, COLUMNS = 8 * VECTORS * ONXI_LANES, SHORT = ONXI_LANES == 16 ? TURNED_MOST : 3 * ONXI_LANES };

/* Does v replace the best element so far? */
static inline onxi_vi is_taken(const onxi_reduce_params *q, onxi_vf v, onxi_vf best)
{
    if (q->last_index)
        return (q->arg_max ? v >= best : v <= best) | (v != v);
    return (q->arg_max ? v > best : v < best) | ((v != v) & (best == best));
}

static inline onxi_vi pick(onxi_vi mask, onxi_vi a, onxi_vi b)
{
    return (mask & a) | (~mask & b);
}

/* Does v at position `at` precede the best element? */
static bool is_before(const onxi_reduce_params *q, float v, int64_t at, float best, int64_t where)
{
    const bool same = v == best || (v != v && best != best);
    if (same)
        return q->last_index ? at > where : at < where;
    return v != v || (best == best && (q->arg_max ? v > best : v < best));
}

static int64_t along(const onxi_reduce_params *q, const float *x, uint64_t n)
{
    uint64_t i = 1;
    float best = x[0];
    int64_t where = 0;
    if (n >= 2 * ONXI_LANES) {
        onxi_vi index, at;
        for (int k = 0; k < ONXI_LANES; k++)
            at[k] = k;
        onxi_vf most = vf_load(x);
        index = at;
        for (i = ONXI_LANES; i + ONXI_LANES <= n; i += ONXI_LANES) {
            const onxi_vf v = vf_load(x + i);
            const onxi_vi taken = is_taken(q, v, most);
            at += ONXI_LANES;
            most = vf_select(taken, v, most);
            index = pick(taken, at, index);
        }
        best = most[0];
        where = index[0];
        for (int k = 1; k < ONXI_LANES; k++)
            if (is_before(q, most[k], index[k], best, where)) {
                best = most[k];
                where = index[k];
            }
    }
    for (; i < n; i++)
        if (is_before(q, x[i], (int64_t)i, best, where)) {
            best = x[i];
            where = (int64_t)i;
        }
    return where;
}

#if ONXI_PLATFORM_ROOMY
/* Short lines, a line per lane. */
static void along_turned(const void *params, const float *x, uint64_t first, uint64_t n, void *y)
{
    const onxi_reduce_params *q = params;
    float turned[ONXI_LANES * ONXI_LANES];
    onxi_vf best = vf_all(0);
    onxi_vi index = { 0 };
    for (uint64_t start = 0; start < q->count; start += ONXI_LANES) {
        const uint64_t left = q->count - start, count = left < ONXI_LANES ? left : ONXI_LANES;
        vf_turn((const char *)(x + start), q->count * sizeof *x, turned, ONXI_LANES);
        if (!start)
            best = vf_load(turned);
        for (uint64_t k = start ? 0 : 1; k < count; k++) {
            const onxi_vf v = vf_load(turned + k * ONXI_LANES);
            const onxi_vi taken = is_taken(q, v, best);
            best = vf_select(taken, v, best);
            index = pick(taken, vi_all((int32_t)(start + k)), index);
        }
    }
    for (uint64_t i = 0; i < n; i++)
        ((int64_t *)y)[first + i] = index[i];
}
#endif

/* Processes some vectors of adjacent outputs; the last vector has n. */
__attribute__((always_inline)) static inline void across(const onxi_reduce_params *q, const float *x, uint64_t n,
                                                         int64_t *y, const int vectors)
{
    onxi_vf best[VECTORS];
    onxi_vi index[VECTORS];
    const bool whole = vectors > 1 || n == ONXI_LANES;
    for (int v = 0; v < vectors; v++) {
        best[v] = whole ? vf_load(x + v * ONXI_LANES) : vf_load_part(x, n, 0);
        index[v] = (onxi_vi){ 0 };
    }
    for (uint64_t k = 1; k < q->count; k++) {
        const float *line = x + k * q->inner;
        const onxi_vi at = (onxi_vi){ 0 } + (int32_t)k;
        for (int v = 0; v < vectors; v++) {
            const onxi_vf t = whole ? vf_load(line + v * ONXI_LANES) : vf_load_part(line, n, 0);
            const onxi_vi taken = is_taken(q, t, best[v]);
            best[v] = vf_select(taken, t, best[v]);
            index[v] = pick(taken, at, index[v]);
        }
    }
    for (uint64_t i = 0; i < (whole ? (uint64_t)vectors * ONXI_LANES : n); i++)
        y[i] = index[i / ONXI_LANES][i % ONXI_LANES];
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_reduce_params *q = work->params;
    const float *x = work->inputs[0]->data;
    int64_t *y = work->outputs[0]->data;
#if ONXI_PLATFORM_ROOMY
    if (q->inner == 1 && q->count <= SHORT) {
        turned_lines(along_turned, q, x + first * q->count, q->count, last - first, y + first);
        return ONX_OK;
    }
#endif
    if (q->inner == 1) {
        for (uint64_t row = first; row < last; row++)
            y[row] = along(q, x + row * q->count, q->count);
        return ONX_OK;
    }
    const uint64_t blocks = (q->inner + COLUMNS - 1) / COLUMNS;
    for (uint64_t row = first; row < last; row++) {
        const uint64_t from = row % blocks * COLUMNS, end = q->inner - from < COLUMNS ? q->inner : from + COLUMNS;
        const float *lines = x + row / blocks * q->count * q->inner;
        int64_t *to = y + row / blocks * q->inner;
        uint64_t i = from;
        for (; i + VECTORS * ONXI_LANES <= end; i += VECTORS * ONXI_LANES)
            across(q, lines + i, ONXI_LANES, to + i, VECTORS);
        for (; i < end; i += ONXI_LANES)
            across(q, lines + i, end - i < ONXI_LANES ? end - i : ONXI_LANES, to + i, 1);
    }
    return ONX_OK;
}

static onx_status prepare_lines(onx_prepare *p, uint64_t inner)
{
    onxi_reduce_params *q = p->params;
    if (!q->count || q->count > INT32_MAX || !p->outputs[0]->count)
        return ONX_E_UNSUPPORTED;
    q->inner = inner;
    const uint64_t blocks = inner == 1 ? 1 : (inner + COLUMNS - 1) / COLUMNS;
    p->rows = p->outputs[0]->count / inner * blocks;
    p->grain = onxi_worth_a_thread(q->count * (inner < COLUMNS ? inner : COLUMNS));
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    ONX_TRY(onxi_arg_prepare(p));
    return prepare_lines(p, (uint64_t)((const onxi_reduce_params *)p->params)->steps[0]);
}

#if ONXI_PLATFORM_ROOMY
/* Over the channels of an image that has them last, which are lines. */
static onx_status prepare_channels(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    if (!p->want || !x->layout || onxi_blocked_of(x) != x->dims[1])
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_arg_prepare(p));
    const onxi_reduce_params *q = p->params;
    return q->is_reduced[1] ? prepare_lines(p, 1) : ONX_E_UNSUPPORTED;
}
#endif

#if ONXI_PLATFORM_ROOMY
/* ---- lines of types all of whose elements are floats ---- */

#define TO_FLOATS(T)                                                                                                   \
    static void T##_to_floats(const void *px, float *y, uint64_t n)                                                    \
    {                                                                                                                  \
        const T *x = px;                                                                                               \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            y[i] = (float)x[i];                                                                                        \
    }
TO_FLOATS(int8_t)
TO_FLOATS(uint8_t)
TO_FLOATS(int16_t)
TO_FLOATS(uint16_t)

static void float16_to_floats(const void *x, float *y, uint64_t n)
{
    half_widen(HALF_FLOAT16, x, y, n);
}

static void bfloat16_to_floats(const void *x, float *y, uint64_t n)
{
    half_widen(HALF_BFLOAT16, x, y, n);
}

static void (*const to_floats[ONX_DTYPE_COUNT])(const void *x, float *y, uint64_t n) = {
    [ONX_INT8] = int8_t_to_floats,     [ONX_UINT8] = uint8_t_to_floats,   [ONX_INT16] = int16_t_to_floats,
    [ONX_UINT16] = uint16_t_to_floats, [ONX_FLOAT16] = float16_to_floats, [ONX_BFLOAT16] = bfloat16_to_floats,
};

enum { WIDENED = 4096, LONGEST = 256 }; /* elements at once; of a line */

/* Longer lines are faster in reduce_types.c, which reads them twice. */
static onx_status prepare_widened(onx_prepare *p)
{
    ONX_TRY(prepare(p));
    const onxi_reduce_params *q = p->params;
    return q->inner == 1 && q->count <= LONGEST ? ONX_OK : ONX_E_UNSUPPORTED;
}

static onx_status run_widened(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_reduce_params *q = work->params;
    const onx_value *x = work->inputs[0];
    const uint64_t width = onxi_element_size(x->dtype);
    int64_t *y = work->outputs[0]->data;
    float in[WIDENED] = { 0 }; /* of a short line, whole vectors are read */
    for (uint64_t n; first < last; first += n) {
        n = last - first < ONXI_LANES ? last - first : ONXI_LANES;
        to_floats[x->dtype]((const char *)x->data + first * q->count * width, in, n * q->count);
        if (q->count <= SHORT)
            along_turned(q, in, first, n, y);
        else
            for (uint64_t i = 0; i < n; i++)
                y[first + i] = along(q, in + i * q->count, q->count);
    }
    return ONX_OK;
}
#endif

#define ROW(name, max, types, preference_, flags_, prepare_, run_)                                                     \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = types, .preference = preference_, .flags = flags_, .isa = ONXI_LEVEL,        \
        .variant = ONXI_VARIANT, .body = &(const bool){ max }, .prepare = prepare_, .run = run_                        \
    }
#define WIDER                                                                                                          \
    (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8) | ONX_DTYPE_BIT(ONX_INT16) | ONX_DTYPE_BIT(ONX_UINT16) |       \
     ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16))
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_arg)[] = {
#if ONXI_PLATFORM_ROOMY
    ROW("ArgMax", true, ONXI_F32, 2, ONX_KERNEL_LAYOUTS, prepare_channels, run),
    ROW("ArgMin", false, ONXI_F32, 2, ONX_KERNEL_LAYOUTS, prepare_channels, run),
    ROW("ArgMax", true, WIDER, 3, 0, prepare_widened, run_widened),
    ROW("ArgMin", false, WIDER, 3, 0, prepare_widened, run_widened),
#endif
    ROW("ArgMax", true, ONXI_F32, 1, 0, prepare, run),
    ROW("ArgMin", false, ONXI_F32, 1, 0, prepare, run),
    { 0 }
};

/* variadic.c - Sum, Mean, Max and Min of any number of inputs: the output is computed from the first two inputs and
 * then updated with each further one. */
#include "kernel/core/blocked.h"
#include "kernel/core/loops.h"

#define ADD_F(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x + y)
/* NaN wins, as in NumPy. */
#define MAX_F(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x > y || x != x ? x : y)
#define MIN_F(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x < y || x != x ? x : y)
#define MAX_I(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x > y ? x : y)
#define MIN_I(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x < y ? x : y)
ONXI_EACH_FLOAT(ADD_F, sum)
ONXI_EACH_FLOAT(MAX_F, max)
ONXI_EACH_SIGNED(MAX_I, max)
ONXI_EACH_UNSIGNED(MAX_I, max)
ONXI_EACH_FLOAT(MIN_F, min)
ONXI_EACH_SIGNED(MIN_I, min)
ONXI_EACH_UNSIGNED(MIN_I, min)

#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static const onxi_binary_body sum_body = { .loops = { ONXI_EACH_FLOAT(ENTRY, sum) } };
const onxi_binary_body onxi_body_max = { .loops = { ONXI_EACH_FLOAT(ENTRY, max) ONXI_EACH_SIGNED(ENTRY, max)
                                                        ONXI_EACH_UNSIGNED(ENTRY, max) } };
const onxi_binary_body onxi_body_min = { .loops = { ONXI_EACH_FLOAT(ENTRY, min) ONXI_EACH_SIGNED(ENTRY, min)
                                                        ONXI_EACH_UNSIGNED(ENTRY, min) } };

#define SCALE(op, d, T, C, M, L, S)                                                                                    \
    static void op##_##d(void *data, uint64_t n, double by)                                                            \
    {                                                                                                                  \
        T *x = (T *)data;                                                                                              \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            x[i] = (T)S((C)L(x[i]) * (C)by);                                                                           \
    }
ONXI_EACH_FLOAT(SCALE, scale)
static void (*const scale_loops[ONX_DTYPE_COUNT])(void *, uint64_t, double) = { ONXI_EACH_FLOAT(ENTRY, scale) };

typedef struct variadic_params {
    onxi_binary_loop loop;
    onxi_broadcast *inputs; /* each one broadcast to the output */
    uint64_t rows_each;     /* outer rows per unit of work */
    uint32_t width;
    bool mean;
} variadic_params;

/* Each input is broadcast to the output separately. A unit of work is a range of elements of the output. */
onx_status onxi_variadic_prepare(onx_prepare *p)
{
    const onxi_binary_body *body = p->kernel->body;
    const onx_value *x = p->inputs[0];
    onx_value *z = p->outputs[0];
    variadic_params *q = ONXI_NEW(p->arena, variadic_params);
    if (!q)
        return ONX_E_MEMORY;
    q->loop = body->loops[x->dtype];
    if (!q->loop)
        return ONX_E_UNSUPPORTED;
    q->mean = p->op == ONXI_ID_Mean;
    q->width = onx_dtype_bits(x->dtype) / 8;
    q->inputs = ONXI_ARRAY(p->arena, onxi_broadcast, p->input_count + 1u);
    if (!q->inputs || !onxi_element_layout(p))
        return ONX_E_MEMORY;
    const uint64_t total = z->layout ? z->layout->size / q->width : z->count;
    for (uint32_t i = 0; i < p->input_count; i++) {
        const onx_value *v = p->inputs[i];
        if (!v || v->dtype != x->dtype)
            return onx_prepare_fail(p, ONX_E_INVALID, "the inputs differ in type");
        if (z->layout) {
            const int64_t n = (int64_t)total;
            q->inputs[i] = (onxi_broadcast){ .rank = 1, .inputs = 1, .dims = { n }, .outer = 1, .inner = n };
            q->inputs[i].step[0][0] = v->layout != NULL;
        } else if (!onxi_broadcast_make(&q->inputs[i], &v, 1, z, NULL)) {
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u does not broadcast to the output", i);
        }
    }
    p->params = q;
    p->rows = (total + ONXI_BLOCK - 1) / ONXI_BLOCK;
    return ONX_OK;
}

/* Two inputs are computed as by a binary operator: in their order, whichever is overwritten. */
onx_status onxi_pair_prepare(onx_prepare *p)
{
    return p->input_count == 2 ? onxi_binary_prepare_numpy(p) : ONX_E_UNSUPPORTED;
}

/* Updates elements start .. end-1 of the output, which are at `z`, with an input, or sets them if it is the first. */
static void take_in(const variadic_params *q, const onxi_broadcast *b, const char *x, char *z, uint64_t start,
                    uint64_t end, bool first)
{
    uint64_t inner = (uint64_t)b->inner;
    int64_t step = b->step[0][b->rank - 1];
    for (uint64_t at = start; at < end;) {
        uint64_t row = at / inner, col = at % inner, n = inner - col < end - at ? inner - col : end - at;
        int64_t off;
        int64_t offs[ONXI_BROADCAST_MAX];
        onxi_broadcast_offsets(b, row, offs);
        off = offs[0] + (int64_t)col * step;
        if (!first) {
            q->loop(z, 1, x + off * q->width, step, z, (int64_t)n);
        } else if (step == 1) {
            memmove(z, x + off * q->width, n * q->width);
        } else {
            for (uint64_t i = 0; i < n; i++)
                memcpy(z + i * q->width, x + off * q->width, q->width);
        }
        z += n * q->width;
        at += n;
    }
}

/* Writes elements start .. end-1 of the output to `z`. The order of the inputs determines the bits, so it is always
 * theirs. */
static void take_in_all(const variadic_params *q, const onx_work *work, char *z, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < work->prepared->input_count; i++)
        take_in(q, &q->inputs[i], work->inputs[i]->data, z, start, end, i == 0);
    if (q->mean)
        scale_loops[work->outputs[0]->dtype](z, end - start, 1.0 / work->prepared->input_count);
}

onx_status onxi_variadic_run(onx_work *work, uint64_t first, uint64_t last)
{
    const variadic_params *q = work->params;
    onx_value *out = work->outputs[0];
    bool early = false; /* the output overwrites an input that is read later */
    uint64_t total = out->layout ? out->size / q->width : out->count;
    for (uint32_t i = 1; i < work->prepared->input_count; i++)
        early = early || (work->inputs[i]->data == out->data && out->data);
    uint64_t start = first * ONXI_BLOCK, end = last * ONXI_BLOCK < total ? last * ONXI_BLOCK : total;
    char *z = out->data;
    char part[1024];
    const uint64_t step = early ? sizeof part / q->width : ONXI_BLOCK;
    for (; start < end; start += step) {
        const uint64_t n = step < end - start ? step : end - start;
        take_in_all(q, work, early ? part : z + start * q->width, start, start + n);
        if (early)
            memcpy(z + start * q->width, part, n * q->width);
    }
    return ONX_OK;
}

#define ROW_OF(kind, name, types, body_, how)                                                                          \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = types, .flags = ONX_KERNEL_IN_PLACE | ONX_KERNEL_FLAT,                       \
        .post_op = ONX_POST_##kind, .body = &body_, .prepare = onxi_##how##_prepare, .run = onxi_##how##_run           \
    }
#define onxi_pair_run                 onxi_binary_run
#define ROWS(kind, name, types, body) ROW_OF(kind, name, types, body, pair), ROW_OF(kind, name, types, body, variadic)

const onx_kernel onxi_kernels_variadic[] = { ROWS(ADD, "Sum", ONXI_FLOATS, sum_body),
                                             ROW_OF(NONE, "Mean", ONXI_FLOATS, sum_body, variadic),
                                             ROWS(NONE, "Max", ONXI_NUMBERS, onxi_body_max),
                                             ROWS(NONE, "Min", ONXI_NUMBERS, onxi_body_min),
                                             { 0 } };

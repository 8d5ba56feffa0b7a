/* tensor.c - com.microsoft kernels on tensors: windows along an axis, concatenation of quantized tensors, 16-bit
 * integer products, hashes, time warping. */
#include "kernel/core/bytes.h"
#include "kernel/core/inverse.h"
#include "kernel/core/quantize.h"
#include "kernel/microsoft/microsoft.h"

#include <math.h>

/* ---- UnfoldTensor ---- */

typedef struct unfold {
    uint64_t axis, windows, size, step, inner, width;
} unfold;

static onx_status unfold_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    unfold *q = ONXI_NEW(p->arena, unfold);
    uint32_t axis;
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_whole_bytes(p));
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "dim"), x->rank, &axis));
    const int64_t size = onx_prepare_int(p, "size"), step = onx_prepare_int(p, "step");
    if (size < 1 || step < 1 || size > x->dims[axis])
        return onx_prepare_fail(p, ONX_E_INVALID, "windows of %lld in steps of %lld do not fit an axis of %lld",
                                (long long)size, (long long)step, (long long)x->dims[axis]);
    q->axis = (uint64_t)x->dims[axis];
    q->size = (uint64_t)size;
    q->step = (uint64_t)step;
    q->windows = (uint64_t)((x->dims[axis] - size) / step + 1);
    q->inner = onxi_product(x->dims, axis + 1, x->rank);
    q->width = onxi_element_size(x->dtype);
    p->params = q;
    p->rows = p->outputs[0]->count ? p->outputs[0]->count / q->size : 0;
    p->grain = 4096 / q->size + 1;
    return ONX_OK;
}

/* A row of work is a window. */
static onx_status unfold_run(onx_work *work, uint64_t first, uint64_t last)
{
    const unfold *q = work->params;
    const char *x = work->inputs[0]->data;
    char *y = work->outputs[0]->data;
    for (uint64_t row = first; row < last; row++) {
        const uint64_t in = row % q->inner, window = row / q->inner % q->windows, outer = row / q->inner / q->windows,
                       from = (outer * q->axis + window * q->step) * q->inner + in;
        for (uint64_t i = 0; i < q->size; i++)
            onxi_copy_item(y + (row * q->size + i) * q->width, x + (from + i * q->inner) * q->width, q->width);
    }
    return ONX_OK;
}

/* ---- QLinearConcat ---- */

enum { BYTES = 256 }; /* number of byte values */

typedef struct joined {
    uint64_t outer, inner, *sizes; /* per input: its size along the axis times the product of the inner dims */
    uint32_t count;
} joined;

static onx_status concat_prepare(onx_prepare *p)
{
    const onx_value *y = p->outputs[0];
    joined *q = ONXI_NEW(p->arena, joined);
    uint32_t axis;
    if (!q || !(q->sizes = ONXI_ARRAY(p->arena, uint64_t, p->input_count)))
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), y->rank, &axis));
    q->count = (p->input_count - 2) / 3;
    q->outer = onxi_product(y->dims, 0, axis);
    q->inner = onxi_product(y->dims, axis, y->rank);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        const onx_value *x = p->inputs[2 + 3 * i], *scale = p->inputs[3 + 3 * i], *zero = p->inputs[4 + 3 * i];
        if (x->dtype != y->dtype || x->rank != y->rank || scale->dtype != ONX_FLOAT || scale->count != 1 ||
            zero->dtype != y->dtype || zero->count != 1)
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u, its scale, or its zero point does not fit", 2 + 3 * i);
        sum += q->sizes[i] = onxi_product(x->dims, axis, x->rank);
    }
    if (sum != q->inner || p->inputs[0]->count != 1 || p->inputs[1]->count != 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs, or the scale and zero point of the output, do not fit");
    p->params = q;
    p->rows = y->count ? q->outer : 0;
    p->grain = 16384 / (q->inner ? q->inner : 1) + 1;
    p->thread_workspace = q->count * (BYTES + sizeof(bool));
    return ONX_OK;
}

static int byte_at(const onx_value *v, uint64_t i)
{
    return v->dtype == ONX_INT8 ? ((const int8_t *)v->data)[i] : ((const uint8_t *)v->data)[i];
}

/* Fills the table with each byte value, converted from one scale and zero point to those of the result. */
static void requantize(int dtype, float own, int own_zero, float scale, int zero, uint8_t *table)
{
    const int least = dtype == ONX_INT8 ? -128 : 0;
    const float low = (float)(least - zero);
    for (int i = least; i < least + BYTES; i++) {
        const float real = (float)(i - own_zero) * own;
        table[(uint8_t)i] = (uint8_t)((int)onxi_requantized(real / scale, 1, low, low + 255) + zero);
    }
}

/* Computes the requantized value of each byte of an input; false: the bytes do not change. */
static bool table_of(const onx_work *work, uint32_t i, uint8_t *table)
{
    const onx_value *y = work->outputs[0];
    const float own = ((const float *)work->inputs[3 + 3 * i]->data)[0],
                scale = ((const float *)work->inputs[0]->data)[0];
    const int zero = byte_at(work->inputs[1], 0), own_zero = byte_at(work->inputs[4 + 3 * i], 0);
    uint8_t all[BYTES];
    for (unsigned b = 0; b < BYTES; b++)
        all[b] = (uint8_t)b;
    requantize(y->dtype, own, own_zero, scale, zero, table);
    return memcmp(table, all, BYTES) != 0;
}

/* A row of work is an index of the dims before the axis. */
static onx_status concat_run(onx_work *work, uint64_t first, uint64_t last)
{
    const joined *q = work->params;
    uint8_t *tables = work->thread_workspace;
    bool *changes = (bool *)(tables + q->count * BYTES);
    for (uint32_t i = 0; i < q->count; i++)
        changes[i] = table_of(work, i, tables + i * BYTES);
    for (uint64_t row = first; row < last; row++) {
        uint64_t at = row * q->inner;
        for (uint32_t i = 0; i < q->count; i++) {
            const uint8_t *from = (const uint8_t *)work->inputs[2 + 3 * i]->data + row * q->sizes[i];
            uint8_t *to = (uint8_t *)work->outputs[0]->data + at;
            if (changes[i])
                onxi_byte_look_up(tables + i * BYTES, from, q->sizes[i], to);
            else if (q->sizes[i])
                memcpy(to, from, q->sizes[i]);
            at += q->sizes[i];
        }
    }
    return ONX_OK;
}

/* ---- MatMulInteger16 ---- */

typedef struct product {
    onxi_broadcast batch;
    uint64_t m, n, k, left_at, right_at, pack_at;
} product;

static onx_status product_prepare(onx_prepare *p)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1], *c = p->outputs[0];
    product *q = ONXI_NEW(p->arena, product);
    if (!q)
        return ONX_E_MEMORY;
    if (!a->rank || !b->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs must have at least one dimension");
    const uint32_t la = a->rank > 1 ? a->rank - 2 : 0, lb = b->rank > 1 ? b->rank - 2 : 0, lc = la > lb ? la : lb;
    q->m = a->rank > 1 ? (uint64_t)a->dims[a->rank - 2] : 1;
    q->k = (uint64_t)a->dims[a->rank - 1];
    q->n = b->rank > 1 ? (uint64_t)b->dims[b->rank - 1] : 1;
    onx_value batch_a = { .rank = la, .dims = a->dims }, batch_b = { .rank = lb, .dims = b->dims },
              batch_c = { .rank = lc, .dims = c->dims };
    const onx_value *leading[] = { &batch_a, &batch_b };
    uint64_t total = 0, left, right;
    if ((uint64_t)b->dims[b->rank > 1 ? b->rank - 2 : 0] != q->k ||
        !onxi_broadcast_make(&q->batch, leading, 2, &batch_c, NULL))
        return onx_prepare_fail(p, ONX_E_INVALID, "the dimensions of the matrices do not fit");
    if (!onxi_mul_u64(q->m, q->k, &left) || !onxi_mul_u64(q->k, q->n, &right) ||
        !onxi_ms_reserve(&total, left, &q->left_at) || !onxi_ms_reserve(&total, right, &q->right_at) ||
        !onxi_add_u64(total, onxi_gemm_workspace(ONX_INT32, q->m, q->n, q->k), &p->thread_workspace))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the matrices are too large");
    q->pack_at = total;
    p->params = q;
    p->rows = c->count ? q->batch.outer * (uint64_t)q->batch.inner : 0;
    return ONX_OK;
}

static void widen(const onx_value *v, uint64_t first, uint64_t count, int32_t *out)
{
    for (uint64_t i = 0; i < count; i++)
        out[i] = v->dtype == ONX_INT16 ? ((const int16_t *)v->data)[first + i] : ((const uint16_t *)v->data)[first + i];
}

/* A row of work is a matrix. */
static onx_status product_run(onx_work *work, uint64_t first, uint64_t last)
{
    const product *q = work->params;
    const onxi_broadcast *b = &q->batch;
    char *memory = work->thread_workspace;
    int32_t *left = (int32_t *)(void *)(memory + q->left_at), *right = (int32_t *)(void *)(memory + q->right_at);
    for (uint64_t row = first; row < last; row++) {
        const uint64_t inner = row % (uint64_t)b->inner;
        int64_t at[ONXI_BROADCAST_MAX];
        onxi_broadcast_offsets(b, row / (uint64_t)b->inner, at);
        const uint64_t ma = (uint64_t)(at[0] + (int64_t)inner * b->step[0][b->rank - 1]),
                       mb = (uint64_t)(at[1] + (int64_t)inner * b->step[1][b->rank - 1]);
        widen(work->inputs[0], ma * q->m * q->k, q->m * q->k, left);
        widen(work->inputs[1], mb * q->k * q->n, q->k * q->n, right);
        const onxi_gemm g = { .dtype = ONX_INT32,
                              .m = q->m,
                              .n = q->n,
                              .k = q->k,
                              .a = left,
                              .b = right,
                              .c = (int32_t *)work->outputs[0]->data + row * q->m * q->n,
                              .a_row = (int64_t)q->k,
                              .a_col = 1,
                              .b_row = (int64_t)q->n,
                              .b_col = 1,
                              .c_row = (int64_t)q->n,
                              .work = work };
        onxi_gemm_run(&g, memory + q->pack_at);
    }
    return ONX_OK;
}

/* ---- MurmurHash3 ---- */

static onx_status hash_prepare(onx_prepare *p)
{
    uint32_t *seed = ONXI_NEW(p->arena, uint32_t);
    if (!seed)
        return ONX_E_MEMORY;
    *seed = (uint32_t)onx_prepare_int(p, "seed");
    p->params = seed;
    p->rows = p->inputs[0]->count;
    p->grain = 1024;
    return ONX_OK;
}

static uint32_t turned(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

static uint32_t mixed(uint32_t k)
{
    return turned(k * UINT32_C(0xcc9e2d51), 15) * UINT32_C(0x1b873593);
}

/* The 32-bit variant for x86 of the published algorithm. */
static uint32_t murmur(const uint8_t *bytes, uint64_t n, uint32_t h)
{
    uint32_t rest = 0;
    for (uint64_t i = 0; i + 4 <= n; i += 4) {
        uint32_t word;
        memcpy(&word, bytes + i, sizeof word);
        h = turned(h ^ mixed(word), 13) * 5 + UINT32_C(0xe6546b64);
    }
    for (uint64_t i = n % 4; i-- > 0;)
        rest = rest << 8 | bytes[n - n % 4 + i];
    if (n % 4)
        h ^= mixed(rest);
    h ^= (uint32_t)n;
    h = (h ^ h >> 16) * UINT32_C(0x85ebca6b);
    h = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
    return h ^ h >> 16;
}

static onx_status hash_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onx_value *x = work->inputs[0];
    const uint32_t seed = *(const uint32_t *)work->params;
    const uint64_t width = x->dtype == ONX_STRING ? 0 : onxi_element_size(x->dtype);
    for (uint64_t i = first; i < last; i++) {
        const onx_str text =
            width ? onx_str_make((const char *)x->data + i * width, width) : ((const onx_str *)x->data)[i];
        ((uint32_t *)work->outputs[0]->data)[i] = murmur((const uint8_t *)text.ptr, text.len, seed);
    }
    return ONX_OK;
}

/* ---- DynamicTimeWarping ---- */

static onx_status warping_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    uint64_t *size = ONXI_ARRAY(p->arena, uint64_t, 2);
    uint64_t cells;
    if (!size)
        return ONX_E_MEMORY;
    if ((x->rank != 2 && (x->rank != 3 || x->dims[0] != 1)) || !x->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "the costs are not a matrix, or the matrix is empty");
    size[0] = (uint64_t)x->dims[x->rank - 2];
    size[1] = (uint64_t)x->dims[x->rank - 1];
    if (!onxi_mul_u64(size[0] + 1, size[1] + 1, &cells) || cells > UINT64_MAX / 8)
        return onx_prepare_fail(p, ONX_E_LIMIT, "a matrix of %llu by %llu is too large", (unsigned long long)size[0],
                                (unsigned long long)size[1]);
    p->params = size;
    p->workspace = (cells * 5 + 63u) & ~(uint64_t)63u;
    return ONX_OK;
}

/* Fills the table of accumulated costs. `trace` stores the predecessor of each point: 0: the diagonal one, 1: the one
 * in the previous row, 2: the one in the previous column. */
static void fill(const float *x, uint64_t rows, uint64_t columns, float *cost, uint8_t *trace, onxi_pace *pace)
{
    const uint64_t w = columns + 1;
    for (uint64_t i = 0; i < (rows + 1) * w; i++)
        cost[i] = INFINITY;
    cost[0] = 0;
    for (uint64_t c = 1; c <= columns && !onxi_pace_stops(pace, 8 * rows); c++)
        for (uint64_t r = 1; r <= rows; r++) {
            const float both = cost[(r - 1) * w + c - 1], row = cost[(r - 1) * w + c], column = cost[r * w + c - 1];
            const unsigned way = both < row && both < column ? 0 : row < both && row < column ? 1 : 2;
            cost[r * w + c] = x[(r - 1) * columns + c - 1] + (way == 0 ? both : way == 1 ? row : column);
            trace[r * w + c] = (uint8_t)way;
        }
    for (uint64_t c = 0; c <= columns; c++)
        trace[c] = 2;
    for (uint64_t r = 0; r <= rows; r++)
        trace[r * w] = 1;
}

static uint64_t step_back(const uint8_t *trace, uint64_t w, uint64_t *r, uint64_t *c)
{
    const unsigned way = trace[*r * w + *c];
    *r -= way != 2;
    *c -= way != 1;
    return 1;
}

static onx_status warping_run(onx_work *work, uint64_t first, uint64_t last)
{
    const uint64_t *size = work->params, w = size[1] + 1, cells = (size[0] + 1) * w;
    float *cost = work->workspace;
    uint8_t *trace = (uint8_t *)(cost + cells);
    uint64_t count = 0, r = size[0], c = size[1];
    (void)first, (void)last;
    onxi_pace pace = { .work = work };
    fill(work->inputs[0]->data, size[0], size[1], cost, trace, &pace);
    if (onxi_pace_stops(&pace, ONXI_PACE)) /* the trace may be incomplete */
        return ONX_OK;
    while (r > 0 || c > 0)
        count += step_back(trace, w, &r, &c);
    const int64_t dims[] = { 2, (int64_t)count };
    ONX_TRY(onx_value_reset(work->outputs[0], ONX_INT32, 2, dims));
    int32_t *y = work->outputs[0]->data;
    r = size[0];
    c = size[1];
    for (uint64_t i = count; i-- > 0; (void)step_back(trace, w, &r, &c)) {
        y[i] = (int32_t)r - 1;
        y[count + i] = (int32_t)c - 1;
    }
    return ONX_OK;
}

/* The block size of a model is that of the CPU on which it was optimized; this is assumed to be the CPU it runs on. */
static onx_status block_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    *(int64_t *)work->outputs[0]->data = onxi_isa_vectors() == ONX_ISA_V3 ? 8 : 16;
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_tensor[] = {
    { .op = "BlockSize", .domain = "com.microsoft.nchwc", .since = 1, .run = block_run },
    MS_KERNEL("Inverse", .prepare = onxi_inverse_prepare, .run = onxi_inverse_run),
    MS_KERNEL("UnfoldTensor", .prepare = unfold_prepare, .run = unfold_run),
    MS_KERNEL("QLinearConcat", .prepare = concat_prepare, .run = concat_run),
    MS_KERNEL("MatMulInteger16", .prepare = product_prepare, .run = product_run),
    MS_KERNEL("MurmurHash3", .prepare = hash_prepare, .run = hash_run),
    MS_KERNEL("DynamicTimeWarping", .prepare = warping_prepare, .run = warping_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};

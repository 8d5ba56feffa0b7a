/* weights.c - matrix products with low-bit weights, which are dequantized a few columns at a time. */
#include "kernel/core/few_bits.h"
#include "kernel/core/rnn.h"
#include "kernel/core/unpack.h"
#include "kernel/microsoft/microsoft.h"

#include <math.h>

enum { COLUMNS = 16 }; /* columns that are dequantized at a time */

/* ---- blocks with scales ---- */

onx_status onxi_ms_packed_check(const onx_prepare *p, const onxi_ms_packed *w, const onx_value *bytes,
                                const onx_value *scales, const onx_value *zeros)
{
    uint64_t count;
    if (!onxi_mul_u64(w->rows, w->row_bytes, &count) || bytes->count != count)
        return onx_prepare_fail(p, ONX_E_INVALID, "%llu bytes of weights are not %llu rows of %llu",
                                (unsigned long long)bytes->count, (unsigned long long)w->rows,
                                (unsigned long long)w->row_bytes);
    if (!scales || !onxi_mul_u64(w->rows, w->blocks, &count) || scales->count != count)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu scales for %llu rows of %llu blocks",
                                (unsigned long long)(scales ? scales->count : 0), (unsigned long long)w->rows,
                                (unsigned long long)w->blocks);
    const uint64_t runs = w->together ? w->rows / w->together : w->rows;
    if (zeros && zeros->count != (zeros->dtype == ONX_UINT8 ? runs * w->zero_bytes : w->rows * w->blocks))
        return onx_prepare_fail(p, ONX_E_INVALID, "%llu zero points do not fit %llu rows of %llu blocks",
                                (unsigned long long)zeros->count, (unsigned long long)w->rows,
                                (unsigned long long)w->blocks);
    return ONX_OK;
}

float onxi_ms_packed_zero(const onxi_ms_packed *w, const onx_value *zeros, uint64_t row, uint64_t block)
{
    if (!zeros)
        return (float)(1u << (w->bits - 1));
    if (zeros->dtype != ONX_UINT8)
        return onxi_ms_float(zeros, row * w->blocks + block);
    if (w->together)
        return (float)onxi_ms_number((const uint8_t *)zeros->data + row / w->together * w->zero_bytes,
                                     row % w->together, w->bits);
    return (float)onxi_ms_number((const uint8_t *)zeros->data + row * w->zero_bytes, block, w->bits);
}

/* Dequantizes `n` elements; `bytes` begins with the first one. */
static void make_real(const uint8_t *bytes, uint64_t n, unsigned bits, float scale, float zero, float *out)
{
    uint64_t i = 0;
    if (bits == 4) {
        float low[16];
        for (unsigned v = 0; v < 16; v++)
            low[v] = ((float)v - zero) * scale;
        for (; i + 2 <= n; i += 2) {
            out[i] = low[bytes[i / 2] & 15];
            out[i + 1] = low[bytes[i / 2] >> 4];
        }
    }
    for (; i < n; i++)
        out[i] = ((float)onxi_ms_number(bytes, i, bits) - zero) * scale;
}

void onxi_ms_packed_row(const onxi_ms_packed *w, const onx_value *bytes, const onx_value *scales,
                        const onx_value *zeros, const int32_t *groups, uint64_t row, float *out)
{
    const uint8_t *from = (const uint8_t *)bytes->data + row * w->row_bytes;
    for (uint64_t b = 0; !groups && b < w->blocks; b++) {
        const uint64_t first = b * w->block, n = w->length - first < w->block ? w->length - first : w->block;
        make_real(from + first * w->bits / 8, n, w->bits, onxi_ms_float(scales, row * w->blocks + b),
                  onxi_ms_packed_zero(w, zeros, row, b), out + first);
    }
    for (uint64_t i = 0; groups && i < w->length; i++) {
        const uint64_t b = groups[i] >= 0 && (uint64_t)groups[i] < w->blocks ? (uint64_t)groups[i] : 0;
        out[i] = ((float)onxi_ms_number(from, i, w->bits) - onxi_ms_packed_zero(w, zeros, row, b)) *
                 onxi_ms_float(scales, row * w->blocks + b);
    }
}

/* ---- products ---- */

typedef struct product {
    onxi_ms_packed weights;
    uint64_t m, n, k; /* n: columns of the output */
    int kind;
    uint64_t left_at, right_at, block;
    uint64_t packed_at, out_at, of_at, zeros_at, scales_at; /* offsets for the vectorized products */
    const float *table;
    bool turned;
    uint64_t blob; /* bytes per block of MatMulFpQ4 */
    unsigned header;
    bool as_bytes; /* the left operand is quantized to 8 bits, with a scale per block */
} product;

enum { BITS, BNB4, FPQ4 };

static onx_status prepare_product(onx_prepare *p, product *q)
{
    const onx_value *a = p->inputs[0];
    uint64_t total = 0;
    q->m = a->rank ? onxi_product(a->dims, 0, a->rank - 1) : 0;
    if (!a->rank || (uint64_t)a->dims[a->rank - 1] != q->k)
        return onx_prepare_fail(p, ONX_E_INVALID, "the last axis of A does not have %llu elements",
                                (unsigned long long)q->k);
    if (q->k > UINT64_MAX / 4096 || !onxi_ms_reserve(&total, q->k, &q->left_at) ||
        !onxi_ms_reserve(&total, q->k * COLUMNS, &q->right_at))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the weights are too large");
    p->thread_workspace = total;
    p->params = q;
    p->rows = p->outputs[0]->count ? (q->n + COLUMNS - 1) / COLUMNS : 0;
    return ONX_OK;
}

static onx_status nbits_prepare(onx_prepare *p)
{
    product *q = ONXI_NEW(p->arena, product);
    if (!q)
        return ONX_E_MEMORY;
    const int64_t bits = onx_prepare_int(p, "bits"), block = onx_prepare_int(p, "block_size");
    const onx_value *zeros = onxi_operand(p->input_count, p->inputs, 3),
                    *groups = onxi_operand(p->input_count, p->inputs, 4),
                    *bias = onxi_operand(p->input_count, p->inputs, 5);
    if ((bits != 2 && bits != 4 && bits != 8) || onx_prepare_is_set(p, "weight_prepacked"))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "weights of %lld bits, or with a layout for a device, are not supported",
                                (long long)bits);
    q->kind = BITS;
    q->as_bytes = onx_prepare_int(p, "accuracy_level") == 4 && p->inputs[0]->dtype != ONX_BFLOAT16 &&
                  (bits != 2 || block >= 32) && !groups && !(zeros && zeros->dtype != ONX_UINT8);
    q->n = (uint64_t)onx_prepare_int(p, "N");
    q->k = (uint64_t)onx_prepare_int(p, "K");
    onxi_ms_packed *w = &q->weights;
    *w = (onxi_ms_packed){ .rows = q->n, .length = q->k, .block = (uint64_t)block, .bits = (unsigned)bits };
    w->blocks = (q->k + w->block - 1) / w->block;
    w->row_bytes = w->blocks * (w->block * w->bits / 8);
    w->zero_bytes = (w->blocks * w->bits + 7) / 8;
    ONX_TRY(onxi_ms_packed_check(p, w, p->inputs[1], p->inputs[2], zeros));
    if ((groups && groups->count && groups->count < q->k) || (bias && bias->count != q->n))
        return onx_prepare_fail(p, ONX_E_INVALID, "g_idx or the bias does not fit K and N");
    return prepare_product(p, q);
}

static const float table_fp4[16] = {
    0,     0.005208333333f,  0.66666667f,  1,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    -0.0f, -0.005208333333f, -0.66666667f, -1, -0.33333333f, -0.5f, -0.16666667f, -0.25f
};
static const float table_nf4[16] = { -1,
                                     -0.6961928009986877f,
                                     -0.5250730514526367f,
                                     -0.39491748809814453f,
                                     -0.28444138169288635f,
                                     -0.18477343022823334f,
                                     -0.09105003625154495f,
                                     0,
                                     0.07958029955625534f,
                                     0.16093020141124725f,
                                     0.24611230194568634f,
                                     0.33791524171829224f,
                                     0.44070982933044434f,
                                     0.5626170039176941f,
                                     0.7229568362236023f,
                                     1 };

static onx_status bnb4_prepare(onx_prepare *p)
{
    product *q = ONXI_NEW(p->arena, product);
    if (!q)
        return ONX_E_MEMORY;
    const int64_t type = onx_prepare_int(p, "quant_type");
    const uint64_t n = (uint64_t)onx_prepare_int(p, "N"), k = (uint64_t)onx_prepare_int(p, "K");
    q->kind = BNB4;
    q->block = (uint64_t)onx_prepare_int(p, "block_size");
    q->turned = !onx_prepare_is_set(p, "transB");
    q->table = type ? table_nf4 : table_fp4;
    q->n = q->turned ? k : n;
    q->k = q->turned ? n : k;
    if (type != 0 && type != 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute quant_type is %lld, neither 0 nor 1", (long long)type);
    if (p->inputs[1]->count != (n * k + 1) / 2 || p->inputs[2]->count != (n * k + q->block - 1) / q->block)
        return onx_prepare_fail(p, ONX_E_INVALID, "%llu bytes and %llu scales are not %llu by %llu weights",
                                (unsigned long long)p->inputs[1]->count, (unsigned long long)p->inputs[2]->count,
                                (unsigned long long)n, (unsigned long long)k);
    return prepare_product(p, q);
}

/* A block of a column has a scale, a zero point in one of the types, and elements; a byte has two elements that are 16
 * apart. */
static onx_status fpq4_prepare(onx_prepare *p)
{
    product *q = ONXI_NEW(p->arena, product);
    const onx_value *shape = p->inputs[2], *y = p->outputs[0];
    if (!q)
        return ONX_E_MEMORY;
    const int64_t type = onx_prepare_int(p, "blk_quant_type");
    const onx_value *a = p->inputs[0];
    if ((type != 0 && type != 1 && type != 2 && type != 4) || shape->count != 2 || !a->rank || !y->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "blocks of type %lld, or a shape of %llu numbers, are not known",
                                (long long)type, (unsigned long long)shape->count);
    q->kind = FPQ4;
    q->block = type == 2 ? 64 : type == 4 ? 128 : 32;
    q->header = type == 1 ? 5 : 4;
    q->blob = q->header + q->block / 2;
    q->k = (uint64_t)a->dims[a->rank - 1];
    q->n = (uint64_t)y->dims[y->rank - 1];
    uint64_t bytes;
    if (!onxi_mul_u64((q->k + q->block - 1) / q->block * q->blob, q->n, &bytes) || p->inputs[1]->count < bytes)
        return onx_prepare_fail(p, ONX_E_INVALID, "%llu bytes are fewer than %llu by %llu weights take",
                                (unsigned long long)p->inputs[1]->count, (unsigned long long)q->k,
                                (unsigned long long)q->n);
    return prepare_product(p, q);
}

static void bnb4_row(const product *q, const onx_work *work, uint64_t column, float *out)
{
    const uint8_t *bytes = work->inputs[1]->data;
    for (uint64_t i = 0; i < q->k; i++) {
        const uint64_t at = q->turned ? i * q->n + column : column * q->k + i;
        const unsigned code = at % 2 ? bytes[at / 2] & 15u : bytes[at / 2] >> 4;
        out[i] = q->table[code] * onxi_ms_float(work->inputs[2], at / q->block);
    }
}

static void fpq4_row(const product *q, const onx_work *work, uint64_t column, float *out)
{
    const uint64_t blocks = (q->k + q->block - 1) / q->block;
    const uint8_t *from = (const uint8_t *)work->inputs[1]->data + column * blocks * q->blob;
    for (uint64_t i = 0; i < q->k; i++) {
        const uint8_t *block = from + i / q->block * q->blob;
        const uint64_t in = i % q->block;
        const uint8_t byte = block[q->header + in / 32 * 16 + in % 16];
        const int zero = q->header == 5 ? block[4] : 8;
        float scale;
        memcpy(&scale, block, sizeof scale);
        out[i] = (float)((int)(in % 32 < 16 ? byte & 15 : byte >> 4) - zero) * scale;
    }
}

static void real_column(const product *q, const onx_work *work, uint64_t column, float *out)
{
    const uint32_t inputs = work->prepared->input_count;
    const onx_value *groups = onxi_operand(inputs, work->inputs, 4);
    if (q->kind == BNB4)
        bnb4_row(q, work, column, out);
    else if (q->kind == FPQ4)
        fpq4_row(q, work, column, out);
    else
        onxi_ms_packed_row(&q->weights, work->inputs[1], work->inputs[2], onxi_operand(inputs, work->inputs, 3),
                           groups && groups->count ? groups->data : NULL, column, out);
}

/* Rounds a row to 8 bits with a scale per block, and back to floats. */
static void round_to_bytes(const product *q, float *x)
{
    const uint64_t size = q->weights.block;
    for (uint64_t first = 0; first < q->k; first += size) {
        const uint64_t n = q->k - first < size ? q->k - first : size;
        float most = 0;
        for (uint64_t i = 0; i < n; i++)
            most = fabsf(x[first + i]) > most ? fabsf(x[first + i]) : most;
        const float scale = most / 127;
        for (uint64_t i = 0; scale > 0 && i < n; i++)
            x[first + i] = rintf(x[first + i] / scale) * scale;
    }
}

/* ---- vectorized: float operand and low-bit weights ---- */

/* The operands as given; NULL: known only while running. If all are constants, they are packed once; otherwise each run
 * packs a few columns at a time. */
typedef struct fast {
    onxi_few_bits q;
    const uint8_t *weights;
    const float *scales;
    const void *zeros;
    bool packed;
    uint64_t packed_at; /* offset in a thread's workspace */
} fast;

enum { RUN_COLUMNS = 64 }; /* columns that a run packs at a time */

static uint64_t strips_of(const onxi_few_bits *q)
{
    return (q->n + q->lanes - 1) / q->lanes;
}

static onx_status pack_weights(void *user, const void *elements, uint64_t strip, void *out)
{
    const onxi_few_bits *q = user;
    onxi_few_bits_strip(q, elements, strip, (uint8_t *)out + strip * q->lanes * q->row_bytes);
    return ONX_OK;
}

static onx_status pack_scales(void *user, const void *elements, uint64_t strip, void *out)
{
    const onxi_few_bits *q = user;
    onxi_few_bits_lines(q, elements, strip, (float *)out + strip * q->lanes * q->blocks);
    return ONX_OK;
}

static onx_status pack_zeros(void *user, const void *elements, uint64_t strip, void *out)
{
    const onxi_few_bits *q = user;
    if (q->is_real)
        onxi_few_bits_lines(q, elements, strip, (float *)out + strip * q->lanes * q->blocks);
    else
        onxi_few_bits_zeros(q, elements, strip, (uint8_t *)out + strip * q->lanes * q->blocks);
    return ONX_OK;
}

/* `size`: bytes per column. */
static onx_status fast_pack(onx_prepare *p, fast *f, uint32_t input, const char *what, uint64_t size,
                            onx_status (*make)(void *, const void *, uint64_t, void *), const void **out)
{
    onxi_few_bits *q = &f->q;
    struct {
        char what[8];
        uint64_t lanes, n, k, block, bits, zero_bytes;
    } key = { "", q->lanes, q->n, q->k, q->block, q->bits, q->zero_bytes };
    memcpy(key.what, what, strlen(what));
    const onx_packing job = { .input = input,
                              .key = &key,
                              .key_size = sizeof key,
                              .size = strips_of(q) * q->lanes * size,
                              .pieces = strips_of(q),
                              .unaligned = true,
                              .in_order = true,
                              .make = make,
                              .user = q };
    return p->ops->packed(p, &job, out);
}

/* Bytes of packed columns: elements, scales and zero points. Returns false on overflow. */
static bool packed_bytes(const onxi_few_bits *q, uint64_t columns, uint64_t *out)
{
    const uint64_t of_block = q->block * q->bits / 8 + 2 * sizeof(float);
    return onxi_mul_u64(q->blocks, of_block, out) && onxi_mul_u64(*out, columns + q->lanes, out);
}

/* Sets the operands that are constants. */
static onx_status fast_constants(onx_prepare *p, fast *f)
{
    const onx_value *zeros = f->q.has_zeros ? p->inputs[3] : NULL;
    onx_elements there = { 0 };
    uint64_t size;
    const void *at[4] = { NULL };
    if (!packed_bytes(&f->q, f->q.n, &size))
        return ONX_E_UNSUPPORTED;
    f->packed = p->inputs[1]->data && p->inputs[2]->data && (!zeros || zeros->data);
    if (f->packed) {
        const onx_status status = p->ops->in_place(p, 1, size, &there);
        if (status != ONX_OK && status != ONX_E_UNSUPPORTED)
            return status;
        f->packed = status == ONX_E_UNSUPPORTED || !there.data;
    }
    for (uint32_t i = 1; !f->packed && i < 4; i++)
        if (i == 1 && there.data)
            at[i] = there.data;
        else if ((i < 3 || zeros) && p->inputs[i]->data)
            ONX_TRY(p->ops->elements(p, i, &at[i]));
    f->weights = at[1];
    f->scales = at[2];
    f->zeros = at[3];
    if (!f->packed)
        return ONX_OK;
    ONX_TRY(fast_pack(p, f, 1, "strips", f->q.row_bytes, pack_weights, &at[1]));
    ONX_TRY(fast_pack(p, f, 2, "scales", f->q.blocks * sizeof(float), pack_scales, &at[2]));
    if (zeros)
        ONX_TRY(fast_pack(p, f, 3, "zeros", f->q.blocks * (f->q.is_real ? sizeof(float) : 1), pack_zeros, &at[3]));
    f->q.weights = at[1];
    f->q.scales = at[2];
    f->q.zeros = at[3];
    return ONX_OK;
}

static onx_status fast_prepare(onx_prepare *p)
{
    const onxi_few_bits_ops *ops = p->kernel->body;
    const onx_value *zeros = onxi_operand(p->input_count, p->inputs, 3),
                    *groups = onxi_operand(p->input_count, p->inputs, 4),
                    *bias = onxi_operand(p->input_count, p->inputs, 5);
    if (p->nonfinite || (groups && groups->count) || p->inputs[2]->dtype != ONX_FLOAT ||
        (bias && bias->dtype != ONX_FLOAT) || (zeros && zeros->dtype != ONX_UINT8 && zeros->dtype != ONX_FLOAT))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(nbits_prepare(p));
    const product *as = p->params;
    const onxi_ms_packed *w = &as->weights;
    fast *f = ONXI_NEW(p->arena, fast);
    uint64_t bytes, here;
    if (!f)
        return ONX_E_MEMORY;
    f->q = (onxi_few_bits){ .m = as->m,
                            .n = as->n,
                            .k = as->k,
                            .block = w->block,
                            .blocks = w->blocks,
                            .row_bytes = w->row_bytes,
                            .zero_bytes = w->zero_bytes,
                            .lanes = ops->lanes,
                            .bits = w->bits,
                            .rounded = as->as_bytes,
                            .has_zeros = zeros != NULL,
                            .is_real = zeros && zeros->dtype == ONX_FLOAT };
    if (w->block % 16 || !as->k || !as->n || !as->m || !ops->plan(&f->q, p->threads, &bytes))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(fast_constants(p, f));
    f->packed_at = (bytes + 63) / 64 * 64;
    if (!f->packed) {
        f->q.columns_each = RUN_COLUMNS;
        if (!packed_bytes(&f->q, RUN_COLUMNS, &here) || !onxi_add_u64(f->packed_at, here, &bytes))
            return ONX_E_UNSUPPORTED;
    }
    p->thread_workspace = bytes;
    p->params = f;
    p->rows = ((f->q.m + f->q.rows_each - 1) / f->q.rows_each) * ((f->q.n + f->q.columns_each - 1) / f->q.columns_each);
    return ONX_OK;
}

/* Sets the strips for a unit of work: packed before, or packed here. */
static void take_strips(const fast *f, const onx_work *work, uint64_t n0, uint64_t n1, onxi_few_bits *q)
{
    const uint64_t strips = (n1 - n0 + q->lanes - 1) / q->lanes, first = n0 / q->lanes;
    const uint64_t line = q->lanes * q->blocks, zero_line = onxi_few_bits_zero_line(q) * q->blocks;
    if (f->packed) {
        q->weights += n0 * q->row_bytes;
        q->scales += first * line;
        q->zeros = q->has_zeros ? (const char *)q->zeros + first * zero_line : NULL;
        return;
    }
    const uint8_t *weights = f->weights ? f->weights : work->inputs[1]->data;
    const float *scales = f->scales ? f->scales : work->inputs[2]->data;
    const void *zeros = f->zeros ? f->zeros : q->has_zeros ? work->inputs[3]->data : NULL;
    char *at = (char *)work->thread_workspace + f->packed_at;
    float *lines = (float *)(void *)(at + strips * q->lanes * q->row_bytes);
    char *zero_lines = (char *)(lines + strips * line);
    for (uint64_t s = 0; s < strips; s++) {
        onxi_few_bits_strip(q, weights, first + s, (uint8_t *)at + s * q->lanes * q->row_bytes);
        onxi_few_bits_lines(q, scales, first + s, lines + s * line);
        if (q->is_real)
            onxi_few_bits_lines(q, zeros, first + s, (float *)(void *)(zero_lines + s * zero_line));
        else if (q->has_zeros)
            onxi_few_bits_zeros(q, zeros, first + s, (uint8_t *)zero_lines + s * zero_line);
    }
    q->weights = (uint8_t *)at;
    q->scales = lines;
    q->zeros = zero_lines;
}

static onx_status fast_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_few_bits_ops *ops = work->prepared->kernel->body;
    const fast *f = work->params;
    const onx_value *bias = onxi_operand(work->prepared->input_count, work->inputs, 5);
    const uint64_t chunks = (f->q.n + f->q.columns_each - 1) / f->q.columns_each;
    bool finite = true;
    for (uint64_t i = first; i < last; i++) {
        onxi_few_bits q = f->q;
        const uint64_t m0 = i / chunks * q.rows_each, n0 = i % chunks * q.columns_each;
        const uint64_t m1 = q.m - m0 < q.rows_each ? q.m : m0 + q.rows_each;
        const uint64_t n1 = q.n - n0 < q.columns_each ? q.n : n0 + q.columns_each;
        q.a = work->inputs[0]->data;
        q.bias = bias ? bias->data : NULL;
        q.y = work->outputs[0]->data;
        take_strips(f, work, n0, n1, &q);
        finite &= ops->piece(&q, m0, m1, n0, n1, work->thread_workspace);
    }
    return finite ? ONX_OK : ONX_E_UNSUPPORTED;
}

/* ---- not vectorized ---- */

/* A row of work is a few columns of the output. */
static onx_status product_run(onx_work *work, uint64_t first, uint64_t last)
{
    const product *q = work->params;
    char *memory = work->thread_workspace;
    float *left = (float *)(void *)(memory + q->left_at), *right = (float *)(void *)(memory + q->right_at);
    const onx_value *bias = q->kind == BITS ? onxi_operand(work->prepared->input_count, work->inputs, 5) : NULL;
    for (uint64_t row = first; row < last; row++) {
        const uint64_t at = row * COLUMNS, count = q->n - at < COLUMNS ? q->n - at : COLUMNS;
        for (uint64_t i = 0; i < count; i++)
            real_column(q, work, at + i, right + i * q->k);
        for (uint64_t m = 0; m < q->m; m++) {
            float y[COLUMNS];
            const float *x = left;
            if (work->inputs[0]->dtype == ONX_FLOAT && !q->as_bytes)
                x = (const float *)work->inputs[0]->data + m * q->k;
            else
                onxi_ms_floats(work->inputs[0], m * q->k, q->k, left);
            if (q->as_bytes)
                round_to_bytes(q, left);
            for (uint64_t i = 0; i < count; i++)
                y[i] = onxi_ms_dot(x, right + i * q->k, q->k) + (bias ? onxi_ms_float(bias, at + i) : 0);
            onxi_ms_store(work->outputs[0], m * q->n + at, count, y);
        }
    }
    return ONX_OK;
}

/* Checks the shape of the weights, which is known only while running. */
static onx_status check_shape(onx_work *work)
{
    const product *q = work->params;
    const int64_t *shape = work->inputs[2]->data;
    if ((uint64_t)shape[0] != q->k || (uint64_t)shape[1] != q->n)
        return onx_work_fail(work, ONX_E_INVALID, "B_shape is [%lld, %lld], A and Y ask for [%llu, %llu]",
                             (long long)shape[0], (long long)shape[1], (unsigned long long)q->k,
                             (unsigned long long)q->n);
    return ONX_OK;
}

static onx_status fpq4_run(onx_work *work, uint64_t first, uint64_t last)
{
    ONX_TRY(check_shape(work));
    return product_run(work, first, last);
}

/* ---- vectorized: columns are dequantized and multiplied by the product of recurrent layers ---- */

#if ONXI_PLATFORM_ROOMY
typedef struct real_body {
    const onxi_rnn_packing *tiles;
    const onxi_unpack_loops *loops;
    onx_status (*prepare)(onx_prepare *p); /* the prepare function of the plain row */
} real_body;

enum { REAL_ROWS = 48 }; /* rows of the left operand that are converted at a time */

static onx_status real_prepare(onx_prepare *p)
{
    const real_body *body = p->kernel->body;
    const uint64_t tile = body->tiles->tile;
    uint64_t total = 0, wide;
    ONX_TRY(body->prepare(p));
    product *q = p->params;
    const uint64_t groups = q->kind == BITS ? q->weights.blocks : 0;
    if (q->as_bytes || !q->k || !q->n || !onxi_mul_u64(q->k, tile, &wide) ||
        !onxi_ms_reserve(&total, wide, &q->right_at) || !onxi_ms_reserve(&total, wide, &q->packed_at) ||
        !onxi_ms_reserve(&total, p->inputs[0]->dtype == ONX_FLOAT ? 0 : REAL_ROWS * q->k, &q->left_at) ||
        !onxi_ms_reserve(&total, REAL_ROWS * tile, &q->out_at) || !onxi_ms_reserve(&total, q->k, &q->of_at) ||
        !onxi_ms_reserve(&total, groups, &q->zeros_at) || !onxi_ms_reserve(&total, groups, &q->scales_at))
        return ONX_E_UNSUPPORTED;
    p->thread_workspace = total;
    p->rows = p->outputs[0]->count ? (q->n + tile - 1) / tile : 0;
    return ONX_OK;
}

/* Dequantizes `n` elements of bnb4 from the at-th on, scale by scale. */
static void bnb4_numbers(const product *q, const onx_work *work, const onxi_unpack_loops *loops, uint64_t at,
                         uint64_t n, float *out)
{
    const uint8_t *bytes = work->inputs[1]->data;
    for (uint64_t count; n; n -= count, at += count, out += count) {
        const uint64_t left = q->block - at % q->block;
        const float scale = onxi_ms_float(work->inputs[2], at / q->block);
        count = at % 2 ? 1 : left < n ? left : n;
        if (at % 2) {
            *out = q->table[bytes[at / 2] & 15] * scale;
            continue;
        }
        float table[16];
        for (unsigned i = 0; i < 16; i++)
            table[i] = q->table[i] * scale;
        loops->look_up(bytes + at / 2, count, true, table, out);
    }
}

/* Dequantizes `n` elements of a low-bit row; `bytes` begins with the first one. */
static void few_numbers(const onxi_unpack_loops *loops, const uint8_t *bytes, uint64_t n, unsigned bits, float zero,
                        float scale, float *out)
{
    if (bits == 4)
        loops->nibbles(bytes, n, 0, zero, scale, out);
    else if (bits == 8)
        loops->bytes(bytes, n, zero, scale, out);
    else
        make_real(bytes, n, bits, scale, zero, out);
}

/* Dequantizes a column where g_idx gives the block of each element. */
static void grouped_column(const product *q, const onx_work *work, const onxi_unpack_loops *loops,
                           const int32_t *groups, uint64_t column, float *out)
{
    const onxi_ms_packed *w = &q->weights;
    char *memory = work->thread_workspace;
    const onx_value *zeros = onxi_operand(work->prepared->input_count, work->inputs, 3);
    float *zero = (float *)(void *)(memory + q->zeros_at), *scale = (float *)(void *)(memory + q->scales_at);
    for (uint64_t b = 0; b < w->blocks; b++) {
        zero[b] = onxi_ms_packed_zero(w, zeros, column, b);
        scale[b] = onxi_ms_float(work->inputs[2], column * w->blocks + b);
    }
    few_numbers(loops, (const uint8_t *)work->inputs[1]->data + column * w->row_bytes, q->k, w->bits, 0, 1, out);
    loops->scale(out, q->k, groups, zero, scale);
}

static void blocks_column(const product *q, const onx_work *work, const onxi_unpack_loops *loops, uint64_t column,
                          float *out)
{
    const onxi_ms_packed *w = &q->weights;
    const uint8_t *from = (const uint8_t *)work->inputs[1]->data + column * w->row_bytes;
    const onx_value *zeros = onxi_operand(work->prepared->input_count, work->inputs, 3);
    for (uint64_t b = 0; b < w->blocks; b++) {
        const uint64_t first = b * w->block, n = q->k - first < w->block ? q->k - first : w->block;
        few_numbers(loops, from + first * w->bits / 8, n, w->bits, onxi_ms_packed_zero(w, zeros, column, b),
                    onxi_ms_float(work->inputs[2], column * w->blocks + b), out + first);
    }
}

/* Dequantizes and packs columns `at` .. at + count - 1. */
static const float *real_tile(const product *q, const onx_work *work, const int32_t *groups, uint64_t at,
                              uint64_t count)
{
    const real_body *body = work->prepared->kernel->body;
    char *memory = work->thread_workspace;
    float *right = (float *)(void *)(memory + q->right_at), *packed = (float *)(void *)(memory + q->packed_at);
    if (q->turned) { /* the columns are adjacent, as in the packed form */
        const uint64_t tile = body->tiles->tile;
        for (uint64_t i = 0; i < q->k; i++) {
            bnb4_numbers(q, work, body->loops, i * q->n + at, count, packed + i * tile);
            memset(packed + i * tile + count, 0, (size_t)(tile - count) * sizeof *packed);
        }
        return packed;
    }
    for (uint64_t i = 0; i < count; i++, right += q->k)
        if (q->kind == BNB4)
            bnb4_numbers(q, work, body->loops, (at + i) * q->k, q->k, right);
        else if (q->kind == FPQ4)
            fpq4_row(q, work, at + i, right);
        else if (groups)
            grouped_column(q, work, body->loops, groups, at + i, right);
        else
            blocks_column(q, work, body->loops, at + i, right);
    body->tiles->pack(right - count * q->k, 1, count, q->k, packed);
    return packed;
}

/* Multiplies some rows of the left operand with packed columns. */
static void real_rows(const product *q, const onx_work *work, const float *packed, uint64_t m, uint64_t rows,
                      uint64_t at, uint64_t count)
{
    const real_body *body = work->prepared->kernel->body;
    char *memory = work->thread_workspace;
    const onx_value *bias = q->kind == BITS ? onxi_operand(work->prepared->input_count, work->inputs, 5) : NULL;
    const bool direct = work->inputs[0]->dtype == ONX_FLOAT;
    float *left = (float *)(void *)(memory + q->left_at), *out = (float *)(void *)(memory + q->out_at);
    if (!direct)
        onxi_ms_floats(work->inputs[0], m * q->k, rows * q->k, left);
    const onxi_rnn_product job = { .a = direct ? (const float *)work->inputs[0]->data + m * q->k : left,
                                   .rows = rows,
                                   .k = q->k,
                                   .hidden = count,
                                   .packed = packed,
                                   .out = out,
                                   .pitch = count };
    body->tiles->product(&job, 0, 1);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint64_t j = 0; bias && j < count; j++)
            out[i * count + j] += onxi_ms_float(bias, at + j);
        onxi_ms_store(work->outputs[0], (m + i) * q->n + at, count, out + i * count);
    }
}

/* A row of work is a tile of columns. */
static onx_status real_run(onx_work *work, uint64_t first, uint64_t last)
{
    const product *q = work->params;
    const real_body *body = work->prepared->kernel->body;
    const onx_value *given = q->kind == BITS ? onxi_operand(work->prepared->input_count, work->inputs, 4) : NULL;
    int32_t *of = (int32_t *)(void *)((char *)work->thread_workspace + q->of_at);
    const int32_t *groups = given && given->count ? given->data : NULL;
    for (uint64_t i = 0; groups && i < q->k; i++)
        of[i] = groups[i] >= 0 && (uint64_t)groups[i] < q->weights.blocks ? groups[i] : 0;
    for (uint64_t row = first; row < last; row++) {
        const uint64_t at = row * body->tiles->tile,
                       count = q->n - at < body->tiles->tile ? q->n - at : body->tiles->tile;
        const float *packed = real_tile(q, work, groups ? of : NULL, at, count);
        for (uint64_t m = 0; m < q->m; m += REAL_ROWS)
            real_rows(q, work, packed, m, q->m - m < REAL_ROWS ? q->m - m : REAL_ROWS, at, count);
    }
    return ONX_OK;
}

static onx_status real_fpq4_run(onx_work *work, uint64_t first, uint64_t last)
{
    ONX_TRY(check_shape(work));
    return real_run(work, first, last);
}

#define REAL(op_, prepare_, run_, isa_, variant_, level)                                                               \
    MS_KERNEL(op_, .preference = 5, .isa = (isa_), .variant = (variant_), .prepare = real_prepare, .run = run_,        \
              .body = &(const real_body){ &onxi_rnn_packing_##level, &onxi_unpack_loops_##level, prepare_ })
#define REALS(...)                                                                                                     \
    REAL("MatMulNBits", nbits_prepare, real_run, __VA_ARGS__),                                                         \
        REAL("MatMulBnb4", bnb4_prepare, real_run, __VA_ARGS__),                                                       \
        REAL("MatMulFpQ4", fpq4_prepare, real_fpq4_run, __VA_ARGS__)
#endif

#define FAST(isa_, variant_, ops)                                                                                      \
    MS_KERNEL("MatMulNBits", .dtypes = ONX_DTYPE_BIT(ONX_FLOAT), .preference = 11, .isa = (isa_),                      \
              .variant = (variant_), .packs = 1 << 1 | 1 << 2 | 1 << 3, .prepare = fast_prepare, .run = fast_run,      \
              .body = &(ops))

const onx_kernel onxi_kernels_microsoft_weights[] = {
#ifdef ONX_WITH_X86_LEVELS
    FAST(ONX_ISA_VNNI, "vnni", onxi_few_bits_vnni),
    FAST(ONX_ISA_V4, "avx512", onxi_few_bits_v4),
    FAST(ONX_ISA_V3, "avx2", onxi_few_bits_v3),
    REALS(ONX_ISA_V4, "avx512", v4),
    REALS(ONX_ISA_V3, "avx2", v3),
#endif
    FAST(ONX_ISA_BASE, "simd", onxi_few_bits_base),
#if ONXI_PLATFORM_ROOMY
    REALS(ONX_ISA_BASE, "simd", base),
#endif
    MS_KERNEL("MatMulNBits", .prepare = nbits_prepare, .run = product_run),
    MS_KERNEL("MatMulBnb4", .prepare = bnb4_prepare, .run = product_run),
    MS_KERNEL("MatMulFpQ4", .prepare = fpq4_prepare, .run = fpq4_run),
    { 0 },
};

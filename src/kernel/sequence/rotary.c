/* rotary.c - RotaryEmbedding: rotates pairs of elements of each head by an angle that depends on the position. Cosines
 * and sines are read from tables. */
#include "kernel/core/loops.h"

typedef struct rotary_params {
    uint64_t heads, length, size; /* of X, in either layout */
    int64_t batch_step, head_step, row_step;
    uint64_t pairs;
    bool interleaved;
    uint64_t positions;              /* rows of the tables, if position_ids select them */
    int64_t table_batch, table_step; /* otherwise strides in the tables, 0 where broadcast */
    void (*loop)(const struct rotary_params *q, const void *x, const void *cosines, const void *sines, void *y);
    uint32_t width;
} rotary_params;

/* Rotates one head at one position. */
#define ROTARY(op, d, T, C, M, L, S)                                                                                   \
    static void op##_##d(const rotary_params *q, const void *px, const void *pc, const void *ps, void *py)             \
    {                                                                                                                  \
        const T *x = px, *cosines = pc, *sines = ps;                                                                   \
        T *y = py;                                                                                                     \
        uint64_t step = q->interleaved ? 2 : 1, apart = q->interleaved ? 1 : q->pairs;                                 \
        for (uint64_t i = 0; i < q->pairs; i++) {                                                                      \
            C a = (C)L(x[i * step]), b = (C)L(x[i * step + apart]), c = (C)L(cosines[i]), s = (C)L(sines[i]);          \
            y[i * step] = (T)S(c * a - s * b);                                                                         \
            y[i * step + apart] = (T)S(s * a + c * b);                                                                 \
        }                                                                                                              \
        for (uint64_t i = 2 * q->pairs; i < q->size; i++)                                                              \
            y[i] = x[i];                                                                                               \
    }
ONXI_EACH_FLOAT(ROTARY, rotary)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static void (*const loops[ONX_DTYPE_COUNT])(const rotary_params *, const void *, const void *, const void *,
                                            void *) = { ONXI_EACH_FLOAT(ENTRY, rotary) };

static onx_status prepare_input(const onx_prepare *p, const onx_value *x, rotary_params *q)
{
    if (x->rank == 4) {
        q->heads = (uint64_t)x->dims[1];
        q->length = (uint64_t)x->dims[2];
        q->size = (uint64_t)x->dims[3];
        q->row_step = x->dims[3];
        q->head_step = (int64_t)(q->length * q->size);
    } else {
        int64_t heads = onx_prepare_given(p, "num_heads") ? onx_prepare_int(p, "num_heads") : 0;
        if (x->rank != 3 || heads < 1 || x->dims[2] % heads)
            return onx_prepare_fail(p, ONX_E_INVALID, "an input of rank %u cannot be %lld heads", x->rank,
                                    (long long)heads);
        q->heads = (uint64_t)heads;
        q->length = (uint64_t)x->dims[1];
        q->size = (uint64_t)(x->dims[2] / heads);
        q->row_step = x->dims[2];
        q->head_step = (int64_t)q->size;
    }
    q->batch_step = (int64_t)(q->heads * q->length * q->size);
    int64_t turned = onx_prepare_int(p, "rotary_embedding_dim");
    turned = turned ? turned : (int64_t)q->size;
    if (turned < 0 || (uint64_t)turned > q->size || turned % 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "%lld elements of a head of %llu cannot be rotated in pairs",
                                (long long)turned, (unsigned long long)q->size);
    q->pairs = (uint64_t)turned / 2;
    return ONX_OK;
}

static onx_status rotary_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *cosines = p->inputs[1], *sines = p->inputs[2];
    const onx_value *ids = p->input_count > 3 ? p->inputs[3] : NULL;
    rotary_params *q = ONXI_NEW(p->arena, rotary_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(prepare_input(p, x, q));
    uint64_t batch = (uint64_t)x->dims[0];
    uint32_t rank = ids ? 2 : 3;
    bool fits = cosines->rank == rank && sines->rank == rank && cosines->dtype == x->dtype && sines->dtype == x->dtype;
    for (uint32_t d = 0; fits && d < rank; d++)
        fits = cosines->dims[d] == sines->dims[d];
    if (!fits || (uint64_t)cosines->dims[rank - 1] != q->pairs)
        return onx_prepare_fail(p, ONX_E_INVALID, "the tables do not both have rank %u and %llu columns", rank,
                                (unsigned long long)q->pairs);
    if (ids) {
        q->positions = (uint64_t)cosines->dims[0];
        if (ids->dtype != ONX_INT64 || ids->rank != 2 || (uint64_t)ids->dims[0] != batch ||
            (uint64_t)ids->dims[1] != q->length)
            return onx_prepare_fail(p, ONX_E_INVALID, "position_ids is not [%llu, %llu]", (unsigned long long)batch,
                                    (unsigned long long)q->length);
    } else {
        uint64_t b = (uint64_t)cosines->dims[0], n = (uint64_t)cosines->dims[1];
        if ((b != 1 && b != batch) || (n != 1 && n != q->length))
            return onx_prepare_fail(p, ONX_E_INVALID, "the tables are for [%llu, %llu] positions, not for [%llu, %llu]",
                                    (unsigned long long)b, (unsigned long long)n, (unsigned long long)batch,
                                    (unsigned long long)q->length);
        q->table_batch = b == 1 ? 0 : (int64_t)(n * q->pairs);
        q->table_step = n == 1 ? 0 : (int64_t)q->pairs;
    }
    q->interleaved = onx_prepare_int(p, "interleaved") != 0;
    q->loop = loops[x->dtype];
    q->width = onxi_element_size(x->dtype);
    p->params = q;
    p->rows = x->count ? batch * q->length : 0;
    p->grain = x->count ? ONXI_BLOCK / (q->heads * q->size) + 1 : 1;
    return ONX_OK;
}

/* A row of work is a position. */
static onx_status rotary_run(onx_work *work, uint64_t first, uint64_t last)
{
    const rotary_params *q = work->params;
    const onx_value *ids = work->prepared->input_count > 3 ? work->inputs[3] : NULL;
    for (uint64_t row = first; row < last; row++) {
        uint64_t batch = row / q->length, at = row % q->length;
        int64_t entry = (int64_t)batch * q->table_batch + (int64_t)at * q->table_step;
        if (ids) {
            int64_t id = ((const int64_t *)ids->data)[row];
            if (id < -(int64_t)q->positions || id >= (int64_t)q->positions)
                return onx_work_fail(work, ONX_E_INVALID, "position %lld is outside of the %llu in the tables",
                                     (long long)id, (unsigned long long)q->positions);
            entry = (id < 0 ? id + (int64_t)q->positions : id) * (int64_t)q->pairs;
        }
        const char *cosines = (const char *)work->inputs[1]->data + entry * q->width;
        const char *sines = (const char *)work->inputs[2]->data + entry * q->width;
        for (uint64_t h = 0; h < q->heads; h++) {
            int64_t offset =
                ((int64_t)batch * q->batch_step + (int64_t)h * q->head_step + (int64_t)at * q->row_step) * q->width;
            q->loop(q, (const char *)work->inputs[0]->data + offset, cosines, sines,
                    (char *)work->outputs[0]->data + offset);
        }
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_rotary[] = {
    { .op = "RotaryEmbedding", .since = 23, .dtypes = ONXI_FLOATS, .prepare = rotary_prepare, .run = rotary_run },
    { 0 },
};

/* hash.c - NGramHashMapping: hashes of each token and those before it. */
#include "kernel/microsoft/microsoft.h"

typedef struct params {
    uint64_t length, before, heads; /* length of a sequence, of preceding tokens, heads per n-gram size */
    int64_t pad;
} params;

enum { IDS, FACTORS, SIZES, PAST };

static int64_t id_at(const onx_value *v, uint64_t i)
{
    return v->dtype == ONX_INT64 ? ((const int64_t *)v->data)[i] : ((const int32_t *)v->data)[i];
}

static void put_id(onx_value *v, uint64_t i, int64_t id)
{
    if (v->dtype == ONX_INT64)
        ((int64_t *)v->data)[i] = id;
    else
        ((int32_t *)v->data)[i] = (int32_t)id;
}

static onx_status hash_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    q->length = (uint64_t)p->inputs[IDS]->dims[1];
    q->before = (uint64_t)onx_prepare_int(p, "max_ngram_size") - 1;
    q->heads = (uint64_t)onx_prepare_int(p, "n_head_per_ngram");
    q->pad = onx_prepare_int(p, "pad_id");
    if (p->inputs[IDS]->dtype == ONX_INT32 && (q->pad < INT32_MIN || q->pad > INT32_MAX))
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute pad_id is %lld, which is no id of 32 bits",
                                (long long)q->pad);
    p->params = q;
    p->rows = (uint64_t)p->inputs[IDS]->dims[0];
    return ONX_OK;
}

/* The id `back` positions before position `at` of a sequence; positions before it are in the preceding tokens. */
static int64_t id_before(const onx_work *work, uint64_t row, uint64_t at, uint64_t back)
{
    const params *q = work->params;
    const onx_value *past = onxi_operand(work->prepared->input_count, work->inputs, PAST);
    if (back <= at)
        return id_at(work->inputs[IDS], row * q->length + at - back);
    return past && back - at <= q->before ? id_at(past, row * q->before + q->before - (back - at)) : q->pad;
}

/* The remainder has the sign of the size, which is positive. */
static int64_t remainder_of(int64_t a, int64_t size)
{
    const int64_t r = a % size;
    return r < 0 ? r + size : r;
}

static onx_status hash_run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    const onx_value *sizes = work->inputs[SIZES];
    onx_value *hashes = work->outputs[0], *present = work->prepared->output_count > 1 ? work->outputs[1] : NULL;
    for (uint64_t i = 0; i < sizes->count; i++)
        if (id_at(sizes, i) < 1)
            return onx_work_fail(work, ONX_E_INVALID, "vocabulary %llu has %lld entries", (unsigned long long)i,
                                 (long long)id_at(sizes, i));
    for (uint64_t row = first; row < last; row++) {
        for (uint64_t at = 0; at < q->length; at++) {
            uint64_t mix = 0;
            for (uint64_t back = 0; back <= q->before; back++) {
                mix ^= (uint64_t)id_before(work, row, at, back) * (uint64_t)id_at(work->inputs[FACTORS], back);
                const int64_t whole = hashes->dtype == ONX_INT64 ? (int64_t)mix : (int64_t)(int32_t)(uint32_t)mix;
                for (uint64_t h = 0; back && h < q->heads; h++) {
                    const uint64_t head = (back - 1) * q->heads + h;
                    put_id(hashes, (row * q->length + at) * sizes->count + head,
                           remainder_of(whole, id_at(sizes, head)));
                }
            }
        }
        for (uint64_t i = 0; present && i < q->before; i++)
            put_id(present, row * q->before + i, id_before(work, row, q->length, q->before - i));
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_hash[] = {
    MS_KERNEL("NGramHashMapping", .prepare = hash_prepare, .run = hash_run),
    { 0 },
};

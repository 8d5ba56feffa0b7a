/* train_ranks.c - combines the steps of several ranks: each rank sums its share of all elements in the order of ranks,
 * and sends the result to the others, so that all ranks get the same bits. */
#include "train/train.h"

#include <onx/tensor.h>

enum { TAG_PARTS = 0x7fffff10, TAG_SUMS, TAG_VALUE };

static onx_status failed(onx_ctx *cx, onx_status status, uint32_t rank)
{
    if (status == ONX_E_CANCELLED)
        return onxi_fail(cx, status, ONXI_NOWHERE, "another rank has failed");
    return onxi_fail(
        cx, status, ONXI_NOWHERE,
        status == ONX_E_LIMIT ? "rank %u was waited for too long" : "rank %u does another step than this one", rank);
}

static bool is_real(const onx_value *v)
{
    return v->dtype == ONX_FLOAT || v->dtype == ONX_DOUBLE || v->dtype == ONX_FLOAT16 || v->dtype == ONX_BFLOAT16;
}

/* All elements of a step, concatenated and of one type, followed by the weight. */
typedef struct pool {
    onxi_train_ranks *r;
    onx_dtype dtype;
    uint64_t width, count;
    char *own, *others; /* this rank's share, as received from each rank; the entry of the rank itself is unused */
    onx_comm_part *sends, *receives;
} pool;

static uint64_t start_of(const pool *p, uint32_t rank)
{
    return p->count / p->r->comm.size * rank + (rank < p->count % p->r->comm.size ? rank : p->count % p->r->comm.size);
}

static uint64_t share_of(const pool *p, uint32_t rank)
{
    return start_of(p, rank + 1) - start_of(p, rank);
}

static onx_status open_pool(onxi_train_ranks *r, onx_value *const *values, uint32_t count, pool *p)
{
    *p = (pool){ .r = r, .dtype = ONX_FLOAT, .width = sizeof(float), .count = 1 };
    for (uint32_t i = 0; i < count; i++) {
        if (!is_real(values[i]))
            continue;
        p->count += values[i]->count; /* cannot overflow, because the tensors are in memory */
        if (values[i]->dtype == ONX_DOUBLE) {
            p->dtype = ONX_DOUBLE;
            p->width = sizeof(double);
        }
    }
    const uint64_t parts = 2 * (uint64_t)r->comm.size * sizeof(onx_comm_part), share = p->count / r->comm.size + 1;
    uint64_t size;
    if (__builtin_mul_overflow(p->count + share * r->comm.size, p->width, &size) ||
        __builtin_add_overflow(size, parts + 64, &size))
        return onxi_no_memory(r->cx);
    if (size > r->size) {
        void *more = onxi_resize(r->cx, r->buffer, r->size, size);
        if (!more)
            return ONX_E_MEMORY;
        r->buffer = more;
        r->size = size;
    }
    p->sends = r->buffer;
    p->receives = p->sends + r->comm.size;
    p->own = (char *)(p->receives + r->comm.size);
    p->others = p->own + p->count * p->width;
    return ONX_OK;
}

static void scale(const pool *p, char *numbers, uint64_t count, double by)
{
    if (p->dtype == ONX_FLOAT)
        for (uint64_t i = 0; i < count; i++)
            ((float *)(void *)numbers)[i] *= (float)by;
    else
        for (uint64_t i = 0; i < count; i++)
            ((double *)(void *)numbers)[i] *= by;
}

static onx_status fill(const pool *p, onx_value *const *values, uint32_t count)
{
    const double weight = p->r->weight;
    char *at = p->own;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_real(values[i]))
            continue;
        if (weight > 0)
            ONX_TRY(onx_convert(p->dtype, at, (onx_dtype)values[i]->dtype, values[i]->data, values[i]->count, false));
        else
            memset(at, 0, (size_t)(values[i]->count * p->width)); /* also replaces NaN */
        at += values[i]->count * p->width;
    }
    if (weight > 0)
        scale(p, p->own, p->count - 1, weight);
    return onx_convert(p->dtype, at, ONX_DOUBLE, &weight, 1, false);
}

/* Exchanges parts of the pool. First each rank sends every other rank that rank's share; after the summation each rank
 * sends its sum to all others. */
static onx_status trade(const pool *p, onx_ctx *cx, bool sums)
{
    const onx_comm *comm = &p->r->comm;
    uint32_t sent = 0, received = 0, from = 0;
    const uint64_t mine = share_of(p, comm->rank) * p->width;
    for (uint32_t i = 0; i < comm->size; i++) {
        char *const theirs = p->own + start_of(p, i) * p->width;
        const uint64_t share = share_of(p, i) * p->width;
        if (i == comm->rank)
            continue;
        if (sums ? mine : share)
            p->sends[sent++] =
                (onx_comm_part){ i, sums ? p->own + start_of(p, comm->rank) * p->width : theirs, sums ? mine : share };
        if (sums ? share : mine)
            p->receives[received++] = (onx_comm_part){ i, sums ? theirs : p->others + i * mine, sums ? share : mine };
    }
    const onx_status status = sent || received ? comm->exchange(comm->user, sums ? TAG_SUMS : TAG_PARTS, p->sends, sent,
                                                                p->receives, received, p->r->timeout_ns, &from)
                                               : ONX_OK;
    return status == ONX_OK ? ONX_OK : failed(cx, status, from);
}

#define ADD_UP(type)                                                                                                   \
    for (uint64_t i = 0; i < share; i++) {                                                                             \
        type sum = ((const type *)(const void *)(me ? p->others : own))[i];                                            \
        for (uint32_t k = 1; k < p->r->comm.size; k++)                                                                 \
            sum += ((const type *)(const void *)(k == me ? own : p->others + k * share * sizeof(type)))[i];            \
        ((type *)(void *)own)[i] = sum;                                                                                \
    }

static void add_up(const pool *p)
{
    const uint32_t me = p->r->comm.rank;
    const uint64_t share = share_of(p, me);
    char *const own = p->own + start_of(p, me) * p->width;
    if (p->dtype == ONX_FLOAT)
        ADD_UP(float)
    else
        ADD_UP(double)
}

static onx_status take(const pool *p, onx_ctx *cx, onx_value *const *values, uint32_t count)
{
    double weight;
    char *at = p->own;
    ONX_TRY(onx_convert(ONX_DOUBLE, &weight, p->dtype, p->own + (p->count - 1) * p->width, 1, false));
    if (!(weight > 0))
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the weights of all ranks together are 0");
    scale(p, p->own, p->count - 1, 1 / weight);
    for (uint32_t i = 0; i < count; i++)
        if (is_real(values[i])) {
            ONX_TRY(onx_convert((onx_dtype)values[i]->dtype, values[i]->data, p->dtype, at, values[i]->count, false));
            at += values[i]->count * p->width;
        }
    return ONX_OK;
}

onx_status onxi_train_ranks_reduce(void *user, onx_ctx *cx, onx_value *const *values, uint32_t count)
{
    pool p;
    ONX_TRY(open_pool(user, values, count, &p));
    ONX_TRY(fill(&p, values, count));
    ONX_TRY(trade(&p, cx, false));
    add_up(&p);
    ONX_TRY(trade(&p, cx, true));
    return take(&p, cx, values, count);
}

onx_status onxi_train_ranks_share(onxi_train_ranks *r, onx_value *value)
{
    const onx_comm *comm = &r->comm;
    onx_status status = ONX_OK;
    uint32_t from = 0;
    if (!value->size || value->dtype == ONX_STRING)
        return ONX_OK;
    for (uint32_t i = 1; i < comm->size && status == ONX_OK; i++) {
        const onx_comm_part part = { comm->rank ? 0 : i, value->data, value->size };
        if (comm->rank == 0)
            status = comm->exchange(comm->user, TAG_VALUE, &part, 1, NULL, 0, r->timeout_ns, &from);
        else if (comm->rank == i)
            status = comm->exchange(comm->user, TAG_VALUE, NULL, 0, &part, 1, r->timeout_ns, &from);
    }
    return status == ONX_OK ? ONX_OK : failed(r->cx, status, from);
}

void onxi_train_ranks_close(onxi_train_ranks *r)
{
    onxi_release(r->cx, r->buffer, r->size);
    *r = (onxi_train_ranks){ .cx = r->cx };
}

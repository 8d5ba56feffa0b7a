/* shard_measure.c - the figures of this machine that predictions take. */
#include "shard/shard.h"

#include <pthread.h>
#include <time.h>

enum {
    PRODUCT = 512,       /* rows, columns and inner axis */
    COPIED = 32 << 20,   /* bytes */
    SENT = 4 << 20,      /* bytes */
    TIMES = 5,           /* of each that is large; the fastest counts */
    MESSAGES = 200,      /* that are small */
    TIMEOUT_SECONDS = 10 /* for another rank */
};
enum { TAG_MEASURE = 0x7ffffff8 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- one device ---- */

static onx_status make_product(onx_ctx *cx, onx_doc **out)
{
    const int64_t dims[] = { PRODUCT, PRODUCT };
    ONX_TRY(onx_model_new(cx, "product", 13, out));
    onx_arena *arena = onx_doc_arena(*out);
    onx_graph *g = onx_doc_model(*out)->graph;
    const bool made = onx_graph_add_input(arena, g, "a", onx_type_new_tensor(arena, ONX_FLOAT, dims, 2)) &&
                      onx_graph_add_input(arena, g, "b", onx_type_new_tensor(arena, ONX_FLOAT, dims, 2)) &&
                      onx_graph_add_output(arena, g, "c", onx_type_new_tensor(arena, ONX_FLOAT, dims, 2)) &&
                      onx_graph_add_node(arena, g, "MatMul", "a b", "c");
    if (made)
        return ONX_OK;
    onx_doc_free(*out);
    return ONX_E_MEMORY;
}

static onx_status time_product(onx_ctx *cx, onx_session *session, const onx_value *a, double *best)
{
    onx_value *c = NULL;
    onx_status status = ONX_OK;
    for (uint32_t i = 0; i < TIMES && status == ONX_OK; i++) {
        const double begin = now();
        status = onx_session_run(session, cx, (const onx_value *const[]){ a, a }, &c);
        const double seconds = now() - begin;
        *best = !i || seconds < *best ? seconds : *best;
    }
    onx_value_free(c);
    return status;
}

static onx_status measure_operations(onx_ctx *cx, double *out)
{
    const onx_session_options options = { .struct_size = sizeof options, .threads = 1 };
    const int64_t dims[] = { PRODUCT, PRODUCT };
    onx_doc *doc;
    onx_session *session = NULL;
    onx_value *a = NULL;
    double best = 1;
    ONX_TRY(make_product(cx, &doc));
    onx_status status = onx_session_new(cx, doc, &options, &session);
    if (status == ONX_OK)
        status = onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &a);
    for (uint64_t i = 0; status == ONX_OK && i < a->count; i++)
        ((float *)a->data)[i] = (float)(i % 7) * 0.25f;
    if (status == ONX_OK)
        status = time_product(cx, session, a, &best);
    onx_value_free(a);
    onx_session_free(session);
    onx_doc_free(doc);
    *out = 2.0 * PRODUCT * PRODUCT * PRODUCT / (best > 0 ? best : 1e-9);
    return status;
}

static onx_status measure_bandwidth(onx_ctx *cx, double *out)
{
    char *from = onxi_resize(cx, NULL, 0, COPIED), *to = from ? onxi_resize(cx, NULL, 0, COPIED) : NULL;
    double best = 1;
    if (to) {
        memset(from, 1, COPIED);
        memset(to, 0, COPIED);
    }
    for (uint32_t i = 0; to && i < TIMES; i++) {
        const double begin = now();
        from[i] = (char)i; /* or copies of the same bytes might be left out */
        memcpy(to, from, COPIED);
        const double seconds = now() - begin;
        best = !i || seconds < best ? seconds : best;
    }
    *out = 2.0 * COPIED / (best > 0 ? best : 1e-9);
    const bool made = to != NULL;
    if (to)
        onxi_release(cx, to, COPIED);
    if (from)
        onxi_release(cx, from, COPIED);
    return made ? ONX_OK : onxi_no_memory(cx);
}

/* ---- two of them ---- */

/* There and back. */
static onx_status pass(const onx_comm *comm, char *bytes, uint64_t size, uint32_t times, double *best)
{
    const uint32_t other = 1 - comm->rank;
    const onx_comm_part part = { other, bytes, size };
    uint32_t culprit;
    for (uint32_t i = 0; i < times; i++) {
        const double begin = now();
        for (uint32_t turn = 0; turn < 2; turn++) {
            const bool sends = turn == comm->rank;
            ONX_TRY(comm->exchange(comm->user, TAG_MEASURE, &part, sends, &part, !sends,
                                   TIMEOUT_SECONDS * UINT64_C(1000000000), &culprit));
        }
        const double seconds = (now() - begin) / 2;
        *best = !i || seconds < *best ? seconds : *best;
    }
    return ONX_OK;
}

static onx_status talk(onx_ctx *cx, const onx_comm *comm, onx_shard_machine *out)
{
    double small = 1, large = 1;
    char *bytes = onxi_resize(cx, NULL, 0, SENT);
    if (!bytes)
        return onxi_no_memory(cx);
    memset(bytes, 1, SENT);
    onx_status status = pass(comm, bytes, 1, MESSAGES, &small);
    if (status == ONX_OK)
        status = pass(comm, bytes, SENT, TIMES, &large);
    onxi_release(cx, bytes, SENT);
    out->latency = small > 0 ? small : 1e-9;
    out->link = SENT / (large > small ? large - small : 1e-9);
    return status == ONX_OK ? ONX_OK
                            : onxi_shard_failed(cx, status, 1 - comm->rank, TIMEOUT_SECONDS * UINT64_C(1000000000));
}

typedef struct partner {
    onx_ctx *cx; /* its own */
    onx_comm comm;
} partner;

static void *answer(void *user)
{
    partner *p = user;
    onx_shard_machine unused;
    if (talk(p->cx, &p->comm, &unused) != ONX_OK)
        p->comm.fail(p->comm.user);
    return NULL;
}

/* Between two threads. */
static onx_status talk_here(onx_ctx *cx, onx_comm_group *group, onx_shard_machine *out)
{
    pthread_t thread;
    onx_comm comm;
    partner p;
    ONX_TRY(onx_comm_group_rank(cx, group, 0, &comm));
    ONX_TRY(onx_comm_group_rank(cx, group, 1, &p.comm));
    if (!(p.cx = onxi_ctx_worker(cx)))
        return onxi_no_memory(cx);
    onx_status status = ONX_OK;
    if (pthread_create(&thread, NULL, answer, &p) != 0)
        status = onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "there is no second thread to talk to");
    else {
        status = talk(cx, &comm, out);
        if (status != ONX_OK)
            comm.fail(comm.user);
        pthread_join(thread, NULL);
    }
    onx_ctx_free(p.cx);
    return status;
}

static onx_status measure(onx_ctx *cx, const onx_comm *given, onx_shard_machine *out)
{
    onx_comm_group *group;
    onx_comm own;
    const onx_comm *const comm = given ? &own : NULL;
    *out = (onx_shard_machine){ 0 };
    ONX_TRY(onxi_options(cx, &own, sizeof own, given));
    if (comm && (!comm->exchange || !comm->fail || comm->size < 2))
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "there is no other rank to talk to");
    if (comm && comm->rank > 1)
        return ONX_OK;
    if (!comm || !comm->rank) {
        ONX_TRY(measure_operations(cx, &out->operations));
        ONX_TRY(measure_bandwidth(cx, &out->bandwidth));
    }
    if (comm)
        return talk(cx, comm, out);
    ONX_TRY(onx_comm_group_new(cx, 2, &group));
    const onx_status status = talk_here(cx, group, out);
    onx_comm_group_free(group);
    return status;
}

onx_status onx_shard_measure(onx_ctx *cx, const onx_comm *comm, onx_shard_machine *out)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, out);
    ONXI_CALL(cx, measure(cx, comm, out));
}

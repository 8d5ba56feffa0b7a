/* shard_measure.c - measures the figures of this machine that predictions use. */
#include "shard/shard.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    PRODUCT = 512,    /* number of rows, columns and inner size */
    ROWS = 32,        /* rows of a product that is limited by reading weights, but overlaps this with arithmetic */
    COPIED = 4 << 20, /* bytes, a typical size of values */
    SENT = 1 << 20,   /* bytes */
    INNER = 2048,     /* of weights that exceed all caches */
    COLUMNS = 8192,
    WEIGHT_BYTES = INNER * COLUMNS * (int)sizeof(float),
    TIMES = 5,           /* repetitions of each large measurement */
    MESSAGES = 200,      /* number of small messages */
    TIMEOUT_SECONDS = 10 /* for another rank */
};
#define LEAST_PASSES 0.01 /* 0 means that it was not measured */
enum { TAG_MEASURE = 0x7ffffff8 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- one device ---- */

/* a times b, where b is an input or, for `weights`, a constant. */
static onx_status make_product(onx_ctx *cx, int64_t rows, int64_t inner, int64_t columns, onx_str weights,
                               onx_doc **out)
{
    const int64_t a[] = { rows, inner }, b[] = { inner, columns }, c[] = { rows, columns };
    ONX_TRY(onx_model_new(cx, "product", 13, out));
    onx_arena *arena = onx_doc_arena(*out);
    onx_graph *g = onx_doc_model(*out)->graph;
    bool made = onx_graph_add_input(arena, g, "a", onx_type_new_tensor(arena, ONX_FLOAT, a, 2)) &&
                onx_graph_add_output(arena, g, "c", onx_type_new_tensor(arena, ONX_FLOAT, c, 2)) &&
                onx_graph_add_node(arena, g, "MatMul", "a b", "c");
    if (made && weights.len) {
        onx_tensor *t = onx_tensor_new(arena, ONX_FLOAT, (const int64_t[]){ 0 }, 1, NULL, "b");
        made = t && (t->dims = onx_arena_alloc(arena, sizeof b)) && onx_graph_add_initializer(arena, g, t) &&
               onx_arena_refer(arena, weights, &t->raw_data) == ONX_OK;
        if (made) {
            memcpy(t->dims, b, sizeof b);
            t->dims_count = 2;
            t->has |= onx_tensor_has_raw_data;
        }
    } else if (made)
        made = onx_graph_add_input(arena, g, "b", onx_type_new_tensor(arena, ONX_FLOAT, b, 2));
    if (made)
        return ONX_OK;
    onx_doc_free(*out);
    return ONX_E_MEMORY;
}

static int by_length(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The shortest and the median time of several runs. */
typedef struct times {
    double best, usual;
} times;

/* Another rank that has to begin at the same time. */
typedef struct meeting {
    const onx_comm *comm;
    const onx_comm_part *part;
} meeting;

static onx_status exchange(const onx_comm *comm, const onx_comm_part *part, bool sends, bool receives)
{
    uint32_t culprit;
    return comm->exchange(comm->user, TAG_MEASURE, part, sends, part + 1, receives,
                          TIMEOUT_SECONDS * UINT64_C(1000000000), &culprit);
}

static onx_status time_runs(onx_ctx *cx, onx_session *session, const onx_value *a, const meeting *with, times *out)
{
    double taken[TIMES];
    onx_value *c = NULL;
    onx_status status = ONX_OK;
    for (uint32_t i = 0; i <= TIMES && status == ONX_OK; i++) { /* the first run packs the weights */
        if (i == 1 && with && (status = exchange(with->comm, with->part, true, true)) != ONX_OK)
            break;
        const double begin = now();
        status = onx_session_run(session, cx, (const onx_value *const[]){ a, a }, &c);
        const double seconds = now() - begin;
        if (i)
            taken[i - 1] = seconds > 0 ? seconds : 1e-9;
    }
    onx_value_free(c);
    if (status != ONX_OK)
        return status;
    qsort(taken, TIMES, sizeof *taken, by_length);
    *out = (times){ taken[0], taken[TIMES / 2] };
    return ONX_OK;
}

/* Seconds of a product on one thread. */
static onx_status time_product(onx_ctx *cx, int64_t rows, int64_t inner, int64_t columns, onx_str weights,
                               const meeting *with, times *out)
{
    const onx_session_options options = { .struct_size = sizeof options, .threads = 1 };
    const int64_t dims[] = { rows, inner };
    onx_doc *doc;
    onx_session *session = NULL;
    onx_value *a = NULL;
    *out = (times){ 1, 1 };
    ONX_TRY(make_product(cx, rows, inner, columns, weights, &doc));
    onx_status status = onx_session_new(cx, doc, &options, &session);
    if (status == ONX_OK)
        status = onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &a);
    for (uint64_t i = 0; status == ONX_OK && i < a->count; i++)
        ((float *)a->data)[i] = (float)(i % 7) * 0.25f;
    if (status == ONX_OK)
        status = time_runs(cx, session, a, with, out);
    onx_value_free(a);
    onx_session_free(session);
    onx_doc_free(doc);
    return status;
}

static onx_status measure_operations(onx_ctx *cx, double *out)
{
    times taken;
    const onx_status status = time_product(cx, PRODUCT, PRODUCT, PRODUCT, onx_str_of(""), NULL, &taken);
    *out = 2.0 * PRODUCT * PRODUCT * PRODUCT / taken.best;
    return status;
}

/* A few rows times weights that exceed the caches. */
static onx_status time_weights(onx_ctx *cx, int64_t rows, const meeting *with, times *out)
{
    float *weights = onxi_resize(cx, NULL, 0, WEIGHT_BYTES);
    if (!weights)
        return onxi_no_memory(cx);
    for (size_t i = 0; i < (size_t)INNER * COLUMNS; i++)
        weights[i] = (float)(i % 5) * 0.125f;
    const onx_status status =
        time_product(cx, rows, INNER, COLUMNS, onx_str_make((char *)weights, WEIGHT_BYTES), with, out);
    onxi_release(cx, weights, WEIGHT_BYTES);
    return status;
}

/* A single row waits for its weights; with many rows the time is that of the arithmetic plus the remaining waiting
 * time. */
static onx_status measure_weights(onx_ctx *cx, onx_shard_machine *out)
{
    times one, many;
    ONX_TRY(time_weights(cx, 1, NULL, &one));
    ONX_TRY(time_weights(cx, ROWS, NULL, &many));
    const double computes = 2.0 * ROWS * INNER * COLUMNS / out->operations;
    const double passes = ((many.best - computes) / one.best - 1.0 / ROWS) / (1 - 1.0 / ROWS);
    out->bandwidth = (double)WEIGHT_BYTES / one.best;
    out->passes = passes > LEAST_PASSES ? passes : LEAST_PASSES;
    return ONX_OK;
}

static onx_status measure_cache(onx_ctx *cx, double *out)
{
    char *from = onxi_resize(cx, NULL, 0, COPIED), *to = from ? onxi_resize(cx, NULL, 0, COPIED) : NULL;
    double best = 1;
    if (to) {
        memset(from, 1, COPIED);
        memset(to, 0, COPIED);
    }
    for (uint32_t i = 0; to && i < MESSAGES; i++) {
        const double begin = now();
        from[i] = (char)i; /* different bytes, because copies of equal bytes might be skipped */
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

/* ---- two devices ---- */

/* A round trip; the fastest counts. */
static onx_status pass(const onx_comm *comm, const onx_comm_part part[2], double *best)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        const double begin = now();
        for (uint32_t turn = 0; turn < 2; turn++)
            ONX_TRY(exchange(comm, part, turn == comm->rank, turn != comm->rank));
        const double seconds = (now() - begin) / 2;
        *best = !i || seconds < *best ? seconds : *best;
    }
    return ONX_OK;
}

/* Both directions at once, as in collectives. */
static onx_status trade(const onx_comm *comm, const onx_comm_part part[2], double *best)
{
    for (uint32_t i = 0; i < TIMES; i++) {
        const double begin = now();
        ONX_TRY(exchange(comm, part, true, true));
        const double seconds = now() - begin;
        *best = !i || seconds < *best ? seconds : *best;
    }
    return ONX_OK;
}

static onx_status talk(onx_ctx *cx, const onx_comm *comm, onx_shard_machine *out)
{
    double small = 1, large = 1;
    const size_t room = 2 * (size_t)SENT;
    char *bytes = onxi_resize(cx, NULL, 0, room);
    if (!bytes)
        return onxi_no_memory(cx);
    memset(bytes, 1, room);
    onx_comm_part part[2] = { { 1 - comm->rank, bytes, 1 }, { 1 - comm->rank, bytes + SENT, 1 } };
    onx_status status = pass(comm, part, &small);
    part[0].size = part[1].size = SENT;
    if (status == ONX_OK)
        status = trade(comm, part, &large);
    times both = { 1, 1 };
    part[0].size = part[1].size = 1;
    if (status == ONX_OK)
        status = time_weights(cx, 1, &(meeting){ comm, part }, &both);
    onxi_release(cx, bytes, room);
    out->shared = (double)WEIGHT_BYTES / both.usual;
    out->latency = small > 0 ? small : 1e-9;
    out->link = SENT / (large > small ? large - small : 1e-9);
    return status == ONX_OK ? ONX_OK
                            : onxi_shard_failed(cx, status, 1 - comm->rank, TIMEOUT_SECONDS * UINT64_C(1000000000));
}

typedef struct partner {
    onx_ctx *cx; /* its own context */
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
        status = onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "there is no second thread to measure with");
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
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "there is no other rank to measure with");
    if (comm && comm->rank > 1)
        return ONX_OK;
    if (!comm || !comm->rank) {
        ONX_TRY(measure_operations(cx, &out->operations));
        ONX_TRY(measure_weights(cx, out));
        ONX_TRY(measure_cache(cx, &out->cache));
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

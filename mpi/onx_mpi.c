/* onx_mpi.c - communication by MPI, as libonx-mpi.so. It is the only part built with MPI's headers, so that nothing
 * else requires MPI. */
#include "shard/shard_mpi.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MESSAGE_MAX = 1 << 30, /* most bytes per message: MPI counts with int */
    AT_ONCE = 2048,        /* bytes that each MPI sends without waiting for the receiver */
    SPINS = 2000,          /* polls before the CPU is yielded to others */
    LOOKS = 64,            /* polls between two checks for failed ranks */
    TAGS = 32768           /* tags that each MPI supports */
};

/* The parts to send, or to receive. */
typedef struct list {
    const onx_comm_part *part;
    uint32_t count;
    bool send;
} list;

/* Messages in transfer, in memory that is reused. */
typedef struct trade {
    struct trade *next;
    MPI_Request *request; /* in the order of `lists` and their parts */
    onx_comm_part *part;  /* copies of the parts, where the transfer outlives the caller's lists */
    list lists[2];        /* in the order in which they are posted */
    uint32_t room, part_room;
    int count;
    bool busy;
} trade;

typedef struct world {
    MPI_Comm data, news; /* our own communicators; `news` is for reports of failed ranks */
    int size;
    uint32_t failed; /* the first rank that reported a failure, UINT32_MAX: none */
    bool started, told;
    bool cancelled; /* our failure was caused by another rank, which has reported it to all */
    trade *trades;
} world;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- exchanging messages ---- */

/* Number of messages, nearly always one per part. */
static uint64_t messages(const onx_comm_part *parts, uint32_t count)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++)
        all += parts[i].size <= MESSAGE_MAX ? parts[i].size > 0 : (parts[i].size + MESSAGE_MAX - 1) / MESSAGE_MAX;
    return all;
}

static bool make_room(trade *t, uint64_t requests, uint64_t parts)
{
    if (requests > t->room) {
        MPI_Request *more = requests > INT32_MAX / 2 ? NULL : realloc(t->request, (size_t)requests * sizeof *more);
        if (!more)
            return false;
        t->request = more;
        t->room = (uint32_t)requests;
    }
    if (parts > t->part_room) {
        onx_comm_part *more = parts > INT32_MAX / 2 ? NULL : realloc(t->part, (size_t)parts * sizeof *more);
        if (!more)
            return false;
        t->part = more;
        t->part_room = (uint32_t)parts;
    }
    return true;
}

/* Finds or makes a trade that is not in use; NULL when out of memory. */
static trade *free_trade(world *w, uint64_t requests, uint64_t parts)
{
    trade **at = &w->trades;
    while (*at && (*at)->busy)
        at = &(*at)->next;
    if (!*at)
        *at = calloc(1, sizeof **at);
    return *at && make_room(*at, requests, parts) ? *at : NULL;
}

static bool post(const world *w, trade *t, bool send, int tag, const onx_comm_part *part)
{
    char *data = part->data;
    for (uint64_t left = part->size; left;) {
        const int size = left > MESSAGE_MAX ? MESSAGE_MAX : (int)left;
        MPI_Request *request = &t->request[t->count];
        const int error = send ? MPI_Isend(data, size, MPI_BYTE, (int)part->rank, tag, w->data, request)
                               : MPI_Irecv(data, size, MPI_BYTE, (int)part->rank, tag, w->data, request);
        if (error != MPI_SUCCESS)
            return false;
        t->count++;
        data += size;
        left -= (uint64_t)size;
    }
    return true;
}

/* The rank of the first message that has not arrived. */
static uint32_t missing(const trade *t)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < t->lists[k].count; i++)
            for (uint64_t left = messages(&t->lists[k].part[i], 1); left > 0; left--, at++)
                if (t->request[at] != MPI_REQUEST_NULL)
                    return t->lists[k].part[i].rank;
    return 0;
}

/* Cancels the remaining messages, so that nothing is written to memory that is freed. */
static void give_up(trade *t)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < t->lists[k].count; i++)
            for (uint64_t left = messages(&t->lists[k].part[i], 1); left > 0 && at < (uint32_t)t->count; left--, at++)
                if (!t->lists[k].send && t->request[at] != MPI_REQUEST_NULL)
                    MPI_Cancel(&t->request[at]);
    t->busy = false;
}

/* Has another rank failed? */
static bool has_failed(world *w, uint32_t *rank_out)
{
    int flag = 1;
    MPI_Status status;
    char nothing;
    while (flag) {
        flag = 0;
        if (MPI_Iprobe(MPI_ANY_SOURCE, 0, w->news, &flag, &status) != MPI_SUCCESS || !flag ||
            MPI_Recv(&nothing, 1, MPI_CHAR, status.MPI_SOURCE, 0, w->news, &status) != MPI_SUCCESS)
            break;
        if ((uint32_t)status.MPI_SOURCE < w->failed)
            w->failed = (uint32_t)status.MPI_SOURCE;
    }
    *rank_out = w->failed;
    return w->failed != UINT32_MAX;
}

static onx_status wait_for(world *w, trade *t, uint64_t timeout_ns, uint32_t *rank_out)
{
    uint64_t start = 0; /* messages that arrive soon need no check of other ranks and of the clock */
    for (uint64_t looks = 1;; looks++) {
        int done = 0;
        if (MPI_Testall(t->count, t->request, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
            return ONX_E_IO;
        if (done)
            return ONX_OK;
        if (looks > SPINS)
            sched_yield();
        if (looks % LOOKS == 0 && has_failed(w, rank_out))
            return ONX_E_CANCELLED;
        if (looks % LOOKS == 0 && !start)
            start = now_ns();
        else if (looks % LOOKS == 0 && timeout_ns && now_ns() - start > timeout_ns)
            return ONX_E_LIMIT;
    }
}

static uint64_t largest(const onx_comm_part *parts, uint32_t count)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = parts[i].size > most ? parts[i].size : most;
    return most;
}

/* Posts all messages. Small ones are sent before the receives are posted, because others wait for them. Large ones are
 * sent after that, so that they need no intermediate buffer. */
static bool post_all(const world *w, trade *t, int tag, list sends, list receives)
{
    const bool sends_first = largest(sends.part, sends.count) <= AT_ONCE;
    t->lists[0] = sends_first ? sends : receives;
    t->lists[1] = sends_first ? receives : sends;
    t->count = 0;
    t->busy = true;
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < t->lists[k].count; i++)
            if (!post(w, t, t->lists[k].send, tag, &t->lists[k].part[i]))
                return false;
    return true;
}

/* `keeps`: copies the lists of parts, which may not live until the end. */
static trade *start(world *w, uint32_t tag, list sends, list receives, bool keeps)
{
    trade *t = free_trade(w, messages(sends.part, sends.count) + messages(receives.part, receives.count),
                          keeps ? (uint64_t)sends.count + receives.count : 0);
    if (!t)
        return NULL;
    if (keeps) {
        for (uint32_t i = 0; i < sends.count; i++)
            t->part[i] = sends.part[i];
        for (uint32_t i = 0; i < receives.count; i++)
            t->part[sends.count + i] = receives.part[i];
        sends.part = t->part;
        receives.part = t->part + sends.count;
    }
    if (post_all(w, t, (int)(tag % TAGS), sends, receives))
        return t;
    give_up(t);
    return NULL;
}

static onx_status begin(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                        const onx_comm_part *receives, uint32_t receive_count, uint64_t *begun)
{
    trade *t = start(user, tag, (list){ sends, send_count, true }, (list){ receives, receive_count, false }, true);
    *begun = (uint64_t)(uintptr_t)t;
    return t ? ONX_OK : ONX_E_MEMORY;
}

static onx_status end(world *w, trade *t, uint64_t timeout_ns, uint32_t *rank_out)
{
    const onx_status status = wait_for(w, t, timeout_ns, rank_out);
    w->cancelled |= status == ONX_E_CANCELLED;
    if (status == ONX_E_LIMIT || status == ONX_E_IO)
        *rank_out = missing(t);
    if (status != ONX_OK)
        give_up(t);
    t->busy = false;
    return status;
}

static onx_status finish(void *user, uint64_t begun, uint64_t timeout_ns, uint32_t *rank_out)
{
    return end(user, (trade *)(uintptr_t)begun, timeout_ns, rank_out);
}

static onx_status exchange(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                           const onx_comm_part *receives, uint32_t receive_count, uint64_t timeout_ns,
                           uint32_t *rank_out)
{
    trade *t = start(user, tag, (list){ sends, send_count, true }, (list){ receives, receive_count, false }, false);
    return t ? end(user, t, timeout_ns, rank_out) : ONX_E_MEMORY;
}

static void fail(void *user)
{
    world *w = user;
    static char nothing; /* static: it outlives the messages */
    int me;
    for (trade *t = w->trades; t; t = t->next)
        if (t->busy)
            give_up(t);
    if (w->told || w->cancelled)
        return;
    w->told = true;
    MPI_Comm_rank(w->news, &me);
    for (int i = 0; i < w->size; i++) {
        MPI_Request request;
        if (i != me && MPI_Isend(&nothing, 1, MPI_CHAR, i, 0, w->news, &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }
}

/* ---- beginning and end ---- */

onx_status onx_mpi_open(const void *communicator, onx_comm *out, const char **why)
{
    int there = 0, rank = 0, provided;
    world *w = calloc(1, sizeof *w);
    *why = NULL;
    if (!w)
        return ONX_E_MEMORY;
    if (MPI_Initialized(&there) != MPI_SUCCESS ||
        (!there && MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)) {
        *why = "MPI cannot be started";
        free(w);
        return ONX_E_UNSUPPORTED;
    }
    w->started = !there;
    w->failed = UINT32_MAX;
    const MPI_Comm from = communicator ? *(const MPI_Comm *)communicator : MPI_COMM_WORLD;
    if (MPI_Comm_dup(from, &w->data) != MPI_SUCCESS || MPI_Comm_dup(from, &w->news) != MPI_SUCCESS ||
        MPI_Comm_rank(w->data, &rank) != MPI_SUCCESS || MPI_Comm_size(w->data, &w->size) != MPI_SUCCESS) {
        *why = "the communicator of MPI cannot be used";
        free(w);
        return ONX_E_UNSUPPORTED;
    }
    MPI_Comm_set_errhandler(w->data, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(w->news, MPI_ERRORS_RETURN);
    *out = (onx_comm){ .struct_size = sizeof *out,
                       .rank = (uint32_t)rank,
                       .size = (uint32_t)w->size,
                       .user = w,
                       .exchange = exchange,
                       .fail = fail,
                       .begin = begin,
                       .finish = finish };
    return ONX_OK;
}

void onx_mpi_close(onx_comm *comm, bool failed)
{
    world *w = comm->user;
    if (failed && w->started)
        MPI_Abort(MPI_COMM_WORLD, 1); /* other ranks might wait forever */
    if (!failed) {
        MPI_Comm_free(&w->data);
        MPI_Comm_free(&w->news);
        if (w->started)
            MPI_Finalize();
        for (trade *t = w->trades, *next; t; t = next) {
            next = t->next;
            free(t->request);
            free(t->part);
            free(t);
        }
        free(w);
    }
    comm->user = NULL;
}

/* onx_mpi.c - ranks of MPI, as libonx-mpi.so: the one part that is built with MPI's headers, so that nothing else needs
 * MPI to be there. */
#include "shard/shard_mpi.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MESSAGE_MAX = 1 << 30, /* bytes that one message has: MPI counts in int */
    SPINS = 2000,          /* looks before others get the processor */
    LOOKS = 64,            /* between two for failures of others */
    TAGS = 32768           /* that any MPI has */
};

typedef struct world {
    MPI_Comm data, news; /* of our own; `news` has what ranks that fail say */
    int size;
    uint32_t failed; /* the first of the ranks that said so, UINT32_MAX: none */
    bool started, told;
    bool cancelled; /* our failure is that of another rank, which has said so to all */
    MPI_Request *request;
    uint32_t room;
} world;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- exchanging ---- */

static uint64_t messages(const onx_comm_part *parts, uint32_t count)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++)
        all += (parts[i].size + MESSAGE_MAX - 1) / MESSAGE_MAX;
    return all;
}

static bool make_room(world *w, uint64_t wanted)
{
    if (wanted <= w->room)
        return true;
    MPI_Request *more = wanted > UINT32_MAX / 2 ? NULL : realloc(w->request, (size_t)wanted * sizeof *more);
    if (!more)
        return false;
    w->request = more;
    w->room = (uint32_t)wanted;
    return true;
}

static bool post(world *w, bool send, int tag, const onx_comm_part *part, int *count)
{
    char *data = part->data;
    for (uint64_t left = part->size; left;) {
        const int size = left > MESSAGE_MAX ? MESSAGE_MAX : (int)left;
        const int error =
            send ? MPI_Isend(data, size, MPI_BYTE, (int)part->rank, tag, w->data, &w->request[*count])
                 : MPI_Irecv(data, size, MPI_BYTE, (int)part->rank, tag, w->data, &w->request[*count]);
        if (error != MPI_SUCCESS)
            return false;
        ++*count;
        data += size;
        left -= (uint64_t)size;
    }
    return true;
}

/* Of those that are still waited for, the first. */
static uint32_t missing(const world *w, const onx_comm_part *receives, uint32_t receive_count, const onx_comm_part *sends,
                        uint32_t send_count)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < receive_count + send_count; i++) {
        const onx_comm_part *part = i < receive_count ? &receives[i] : &sends[i - receive_count];
        for (uint64_t k = messages(part, 1); k > 0; k--, at++)
            if (w->request[at] != MPI_REQUEST_NULL)
                return part->rank;
    }
    return 0;
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

static onx_status wait_for(world *w, int count, uint64_t timeout_ns, uint32_t *rank_out)
{
    const uint64_t start = now_ns();
    for (uint64_t looks = 0;; looks++) {
        int done = 0;
        if (MPI_Testall(count, w->request, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
            return ONX_E_IO;
        if (done)
            return ONX_OK;
        if (looks > SPINS)
            sched_yield();
        if (looks % LOOKS == 0 && has_failed(w, rank_out))
            return ONX_E_CANCELLED;
        if (looks % LOOKS == 0 && timeout_ns && now_ns() - start > timeout_ns)
            return ONX_E_LIMIT;
    }
}

static onx_status exchange(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                           const onx_comm_part *receives, uint32_t receive_count, uint64_t timeout_ns,
                           uint32_t *rank_out)
{
    world *w = user;
    const int own = (int)(tag % TAGS);
    int count = 0;
    bool good = make_room(w, messages(sends, send_count) + messages(receives, receive_count));
    for (uint32_t i = 0; i < receive_count && good; i++)
        good = post(w, false, own, &receives[i], &count);
    for (uint32_t i = 0; i < send_count && good; i++)
        good = post(w, true, own, &sends[i], &count);
    if (!good)
        return ONX_E_MEMORY;
    const onx_status status = wait_for(w, count, timeout_ns, rank_out);
    w->cancelled |= status == ONX_E_CANCELLED;
    if (status == ONX_E_LIMIT || status == ONX_E_IO)
        *rank_out = missing(w, receives, receive_count, sends, send_count);
    return status;
}

static void fail(void *user)
{
    world *w = user;
    static char nothing; /* outlives the messages */
    int me;
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
                       .fail = fail };
    return ONX_OK;
}

void onx_mpi_close(onx_comm *comm, bool failed)
{
    world *w = comm->user;
    if (failed && w->started)
        MPI_Abort(MPI_COMM_WORLD, 1); /* others may wait for what never comes */
    if (!failed) {
        MPI_Comm_free(&w->data);
        MPI_Comm_free(&w->news);
        if (w->started)
            MPI_Finalize();
        free(w->request);
        free(w);
    }
    comm->user = NULL;
}

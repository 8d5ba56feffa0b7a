/* shard_comm.c - ranks that are threads of one process: messages are copied from one's memory to the other's when both
 * have come. */
#include "shard/shard.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

/* A message that nobody has received so far, on the sender's list. */
typedef struct letter {
    struct letter *next;
    const onx_comm_part *part; /* in the sender's memory, until `taken` */
    uint32_t from, tag;
    bool taken;
} letter;

typedef struct seat {
    struct onx_comm_group *group;
    uint32_t rank;
    letter *letters; /* to this rank */
} seat;

struct onx_comm_group {
    onx_ctx *maker, *cx; /* `cx` is its own, used under the lock */
    pthread_mutex_t lock;
    pthread_cond_t news;
    uint32_t size;
    bool failed;
    seat seat[];
};

static size_t group_size(uint32_t size)
{
    return sizeof(onx_comm_group) + size * sizeof(seat);
}

static onx_status group_new(onx_ctx *cx, uint32_t size, onx_comm_group **out)
{
    pthread_condattr_t attributes;
    if (!size || size > ONXI_SHARD_DEVICES_MAX)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "a group has 1 to %d ranks, not %u", ONXI_SHARD_DEVICES_MAX,
                         size);
    onx_comm_group *g = onxi_resize(cx, NULL, 0, group_size(size));
    if (!g)
        return ONX_E_MEMORY;
    memset(g, 0, group_size(size));
    *g = (onx_comm_group){ .maker = cx, .cx = onxi_ctx_worker(cx), .size = size };
    if (!g->cx) {
        onxi_release(cx, g, group_size(size));
        return onxi_no_memory(cx);
    }
    for (uint32_t i = 0; i < size; i++)
        g->seat[i] = (seat){ g, i, NULL };
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->news, &attributes);
    pthread_condattr_destroy(&attributes);
    *out = g;
    return ONX_OK;
}

onx_status onx_comm_group_new(onx_ctx *cx, uint32_t size, onx_comm_group **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_CALL_TO_MAKE(cx, out, onx_comm_group_free, group_new(cx, size, out));
}

void onx_comm_group_free(onx_comm_group *group)
{
    if (!group)
        return;
    pthread_mutex_destroy(&group->lock);
    pthread_cond_destroy(&group->news);
    onx_ctx_free(group->cx);
    onxi_release(group->maker, group, group_size(group->size));
}

/* Under the lock: what has come for this rank is copied to where it belongs. Returns how many parts. */
static uint32_t take_letters(seat *s, uint32_t tag, const onx_comm_part *receives, uint32_t count, bool *have,
                             bool *unlike)
{
    uint32_t taken = 0;
    for (letter **at = &s->letters; *at;) {
        letter *l = *at;
        uint32_t i = 0;
        while (i < count && (l->tag != tag || receives[i].rank != l->from || have[i]))
            i++;
        if (i == count) {
            at = &l->next;
            continue;
        }
        have[i] = true; /* what comes from there now is for the next exchange of this tag */
        *unlike |= l->part->size != receives[i].size;
        if (l->part->size == receives[i].size)
            memcpy(receives[i].data, l->part->data, receives[i].size);
        l->taken = true;
        *at = l->next;
        taken++;
    }
    return taken;
}

/* Under the lock. */
static void withdraw(onx_comm_group *g, const letter *mine, uint32_t count)
{
    for (uint32_t r = 0; r < g->size; r++)
        for (letter **at = &g->seat[r].letters; *at;)
            if (*at >= mine && *at < mine + count)
                *at = (*at)->next;
            else
                at = &(*at)->next;
}

static uint32_t missing(const letter *mine, const onx_comm_part *sends, uint32_t send_count, const bool *have,
                        const onx_comm_part *receives, uint32_t receive_count)
{
    for (uint32_t i = 0; i < receive_count; i++)
        if (!have[i])
            return receives[i].rank;
    for (uint32_t i = 0; i < send_count; i++)
        if (!mine[i].taken)
            return sends[i].rank;
    return 0;
}

static onx_status trade(seat *s, uint32_t tag, letter *mine, bool *have, const onx_comm_part *sends,
                        uint32_t send_count, const onx_comm_part *receives, uint32_t receive_count,
                        const struct timespec *until, uint32_t *rank_out)
{
    onx_comm_group *g = s->group;
    uint32_t received = 0;
    bool unlike = false;
    for (uint32_t i = 0; i < send_count; i++) {
        letter **end = &g->seat[sends[i].rank].letters;
        while (*end)
            end = &(*end)->next;
        mine[i] = (letter){ NULL, &sends[i], s->rank, tag, false };
        *end = &mine[i];
    }
    pthread_cond_broadcast(&g->news);
    for (;;) {
        const uint32_t taken = take_letters(s, tag, receives, receive_count, have, &unlike);
        uint32_t left = send_count;
        if (taken)
            pthread_cond_broadcast(&g->news);
        received += taken;
        for (uint32_t i = 0; i < send_count; i++)
            left -= mine[i].taken;
        if (unlike)
            return ONX_E_IO;
        if (!left && received == receive_count)
            return ONX_OK;
        *rank_out = missing(mine, sends, send_count, have, receives, receive_count);
        if (g->failed)
            return ONX_E_CANCELLED;
        if ((until ? pthread_cond_timedwait(&g->news, &g->lock, until) : pthread_cond_wait(&g->news, &g->lock)) ==
            ETIMEDOUT)
            return ONX_E_LIMIT;
    }
}

static onx_status exchange(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                           const onx_comm_part *receives, uint32_t receive_count, uint64_t timeout_ns,
                           uint32_t *rank_out)
{
    seat *s = user;
    onx_comm_group *g = s->group;
    struct timespec until;
    if (timeout_ns) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        const uint64_t ns = timeout_ns % 1000000000 + (uint64_t)until.tv_nsec;
        until.tv_sec += (time_t)(timeout_ns / 1000000000 + ns / 1000000000);
        until.tv_nsec = (long)(ns % 1000000000);
    }
    pthread_mutex_lock(&g->lock);
    const size_t size = (send_count + (size_t)1) * sizeof(letter) + receive_count;
    letter *mine = onxi_resize(g->cx, NULL, 0, size);
    onx_status status = ONX_E_MEMORY;
    if (mine) {
        bool *have = (bool *)(mine + send_count + 1);
        memset(have, 0, receive_count);
        status =
            trade(s, tag, mine, have, sends, send_count, receives, receive_count, timeout_ns ? &until : NULL, rank_out);
    }
    if (mine && status != ONX_OK)
        withdraw(g, mine, send_count);
    onxi_release(g->cx, mine, size);
    pthread_mutex_unlock(&g->lock);
    return status;
}

static void fail(void *user)
{
    onx_comm_group *g = ((seat *)user)->group;
    pthread_mutex_lock(&g->lock);
    g->failed = true;
    pthread_cond_broadcast(&g->news);
    pthread_mutex_unlock(&g->lock);
}

static onx_status group_rank(onx_ctx *cx, onx_comm_group *group, uint32_t rank, onx_comm *out)
{
    if (rank >= group->size)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the group has %u ranks, and no rank %u", group->size, rank);
    *out = (onx_comm){ .struct_size = sizeof *out,
                       .rank = rank,
                       .size = group->size,
                       .user = &group->seat[rank],
                       .exchange = exchange,
                       .fail = fail };
    return ONX_OK;
}

onx_status onx_comm_group_rank(onx_ctx *cx, onx_comm_group *group, uint32_t rank, onx_comm *out)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, group);
    ONXI_NEED(cx, out);
    ONXI_CALL(cx, group_rank(cx, group, rank, out));
}

onx_status onxi_shard_failed(onx_ctx *cx, onx_status status, uint32_t rank, uint64_t timeout_ns)
{
    switch (status) {
    case ONX_E_LIMIT:
        return onxi_fail(cx, status, ONXI_NOWHERE, "rank %u was waited for longer than %.3g s", rank,
                         (double)timeout_ns / 1e9);
    case ONX_E_CANCELLED:
        return onxi_fail(cx, status, ONXI_NOWHERE, "another rank has failed");
    default:
        return onxi_fail(cx, status, ONXI_NOWHERE, "rank %u sends something else than is expected", rank);
    }
}

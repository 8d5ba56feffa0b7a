/* shard_comm.c - ranks that are threads of one process: a message is copied from the memory of the sender to that of
 * the receiver once both have arrived. */
#include "shard/shard.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

/* A message that is not received yet, in the list of its receiver. */
typedef struct letter {
    struct letter *next;
    const onx_comm_part *part;
    struct trade *of;
    uint32_t from, tag;
} letter;

/* An exchange that a rank has begun, in reused memory: parts to send and receive, their messages, and which parts have
 * arrived. */
typedef struct trade {
    struct trade *next;
    size_t size;
    uint32_t tag, send_count, receive_count;
    uint32_t left; /* parts that were not taken, or have not arrived */
    bool busy, unlike;
    onx_comm_part *part;
    letter *letter;
    bool *have;
} trade;

typedef struct seat {
    struct onx_comm_group *group;
    uint32_t rank;
    letter *letters; /* to this rank */
    trade *trades;   /* of this rank */
} seat;

struct onx_comm_group {
    onx_ctx *maker, *cx; /* `cx` is its own, and used with the lock held */
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
        g->seat[i] = (seat){ g, i, NULL, NULL };
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
    for (uint32_t i = 0; i < group->size; i++)
        for (trade *t = group->seat[i].trades, *next; t; t = next) {
            next = t->next;
            onxi_release(group->cx, t, t->size);
        }
    pthread_mutex_destroy(&group->lock);
    pthread_cond_destroy(&group->news);
    onx_ctx_free(group->cx);
    onxi_release(group->maker, group, group_size(group->size));
}

/* ---- called with the lock held ---- */

/* The exchange that waits for the message, and for which of its parts. A duplicate belongs to the next exchange with
 * this tag. */
static trade *find_reader(const seat *s, const letter *l, uint32_t *part)
{
    for (trade *t = s->trades; t; t = t->next)
        for (uint32_t i = 0; t->busy && t->tag == l->tag && i < t->receive_count; i++)
            if (t->part[t->send_count + i].rank == l->from && !t->have[i]) {
                *part = i;
                return t;
            }
    return NULL;
}

/* Copies messages that this rank waits for to their destinations. */
static bool deliver(seat *s)
{
    bool any = false;
    for (letter **at = &s->letters; *at;) {
        letter *l = *at;
        uint32_t i;
        trade *to = find_reader(s, l, &i);
        if (!to) {
            at = &l->next;
            continue;
        }
        const onx_comm_part *part = &to->part[to->send_count + i];
        to->have[i] = any = true;
        to->unlike |= l->part->size != part->size;
        if (l->part->size == part->size)
            memcpy(part->data, l->part->data, part->size);
        to->left--;
        l->of->left--;
        *at = l->next;
    }
    return any;
}

/* Its messages will not be delivered any more. */
static void withdraw(onx_comm_group *g, const trade *t)
{
    for (uint32_t r = 0; r < g->size; r++)
        for (letter **at = &g->seat[r].letters; *at;)
            if ((*at)->of == t)
                *at = (*at)->next;
            else
                at = &(*at)->next;
}

/* The rank that is waited for. */
static uint32_t missing(const onx_comm_group *g, const trade *t)
{
    for (uint32_t i = 0; i < t->receive_count; i++)
        if (!t->have[i])
            return t->part[t->send_count + i].rank;
    for (uint32_t r = 0; r < g->size; r++)
        for (const letter *l = g->seat[r].letters; l; l = l->next)
            if (l->of == t)
                return r;
    return 0;
}

/* An unused exchange with room for this number of parts. */
static trade *free_trade(seat *s, uint32_t send_count, uint32_t receive_count)
{
    const size_t parts = (size_t)send_count + receive_count;
    const size_t size = sizeof(trade) + parts * sizeof(onx_comm_part) + send_count * sizeof(letter) + receive_count;
    trade **at = &s->trades;
    while (*at && ((*at)->busy || (*at)->size < size))
        at = &(*at)->next;
    trade *t = *at;
    if (!t) {
        if (!(t = onxi_resize(s->group->cx, NULL, 0, size)))
            return NULL;
        *t = (trade){ .size = size };
        *at = t;
    }
    *t = (trade){ .next = t->next, .size = t->size, .send_count = send_count, .receive_count = receive_count };
    t->part = (onx_comm_part *)(t + 1);
    t->letter = (letter *)(t->part + parts);
    t->have = (bool *)(t->letter + send_count);
    memset(t->have, 0, receive_count);
    return t;
}

static onx_status start(seat *s, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                        const onx_comm_part *receives, uint32_t receive_count, trade **out)
{
    onx_comm_group *g = s->group;
    trade *t = free_trade(s, send_count, receive_count);
    bool news;
    if (!t)
        return ONX_E_MEMORY;
    t->tag = tag;
    t->left = send_count + receive_count;
    t->busy = true;
    for (uint32_t i = 0; i < send_count; i++) {
        letter **end = &g->seat[sends[i].rank].letters;
        while (*end)
            end = &(*end)->next;
        t->part[i] = sends[i];
        t->letter[i] = (letter){ NULL, &t->part[i], t, s->rank, tag };
        *end = &t->letter[i];
    }
    for (uint32_t i = 0; i < receive_count; i++)
        t->part[send_count + i] = receives[i];
    news = deliver(s);
    for (uint32_t i = 0; i < send_count; i++)
        news |= deliver(&g->seat[sends[i].rank]);
    if (news)
        pthread_cond_broadcast(&g->news);
    *out = t;
    return ONX_OK;
}

static onx_status wait_for(const seat *s, const trade *t, const struct timespec *until, uint32_t *rank_out)
{
    onx_comm_group *g = s->group;
    for (;;) {
        if (t->unlike)
            return ONX_E_IO;
        if (!t->left)
            return ONX_OK;
        *rank_out = missing(g, t);
        if (g->failed)
            return ONX_E_CANCELLED;
        if ((until ? pthread_cond_timedwait(&g->news, &g->lock, until) : pthread_cond_wait(&g->news, &g->lock)) ==
            ETIMEDOUT)
            return ONX_E_LIMIT;
    }
}

static void end_trade(onx_comm_group *g, trade *t, onx_status status)
{
    if (status != ONX_OK)
        withdraw(g, t);
    t->busy = false;
}

/* ---- the functions of a communicator ---- */

static struct timespec end_of(uint64_t timeout_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const uint64_t ns = timeout_ns % 1000000000 + (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(timeout_ns / 1000000000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    return until;
}

static onx_status begin(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                        const onx_comm_part *receives, uint32_t receive_count, uint64_t *begun)
{
    seat *s = user;
    trade *t = NULL;
    pthread_mutex_lock(&s->group->lock);
    const onx_status status = start(s, tag, sends, send_count, receives, receive_count, &t);
    pthread_mutex_unlock(&s->group->lock);
    *begun = (uint64_t)(uintptr_t)t;
    return status;
}

static onx_status finish(void *user, uint64_t begun, uint64_t timeout_ns, uint32_t *rank_out)
{
    seat *s = user;
    trade *t = (trade *)(uintptr_t)begun;
    struct timespec until = { 0, 0 };
    if (timeout_ns)
        until = end_of(timeout_ns);
    pthread_mutex_lock(&s->group->lock);
    const onx_status status = wait_for(s, t, timeout_ns ? &until : NULL, rank_out);
    end_trade(s->group, t, status);
    pthread_mutex_unlock(&s->group->lock);
    return status;
}

static onx_status exchange(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                           const onx_comm_part *receives, uint32_t receive_count, uint64_t timeout_ns,
                           uint32_t *rank_out)
{
    uint64_t begun;
    ONX_TRY(begin(user, tag, sends, send_count, receives, receive_count, &begun));
    return finish(user, begun, timeout_ns, rank_out);
}

static void fail(void *user)
{
    seat *s = user;
    onx_comm_group *g = s->group;
    pthread_mutex_lock(&g->lock);
    g->failed = true;
    for (trade *t = s->trades; t; t = t->next)
        if (t->busy)
            end_trade(g, t, ONX_E_CANCELLED);
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
                       .fail = fail,
                       .begin = begin,
                       .finish = finish };
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

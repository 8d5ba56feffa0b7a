/* wire_read_parallel.c - decodes a long run of repeated messages with several threads.
 *
 * A scan over the lengths finds the position of each element. Every worker decodes a contiguous share with its own
 * arena and context; the caller adopts the arenas in order, so model and diagnostics are the same as with one
 * thread. */
#include "wire/wire_read.h"

typedef struct span {
    const byte *p;
    size_t len;
} span;

typedef struct worker {
    onxi_reader r;
    const onxi_reader_frame *up;
    const span *spans;
    void **out; /* one pointer per span */
    size_t count;
    uint64_t first; /* index of the first element in the list */
    size_t done;    /* elements decoded before success or failure */
} worker;

enum { WORKERS_MAX = 64, SHARE_MIN = 64 * 1024 };

/* The number of elements of the run, or 0 if it is malformed, which decoding one by one will report. Fills `spans`
 * unless it is NULL. */
static size_t scan(onxi_reader *r, const byte *p, const byte *end, const byte *tag, size_t tag_size, span *spans,
                   const byte **next)
{
    size_t n = 0;
    (void)r;
    for (;;) {
        uint64_t len = 0;
        unsigned shift = 0;
        while (p < end && (*p & 0x80) && shift < 56) {
            len |= (uint64_t)(*p++ & 0x7f) << shift;
            shift += 7;
        }
        if (p >= end || (*p & 0x80))
            return 0;
        len |= (uint64_t)*p++ << shift;
        if (len > (uint64_t)(end - p))
            return 0;
        if (spans)
            spans[n] = (span){ p, (size_t)len };
        n++;
        p += len;
        if ((size_t)(end - p) <= tag_size || memcmp(p, tag, tag_size) != 0)
            break;
        p += tag_size;
    }
    *next = p;
    return n;
}

static void decode_share(void *workers, uint64_t share, unsigned thread)
{
    (void)thread;
    worker *w = (worker *)workers + share;
    onxi_reader_frame up = *w->up;
    const onxi_message_table *table = up.field->message;
    for (size_t i = 0; i < w->count; i++) {
        up.index = w->first + i;
        void *m = onx_arena_alloc(w->r.arena, table->size);
        if (!m)
            w->r.failure = ONX_E_MEMORY;
        if (!m || !onxi_read_message(&w->r, table, m, w->spans[i].p, w->spans[i].p + w->spans[i].len, &up))
            break;
        w->out[i] = m;
        w->done++;
    }
}

/* Splits the run into shares of about equal bytes; returns their number. */
static size_t share_out(onxi_reader *r, const onxi_reader_frame *f, worker *workers, size_t worker_count,
                        const span *spans, size_t count, void **out, uint64_t first, const byte *end)
{
    size_t n = 0, i = 0;
    while (i < count) {
        size_t left = worker_count - n, share = (size_t)(end - spans[i].p) / left, from = i;
        while (i < count && (left == 1 || (size_t)(spans[i].p - spans[from].p) < share))
            i++;
        workers[n] = (worker){
            .r = *r, .up = f, .spans = spans + from, .out = out + from, .count = i - from, .first = first + from
        };
        n++;
    }
    return n;
}

static bool equip(onxi_reader *r, worker *w)
{
    w->r.stack = NULL;
    w->r.stack_count = w->r.stack_room = 0;
    memset(w->r.alike, 0, sizeof w->r.alike);
    w->r.threads = 1;
    w->r.arena = NULL;
    w->r.cx = onxi_ctx_worker(r->cx);
    return w->r.cx && onx_arena_new(w->r.cx, &w->r.arena) == ONX_OK;
}

/* Adopts the result of a worker, or frees it if an earlier worker failed. */
static void settle(onxi_reader *r, worker *w, bool keep)
{
    if (!w->r.cx)
        return;
    onxi_buffer_give(w->r.cx, w->r.stack, w->r.stack_room * sizeof *w->r.stack);
    if (keep) {
        onxi_diag_move(r->cx, w->r.cx);
        r->failure = w->r.failure;
    }
    if (w->r.arena) {
        if (keep)
            onx_arena_adopt(r->arena, w->r.arena);
        else
            onx_arena_free(w->r.arena);
    }
    onx_ctx_free(w->r.cx);
}

static bool decode_shares(onxi_reader *r, worker *workers, size_t n)
{
    bool equipped = true;
    for (size_t i = 0; i < n; i++)
        workers[i].r.cx = NULL;
    for (size_t i = 0; i < n && equipped; i++)
        equipped = equip(r, &workers[i]);
    if (!equipped)
        r->failure = ONX_E_MEMORY;
    if (equipped)
        onxi_team_run((unsigned)n, n, decode_share, workers);
    for (size_t i = 0; i < n; i++)
        settle(r, &workers[i], r->failure == ONX_OK);
    if (r->failure == ONX_OK && !onxi_arena_within_limit(r->cx)) /* each worker was within the limit alone */
        r->failure = ONX_E_LIMIT;
    return r->failure == ONX_OK;
}

const byte *onxi_read_parallel(onxi_reader *r, onxi_reader_frame *f, onxi_place place, const byte *p, const byte *end,
                               const byte *tag, size_t tag_size)
{
    const byte *next;
    size_t count = scan(r, p, end, tag, tag_size, NULL, &next);
    size_t n = r->threads < WORKERS_MAX ? r->threads : WORKERS_MAX;
    if (count && (size_t)(next - p) / SHARE_MIN < n)
        n = (size_t)(next - p) / SHARE_MIN;
    if (n > count)
        n = count;
    if (n < 2)
        return NULL;
    uint32_t *list_count = place.count;
    if (!onxi_reader_grow(r, f, place.value, *list_count, count, sizeof(void *), false, false))
        return NULL;
    size_t bytes = count * sizeof(span);
    span *spans = onxi_resize(r->cx, NULL, 0, bytes);
    worker *workers = onxi_resize(r->cx, NULL, 0, n * sizeof *workers);
    bool ok = spans && workers;
    if (ok) {
        scan(r, p, end, tag, tag_size, spans, &next);
        size_t shares =
            share_out(r, f, workers, n, spans, count, *(void ***)place.value + *list_count, *list_count, next);
        ok = decode_shares(r, workers, shares);
    } else {
        r->failure = ONX_E_MEMORY;
    }
    onxi_release(r->cx, spans, bytes);
    onxi_release(r->cx, workers, n * sizeof *workers);
    if (!ok)
        return NULL;
    *list_count += (uint32_t)count;
    return next;
}

/* base_team.c - one thread pool per process, shared by all callers (docs/notes/threads.md).
 *
 * A caller posts a job, works on it itself, and is helped by idle threads of the pool. A caller can finish alone, so
 * callers never wait for each other, and a pool that is busy or gets no CPU time costs nothing. Jobs may take only a
 * microsecond, so posting one takes no lock and no system call, and threads write shared memory only to hand out work
 * and to report that it is done.
 *
 * A preempted thread is costly: if a helper is preempted in the middle of a piece, the caller waits for it; and a
 * helper may take the processor that the caller needs. After a preemption was observed, callers work alone for a
 * while. */
#include "base/base_process.h"

#include <signal.h>
#include <time.h>

enum {
    TEAM_MAX = 1023,            /* threads in the pool, without callers */
    SPIN_NANOSECONDS = 100000,  /* how long an idle thread spins before it sleeps; waking up takes about as long */
    STALL_NANOSECONDS = 200000, /* time off the processor that counts as a preemption */
    LOOK_NANOSECONDS = 1000000, /* minimum time between two measurements of a caller's CPU time */
    ALONE_FACTOR = 16 /* callers work alone for this multiple of the lost time, so at most 1/16 of the time is lost */
};

/* ---- the state of a job ---- */

/* Parts are handed out from both ends: the caller takes them from the first one upwards, helpers from the last one
 * downwards, so that a thread finds data of the previous job in its caches. One 64-bit number contains all state that
 * decides who may take what: the first free part, the end of the free parts, and how many helpers may still join. */
enum { PARTS_MAX = 0xffff, END_AT = 16, HELPERS_AT = 32, CALLER_SLEEPS = 1 << 20 /* a flag in `done` */ };

static uint64_t left_of(uint64_t first, uint64_t end, uint64_t helpers)
{
    return first | end << END_AT | helpers << HELPERS_AT;
}

typedef struct part_range {
    uint64_t first, end, helpers;
} part_range;

static part_range range_of(uint64_t left)
{
    return (part_range){ left & PARTS_MAX, left >> END_AT & PARTS_MAX, left >> HELPERS_AT };
}

/* How many parts a thread takes at a time: fewer towards the end. If the job has ended meanwhile, it has 0 threads, and
 * taking the parts fails. */
static uint64_t share_of(uint64_t parts, unsigned threads)
{
    const uint64_t share = threads ? parts / (2 * threads) : 0;
    return share ? share : 1;
}

static void do_parts(const onxi_team_slot *slot, uint64_t first, uint64_t end, unsigned me)
{
    const uint64_t each = slot->pieces / slot->parts, more = slot->pieces % slot->parts;
    const uint64_t last = each * end + (end < more ? end : more);
    for (uint64_t piece = each * first + (first < more ? first : more); piece < last; piece++)
        slot->work(slot->user, piece, me);
}

/* ---- waiting ---- */

/* On systems without per-thread CPU clocks, threads are assumed to run all the time. */
static uint64_t clock_of(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

/* Spins until the number changes, but not for long. */
static void spin_while(const atomic_uint *number, unsigned same)
{
    enum { PAUSES = 32 }; /* between two reads of the clock */
    uint64_t end = now() + SPIN_NANOSECONDS;
    do {
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load_explicit(number, memory_order_acquire) != same)
                return;
            onxi_platform_pause();
        }
    } while (now() < end);
}

/* ---- the threads of the team ---- */

/* When a helper last read its CPU time; that is a system call, which is too slow for every job. */
typedef struct processor_look {
    uint64_t at, used;
} processor_look;

static processor_look look_at_processor(void)
{
    return (processor_look){ .at = now(), .used = clock_of(CLOCK_THREAD_CPUTIME_ID) };
}

/* Nanoseconds since the last read in which the helper was runnable but not running. */
static uint64_t lost_since(const processor_look *look)
{
    const processor_look l = look_at_processor();
    const uint64_t took = l.at - look->at, used = l.used - look->used, off = took > used ? took - used : 0;
    if (off >= STALL_NANOSECONDS && !onxi_platform_preempted(&onxi_process_this_thread()->preempted))
        return 0; /* it was blocked, for example by a page fault on a file */
    return off;
}

/* A job that may still use helpers. Callers that run at the same time share the threads that each may use. */
static onxi_team_slot *find_job(onxi_team *team)
{
    onxi_team_slot *found = NULL;
    const unsigned slots = atomic_load_explicit(&team->slots, memory_order_acquire);
    unsigned working = 0, allowed = 0;
    for (unsigned i = 0; i < slots; i++) {
        onxi_team_slot *slot = &team->slot[i];
        const unsigned threads = atomic_load_explicit(&slot->threads, memory_order_relaxed);
        if (!threads)
            continue;
        const part_range r = range_of(atomic_load_explicit(&slot->left, memory_order_relaxed));
        working += threads > r.helpers ? threads - (unsigned)r.helpers : 1;
        if (threads > allowed && r.helpers && r.first < r.end) {
            found = slot;
            allowed = threads;
        }
    }
    return working < allowed ? found : NULL;
}

/* Takes parts for a helper; the first time (*me is 0) it also gets a worker number. */
static bool take_last(onxi_team_slot *slot, unsigned *me, uint64_t *first, uint64_t *end)
{
    uint64_t left = atomic_load_explicit(&slot->left, memory_order_relaxed);
    for (;;) {
        const part_range r = range_of(left);
        if (r.first >= r.end || (!*me && !r.helpers))
            return false;
        const uint64_t share = share_of(r.end - r.first, atomic_load_explicit(&slot->threads, memory_order_relaxed));
        const uint64_t next = left_of(r.first, r.end - share, *me ? r.helpers : r.helpers - 1);
        if (atomic_compare_exchange_weak_explicit(&slot->left, &left, next, memory_order_acquire,
                                                  memory_order_relaxed)) {
            *me = *me ? *me : (unsigned)r.helpers;
            *first = r.end - share;
            *end = r.end;
            return true;
        }
    }
}

static void help(onxi_team *team, onxi_team_slot *slot, const processor_look *look)
{
    unsigned me = 0, parts = 0;
    uint64_t first, end;
    const uint64_t start = now();
    while (take_last(slot, &me, &first, &end)) { /* from its first part on, the entry belongs to this job until the
                                                  * parts are done */
        do_parts(slot, first, end, me);
        parts += (unsigned)(end - first);
    }
    if (!parts)
        return;
    const uint64_t took = now() - start;
    if (took >= STALL_NANOSECONDS) {
        const uint64_t lost = lost_since(look), off = lost < took ? lost : took;
        pthread_mutex_lock(&team->lock);
        if (off > slot->off_processor)
            slot->off_processor = off;
        pthread_mutex_unlock(&team->lock);
    }
    /* The caller may return once all parts are done; the job must not be accessed after this. */
    if (atomic_fetch_add_explicit(&slot->done, parts, memory_order_release) & CALLER_SLEEPS) {
        pthread_mutex_lock(&team->lock);
        pthread_cond_broadcast(&team->done);
        pthread_mutex_unlock(&team->lock);
    }
}

/* Sleeps until a job is posted. A caller that sees no sleeping thread has posted before the last check. */
static void sleep_on(onxi_team *team, unsigned seen)
{
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(&team->sleeping, 1);
    while (atomic_load(&team->posts) == seen)
        pthread_cond_wait(&team->posted, &team->lock);
    atomic_fetch_sub(&team->sleeping, 1);
    pthread_mutex_unlock(&team->lock);
}

static void *thread_of_team(void *argument)
{
    onxi_team *team = argument;
    onxi_process_this_thread()->in_piece = true; /* nested calls from its pieces never post jobs */
    processor_look look = look_at_processor();
    for (;;) {
        const unsigned seen = atomic_load_explicit(&team->posts, memory_order_acquire);
        onxi_team_slot *job = find_job(team);
        if (job) {
            help(team, job, &look);
            continue;
        }
        if (now() - look.at >= LOOK_NANOSECONDS)
            look = look_at_processor();
        spin_while(&team->posts, seen);
        if (atomic_load_explicit(&team->posts, memory_order_relaxed) == seen) {
            sleep_on(team, seen);
            look = look_at_processor();
        }
    }
    return NULL;
}

/* ---- creating threads ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&onxi_process_get()->team.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&onxi_process_get()->team.lock);
}

/* After a fork the child has only one thread; the pool is created again on demand. */
static void after_fork_in_child(void)
{
    onxi_team *team = &onxi_process_get()->team;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->posted, NULL);
    pthread_cond_init(&team->done, NULL);
    for (int i = 0; i < ONXI_TEAM_SLOTS; i++) {
        atomic_store_explicit(&team->slot[i].left, 0, memory_order_relaxed);
        atomic_store_explicit(&team->slot[i].threads, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&team->threads, 0, memory_order_relaxed);
    atomic_store_explicit(&team->sleeping, 0, memory_order_relaxed);
}

/* Threads outlive every session, so their code must not be unloaded. */
static void stay_loaded(void)
{
    static const char mark = 0;
    onxi_platform_library_keep(&mark);
}

/* Threads are detached, and signals are blocked in them, because signals are for the program's own threads. */
static void make_threads(onxi_team *team, unsigned wanted)
{
    sigset_t all, before;
    pthread_attr_t detached;
    if (team->threads >= wanted || team->threads >= TEAM_MAX || pthread_attr_init(&detached) != 0)
        return;
    if (!team->prepared) {
        team->prepared = pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;
        stay_loaded();
    }
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    while (team->threads < wanted && team->threads < TEAM_MAX &&
           pthread_create(&thread, &detached, thread_of_team, team) == 0)
        atomic_fetch_add_explicit(&team->threads, 1, memory_order_relaxed);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
}

/* ---- callers ---- */

/* An entry for the caller, preferably its previous one; NULL if all are in use. */
static onxi_team_slot *take_slot(onxi_team *team, onxi_process_thread *t, unsigned threads)
{
    for (unsigned i = 0; i < ONXI_TEAM_SLOTS; i++) {
        const unsigned at = (t->slot + i) % ONXI_TEAM_SLOTS;
        unsigned none = 0, slots = atomic_load_explicit(&team->slots, memory_order_relaxed);
        if (atomic_load_explicit(&team->slot[at].threads, memory_order_relaxed) ||
            !atomic_compare_exchange_strong_explicit(&team->slot[at].threads, &none, threads, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        t->slot = at;
        while (slots <= at && !atomic_compare_exchange_weak_explicit(&team->slots, &slots, at + 1, memory_order_release,
                                                                     memory_order_relaxed))
            ;
        return &team->slot[at];
    }
    return NULL;
}

/* Posts all parts except those that the caller takes immediately, from the first one to the returned end. */
static uint64_t post(onxi_team *team, onxi_team_slot *slot, unsigned helpers)
{
    const uint64_t mine = share_of(slot->parts, helpers + 1);
    atomic_store_explicit(&slot->left, left_of(mine, slot->parts, helpers), memory_order_release);
    if (atomic_load_explicit(&team->threads, memory_order_relaxed) < helpers) {
        pthread_mutex_lock(&team->lock);
        make_threads(team, helpers);
        pthread_mutex_unlock(&team->lock);
    }
    atomic_fetch_add(&team->posts, 1);
    if (atomic_load(&team->sleeping)) {
        pthread_mutex_lock(&team->lock);
        for (unsigned i = 0; i < helpers; i++)
            pthread_cond_signal(&team->posted);
        pthread_mutex_unlock(&team->lock);
    }
    return mine;
}

/* Takes parts for the caller; false if helpers have all remaining ones. */
static bool take_first(onxi_team_slot *slot, unsigned threads, uint64_t *first, uint64_t *end)
{
    uint64_t left = atomic_load_explicit(&slot->left, memory_order_relaxed);
    for (;;) {
        const part_range r = range_of(left);
        if (r.first >= r.end)
            return false;
        *first = r.first;
        *end = r.first + share_of(r.end - r.first, threads);
        if (atomic_compare_exchange_weak_explicit(&slot->left, &left, left_of(*end, r.end, r.helpers),
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    }
}

/* Waits until helpers have completed that many parts. */
static void finish(onxi_team *team, onxi_team_slot *slot, unsigned parts)
{
    unsigned done = atomic_load_explicit(&slot->done, memory_order_acquire);
    while (done != parts) {
        spin_while(&slot->done, done);
        unsigned more = atomic_load_explicit(&slot->done, memory_order_acquire);
        if (more == done)
            break;
        done = more;
    }
    if (done == parts)
        return;
    pthread_mutex_lock(&team->lock);
    atomic_fetch_or_explicit(&slot->done, CALLER_SLEEPS, memory_order_relaxed);
    while (atomic_load_explicit(&slot->done, memory_order_acquire) != (CALLER_SLEEPS | parts))
        pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

static void stay_alone(onxi_team *team, uint64_t lost)
{
    if (lost >= STALL_NANOSECONDS)
        atomic_store_explicit(&team->alone_until, now() + lost * ALONE_FACTOR, memory_order_relaxed);
}

/* A caller begins a job: time lost before, when it may have been blocked, does not count. */
static void watch_caller(onxi_process_thread *t, uint64_t start)
{
    if (t->at && start - t->ended < STALL_NANOSECONDS)
        return;
    t->at = start;
    t->used = clock_of(CLOCK_THREAD_CPUTIME_ID);
    (void)onxi_platform_preempted(&t->preempted);
}

/* After its pieces: checks now and then whether the caller lost CPU time. */
static void judge_caller(onxi_team *team, onxi_process_thread *t, uint64_t end)
{
    if (end - t->at < LOOK_NANOSECONDS)
        return;
    const uint64_t took = end - t->at, used = clock_of(CLOCK_THREAD_CPUTIME_ID) - t->used;
    if (onxi_platform_preempted(&t->preempted) && took > used)
        stay_alone(team, took - used);
    t->at = end;
    t->used += used;
}

/* At this time. */
static bool is_alone(const onxi_team *team, uint64_t time)
{
    return time <= atomic_load_explicit(&team->alone_until, memory_order_relaxed);
}

unsigned onxi_team_threads(unsigned threads)
{
    return threads > 1 && (onxi_process_this_thread()->in_piece || is_alone(&onxi_process_get()->team, now()))
               ? 1
               : threads;
}

static void run_alone(uint64_t pieces, onxi_team_work *work, void *user)
{
    for (uint64_t i = 0; i < pieces; i++)
        work(user, i, 0);
}

static void run_posted(onxi_team *team, onxi_team_slot *slot, onxi_process_thread *t, unsigned threads)
{
    uint64_t first = 0, end = post(team, slot, threads - 1);
    unsigned mine = 0;
    t->in_piece = true;
    do {
        do_parts(slot, first, end, 0);
        mine += (unsigned)(end - first);
    } while (take_first(slot, threads, &first, &end));
    t->in_piece = false;
    const uint64_t time = now();
    judge_caller(team, t, time);
    finish(team, slot, slot->parts - mine);
    t->ended = now();
    const uint64_t waited = t->ended - time, off = slot->off_processor;
    atomic_store_explicit(&slot->threads, 0, memory_order_release);
    if (waited >= SPIN_NANOSECONDS)
        t->at = 0; /* it may have slept */
    stay_alone(team, waited < off ? waited : off);
}

void onxi_team_run(unsigned threads, uint64_t pieces, onxi_team_work *work, void *user)
{
    onxi_process_thread *t = onxi_process_this_thread();
    onxi_team *team = &onxi_process_get()->team;
    const unsigned most = pieces < threads ? (unsigned)pieces : threads < TEAM_MAX ? threads : TEAM_MAX;
    const uint64_t start = most < 2 || t->in_piece ? 0 : now();
    onxi_team_slot *slot = is_alone(team, start) ? NULL : take_slot(team, t, most);
    if (!slot) {
        run_alone(pieces, work, user);
        return;
    }
    slot->work = work;
    slot->user = user;
    slot->pieces = pieces;
    slot->parts = (uint32_t)(pieces < PARTS_MAX ? pieces : PARTS_MAX);
    slot->off_processor = 0;
    atomic_store_explicit(&slot->done, 0, memory_order_relaxed);
    watch_caller(t, start);
    run_posted(team, slot, t, most);
}

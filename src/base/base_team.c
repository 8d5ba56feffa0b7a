/* base_team.c - one team of threads per process that all callers share (docs/notes/threads.md).
 *
 * A caller posts a job, works on it itself, and is helped by threads of the team that have nothing better to do. It can
 * finish alone, so callers never wait for each other, and a team that is busy or gets no processor costs nothing. What
 * can cost is a thread that loses its processor to another process in the middle of a piece: a helper, for which the
 * caller then waits, or the caller, which would have a processor for itself without the helper. When that was seen,
 * callers stay alone for a while. */
#include "base/base_process.h"

#include <signal.h>
#include <time.h>

enum {
    TEAM_MAX = 1023,            /* threads, the callers not counted */
    SPIN_NANOSECONDS = 100000,  /* before a thread sleeps; waking up takes about as long */
    STALL_NANOSECONDS = 200000, /* without a processor, from which on they count */
    LOOK_NANOSECONDS = 1000000, /* between looks at what a caller got of its processor */
    ALONE_FACTOR = 16 /* how many times the time lost callers stay alone: so much of the time is lost at most */
};

typedef struct onxi_team_job {
    struct onxi_team_job *next_job;
    onxi_team_work *work;
    void *user;
    uint64_t pieces;
    _Atomic uint64_t next;    /* piece that is not taken yet */
    unsigned threads, joined; /* that may work on it, the caller counted; that came to help */
    atomic_uint helping;      /* that are at it now */
    uint64_t off_processor;   /* nanoseconds that a helper had pieces and no processor, at most */
    bool caller_sleeps;
} onxi_team_job;

/* ---- waiting ---- */

/* Where threads have no clock of their own they are taken to have a processor all the time. */
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

/* Until the number is another one, but not for long. */
static void spin_while(const atomic_uint *number, unsigned same)
{
    enum { PAUSES = 32 }; /* between looks at the clock */
    uint64_t end = now() + SPIN_NANOSECONDS;
    do {
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load_explicit(number, memory_order_acquire) != same)
                return;
            onxi_platform_pause();
        }
    } while (now() < end);
}

/* ---- the threads of the team; all of this under its lock ---- */

static unsigned most_threads(const onxi_team_job *job)
{
    return job->pieces < job->threads ? (unsigned)job->pieces : job->threads;
}

/* A job that can do with help. Callers that run at the same time share the threads that each of them alone may use. */
static onxi_team_job *find_job(const onxi_team *team)
{
    for (onxi_team_job *j = team->jobs; j; j = j->next_job)
        if (j->joined + 1 < most_threads(j) && team->working < j->threads &&
            atomic_load_explicit(&j->next, memory_order_relaxed) < j->pieces)
            return j;
    return NULL;
}

static void do_pieces(onxi_team_job *job, unsigned me)
{
    uint64_t piece;
    while ((piece = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->pieces)
        job->work(job->user, piece, me);
}

static void help(onxi_team *team, onxi_team_job *job)
{
    unsigned me = ++job->joined;
    atomic_fetch_add_explicit(&job->helping, 1, memory_order_relaxed);
    team->working++;
    pthread_mutex_unlock(&team->lock);
    uint64_t start = now(), used = clock_of(CLOCK_THREAD_CPUTIME_ID);
    do_pieces(job, me);
    used = clock_of(CLOCK_THREAD_CPUTIME_ID) - used;
    uint64_t took = now() - start, off = took > used ? took - used : 0;
    if (off >= STALL_NANOSECONDS && !onxi_platform_preempted(&onxi_process_this_thread()->preempted))
        off = 0; /* it waited for a page of a file, say */
    pthread_mutex_lock(&team->lock);
    team->working--;
    if (off > job->off_processor)
        job->off_processor = off;
    /* The caller may return once this is 0; nothing of the job is touched after it. */
    bool wake = job->caller_sleeps;
    if (atomic_fetch_sub_explicit(&job->helping, 1, memory_order_release) == 1 && wake)
        pthread_cond_broadcast(&team->done);
}

static void *thread_of_team(void *argument)
{
    onxi_team *team = argument;
    onxi_process_this_thread()->in_piece = true; /* what it runs never posts jobs */
    pthread_mutex_lock(&team->lock);
    for (;;) {
        onxi_team_job *job = find_job(team);
        if (job) {
            help(team, job);
            continue;
        }
        unsigned seen = atomic_load_explicit(&team->posts, memory_order_relaxed);
        pthread_mutex_unlock(&team->lock);
        spin_while(&team->posts, seen);
        pthread_mutex_lock(&team->lock);
        if (atomic_load_explicit(&team->posts, memory_order_relaxed) == seen) {
            team->sleeping++;
            pthread_cond_wait(&team->posted, &team->lock);
            team->sleeping--;
        }
    }
    return NULL;
}

/* ---- making them ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&onxi_process_get()->team.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&onxi_process_get()->team.lock);
}

/* The child has one thread, and the team makes itself anew. */
static void after_fork_in_child(void)
{
    onxi_team *team = &onxi_process_get()->team;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->posted, NULL);
    pthread_cond_init(&team->done, NULL);
    team->jobs = NULL;
    team->threads = team->sleeping = team->working = 0;
}

/* Threads outlive every session, so the code that they run must not be unloaded. */
static void stay_loaded(void)
{
    static const char mark = 0;
    onxi_platform_library_keep(&mark);
}

/* They are never joined, and signals are for the program's own threads. */
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
        team->threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
}

/* ---- callers ---- */

static void post(onxi_team *team, onxi_team_job *job)
{
    unsigned helpers = most_threads(job) - 1;
    pthread_mutex_lock(&team->lock);
    make_threads(team, helpers);
    onxi_team_job **last = &team->jobs;
    while (*last)
        last = &(*last)->next_job;
    *last = job;
    team->working++;
    atomic_fetch_add_explicit(&team->posts, 1, memory_order_release);
    for (unsigned i = 0; i < helpers && i < team->sleeping; i++)
        pthread_cond_signal(&team->posted);
    pthread_mutex_unlock(&team->lock);
}

static void finish(onxi_team *team, onxi_team_job *job)
{
    pthread_mutex_lock(&team->lock);
    onxi_team_job **at = &team->jobs;
    while (*at != job)
        at = &(*at)->next_job;
    *at = job->next_job;
    team->working--;
    unsigned helping = atomic_load_explicit(&job->helping, memory_order_acquire);
    if (helping) {
        pthread_mutex_unlock(&team->lock);
        while (helping) {
            spin_while(&job->helping, helping);
            unsigned left = atomic_load_explicit(&job->helping, memory_order_acquire);
            if (left == helping)
                break;
            helping = left;
        }
        pthread_mutex_lock(&team->lock);
        job->caller_sleeps = true;
        while (atomic_load_explicit(&job->helping, memory_order_acquire))
            pthread_cond_wait(&team->done, &team->lock);
    }
    pthread_mutex_unlock(&team->lock);
}

static void stay_alone(onxi_team *team, uint64_t lost)
{
    if (lost >= STALL_NANOSECONDS)
        atomic_store_explicit(&team->alone_until, now() + lost * ALONE_FACTOR, memory_order_relaxed);
}

/* A caller begins a job: what it lost before, while it may have waited for something else, does not count. */
static void watch_caller(onxi_process_thread *t, uint64_t start)
{
    if (t->at && start - t->ended < STALL_NANOSECONDS)
        return;
    t->at = start;
    t->used = clock_of(CLOCK_THREAD_CPUTIME_ID);
    (void)onxi_platform_preempted(&t->preempted);
}

/* It has done its pieces: was there a processor for it, now and then? */
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

void onxi_team_run(unsigned threads, uint64_t pieces, onxi_team_work *work, void *user)
{
    onxi_process_thread *t = onxi_process_this_thread();
    onxi_team *team = &onxi_process_get()->team;
    uint64_t start = threads < 2 || pieces < 2 || t->in_piece ? 0 : now();
    if (is_alone(team, start)) {
        for (uint64_t i = 0; i < pieces; i++)
            work(user, i, 0);
        return;
    }
    onxi_team_job job = { .work = work, .user = user, .pieces = pieces, .threads = threads };
    watch_caller(t, start);
    post(team, &job);
    t->in_piece = true;
    do_pieces(&job, 0);
    t->in_piece = false;
    const uint64_t end = now();
    judge_caller(team, t, end);
    finish(team, &job);
    t->ended = now();
    const uint64_t waited = t->ended - end;
    if (waited >= SPIN_NANOSECONDS)
        t->at = 0; /* it may have slept */
    stay_alone(team, waited < job.off_processor ? waited : job.off_processor);
}

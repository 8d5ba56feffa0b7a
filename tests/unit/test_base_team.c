/* test_base_team.c - the thread pool: each piece of work runs once, with several callers, nested calls, and after a
 * fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base_process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECES = 1000, THREADS = 4 };

typedef struct tally {
    atomic_uint done[PIECES];
    atomic_uint at_work[THREADS]; /* no two at once are the same one */
    atomic_uint wrong;
    unsigned spin;
} tally;

static void count_piece(void *user, uint64_t piece, unsigned me)
{
    tally *t = user;
    if (me >= THREADS || atomic_fetch_add(&t->at_work[me], 1) != 0)
        atomic_fetch_add(&t->wrong, 1);
    atomic_fetch_add(&t->done[piece], 1);
    for (unsigned i = 0; i < t->spin; i++)
        atomic_load(&t->wrong);
    if (me < THREADS)
        atomic_fetch_sub(&t->at_work[me], 1);
}

/* False when a piece was left out or done twice. */
static bool run_tally(unsigned threads, uint64_t pieces, unsigned spin)
{
    tally *t = calloc(1, sizeof *t);
    t->spin = spin;
    onxi_team_run(threads, pieces, count_piece, t);
    bool good = !atomic_load(&t->wrong);
    for (uint64_t i = 0; i < PIECES; i++)
        good &= atomic_load(&t->done[i]) == (i < pieces);
    free(t);
    return good;
}

static void test_base_team__every_piece_once(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= THREADS; threads++)
        for (uint64_t pieces = 0; pieces <= PIECES; pieces += pieces < 9 ? 1 : 331)
            assert_true(run_tally(threads, pieces, 100));
}

static void test_base_team__many_short_jobs(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++)
        assert_true(run_tally(2 + (unsigned)i % 3, 1 + (uint64_t)i % 7, 0));
}

static void *caller(void *user)
{
    atomic_uint *bad = user;
    for (unsigned i = 0; i < 300; i++)
        if (!run_tally(2 + i % 3, 1 + i % 40, i % 50))
            atomic_fetch_add(bad, 1);
    return NULL;
}

static void test_base_team__several_callers(void **state)
{
    (void)state;
    pthread_t threads[5];
    atomic_uint bad = 0;
    for (int i = 0; i < 5; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, caller, &bad), 0);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&bad), 0);
}

static void inner_piece(void *user, uint64_t piece, unsigned me)
{
    (void)piece;
    if (me != 0)
        atomic_fetch_add((atomic_uint *)user, 1000000);
    atomic_fetch_add((atomic_uint *)user, 1);
}

static void outer_piece(void *user, uint64_t piece, unsigned me)
{
    (void)piece, (void)me;
    onxi_team_run(THREADS, 10, inner_piece, user);
}

static void test_base_team__nested_calls_run_inline(void **state)
{
    (void)state;
    atomic_uint done = 0;
    onxi_team_run(THREADS, 100, outer_piece, &done);
    assert_int_equal(atomic_load(&done), 1000);
}

static void test_base_team__works_after_a_fork(void **state)
{
    (void)state;
#if ONXI_PLATFORM_TSAN
    skip(); /* ThreadSanitizer allows no threads after a fork */
#endif
    assert_true(run_tally(THREADS, 100, 0));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run_tally(THREADS, 100, 1000) && run_tally(2, 7, 0) ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(run_tally(THREADS, 100, 0));
}

/* Within a piece there is no help. */
static void count_inside(void *user, uint64_t piece, unsigned me)
{
    (void)piece, (void)me;
    atomic_fetch_add((atomic_uint *)user, onxi_team_threads(THREADS) != 1);
}

static void note_worker(void *user, uint64_t piece, unsigned me)
{
    (void)piece;
    atomic_fetch_add((atomic_uint *)user, me);
}

/* While threads lose their processors to others a caller does all by itself, and is told so before it cuts its work. */
static void test_base_team__callers_stay_alone(void **state)
{
    (void)state;
    onxi_team *team = &onxi_process_get()->team;
    atomic_uint others = 0;
    assert_int_equal(onxi_team_threads(1), 1);
    atomic_store(&team->alone_until, UINT64_MAX);
    assert_int_equal(onxi_team_threads(THREADS), 1);
    onxi_team_run(THREADS, 100, note_worker, &others);
    assert_int_equal(atomic_load(&others), 0);
    atomic_store(&team->alone_until, 0);
    assert_int_equal(onxi_team_threads(THREADS), THREADS);
    onxi_team_run(2, 2, count_inside, &others);
    assert_int_equal(atomic_load(&others), 0);
}

static int thread_count(void)
{
    char line[256];
    int n = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &n) == 1)
            break;
    if (f)
        fclose(f);
    return n;
}

/* Runs first. */
static void test_base_team__one_thread_makes_none(void **state)
{
    (void)state;
#if ONXI_PLATFORM_TSAN
    skip(); /* ThreadSanitizer has a thread of its own */
#endif
    int before = thread_count();
    if (before < 0)
        skip(); /* no /proc */
    assert_true(run_tally(1, PIECES, 0));
    assert_true(run_tally(THREADS, 1, 0));
    assert_int_equal(thread_count(), before);
    assert_true(run_tally(2, 2, 0));
    assert_int_equal(thread_count(), before + 1);
    assert_true(run_tally(2, PIECES, 0));
    assert_int_equal(thread_count(), before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_team__one_thread_makes_none),   cmocka_unit_test(test_base_team__every_piece_once),
        cmocka_unit_test(test_base_team__many_short_jobs),         cmocka_unit_test(test_base_team__several_callers),
        cmocka_unit_test(test_base_team__nested_calls_run_inline), cmocka_unit_test(test_base_team__works_after_a_fork),
        cmocka_unit_test(test_base_team__callers_stay_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

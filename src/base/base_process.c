/* base_process.c - the only mutable global data of the library (scripts/check_symbols allows it here alone). The system
 * loads a library once per process, so the functions found in it are kept per process, too; and one thread pool serves
 * all sessions, because two pools would compete for the same processors. */
#include "base/base_process.h"

static onxi_process process = {
    .library_lock = PTHREAD_MUTEX_INITIALIZER,
    .shared_lock = PTHREAD_MUTEX_INITIALIZER,
    .team = { .lock = PTHREAD_MUTEX_INITIALIZER, .posted = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER },
    .kept = { .lock = PTHREAD_MUTEX_INITIALIZER },
    .left = { .lock = PTHREAD_MUTEX_INITIALIZER }
};
static _Thread_local onxi_process_thread this_thread;

onxi_process *onxi_process_get(void)
{
    return &process;
}

void **onxi_process_enter(void)
{
    pthread_mutex_lock(&process.shared_lock);
    return &process.shared;
}

void onxi_process_leave(void)
{
    pthread_mutex_unlock(&process.shared_lock);
}

onxi_process_thread *onxi_process_this_thread(void)
{
    return &this_thread;
}

unsigned onxi_process_thread_number(void)
{
    if (!this_thread.number)
        this_thread.number = atomic_fetch_add_explicit(&process.threads, 1, memory_order_relaxed) + 1;
    return this_thread.number;
}

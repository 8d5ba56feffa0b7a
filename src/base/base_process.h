/* base_process.h - what there is once per process, whatever the number of contexts and sessions. */
#ifndef ONXI_BASE_PROCESS_H
#define ONXI_BASE_PROCESS_H

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- libraries (base_library.c) ---- */

/* Functions of one library that a file uses, and files that use it. */
enum { ONXI_FUNCTIONS_MAX = 64, ONXI_USERS_MAX = 3 };

typedef struct onxi_library_user {
    _Atomic(const char *const *) names; /* which are asked for; set when `functions` is filled */
    _Alignas(void *) unsigned char functions[ONXI_FUNCTIONS_MAX * sizeof(void *)];
} onxi_library_user;

typedef struct onxi_library_state {
    atomic_bool tried; /* opened or known to be missing */
    void *handle;      /* NULL: not on this machine */
    const char *file;  /* under which it was found */
    onxi_library_user users[ONXI_USERS_MAX];
} onxi_library_state;

/* ---- threads (base_team.c) ---- */

struct onxi_team_job;

typedef struct onxi_team {
    pthread_mutex_t lock;
    pthread_cond_t posted, done;
    atomic_uint posts; /* how many there were: threads without work look at it for a while before they sleep */
    _Atomic uint64_t alone_until; /* on the monotonic clock: threads lose their processors to others until then */
    struct onxi_team_job *jobs;   /* of the callers that are at it, first come first */
    unsigned threads, sleeping;
    unsigned working; /* on jobs, callers included */
    bool prepared;    /* for forks and against unloading */
} onxi_team;

typedef struct onxi_process {
    pthread_mutex_t shared_lock;
    void *shared; /* onxi_process_enter */
    pthread_mutex_t library_lock;
    onxi_library_state library[ONXI_LIBRARY_COUNT];
    onxi_team team;
    atomic_uint threads; /* that have a number */
} onxi_process;

onxi_process *onxi_process_get(void);
/* What a thread knows of itself. */
typedef struct onxi_process_thread {
    bool in_piece;      /* it does a piece of a job */
    uint64_t ended;     /* its last job as a caller, on the monotonic clock */
    uint64_t at, used;  /* when its processor time was looked at, and what that was; at 0: not yet */
    uint64_t preempted; /* as onxi_platform_preempted has it */
    unsigned number;    /* onxi_process_thread_number; 0: none yet */
} onxi_process_thread;
onxi_process_thread *onxi_process_this_thread(void);

#endif

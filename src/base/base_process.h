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

/* ---- memory (base_memory.c) ---- */

enum { ONXI_KEPT_BLOCKS = 64 };

/* Large blocks that nobody needs now, the oldest first. */
typedef struct onxi_kept {
    atomic_bool on; /* onxi_memory_keep was called */
    pthread_mutex_t lock;
    size_t total;
    unsigned count;
    struct {
        void *ptr;
        size_t size;
    } block[ONXI_KEPT_BLOCKS];
} onxi_kept;

/* ---- what was made (base_left.c) ---- */

enum { ONXI_LEFT_CHAINS = 1024 };

typedef struct onxi_left {
    pthread_mutex_t lock;
    bool has_secret;
    uint64_t asked; /* how often somebody began to ask for what is here */
    onxi_secret secret;
    atomic_size_t all; /* bytes */
    size_t held;       /* of these, those that are not lent to the system */
    struct onxi_left_entry *oldest, **end, *chain[ONXI_LEFT_CHAINS];
} onxi_left;

/* ---- threads (base_team.c) ---- */

/* A job that is posted. It lies here and not with its caller, so that a helper who comes late reads nothing that is
 * gone; one line, since it is handed to and fro. */
typedef struct onxi_team_slot {
    _Alignas(64) _Atomic uint64_t left; /* parts that nobody has, and helpers that may come (base_team.c) */
    atomic_uint threads;                /* that may work on it, the caller counted; 0: free */
    atomic_uint done;                   /* parts that helpers have done */
    onxi_team_work *work;
    void *user;
    uint64_t pieces;
    uint64_t off_processor; /* nanoseconds that a helper had parts and no processor, at most */
    uint32_t parts;         /* into which the pieces go */
} onxi_team_slot;

/* Callers at a time; others do all by themselves. */
enum { ONXI_TEAM_SLOTS = 64 };

typedef struct onxi_team {
    onxi_team_slot slot[ONXI_TEAM_SLOTS];
    _Alignas(64) atomic_uint posts; /* how many there were: threads without work look at it before they sleep */
    atomic_uint slots;              /* that were ever taken, from the first */
    atomic_uint sleeping;
    _Alignas(64) _Atomic uint64_t alone_until; /* on the monotonic clock: threads lose their processors until then */
    atomic_uint threads;
    pthread_mutex_t lock; /* for making threads, and for falling asleep */
    pthread_cond_t posted, done;
    bool prepared; /* for forks and against unloading */
} onxi_team;

typedef struct onxi_process {
    pthread_mutex_t shared_lock;
    void *shared; /* onxi_process_enter */
    pthread_mutex_t library_lock;
    onxi_library_state library[ONXI_LIBRARY_COUNT];
    onxi_team team;
    atomic_uint threads; /* that have a number */
    onxi_kept kept;
    onxi_left left;
} onxi_process;

onxi_process *onxi_process_get(void);
/* What a thread knows of itself. */
typedef struct onxi_process_thread {
    bool in_piece;      /* it does a piece of a job */
    unsigned slot;      /* of its last job as a caller */
    uint64_t ended;     /* its last job as a caller, on the monotonic clock */
    uint64_t at, used;  /* when its processor time was looked at, and what that was; at 0: not yet */
    uint64_t preempted; /* as onxi_platform_preempted has it */
    unsigned number;    /* onxi_process_thread_number; 0: none yet */
} onxi_process_thread;
onxi_process_thread *onxi_process_this_thread(void);

#endif

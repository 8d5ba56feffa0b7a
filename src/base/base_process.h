/* base_process.h - the data that exists once per process, whatever the number of contexts and sessions. */
#ifndef ONXI_BASE_PROCESS_H
#define ONXI_BASE_PROCESS_H

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- libraries (base_library.c) ---- */

/* The functions of a library that one file uses; one entry per file. */
enum { ONXI_FUNCTIONS_MAX = 64, ONXI_USERS_MAX = 3 };

typedef struct onxi_library_user {
    _Atomic(const char *const *) names; /* the names to look up; set when `functions` is filled */
    _Alignas(void *) unsigned char functions[ONXI_FUNCTIONS_MAX * sizeof(void *)];
} onxi_library_user;

typedef struct onxi_library_state {
    atomic_bool tried; /* a load was attempted */
    void *handle;      /* NULL: not installed */
    const char *file;  /* the name under which it was found */
    onxi_library_user users[ONXI_USERS_MAX];
} onxi_library_state;

/* ---- memory (base_memory.c) ---- */

enum { ONXI_KEPT_BLOCKS = 64 };

/* Free large blocks, the oldest first. */
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

/* ---- derived data that is kept (base_left.c) ---- */

enum { ONXI_LEFT_CHAINS = 1024 };

typedef struct onxi_left {
    pthread_mutex_t lock;
    bool has_secret;
    uint64_t asked; /* number of calls of onxi_left_begin */
    onxi_secret secret;
    atomic_size_t all; /* bytes */
    size_t held;       /* of these, bytes that the system may not reclaim */
    struct onxi_left_entry *oldest, **end, *chain[ONXI_LEFT_CHAINS];
} onxi_left;

/* ---- threads (base_team.c) ---- */

/* A posted job. It is stored here rather than by its caller, so that a helper that arrives late does not read freed
 * memory; it takes one cache line, because that line moves between processors. */
typedef struct onxi_team_slot {
    _Alignas(64) _Atomic uint64_t left; /* parts not handed out yet, and helpers that may still join (base_team.c) */
    atomic_uint threads;                /* threads that may work on it, including the caller; 0: the entry is free */
    atomic_uint done;                   /* parts that helpers have completed */
    onxi_team_work *work;
    void *user;
    uint64_t pieces;
    uint64_t off_processor; /* upper bound of the nanoseconds in which a helper that had parts was not running */
    uint32_t parts;         /* number of parts into which the pieces are grouped */
} onxi_team_slot;

/* Number of callers that can post a job at the same time; others work alone. */
enum { ONXI_TEAM_SLOTS = 64 };

typedef struct onxi_team {
    onxi_team_slot slot[ONXI_TEAM_SLOTS];
    _Alignas(64) atomic_uint posts; /* number of posted jobs: idle threads check it before they sleep */
    atomic_uint slots;              /* number of entries that were ever in use, counted from the first */
    atomic_uint sleeping;
    _Alignas(64) _Atomic uint64_t alone_until; /* on the monotonic clock: until then callers work alone, because threads
                                                * were preempted */
    atomic_uint threads;
    pthread_mutex_t lock; /* protects the creation of threads, and falling asleep */
    pthread_cond_t posted, done;
    bool prepared; /* fork handlers are installed, and the library is pinned */
} onxi_team;

typedef struct onxi_process {
    pthread_mutex_t shared_lock;
    void *shared; /* onxi_process_enter */
    pthread_mutex_t library_lock;
    onxi_library_state library[ONXI_LIBRARY_COUNT];
    onxi_team team;
    atomic_uint threads; /* threads that have a number */
    onxi_kept kept;
    atomic_size_t small_pages; /* bytes of mappings that get small pages, since huge ones took long (base_memory.c) */
    onxi_left left;
} onxi_process;

onxi_process *onxi_process_get(void);
/* Data of one thread. */
typedef struct onxi_process_thread {
    bool in_piece;      /* it is computing a piece of a job */
    unsigned slot;      /* the entry of its last job as a caller */
    uint64_t ended;     /* when its last job as a caller ended, on the monotonic clock */
    uint64_t at, used;  /* when its CPU time was last read, and its value; at 0: not yet */
    uint64_t preempted; /* as onxi_platform_preempted counts it */
    unsigned number;    /* onxi_process_thread_number; 0: none yet */
} onxi_process_thread;
onxi_process_thread *onxi_process_this_thread(void);

#endif

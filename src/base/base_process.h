/* base_process.h - what there is once per process, whatever the number of contexts and sessions. */
#ifndef ONXI_BASE_PROCESS_H
#define ONXI_BASE_PROCESS_H

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- libraries (base_library.c) ---- */

enum { ONXI_FUNCTIONS_MAX = 64 }; /* that are used of one library */

typedef struct onxi_library_state {
    atomic_bool tried, ready; /* opened or known to be missing; `functions` is filled */
    void *handle;             /* NULL: not on this machine */
    const char *file;         /* under which it was found */
    _Alignas(void *) unsigned char functions[ONXI_FUNCTIONS_MAX * sizeof(void *)];
} onxi_library_state;

typedef struct onxi_process {
    pthread_mutex_t library_lock;
    onxi_library_state library[ONXI_LIBRARY_COUNT];
} onxi_process;

onxi_process *onxi_process_get(void);

#endif

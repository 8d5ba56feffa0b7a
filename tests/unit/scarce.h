/* scarce.h - an allocator that fails when told to, for tests that fail each allocation in turn. */
#ifndef TESTS_SCARCE_H
#define TESTS_SCARCE_H

#include <stddef.h>
#include <stdlib.h>

/* An allocator whose n-th call for more fails, and that counts what is in use. */
typedef struct scarce_memory {
    unsigned calls, failing; /* 0: none fails */
    int lasting;             /* all later ones fail, too */
    size_t in_use;
} scarce_memory;

static inline void *scarce_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    scarce_memory *m = user;
    if (new_size > old_size) {
        m->calls++;
        if (m->failing && (m->calls == m->failing || (m->lasting && m->calls > m->failing)))
            return NULL;
    }
    m->in_use += new_size - old_size;
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

#endif

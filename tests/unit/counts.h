/* counts.h - an allocator that counts allocated bytes and their peak. */
#ifndef TESTS_COUNTS_H
#define TESTS_COUNTS_H

#include <stdatomic.h>
#include <stdlib.h>

typedef struct counts {
    atomic_llong now, most;
    atomic_ullong calls;
} counts;

static void *counted_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    counts *c = user;
    const long long more = (long long)new_size - (ptr ? (long long)old_size : 0);
    const long long now = atomic_fetch_add(&c->now, more) + more;
    long long most = atomic_load(&c->most);
    while (now > most && !atomic_compare_exchange_weak(&c->most, &most, now))
        ;
    atomic_fetch_add(&c->calls, 1);
    if (!new_size) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

#endif

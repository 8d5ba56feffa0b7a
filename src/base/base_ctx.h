/* base_ctx.h - the internals of a context, for the files of base/ only. */
#ifndef ONXI_BASE_CTX_H
#define ONXI_BASE_CTX_H

#include "base/base.h"

#include <onx/io.h>

enum { ONXI_SPARE_BUFFERS = 2, ONXI_SPARE_SIZES = 10 /* 4 KiB to 2 MiB */ };

struct onx_ctx {
    onx_allocator allocator;
    onx_limits limits;
    const struct onx_registry *registry; /* operators that calls without a registry of their own use; NULL: built-in
                                          * ones */
    onxi_secret secret;                  /* key of its hash tables */
    /* Blocks of freed arenas by size, for reuse by the next arena: page faults on fresh pages cost more than
     * decoding. */
    struct onxi_block *spare[ONXI_SPARE_SIZES];
    size_t spare_bytes;
    struct {
        void *ptr;
        size_t size;
    } buffers[ONXI_SPARE_BUFFERS]; /* large buffers that were returned, for the same reason */
    uint64_t arena_bytes;          /* held by all arenas and values of the context, against limits.memory */
    /* The diagnostics lie in `texts`, so that they never move. One free entry is always reserved for the out-of-memory
     * error, so that recording it needs no allocation. */
    onx_diag **diags, *few_diags[8];
    size_t diag_count, diag_room;
    onx_diag no_memory;
    size_t totals[ONX_ERROR + 1];
    onx_status last_error; /* status of the last error, whether or not it was kept */
    onx_arena *texts;      /* arena of the diagnostics */
    onx_temp_watch temps;
    bool named_temps;         /* for tests: behave as on file systems without unnamed files */
    struct onxi_guard *guard; /* NULL: not entered (base_guard.c) */
    onx_log log;
    size_t logged;            /* number of diagnostics that were passed to the log function */
    const onx_cancel *cancel; /* may be NULL */
    bool cancelled;           /* the current call has reported it */
    uint32_t calls;           /* nesting depth of public calls */
    bool reporting;           /* true while a diagnostic is being recorded; errors during that are not recorded */
};

/* Random bytes from the system; if it provides none, derived from data that differs between processes. */
onxi_secret onxi_secret_make(const void *address);
/* How many public calls have begun and not ended: 1 in the outermost one. Declared in transform.h, too, which checks
 * results there. */
uint32_t onxi_call_depth(const onx_ctx *cx);
/* Frees the spare blocks. */
void onxi_arena_drop_spare(onx_ctx *cx);

#endif

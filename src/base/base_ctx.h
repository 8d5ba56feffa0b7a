/* base_ctx.h - the insides of a context, for the files of base/ alone. */
#ifndef ONXI_BASE_CTX_H
#define ONXI_BASE_CTX_H

#include "base/base.h"

#include <onx/io.h>

enum { ONXI_SPARE_BUFFERS = 2, ONXI_SPARE_SIZES = 10 /* 4 KiB to 2 MiB */ };

struct onx_ctx {
    onx_allocator allocator;
    onx_limits limits;
    const struct onx_registry *registry; /* operators that calls know which name no other ones; NULL: built-in ones */
    onxi_secret secret;                  /* of its hash tables */
    /* Blocks of freed arenas by size, for the next arena: fresh pages cost more than decoding. */
    struct onxi_block *spare[ONXI_SPARE_SIZES];
    size_t spare_bytes;
    struct {
        void *ptr;
        size_t size;
    } buffers[ONXI_SPARE_BUFFERS]; /* large buffers that were returned, for the same reason */
    uint64_t arena_bytes;          /* held by all arenas and values of the context, against limits.memory */
    /* Diagnostics are in `texts`, so that they stay where they are. A place is always free beyond the last one, for the
     * news that memory ran out, which needs none. */
    onx_diag **diags, *few_diags[8];
    size_t diag_count, diag_room;
    onx_diag no_memory;
    size_t totals[ONX_ERROR + 1];
    onx_status last_error; /* kind of the error that came last, kept or not */
    onx_arena *texts;      /* of the diagnostics */
    onx_temp_watch temps;
    bool named_temps;         /* for tests: as where the file system has no nameless files */
    struct onxi_guard *guard; /* NULL: not entered (base_guard.c) */
    onx_log log;
    size_t logged;            /* diagnostics that were passed to the log */
    const onx_cancel *cancel; /* may be NULL */
    bool cancelled;           /* the current call has said so */
    uint32_t calls;           /* public calls in progress, nested */
    bool reporting;           /* set while a diagnostic is being recorded, so that its own failure is not */
};

/* From the system; where that gives none, from what differs between processes. */
onxi_secret onxi_secret_make(const void *address);
/* Frees the spare blocks. */
void onxi_arena_drop_spare(onx_ctx *cx);

#endif

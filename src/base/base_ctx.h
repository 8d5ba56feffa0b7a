/* base_ctx.h - the insides of a context, for the files of base/ alone. */
#ifndef ONXI_BASE_CTX_H
#define ONXI_BASE_CTX_H

#include "base/base.h"

enum { ONXI_SPARE_BUFFERS = 2 };

struct onx_ctx {
    onx_allocator allocator;
    onx_limits limits;
    struct onxi_block
        *spare; /* full-size blocks of freed arenas, for the next arena: fresh pages cost more than decoding */
    unsigned spare_count;
    struct {
        void *ptr;
        size_t size;
    } buffers[ONXI_SPARE_BUFFERS]; /* large buffers that were given back, for the same reason */
    uint64_t arena_bytes;          /* held by all arenas of the context, against limits.memory */
    onx_diag *diags;
    size_t diag_count, diag_room;
    size_t totals[ONX_ERROR + 1];
    onx_arena *texts; /* of the diagnostics */
    bool reporting;   /* set while a diagnostic is being recorded, so that its own failure is not */
};

/* Frees the spare blocks. */
void onxi_arena_drop_spare(onx_ctx *cx);

#endif

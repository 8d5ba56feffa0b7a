/* reduce.h - reductions over axes: one output element at a time. */
#ifndef ONXI_KERNEL_REDUCE_H
#define ONXI_KERNEL_REDUCE_H

#include "kernel/kernel.h"

typedef enum onxi_reduce_kind {
    ONXI_REDUCE_SUM,
    ONXI_REDUCE_MEAN,
    ONXI_REDUCE_PROD,
    ONXI_REDUCE_MAX,
    ONXI_REDUCE_MIN,
    ONXI_REDUCE_L1,
    ONXI_REDUCE_L2,
    ONXI_REDUCE_LOG_SUM,
    ONXI_REDUCE_LOG_SUM_EXP,
    ONXI_REDUCE_SUM_SQUARE
} onxi_reduce_kind;

typedef struct onxi_reduce_params {
    onxi_lines lines;
    bool is_reduced[ONX_RANK_MAX]; /* per axis */
    uint32_t kept, reduced;        /* dims of each sort, outermost first */
    int64_t kept_dims[ONX_RANK_MAX], kept_steps[ONX_RANK_MAX];
    int64_t dims[ONX_RANK_MAX], steps[ONX_RANK_MAX];
    uint64_t count; /* elements that go into one */
    onxi_reduce_kind kind;
    void (*loop)(const struct onxi_reduce_params *q, const void *x, void *y); /* one output element */
    bool arg_max, last_index;
    uint32_t width;
    uint64_t line;  /* contiguous elements of a line, if one output reduces several lines; 0: all are contiguous */
    uint64_t inner; /* adjacent outputs that the simd row reduces together; 0: one at a time */
    uint32_t block; /* channels per block of the result (core/blocked.h); 0: it is row-major */
    /* The axes are an input that a run computes: only kind, loop and width of the members above are set, and only the
     * plain row runs. NULL: the axes are known. */
    const onx_prepare *kept_prepare;
} onxi_reduce_params;

/* If input 0 has blocked channels, dims and steps are those of its memory, and the result has such channels as well. */
onx_status onxi_reduce_prepare(onx_prepare *p);
/* Of ArgMax and ArgMin: one axis. */
onx_status onxi_arg_prepare(onx_prepare *p);
onx_status onxi_reduce_run(onx_work *work, uint64_t first, uint64_t last);

#endif
